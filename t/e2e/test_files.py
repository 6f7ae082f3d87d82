# SPDX-License-Identifier: MIT
"""Static files: conditions, ranges, types, folders, what is no file, changes on disk, files of all sizes."""
import email.utils
import gzip
import hashlib
import os
import re
import socket
import threading
import time

import pytest
from harness.util import cpu_ms, scaled, wait_for
from wire import Closed

SITE = 'sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; %s } );'
OLD = 1700000000
IMF = "Tue, 14 Nov 2023 22:13:20 GMT"
EARLIER, LATER = "Mon, 13 Nov 2023 22:13:20 GMT", "Wed, 15 Nov 2023 22:13:20 GMT"
DATA = bytes((i * 7 + (i >> 8)) & 0xFF for i in range(100000))


def put(w, name, content, mtime=OLD):
    """A new file (by rename, so another inode) with an old mtime unless told otherwise."""
    path = os.path.join(w.dir, name)
    if mtime is None:
        return w.write(name, content)
    fresh = w.write(name + ".fresh", content)
    os.utime(fresh, (mtime, mtime))
    os.rename(fresh, path)
    return path


@pytest.fixture
def site(weir):
    """A server with some files in public/."""
    def make(extra="", conf=SITE, files=(), **kw):
        w = weir(conf % extra if "%s" in conf else conf, files={"public/index.html": "<p>home"}, **kw)
        for name, content in dict(files).items():
            put(w, name, content)
        return w
    return make


# --- conditional requests ---

@pytest.fixture
def abc(site):
    w = site(files={"public/a.txt": "abc"})
    w.etag = w.get("/a.txt").get("etag")
    assert re.fullmatch(r'"[0-9a-f]{16}"', w.etag)
    return w


def test_c042_if_none_match(abc):
    for values, status in ((["E"], 304), (["W/E"], 304), (['"x", E'], 304), (['"a,b", E'], 304), (["*"], 304),
                           (['"x"', "E"], 304), (['"x"'], 200), (["bare"], 200), ([""], 200)):
        lines = [("If-None-Match", v.replace("E", abc.etag)) for v in values]
        for method in ("GET", "HEAD"):
            r = abc.request(method, "/a.txt", lines)
            assert (values, r.status, r.get("etag")) == (values, status, abc.etag)
        assert (values, abc.get("/a.txt", lines + [("If-Modified-Since", LATER)]).status) == (values, status)


def test_c042_a_304_has_validators_and_no_body_fields(abc):
    r = abc.get("/a.txt", {"If-None-Match": abc.etag})
    assert (r.status, r.body, r.get("last-modified"), r.get("content-type")) == (304, b"", IMF, None)
    assert r.get("content-length") in (None, "3")


def test_if_modified_since(abc):
    for value, status in ((IMF, 304), (LATER, 304), (EARLIER, 200), ("soon", 200),
                          ("Tuesday, 14-Nov-23 22:13:20 GMT", 304), ("Tue Nov 14 22:13:20 2023", 304)):
        assert (value, abc.get("/a.txt", {"If-Modified-Since": value}).status) == (value, status)


def test_c044_if_match_and_if_unmodified_since(abc):
    k = abc.connect()
    for condition, status in (('If-Match: "x"', 412), ("If-Match: W/E", 412), ("If-Match: *", 200),
                              ('If-Match: "x", E', 200), ("If-Unmodified-Since: " + EARLIER, 412),
                              ("If-Unmodified-Since: " + IMF, 200), ("If-Unmodified-Since: soon", 200)):
        for extra in ("", "Range: bytes=0-0\r\n"):
            value = condition.replace(" E", " " + abc.etag).replace("W/E", "W/" + abc.etag)
            k.send(("GET /a.txt HTTP/1.1\r\nHost: h\r\n%s\r\n%s\r\n" % (value, extra)).encode())
            r = k.response("GET")
            assert (condition, r.status) == (condition, 206 if extra and status == 200 else status)
            if status == 412:
                assert int(r.get("content-length")) == len(r.body) and not r.wants_close()
    k.close()


