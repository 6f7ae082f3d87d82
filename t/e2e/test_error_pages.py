# SPDX-License-Identifier: MIT
"""error_pages: own pages for weir's answers and, where wanted, in the place of a backend's; problem+json."""
import json
import os
import re

import pytest
from harness import raw

CONF = """

sites = (
  { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@";
    error_pages = ( { status = ( 404, 403 ); file = "404.html"; }, { status = 502; file = "oops.json"; }, { status = ( 400, 431 ); file = "top.txt"; },
                    { status = ( 500, 503 ); file = "busy.html"; intercept = true; } );
    locations = (
      { match = "/www/"; root = "@DIR@"; },
      { match = "/denied/"; root = "www"; deny = ( "0.0.0.0/0" ); },
      { match = "/said"; respond = 404; },
      { match = "/text"; respond = { status = 404; body = "mine"; }; },
      { match = "/dead/"; proxy = "127.0.0.1:@DEAD@"; },
      { match = "/packed/"; root = "www"; gzip = true; response_headers = { X-Rule = "$status"; }; },
      { match = "/none/"; root = "www"; error_pages = (); }
    ); }
);
"""
FILES = {"404.html": "<h1>Lost</h1>" + " " * 2000, "oops.json": '{"oops": true}', "busy.html": "<h1>Busy</h1>",
         "top.txt": "top\n", "www/a.txt": "a"}
ANSWERED = b"""HTTP/1.1 %d Own Reason\r
Content-Type: text/plain\r
Content-Encoding: gzip\r
Content-Range: bytes 0-1/9\r
Content-Language: de\r
Content-Security-Policy: default-src 'none'\r
ETag: "x"\r
Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r
Accept-Ranges: bytes\r
Digest: x\r
Retry-After: 7\r
Set-Cookie: a=1\r
"""


def answer(bc, q):
    status = int(q.target[1:4])
    head = ANSWERED % status
    if q.method == "HEAD":
        return bc.send(head + b"Content-Length: 1234\r\n\r\n")
    if "chunked" in q.target:
        return bc.send(head + b"Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n4\r\nbody\r\n0\r\nX-T: 1\r\n\r\n")
    if "slow" in q.target:
        return bc.send(head + b"Content-Length: 9\r\n\r\nbo")
    return bc.send(head + b"Content-Length: 4\r\n\r\nbody")


@pytest.fixture(scope="module")
def front():
    f = raw.Front(CONF, FILES, handler=answer, DEAD="1")
    yield f
    f.close()


@pytest.mark.parametrize("path, status, name, kind", [
    ("/www/none", 404, "404.html", "text/html"), ("/denied/x", 403, "404.html", "text/html"),
    ("/said", 404, "404.html", "text/html"), ("/dead/x", 502, "oops.json", "application/json"),
    ("/%zz", 400, "top.txt", "text/plain")])
def test_pages_of_ones_own(front, path, status, name, kind):
    r = front.w.get(path)
    assert (r.status, r.body) == (status, FILES[name].encode()) and r.get("content-type").startswith(kind)
    h = front.w.head(path)
    assert (h.status, h.body, h.get("content-length")) == (status, b"", str(len(FILES[name])))
    assert h.get("content-type") == r.get("content-type")


def test_others_are_as_ever(front):
    assert front.w.get("/text").body == b"mine"
    assert b"Not Allowed" in front.w.post("/www/a.txt", b"").body
    assert b"Lost" not in front.w.get("/none/x").body and front.w.get("/none/x").status == 404
    assert front.w.get("/404").body == b"body"  # the backend's own


def test_the_connection_lives_on(front):
    c = front.w.connect()
    for _ in range(3):
        c.send(b"GET /www/none HTTP/1.1\r\nHost: h\r\n\r\n")
        assert c.response().status == 404
    c.send(b"GET /www/a.txt HTTP/1.1\r\nHost: h\r\n\r\n")
    assert c.response().body == b"a"


