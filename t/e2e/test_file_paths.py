# SPDX-License-Identifier: MIT
"""From path to file: decoding, traversal, alias, root + proxy, fallback, redirects and fixed answers."""
import os

import pytest
from harness.util import wait_for

SITE = 'sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; %s } );'


def test_c030_rules_see_the_decoded_resolved_merged_path(weir):
    w = weir(SITE % 'locations = ( { match = "/admin"; respond = 403; } );',
             files={"public/ADMIN/x": "upper", "public/admin;a=1/x": "parameter"})
    for path in ("//admin/x", "/./admin/x", "/a/../admin/x", "/a/%2e%2e/admin/x", "/%61dmin/x", "/admin%2fx"):
        assert (path, w.get(path).status) == (path, 403)
    assert w.get("/ADMIN/x").body == b"upper"


OUTSIDE = (
    "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/.%2e/secret.txt", "/a/../../secret.txt",
    "/..%5csecret.txt", "/%252e%252e/secret.txt", "/..%c0%afsecret.txt", "/../public-leak/x", "/....//secret.txt",
    "/./.././secret.txt", "/..;/secret.txt",
)


def test_c031_nothing_outside_the_root_is_served(weir):
    w = weir(SITE % "", files={"public/a/b": "", "secret.txt": "TOPSECRET", "public-leak/x": "TOPSECRET"})
    for path in [prefix + path for path in OUTSIDE for prefix in ("", "http://h.test")]:
        r = w.get(path)
        assert (path, r.status in (400, 404), b"TOPSECRET" in r.body) == (path, True, False)


def test_c032_exactly_one_decoding(weir):
    w = weir(SITE % "", files={"public/100%.txt": "1", "public/a%2fb": "2", "public/x%20y": "3", "public/a.txt": "4"})
    assert [w.get(p).body for p in ("/100%25.txt", "/a%252fb", "/x%2520y")] == [b"1", b"2", b"3"]
    assert w.get("/%2561.txt").status == 404


def test_c035_malformed_escapes(weir):
    w = weir(SITE % "", files={"public/a": "a"})
    for path in ("/foo%", "/a%z", "/a%4", "/%zz", "/%NETHOOD%", "/a%00", "/a.txt%00.html"):
        assert (path, w.get(path).status) == (path, 400)
    assert w.get("/a?q=100%").body == b"a"  # the query is left alone


def test_c036_plus_space_and_utf8(weir):
    names = {"a+b.txt": ["/a+b.txt", "/a%2Bb.txt"], "sp ace.txt": ["/sp%20ace.txt"],
             "naïve-ü.css": ["/na%C3%AFve-%C3%BC.css"], "日本.png": ["/%E6%97%A5%E6%9C%AC.png"]}
    w = weir(SITE % "", files={"public/" + n: n for n in names})
    for name, paths in names.items():
        for path in paths:
            assert (path, w.get(path).body.decode()) == (path, name)
    assert w.get("/sp+ace.txt").status == 404
    assert w.get("/nai%CC%88ve-u%CC%88.css").status == 404


@pytest.mark.parametrize("prefix", ["/files", "/files/"])
def test_c037_alias_cuts_at_a_segment(weir, prefix):
    w = weir(SITE % 'locations = ( { match = "%s"; alias = "share"; } );' % prefix,
             files={"share/a.txt": "a", "share/sub/b.txt": "b", "secret": "TOPSECRET", "public/filesystem": "other"})
    assert w.get("/files/a.txt").body == b"a"
    assert w.get("/files/sub/b.txt").body == b"b"
    assert w.get("/files/sub").get("location") == "/files/sub/"
    assert w.get("/filesystem").body == b"other"
    for path in ("/files../secret", "/files/../secret", "/files/..%2f../secret", "/files/%2e%2e/%2e%2e/secret"):
        r = w.get(path)
        assert r.status in (400, 404) and b"TOPSECRET" not in r.body
    assert w.get("/files/").status == 403
    r = w.get("/files")
    assert (r.status, r.get("location")) == ((301, "/files/") if prefix == "/files" else (404, None))


