# SPDX-License-Identifier: MIT
"""docs/from-nginx.md does what it says: its examples run, and the Meteor set-up answers as the nginx one would."""
import gzip
import os
import re

import pytest
from harness.server import ROOT
from test_docs import blocks

with open(os.path.join(ROOT, "docs", "from-nginx.md")) as f:
    DOC = f.read()
CONF = [block for _, block in blocks(DOC) if re.search(r"^ *sites *=", block, re.M)]


def example(word):
    """The example that has this word in it, with ports for the test."""
    text, = [block for block in CONF if word in block]
    text = re.sub(r'listen = "\d+"', 'listen = "127.0.0.1:@PORT@"', text)
    return text.replace("127.0.0.1:3000", "@ORIGIN@")


HASH = "0123456789abcdefghij0123456789abcdefghij"
JS = b"console.log('hello');\n" * 100
FILES = {"programs/web.browser/%s.js" % HASH: JS, "programs/web.browser/%s.css" % HASH: b"a{}",
         "programs/web.browser/app/image.jpg": b"\xff\xd8jpeg" * 100, "programs/web.browser/app/a/doc.pdf": b"%PDF",
         "programs/web.browser/packages/ddp.js": JS, "programs/web.browser/app/private.txt": b"not served"}


@pytest.fixture
def meteor(weir, backend):
    origin = backend()
    return weir(example("web.browser/app"), ORIGIN=origin.addr, files=FILES), origin


def test_the_meteor_setup_line_by_line(meteor):
    w, origin = meteor
    for path, kind in (("/%s.js" % HASH, "text/javascript"), ("/%s.css" % HASH, "text/css"),
                       ("/image.jpg", "image/jpeg"), ("/a/doc.pdf", "application/pdf"),
                       ("/packages/ddp.js", "text/javascript")):
        r = w.get(path)
        assert (path, r.status, r.get("content-type").split(";")[0]) == (path, 200, kind)
        assert r.body == next(c for n, c in FILES.items() if n.endswith(path))
        assert r.all("cache-control")[0].startswith("public, max-age=2592000") and r.get("expires")
    assert w.get("/%s.JS" % HASH.upper()).status == 404  # ~* takes it in any case, but the file has one name
    assert w.get("/none.png").status == 404 and w.get("/packages/none.js").status == 404
    assert origin.targets() == []
    # Neither forty characters nor one of the endings: the app's.
    for path in ("/", "/private.txt", "/%s.js" % HASH[1:], "/sockjs/info", "/jpg"):
        w.get(path, host="shop.example.com:8080")
    seen = origin.take()
    assert [q.target for q in seen] == ["/", "/private.txt", "/%s.js" % HASH[1:], "/sockjs/info", "/jpg"]
    for q in seen:
        assert q.get("host") == "shop.example.com:8080" and q.get("x-forwarded-for") == "127.0.0.1"
        assert q.get("upgrade") is None
    # The ending without a $, as nginx has it.
    w.get("/image.jpg.html")
    assert origin.targets() == []


def test_gzip_of_the_meteor_setup(meteor):
    w, _ = meteor
    r = w.get("/%s.js" % HASH, {"Accept-Encoding": "gzip, deflate, br", "Via": "1.1 cdn"})
    assert r.get("content-encoding") == "gzip" and gzip.decompress(r.body) == JS
    assert r.tokens("vary") == ["accept-encoding"]
    assert w.get("/image.jpg", {"Accept-Encoding": "gzip"}).get("content-encoding") is None


def test_access_log_is_off_where_it_says_so(meteor):
    w, _ = meteor
    w.get("/image.jpg")
    w.get("/page")
    w.wait_access(r'"GET /page ')
    assert not any("image.jpg" in line for line in w.access())


def test_the_example_of_locations(weir, backend):
    origin = backend()
    w = weir(example("/health"), ORIGIN=origin.addr, files={
        "public/assets/a.css": "a", "public/app/index.html": "the page", "public/f.txt": "f", "public/x.php": "code"})
    assert w.get("/health").body == b"ok"
    assert w.get("/assets/a.css").get("cache-control") == "public, max-age=2592000"
    assert w.get("/assets/none.css").status == 404
    assert [w.get(p).body for p in ("/app/", "/app/some/route", "/files/f.txt", "/f.txt")] == \
        [b"the page", b"the page", b"f", b"f"]
    assert w.get("/x.php").status == 404 and b"f.txt" in w.get("/files/").body
    assert origin.targets() == []
    w.get("/filesystem")
    w.get("/health/more")
    assert origin.targets() == ["/filesystem", "/health/more"]


def test_the_example_of_compression(weir, backend):
    w = weir(example("/downloads/"), ORIGIN=backend().addr, files={
        "public/a.ttf": "x" * 512, "public/downloads/a.txt": "x" * 5000, "public/short.txt": "x" * 511})
    gz = {"Accept-Encoding": "gzip"}
    assert w.get("/a.ttf", gz).get("content-encoding") == "gzip"
    assert w.get("/short.txt", gz).get("content-encoding") is None
    r = w.get("/downloads/a.txt", gz)
    assert (r.get("content-encoding"), r.get("vary")) == (None, None)
