# SPDX-License-Identifier: MIT
"""What a backend sees instead of the target: strip_prefix, rewrite, and what a root makes of the first."""
import re

import pytest
from harness import raw

CONF = """
sites = (
  { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@";
    locations = (
      { match = "/api/"; proxy = "@ORIGIN@"; strip_prefix = true; },
      { match = "/v1"; proxy = "@ORIGIN@"; strip_prefix = "/v1/app"; },
      { match = "/mount"; root = "www"; proxy = "@ORIGIN@"; strip_prefix = true; },
      { match = "/only"; root = "www"; strip_prefix = true; fallback = "/only/index.html"; },
      { match = "/alias"; alias = "www/sub"; proxy = "@ORIGIN@"; strip_prefix = true; },
      { match = "~ ^/user/([^/]+)/(.*)$"; proxy = "@ORIGIN@"; rewrite = "/profile/$1/of?rest=$2&m=$request_method"; },
      { match = "~ ^/keep/(.*)$"; proxy = "@ORIGIN@"; rewrite = "/kept/$1"; strip_prefix = "/keep"; },
      { match = "/drop/"; proxy = "@ORIGIN@"; rewrite = "/dropped?"; },
      { match = "/args/"; proxy = "@ORIGIN@"; rewrite = "/args$is_args$args&more=1"; },
      { match = "/same/"; proxy = "@ORIGIN@"; rewrite = "$request_uri"; },
      { match = "/raw/"; proxy = "@ORIGIN@"; rewrite = "/raw/$http_x_part"; },
      { match = "/spa/"; root = "www"; fallback = "/backend/index"; },
      { match = "/backend/"; proxy = "@ORIGIN@"; }
    ); },
  { listen = "127.0.0.1:@PORTS@"; respond = "ok"; strip_prefix = "/x"; }
);
"""
FILES = {"www/a.txt": "a", "www/sub/b.txt": "b", "www/sub/index.html": "i", "www/index.html": "index", "www/mount/a.txt": "wrong"}


@pytest.fixture(scope="module")
def front():
    f = raw.Front(CONF, FILES)
    yield f
    f.close()


def sent(front, target, headers=(), status=200):
    front.origin.take()
    r = front.w.get(target, headers=list(headers))
    assert r.status == status, (target, r.status)
    return [q.target for q in front.settle()]


@pytest.mark.parametrize("target, want", [
    ("/api/users?x=%2F", "/users?x=%2F"), ("/api/", "/"), ("/api/?", "/?"), ("/api//a/./b%20c", "//a/./b%20c"),
    ("/%61pi/x%2fy", "/x%2fy"), ("/z/../api/x", "/x"), ("/api", "/api"),
    ("/v1/app/x", "/x"), ("/v1/app", "/"), ("/v1/apps", "/v1/apps"), ("/v1/x", "/v1/x"),
    ("/apis", "/apis"), ("/%2561pi/x", "/%2561pi/x")])
def test_strip_prefix(front, target, want):
    assert sent(front, target) == [want]


@pytest.mark.parametrize("target, want", [
    ("/user/ann/a/b", "/profile/ann/of?rest=a/b&m=GET"), ("/user/a%20b%2525/?x=1", "/profile/a%20b%2525/of?rest=&m=GET"),
    ("/user/a%0d%0aX:%20y/", "/profile/a%0D%0AX:%20y/of?rest=&m=GET"), ("/user/a%3fb/%23", "/profile/a%3Fb/of?rest=%23&m=GET"),
    ("/keep/x%20y?a=%20b", "/kept/x%20y?a=%20b"), ("/keep/x?", "/kept/x?"), ("/keep/", "/kept/"),
    ("/drop/x?a=b", "/dropped"), ("/args/x?a=b", "/args?a=b&more=1"), ("/same/%7e//x?a=%2f", "/same/%7e//x?a=%2f")])
def test_rewrite(front, target, want):
    assert sent(front, target) == [want]


@pytest.mark.parametrize("part, want", [("ok%20", "/raw/ok%20"), ("a b", None), ("a#b", None), ("%zz", None),
                                        ("../../x", None), ("a/../x", "/raw/a/../x"), ("%2e%2e/x", None), ("\u00e9", None)])
def test_what_a_variable_brings_is_judged_like_a_target(front, part, want):
    assert sent(front, "/raw/x", [("X-Part", part)], 200 if want else 400) == ([want] if want else [])


def test_the_method_host_and_body_stay(front):
    front.origin.take()
    assert front.w.post("/api/x", b"hello", host="h.test").status == 200
    q, = front.settle()
    assert (q.method, q.target, q.body, q.get("host")) == ("POST", "/x", b"hello", "h.test")


def test_a_root_sees_the_path_without_the_prefix(front):
    assert front.w.get("/mount/a.txt").body == b"a"
    assert sent(front, "/mount/none?x") == ["/none?x"]
    assert front.w.get("/only/a.txt").body == b"a"
    assert front.w.get("/only/none").body == b"index"
    assert front.w.get("/only/sub").get("location") == "/only/sub/"


def test_an_alias_cuts_by_itself(front):
    assert front.w.get("/alias/b.txt").body == b"b"
    assert sent(front, "/alias/none") == ["/none"]


def test_a_backend_behind_a_fallback_is_asked_for_the_fallback(front):
    assert sent(front, "/spa/some/page?x=1") == ["/backend/index?x=1"]


def test_options_star_is_about_the_server_whatever_is_cut(front):
    c = front.w.connect(port=front.w.ports["PORTS"])
    c.send(b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\nGET /y HTTP/1.1\r\nHost: h\r\n\r\nGET /x/y HTTP/1.1\r\nHost: h\r\n\r\n")
    assert [c.response().status for _ in range(3)] == [204, 404, 200]


def test_explain_shows_the_target(front):
    out = front.w.cli("explain", "/api/x?y").stdout
    assert re.search(r"^target +/x\?y +\S*proxy.conf:\d+$", out, re.M), out
    out = front.w.cli("explain", "/v1/x").stdout
    assert re.search(r"^lost +/v1: only matches beneath its strip_prefix", out, re.M), out


@pytest.mark.parametrize("lines, words", [
    ('rewrite = "x/$1";', 'expected a path that begins with "/"'),
    ('rewrite = "/x/$1";', "only a match by regular expression"),
    ('match = "~ (a)"; rewrite = "/x/$2";', "only 1 group in"),
    ('strip_prefix = "x";', "a prefix that begins with"),
    ('rewrite = "/$uri_x";', "no variable")])
def test_mistakes(cli, tmp_path, lines, words):
    conf = tmp_path / "proxy.conf"
    conf.write_text('sites = ( { listen = "8080"; locations = ( { proxy = "127.0.0.1:9"; %s } ); } );\n' % lines)
    done = cli("check", "-c", conf)
    assert done.returncode == 1 and words in done.stderr
