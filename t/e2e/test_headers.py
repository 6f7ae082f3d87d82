# SPDX-License-Identifier: MIT
"""Header rules: request_headers, response_headers and add_response_headers on every kind of answer."""
import gzip
import re

import pytest
from harness import raw
from harness.backends import serve

CONF = """
request_headers = { X-Top = "top"; X-Both = "top"; };
response_headers = { X-Top = "top"; X-Both = "top"; };
sites = (
  { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@"; root = "www"; gzip = true;
    request_headers = { x-both = "site"; X-Two = ( "one", "$request_method $uri" ); };
    response_headers = { x-both = "site"; X-Two = ( "one", "two" ); Server = ""; X-Status = "$status"; };
    add_response_headers = { Link = "<a>"; };
    locations = (
      { match = "/own"; respond = "ok"; },
      { match = "/gone"; redirect = "/own"; },
      { match = "/denied"; respond = "no"; deny = ( "0.0.0.0/0" ); },
      { match = "/files/"; root = "www"; expires = "1d";
        response_headers = { Cache-Control = "private"; ETag = ""; Content-Type = "text/x-own"; Server = "none"; }; },
      { match = "/app/"; proxy = "@ORIGIN@";
        request_headers = { Host = "inner.test:81"; Cookie = ""; X-Both = ""; X-Forwarded-For = "$http_x_who"; };
        response_headers = { Set-Cookie = ( "a=1", "b=2" ); X-Gone = ""; x-BOTH = "$sent_http_x_kind-$upstream_addr"; };
        add_response_headers = { Link = ( "<b>", "" ); X-None = "$http_x_nobody"; }; },
      { match = "/host/"; proxy = "@ORIGIN@"; request_headers = { Host = "$http_x_host"; }; },
      { match = "~ ^/echo/(.*)$"; proxy = "@ORIGIN@"; request_headers = { X-Rest = "<$1>"; X-Arg = "$arg_a"; };
        response_headers = { X-Rest = "<$1>"; X-Uri = "$uri"; }; }
    ); }
);
"""
FILES = {"www/files/a.css": "a{}" * 1000, "www/files/b.txt": "b"}


def answer(bc, q):
    return bc.send(b"HTTP/1.1 200 OK\r\nX-Kind: inner\r\nX-Gone: x\r\nx-gone: y\r\nSet-Cookie: z=9\r\nLink: <x>\r\n"
                   b"Server: app\r\nContent-Length: 2\r\n\r\nok")


@pytest.fixture(scope="module")
def front():
    f = raw.Front(CONF, FILES, handler=answer)
    yield f
    f.close()


@pytest.fixture
def origin(front):
    front.origin.take()
    return front.origin


def test_they_merge_by_name_over_top_site_and_location(front, origin):
    r = front.w.get("/x", {"X-Top": "client", "X-BOTH": "client"})
    q = origin.take()[0]
    assert (q.all("x-top"), q.all("x-both"), q.all("x-two")) == (["top"], ["site"], ["one", "GET /x"])
    assert (r.all("x-top"), r.all("x-both"), r.all("x-two")) == (["top"], ["site"], ["one", "two"])
    assert r.all("link") == ["<x>", "<a>"]


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/own", 200), ("HEAD", "/own", 200), ("GET", "/gone", 301), ("GET", "/denied", 403), ("GET", "/%zz", 400),
    ("POST", "/files/b.txt", 405), ("GET", "/files/none", 404), ("GET", "/files/b.txt", 200), ("GET", "/x", 200)])
def test_they_apply_to_every_status(front, method, path, status):
    r = front.w.request(method, path)
    assert r.status == status
    assert r.all("x-top") == ["top"]
    if status != 400:  # which site it is for does not count yet
        assert r.all("x-status") == [str(status)] and "<a>" in r.all("link")


def test_even_where_no_request_could_be_read(front):
    c = front.w.connect()
    c.send(b"GET / HTTP/1.1\r\nHost : h\r\n\r\n")
    r = c.response()
    assert r.status == 400 and r.all("x-top") == ["top"]


def test_an_answer_may_do_without_server(front):
    assert front.w.get("/own").all("server") == []
    assert front.w.get("/x").all("server") == []
    assert front.w.get("/files/b.txt").all("server") == ["none"]


@pytest.mark.parametrize("headers, status", [({}, 200), ({"Range": "bytes=0-0"}, 206), ({"If-None-Match": "*"}, 304)])
def test_fields_of_a_file(front, headers, status):
    r = front.w.get("/files/b.txt", headers)
    assert r.status == status
    assert r.all("cache-control") == ["private"] and r.all("etag") == [] and len(r.all("expires")) == 1
    assert r.all("content-type") == ["text/x-own"]
    assert len(r.all("last-modified")) == 1  # what no rule names stays


def test_compression_goes_by_what_the_rules_say(front):
    r = front.w.get("/files/a.css", {"Accept-Encoding": "gzip"})
    assert r.get("content-encoding") == "gzip" and gzip.decompress(r.body) == FILES["www/files/a.css"].encode()
    assert r.all("content-type") == ["text/x-own"] and r.all("etag") == []
    assert front.w.get("/files/a.css").body == FILES["www/files/a.css"].encode()  # the kept head is not harmed