# --- ranges ---

@pytest.fixture(params=["0", "32k", "1m"])
def data(request, site):
    """100,000 bytes, from a descriptor and from memory."""
    return site(conf='file_cache = { small = "%s"; };' % request.param + SITE % "", files={"public/data.bin": DATA})


def test_one_range(data):
    for spec, lo, hi in (("bytes=0-0", 0, 0), ("bytes=500-999", 500, 999), ("bytes=99990-", 99990, 99999),
                         ("bytes=-5", 99995, 99999), ("bytes=0-999999", 0, 99999), ("Bytes=0-1", 0, 1)):
        r = data.get("/data.bin", {"Range": spec})
        assert (r.status, r.get("content-range")) == (206, "bytes %d-%d/100000" % (lo, hi))
        assert r.body == DATA[lo:hi + 1] and r.get("content-length") == str(hi - lo + 1)
        assert r.get("etag") and r.get("last-modified") == IMF and r.get("content-type") == "application/octet-stream"


def test_several_ranges_are_multipart(data):
    k = data.connect()
    for _ in range(3):
        k.send(b"GET /data.bin HTTP/1.1\r\nHost: h\r\nRange: bytes=0-9, 50000-89999, -3\r\n\r\n")
        r = k.response("GET")
        boundary = re.fullmatch(r"multipart/byteranges; boundary=(\w+)", r.get("content-type")).group(1)
        want = b""
        for lo, hi in ((0, 9), (50000, 89999), (99997, 99999)):
            want += b"%s--%s\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes %d-%d/100000\r\n\r\n" % (
                b"\r\n" if want else b"", boundary.encode(), lo, hi) + DATA[lo:hi + 1]
        want += b"\r\n--%s--\r\n" % boundary.encode()
        assert (r.status, r.all("content-type"), r.get("content-range")) == (206, [r.get("content-type")], None)
        assert r.body == want
    k.close()


def test_multipart_to_a_slow_reader_and_to_one_who_leaves(site):
    big = os.urandom(1 << 20) * 4
    w = site(conf='file_cache = { small = "0"; };' + SITE % "", files={"public/big": big})
    ask = b"GET /big HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1999999,2100000-3999999,4100000-\r\n\r\n"
    for _ in range(3):
        gone = w.connect(rcvbuf=4096)
        gone.send(ask)
        gone.s.recv(1000)
        gone.close(reset=True)
    k = w.connect(rcvbuf=4096)
    k.send(ask)
    k.s.recv(1)
    r = _rest(k, scaled(20))
    assert hashlib.sha1(big[2100000:4000000]).digest() in {hashlib.sha1(p.split(b"\r\n\r\n", 1)[-1]).digest()
                                                           for p in r.split(b"\r\n--")}
    assert w.get("/").status == 200


def _rest(k, seconds):
    """What comes until nothing comes for a moment after the closing delimiter."""
    k.s.settimeout(seconds)
    got = b""
    while not re.search(rb"--\w+--\r\n$", got[-40:]):
        more = k.s.recv(1 << 16)
        assert more, "closed early"
        got += more
    k.close()
    return got


def test_c048_unknown_unit_and_malformed_range(data):
    for spec in ("lines=0-1", "bytes=abc", "bytes=4-2", "bytes=", "bytes=0-1-2", "bytes"):
        r = data.get("/data.bin", {"Range": spec})
        assert (spec, r.status, r.body == DATA) == (spec, 200, True)


def test_c048_two_range_fields_are_ignored(data):
    assert data.get("/data.bin", [("Range", "bytes=0-1"), ("Range", "bytes=3-4")]).body == DATA


def test_an_unsatisfiable_range(data):
    for spec in ("bytes=100000-", "bytes=-0"):
        r = data.get("/data.bin", {"Range": spec})
        assert (r.status, r.get("content-range")) == (416, "bytes */100000")