def test_an_alias_may_name_one_file(weir):
    w = weir(SITE % 'locations = ( { match = "= /favicon.ico"; alias = "icons/fav.ico"; } );',
             files={"icons/fav.ico": "icon", "public/x": ""})
    r = w.get("/favicon.ico")
    assert (r.status, r.body) == (200, b"icon") and r.get("content-type").startswith("image/")


@pytest.mark.parametrize("path", ["/dir%0d%0aSet-Cookie:%20a=1", "/dir%22", "/dir%1b"])
def test_c040_a_decoded_path_reaches_no_header_or_log_raw(weir, path):
    w = weir(SITE % "", files={n: "" for n in ("public/dir\r\nSet-Cookie: a=1/x", 'public/dir"/x', "public/dir\x1b/x")})
    r = w.get(path)
    assert (r.status, r.get("set-cookie")) == (301, None)
    assert r.get("location").lower() == path.lower() + "/"
    line = w.wait_access("GET /dir")
    assert "\x1b" not in line and len(w.access()) == 1


def test_c041_a_miss_is_404_and_not_the_apps_page(weir):
    w = weir(SITE % "", files={"public/index.html": "app", "public/dir/x": "", "public/locked": "x"})
    os.chmod(os.path.join(w.dir, "public/locked"), 0)
    for path in ("/assets/missing.js", "/" + "a" * 300, "/index.html/x", "/" + "a/" * 1000):
        r = w.get(path)
        assert (path, r.status) == (path, 404) and b"app" not in r.body
    if os.geteuid() != 0:
        assert w.get("/locked").status == 403


def test_c041_root_and_proxy_file_if_it_is_there_else_the_backend(weir, backend):
    origin = backend()
    w = weir(SITE % 'proxy = "@ORIGIN@";', ORIGIN=origin.addr,
             files={"public/a.txt": "file", "public/dir/index.html": "index", "public/.env": "x", "public/locked": "x"})
    os.mkfifo(os.path.join(w.dir, "public", "fifo"))
    os.symlink("../proxy.conf", os.path.join(w.dir, "public", "up"))
    os.chmod(os.path.join(w.dir, "public/locked"), 0)
    assert w.get("/a.txt?x=1").body == b"file"
    assert w.head("/a.txt").get("content-length") == "4"
    assert origin.targets() == []
    paths = ["/", "/assets/missing.js?v=%2F", "/dir", "/dir/", "/.env", "/fifo", "/up", "/a.txt/x", "/" + "a" * 300,
             "/%61.js"]
    if os.geteuid() != 0:
        paths.append("/locked")
    for path in paths:
        r = w.get(path)
        assert (path, r.status) == (path, 200) and r.get("location") is None
    w.post("/a.txt", b"body")
    w.request("DELETE", "/a.txt")
    assert [t.decode() if isinstance(t, bytes) else t for t in origin.targets()] == paths + ["/a.txt", "/a.txt"]


def test_root_and_proxy_with_an_index_of_the_location(weir, backend):
    origin = backend()
    w = weir("""sites = ( { listen = "127.0.0.1:@PORT@"; locations = (
        { match = "/"; root = "public"; proxy = "@ORIGIN@"; index = "index.html"; } ); } );""",
             ORIGIN=origin.addr, files={"public/index.html": "home", "public/dir/x": ""})
    assert w.get("/").body == b"home"
    assert origin.targets() == []
    w.get("/dir/")
    w.get("/dir")
    assert len(origin.targets()) == 2


def test_root_and_proxy_sees_a_new_file_within_a_second(weir, backend):
    origin = backend()
    w = weir(SITE % 'proxy = "@ORIGIN@";', ORIGIN=origin.addr, files={"public/x": ""})
    assert w.get("/new.txt").body != b"new"
    w.write("public/new.txt", "new")
    wait_for("the new file", 3, lambda: w.get("/new.txt").body == b"new")


def test_fallback_is_the_app_for_what_is_not_there(weir):
    w = weir(SITE % '''fallback = "/app.html"; locations = (
        { match = "/none/"; root = "public"; fallback = "/gone.html"; } );''',
             files={"public/app.html": "app", "public/a.txt": "a"})
    assert w.get("/a.txt").body == b"a"
    r = w.get("/some/route?x=1")
    assert (r.status, r.body, r.get("content-type")) == (200, b"app", "text/html; charset=utf-8")
    assert w.get("/none/x").body == b"app"
    assert w.post("/some/route", b"x").status == 405


