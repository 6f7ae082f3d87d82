# SPDX-License-Identifier: MIT
"""Internal locations, and the backends that lead there: X-Accel-Redirect and X-Sendfile."""
import pytest
from harness import raw
from harness.backends import serve

CONF = """
sites = (
  { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@";
    locations = (
      { match = "/protected/"; internal = true; root = "private"; strip_prefix = true; expires = "1h"; },
      { match = "= /exact"; internal = true; respond = "exact"; },
      { match = "~ ^/regex/"; internal = true; respond = "regex"; },
      { match = "/other/"; internal = true; proxy = "@ORIGIN@"; response_headers = { X-Other = "yes"; }; },
      { match = "/closed/"; internal = true; root = "private"; deny = ( "0.0.0.0/0" ); },
      { match = "/foreign/"; proxy = "@ORIGIN@"; x_accel_redirect = false; },
      { match = "/send/"; proxy = "@ORIGIN@"; x_sendfile = ( "@DIR@/private", "@DIR@/more/" ); },
      { match = "/public/"; root = "private"; fallback = "/protected/a.txt"; }
    ); }
);
"""
TEXT = "0123456789" * 500
FILES = {"private/protected/none": "", "private/a.txt": TEXT, "private/b c.txt": "b", "private/a.txt.gz": "coded",
         "private/sub/index.html": "index", "more/m.txt": "m", "secret.txt": "SECRET", "private-leak/x": "SECRET"}


def answer(bc, q):
    """What the request says in X-Say comes as fields of the answer; X-Status and X-Body say the rest."""
    fields = b"".join(v.encode("latin-1") + b"\r\n" for v in q.all("x-say")) if not q.target.startswith("/other/") else b""
    body = (q.get("x-body") or "from the backend").encode()
    return bc.send(b"HTTP/1.1 %s\r\nServer: app\r\n%sContent-Length: %d\r\n\r\n%s" % (
        (q.get("x-status") or "200 OK").encode(), fields, len(body), b"" if q.method == "HEAD" else body))


@pytest.fixture(scope="module")
def front():
    f = raw.Front(CONF, FILES, handler=answer)
    yield f
    f.close()


def say(front, *fields, path="/app", method="GET", body=b"", headers=()):
    front.origin.take()
    r = front.w.request(method, path, [("X-Say", f) for f in fields] + list(headers), body=body)
    for name, _ in r.headers:
        assert name.lower() not in ("x-accel-redirect", "x-sendfile", "x-accel-expires", "x-accel-limit-rate",
                                    "x-accel-charset")
    return r


@pytest.mark.parametrize("path", ["/protected/a.txt", "/exact", "/regex/x", "/other/x", "//protected/./a.txt",
                                  "/%70rotected/a.txt", "/x/../exact"])
def test_internal_is_404_for_clients(front, path):
    front.origin.take()
    for method in ("GET", "HEAD", "POST"):
        assert front.w.request(method, path).status == 404
    assert front.origin.take() == []


def test_a_fallback_may_lead_there(front):
    assert front.w.get("/public/none").body == TEXT.encode()


@pytest.mark.parametrize("to, body", [
    ("/protected/a.txt", TEXT), ("/protected/b%20c.txt", "b"), ("/protected/b c.txt", "b"), ("/exact", "exact"),
    ("/regex/x?y=1", "regex"), ("/protected/sub/", "index"), ("/protected/x/../a.txt", TEXT)])
def test_x_accel_redirect(front, to, body):
    r = say(front, "X-Accel-Redirect: " + to)
    assert (r.status, r.body) == (200, body.encode())
    assert r.all("server") == ["weir"]


@pytest.mark.parametrize("status", ["403 Forbidden", "500 No", "302 Found", "404 Not Found"])
def test_the_status_is_that_of_the_file(front, status):
    assert say(front, "X-Accel-Redirect: /protected/a.txt", headers=[("X-Status", status)]).status == 200


@pytest.mark.parametrize("headers, status", [
    ([("Range", "bytes=1-2")], 206), ([("Range", "bytes=1-2,5-6")], 206), ([("If-None-Match", "*")], 304),
    ([("If-Match", '"x"')], 412), ([("Range", "bytes=90000-")], 416)])
