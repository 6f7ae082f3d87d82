# SPDX-License-Identifier: MIT
"""The gzip filter: what is compressed and what never is, for files and for proxied answers, at once and as a stream."""
import gzip
import os
import socket
import threading
import time
import zlib

import pytest
from harness.util import cpu_ms, scaled, wait_for
from wire import Closed

TEXT = b"".join(b"line %d: the quick brown fox jumps over the lazy dog\n" % i for i in range(200))
BIG = b"".join(b"%08d and some more words, some more words\n" % i for i in range(60000))
SITE = 'sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; gzip = true; %s } );'
PROXY = 'sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@"; gzip = true; %s } );'
GZ = {"Accept-Encoding": "gzip"}
OLD = 1700000000


def body_of(r):
    """The body as its receiver understands it; a coded one must be whole and of one member."""
    assert r.complete
    if r.get("content-encoding") is None:
        return r.body
    assert r.get("content-encoding") == "gzip"
    d = zlib.decompressobj(31)
    out = d.decompress(r.body)
    assert d.eof and not d.unused_data
    return out


def head_of(r):
    return {n.lower(): v for n, v in r.headers if n.lower() not in ("date", "transfer-encoding")}


@pytest.fixture
def site(weir):
    def make(files, extra="", top=""):
        w = weir(top + SITE % extra, files={"public/" + n: c for n, c in files.items()})
        for name in files:
            os.utime(os.path.join(w.dir, "public", name), (OLD, OLD))
        return w
    return make


# --- files ---

@pytest.mark.parametrize("small", ["0", "32k"])
def test_a_file_is_compressed(site, small):
    w = site({"a.txt": TEXT}, top='workers = 1; file_cache = { small = "%s"; };' % small)
    plain = w.get("/a.txt")
    for i in range(3):
        r = w.get("/a.txt", GZ)
        assert (r.status, body_of(r), r.get("content-encoding")) == (200, TEXT, "gzip")
        assert len(r.body) < len(TEXT) / 3
        assert r.tokens("vary") == plain.tokens("vary") == ["accept-encoding"]
        assert r.get("etag") == "W/" + plain.get("etag") and r.get("accept-ranges") is None
        assert r.get("content-type") == plain.get("content-type") and r.get("last-modified")
        # A file is compressed once, in memory at once and else for the first client; then its length is known.
        assert r.get("content-length") == (str(len(r.body)) if small != "0" or i > 0 else None)
    assert plain.body == TEXT and plain.get("content-encoding") is None and plain.get("accept-ranges") == "bytes"


@pytest.mark.parametrize("small", ["0", "32k"])
def test_c146_head_is_like_get(site, small):
    w = site({"a.txt": TEXT, "a.png": TEXT, "short.txt": "x" * 1023, "big.txt": BIG},
             top='workers = 1; file_cache = { small = "%s"; };' % small)
    w.get("/a.txt", GZ)
    for path in ("/a.txt", "/a.png", "/short.txt", "/big.txt"):
        for headers in ({}, GZ, {**GZ, "If-None-Match": "*"}):
            get, head = w.get(path, headers), w.head(path, headers)
            assert head.body == b"" and head.status == get.status
            assert head_of(head) == head_of(get), (path, headers)


def test_validators_of_both_forms(site):
    w = site({"a.txt": TEXT})
    plain, coded = w.get("/a.txt").get("etag"), w.get("/a.txt", GZ).get("etag")
    for tag in (plain, coded):
        for headers, own in ((GZ, coded), ({}, plain)):
            r = w.get("/a.txt", {**headers, "If-None-Match": tag})
            assert (r.status, r.get("etag"), r.tokens("vary")) == (304, own, ["accept-encoding"])
            assert r.get("content-encoding") is None and r.get("content-type") is None
    assert w.get("/a.txt", {**GZ, "If-None-Match": '"other"'}).status == 200
    assert w.get("/a.txt", {**GZ, "If-Match": coded}).status == 412  # a weak one never matches strongly