def test_before_there_is_a_request(front):
    c = front.w.connect()
    c.send(b"GET / HTTP/1.1\r\nHost: h\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(200)) + b"\r\n")
    r = c.response()
    assert (r.status, r.body) == (431, b"top\n")


def test_they_are_compressed_and_have_the_fields_of_the_location(front):
    r = front.w.get("/packed/none", {"Accept-Encoding": "gzip"})
    assert r.status == 404 and r.get("content-encoding") == "gzip" and r.get("x-rule") == "404"


@pytest.mark.parametrize("path", ["/500", "/503/chunked", "/503/slow"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_in_the_place_of_a_backends_answer(front, path, method):
    r = front.w.request(method, path)
    assert r.status == int(path[1:4]) and r.reason == b"Own Reason"
    assert r.body == (b"" if method == "HEAD" else FILES["busy.html"].encode())
    assert r.all("content-length") == [str(len(FILES["busy.html"]))]
    assert r.get("content-type") == "text/html; charset=utf-8"
    for name in ("content-encoding", "content-range", "content-language", "etag", "last-modified", "accept-ranges",
                 "digest", "trailer", "transfer-encoding"):
        assert not r.has(name), name
    assert r.all("retry-after") == ["7"] and r.all("set-cookie") == ["a=1"]
    assert r.all("content-security-policy") == ["default-src 'none'"]


def test_the_backends_connection_is_used_again_unless_it_would_have_to_be_waited_for(front):
    def conns(path):
        front.origin.take()
        for _ in range(3):
            front.w.get(path)
        return len({q.conn for q in front.settle()})
    assert conns("/500") == 1 and conns("/503/chunked") == 1
    assert conns("/503/slow") > 1


@pytest.mark.parametrize("accept, is_json", [
    ("application/json", True), ("application/problem+json", True), ("application/json, text/html;q=0.9", True),
    ("text/html,application/xhtml+xml,*/*;q=0.8", False), ("*/*", False), (None, False),
    ("application/json;q=0.5, text/html", False), ("image/png", False)])
@pytest.mark.parametrize("path, status", [("/www/none", 404), ("/none/x", 404), ("/500", 500)])
def test_who_prefers_json_gets_problem_json(front, path, status, accept, is_json):
    r = front.w.get(path, {"Accept": accept} if accept else {})
    assert r.status == status and "accept" in r.tokens("vary")
    assert (r.get("content-type") == "application/problem+json") == is_json
    if is_json:
        problem = json.loads(r.body)
        assert problem["status"] == status and problem["type"] == "about:blank" and problem["title"]


def test_a_json_page_is_json_enough(front):
    assert front.w.get("/dead/x", {"Accept": "application/json"}).body == FILES["oops.json"].encode()


def test_pages_are_read_at_load(weir):
    conf = """sites = ( { listen = "127.0.0.1:@PORT@"; respond = 404;
              error_pages = ( { status = 404; file = "e.html"; } ); } );"""
    w = weir(conf, files={"e.html": "one"})
    assert w.get("/").body == b"one"
    w.write("e.html", "two")
    assert w.get("/").body == b"one"
    w.reload(conf)
    assert w.get("/").body == b"two"
    w.wait_error("generation 2: 1 location changed")
    os.unlink(os.path.join(w.dir, "e.html"))
    w.reload(conf, refused=True)
    w.wait_error(r"error_pages\[0\].file: .*e\.html")
    assert w.get("/").body == b"two"


@pytest.mark.parametrize("page, words", [
    ('{ status = 404; file = "none.html"; }', "none.html"), ('{ status = 404; file = "/"; }', "a file of at most 1 MB"),
    ('{ status = 404; file = "/dev/zero"; }', "a file of at most 1 MB"), ('{ status = 404; }', "not complete"),
    ('{ status = 200; file = "/etc/passwd"; }', "300")])
def test_mistakes(cli, tmp_path, page, words):
    conf = tmp_path / "proxy.conf"
    conf.write_text('sites = ( { listen = "8080"; respond = 404;\n error_pages = ( %s ); } );\n' % page)
    done = cli("check", "-c", conf)
    assert done.returncode == 1 and re.search(r"proxy\.conf:2: .*%s" % re.escape(words), done.stderr), done.stderr


def test_explain_names_the_page(front):
    out = front.w.cli("explain", "/www/none").stdout
    assert re.search(r"^error page +\S*404\.html +\S*proxy\.conf:\d+$", out, re.M), out