def test_conditions_and_ranges_are_the_files(front, headers, status):
    r = say(front, "X-Accel-Redirect: /protected/a.txt", "Content-Type: text/x-own", headers=headers)
    assert r.status == status
    if status == 206 and "," not in headers[0][1]:
        assert (r.body, r.get("content-range"), r.get("content-type")) == (b"12", "bytes 1-2/5000", "text/x-own")
    elif status == 206:
        assert r.get("content-type").startswith("multipart/byteranges") and r.body.count(b"Content-Range") == 2
    elif status != 304:
        assert r.get("content-type").startswith("text/html")


def test_head_is_head_and_anything_else_becomes_a_get(front):
    r = say(front, "X-Accel-Redirect: /protected/a.txt", method="HEAD")
    assert (r.status, r.body, r.get("content-length")) == (200, b"", "5000")
    r = say(front, "X-Accel-Redirect: /protected/a.txt", method="POST", body=b"form=1")
    assert (r.status, r.body) == (200, TEXT.encode())
    front.w.wait_access(r'"POST /app HTTP/1.1" 200')


def test_which_fields_come_along(front):
    r = say(front, "X-Accel-Redirect: /protected/a.txt", "Content-Type: application/pdf",
            'Content-Disposition: attachment; filename="x.pdf"', "Set-Cookie: a=1", "set-cookie: b=2",
            "Cache-Control: private", "Expires: Tue, 14 Nov 2023 22:13:20 GMT", "Accept-Ranges: none", 'ETag: "app"',
            "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT", "X-Own: 1", "Content-Encoding: br", "X-Accel-Expires: 5",
            "X-Accel-Limit-Rate: 5", "X-Accel-Charset: utf-8", "Location: /x")
    assert r.body == TEXT.encode()
    assert r.all("content-type") == ["application/pdf"] and r.all("set-cookie") == ["a=1", "b=2"]
    assert r.all("content-disposition") == ['attachment; filename="x.pdf"'] and r.all("accept-ranges") == ["none"]
    assert r.all("cache-control") == ["private"] and r.all("expires") == ["Tue, 14 Nov 2023 22:13:20 GMT"]
    assert len(r.all("etag")) == 1 and r.get("etag") != '"app"' and len(r.all("last-modified")) == 1
    for name in ("x-own", "content-encoding", "location"):
        assert not r.has(name), name
    r = say(front, "X-Accel-Redirect: /protected/a.txt")
    assert r.get("content-type") == "text/plain; charset=utf-8" and r.get("cache-control") == "private, max-age=3600"


def test_a_file_that_is_not_there_is_an_honest_404(front):
    r = say(front, "X-Accel-Redirect: /protected/none.txt", "Content-Type: application/pdf", "Set-Cookie: a=1",
            "Content-Disposition: attachment", "Cache-Control: max-age=999")
    assert r.status == 404 and r.get("content-type").startswith("text/html") and r.all("set-cookie") == ["a=1"]
    assert not r.has("content-disposition") and not r.has("cache-control")
    assert say(front, "X-Accel-Redirect: /protected/sub").status == 403  # no redirect to where no client may go
    assert say(front, "X-Accel-Redirect: /closed/a.txt").status == 403


def test_another_backend_is_asked_with_a_get(front):
    r = say(front, "X-Accel-Redirect: /other/x%20y?z=%2f", "Set-Cookie: a=1", "Content-Type: a/b", method="POST",
            body=b"x" * 100000, headers=[("X-Body", "second")])
    first, second = front.settle()
    assert (first.method, len(first.body)) == ("POST", 100000)
    assert (second.method, second.target, second.body) == ("GET", "/other/x%20y?z=%2f", b"")
    assert not second.has("content-length") and not second.has("transfer-encoding")
    assert r.body == b"second" and r.all("set-cookie") == ["a=1"] and r.get("x-other") == "yes"


