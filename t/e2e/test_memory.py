# SPDX-License-Identifier: MIT
"""Memory (C141): flat over many requests, and small for a client that only keeps its connection."""
import resource
import threading

import pytest
from harness import raw, util
from harness.raw import get, post

CONF = """
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@"; access_log = false;
            locations = ( { match = "/f/"; root = "public"; } ); } );
"""

pytestmark = pytest.mark.skipif(util.SCALE != 1, reason="memory is only measured on a plain build")


@pytest.fixture
def front():
    f = raw.Front(CONF, {"public/f/a.txt": "hello\n"})
    yield f
    f.close()


def pss(front):
    return util.anon_bytes(front.w.tree())


def run(front, requests, batch=100):
    """Each request in turn, pipelined by the batch, on four connections at once."""
    def one():
        conn = front.connect(timeout=30)
        for _ in range(requests // batch // 4):
            conn.send(b"".join((get(b"/f/a.txt"), get(b"/f/none"),
                                get(b"/f/a.txt", b"Range: bytes=1-2"))[i % 3] for i in range(batch)))
            for _ in range(batch):
                conn.response()
        conn.close()
    threads = [threading.Thread(target=one) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def test_c141_memory_is_flat_over_many_requests(front):
    run(front, 4000)
    warm = pss(front)
    run(front, 20000)
    assert pss(front) - warm < 512 * 1024


def test_c141_memory_is_flat_over_many_connections_and_proxied_requests(front):
    def some(n):
        for i in range(n):
            conn = front.connect()
            conn.send(post(b"/p", b"Content-Length: 5000", b"Connection: close",
                           body=b"x" * 5000) if i % 2 else get(b"/p") + b"GET /broken")
            conn.response()
            conn.close(reset=i % 5 == 0)
    some(300)
    front.settle()
    warm = pss(front)
    some(1500)
    front.settle()
    assert pss(front) - warm < 512 * 1024


def test_c141_an_idle_client_costs_little(front, record_property):
    n = 3000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < n + 500:
        pytest.skip("%d descriptors are not enough for %d connections" % (hard, n))
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def keep():
        conn = front.connect()
        conn.send(get(b"/f/a.txt"))
        assert conn.response().status == 200
        return conn
    try:
        first = [keep() for _ in range(100)]
        before = pss(front)
        conns = [keep() for _ in range(n)]
        each = (pss(front) - before) / n
        print("an idle kept-alive client: %.0f bytes" % each)
        record_property("bytes", each)
        for c in conns + first:
            c.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert each < 1024
