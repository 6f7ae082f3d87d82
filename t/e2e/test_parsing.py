# SPDX-License-Identifier: MIT
"""Malformed, ambiguous and oversized requests (section A of the cases): what is refused, and that
nothing of it goes on.

One server for the whole file. "Refused" is harness.raw.Front.refused: a complete error answer with Content-Length and
Connection: close, the connection closed, nothing sent upstream, no later bytes parsed, one line in the access log."""
import re

import pytest
import wire
from harness import raw, util
from harness.raw import HOST, NEXT, chunked, get, post

CONF = """
timeouts = { header = "3s"; };
sites = (
  { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@";
    locations = (
      { match = "/files/"; root = "public"; },
      { match = "/both/"; root = "public"; proxy = "@ORIGIN@"; },
      { match = "/moved/"; redirect = "/elsewhere/"; },
      { match = "/no/"; respond = 403; },
      { match = "/denied/"; proxy = "@ORIGIN@"; deny = ( "0.0.0.0/0" ); },
      { match = "/ruled/"; proxy = "@ORIGIN@"; request_headers = { X-User = "weir"; X-Gone = ""; }; },
      { match = "/small/"; proxy = "@ORIGIN@"; limits = { body_size = "1k"; }; }
    ); },
  { listen = "127.0.0.1:@PORT@"; names = ( "other.test" ); respond = "the other site"; },
  { listen = "127.0.0.1:@PORTS@"; root = "public"; }
);
"""
FILES = {"public/files/a.css": "body {}\n", "public/both/a.css": "body {}\n", "public/a.css": "body {}\n"}
CH = b"5\r\nhello\r\n0\r\n\r\n"


@pytest.fixture(scope="module")
def front():
    f = raw.Front(CONF, FILES)
    yield f
    f.close()


def named(*inputs):
    return {repr(i[:60]): i for i in inputs}


def with_lines(*lines, **kw):
    return named(*(get(b"/p", ln, **kw) for ln in lines))


def test_what_is_not_refused(front):
    """The yardstick: the same server passes a plain request on, logs it once and keeps the connection."""
    front.lines()
    t = front.ask(get() + post(b"/q", b"Content-Length: 5", body=b"hello") + chunked(CH, b"/r"), "GET", "POST", "POST")
    assert t.statuses == [200, 200, 200] and not t.closed
    assert [(q.method, q.target, q.body) for q in t.requests] == [
        ("GET", "/p", b""), ("POST", "/q", b"hello"), ("POST", "/r", b"hello")]
    assert [ln.split('"')[1] for ln in front.lines()] == ["GET /p HTTP/1.1", "POST /q HTTP/1.1", "POST /r HTTP/1.1"]


# --- framing --------------------------------------------------------------------------------------------------------


def test_c001_transfer_encoding_beside_content_length(front):
    te, cl = b"Transfer-Encoding: chunked", b"Content-Length: %d"
    inputs = {}
    for n in (0, 4, 5, 15):
        for body in (b"0\r\n\r\n", CH):
            for a, b in ((te, cl % n), (cl % n, te), (te.lower(), cl % n), ((cl % n).upper(), te.swapcase()),
                         (b"tRANSFER-eNCODING:\tCHUNKED ", cl % n), (te, b"X: y\r\n" + cl % n)):
                inputs["%r %r %r" % (a, b, body)] = post(b"/p", a, b, body=body)
    front.refused(inputs)
    front.refused({"with a coding nobody knows": post(b"/p", cl % 4, b"Transfer-Encoding: cow", body=b"abcd"),
                   "with identity": post(b"/p", b"Transfer-Encoding: identity", cl % 4, body=b"abcd"),
                   "with an empty coding": post(b"/p", b"Transfer-Encoding:", cl % 4, body=b"abcd"),
                   "with a length that is none": post(b"/p", te, b"Content-Length: x", body=CH),
                   "on GET": get(b"/p", te, cl % 0, body=CH),
                   "nominated by Connection": post(b"/p", b"Connection: Content-Length", te, cl % 4, body=CH)},
                  (400, 501))


def test_c002_content_length_repeated_or_malformed(front):
    def lengths(*values, method=b"POST", version=b"HTTP/1.1"):
        lines = [b"Content-Length: " + v for v in values]
        return get(b"/p", *lines, method=method, version=version, body=b"hello")

    several = [(b"4", b"5"), (b"4", b"4"), (b"4, 4",), (b"5", b"4"), (b"0", b"5"), (b"5", b"5", b"5"), (b"4,5",),
               (b"5,",), (b",5",), (b"5 5",), (b"5\t5",), (b"5, 05",), (b"05", b"5"), (b"5", b"")]
    wrong = [b"", b"+5", b"-5", b"-0", b"0x5", b"5.0", b"5e0", b"5;", b'"5"', b"five", b"5a", b"a5", b"0b101", b"1_0",
             b"\xb2", b"\xd9\xa5", b"\xc2\xa05", b"5\x0b", b"18446744073709551616", b"18446744073709551621",
             b"9223372036854775808", b"9" * 40]
    inputs = {repr(v): lengths(*v) for v in several}
    inputs.update({repr(v): lengths(v) for v in wrong})
    inputs["two names"] = post(b"/p", b"Content-Length: 5", b"cONTENT-lENGTH: 4", body=b"hello")
    for method in (b"GET", b"HEAD", b"DELETE", b"PURGE"):
        inputs["twice with %r" % method] = lengths(b"5", b"4", method=method)
    inputs["twice on 1.0"] = lengths(b"5", b"5", version=b"HTTP/1.0")
    heads = {k: v for k, v in inputs.items() if "HEAD" in k}
    front.refused({k: v for k, v in inputs.items() if k not in heads}, (400, 413))
    for data in heads.values():  # a length in the answer to HEAD has no body behind it
        conn = front.connect()
        conn.send(data + NEXT)
        r = conn.response("HEAD")
        assert (r.status, r.wants_close()) == (400, True)
        conn.close()
    front.settle()