def test_a_range_of_an_empty_file_is_all_of_it(site):
    w = site(files={"public/empty.bin": ""})
    for spec in ("bytes=0-", "bytes=0-1023", "bytes=-5", "bytes=7-"):
        r = w.get("/empty.bin", {"Range": spec})
        assert (spec, r.status, r.get("content-length"), r.get("content-range")) == (spec, 200, "0", None)


def test_c049_many_or_overlapping_ranges(data):
    for spec in (["0-"] * 200, ["%d-%d" % (i, i) for i in range(0, 2000, 2)], ["%d-" % i for i in range(1000)]):
        r = data.get("/data.bin", {"Range": "bytes=" + ",".join(spec)})
        assert r.status in (200, 206) and len(r.body) <= len(DATA) + 1000


def test_c053_range_on_head(data):
    r = data.head("/data.bin", {"Range": "bytes=0-1"})
    assert (r.status, r.get("content-length"), r.get("content-range")) == (200, "100000", None)


def test_if_range(data):
    etag = data.get("/data.bin").get("etag")
    for value, status in ((etag, 206), ("W/" + etag, 200), ('"x"', 200), (IMF, 206), (LATER, 200), (EARLIER, 200)):
        assert data.get("/data.bin", {"Range": "bytes=0-1", "If-Range": value}).status == status, value


# --- files that change ---

@pytest.mark.parametrize("size, mtime", [(10, OLD), (10, 0), (200000, OLD), (200000, 499162500), (1500000, OLD),
                                         (1500000, 499162500)])
def test_c054_same_size_and_mtime_is_no_stale_304(site, size, mtime):
    w = site()
    put(w, "public/v.js", b"a" * size, mtime)
    first = w.get("/v.js")
    assert first.status == 200
    assert (first.get("last-modified") is None) == (mtime < 631152000)
    time.sleep(0.01)
    with open(os.path.join(w.dir, "public/v.js"), "r+b") as f:
        f.write(b"b" * size)
    os.utime(os.path.join(w.dir, "public/v.js"), (mtime, mtime))
    ask = {"If-None-Match": first.get("etag")} if first.get("etag") and size <= 1 << 20 else {}
    fresh = wait_for("the new content", 3, lambda: (lambda r: r.body[:1] == b"b" and r)(w.get("/v.js", ask)))
    # Nor may a cached copy of the new one be taken for the old one.
    if size <= 1 << 20:
        assert fresh.get("etag") != first.get("etag")


def test_c054_a_file_just_written_has_a_weak_etag_for_2_s(site):
    w = site()
    put(w, "public/a.txt", "fresh", None)
    r = w.get("/a.txt")
    assert r.get("etag").startswith('W/"')
    assert w.get("/a.txt", {"Range": "bytes=0-1", "If-Range": r.get("last-modified")}).status == 200
    strong = wait_for("a strong one", 5, lambda: (lambda e: e[0] == '"' and e)(w.get("/a.txt").get("etag")), every=0.1)
    assert "W/" + strong == r.get("etag")


def test_etags_are_equal_on_every_replica(site):
    w = site(files={"public/a/x.js": "same", "public/b/x.js": "same"})
    assert w.get("/a/x.js").get("etag") == w.get("/b/x.js").get("etag")


def test_a_renamed_over_and_a_deleted_file_are_noticed_within_a_second(site):
    w = site(conf="workers = 1;" + SITE % "", files={"public/a.txt": "one"})  # one cache for each loop
    assert w.get("/a.txt").body == b"one"
    put(w, "public/a.txt", "two")
    start = time.monotonic()
    wait_for("the new file", 3, lambda: w.get("/a.txt").body == b"two")
    assert time.monotonic() - start < scaled(1.5)
    os.unlink(os.path.join(w.dir, "public/a.txt"))
    wait_for("404", 3, lambda: w.get("/a.txt").status == 404)
    put(w, "public/a.txt", "three")
    assert w.get("/a.txt").body == b"three"  # a 404 is never remembered