def test_the_rest_of_an_upload_is_no_ones(weir, raw_backend):
    """The backend answers before it has had the body: what is still to come must reach neither the next backend nor the
    parser as a request."""
    def script(conn):
        while True:
            got = conn.head()
            if got.startswith(b"POST"):
                conn.send(b"HTTP/1.1 200 OK\r\nX-Accel-Redirect: /other/\r\nContent-Length: 0\r\n\r\n")
                conn.wait_close()
                return
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    b = raw_backend(script)
    w = weir("""workers = 1; sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@";
                locations = ( { match = "/other/"; internal = true; proxy = "@B@"; } ); } );""", B=b.addr)
    c = w.connect()
    c.send(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n" + b"x" * 10)
    r = c.response()
    assert (r.status, r.body) == (200, b"ok")
    c.send(b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n" + b"y" * 60)
    assert c.at_eof()
    assert w.get("/y").status == 200
    assert not any(b"smuggled" in k.received.split(b"\r\n\r\n", 1)[0] for k in b.conns)
    assert all(k.received.count(b"y") < 60 for k in b.conns if k.received.startswith(b"GET"))


def test_the_connection_goes_on_behind_it(front):
    c = front.w.connect()
    for _ in range(3):
        c.send(b"POST /app HTTP/1.1\r\nHost: h\r\nX-Say: X-Accel-Redirect: /protected/b%20c.txt\r\nContent-Length: 5\r\n\r\nhello",
               b"POST /app HTTP/1.1\r\nHost: h\r\nX-Say: X-Accel-Redirect: /exact\r\nTransfer-Encoding: chunked\r\n\r\n"
               b"5\r\nhello\r\n0\r\n\r\n", b"GET /exact HTTP/1.1\r\nHost: h\r\n\r\n")
        got = [c.response() for _ in range(3)]
        assert [(r.status, r.body) for r in got[:2]] == [(200, b"b"), (200, b"exact")] and got[2].status == 404
    c.send(b"GET /app HTTP/1.0\r\nX-Say: X-Accel-Redirect: /protected/a.txt\r\n\r\n")
    r = c.response()
    assert (r.status, r.body) == (200, TEXT.encode()) and c.at_eof()


@pytest.mark.parametrize("field", ["X-Accel-Redirect: /p/a.txt", "X-Sendfile: @DIR@/p/a.txt"])
@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\n%s\r\nContent-Length: 100\r\n\r\nonly this", b"HTTP/1.0 200 OK\r\n%s\r\n\r\nuntil the end",
    b"HTTP/1.1 200 OK\r\n%s\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    b"HTTP/1.1 200 OK\r\n%s\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n", b"HTTP/1.1 204 No\r\n%s\r\n\r\n"])
def test_the_body_beside_it_is_never_waited_for(weir, raw_backend, field, answer):
    conf = """workers = 1; sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; x_sendfile = "@DIR@/p";
              locations = ( { match = "/p/"; internal = true; root = "@DIR@"; } ); } );"""
    say = []
    b = raw_backend(lambda conn: serve(answer % say[0], then="again")(conn))
    w = weir(conf, files={"p/a.txt": TEXT}, B=b.addr)
    say.append(field.replace("@DIR@", w.dir).encode())
    for method in ("GET", "HEAD", "GET"):
        r = w.request(method, "/x")
        assert (r.status, r.body) == (200, b"" if method == "HEAD" else TEXT.encode())


def test_a_client_that_waits_for_100_is_answered(weir, raw_backend):
    b = raw_backend(serve(b"HTTP/1.1 200 OK\r\nX-Accel-Redirect: /p/a.txt\r\nContent-Length: 0\r\n\r\n", then="stall"))
    w = weir("""sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@";
                locations = ( { match = "/p/"; internal = true; root = "@DIR@"; } ); } );""", files={"p/a.txt": TEXT}, B=b.addr)
    c = w.connect()
    c.send(b"POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")
    r = c.response()
    assert (r.status, r.body, r.wants_close()) == (200, TEXT.encode(), True)


@pytest.mark.parametrize("to", ["", "protected/a.txt", "@named", "http://h/protected/a.txt", "/../x", "/%zz", "*"])
def test_what_is_no_path_is_a_502(front, to):
    r = say(front, "X-Accel-Redirect: " + to)
    assert r.status == 502
    front.w.wait_error("ACCEL_REFUSED")


def test_a_circle_ends(weir, backend):
    b = backend(lambda bc, q: bc.send(b"HTTP/1.1 200 OK\r\nX-Accel-Redirect: /again\r\nSet-Cookie: n=1\r\n"
                                      b"Content-Length: 0\r\n\r\n"))
    w = weir("""sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; } );""", B=b.addr)
    r = w.get("/x")
    assert r.status == 500 and len(b.take()) == 6
    w.wait_error("REROUTE_LOOP")


def test_not_where_it_is_not_wanted(front):
    r = say(front, "X-Accel-Redirect: /protected/a.txt", "X-Sendfile: /etc/passwd", path="/foreign/x")
    assert (r.status, r.body) == (200, b"from the backend")
    r = say(front, "X-Sendfile: %s/private/a.txt" % front.w.dir)
    assert r.body == b"from the backend"


def test_x_accel_buffering_passes_on(front):
    assert say(front, "X-Accel-Buffering: no").all("x-accel-buffering") == ["no"]


# --- X-Sendfile -------------------------------------------------------------------------------------------------------

def sendfile(front, path, *fields, **kw):
    return say(front, "X-Sendfile: " + path.replace("@", front.w.dir), *fields, path="/send/x", **kw)


def test_x_sendfile_beneath_its_folders(front):
    r = sendfile(front, "@/private/a.txt", "Content-Type: a/b", "Content-Disposition: attachment", "Set-Cookie: a=1")
    assert (r.status, r.body, r.get("content-type")) == (200, TEXT.encode(), "a/b")
    assert r.get("content-disposition") == "attachment" and r.all("set-cookie") == ["a=1"] and r.has("etag")
    assert sendfile(front, "@/private/b c.txt").body == b"b"
    assert sendfile(front, "@/more/m.txt").body == b"m"
    r = sendfile(front, "@/private/a.txt", headers=[("Range", "bytes=-3")])
    assert (r.status, r.body) == (206, b"789")
    r = sendfile(front, "@/private/a.txt", headers=[("Range", "bytes=0-0,9-9")])
    assert r.status == 206 and r.body.count(b"Content-Range") == 2
    assert sendfile(front, "@/private/a.txt", method="HEAD").get("content-length") == "5000"
    assert sendfile(front, "@/private/a.txt", headers=[("If-None-Match", "*")]).status == 304
    assert sendfile(front, "@/private/a.txt", method="POST", body=b"x").status == 200


@pytest.mark.parametrize("path, status", [
    ("@/secret.txt", 502), ("@/private-leak/x", 502), ("private/a.txt", 502), ("/etc/passwd", 502), ("@/private", 502),
    ("@/private/../secret.txt", 404), ("@/private/none", 404), ("@/private/sub", 403), ("@/private/../../../etc/passwd", 404),
    ("", 502)])
def test_x_sendfile_nowhere_else(front, path, status):
    r = sendfile(front, path, "Content-Type: a/b")
    assert r.status == status and b"SECRET" not in r.body and b"root:" not in r.body


def test_sticky_sessions_and_gzip_go_with_it(weir, raw_backend):
    b = raw_backend(serve(b"HTTP/1.1 200 OK\r\nX-Accel-Redirect: /p/a.txt\r\nContent-Type: text/css\r\nContent-Length: 0\r\n\r\n",
                          then="again"))
    w = weir("""upstreams = { u = { servers = ( "@B@" ); sticky = "auto"; }; };
                sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "u"; gzip = true;
                  locations = ( { match = "/p/"; internal = true; root = "p"; strip_prefix = true; } ); } );""",
             files={"p/a.txt": TEXT}, B=b.addr)
    r = w.get("/x", {"Accept-Encoding": "gzip"})
    assert r.get("content-encoding") == "gzip" and r.get("content-type") == "text/css"
    assert r.get("set-cookie").startswith("weir_u=")
