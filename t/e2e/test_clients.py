# SPDX-License-Identifier: MIT
"""Client connections: keep-alive, pipelining, every way bytes may be cut, bodies, half-close and aborts."""
import hashlib
import os
import threading

import pytest
from harness import raw, util
from harness.raw import chunked, get, post

CONF = """
timeouts = { queue = "20s"; };
upstreams = { one = { servers = ( "@ORIGIN@" ); maxconn = 1; }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@";
            locations = ( { match = "/f/"; root = "public"; }, { match = "/one/"; proxy = "one"; },
                          { match = "/go/"; redirect = "/f/"; } ); } );
"""
FILES = {"public/f/a.txt": "hello\n", "public/f/big": b"0123456789abcdef" * 65536}


class Origin:
    """The backend's answers: /echo the body, /slow… only when told, /big/N that many bytes, else the default."""

    def __init__(self):
        self.release = threading.Event()

    def __call__(self, conn, q):
        if q.target.startswith("/echo"):
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(q.body) + q.body)
            return True
        if "/slow" in q.target:
            self.release.wait(20)
            return None
        if q.target.startswith("/big/"):
            n = int(q.target[5:])
            return conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % n + b"0123456789abcdef" * (n // 16))
        return None


@pytest.fixture(scope="module")
def front():
    origin = Origin()
    f = raw.Front(CONF, FILES, handler=origin)
    f.release = origin.release
    yield f
    origin.release.set()
    f.close()


@pytest.fixture
def slow(front):
    """Requests to /slow… wait until front.release.set()."""
    front.release.clear()
    front.lines()
    yield front
    front.release.set()
    front.settle()


def seen(front, n):
    """Waits until the backend has got n requests; their targets."""
    util.wait_for("the backend has %d requests" % n, 5, lambda: len(front.origin.requests) >= n)
    return front.origin.targets()


# --- keep-alive -----------------------------------------------------------------------------------------------------


def test_a_connection_serves_many_requests(front):
    conn = front.connect()
    for i in range(200):
        conn.send(get(b"/%s%d" % ((b"f/a.txt?", b"p", b"go/")[i % 3], i)))
        r = conn.response()
        assert r.status == (200, 200, 301)[i % 3] and not r.wants_close()
    conn.close()


@pytest.mark.parametrize("lines, version, keeps", [
    ((), b"HTTP/1.1", True), ((b"Connection: close",), b"HTTP/1.1", False),
    ((b"Connection: keep-alive",), b"HTTP/1.1", True),
    ((b"Connection: foo, CLOSE",), b"HTTP/1.1", False), ((b"Connection: keep-alive", b"Connection: close"),
                                                         b"HTTP/1.1", False),
    ((b"Connection: close, keep-alive",), b"HTTP/1.1", False), ((b"Connection: closed",), b"HTTP/1.1", True),
    ((b"Connection:",), b"HTTP/1.1", True), ((b"Proxy-Connection: close",), b"HTTP/1.1", True),
    ((), b"HTTP/1.0", False),
    ((b"Connection: Keep-Alive",), b"HTTP/1.0", True), ((b"Connection: keep-alive, close",), b"HTTP/1.0", False),
    ((), b"HTTP/1.2", True),
])
@pytest.mark.parametrize("path", [b"/p", b"/f/a.txt", b"/f/none", b"/go/"])
def test_persistence(front, path, lines, version, keeps):
    conn = front.connect()
    conn.send(get(path, *lines, version=version) + get(b"/after"))
    r = conn.response()
    assert r.wants_close() != keeps
    if version == b"HTTP/1.0" and keeps:
        assert "keep-alive" in r.tokens("connection")
    if keeps:
        assert conn.response().body == b"GET /after 0"
    else:
        assert conn.at_eof(5)
    conn.close()
    assert ("/after" in [q.target for q in front.settle()]) == keeps


def test_head_answers_as_get_would_without_a_body(front):
    for path in (b"/p", b"/f/a.txt", b"/f/none", b"/go/", b"/f/big"):
        t = front.ask(get(path, method=b"HEAD") + get(path), "HEAD", "GET")
        head, full = t.responses
        assert head.status == full.status and head.body == b""
        if path != b"/p":  # the backend's own text names the method
            assert head.get("content-length") == full.get("content-length") == str(len(full.body))
        assert head.get("content-type") == full.get("content-type")


# --- pipelining -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path, n", [(b"/f/a.txt", 10000), (b"/f/none", 10000), (b"/go/", 10000), (b"/p", 2000)])
def test_pipelined_in_one_write_are_answered_in_order(front, path, n):
    """10,000 requests in one write: no stack, no memory, no starving of others."""
    conn = front.connect(timeout=30)
    sender = threading.Thread(target=conn.send,
                              args=(b"".join(get(b"%s?%d" % (path, i), b"X: %d" % i) for i in range(n)),))
    sender.start()
    for i in range(n):
        r = conn.response()
        assert r.status == {b"/f/none": 404, b"/go/": 301}.get(path, 200)
        if path == b"/p":
            assert r.body == b"GET /p?%d 0" % i
        if i == n // 2:
            assert front.w.get("/f/a.txt").body == b"hello\n"
    sender.join()
    assert not conn.at_eof(0.05)
    conn.close()
    assert [q.target for q in front.settle()] == (["/p?%d" % i for i in range(n)] if path == b"/p" else [])


def test_a_mix_of_pipelined_requests(front):
    kinds = [("GET", get(b"/f/a.txt")), ("POST", post(b"/echo", b"Content-Length: 5", body=b"hello")),
             ("HEAD", get(b"/p", method=b"HEAD")),
             ("POST", chunked(b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", b"/echo")), ("GET", get(b"/f/none")),
             ("GET", get(b"/go/")),
             ("GET", get(b"/big/65536")), ("HEAD", get(b"/f/big", method=b"HEAD")), ("GET", get(b"/f/big")),
             ("DELETE", get(b"/p", method=b"DELETE"))]
    t = front.ask(b"".join(data for _, data in kinds) * 5, *[m for m, _ in kinds] * 5, timeout=20)
    assert t.statuses == [200, 200, 200, 200, 404, 301, 200, 200, 200, 200] * 5
    assert [r.body for r in t.responses[:4]] == [b"hello\n", b"hello", b"", b"hello!"]
    assert len(t.responses[6].body) == 65536 and t.responses[8].body == FILES["public/f/big"]


def test_requests_pipelined_behind_a_slow_one_wait_their_turn(slow):
    conn = slow.connect(timeout=10)
    # More than is read ahead.
    conn.send(get(b"/slow") + b"".join(get(b"/f/a.txt?%d" % i) for i in range(1000)) + get(b"/last"))
    seen(slow, 1)
    assert not conn.at_eof(0.2) and not conn.rd.buf
    slow.release.set()
    assert conn.response().body == b"GET /slow 0"
    for _ in range(1000):
        assert conn.response().body == b"hello\n"
    assert conn.response().body == b"GET /last 0"
    conn.close()


def test_answers_larger_than_the_sockets_to_a_client_that_reads_late(front):
    conn = front.connect(timeout=20, rcvbuf=4096)
    conn.send(get(b"/f/big") * 5 + get(b"/big/1048576") * 5 + get(b"/p"))
    assert front.w.get("/f/a.txt").status == 200
    for _ in range(10):
        assert conn.response().body == FILES["public/f/big"]
    assert conn.response().body == b"GET /p 0"
    conn.close()


# --- cuts -----------------------------------------------------------------------------------------------------------

MIX = [("GET", get(b"/f/a.txt?q=1", b"X-Y: z", b"Cookie: a=b; c=d"), b"hello\n"),
       ("POST", post(b"/echo", b"Content-Length: 11", body=b"hello\r\n\r\nxy"), b"hello\r\n\r\nxy"),
       ("POST", chunked(b'5;e="f"\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-T: v\r\n\r\n', b"/echo"), b"hello0123456789"),
       ("GET", b"\r\n" + get(b"/p"), b"GET /p 0")]


def check_mix(front, conn):
    for method, _, body in MIX:
        r = conn.response(method)
        assert (r.status, r.body) == (200, body)
    assert not conn.at_eof(0) and not conn.rd.buf
    conn.close()
    got = front.settle()
    assert [q.target for q in got] == ["/echo", "/echo", "/p"] and not any(q.anomalies for q in got)


def test_byte_by_byte(front):
    front.origin.take()
    conn = front.connect(timeout=20)
    raw.feed_slowly(conn, b"".join(data for _, data, _ in MIX), pause=0.0005)
    check_mix(front, conn)


def test_a_cut_at_every_byte(front):
    data = b"".join(d for _, d, _ in MIX)
    for i in range(1, len(data)):
        front.origin.take()
        conn = front.connect(timeout=10)
        conn.send(data[:i], data[i:], delay=0.001)
        check_mix(front, conn)


@pytest.mark.parametrize("step", [2, 3, 7, 16, 61])
def test_cuts_of_one_size(front, step):
    front.origin.take()
    conn = front.connect(timeout=10)
    raw.feed_slowly(conn, b"".join(data for _, data, _ in MIX), step, pause=0.001)
    check_mix(front, conn)


@pytest.mark.parametrize("data", [b"GET /p HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n",
                                  b"GET /p HTTP/1.1\r\nHost: h\r\nX: a\rY: b\r\n\r\n",
                                  b"GET /p HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
                                  b"GET /p HTTP/1.1x\r\nHost: h\r\n\r\n", b"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n",
                                  post(b"/p", b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")])
def test_what_is_refused_whole_is_refused_in_pieces(front, data):
    for step in (1, 5):
        front.origin.take()
        conn = front.connect()
        raw.feed_slowly(conn, data, step, pause=0.0005)
        assert conn.response().status == 400 and conn.at_eof(5)
        conn.close()
        assert not front.settle()


# --- bodies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 5, 1000, 16383, 16384, 16385, 65535, 65536, 65537, 300000, 3000000])
@pytest.mark.parametrize("kind", ["sized", "chunked", "small chunks"])
def test_bodies_come_back_as_they_were_sent(front, size, kind):
    body = (hashlib.sha256(b"%d" % size).digest() * (size // 32 + 1))[:size]
    if kind == "sized":
        data = post(b"/echo", b"Content-Length: %d" % size, body=body)
    else:
        step = 7777 if kind == "small chunks" else max(size, 1)
        data = chunked(raw.chunks(body, step), b"/echo")
    conn = front.connect(timeout=20)
    sender = threading.Thread(target=conn.send, args=(data + get(b"/after"),))
    sender.start()
    r = conn.response()
    assert r.status == 200 and r.body == body
    assert conn.response().body == b"GET /after 0"
    sender.join()
    conn.close()
    got = front.settle()
    assert got[0].body == body and not got[0].anomalies


def test_a_body_in_many_small_writes(front):
    conn = front.connect(timeout=20)
    conn.send(post(b"/echo", b"Content-Length: 3000"))
    for i in range(300):
        conn.send(b"%010d" % i)
    assert conn.response().body == b"".join(b"%010d" % i for i in range(300))
    conn.close()


# --- half-close -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path, body", [(b"/f/a.txt", b"hello\n"), (b"/p", b"GET /p 0"),
                                        (b"/f/big", FILES["public/f/big"]), (b"/big/1048576", None)])
def test_c092_half_close_after_a_complete_request_is_answered(front, path, body):
    conn = front.connect(timeout=10)
    conn.send(get(path))
    conn.half_close()
    r = conn.response()
    assert r.status == 200 and r.complete and (body is None or r.body == body)
    assert conn.at_eof(5)
    conn.close()


def test_c092_half_close_while_the_backend_thinks(slow):
    conn = slow.connect(timeout=10)
    conn.send(post(b"/slow", b"Content-Length: 2", body=b"hi"))
    conn.half_close()
    seen(slow, 1)
    assert not conn.at_eof(0.3)
    slow.release.set()
    assert conn.response().body == b"POST /slow 2" and conn.at_eof(5)
    conn.close()


def test_c092_half_close_behind_pipelined_requests(slow):
    conn = slow.connect(timeout=10)
    conn.send(get(b"/f/a.txt") + get(b"/slow") + get(b"/p") + chunked(b"2\r\nhi\r\n0\r\n\r\n",
                                                                      b"/echo") + get(b"/f/a.txt"))
    conn.half_close()
    assert conn.response().body == b"hello\n"
    seen(slow, 1)
    slow.release.set()
    assert [conn.response().body for _ in range(4)] == [b"GET /slow 0", b"GET /p 0", b"hi", b"hello\n"]
    assert conn.at_eof(5)
    conn.close()


def test_c092_half_close_while_queued_keeps_its_place(slow):
    raw.needs(slow.w, "queue")
    first = slow.connect(timeout=10)
    first.send(get(b"/one/slow"))
    seen(slow, 1)
    second = slow.connect(timeout=10)
    second.send(get(b"/one/second"))
    second.half_close()
    assert not second.at_eof(0.2)
    slow.release.set()
    assert first.response().status == 200
    assert second.response().body == b"GET /one/second 0" and second.at_eof(5)
    first.close()
    second.close()


def test_half_close_of_an_idle_connection_ends_it(front):
    conn = front.connect()
    conn.send(get(b"/f/a.txt"))
    conn.response()
    conn.half_close()
    assert conn.at_eof(5)
    conn.close()
    conn = front.connect()
    conn.half_close()
    assert conn.at_eof(5)
    conn.close()


# --- aborts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["half", "close", "reset"])
def test_c092_fin_before_the_request_is_complete_is_an_abort(front, how):
    inputs = [b"G", b"GET /p HT", b"GET /p HTTP/1.1\r\n", b"GET /p HTTP/1.1\r\nHost: h",
              b"GET /p HTTP/1.1\r\nHost: h\r\n\r", post(b"/p", b"Content-Length: 50", body=b"hello"),
              post(b"/p", b"Content-Length: 50"), chunked(b"5\r\nhel"), chunked(b"5\r\nhello\r\n"), chunked(b"5"),
              chunked(b"5\r\nhello\r\n0\r\n"), chunked(b"5\r\nhello\r\n0\r\nX: y\r\n")]
    front.lines()
    for data in inputs:
        conn = front.connect()
        conn.send(get(b"/f/a.txt") + data)
        assert conn.response().body == b"hello\n"
        if how == "half":
            conn.half_close()
            assert conn.at_eof(5), data
        conn.close(reset=how == "reset")
        util.wait_for("the backend's connection is cut", 5, lambda: not front.origin.open_dirty())
        assert not any(q.complete for q in front.origin.take()), data
    lines = front.lines()
    assert len(lines) == 2 * len(inputs) and sum(" 499 " in ln for ln in lines) == len(inputs)


def test_c092_reset_while_the_backend_thinks(slow):
    conn = slow.connect()
    conn.send(get(b"/slow/x"))
    seen(slow, 1)
    conn.close(reset=True)
    slow.w.wait_access(r'"GET /slow/x HTTP/1.1" 499 ')
    slow.release.set()
    assert slow.w.get("/p").status == 200


def test_c092_c112_a_reset_frees_the_slot_and_the_next_is_served(slow):
    raw.needs(slow.w, "queue")
    conn = slow.connect()
    conn.send(get(b"/one/slow/1"))
    seen(slow, 1)
    waiting = slow.connect(timeout=10)
    waiting.send(get(b"/one/next"))
    assert not waiting.at_eof(0.2)
    conn.close(reset=True)
    r = waiting.response()
    assert r.body == b"GET /one/next 0"
    waiting.close()
    slow.w.wait_access(r'"GET /one/slow/1 HTTP/1.1" 499 ')


def test_c092_c115_a_reset_while_queued_never_reaches_the_backend(slow):
    raw.needs(slow.w, "queue")
    first = slow.connect(timeout=10)
    first.send(get(b"/one/slow"))
    seen(slow, 1)
    gone = [slow.connect() for _ in range(3)]
    for i, c in enumerate(gone):
        c.send(get(b"/one/gone/%d" % i))
    last = slow.connect(timeout=10)
    last.send(get(b"/one/last"))
    assert not last.at_eof(0.1)
    for c in gone:
        c.close(reset=True)
    for i in range(3):
        slow.w.wait_access(r'"GET /one/gone/%d HTTP/1.1" 499 ' % i)
    slow.release.set()
    assert last.response().body == b"GET /one/last 0" and first.response().status == 200
    first.close()
    last.close()
    assert [t for t in slow.origin.targets() if t.startswith("/one")] == ["/one/slow", "/one/last"]


@pytest.mark.parametrize("path", [b"/f/big", b"/big/8388608"])
@pytest.mark.parametrize("reset", [True, False])
def test_c092_the_client_leaves_in_the_middle_of_an_answer(front, path, reset):
    front.lines()
    for _ in range(5):
        conn = front.connect(rcvbuf=4096)
        conn.send(get(path) * (200 if path == b"/f/big" else 1))
        conn.s.recv(1000)
        conn.close(reset=reset)  # bytes unread: the kernel answers with a reset in both cases
    util.wait_for("the aborted requests are logged", 5,
                  lambda: sum(path.decode() in ln for ln in front.w.access()[front.seen:]) >= 5)
    front.settle()
    assert front.w.get("/f/a.txt").body == b"hello\n"


def test_c092_the_client_leaves_in_the_middle_of_an_upload(front):
    front.lines()
    for reset in (False, True):
        conn = front.connect()
        conn.send(post(b"/echo", b"Content-Length: 1000000", body=b"x" * 200000))
        seen(front, 1)
        conn.close(reset=reset)
        front.settle()
    lines = front.lines()
    assert len(lines) == 2 and all(" 499 " in ln for ln in lines)


def test_c139_clients_that_leave_early_cost_nothing(front):
    def fds():
        return sum(len(os.listdir("/proc/%d/fd" % p)) for p in front.w.tree())
    before = fds()
    for i in range(300):
        conn = front.connect()
        conn.send((get(b"/f/big"), get(b"/big/1048576"), b"GET /x", post(b"/echo", b"Content-Length: 9"))[i % 4])
        conn.close(reset=i % 3 == 0)
    front.settle()
    util.wait_for("all descriptors are closed again", 5, lambda: fds() <= before + 8)