def test_a_swapped_release_link_is_served_and_a_deleted_release_is_not(weir):
    w = weir('workers = 1; sites = ( { listen = "127.0.0.1:@PORT@"; root = "current"; } );',
             files={"current/a": "one", "v2/a": "two"})
    assert w.get("/a").body == b"one"
    os.rename(os.path.join(w.dir, "current"), os.path.join(w.dir, "v1"))
    os.symlink("v1", os.path.join(w.dir, "current"))
    wait_for("the same release by a link", 3, lambda: w.get("/a").body == b"one")
    os.symlink("v2", os.path.join(w.dir, "next"))
    os.rename(os.path.join(w.dir, "next"), os.path.join(w.dir, "current"))
    wait_for("the new release", 3, lambda: w.get("/a").body == b"two")
    os.unlink(os.path.join(w.dir, "current"))
    wait_for("404", 3, lambda: w.get("/a").status == 404)
    os.symlink("v1", os.path.join(w.dir, "current"))
    assert w.get("/a").body == b"one"


@pytest.mark.parametrize("length", [10, 0])
def test_c055_a_file_truncated_while_it_is_sent(site, length):
    w = site()
    path = os.path.join(w.dir, "public", "big")
    with open(path, "wb") as f:
        f.truncate(100 << 20)
    os.utime(path, (OLD, OLD))
    k = w.connect(rcvbuf=8192)
    k.send(b"GET /big HTTP/1.1\r\nHost: h\r\n\r\n")
    head = k.head()
    assert head.get("content-length") == str(100 << 20)
    os.truncate(path, length)
    got = len(k.rd.buf)
    k.s.settimeout(scaled(5))
    try:
        while True:
            more = k.s.recv(1 << 20)
            if not more:
                break
            got += len(more)
    except ConnectionResetError:
        pass
    assert got < 100 << 20
    w.wait_error("FILE_TRUNCATED")
    busy = cpu_ms(w.tree())
    time.sleep(0.3)
    assert cpu_ms(w.tree()) - busy < 100
    assert len(re.findall("FILE_TRUNCATED", w.errors())) == 1
    assert w.get("/").status == 200


# --- sizes ---

def test_c057_ranges_beyond_4_gib(site):
    w = site()
    path = os.path.join(w.dir, "public", "huge")
    with open(path, "wb") as f:
        f.truncate(5 << 30)
        f.seek(4294967296)
        f.write(b"0123456789")
        f.seek((5 << 30) - 1)
        f.write(b"!")
    assert w.head("/huge").get("content-length") == str(5 << 30)
    r = w.get("/huge", {"Range": "bytes=4294967296-4294967305"})
    assert (r.status, r.body, r.get("content-range")) == (206, b"0123456789", "bytes 4294967296-4294967305/5368709120")
    assert w.get("/huge", {"Range": "bytes=-1"}).body == b"!"


def _count(k, n):
    got, buf = len(k.rd.buf), bytearray(1 << 20)
    k.s.settimeout(scaled(60))
    while got < n:
        m = k.s.recv_into(buf)
        if m == 0:
            break
        got += m
    return got