def test_fallback_is_for_folders_without_index_too(weir):
    """An app's route may have the name of a folder of its files."""
    w = weir(SITE % '''fallback = "/app.html"; locations = (
        { match = "/list/"; root = "public"; fallback = "/app.html"; autoindex = "html"; },
        { match = "/d"; alias = "public/docs"; fallback = "/app.html"; },
        { match = "/e"; alias = "public/assets"; fallback = "/app.html"; } );''',
             files={"public/app.html": "app", "public/assets/a.js": "a", "public/docs/index.html": "docs",
                    "public/list/x": "x"})
    for path in ("/", "/assets", "/assets/", "/assets?x=1", "/e", "/e/"):
        assert (path, w.get(path).status, w.get(path).body) == (path, 200, b"app")
    assert w.get("/docs").get("location") == "/docs/" and w.get("/docs/").body == b"docs"
    assert w.get("/d").get("location") == "/d/" and w.get("/d/").body == b"docs"
    assert w.get("/assets/a.js").body == w.get("/e/a.js").body == b"a"
    assert "a link leads" not in w.errors()
    assert w.get("/list/").body != b"app"


def test_no_cache_keeps_a_fallback_under_another_name(weir):
    w = weir(SITE % 'fallback = "/app.html"; expires = "30d";',
             files={"public/app.html": "app", "public/a.0123456789abcdef.js": "a"})
    for headers, status in (({}, 200), ({"If-None-Match": "*"}, 304)):
        for path in ("/route", "/b.0123456789abcdef.js", "/"):
            assert (w.get(path, headers).status, w.get(path, headers).all("cache-control")) == (status, ["no-cache"])
    late = {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"}  # of a newer file that has had this name
    assert (w.get("/route", late).status, w.get("/app.html", late).status) == (200, 304)
    assert w.get("/app.html").get("cache-control") == "public, max-age=2592000"
    assert w.get("/a.0123456789abcdef.js").get("cache-control") == "public, max-age=2592000, immutable"


def test_fallback_that_is_not_there_is_404(weir):
    assert weir(SITE % 'fallback = "/gone.html";', files={"public/a": ""}).get("/x").status == 404


def test_redirects(weir):
    w = weir("""sites = ( { listen = "127.0.0.1:@PORT@"; locations = (
        { match = "/old"; redirect = "https://$host$request_uri"; },
        { match = "/temp"; redirect = { status = 302; to = "/new?$args"; }; } ); } );""")
    r = w.get("/old/a%20b?x=1")
    assert (r.status, r.get("location"), r.get("server")) == (301, "https://h.test/old/a%20b?x=1", "weir")
    assert w.head("/old").status == 301
    assert w.post("/old", b"x").status == 308
    r = w.get("/temp?a=1&b")
    assert (r.status, r.get("location")) == (302, "/new?a=1&b")


def test_fixed_answers(weir):
    w = weir("""sites = ( { listen = "127.0.0.1:@PORT@"; locations = (
        { match = "/gone"; respond = 410; }, { match = "/ok"; respond = "fine"; }, { match = "/empty"; respond = 204; },
        { match = "/json"; respond = { status = 201; body = "{}"; type = "application/json"; }; } ); } );""")
    r = w.get("/gone")
    assert r.status == 410 and r.get("content-type").startswith("text/html") and b"410" in r.body
    r = w.get("/ok")
    assert (r.status, r.body) == (200, b"fine") and r.get("content-type").startswith("text/plain")
    r = w.get("/empty")
    assert (r.status, r.body, r.get("content-length")) == (204, b"", None)
    r = w.post("/json", b"x")
    assert (r.status, r.body, r.get("content-type")) == (201, b"{}", "application/json")
    assert w.head("/ok").get("content-length") == "4"


def test_ready(weir):
    w = weir('''sites = ( { listen = "127.0.0.1:@PORT@"; locations = (
        { match = "= /ready"; builtin = "ready"; } ); } );''')
    r = w.get("/ready")
    assert (r.status, r.body, r.get("cache-control")) == (200, b"ready\n", "no-store")