def test_c146_a_part_is_of_the_plain_form(site):
    w = site({"a.txt": TEXT})
    r = w.get("/a.txt", {**GZ, "Range": "bytes=10-19"})
    assert (r.status, r.get("content-encoding"), r.body) == (206, None, TEXT[10:20])
    assert r.get("content-range") == "bytes 10-19/%d" % len(TEXT) and r.tokens("vary") == ["accept-encoding"]
    r = w.get("/a.txt", {**GZ, "Range": "bytes=0-0,-1"})
    assert r.status == 206 and r.get("content-encoding") is None
    coded = w.get("/a.txt", GZ).get("etag")
    r = w.get("/a.txt", {**GZ, "Range": "bytes=10-19", "If-Range": coded})
    assert (r.status, body_of(r)) == (200, TEXT)


def test_c149_lengths(site):
    lengths = (0, 1, 19, 20, 1023, 1024)
    w = site({"%d.txt" % n: b"x" * n for n in lengths})
    for n in lengths:
        r = w.get("/%d.txt" % n, GZ)
        assert (n, body_of(r)) == (n, b"x" * n)
        assert (r.get("content-encoding") == "gzip") == (n >= 1024)
        if n < 1024:
            assert r.get("content-length") == str(n) and r.get("vary") is None
    w = site({"%d.txt" % n: b"x" * n for n in lengths}, extra="locations = ( "
             '{ match = "/"; root = "public"; gzip = { min_length = 0; }; } );')
    for n in lengths:
        r = w.get("/%d.txt" % n, GZ)
        assert (n, body_of(r)) == (n, b"x" * n)
        if n < 50:  # would be longer
            assert r.get("content-encoding") is None and r.get("content-length") == str(n)


def test_types_and_levels(site):
    w = site({"a.txt": TEXT, "a.json": TEXT, "a.svg": TEXT, "a.js": TEXT, "a.png": TEXT, "a.bin": TEXT, "a.pdf": TEXT},
             'locations = ( { match = "/pdf/"; alias = "public/"; gzip = { types = "application/pdf"; level = 1; }; },'
             ' { match = "/off/"; alias = "public/"; gzip = false; } );')
    for name, coded in (("/a.txt", 1), ("/a.json", 1), ("/a.svg", 1), ("/a.js", 1), ("/a.png", 0), ("/a.bin", 0),
                        ("/a.pdf", 0), ("/pdf/a.pdf", 1), ("/pdf/a.txt", 1), ("/off/a.txt", 0)):
        r = w.get(name, GZ)
        assert (name, r.get("content-encoding")) == (name, "gzip" if coded else None)
        assert body_of(r) == TEXT


def test_qualities(site):
    w = site({"a.txt": TEXT})
    for value, coded in (("gzip", 1), ("*", 1), ("x-gzip", 1), ("br, gzip;q=0.1", 1), ("GZIP", 1),
                         ("deflate, gzip ; q=1", 1), ("gzip;q=0", 0), ("gzip;q=0.000, *", 0), ("identity, gzip;q=0.5", 0), ("br", 0), ("", 0),
                         ("gzip;q=0.5, identity;q=0.5", 1), ("gzipped", 0), ("*;q=0", 0), ("gzip;q=2", 0)):
        r = w.get("/a.txt", {"Accept-Encoding": value})
        assert (value, r.get("content-encoding")) == (value, "gzip" if coded else None)
        assert body_of(r) == TEXT and r.tokens("vary") == ["accept-encoding"]


def test_c150_http_1_0(site, backend):
    w = site({"a.txt": TEXT})
    for lines in ("", "Connection: keep-alive\r\n"):
        k = w.connect()
        k.send(("GET /a.txt HTTP/1.0\r\nHost: h\r\nAccept-Encoding: gzip\r\n%s\r\n" % lines).encode())
        r = k.response("GET")
        assert (r.get("content-encoding"), r.get("transfer-encoding"), r.body) == (None, None, TEXT)
        k.close()
    r = w.get("/a.txt", {**GZ, "Via": "1.1 x"})
    assert (r.get("content-encoding"), body_of(r)) == ("gzip", TEXT)