@pytest.mark.long
def test_c057_a_file_of_5_gib_arrives_whole(site):
    w = site()
    with open(os.path.join(w.dir, "public", "huge"), "wb") as f:
        f.truncate(5 << 30)
    k = w.connect()
    k.send(b"GET /huge HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    k.head()
    assert _count(k, (5 << 30) + 1) == 5 << 30
    k.close()
    assert " 5368709120 " in w.wait_access("/huge")


def test_c059_a_fast_download_does_not_starve_small_requests(site):
    w = site(conf="workers = 1;" + SITE % "", files={"public/a.txt": "small"})
    size = 1 << 30
    with open(os.path.join(w.dir, "public", "big"), "wb") as f:
        f.truncate(size)
    k = w.connect()
    k.send(b"GET /big HTTP/1.1\r\nHost: h\r\n\r\n")
    k.head()
    done = []
    t = threading.Thread(target=lambda: done.append(_count(k, size)))
    t.start()
    times = []
    while t.is_alive() and len(times) < 20:
        start = time.monotonic()
        assert w.get("/a.txt").body == b"small"
        times.append(time.monotonic() - start)
    t.join()
    k.close()
    assert done == [size]
    assert sorted(times)[len(times) // 2] < scaled(0.1)


def test_c067_head_equals_get_and_empty_files(site):
    w = site(files={"public/a.txt": "abc", "public/empty.txt": ""})
    k = w.connect()
    for path in ("/a.txt", "/empty.txt", "/", "/none"):
        k.send(("HEAD %s HTTP/1.1\r\nHost: h\r\n\r\n" % path).encode())
        h = k.response("HEAD")
        k.send(("GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % path).encode())
        g = k.response("GET")
        assert h.status == g.status
        for name in ("content-length", "content-type", "etag", "last-modified", "accept-ranges", "server"):
            assert h.get(name) == g.get(name), name
    k.close()
    r = w.get("/empty.txt", {"Accept-Encoding": "gzip"})
    assert (r.status, r.get("content-length"), r.get("content-encoding")) == (200, "0", None)


# --- types and expiry ---

TYPES = (
    ("a.mjs", "text/javascript"), ("a.js", "text/javascript"), ("a.css", "text/css"), ("a.wasm", "application/wasm"),
    ("a.json", "application/json"), ("a.map", "application/json"), ("a.svg", "image/svg+xml"), ("a.webp", "image/webp"),
    ("a.avif", "image/avif"), ("a.woff2", "font/woff2"), ("a.ico", "image/x-icon image/vnd.microsoft.icon"),
    ("a.webmanifest", "application/manifest+json"), ("a.mp4", "video/mp4"), ("a.HTML", "text/html"),
    ("a.tar.gz", "application/gzip application/x-gzip"), ("noext", "application/octet-stream"), ("a.b.css", "text/css"),
)


def test_c062_mime_types(site):
    w = site(files={"public/" + name: "x" for name, _ in TYPES})
    for name, types in TYPES:
        assert (name, w.get("/" + name).get("content-type").split(";")[0] in types.split()) == (name, True)


def test_an_svgz_is_an_svg_that_is_stored_gzipped(site):
    packed = gzip.compress(b"<svg/>" * 500)
    w = site("gzip = true;", files={"public/a.svgz": packed, "public/a.svgz.gz": "not this"})
    for headers in ({}, {"Accept-Encoding": "gzip"}, {"Accept-Encoding": "identity"}):
        r = w.get("/a.svgz", headers)
        assert (r.body, r.all("content-encoding"), r.get("content-type")) == (packed, ["gzip"], "image/svg+xml")
        assert r.get("etag").startswith('"') and r.get("vary") is None
    r = w.get("/a.svgz", {"If-None-Match": r.get("etag")})
    assert (r.status, r.get("content-encoding"), r.get("content-type")) == (304, None, None)
    r = w.get("/a.svgz", {"Range": "bytes=0-1"})
    assert (r.status, r.body, r.get("content-encoding")) == (206, packed[:2], "gzip")


def test_own_media_types(weir):
    conf = ('workers = 1; mime_types = "mime.types"; file_cache = { valid = "1h"; };'
            ' sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; proxy = "127.0.0.1:1"; } );')
    w = weir(conf, files={"public/a.own": "x", "public/a.css": "a", "public/a.png": "p",
                          "mime.types": "types { text/x-own own; application/x-css css; }"})

    def types():
        return [w.get(path).get("content-type") for path in ("/a.own", "/a.css", "/a.png")]
    assert types() == ["text/x-own; charset=utf-8", "application/x-css", "image/png"]
    assert types() == ["text/x-own; charset=utf-8", "application/x-css", "image/png"]
    w.write("mime.types", "application/x-own own")
    w.reload()
    assert "generation 2: 1 top-level setting group changed" in w.errors()
    assert types() == ["application/x-own", "text/css; charset=utf-8", "image/png"]  # the cache knows no better
    w.write("mime.types", "types { oops")
    w.reload(refused=True)
    assert types()[0] == "application/x-own"


def test_c062_error_pages_are_html(site):
    assert site().get("/none.js").get("content-type").startswith("text/html")


def test_expires(site):
    w = site(conf="""sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; locations = (
        { match = "/long"; root = "public"; expires = "30d"; },
        { match = "/never"; root = "public"; expires = "epoch"; } ); } );""",
             files={"public/long/app.js": "1", "public/long/app.3f2a9c1d.js": "2", "public/never/a": "3",
                    "public/a": "4"})
    for headers, status in (({}, 200), ({"Range": "bytes=0-0"}, 206), ({"If-Modified-Since": IMF}, 304)):
        r = w.get("/long/app.js", headers)
        assert (r.status, r.all("cache-control")) == (status, ["public, max-age=2592000"])
        expires = email.utils.parsedate_to_datetime(r.get("expires")).timestamp()
        assert abs(expires - time.time() - 2592000) < scaled(5)
    assert w.get("/long/app.3f2a9c1d.js").get("cache-control") == "public, max-age=2592000, immutable"
    assert w.get("/never/a").get("cache-control") == "no-cache"
    assert w.get("/a").get("cache-control") is None and w.get("/a").get("expires") is None
    assert w.get("/long/none").get("cache-control") is None


# --- folders and what is no file ---

def test_a_folder_that_may_be_searched_but_not_read(site):
    w = site(conf='user = "nobody";' * (os.geteuid() == 0) + SITE % "",
             files={"public/open/index.html": "index", "public/shut/index.html": "no"})
    os.chmod(os.path.join(w.dir, "public/open"), 0o311)
    os.chmod(os.path.join(w.dir, "public/shut"), 0)
    assert w.get("/open").get("location") == "/open/" and w.get("/open/").body == b"index"
    assert w.get("/shut/").status == w.get("/shut/index.html").status == 403
    os.chmod(os.path.join(w.dir, "public/shut"), 0o700)


def test_c063_the_redirect_to_a_folder_is_relative(site):
    w = site(files={"public/docs/index.html": "docs"})
    for headers, version in (("Host: example.com\r\n", "1.1"), ("Host: example.com:8443\r\n", "1.1"), ("", "1.0"),
                             ("Host: example.com\r\nX-Forwarded-Proto: https\r\n", "1.1")):
        for method in ("GET", "HEAD"):
            k = w.connect()
            k.send(("%s /docs?x=1 HTTP/%s\r\n%s\r\n" % (method, version, headers)).encode())
            r = k.response(method)
            k.close()
            assert (headers, r.status, r.get("location")) == (headers, 301, "/docs/?x=1")


def test_c063_other_methods_are_refused(site):
    w = site(files={"public/docs/index.html": "docs"})
    for path in ("/docs", "/docs/", "/none"):
        r = w.post(path, b"x")
        assert (r.status, r.get("allow")) == (405, "GET, HEAD")


def test_c063_the_redirect_never_names_another_host(site):
    w = site(files={"public/docs/index.html": "docs", "public/d\\e/x": "", "public/ü d/x": ""})
    assert w.get("//docs").get("location") == "/docs/"
    assert w.get("//evil.test/%2e%2e/docs").get("location") == "/docs/"
    assert w.get("/d%5ce").get("location") == "/d%5Ce/"
    assert w.get("/%C3%BC%20d?").get("location") == "/%C3%BC%20d/?"


def test_c064_folders_with_and_without_index(site):
    w = site('index = ( "index.html", "index.htm" );', files={
        "public/dir/index.html": "index", "public/second/index.htm": "second", "public/empty/x": "",
        "public/odd/index.html/x": "", "public/a.txt": "a", "public/secret/index.html": "no"})
    os.chmod(os.path.join(w.dir, "public/secret/index.html"), 0)
    assert w.get("/dir/").body == b"index"
    assert w.get("/dir/").get("content-type") == "text/html; charset=utf-8"
    assert w.get("/second/").body == b"second"
    assert w.get("/").body == b"<p>home"
    assert [w.get(p).status for p in ("/empty/", "/odd/", "/none/", "/a.txt/", "/a.txt/b")] == [403, 403, 404, 404, 404]
    if os.geteuid() != 0:
        assert w.get("/secret/").status == 403


def test_c065_fifo_socket_device_are_404_at_once(site):
    w = site()
    public = os.path.join(w.dir, "public")
    os.mkfifo(os.path.join(public, "fifo"))
    s = socket.socket(socket.AF_UNIX)
    s.bind(os.path.join(public, "sock"))
    links = {"zero": "/dev/zero", "env": "/proc/self/environ", "root": "/", "loop": "loop", "gone": "nowhere"}
    for name, to in links.items():
        os.symlink(to, os.path.join(public, name))
    start = time.monotonic()
    for name in ("fifo", "sock", "zero", "env", "loop", "gone", "root/etc/passwd"):
        assert (name, w.get("/" + name).status) == (name, 404)
    assert time.monotonic() - start < scaled(2)
    assert w.get("/").status == 200
    s.close()


def test_links_beneath_the_root_and_into_followed_folders(site):
    w = site(conf="""sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; locations = (
        { match = "/f/"; alias = "public"; follow = "shared"; } ); } );""",
             files={"public/a.txt": "a", "shared/s.txt": "shared", "secret.txt": "TOPSECRET"})
    public = os.path.join(w.dir, "public")
    os.symlink("a.txt", os.path.join(public, "inside"))
    os.symlink(os.path.join(w.dir, "shared"), os.path.join(public, "abs"))
    os.symlink("../shared", os.path.join(public, "rel"))
    os.symlink("../secret.txt", os.path.join(public, "up"))
    os.symlink("../secret.txt", os.path.join(w.dir, "shared", "up"))
    assert w.get("/inside").body == b"a"
    for _ in range(2):
        assert [w.get(p).status for p in ("/abs/s.txt", "/rel/s.txt", "/up")] == [404] * 3
        assert [w.get("/f" + p).status for p in ("/abs/s.txt", "/rel/s.txt", "/up", "/abs/up")] == [200, 200, 404, 404]
    assert w.get("/f/rel/s.txt").body == b"shared"
    w.wait_error(r"public/up: a link leads out of the root.*`follow`")
    assert len(re.findall(r"public/up: a link leads", w.errors())) == 1


def test_c068_dotfiles(site):
    files = {"public/.env": "x", "public/.git/config": "x", "public/a/.htpasswd": "x", "public/..file": "x",
             "public/.well-known/acme-challenge/x": "token", "public/.well-known/.x": "x"}
    w = site(files=files)
    for path in ("/.env", "/%2eenv", "/.git/config", "/.git", "/a/.htpasswd", "/..file", "/.well-known/.x"):
        assert (path, w.get(path).status) == (path, 404)
    assert w.get("/.well-known/acme-challenge/x").body == b"token"
    assert site("dotfiles = true;", files=files).get("/.env").status == 200


# --- trouble ---

@pytest.mark.root
def test_c133_want_of_descriptors_is_503_and_passes(site):
    """The server's own limit is lowered from outside; what it has in memory it can still answer."""
    import resource
    w = site(conf='workers = 1; file_cache = { small = "0"; };' + SITE % "", files={"public/a.txt": "a"})
    k = w.connect()

    def ask(path=b"/a.txt"):
        k.send(b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % path)
        return k.response("GET").status

    assert ask(b"/none") == 404  # accepted, and the root is open
    pids = w.tree()
    old = {p: resource.prlimit(p, resource.RLIMIT_NOFILE) for p in pids}
    for p in pids:
        resource.prlimit(p, resource.RLIMIT_NOFILE, (4, old[p][1]))
    assert ask() == 503
    for p in pids:
        resource.prlimit(p, resource.RLIMIT_NOFILE, old[p])
    assert ask() == 200
    k.close()


@pytest.mark.root
def test_what_is_in_memory_needs_no_descriptor(site):
    import resource
    w = site(conf='workers = 1; file_cache = { valid = "0"; };' + SITE % "", files={"public/a.txt": "a"})
    k = w.connect()

    def ask():
        k.send(b"GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n")
        return k.response("GET").status

    assert ask() == 200
    old = {p: resource.prlimit(p, resource.RLIMIT_NOFILE) for p in w.tree()}
    for p in old:
        resource.prlimit(p, resource.RLIMIT_NOFILE, (4, old[p][1]))
    assert ask() == 200  # it cannot be looked at anew
    for p in old:
        resource.prlimit(p, resource.RLIMIT_NOFILE, old[p])
    put(w, "public/a.txt", "new")
    assert w.get("/a.txt").body == b"new"
    k.close()


def test_a_client_that_leaves_costs_nothing(site):
    w = site(conf="workers = 1;" + SITE % "", files={"public/big": b"x" * (8 << 20)})

    def descriptors():
        return sum(len(os.listdir("/proc/%d/fd" % p)) for p in w.tree())

    assert w.get("/big").status == 200
    before = descriptors()
    for _ in range(20):
        k = w.connect(rcvbuf=4096)
        k.send(b"GET /big HTTP/1.1\r\nHost: h\r\n\r\n")
        k.s.recv(100)
        k.close(reset=True)
    wait_for("descriptors given back", 5, lambda: descriptors() <= before)


def test_a_file_deleted_while_it_is_sent_arrives_whole(site):
    data = os.urandom(1 << 20) * 8
    w = site(files={"public/big": data})
    k = w.connect(rcvbuf=8192)
    k.send(b"GET /big HTTP/1.1\r\nHost: h\r\n\r\n")
    k.head()
    os.unlink(os.path.join(w.dir, "public", "big"))
    wait_for("404", 3, lambda: w.get("/big").status == 404)
    got = k.rd.buf
    k.s.settimeout(scaled(10))
    while len(got) < len(data):
        got += k.s.recv(1 << 20)
    assert got == data
    k.close()


def test_a_missing_root_is_404_until_it_is_there(site):
    w = site()
    os.rename(os.path.join(w.dir, "public"), os.path.join(w.dir, "away"))
    assert w.get("/").status == 404
    w.wait_error("root .*/public: No such file or directory")
    os.rename(os.path.join(w.dir, "away"), os.path.join(w.dir, "public"))
    assert w.get("/").body == b"<p>home"


def test_a_keepalive_connection_survives_every_outcome(site):
    w = site(files={"public/a.txt": "abc"})
    k = w.connect()
    for method, path, extra, status in (
            ("GET", "/none", "", 404), ("GET", "/a.txt", "If-Match: \"x\"\r\n", 412),
            ("GET", "/a.txt", "Range: bytes=9-\r\n", 416), ("GET", "/a.txt", "Range: bytes=0-0,2-2\r\n", 206),
            ("POST", "/a.txt", "Content-Length: 0\r\n", 405),
            ("HEAD", "/a.txt", "", 200), ("GET", "/a.txt", "", 200)):
        k.send(("%s %s HTTP/1.1\r\nHost: h\r\n%s\r\n" % (method, path, extra)).encode())
        try:
            assert k.response(method).status == status
        except Closed:
            pytest.fail("closed at %s %s" % (method, path))
    k.close()