def test_c002_leading_zeroes_are_decimal(front):
    t = front.ask(post(b"/p", b"Content-Length: 010", body=b"0123456789") + get(b"/n"), "POST", "GET")
    assert t.statuses == [200, 200] and t.requests[0].body == b"0123456789"


def test_c004_only_chunked_is_a_coding(front):
    values = [b"xchunked", b"\x0bchunked", b"\x0cchunked", b'"chunked"', b"'chunked'", b"chunked, identity",
              b"identity",
              b"gzip", b"gzip, chunked", b"chunked, chunked", b"chunked, gzip", b"deflate", b"compress, chunked", b"",
              b"chunked;", b"chunked;q=1", b"chunked,", b",chunked", b"chunked chunked", b"chunke", b"chunkedd",
              b"chunk ed", b"\xa0chunked", b"chunked\xa0", b"chunked\x0b", b"chunked\0", b": chunked",
              b"chun\xc4\xb8ed",
              b"chun\xe2\x84\xaaed", b"trailers", b"identity, chunked", b"cow", b"0", b"*", b"chunked/1"]
    inputs = {repr(v): chunked(CH).replace(b": chunked", b": " + v) for v in values}
    for a, b in ((b"gzip", b"chunked"), (b"chunked", b"gzip"), (b"chunked", b"chunked"), (b"chunked", b""),
                 (b"", b"chunked"), (b"identity", b"chunked")):
        inputs["two lines %r %r" % (a, b)] = post(b"/p", b"Transfer-Encoding: " + a, b"Transfer-Encoding: " + b,
                                                  body=CH)
    front.refused(inputs, (400, 501))


@pytest.mark.parametrize("value", [b"chunked", b"chunked\t", b"\t chunked \t ", b"CHUNKED", b"cHuNkEd"])
def test_c004_chunked_itself_goes_on_in_weirs_own_words(front, value):
    t = front.ask(post(b"/p", b"transfer-ENCODING: " + value, body=CH) + get(b"/n"), "POST", "GET")
    assert t.statuses == [200, 200]
    assert t.requests[0].body == b"hello" and not t.requests[0].anomalies
    assert t.requests[0].all("transfer-encoding") in (["chunked"], [])


def test_c005_transfer_encoding_on_http_1_0(front):
    v = dict(version=b"HTTP/1.0")
    te = b"Transfer-Encoding: chunked"
    front.refused({
        "chunked": post(b"/p", te, body=b"0\r\n\r\n", **v),
        "with a length": post(b"/p", te, b"Content-Length: 3", body=b"0\r\n\r\n", **v),
        "kept alive": post(b"/p", te, b"Connection: keep-alive", body=CH, **v),
        "without Host": post(b"/p", te, body=CH, host=b"", **v),
        "on GET": get(b"/p", te, body=CH, **v),
    })
    front.refused({repr(c): post(b"/p", b"Transfer-Encoding: " + c, body=CH, **v)
                   for c in (b"identity", b"gzip", b"gzip, chunked", b"")}, (400, 501))


# --- chunks ---------------------------------------------------------------------------------------------------------


def chunk_lines(*lines):
    return {repr(ln[:40]): chunked(ln + b"\r\nZ\r\n0\r\n\r\n") for ln in lines}


BAD_SIZES = [b"0x1", b"+1", b"-1", b"1 ", b" 1", b"1_0", b"1zz", b"", b"fffffffffffffffff", b"g", b"1.", b"1,",
             b'"1"', b"\t1",
             b"1\t", b"1\0", b"\x0b1", b"1\xa0", b"\xef\xbc\x91", b"0X1", b"1h", b"#1", b"-0", b"0 1", b"\r1", b"1\r",
             b"10000000000000001", b"f" * 64, b"1" + b"0" * 16, b"8" + b"0" * 16]


def test_c006_chunk_sizes_that_are_none(front):
    front.refused(chunk_lines(*BAD_SIZES), (400, 413), started=True)


def test_c006_a_bad_size_after_good_chunks_cuts_the_request_upstream(front):
    front.refused({repr(ln[:40]): chunked(b"5\r\nhello\r\n" + ln + b"\r\nZ\r\n0\r\n\r\n") for ln in BAD_SIZES},
                  (400, 413),
                  started=True)


@pytest.mark.parametrize("line", [b"0x1", b"1 ", b"fffffffffffffffff", b"-1"])
def test_c006_a_request_already_streaming_upstream_is_cut_not_ended(raw_backend, weir, line):
    got = []

    def script(conn):
        conn.head()
        conn.read(5 + 5)  # "5" CRLF "hello" CRLF, in whatever chunks
        got.append("begun")
        conn.wait_close(10)
        got.append(conn.received)
    b = raw_backend(script)
    w = weir('sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; } );', B=b.addr)
    c = w.connect()
    c.send(chunked(b"5\r\nhello\r\n"))
    util.wait_for("the backend has the first chunk", 5, lambda: got)
    c.send(line + b"\r\nZ\r\n0\r\n\r\n" + NEXT)
    r = c.response()
    assert r.status in (400, 413) and r.wants_close() and c.at_eof(5)
    util.wait_for("the connection to the backend is closed", 5, lambda: len(got) == 2)
    assert b"0\r\n\r\n" not in got[1] and b"smuggled" not in got[1]
    c.close()
    assert len(w.access()) <= 1 and w.wait_access('" %d ' % r.status)


@pytest.mark.parametrize("size", [b"80000000", b"100000005", b"7fffffffffffffff", b"ffffffffffffffff",
                                  b"8000000000000000",
                                  b"1000000000"])
def test_c006_a_huge_chunk_is_never_taken_for_a_small_one(front, size):
    front.never_whole(chunked(size + b"\r\nhello\r\n0\r\n\r\n") + NEXT)


