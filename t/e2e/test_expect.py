# SPDX-License-Identifier: MIT
"""Expect: 100-continue (C075): nobody is left waiting, at most one 100, none after a final status, none to HTTP/1.0."""
import pytest
import wire
from harness import raw, util
from harness.backends import serve
from harness.raw import get, post

CONF = """
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@";
            locations = ( { match = "/f/"; root = "public"; },
                          { match = "/small/"; proxy = "@ORIGIN@"; limits = { body_size = "1k"; }; },
                          { match = "/no/"; respond = 403; } ); } );
"""
BODY = b"0123456789abcdef" * 65536
EXPECT = b"Expect: 100-continue"
REFUSE = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\nno!\n"


@pytest.fixture(scope="module")
def front():
    f = raw.Front(CONF, {"public/f/a.txt": "hello\n"})
    yield f
    f.close()


def head(path=b"/p", size=len(BODY), *lines, **kw):
    return post(path, b"Content-Length: %d" % size, EXPECT, *lines, **kw)


def test_c075_the_client_waits_for_100_and_gets_exactly_one(front):
    conn = front.connect(timeout=20)
    for _ in range(3):
        conn.send(head())
        assert conn.head().status == 100
        conn.send(BODY)
        r = conn.response()
        assert (r.status, r.body, r.interim) == (200, b"POST /p %d" % len(BODY), [])
    conn.close()
    assert all(q.complete for q in front.settle())


def test_c075_chunked(front):
    conn = front.connect()
    conn.send(post(b"/p", b"Transfer-Encoding: chunked", EXPECT))
    assert conn.head().status == 100
    conn.send(b"5\r\nhello\r\n0\r\n\r\n" + get(b"/next"))
    assert (conn.response().body, conn.response().body) == (b"POST /p 5", b"GET /next 0")
    conn.close()
    front.settle()


@pytest.mark.parametrize("spelling", [b"Expect: 100-Continue", b"EXPECT: 100-CONTINUE", b"expect:100-continue",
                                      b"Expect: \t100-continue "])
def test_c075_the_expectation_has_no_case(front, spelling):
    conn = front.connect()
    conn.send(post(b"/p", b"Content-Length: 5", spelling))
    assert conn.head().status == 100
    conn.send(b"hello")
    assert conn.response().body == b"POST /p 5"
    conn.close()
    front.settle()


@pytest.mark.parametrize("answer",
                         [REFUSE, b"HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"])
def test_c075_b_a_final_status_before_the_body(raw_backend, weir, answer):
    b = raw_backend(serve(answer, then="stall"))
    w = weir('sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; } );', B=b.addr)
    conn = w.connect()
    conn.send(head())
    statuses = []
    while not statuses or statuses[-1] < 200:
        r = conn.body(conn.head())
        statuses.append(r.status)
    assert statuses in ([100, int(answer[9:12])], [int(answer[9:12])])
    assert r.wants_close() or statuses[0] == 100  # else nobody could tell the body from the next request
    conn.close()


def test_c075_c_the_backend_never_says_100(raw_backend, weir):
    def script(conn):
        conn.head()
        conn.read(5)
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        conn.wait_close()
    b = raw_backend(script)
    w = weir('sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; } );', B=b.addr)
    conn = w.connect()
    conn.send(head(size=5))
    assert conn.head().status == 100
    conn.send(b"hello")
    assert conn.response().body == b"ok"
    conn.close()


def test_c075_a_the_backends_own_100_is_not_a_second_one(raw_backend, weir):
    def script(conn):
        conn.head()
        conn.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        conn.read(5)
        conn.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        conn.wait_close()
    b = raw_backend(script)
    w = weir('sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; } );', B=b.addr)
    conn = w.connect()
    conn.send(head(size=5))
    assert conn.head().status == 100
    conn.send(b"hello")
    r = conn.response()
    assert r.body == b"ok" and r.interim == []
    conn.close()


def test_c075_d_http_1_0_gets_no_100(front):
    conn = front.connect()
    conn.send(head(size=5, version=b"HTTP/1.0"))
    assert not conn.at_eof(0.3) and not conn.rd.buf
    conn.send(b"hello")
    r = conn.response()
    assert (r.status, r.interim) == (200, [])
    conn.close()
    front.settle()


