# SPDX-License-Identifier: MIT
"""Siblings FILE.br, FILE.zst and FILE.gz: which one is sent, under which head, and what happens when they change."""
import gzip
import hashlib
import json
import os
import re
import subprocess

import pytest
from harness.util import wait_for

PLAIN = b"body { color: red }\n" * 100
FORMS = {".br": (b"the br form", "br"), ".zst": (b"the zstd form", "zstd"),
         ".gz": (gzip.compress(PLAIN, mtime=0), "gzip")}
SITE = 'sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; %s } );'
OLD = 1700000000


def put(w, name, content, mtime=OLD):
    fresh = w.write("fresh.tmp", content)
    os.utime(fresh, (mtime, mtime))
    os.rename(fresh, os.path.join(w.dir, "public", name))


@pytest.fixture
def site(weir):
    def make(suffixes=tuple(FORMS), extra="", top="", name="a.css"):
        w = weir(top + SITE % extra, files={"public/" + name: PLAIN})
        put(w, name, PLAIN)
        for s in suffixes:
            put(w, name + s, FORMS[s][0])
        return w
    return make


def ask(w, accept, path="/a.css", **headers):
    return w.get(path, {**({} if accept is None else {"Accept-Encoding": accept}), **headers})


def test_by_quality(site):
    w = site()
    for accept, want in (("br", ".br"), ("zstd", ".zst"), ("gzip", ".gz"), ("gzip, br, zstd", ".br"),
                         ("gzip, zstd", ".zst"), ("br;q=0.5, gzip", ".gz"), ("BR", ".br"),
                         ("br;q=0.5, gzip;q=0.6, zstd;q=0.4", ".gz"),
                         ("*", ".br"), ("*, br;q=0", ".zst"),
                         ("br;q=0, zstd;q=0, *;q=0.1", ".gz"), ("x-gzip", ".gz"),
                         ("identity, gzip;q=0.5", None), ("identity;q=0.5, gzip;q=0.5", ".gz"), ("deflate", None),
                         ("", None), (None, None), ("br;q=0", None), ("*;q=0", None)):
        r = ask(w, accept)
        body, coding = FORMS[want] if want else (PLAIN, None)
        assert (accept, r.status, r.get("content-encoding")) == (accept, 200, coding)
        assert r.body == body and r.get("content-length") == str(len(body))
        assert r.get("content-type") == "text/css; charset=utf-8" and r.tokens("vary") == ["accept-encoding"]


def test_each_has_its_own_validators(site):
    w = site()
    put(w, "a.css.br", FORMS[".br"][0], OLD + 100)
    tags = {accept: ask(w, accept).get("etag") for accept in ("br", "zstd", "gzip", None)}
    assert len(set(tags.values())) == 4 and all(re.fullmatch(r'"[0-9a-f]{16}"', t) for t in tags.values())
    for accept, tag in tags.items():
        r = ask(w, accept, **{"If-None-Match": tag})
        assert (r.status, r.body, r.get("etag"), r.tokens("vary")) == (304, b"", tag, ["accept-encoding"])
        assert r.get("content-encoding") is None and r.get("content-type") is None
        for other in set(tags.values()) - {tag}:
            assert ask(w, accept, **{"If-None-Match": other}).status == 200
        assert ask(w, accept, **{"If-Match": tag}).status == 200
    assert ask(w, "br").get("last-modified") != ask(w, "gzip").get("last-modified")


def test_head_is_like_get(site):
    w = site()
    for accept in ("br", "gzip", "identity"):
        get, head = ask(w, accept), w.head("/a.css", {"Accept-Encoding": accept})
        assert head.body == b"" and {n: v for n, v in head.headers if n != "Date"} == \
            {n: v for n, v in get.headers if n != "Date"}