def test_a_changed_file_is_compressed_anew(site):
    w = site({"a.txt": TEXT}, top='workers = 1; file_cache = { valid = "10ms"; };')
    assert body_of(w.get("/a.txt", GZ)) == TEXT
    for i in range(5):
        fresh = w.write("public/fresh", TEXT[::-1] if i % 2 else TEXT.upper())
        os.utime(fresh, (OLD, OLD))
        with open(fresh, "rb") as f:
            want = f.read()
        os.rename(fresh, os.path.join(w.dir, "public", "a.txt"))
        wait_for("the new content", 3, lambda: body_of(w.get("/a.txt", GZ)) == want)
        assert body_of(w.get("/a.txt")) == want


# --- large files ---


def test_a_file_of_some_size_is_compressed_for_the_first_client(site):
    text = BIG[:800000]
    w = site({"b.txt": text}, top='workers = 1; file_cache = { valid = "10ms"; };')
    gone = w.connect(rcvbuf=4096)  # what is cut short is not kept
    gone.send(b"GET /b.txt HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n")
    gone.s.recv(1)
    gone.close(reset=True)
    first = w.get("/b.txt", GZ, timeout=20)
    assert body_of(first) == text and first.get("content-length") is None
    for headers in (GZ, {**GZ, "If-None-Match": '"x"'}):
        r = w.get("/b.txt", headers)
        assert r.body == first.body and r.get("content-length") == str(len(r.body))
        assert r.get("etag") == first.get("etag")
    before = cpu_ms(w.tree())
    for _ in range(50):
        assert w.get("/b.txt", GZ).body == first.body
    assert cpu_ms(w.tree()) - before < scaled(400), "compresses again"
    with open(os.path.join(w.dir, "public", "b.txt"), "r+b") as f:
        f.write(b"XXXX")
    wait_for("the new content", 3, lambda: body_of(w.get("/b.txt", GZ, timeout=20)) == b"XXXX" + text[4:])