@pytest.mark.parametrize("body, expect", [
    (b"1\r\nZ\r\n0\r\n\r\n", b"Z"), (b"001\r\nZ\r\n000\r\n\r\n", b"Z"), (b"0\r\n\r\n", b""),
    (b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"), (b"a\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
    (b"1;a\r\nZ\r\n0\r\n\r\n", b"Z"), (b"1;a=b;c=d\r\nZ\r\n0;e=f\r\n\r\n", b"Z"),
    (b'1;a="b;c\\"d"\r\nZ\r\n0\r\n\r\n', b"Z"), (b"5\r\n\r\n\r\n0\r\n0\r\n\r\n", b"\r\n\r\n0"),
])
def test_c006_c007_well_formed_chunks_pass(front, body, expect):
    t = front.ask(chunked(body) + get(b"/n"), "POST", "GET")
    assert t.statuses == [200, 200]
    assert t.requests[0].body == expect and [q.target for q in t.requests] == ["/p", "/n"]


def test_c006_long_zero_padding_is_no_overflow(front):
    t = front.ask(chunked(b"000000000000000000001\r\nZ\r\n0\r\n\r\n"), "POST")
    assert t.statuses in ([200], [400])
    assert [q.body for q in t.requests if q.complete] == ([b"Z"] if t.statuses == [200] else [])


def test_c007_chunk_line_endings(front):
    front.refused(named(*map(chunked, (
        b"1\nZ\r\n0\r\n\r\n", b"1;a\nb\r\nZ\r\n0\r\n\r\n", b"1\r\nZXX0\r\n\r\n", b"1\rX", b"5\r\nhello0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n", b"5\r\nhello\r0\r\n\r\n", b"5\r\nhello\n\n0\r\n\r\n", b"5\r\nhelloX\r\n0\r\n\r\n",
        b"5\r\nhell\r\n0\r\n\r\n", b"5\r\nhello\r\n0\n\r\n", b"5\r\nhello\r\n0\r\n\n", b"5\r\nhello\r\n0\n\n",
        b"5\r\nhello\r\n0\r\n\rX", b"5\r\nhello\r\n0\r\r\n\r\n", b"5\r\nhello\r\n\r\n0\r\n\r\n",
        b"1;a\rb\r\nZ\r\n0\r\n\r\n",
        b"1;\nZ\r\n0\r\n\r\n", b"1;a\0b\r\nZ\r\n0\r\n\r\n", b"1;a=\x7f\r\nZ\r\n0\r\n\r\n", b"1\n\nZ\r\n0\r\n\r\n",
        b'1;a="b\r\nZ\r\n0\r\n\r\n"\r\n', b"2;\nxx\r\n4c\r\n", b"5\nhello\n0\n\n", b"5\r\nhello\r\nzz\r\n\r\n"))),
        (400, 413), started=True)


@pytest.mark.parametrize("line", [b"1;" + b"a" * (1 << 20), b"1;" + b"a=b;" * (1 << 18), b"0" * (1 << 20) + b"1"])
def test_c007_a_chunk_line_is_limited(front, line):
    front.refused({"1 MB": chunked(line + b"\r\nZ\r\n0\r\n\r\n")}, (400, 413, 431), started=True)


def test_c007_extensions_in_many_chunks_are_no_attack(front):
    """Signatures in a long upload: more than one head's worth in all, little beside the data."""
    chunk = b"3e8;signature=0123456789abcdef0123456789\r\n" + b"Z" * 1000 + b"\r\n"
    t = front.ask(chunked(chunk * 2000 + b"0\r\n\r\n"), "POST")
    assert t.statuses == [200] and t.requests[0].body == b"Z" * 2000000


def test_c007_extensions_are_not_copied(raw_backend, weir):
    def script(conn):
        conn.head()
        while not re.search(rb"\r\n0\r\n(.+\r\n)*\r\n$", conn.received):  # trailers go on
            conn.read(1)
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        conn.wait_close(5)
    b = raw_backend(script)
    w = weir('sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; } );', B=b.addr)
    c = w.connect()
    c.send(chunked(b"5;secret=1\r\nhello\r\n0;secret=2\r\nX-Trailer: 1\r\n\r\n"))
    assert c.response().status == 200
    c.close()
    assert b"secret" not in b.conns[0].received and b"hello" in b.conns[0].received


@pytest.mark.parametrize("framing", [b"Content-Length: 9", b"Transfer-Encoding: identity"])
def test_c008_trailer_fields_never_reach_the_head(front, framing):
    trailers = (framing, b"Host: evil", b"X-T: 1", b"X-Forwarded-For: 6.6.6.6", b"Connection: close",
                b"Authorization: Basic eDp5", b"Expect: 100-continue", b"Upgrade: websocket", b"Cookie: a=b", b"Trailer: X")
    t = front.ask(chunked(b"5\r\nhello\r\n0\r\n" + b"\r\n".join(trailers) + b"\r\n\r\n", b"/p", b"Trailer: X-T") +
                  post(b"/second", b"Content-Length: 3", body=b"abc"), "POST", "POST")
    assert t.statuses == [200, 200] and not t.closed
    first, second = t.requests
    assert (first.body, second.target, second.body) == (b"hello", "/second", b"abc")
    assert first.get("host") == "h.test"
    forbidden = {"content-length", "host", "x-forwarded-for", "connection", "authorization", "expect", "upgrade", "cookie",
                 "transfer-encoding", "trailer"}
    for name in {"x-t"} | forbidden - {"host", "x-forwarded-for", "connection", "transfer-encoding", "trailer"}:
        assert not first.has(name), name
    assert "6.6.6.6" not in (first.get("x-forwarded-for") or "")
    assert first.all("transfer-encoding") in (["chunked"], [])
    assert not forbidden & {n.lower() for n, _ in first.trailers}
    assert not second.trailers


def test_c008_conflicting_framing_in_trailers_confuses_nobody(front):
    """Dropped or refused; what follows is never read as something else than it is."""
    for lines in ((b"Content-Length: 9", b"Transfer-Encoding: chunked"), (b"Content-Length: 1", b"Content-Length: 2"),
                  (b"Content-Length: x",), (b"Transfer-Encoding: chunked", b"Transfer-Encoding: cow")):
        conn = front.connect()
        conn.send(chunked(b"5\r\nhello\r\n0\r\n" + b"\r\n".join(lines) + b"\r\n\r\n") + get(b"/next"))
        first = conn.response()
        assert first.status in (200, 400)
        if first.status == 200:
            assert conn.response().body == b"GET /next 0"
        else:
            assert conn.at_eof(5)
        conn.close()
        seen = [q.target for q in front.settle() if q.complete]
        assert seen == (["/p", "/next"] if first.status == 200 else [])


def test_c008_malformed_trailers(front):
    lines = (b"foo", b"X : 1", b": 1", b"X: a\rY: b", b"X: a\0b", b"X: a\r\n b", b" X: 1", b"X Y: 1", b"X: 1\nY: 2",
             b"X: \x01",
             b"X\t: 1", b"X(: 1", b"X: \x7f")
    front.refused({repr(ln): chunked(b"5\r\nhello\r\n0\r\n" + ln + b"\r\n\r\n") for ln in lines}, started=True)


@pytest.mark.parametrize("trailer", [b"X: " + b"v" * (1 << 20), b"".join(b"X-%d: v\r\n" % i for i in range(20000))[:-2],
                                     b"X" * (1 << 20) + b": v"])
def test_c008_oversized_trailers(front, trailer):
    front.refused({"trailer": chunked(b"5\r\nhello\r\n0\r\n" + trailer + b"\r\n\r\n")}, (400, 413, 431), started=True)


# --- lines and fields -----------------------------------------------------------------------------------------------


def test_c010_bare_cr(front):
    front.refused(named(
        b"GET /p HTTP/1.1\r\nHost: h\r\nX: a\rY: b\r\n\r\n",
        b"GET /p HTTP/1.1\r\nHost: h\r\nX-Abc: \rxTransfer-Encoding: chunked\r\n\r\n",
        b"GET /p HTTP/1.1\r\nHost: h\r\nX: y\r\n\rX",
        b"GET /p HTTP/1.1\r\nHost: h\r\n\r\r\n",
        b"GET /p HTTP/1.1\r\nHost: h\r\r\n\r\n",
        b"GET /p HTTP/1.1\r\r\nHost: h\r\n\r\n",
        b"GET /p HTTP/1.1\rHost: h\r\r",
        b"GET /p HTTP/1.1\r\nHost: h\rX: y\r\n\r\n",
        b"GET /p HTTP/1.1\r\nHost: h\r\nX\r: y\r\n\r\n",
        b"GET /p HTTP/1.1\r\nHost: h\r\n\rX: y\r\n\r\n",
        b"GET /p HTTP/1.1\r\nHost: h\r\nX:\ry\r\n\r\n",
        b"GET /p HTTP/1.1\r\nHost: h\r\nX: y\r\r\n\r\n",
        b"GET /p HTTP/1.1\r\nHost: h\r\nX: \r\r\n\r\n",
        b"GET\r/p HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /p\rHTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /p\r HTTP/1.1\r\nHost: h\r\n\r\n",
        b"POST /p HTTP/1.1\r\nHost: h\r\nX: a\rContent-Length: 5\r\nContent-Length: 0\r\n\r\n",
        b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\rX\r\n\r\nhello"))


def test_c010_c011_bare_lf(front):
    front.refused(named(
        b"GET /p HTTP/1.1\nHost: h\r\n\r\n",
        b"GET /p HTTP/1.1\nHost: h\n\n",
        b"GET /p HTTP/1.1\r\nHost: h\n\r\n",
        b"GET /p HTTP/1.1\r\nHost: h\r\nX: a\nY: b\r\n\r\n",
        b"GET /p HTTP/1.1\r\nHost: h\r\nX: a\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /p HTTP/1.1\r\nHost: h\r\n\n",
        b"GET /p HTTP/1.1\r\nHost: h\n\n",
        b"GET /p HTTP/1.1\r\n\nHost: h\r\n\r\n",
        b"GET /p\nHTTP/1.1\r\nHost: h\r\n\r\n"))


def test_c010_c013_control_bytes_in_a_field(front):
    controls = [bytes([c]) for c in range(0x20) if c not in (9, 10, 13)] + [b"\x7f"]
    front.refused({repr(c): get(b"/p", b"X: a" + c + b"b") for c in controls})
    front.refused({repr(c): get(b"/p", b"X" + c + b"Y: b") for c in controls + [b"\x80", b"\xff"]})


def test_c011_what_the_loose_grammar_takes(front):
    inputs = with_lines(b"Foo Bar: 1", b"X: \rY: b", b"X: a\r\n b", b"X: a\r\n\tb", b"X:\r\n b", b"X: a\r\n ",
                        b" X: a", b"\tX: a")
    inputs.update(named(
        b"GET /p HTTP/1.1\r\nHost : h\r\n\r\n", b"GET /p HTTP/1.1\r\nHost: h\r\n X: folded\r\n\r\n",
        b"GET /p HTTP/1.1\r\n Host: h\r\nHost: h\r\n\r\n", b"GET /x\r\n\r\n", b"GET /\x80 HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: h\r\n\r\n", b"GET /a#frag HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /p HTTP/1.1\r\nHost: h\r\n\rX", b"GET /p HTTP/1.1\nHost: h\r\n\r\n",
        post(b"/p", b"Content-Length: 9223372036854775808", body=b"x"),
        post(b"/p", b"Content-Length:\r\n 5", body=b"hello"),
        post(b"/p", b"Transfer-Encoding:\r\n chunked", body=CH),
        post(b"/p", b"X: y\r\n Content-Length: 5", body=b"hello"),
        get(b"/p", b"X: y\r\n \r\n" + NEXT)))
    front.refused(inputs, (400, 413, 501))
    front.refused({"two bytes after a chunk": chunked(b"5\r\nhelloXX0\r\n\r\n")}, started=True)


def test_c013_broken_field_lines(front):
    names = ["X;y", "X(y)", "\u041a\u043b\u044e\u0447", "X@y", "X/y", "X[1]", "X]", "X{", "X}", 'X"', "X\\y", "X=1",
             "X,y",
             "X?", "X<", "X>", "X y", "", "X\u00a0", "\u00e9"]
    inputs = with_lines(b"X : a", b"X\t: a", b"XYZ", b": a", b":", b"X :", b"Content-Length : 5",
                        b"Transfer-Encoding : chunked",
                        b"Transfer-Encoding\t: chunked", b" ", b"X", b"GET /smuggled HTTP/1.1")
    inputs.update({n: get(b"/p", n.encode() + b": 1") for n in names})
    inputs.update(named(get(host=b"Host : h.test\r\n"), get(host=b"Host\t: h.test\r\n"), get(host=b"Host h.test\r\n")))
    front.refused(inputs)


@pytest.mark.parametrize("line", [b"!#$%&'*+-.^_`|~09Az: v", b"X:", b"X:\t", b"X: \xe9\xff", b"X: a\tb", b"X:a:b",
                                  b"X_Y: 1"])
def test_c013_unusual_but_legal_fields_pass(front, line):
    t = front.ask(get(b"/p", line))
    name, _, value = line.decode("latin-1").partition(":")
    assert t.statuses == [200] and t.requests[0].all(name) == [value.strip(" \t")]


def test_a_name_with_underscores_is_no_second_spelling_of_what_weir_says(front):
    """CGI, WSGI, Rack and PHP read '-' and '_' as one: what weir replaces must not come in the other spelling."""
    twins = (b"X_Forwarded_For: 6.6.6.6", b"X-Forwarded_For: 6.6.6.6", b"x_forwarded-proto: https", b"X_FORWARDED_PREFIX: /x",
             b"X_Real_IP: 6.6.6.6", b"X_Request_ID: 1", b"Content_Length: 5", b"Transfer_Encoding: chunked",
             b"X_Accel_Mapping: /=/", b"Proxy_Authorization: x", b"Proxy: http://evil.test/")
    t = front.ask(get(b"/p", *twins, b"X_Own: kept", b"Content_Type: kept"))
    q = t.requests[0]
    assert t.statuses == [200] and q.all("x_own") == ["kept"] and q.all("content_type") == ["kept"]
    names = [n.lower().replace("_", "-") for n, _ in q.headers]
    for twin in twins:
        name = twin.split(b":")[0].decode().lower().replace("_", "-")
        assert names.count(name) == (1 if q.has(name) else 0), name
    assert not q.has("proxy") and "6.6.6.6" not in str(q.headers)
    t = front.ask(chunked(b"0\r\nX_Real_IP: 6.6.6.6\r\nX_User: root\r\nX-Kept: 1\r\n\r\n", b"/ruled/x", b"X_User: root",
                          b"X-User: root", b"x_GONE: 1"), "POST")
    q = t.requests[0]
    assert q.all("x-user") == ["weir"] and q.trailers == [("X-Kept", "1")]
    assert not any(q.has(n) for n in ("x_user", "x_gone", "x-gone"))


def test_c015_host_missing_repeated_or_malformed(front):
    values = [b"a/b", b"a b", b"a@b", b"[::1", b"a:99999", b"", b" ", b"a:65536", b"a:b", b"a:-1", b"a:+1",
              b"a:80:80", b"::1",
              b"http://h.test", b"a?b", b"a#b", b"a\\b", b"a, b", b'"a"', b"<a>", b"a\tb", b"a%zz", b"a%",
              b"a%4",
              b"[::1]x", b"[::1]:x", b"[::1]80", b"[zz]", b"[]", b"[::1]]", b"[[::1]]", b":80", b"a\x80",
              b"\xd0\xba.test",
              b"a{b}", b"a|b", b"a^b", b"a`b", b"u:p@h.test", b"a:0x50", b"a:80 ,b"]
    inputs = {repr(v): get(host=b"Host: " + v + b"\r\n") for v in values}
    for version in (b"HTTP/1.1", b"HTTP/1.0"):
        for two in (b"Host: h.test\r\nHost: h.test\r\n", b"Host: h.test\r\nHost: other.test\r\n",
                    b"Host: h\r\nhOST: x\r\n",
                    b"Host: h\r\nX: y\r\nHost:\r\n"):
            inputs["%r %r" % (two, version)] = get(host=two, version=version)
    inputs["none"] = get(host=b"")
    inputs["none, 1.2"] = get(host=b"", version=b"HTTP/1.2")
    inputs["malformed on 1.0"] = get(host=b"Host: a/b\r\n", version=b"HTTP/1.0")
    inputs["none, absolute-form"] = get(b"http://h.test/p", host=b"")
    inputs["two, absolute-form"] = get(b"http://h.test/p", host=HOST + HOST)
    front.refused(inputs)


@pytest.mark.parametrize("value", [b"h.test", b"h.test:80", b"h.test:", b"[::1]", b"[::1]:8080", b"1.2.3.4:5", b"a_b",
                                   b"H.TEST",
                                   b"xn--9ca.test", b"h.test.", b"a-b.c~d", b"localhost:65535", b"\t h.test \t"])
def test_c015_legal_hosts_pass_unchanged(front, value):
    t = front.ask(get(host=b"Host: " + value + b"\r\n"))
    assert t.statuses == [200] and t.requests[0].all("host") == [value.decode().strip(" \t")]


def test_c015_a_dot_at_the_end_of_a_host_is_the_same_name(front):
    for value in (b"other.test.", b"OTHER.Test.:80"):
        t = front.ask(get(host=b"Host: " + value + b"\r\n"))
        assert (t.statuses, t.responses[0].body) == ([200], b"the other site") and not t.requests
    assert front.ask(get(host=b"Host: .\r\n")).statuses == [200]


def test_c015_http_1_0_without_host_goes_to_the_default_site(front):
    t = front.ask(get(host=b"", version=b"HTTP/1.0"), eof=2)
    assert t.statuses == [200] and t.closed and len(t.requests) == 1
    t = front.ask(get(b"/p", host=b"Host: other.test\r\n", version=b"HTTP/1.0"), eof=2)
    assert t.responses[0].body == b"the other site" and not t.requests


# --- versions, methods, empty lines ---------------------------------------------------------------------------------


def line(text):
    return text + b"\r\nHost: h.test\r\n\r\n"


def test_c017_versions_that_are_none(front):
    malformed = [b"GET /p http/1.1", b"GET /p HTTP/1", b"GET /p HTTP/01.1", b"GET /p HTTP/1.1x", b"GET /p HTTP/1.",
                 b"GET /p HTTP/.1",
                 b"GET /p HTTP/1.10", b"GET /p HTTP/11.1", b"GET /p HTTP/ 1.1", b"GET /p HTTP/1.1 ",
                 b"GET /p HTTP/1.1\t",
                 b"GET /p HTTP 1.1", b"GET /p HTTP/1,1", b"GET /p HTTPS/1.1", b"GET /p HTTP/+1.1", b"GET /p HTTP/-1.1",
                 b"GET /p HTTP/1.-1", b"GET /p HTTP/1.1 HTTP/1.1", b"GET /p XHTTP/1.1", b"GET /p HTTP/", b"GET /p HTTP",
                 b"GET /p Http/1.1", b"GET /p HTTP/a.1", b"GET /p HTTP/1.a", b"GET /p HTTP/1.1\0", b"GET /p  HTTP/1.1",
                 b"GET  /p HTTP/1.1", b" GET /p HTTP/1.1", b"GET\t/p HTTP/1.1", b"GET /p\tHTTP/1.1",
                 b"GET /p x HTTP/1.1",
                 b"GET /p ICAP/1.0", b"GET HTTP/1.1", b"GET", b"GET ", b"\0GET /p HTTP/1.1", b"GET /p", b"GET /p "]
    front.refused({repr(m): line(m) for m in malformed}, (400, 501, 505))
    front.refused(named(b"GET /p\r\n\r\n", b"GET /p\r\n", b"GET /\r\n", b"GET /p \r\n\r\n"))


def test_c017_other_major_versions(front):
    front.refused({v.decode(): line(b"GET /p " + v) for v in (b"HTTP/2.0", b"HTTP/3.0", b"HTTP/0.9", b"HTTP/9.9",
                                                              b"HTTP/0.0")},
                  (400, 505))
    front.refused({"preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"}, (400, 505))


@pytest.mark.parametrize("minor", range(1, 10))
def test_c017_higher_minor_versions_are_1_1(front, minor):
    t = front.ask(get(version=b"HTTP/1.%d" % minor) + get(b"/n"), "GET", "GET")
    assert t.statuses == [200, 200] and [q.minor for q in t.requests] == [1, 1]
    assert t.responses[0].version == 11


def test_c020_an_empty_line_or_two_before_a_request(front):
    for before in (b"\r\n", b"\r\n\r\n"):
        t = front.ask(before + get())
        assert t.statuses == [200] and len(t.requests) == 1
    t = front.ask(post(b"/p", b"Content-Length: 5", body=b"hello\r\n") + get(b"/n"), "POST", "GET")
    assert t.statuses == [200, 200] and [q.body for q in t.requests] == [b"hello", b""]


def test_c020_a_bare_lf_before_a_request_is_skipped_or_refused(front):
    t = front.ask(b"\n" + get(), eof=1)
    assert (t.statuses, t.closed) in (([200], False), ([400], True))


@pytest.mark.parametrize("blank", [b"\r\n", b"\n", b"\r"])
def test_c020_endless_empty_lines_end_in_a_close(front, blank):
    conn = front.connect()
    conn.send(blank * 100000 + get(b"/after"))
    try:
        assert conn.response().status in (400, 408, 431)
        assert conn.at_eof(5)
    except wire.Closed:
        pass
    conn.close()
    assert not front.settle()


def test_c021_methods_are_sent_on_as_they_are(front):
    for m in (b"PURGE", b"PROPFIND", b"get", b"gET", b"FROB", b"M-SEARCH", b"!#$%&'*+-.^_`|~09Az", b"G", b"LOCK",
              b"QUERY", b"Post"):
        t = front.ask(get(method=m) + get(b"/n"), "GET", "GET")
        if t.statuses[0] in (400,
                             501):  # allowed for a method that the parser does not know; the connection must end then
            assert m not in (b"PURGE", b"PROPFIND", b"get") or t.closed
            continue
        assert t.statuses == [200, 200], m
        assert [q.method for q in t.requests] == [m.decode(), "GET"]


def test_c021_methods_that_are_none(front):
    front.refused({repr(m): line(m) for m in (
        b"G\0T /p HTTP/1.1", b"GET/p HTTP/1.1", b"GE(T /p HTTP/1.1", b"GET: /p HTTP/1.1", b"{GET} /p HTTP/1.1",
        b'"GET" /p HTTP/1.1',
        b"G\x80T /p HTTP/1.1", b"GET, /p HTTP/1.1", b"/p HTTP/1.1", b"GET@ /p HTTP/1.1", b"[ /p HTTP/1.1",
        b"G=T /p HTTP/1.1",
        b"<a> /p HTTP/1.1", b"GE\\T /p HTTP/1.1", b"HTTP/1.1 200 OK")}, (400, 501, 505))
    front.refused({"5000 bytes": get(method=b"G" * 5000), "1 MB": get(method=b"G" * (1 << 20))}, (400, 414, 431, 501))


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"DELETE", b"get", b"PATCH", b"PURGE", b"PROPFIND"])
def test_c021_a_static_location_allows_get_and_head(front, method):
    t = front.ask(get(b"/files/a.css", b"Content-Length: 0", method=method))
    assert t.statuses in ([405], [501])
    assert sorted(t.responses[0].tokens("allow")) == ["get", "head"]
    assert b"body {}" not in t.responses[0].body and not t.requests


@pytest.mark.parametrize("method", [b"POST", b"get", b"PURGE"])
def test_c021_a_file_does_not_answer_other_methods_where_a_backend_can(front, method):
    t = front.ask(get(b"/both/a.css", b"Content-Length: 0", method=method))
    assert t.statuses == [200] and [(q.method, q.target) for q in t.requests] == [(method.decode(), "/both/a.css")]
    assert front.ask(get(b"/both/a.css")).responses[0].body == b"body {}\n"


# --- limits ---------------------------------------------------------------------------------------------------------


def test_c022_too_large_lines_and_heads(front):
    front.refused({"20 kB target": get(b"/" + b"a" * 20480), "20 kB query": get(b"/p?" + b"a" * 20480),
                   "1 MB target": get(b"/" + b"a" * (1 << 20)),
                   "20 kB absolute-form": get(b"http://" + b"h" * 20480 + b"/")}, (414,))
    front.refused({
        "one 40 kB header": get(b"/p", b"X: " + b"a" * 40960),
        "a 40 kB name": get(b"/p", b"X" * 40960 + b": a"),
        "200 headers of 10 bytes": get(b"/p", *(b"X-%03d: abcd" % i for i in range(200))),
        "129 headers": get(b"/p", *(b"X: y" for _ in range(128))),
        "100,000 one-byte headers": get(b"/p", *(b"a:" for _ in range(100000))),
        "64 kB of Cookie": get(b"/p", *(b"Cookie: c%03d=%s" % (i, b"v" * 640) for i in range(100))),
        "never finished, too large": b"GET /p HTTP/1.1\r\nHost: h\r\n" + b"X-Y: " + b"z" * 100000,
        "one line without a colon": get(b"/p", b"X" * 100000),
        "1 MB": get(b"/p", b"X: " + b"a" * (1 << 20)),
    }, (431,))


def test_c022_what_browsers_send_passes(front):
    t = front.ask(get(b"/p", b"Cookie: " + b"a" * 16384))
    assert t.statuses == [200] and len(t.requests[0].get("cookie")) == 16384
    t = front.ask(get(b"/p", *(b"Cookie: c%d=%s" % (i, b"v" * 1000) for i in range(20))))
    assert t.statuses == [200]
    t = front.ask(get(b"/p", *(b"X-%d: y" % i for i in range(127))))  # and Host: 128
    assert t.statuses == [200] and all(t.requests[0].get("x-%d" % i) == "y" for i in range(127))
    t = front.ask(get(b"/" + b"a" * 16000))
    assert t.statuses == [200] and len(t.requests[0].target) == 16001


def test_c022_an_unfinished_head_ends_with_the_time_for_heads(front):
    conn = front.connect(timeout=10)
    conn.send(b"GET /p HTTP/1.1\r\nHost: h.test\r\nX: ")
    r = conn.response(timeout=util.scaled(10))
    assert r.status == 408 and r.wants_close() and conn.at_eof(5)
    conn.close()
    assert not front.settle()


def test_c022_unfinished_heads_hold_no_more_than_their_limit(front):
    if util.SCALE != 1:
        pytest.skip("memory is only measured on a plain build")
    pids = front.w.tree()
    before = util.anon_bytes(pids)
    conns = [front.connect() for _ in range(100)]
    for c in conns:
        c.send(b"GET /p HTTP/1.1\r\nHost: h.test\r\nX: " + b"z" * 30000)
    front.lines()
    grown = util.anon_bytes(pids) - before
    for c in conns:
        c.close()
    front.settle()
    assert grown < 100 * 96 * 1024, "%d bytes for each unfinished head of 30 kB" % (grown // 100)


# --- bodies nobody reads --------------------------------------------------------------------------------------------

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


def next_after(front, data, statuses):
    """Sends a request whose body looks like another, then a true next one: answered, or the connection is closed. → lines"""
    conn = front.connect()
    conn.send(data)
    assert conn.response().status in statuses, data[:60]
    conn.send(get(b"/next"))
    try:
        second = conn.response()
        assert (second.status, second.body) == (200, b"GET /next 0"), data[:60]
    except wire.Closed:
        second = None
    conn.close()
    assert [q.target for q in front.settle()] == (["/next"] if second else []), data[:60]
    return 2 if second else 1


@pytest.mark.parametrize("path, status", [(b"/files/a.css", 200), (b"/files/none", 404), (b"/both/a.css", 200),
                                          (b"/moved/x", 301), (b"/no/x", 403), (b"/denied/x", 403)])
def test_c025_the_body_of_a_request_that_needs_none_is_no_request(front, path, status):
    front.lines()
    n = 0
    for body in (SMUGGLED, SMUGGLED * 20000):
        length = b"Content-Length: %d" % len(body)
        n += next_after(front, get(path, length, body=body), (status,))
        n += next_after(front, get(path, length, b"Expect: 100-continue", body=body), (status,))
        n += next_after(front, get(path, b"Transfer-Encoding: chunked", body=raw.chunks(body, 4096)), (status,))
    assert len(front.lines()) == n


def test_c025_neither_is_the_body_of_a_refused_method(front):
    front.lines()
    n = 0
    for method, path in ((b"POST", b"/files/a.css"), (b"DELETE", b"/files/a.css"), (b"POST", b"/moved/x"), (b"PUT", b"/no/x"),
                         (b"TRACE", b"/p"), (b"OPTIONS", b"/files/a.css")):
        length = b"Content-Length: %d" % len(SMUGGLED)
        n += next_after(front, get(path, length, method=method, body=SMUGGLED), (200, 204, 308, 403, 405))
    assert len(front.lines()) == n


def test_c025_a_body_over_the_limit(front):
    body = SMUGGLED * 100
    front.refused({"sized": post(b"/small/x", b"Content-Length: %d" % len(body), body=body)}, (413,))
    front.refused({"chunked": chunked(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), b"/small/x"),
                   "many chunks": chunked(b"".join(b"%x\r\n%s\r\n" % (len(SMUGGLED),
                                                                      SMUGGLED) for _ in range(100)) + b"0\r\n\r\n",
                                          b"/small/x")}, (413,), started=True)


# --- TRACE, CONNECT, OPTIONS * --------------------------------------------------------------------------------------


def test_c027_trace(front):
    for path in (b"/p", b"/files/a.css"):
        t = front.ask(get(path, b"Cookie: secret=1", method=b"TRACE") + get(b"/n"), "TRACE", "GET")
        assert t.statuses == [405, 200] and t.responses[0].has("allow")
        assert b"secret" not in t.responses[0].body
        assert [q.target for q in t.requests] == ["/n"]


def test_c027_connect_is_refused_and_what_follows_is_not_read(front):
    tunnel = b"\x16\x03\x01\x02\0" + NEXT
    front.refused({
        "authority": b"CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n" + tunnel,
        "path": b"CONNECT /p HTTP/1.1\r\nHost: h\r\n\r\n" + tunnel,
        "with a length": b"CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\nContent-Length: 5\r\n\r\nhello",
        "chunked": b"CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\nTransfer-Encoding: chunked\r\n\r\n" + CH,
        "1.0": b"CONNECT h:80 HTTP/1.0\r\n\r\n",
        "absolute": b"CONNECT http://h:80/ HTTP/1.1\r\nHost: h:80\r\n\r\n",
        "no port": b"CONNECT h HTTP/1.1\r\nHost: h\r\n\r\n",
        "star": b"CONNECT * HTTP/1.1\r\nHost: h\r\n\r\n",
    }, (400, 405))


def test_c027_options_star(front):
    t = front.ask(get(b"*", method=b"OPTIONS") + get(b"/n"), "OPTIONS", "GET")
    assert t.statuses[0] in (200, 204) and t.statuses[1] == 200
    assert [q.target for q in t.requests] in (["*", "/n"], ["/n"])
    r = front.w.request("OPTIONS", "*", port=front.w.ports["PORTS"])
    assert r.status in (200, 204) and "get" in r.tokens("allow")
    front.refused({m.decode(): get(b"*", method=m) for m in (b"GET", b"HEADX", b"POST", b"DELETE")})
    front.refused(named(get(b"*/", method=b"OPTIONS"), get(b"*?x", method=b"OPTIONS"), get(b"**", method=b"OPTIONS")))


def test_c027_max_forwards(front):
    t = front.ask(get(b"/p", b"Max-Forwards: 0", method=b"OPTIONS"))
    assert t.statuses[0] in (200, 204) and not t.requests
    t = front.ask(get(b"/p", b"Max-Forwards: 5", method=b"OPTIONS"))
    assert t.statuses == [200] and t.requests[0].all("max-forwards") == ["4"]
    t = front.ask(get(b"/p", b"Max-Forwards: 0"))
    assert t.statuses == [200] and len(t.requests) == 1
    for odd in (b"x", b"-1", b"", b"99999999999999999999999", b"0, 1"):
        t = front.ask(get(b"/p", b"Max-Forwards: " + odd, method=b"OPTIONS"), eof=0)
        assert t.statuses[0] in (200, 204, 400)


@pytest.mark.parametrize("target", [b"p", b"p/q", b"h.test", b"h.test:80", b"?x", b"ftp://h.test/p", b"http:/p",
                                    b"http:p", b"://h/p",
                                    b"http://", b"http:///p", b"http://u@h.test/p", b"http://h.test:a/p",
                                    b"http://h.test:99999/p",
                                    b"http://[::1/p", b"http://h te/p", b"\\p", b";p", b"javascript:x",
                                    b"file:///etc/passwd"])
def test_c016_targets_of_no_form(front, target):
    front.refused({repr(target): get(target)})


# --- other protocols ------------------------------------------------------------------------------------------------


def test_c143_traffic_of_another_protocol_is_refused_at_once(front):
    front.lines()
    hello = bytes.fromhex("16030100a5010000a10303") + b"A" * 160
    inputs = {
        "TLS": hello, "half a TLS hello": hello[:5], "PROXY v1": b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n" + get(),
        "PROXY v2": b"\r\n\r\n\0\r\nQUIT\n!\x11\0\x0c" + b"\x7f\0\0\1" * 2 + b"\0\1\0\2" + get(),
        "appliance": b"GET /\r\n\r\n",
        "SSH": b"SSH-2.0-OpenSSH_9.2\r\n", "RDP": bytes.fromhex("0300002f2ae00000000000") + b"Cookie: mstshash=a\r\n",
        "SMB": b"\0\0\0\x85\xffSMBr", "zeroes": b"\0" * 100, "all bytes": bytes(range(128, 256)),
        "redis": b"*1\r\n$4\r\nPING\r\n",
        "smtp": b"EHLO x.test\r\n", "an answer": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "json": b'{"a": 1}\n',
        "h2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "irc": b"NICK x\r\n", "memcached": b"stats\r\n",
        "mqtt": b"\x10\x10\0\4MQTT\4\2",
    }
    slow = []
    for name, data in inputs.items():
        conn = front.connect()
        conn.send(data)
        try:
            r = conn.response(timeout=util.scaled(1))
            assert r.status in (400, 405, 501, 505), name
            assert conn.at_eof(util.scaled(1)), name
        except wire.Closed:
            pass
        except wire.Timeout:
            slow.append(name)
        conn.close()
    assert not slow, "left to wait for a timeout: %s" % slow
    assert not front.settle()
    lines = front.lines()
    assert len(lines) <= len(inputs) and not re.search(r"[^\x20-\x7e]", "".join(lines))


def test_c143_connections_that_say_nothing_leave_no_line(front):
    front.lines()
    for _ in range(20):
        front.connect().close()
        front.connect().close(reset=True)
    assert front.lines() == []


def test_nothing_unprintable_reaches_a_log(front):
    front.refused(named(get(b"/\x1b[2J"), get(b"/p", b"X\x1b: 1"), b"\x1b[2J /p HTTP/1.1\r\n\r\n",
                        get(host=b"Host: \x1b[2J\r\n")))
    t = front.ask(get(b"/p", b'User-Agent: a"b\\c \xe9', b"Referer: http://x/\xff\xfe"))
    assert t.statuses == [200]
    text = "".join(front.lines()) + front.w.errors().replace("\n", "")
    assert not re.search(r"[^\x20-\x7e\t]", text), repr(re.findall(r"[^\x20-\x7e\t]+", text))
