# SPDX-License-Identifier: MIT
"""Listings of folders: what they show, how names are written, and how much of a folder is read."""
import html
import json
import os
import re
import urllib.parse

import pytest
from harness.util import scaled

SITE = 'sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; autoindex = "%s"; %s } );'
OLD = 1700000000
HREF = re.compile(r'<a href="([^"]*)">([^<]*)</a>')


@pytest.fixture
def site(weir):
    def make(kind="html", extra="", files=()):
        return weir(SITE % (kind, extra), files={"public/%s" % n: c for n, c in dict(files).items()})
    return make


def links(r):
    return [(html.unescape(a), html.unescape(b)) for a, b in HREF.findall(r.body.decode())]


NAMES = ["a.txt", "A", "b c", "ü.txt", "<script>alert(1)</script>", "a&b", "it's", 'say "hi"', "100%", "q?x#y",
         "http:", "a\nb", "~x", "+", "日本"]


def test_html_names_can_be_followed(site):
    w = site(files={n: "content of " + n for n in NAMES if "/" not in n})
    w.write("public/dir/x", "")
    os.makedirs(os.path.join(w.dir, "public", "script>"), exist_ok=True)
    with open(os.path.join(w.dir.encode(), b"public", b"bad\xff\x01name"), "w") as f:
        f.write("content of bad")
    r = w.get("/")
    assert (r.status, r.get("content-type"), r.get("cache-control")) == (200, "text/html; charset=utf-8", "no-cache")
    assert "<script>" not in r.body.decode()  # valid UTF-8, and no markup of others
    names = {urllib.parse.unquote_to_bytes(a): b for a, b in links(r)}
    for n in NAMES:
        if "/" in n:
            continue
        assert b"./" + n.encode() in names, n
        href = next(a for a, _ in links(r) if urllib.parse.unquote_to_bytes(a) == b"./" + n.encode())
        assert w.get("/" + href[2:]).body == ("content of " + n).encode()
    assert names[b"./dir/"] == "dir/" and names["./ü.txt".encode()] == "ü.txt"
    assert names[b"./bad\xff\x01name"] == "bad\ufffd\ufffdname"
    assert "../" not in [a for a, _ in links(r)]


def test_order_and_what_is_hidden(site):
    w = site(files={n: "x" for n in ("b", "a", "B", "z/1", "c/1", ".hidden", ".git/config", "a.txt")})
    root = os.path.join(w.dir, "public")
    w.write("outside/secret", "")
    os.symlink("a", os.path.join(root, "link"))
    os.symlink("z", os.path.join(root, "linkdir"))
    os.symlink("../outside/secret", os.path.join(root, "leak"))
    os.symlink("nowhere", os.path.join(root, "dangling"))
    os.mkfifo(os.path.join(root, "fifo"))
    assert [b for _, b in links(w.get("/"))] == ["c/", "linkdir/", "z/", "B", "a", "a.txt", "b", "link"]
    sub = w.get("/z/")
    assert [b for _, b in links(sub)] == ["../", "1"]
    w = site(extra="dotfiles = true;", files={".hidden": "", "a": ""})
    assert [b for _, b in links(w.get("/"))] == [".hidden", "a"]


def test_json(site):
    w = site("json", files={"b.txt": "12345", "dir/x": "", 'q"\\\t': ""})
    os.utime(os.path.join(w.dir, "public", "b.txt"), (OLD, OLD))
    r = w.get("/")
    assert (r.status, r.get("content-type"), r.get("vary")) == (200, "application/json", None)
    listing = json.loads(r.body)
    assert [e["name"] for e in listing] == ["dir", "b.txt", 'q"\\\t']
    assert listing[1] == {"name": "b.txt", "type": "file", "mtime": "Tue, 14 Nov 2023 22:13:20 GMT", "size": 5}
    assert listing[0]["type"] == "directory" and "size" not in listing[0]
    os.mkdir(os.path.join(w.dir, "public", "empty"))
    assert json.loads(w.get("/empty/").body) == []


def test_by_accept(site):
    w = site("auto", files={"a": ""})
    for accept, kind in ((None, "text/html"), ("text/html,*/*;q=0.8", "text/html"), ("*/*", "text/html"),
                         ("application/json", "application/json"),
                         ("application/json, text/html;q=0.9", "application/json")):
        r = w.get("/", {"Accept": accept} if accept else {})
        assert (accept, r.get("content-type").split(";")[0], r.tokens("vary")) == (accept, kind, ["accept"])


def test_head_and_methods(site):
    w = site(files={"a": ""})
    get, head = w.get("/"), w.head("/")
    assert head.body == b"" and head.get("content-length") == get.get("content-length") == str(len(get.body))
    assert w.post("/", b"x").status == 405


def test_where_it_does_not_apply(site, weir, backend):
    w = site(files={"a/index.html": "index", "b/x": "", "c.txt": ""}, extra='locations = ('
             ' { match = "/off/"; alias = "public/"; autoindex = "off"; } );')
    assert w.get("/a/").body == b"index"
    assert (w.get("/b").status, w.get("/b").get("location")) == (301, "/b/")
    assert w.get("/off/b/").status == 403
    assert w.get("/c.txt/").status == 404 and w.get("/none/").status == 404
    origin = backend()
    w = weir('sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; proxy = "@ORIGIN@"; autoindex = "html"; } );',
             ORIGIN=origin.addr, files={"public/b/x": ""})
    w.get("/b/")
    assert origin.targets() == ["/b/"]


@pytest.mark.root
def test_an_unreadable_folder(weir):
    w = weir('user = "nobody";' + SITE % ("html", ""), files={"public/a/x": "", "public/b/x": ""})
    os.chmod(os.path.join(w.dir, "public", "a"), 0o700)
    assert w.get("/b/").status == 200
    assert w.get("/a/").status == 403


def test_a_big_folder_is_cut(site):
    w = site(files={"small/x": ""})
    big = os.path.join(w.dir, "public", "big")
    os.mkdir(big)
    for i in range(6000):
        os.close(os.open("%s/file-%04d" % (big, i), os.O_CREAT | os.O_WRONLY, 0o644))
    r = w.get("/big/", timeout=20)
    names = [b for _, b in links(r)][1:]
    assert len(names) == 5000 and names == sorted(names)
    assert r.get("x-autoindex-cut") == "true" and b"only 5000 entries" in r.body
    assert w.get("/small/").get("x-autoindex-cut") is None


def test_compressed_like_any_other_answer(site):
    w = site(extra="gzip = true;", files={"file-%d" % i: "" for i in range(100)})
    r = w.get("/", {"Accept-Encoding": "gzip"})
    assert r.get("content-encoding") == "gzip" and r.tokens("vary") == ["accept-encoding"]
    assert len(r.body) < len(w.get("/").body) / 3