def test_ranges_are_of_the_form_chosen(site):
    w = site()
    coded = FORMS[".br"][0]
    r = ask(w, "br", Range="bytes=4-5")
    assert (r.status, r.body, r.get("content-encoding")) == (206, coded[4:6], "br")
    assert r.get("content-range") == "bytes 4-5/%d" % len(coded) and r.tokens("vary") == ["accept-encoding"]
    r = ask(w, "br", Range="bytes=0-0,4-5")
    assert (r.status, r.get("content-encoding")) == (206, "br") and b"Content-Type: text/css" in r.body
    r = ask(w, "br", Range="bytes=4-5", **{"If-Range": ask(w, None).get("etag")})
    assert (r.status, r.body) == (200, coded)
    r = ask(w, None, Range="bytes=4-5")
    assert (r.status, r.body, r.get("content-encoding")) == (206, PLAIN[4:6], None)
    assert r.tokens("vary") == ["accept-encoding"]


def test_asked_for_by_its_own_name(site):
    w = site()
    r = ask(w, "gzip", "/a.css.gz")
    assert (r.status, r.get("content-type"), r.get("content-encoding")) == (200, "application/gzip", None)
    assert ask(w, "br", "/a.css.br").get("content-encoding") is None


def test_without_siblings_nothing_varies(site):
    w = site(suffixes=())
    for accept in (None, "br", "gzip, br"):
        r = ask(w, accept)
        assert (r.body, r.get("vary"), r.get("content-encoding")) == (PLAIN, None, None)


def test_off(site):
    r = ask(site(extra="precompressed = false;"), "br")
    assert (r.body, r.get("vary"), r.get("content-encoding")) == (PLAIN, None, None)


def test_a_stale_or_empty_sibling_is_not_used(site):
    w = site(suffixes=(".br", ".zst", ".gz"))
    put(w, "a.css", PLAIN, OLD + 1)
    put(w, "a.css.gz", b"", OLD + 5)
    put(w, "a.css.zst", FORMS[".zst"][0], OLD + 1)
    for accept in ("br", "gzip"):
        r = ask(w, accept)
        assert (accept, r.body, r.get("content-encoding")) == (accept, PLAIN, None)
    assert ask(w, "br, zstd, gzip").get("content-encoding") == "zstd"


def test_appearing_changing_and_going(site):
    w = site(suffixes=(), top='workers = 1; file_cache = { valid = "20ms"; };')
    assert ask(w, "br").body == PLAIN
    put(w, "a.css.br", b"first")
    wait_for("the new sibling", 3, lambda: ask(w, "br").body == b"first")
    put(w, "a.css.br", b"other")
    wait_for("the changed sibling", 3, lambda: ask(w, "br").body == b"other")
    put(w, "a.css", PLAIN.upper(), OLD + 10)  # deployed without its sibling
    wait_for("the new file", 3, lambda: ask(w, "br").body == PLAIN.upper())
    put(w, "a.css.br", b"third", OLD + 10)
    wait_for("its sibling", 3, lambda: ask(w, "br").body == b"third")
    os.unlink(os.path.join(w.dir, "public", "a.css.br"))
    wait_for("the file itself", 3, lambda: ask(w, "br").body == PLAIN.upper())


def test_no_file_without_the_plain_one(site):
    w = site()
    os.unlink(os.path.join(w.dir, "public", "a.css"))
    wait_for("404", 3, lambda: ask(w, "br").status == 404)


def test_index_dotfiles_and_links(weir):
    w = weir(SITE % "", files={"public/index.html": PLAIN, "public/index.html.gz": FORMS[".gz"][0], "secret": "secret",
                               "public/b.css": PLAIN, "public/d.css": PLAIN})
    os.symlink("../secret", os.path.join(w.dir, "public", "b.css.br"))
    os.mkdir(os.path.join(w.dir, "public", "d.css.br"))
    os.mkfifo(os.path.join(w.dir, "public", "d.css.gz"))
    r = ask(w, "gzip", "/")
    assert (r.body, r.get("content-encoding")) == (FORMS[".gz"][0], "gzip")
    assert r.get("content-type") == "text/html; charset=utf-8"
    for path in ("/b.css", "/d.css"):
        r = ask(w, "br, gzip", path)
        assert (r.body, r.get("content-encoding")) == (PLAIN, None)