def test_a_large_file_to_fast_slow_and_leaving_clients(site):
    w = site({"big.txt": BIG})
    assert body_of(w.get("/big.txt", GZ, timeout=20)) == BIG
    for n in (0, 1, 5000):
        gone = w.connect(rcvbuf=4096)
        gone.send(b"GET /big.txt HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n")
        if n:
            gone.s.recv(n)
        gone.close(reset=True)
    slow = w.connect(rcvbuf=4096, timeout=20)
    slow.send(b"GET /big.txt HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n"
              b"GET /big.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    time.sleep(0.3)  # let its window fill
    before = cpu_ms(w.tree())
    time.sleep(0.5)
    assert cpu_ms(w.tree()) - before < scaled(50), "spins while the client does not read"
    assert body_of(slow.response("GET")) == BIG
    assert slow.response("GET").body == BIG
    slow.close()


def test_c059_small_requests_beside_large_ones(site):
    """One loop: a fast download and the compression of a large text leave others responsive."""
    w = site({"small.txt": "hello", "big.txt": BIG * 20}, top="workers = 1;")
    with open(os.path.join(w.dir, "public", "huge.bin"), "wb") as f:
        f.truncate(1 << 30)
    stop, got = threading.Event(), []

    def download(path, headers):
        k = w.connect(timeout=60)
        k.send(("GET %s HTTP/1.1\r\nHost: h\r\n%s\r\n" % (path, headers)).encode())
        n = 0
        while not stop.is_set():
            data = k.s.recv(1 << 20)
            if not data:
                break
            n += len(data)
            if n >= 1 << 30:
                break
        got.append(n)
        k.close()

    threads = [threading.Thread(target=download, args=a) for a in (
        ("/huge.bin", ""), ("/big.txt", "Accept-Encoding: gzip\r\n"), ("/big.txt", "Accept-Encoding: gzip\r\n"))]
    for t in threads:
        t.start()
    k = w.connect()
    times = []
    for _ in range(50):
        start = time.monotonic()
        k.send(b"GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n")
        assert k.response("GET").body == b"hello"
        times.append(time.monotonic() - start)
        time.sleep(0.005)
    k.close()
    stop.set()
    for t in threads:
        t.join()
    times.sort()
    assert times[len(times) // 2] < scaled(0.05) and times[-3] < scaled(0.25), times


def test_truncated_while_compressed(site):
    w = site({"big.txt": BIG})
    k = w.connect(rcvbuf=4096, timeout=20)
    k.send(b"GET /big.txt HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n")
    raw = k.s.recv(1)
    os.truncate(os.path.join(w.dir, "public", "big.txt"), 10)
    try:
        while data := k.s.recv(65536):
            raw += data
    except ConnectionError:
        pass
    k.close()
    assert raw.startswith(b"HTTP/1.1 200") and not raw.endswith(b"0\r\n\r\n")
    w.wait_error("FILE_TRUNCATED")
    assert w.get("/big.txt").body == BIG[:10]


# --- proxied answers ---

def answer(headers, body=b"", status="200 OK", chunked=False):
    lines = ["HTTP/1.1 " + status] + ["%s: %s" % h for h in headers]
    if chunked:
        lines.append("Transfer-Encoding: chunked")
        body = (b"%x\r\n%s\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
    elif not status.startswith(("204", "304")):
        lines.append("Content-Length: %d" % len(body))
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


HTML = ("Content-Type", "text/html")


@pytest.fixture
def proxied(weir, raw_backend):
    def make(data, extra=""):
        def script(conn):
            while conn.head():
                conn.send(data)
        return weir(PROXY % extra, ORIGIN=raw_backend(script).addr)
    return make


def test_a_proxied_answer_is_compressed(proxied):
    for chunked in (False, True):
        fields = [HTML, ("ETag", '"e"'), ("Accept-Ranges", "bytes"), ("Vary", "Origin")]
        w = proxied(answer(fields, TEXT, chunked=chunked))
        r = w.get("/", GZ)
        assert (r.status, r.get("content-encoding"), body_of(r)) == (200, "gzip", TEXT)
        assert r.get("etag") == 'W/"e"' and r.get("accept-ranges") is None and r.get("content-length") is None
        assert sorted(r.tokens("vary")) == ["accept-encoding", "origin"]
        r = w.get("/")
        assert (r.get("content-encoding"), r.body, r.get("etag")) == (None, TEXT, '"e"')
        assert sorted(r.tokens("vary")) == ["accept-encoding", "origin"]


@pytest.mark.parametrize("headers,status", [
    ([HTML, ("Content-Encoding", "gzip")], "200 OK"), ([HTML, ("Content-Encoding", "br")], "200 OK"),
    ([HTML, ("Content-Encoding", "identity")], "200 OK"), ([HTML, ("Cache-Control", "no-transform")], "200 OK"),
    ([HTML, ("Cache-Control", "max-age=3, No-Transform")], "200 OK"), ([("Content-Type", "image/png")], "200 OK"),
    ([], "200 OK"),
    ([HTML, ("Content-Range", "bytes 0-%d/99999" % (len(TEXT) - 1))], "206 Partial Content"),
    ([HTML, ("ETag", '"e"')], "304 Not Modified"), ([HTML], "204 No Content")])
def test_c146_left_alone(proxied, headers, status):
    body = b"" if status[:3] in ("204", "304") else TEXT
    w = proxied(answer(headers, body, status))
    r = w.get("/", GZ)
    assert (r.status, r.body, r.complete) == (int(status[:3]), body, True)
    for name, value in headers:
        assert r.get(name) == value
    assert len(r.all("content-encoding")) == sum(n == "Content-Encoding" for n, _ in headers)
    if body:
        assert r.get("content-length") == str(len(body))


@pytest.mark.parametrize("asked, tag, length", [
    ({**GZ, "If-None-Match": 'W/"e"'}, 'W/"e"', None), ({**GZ, "If-None-Match": '"x", W/"e"'}, 'W/"e"', None),
    ({**GZ, "If-None-Match": '"e"'}, '"e"', "9000"), ({**GZ, "If-None-Match": 'W/"ee"'}, '"e"', "9000"),
    ({"If-None-Match": 'W/"e"'}, '"e"', "9000")])
def test_a_304_of_the_backend_is_of_the_form_the_client_has(proxied, asked, tag, length):
    """RFC 9110 §15.4.5: it varies as the 200 does; RFC 9111 §4.3.4: a strong tag names another form than a weak one."""
    w = proxied(b'HTTP/1.1 304 Not Modified\r\nETag: "e"\r\nVary: Origin\r\nContent-Length: 9000\r\n\r\n')
    r = w.get("/", asked)
    assert (r.status, r.all("etag"), r.get("content-length")) == (304, [tag], length)
    assert sorted(r.tokens("vary")) == ["accept-encoding", "origin"]


@pytest.mark.parametrize("status, headers, varies", [
    ("206 Partial Content", [HTML, ("Content-Range", "bytes 0-9/99999")], True),
    ("206 Partial Content", [("Content-Type", "image/png"), ("Content-Range", "bytes 0-9/99999")], False),
    ("304 Not Modified", [("Content-Type", "image/png"), ("ETag", '"e"')], False),
    ("304 Not Modified", [HTML, ("Content-Encoding", "br")], False),
    ("304 Not Modified", [("Cache-Control", "no-transform")], False)])
def test_parts_and_304s_vary_where_the_whole_would(proxied, status, headers, varies):
    w = proxied(answer(headers, b"" if status[:3] == "304" else b"0123456789", status))
    for asked in (GZ, {}):
        r = w.get("/", asked)
        assert (r.status, r.tokens("vary")) == (int(status[:3]), ["accept-encoding"] if varies else [])
        assert r.get("etag") == dict(headers).get("ETag")


@pytest.mark.parametrize("tag", ["bare", 'w/"e"', "'e'"])
def test_what_is_no_etag_is_not_kept_on_a_compressed_answer(proxied, tag):
    w = proxied(answer([HTML, ("ETag", tag)], TEXT))
    assert w.get("/", GZ).get("etag") is None
    assert w.get("/").get("etag") == tag


def test_c146_head_of_a_proxied_answer(weir, raw_backend):
    def script(conn):
        while True:
            head = conn.head()
            if not head:
                return
            whole = answer([HTML], TEXT)
            conn.send(whole[:-len(TEXT)] if head.startswith(b"HEAD") else whole)
    w = weir(PROXY % "", ORIGIN=raw_backend(script).addr)
    get, head = w.get("/", GZ), w.head("/", GZ)
    assert body_of(get) == TEXT and head_of(get) == head_of(head)


def test_c149_chunked_bodies_of_nothing_and_of_little(proxied):
    for body in (b"", b"hello"):
        w = proxied(answer([HTML], body, chunked=True))
        r = w.get("/", GZ)
        assert (body_of(r), r.get("content-length")) == (body, None)
    w = proxied(answer([HTML], b""))
    r = w.get("/", GZ)
    assert (r.body, r.get("content-length"), r.get("content-encoding")) == (b"", "0", None)


def test_an_error_page_of_the_backend(proxied):
    r = proxied(answer([HTML], TEXT, "404 Not Found")).get("/", GZ)
    assert (r.status, body_of(r), r.get("content-encoding")) == (404, TEXT, "gzip")


def test_trailers_follow_the_coded_body(proxied):
    w = proxied(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n"
                b"5\r\nhello\r\n0\r\nX-T: yes\r\n\r\n")
    k = w.connect()
    k.send(b"GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\nTE: trailers\r\n\r\n")
    r = k.response("GET")
    assert body_of(r) == b"hello" and dict((n.lower(), v) for n, v in r.trailers) == {"x-t": "yes"}
    k.close()


def test_a_cut_answer_is_not_ended(weir, raw_backend):
    def script(conn):
        conn.head()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        conn.rst()
    w = weir(PROXY % "", ORIGIN=raw_backend(script).addr)
    with pytest.raises((Closed, ConnectionError, AssertionError)):
        r = w.get("/", GZ)
        assert r.complete


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_c148_each_chunk_arrives_at_once(weir, raw_backend, kind):
    go = threading.Semaphore(0)

    def script(conn):
        conn.head()
        conn.send(("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % kind).encode())
        for i in range(4):
            go.acquire()
            event = b"data: {\"n\": %d}\n\n" % i
            conn.send(b"%x\r\n%s\r\n" % (len(event), event))
        go.acquire()
        conn.send(b"0\r\n\r\n")
        conn.wait_close()

    w = weir(PROXY % "", ORIGIN=raw_backend(script).addr)
    s = socket.create_connection(("127.0.0.1", w.port), scaled(5))
    s.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n")
    raw = b""
    while b"\r\n\r\n" not in raw:  # the head waits for nothing
        raw += s.recv(65536)
    assert b"content-encoding: gzip" in raw.lower()
    raw = raw.split(b"\r\n\r\n", 1)[1]
    d, text = zlib.decompressobj(31), b""

    def read_until(end):
        nonlocal raw, text
        while not text.endswith(end):
            while b"\r\n" in raw and len(raw) >= raw.index(b"\r\n") + 4 + int(raw.split(b"\r\n")[0], 16):
                size, rest = raw.split(b"\r\n", 1)
                n = int(size, 16)
                text += d.decompress(rest[:n])
                raw = rest[n + 2:]
                if n == 0:
                    return
            if not text.endswith(end):
                raw += s.recv(65536)

    for i in range(4):
        go.release()
        start = time.monotonic()
        read_until(b'{"n": %d}\n\n' % i)
        assert time.monotonic() - start < scaled(0.1)
    go.release()
    read_until(b"never")
    assert d.eof
    s.close()


def test_a_blocked_client_blocks_the_backend(weir, raw_backend):
    sent = []

    def script(conn):
        conn.head()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 400000000\r\n\r\n")
        block = os.urandom(48000).hex().encode()
        try:
            for _ in range(4000):
                conn.send(block)
                sent.append(len(block))
        except OSError:
            pass
    w = weir(PROXY % "", ORIGIN=raw_backend(script).addr)
    k = w.connect(rcvbuf=4096)
    k.send(b"GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n")
    k.s.recv(1)
    seen = -1
    while seen != len(sent):
        seen = len(sent)
        time.sleep(0.4)
    assert sum(sent) < 40e6, "read %d bytes for a client that takes none" % sum(sent)
    k.close(reset=True)


def test_many_streams_at_once(weir, raw_backend):
    """More than may be compressed at a time: those beyond the bound are answered as they are, and all are right."""
    gate = threading.Event()

    def script(conn):
        while conn.head():
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
                      b"6\r\nhello \r\n")
            gate.wait(30)
            conn.send(b"5\r\nworld\r\n0\r\n\r\n")
    w = weir("workers = 1;" + PROXY % "", ORIGIN=raw_backend(script).addr)
    conns = [w.connect(timeout=20) for _ in range(90)]
    for k in conns:
        k.send(b"GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n")
    for k in conns:
        assert k.s.recv(1, socket.MSG_PEEK)
    gate.set()
    codings = []
    for k in conns:
        r = k.response("GET")
        assert body_of(r) == b"hello world" and r.tokens("vary") == ["accept-encoding"]
        codings.append(r.get("content-encoding"))
        k.close()
    assert 32 <= codings.count("gzip") < 90
    assert w.get("/", GZ).get("content-encoding") == "gzip"


def test_explain_says_why(site):
    w = site({"a.txt": TEXT, "a.png": TEXT, "big.txt": BIG})
    gz = "Accept-Encoding: gzip"
    for url, header, word in (("/a.txt", gz, "yes"), ("/a.txt", "X: y", "does not ask"), ("/a.png", gz, "gzip.types"),
                              ("/big.txt", gz, "yes")):
        out = w.cli("explain", "http://127.0.0.1:%d%s" % (w.port, url), "-H", header).stdout
        assert any(ln.startswith("gzip") and word in ln for ln in out.splitlines()), out
