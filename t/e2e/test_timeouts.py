# SPDX-License-Identifier: MIT
"""The named deadlines of a client connection: which one runs when, and what the client is told when it passes."""
import threading
import time

import pytest
import wire
from harness import raw, util
from harness.raw import chunked, get, post

CONF = """
timeouts = { header = "400ms"; keepalive = "400ms"; body = "400ms"; send = "400ms"; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@";
            locations = ( { match = "/f/"; root = "public"; },
                          { match = "/patient/"; proxy = "@ORIGIN@";
                            timeouts = { body = "30s"; send = "30s"; }; } ); } );
"""
FIRES = 6  # seconds given to a deadline of 400 ms: asserted is that it fires, and not early


@pytest.fixture(scope="module")
def front():
    release = threading.Event()

    def handler(conn, q):
        if q.target.startswith("/slow"):
            release.wait(20)
        if q.target.startswith("/big"):
            return conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n" + b"x" * (64 << 20))
        return None
    f = raw.Front(CONF, {"public/f/a.txt": "hello\n", "public/f/big": b"x" * (32 << 20)}, handler=handler)
    f.release = release
    yield f
    release.set()
    f.close()


@pytest.fixture(scope="module")
def patient():
    """The same with deadlines that a client must be able to keep although the machine is busy."""
    f = raw.Front(CONF.replace('"400ms"', '"2s"'), {"public/f/a.txt": "hello\n", "public/f/big": b"x" * (32 << 20)})
    yield f
    f.close()


@pytest.fixture
def conn(front):
    front.lines()
    c = front.connect(timeout=util.scaled(FIRES))
    yield c
    c.close()


def not_early(since):
    assert time.monotonic() - since > 0.35


def test_a_connection_that_sends_nothing_is_closed_without_a_word(front, conn):
    since = time.monotonic()
    assert conn.at_eof(util.scaled(FIRES)) and not conn.rd.reset
    not_early(since)
    assert front.lines() == []


def test_a_head_that_never_ends_is_408(front, conn):
    since = time.monotonic()
    conn.send(b"GET /p HTTP/1.1\r\nHo")
    r = conn.response()
    assert r.status == 408 and r.wants_close() and conn.at_eof(5)
    not_early(since)
    assert " 408 " in front.lines()[0] and not front.settle()


def test_the_time_for_a_head_is_for_the_whole_of_it(front, conn):
    """One byte now and then does not keep it alive (slow loris)."""
    stop = threading.Event()

    def drip():
        conn.s.sendall(b"GET /p HTTP/1.1\r\nHost: h\r\nX: ")
        while not stop.wait(0.2) and conn.send(b"a"):
            pass
    t = threading.Thread(target=drip)
    t.start()
    try:
        assert conn.response().status == 408
    finally:
        stop.set()
        t.join()


def test_a_second_request_has_the_time_of_a_head_too(front, conn):
    conn.send(get(b"/f/a.txt"))
    assert conn.response().status == 200
    conn.send(b"GET /p")
    assert conn.response().status == 408 and conn.at_eof(5)


def test_an_idle_connection_is_closed_after_keepalive(front, conn):
    for path in (b"/f/a.txt", b"/p"):
        conn.send(get(path))
        assert conn.response().status == 200
    since = time.monotonic()
    assert conn.at_eof(util.scaled(FIRES)) and not conn.rd.reset
    not_early(since)
    assert len(front.lines()) == 2


def test_requests_in_time_keep_a_connection(patient):
    c = patient.connect()
    for _ in range(5):
        c.send(get(b"/f/a.txt"))
        assert c.response().status == 200
        time.sleep(0.6)  # less than keepalive, and together more
    c.close()


def test_a_request_in_progress_is_not_idle(front, conn):
    """The backend's time is not the client's."""
    front.release.clear()
    front.origin.take()
    conn.send(get(b"/slow"))
    assert not conn.at_eof(1.5)
    front.release.set()
    assert conn.response().body == b"GET /slow 0"


@pytest.mark.parametrize("data", [post(b"/p", b"Content-Length: 100", body=b"hello"),
                                  post(b"/p", b"Content-Length: 100"),
                                  chunked(b"5\r\nhello\r\n"), chunked(b"5\r\nhel"), chunked(b"")])
def test_a_body_that_stalls_is_408(front, conn, data):
    since = time.monotonic()
    conn.send(data)
    r = conn.response()
    assert r.status == 408 and r.wants_close() and conn.at_eof(5)
    not_early(since)
    assert not any(q.complete for q in front.settle())
    assert " 408 " in front.lines()[0]


def test_a_body_below_500_bytes_a_second_is_408(front, conn):
    since = time.monotonic()
    conn.send(post(b"/p", b"Content-Length: 100000"))
    stop = threading.Event()

    def drip():
        while not stop.wait(0.1) and conn.send(b"abc"):
            pass
    t = threading.Thread(target=drip)
    t.start()
    try:
        assert conn.response().status == 408
        not_early(since)
    finally:
        stop.set()
        t.join()
    assert not any(q.complete for q in front.settle())


def test_a_slow_but_steady_body_is_not_refused(patient):
    c = patient.connect()
    c.send(post(b"/p", b"Content-Length: 13000"))
    for _ in range(26):
        c.send(b"x" * 500)
        time.sleep(0.1)  # 5000 bytes/s, for longer than timeouts.body
    assert c.response().body == b"POST /p 13000"
    c.close()


def test_a_nearer_body_timeout_wins(front, conn):
    conn.send(post(b"/patient/", b"Content-Length: 10", body=b"hello"))
    assert not conn.at_eof(1.5)
    conn.send(b"hello")
    assert conn.response().body == b"POST /patient/ 10"


def test_time_the_backend_needs_to_take_a_body_is_not_the_clients(weir, raw_backend):
    go = threading.Event()

    def script(conn):
        conn.head()
        go.wait(20)
        conn.read(8 << 20)
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        conn.wait_close()
    b = raw_backend(script)
    w = weir('timeouts = { body = "1s"; }; sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; } );', B=b.addr)
    c = w.connect(timeout=20)
    sender = threading.Thread(target=c.send, args=(post(b"/p", b"Content-Length: %d" % (8 << 20),
                                                        body=b"x" * (8 << 20)),))
    sender.start()
    assert not c.at_eof(util.scaled(2.5))
    go.set()
    r = c.response()
    sender.join()
    assert r.body == b"ok"
    c.close()


@pytest.mark.parametrize("path", [b"/f/big", b"/big"])
def test_a_client_that_never_reads_is_cut_after_send(front, path):
    front.lines()
    c = front.connect(rcvbuf=4096)
    since = time.monotonic()
    c.send(get(path))
    front.w.wait_access('"GET %s HTTP/1.1"' % path.decode(), FIRES)
    not_early(since)
    got = 0
    try:
        while True:
            c.rd.fill(time.monotonic() + util.scaled(5))
            got, c.rd.buf = got + len(c.rd.buf), b""
    except wire.Closed:
        pass
    assert got < 32 << 20
    c.close()
    util.wait_for("the backend is let go", 5, lambda: not front.origin.open_dirty())
    front.lines()


def test_a_client_that_reads_slowly_is_not_cut(patient):
    c = patient.connect(rcvbuf=65536, timeout=20)
    c.send(get(b"/f/big"))
    end, got = time.monotonic() + 2.5, 0
    while time.monotonic() < end:
        got += len(c.s.recv(65536))
        time.sleep(0.02)
    while got < 32 << 20:
        n = len(c.s.recv(1 << 20))
        assert n, "cut after %d bytes" % got
        got += n
    c.close()