def test_with_the_gzip_filter(site):
    w = site(suffixes=(".br",), extra="gzip = true;")
    assert ask(w, "br, gzip").get("content-encoding") == "br"
    r = ask(w, "gzip")
    assert r.get("content-encoding") == "gzip" and gzip.decompress(r.body) == PLAIN
    assert ask(w, "br;q=0.5, gzip").get("content-encoding") == "gzip"
    w = site(extra='gzip = { types = "*/*"; min_length = 0; };')
    for accept in ("br", "gzip"):
        r = ask(w, accept)
        assert (r.body, r.all("content-encoding")) == (FORMS["." + accept[:2]][0], [accept])  # never twice


def test_behind_it_a_backend(weir, backend):
    w = weir(SITE % 'proxy = "@ORIGIN@";', ORIGIN=backend().addr,
             files={"public/a.css": PLAIN, "public/a.css.br": b"br", "public/only.css.br": b"br"})
    assert ask(w, "br").body == b"br"
    assert ask(w, "br", "/only.css").get("content-encoding") is None  # the backend's, as there is no such file


@pytest.mark.root
def test_absence_costs_no_system_call(site):
    """In the steady state a request with Accept-Encoding makes the calls that one without makes."""
    if subprocess.run(["which", "strace"], stdout=subprocess.DEVNULL).returncode:
        pytest.skip("needs strace")
    w = site(suffixes=(), top='workers = 1; file_cache = { valid = "1h"; };')
    k = w.connect()

    def once(lines):
        k.send(("GET /a.css HTTP/1.1\r\nHost: h\r\n%s\r\n" % lines).encode())
        assert k.response("GET").body == PLAIN
    for _ in range(3):
        once("Accept-Encoding: gzip, br, zstd\r\n")
    out = os.path.join(w.dir, "trace")
    calls = "trace=openat2,openat,open,stat,newfstatat,statx,fstat"
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", out, "-e", calls, "-p", str(w.tree()[-1])],
                              stderr=subprocess.DEVNULL)
    wait_for("strace is attached", 5, lambda: os.path.exists(out) and _traced(w.tree()))
    try:
        for _ in range(20):
            once("Accept-Encoding: gzip, br, zstd\r\n")
    finally:
        tracer.terminate()
        tracer.wait()
    k.close()
    with open(out) as f:
        assert "a.css" not in f.read()


def _traced(pids):
    for pid in pids:
        with open("/proc/%d/status" % pid) as f:
            if not re.search(r"^TracerPid:\s+0$", f.read(), re.M):
                return True
    return False


def test_of_a_meteor_bundle(weir):
    sha1 = hashlib.sha1(PLAIN).hexdigest()
    manifest = {"format": "web-program-pre1", "manifest": [
        {"path": "app/x.css", "where": "client", "type": "css", "cacheable": True, "url": "/x.css?hash=" + sha1,
         "sourceMapUrl": "/x.map", "hash": sha1, "size": len(PLAIN)}]}
    program = "bundle/programs/web.browser/"
    w = weir('sites = ( { listen = "127.0.0.1:@PORT@"; meteor_bundle = "bundle"; respond = 404; gzip = true; } );',
             files={program + "program.json": json.dumps(manifest), program + "app/x.css": PLAIN,
                    program + "app/x.css.br": b"br"})
    plain, coded, filtered = (ask(w, accept, "/x.css") for accept in (None, "br", "gzip"))
    assert (plain.body, plain.get("etag")) == (PLAIN, '"%s"' % sha1)
    assert (coded.body, coded.get("content-encoding")) == (b"br", "br")
    assert gzip.decompress(filtered.body) == PLAIN and filtered.get("etag") == 'W/"%s"' % sha1
    for r in (coded, filtered):  # all that the manifest says, but for the validator
        assert r.tokens("vary") == plain.tokens("vary") == ["accept-encoding"] and r.get("etag") != plain.get("etag")
        for name in ("content-type", "cache-control", "sourcemap", "last-modified"):
            assert (name, r.get(name)) == (name, plain.get(name))
    for r, accept in ((plain, None), (coded, "br"), (filtered, "gzip")):
        assert ask(w, accept, "/x.css", **{"If-None-Match": r.get("etag")}).status == 304