def test_c075_e_a_client_that_does_not_wait(front):
    conn = front.connect(timeout=20)
    conn.send((head() + BODY) * 3 + get(b"/next"))
    for _ in range(3):
        r = conn.response()
        assert r.body == b"POST /p %d" % len(BODY) and len(r.interim) <= 1
    assert conn.response().body == b"GET /next 0"
    conn.close()
    front.settle()


def test_c075_e_a_body_in_the_same_write_needs_no_100(front):
    t = front.ask(head(size=5, body=b"hello") + get(b"/next"), "POST", "GET")
    assert t.statuses == [200, 200] and len(t.responses[0].interim) <= 1
    assert [q.target for q in t.requests] == ["/p", "/next"]


@pytest.mark.parametrize("value", [b"foo", b"101-continue", b"100-continue-not", b"100", b"y 100-continue", b"bar=1"])
def test_c075_f_other_expectations(front, value):
    t = front.ask(post(b"/p", b"Content-Length: 5", b"Expect: " + value, body=b"hello") + get(b"/smuggled"), "POST",
                  eof=0.2)
    assert t.statuses in ([200], [417], [400])
    assert not t.responses[0].interim or t.statuses == [200]
    if t.statuses != [200]:
        assert t.closed or t.rest  # either closed, or the next request was answered
        assert not any(q.target == "/p" for q in t.requests)


def test_c075_a_request_without_a_body_needs_no_100(front):
    for lines in ((EXPECT,), (EXPECT, b"Content-Length: 0"), (b"Expect:",)):  # an empty list expects nothing
        t = front.ask(get(b"/p", *lines) + get(b"/n"), "GET", "GET")
        assert t.statuses == [200, 200] and not t.responses[0].interim


def test_c075_g_a_retry_to_a_second_server_sends_no_second_100(dead, raw_backend, weir):
    def script(conn):
        while conn.head():
            conn.read(5)
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    b = raw_backend(script)
    w = weir("""upstreams = { u = { servers = ( "@DEAD@", "@B@" ); }; };
                sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "u"; } );""", DEAD=dead.addr, B=b.addr)
    for _ in range(4):
        conn = w.connect()
        conn.send(head(size=5))
        assert conn.head().status == 100
        conn.send(b"hello")
        r = conn.response()
        assert (r.status, r.body, r.interim) == (200, b"ok", [])
        conn.close()


@pytest.mark.parametrize("path, status", [(b"/small/x", 413), (b"/no/x", 403), (b"/f/a.txt", 405)])
def test_c075_c091_weirs_own_refusal_comes_instead_of_100(front, path, status):
    conn = front.connect()
    conn.send(head(path))
    r = conn.response()
    assert (r.status, r.interim) == (status, [])
    assert r.wants_close() and conn.at_eof(5)
    conn.close()
    assert not front.settle()


def test_c075_an_unreachable_backend(dead, weir):
    w = weir('sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@DEAD@"; } );', DEAD=dead.addr)
    conn = w.connect()
    conn.send(head())
    r = conn.response()
    assert r.status == 502
    conn.close()


def test_c075_the_client_leaves_instead_of_sending_the_body(front):
    front.lines()
    for reset in (False, True):
        conn = front.connect()
        conn.send(head())
        assert conn.head().status == 100
        conn.close(reset=reset)
        util.wait_for("the backend's connection is cut", 5, lambda: not front.origin.open_dirty())
    assert not any(q.complete for q in front.origin.take())
    assert len(front.lines()) == 2


def test_c075_a_client_that_takes_long_to_believe_it(front):
    """RFC 9110 §10.1.1: it may send the body after a while without having seen the 100."""
    conn = front.connect()
    conn.send(head(size=5))
    assert conn.head().status == 100
    assert not conn.at_eof(0.5)
    conn.send(b"hel")
    assert not conn.at_eof(0.1)
    conn.send(b"lo")
    try:
        assert conn.response().body == b"POST /p 5"
    except wire.Closed as e:
        pytest.fail("closed: %s" % e)
    conn.close()
    front.settle()