def test_request_fields_are_set_and_removed(front, origin):
    front.w.get("/app/x", [("Cookie", "a=1"), ("X-Both", "c"), ("X-Who", "10.1.1.1"), ("X-Forwarded-For", "6.6.6.6"),
                           ("Cookie", "b=2"), ("Connection", "X-Top, Host")])
    q = origin.take()[0]
    assert q.all("host") == ["inner.test:81"] and q.all("x-top") == ["top"]
    assert q.all("cookie") == [] and q.all("x-both") == [] and q.all("x-forwarded-for") == ["10.1.1.1"]
    assert q.all("x-forwarded-host") != ["inner.test:81"]


def test_answer_fields_are_set_added_and_removed(front):
    r = front.w.get("/app/x")
    assert r.all("set-cookie") == ["a=1", "b=2"] and r.all("x-gone") == []
    assert r.all("link") == ["<x>", "<a>", "<b>"] and r.all("x-none") == []
    assert r.all("x-both") == ["inner-" + front.origin.addr]


@pytest.mark.parametrize("value, host", [("other.test", "other.test"), ("[::1]:8", "[::1]:8"), ("a b", None), ("", None),
                                         ("a/b", None), ("a@b", None)])
def test_a_host_from_a_variable_is_one_or_does_nothing(front, origin, value, host):
    assert front.w.get("/host/", {"X-Host": value}, host="client.test").status == 200
    assert origin.take()[0].all("host") == [host or "client.test"]


@pytest.mark.parametrize("path, shown", [
    ("/echo/a%0d%0aX-Evil:%201", "a%0D%0AX-Evil: 1"), ("/echo/%00", None), ("/echo/%0aX-Evil:1", "%0AX-Evil:1"),
    ("/echo/%7f%1b", "%7F%1B"), ("/echo/a%09b", "a\tb"), ("/echo/caf%c3%a9", "caf\u00c3\u00a9"),
    ("/echo/a?a=%0d%0aX-Evil:1", "a")])
def test_c040_no_variable_ends_a_line(front, origin, path, shown):
    r = front.w.get(path)
    asked = origin.take()
    if shown is None:
        assert r.status == 400 and asked == []
        return
    assert not r.has("x-evil") and not asked[0].has("x-evil")
    assert r.all("x-rest") == ["<%s>" % shown] == asked[0].all("x-rest")
    assert r.all("x-uri") == ["/echo/" + shown]


def test_a_websocket_handshake_has_them_too(weir, raw_backend):
    accept = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    b = raw_backend(serve(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          b"Sec-WebSocket-Accept: " + accept + b"\r\nX-Powered-By: x\r\n\r\n", then="stall"))
    w = weir("""sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; request_headers = { X-In = "in"; };
                response_headers = { X-Out = "out"; X-Powered-By = ""; }; } );""", B=b.addr)
    c = w.connect()
    c.send(b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    r = c.head()
    assert r.status == 101 and r.all("x-out") == ["out"] and r.all("x-powered-by") == []
    assert r.all("upgrade") == ["websocket"] and b"X-In: in" in b.conns[0].received


@pytest.mark.parametrize("setting, rule, words", [
    ("response_headers", 'Content-Length = "1"', "how long the body is"),
    ("request_headers", 'transfer-encoding = "chunked"', "frames the body"),
    ("response_headers", 'Connection = ""', "belongs to one connection"),
    ("add_response_headers", 'Upgrade = "h2c"', "belongs to one connection"),
    ("request_headers", 'Host = ""', "exactly one Host"),
    ("request_headers", 'Host = ( "a", "b" )', "exactly one Host"),
    ("request_headers", 'Sec-WebSocket-Key = "x"', "handshake"),
    ("response_headers", 'X-A = "$nobody"', "no variable $nobody")])
def test_what_would_break_a_message_is_refused(cli, tmp_path, setting, rule, words):
    conf = tmp_path / "proxy.conf"
    conf.write_text('sites = ( { listen = "8080"; respond = 200;\n %s = { %s; }; } );\n' % (setting, rule))
    done = cli("check", "-c", conf)
    assert done.returncode == 1
    assert re.search(r"proxy\.conf:2: .*%s.*%s" % (setting, re.escape(words)), done.stderr), done.stderr


def test_explain_shows_each_line_with_its_rule(front):
    out = front.w.cli("explain", "/app/x").stdout
    with open(front.w.conf_path) as f:
        conf = f.read().split("\n")

    def has(label, line, rule):
        at = next(i for i, ln in enumerate(conf, 1) if rule in ln)
        assert re.search(r"^%s +%s +\S*proxy.conf:%d$" % (label, re.escape(line), at), out, re.M), (label, line, at, out)
    has("header", "X-Top: top", "X-Top")
    has("header", "Host: inner.test:81", "Host = ")
    has("no header", "Cookie", "Cookie = ")
    has("field", "Set-Cookie: b=2", "Set-Cookie")
    has("no field", "X-Gone", "X-Gone = ")
    has("field", "Link: <b>", "<b>")
    assert not re.search(r"^header +X-Both", out, re.M)
    own = front.w.cli("explain", "/own").stdout
    assert re.search(r"^ +X-Two: two +\S*proxy.conf:\d+$", own, re.M)
    assert re.search(r"^no field +Server +\S*proxy.conf:\d+$", own, re.M)
