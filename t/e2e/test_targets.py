# SPDX-License-Identifier: MIT
"""What a request target means (section B of the cases): forwarded byte for byte, judged by its decoded path, never
a way out of the root."""
import os
import re

import pytest
from harness import raw
from harness.raw import get

CONF = """
sites = (
  { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@";
    locations = (
      { match = "/admin/"; respond = { status = 403; body = "rule"; }; },
      { match = "= /exact"; respond = { status = 403; body = "rule"; }; },
      { match = "~ ^/hidden/.*$"; respond = { status = 403; body = "rule"; }; },
      { match = "~ ^/secret/"; respond = { status = 403; body = "rule"; }; },
      { match = "~ ^/steps(/(a|b|ab))*$"; respond = { status = 403; body = "rule"; }; },
      { match = "~ ^/search/(.*)$"; proxy = "@ORIGIN@"; rewrite = "/q?for=$1&from=$uri"; },
      { match = "~ ^/moved(.*)$"; redirect = "/$1"; },
      { match = "~ /slash$"; redirect = "$request_uri/"; },
      { match = "= /meant"; redirect = "//other.test$uri"; },
      { match = "/refused/"; proxy = "@ORIGIN@"; deny = ( "0.0.0.0/0", "::/0" ); },
      { match = "/www/"; root = "top"; },
      { match = "/assets/"; root = "top"; },
      { match = "/tried/"; root = "top"; proxy = "@ORIGIN@"; },
      { match = "/files"; alias = "share/"; },
      { match = "/api"; strip_prefix = true; proxy = "@ORIGIN@"; },
      { match = "/x-header/"; respond = "ok"; response_headers = { X-Path = "$uri"; }; },
      { match = "/to-uri/"; redirect = "https://new.test$uri"; },
      { match = "/to-request-uri/"; redirect = "https://new.test$request_uri"; }
    ); },
  { listen = "127.0.0.1:@PORTS@"; root = "top/www"; },
  { listen = "127.0.0.1:@PORTS@"; names = ( "other.test" ); respond = "the other site"; },
  { listen = "127.0.0.1:@PORTR@"; root = "top/www"; proxy = "@ORIGIN@"; }
);
"""
SECRET = "SECRET outside the root"
CRLF_DIR = "dir\r\nSet-Cookie: a=1"
FILES = {
    "top/www/a.txt": "a", "top/www/a/b.txt": "b", "top/www/100%.txt": "percent", "top/www/a%2fb": "literal",
    "top/www/x%20y": "escape",
    "top/www/a+b.txt": "plus", "top/www/sp ace.txt": "space", "top/www/na\u00efve-\u00fc.css": "nfc",
    "top/www/\u65e5\u672c.png": "png",
    "top/www/" + CRLF_DIR + "/x.txt": "x", "top/www/q\"<>.txt": "quote", "top/www/back\\slash.txt": "backslash",
    "top/www/semi;a=1": "semi",
    "top/www/in/index.html": "index", "top/www/none/x": "x",
    "top/secret.txt": SECRET, "top/www-leak/x": SECRET, "secret.txt": SECRET, "secret": SECRET, "share/f.txt": "shared",
    "share/index.html": "share index", "share-secret": SECRET, "top/assets/a.js": "js", "top/tried/a.js": "js",
    "top/tried/d/x": "x",
    "top/tried/i/index.html": "index", "top/assets/d/x": "x",
}


@pytest.fixture(scope="module")
def front():
    f = raw.Front(CONF, FILES)
    os.symlink("loop", os.path.join(f.w.dir, "top/assets/loop"))
    os.symlink("loop", os.path.join(f.w.dir, "top/tried/loop"))
    yield f
    f.close()


def static(front, target, port="PORTS"):
    """The answer of the site that serves top/www, and what it wrote into the log."""
    return front.w.get(target, port=front.w.ports[port])


# --- forwarding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [
    b"/a%2Fb%20c/%7e/x;v=1?q=%2F+&%zz=1", b"//a//b", b"/a/./b/../c", b"/?", b"/x%2e%2e/", b"/", b"/a/", b"/a//",
    b"/A%2fB", b"/%7E", b"/~",
    b"/a?", b"/a?b?c", b"/a?/../b", b"/a?q=100%", b"/?%", b"/?&&=;", b"/a=b&c", b"/%C3%A9", b"/a+b%2Bc",
    b"/!$&'()*,;=:@", b"/..a/...",
    b"/.a/b.", b"/a%3Fb?c", b"/a%23b", b"/a%25b", b"/a%5Cb", b"/a%0Ab", b"/%41", b"/a/.", b"/a/..", b"/a/%3b",
    b"/x/.well-known/y",
    b"/a|b{c}\"<>^`", b"/a[1]", b"/a?x=|{}\"<>^`[]\\", b"/a\\b", b"//", b"///x", b"/a%20", b"/c/%e2%80%ae", b"/a?%00",
    b"/sockjs/123/abc/xhr_send",
])
def test_c028_c019_targets_are_forwarded_byte_for_byte(front, target):
    t = front.ask(get(target))
    assert t.statuses == [200]
    assert [q.target.encode("latin-1") for q in t.requests] == [target]


def test_c019_bytes_that_no_target_has(front):
    odd = [bytes([c]) for c in list(range(0x00, 0x20)) + [0x7f, 0x80, 0xa0, 0xff]] + [b"\xc3\xa9", b"#", b"#frag",
                                                                                      b" x"]
    front.refused({repr(o): get(b"/a" + o + b"b") for o in odd if o not in (b"\r", b"\n")}, (400, 505))
    front.refused({"query %r" % o: get(b"/a?" + o + b"b") for o in odd if o not in (b"\r", b"\n")}, (400, 505))
    front.refused({"absolute %r" % o: get(b"http://h.test/a" + o) for o in (b"#f", b"\xff", b"\x01", b"\x7f")})


def test_c016_absolute_form(front):
    def ask(target, host=b"Host: h\r\n", **kw):
        return front.ask(get(target, host=host, **kw))

    t = ask(b"http://other/admin/x?y=1")
    assert (t.statuses, t.responses[0].body) == ([403], b"rule") and not t.requests
    for target in (b"http://other/exact", b"http://other/secret/x", b"http://other//admin/x",
                   b"http://other/%61dmin/x", b"HTTP://other/a/../admin/x"):
        assert ask(target).responses[0].body == b"rule"
    for target, sent, host in ((b"http://other/x?y=1", "/x?y=1", "other"), (b"http://other", "/", "other"),
                               (b"HTTP://h:80/x", "/x", "h:80"),
                               (b"http://other?q", "/?q", "other"), (b"http://other/?", "/?", "other"),
                               (b"https://other:8443/", "/", "other:8443"),
                               (b"http://[::1]:80/a//b", "/a//b", "[::1]:80"),
                               (b"http://h/http://x/", "/http://x/", "h")):
        t = ask(target)
        if t.statuses == [400]:  # a Host that differs may be refused instead
            assert host != "h" and not t.requests
            continue
        assert t.statuses == [200]
        assert [(q.target, q.all("host")) for q in t.requests] == [(sent, [host])], target
    t = ask(b"http://h/x", version=b"HTTP/1.0", host=b"")
    assert t.statuses == [200] and t.requests[0].target == "/x"
    front.refused({"above root": get(b"http://h/../x"), "bad escape": get(b"http://h/%zz")})


def test_c016_c027_options_about_the_server_in_absolute_form(front):
    t = front.ask(get(b"http://other.test:80", method=b"OPTIONS"), "OPTIONS")  # RFC 9112 section 3.2.4
    assert t.statuses == [200] and [(q.target, q.all("host")) for q in t.requests] == [("*", ["other.test:80"])]
    t = front.ask(get(b"http://other.test/", method=b"OPTIONS"), "OPTIONS")
    assert t.statuses == [200] and [q.target for q in t.requests] == ["/"]


def test_c016_the_site_is_that_of_the_target(front):
    port = front.w.ports["PORTS"]
    r = front.w.get("http://other.test/a.txt", port=port, host="h.test")
    assert r.status == 400 or r.body == b"the other site"
    r = front.w.get("http://h.test/a.txt", port=port, host="other.test")
    assert r.status == 400 or r.body == b"a"


# --- location matching ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [
    b"//admin/x", b"/./admin/x", b"/a/../admin/x", b"/a/%2e%2e/admin/x", b"/%61dmin/x", b"/admin%2fx", b"/admin%2Fx",
    b"/admin/x", b"/%2fadmin/x",
    b"/admin//x", b"/admin/./x", b"///admin///x", b"/a/b/../../admin/x", b"/a/.%2e/admin/x", b"/a/%2E./admin/x",
    b"/%2e/admin/x",
    b"/%61%64%6d%69%6e/x", b"/x/..//admin/x", b"/a%2f..%2fadmin/x", b"/a/..%2fadmin/x", b"/admin/", b"/admin/?x",
    b"/admin/../admin/x",
    b"/admin%2f%2fx", b"/a/%2e%2e%2fadmin/x", b"/./exact", b"/e%78act", b"/a/../exact", b"//exact", b"/exact?x",
    b"/%73ecret/x", b"/.//secret/x",
    b"/secret%2fx", b"/a/..//secret/x", b"/hidden/x%0a", b"/hidden/%0ax", b"/hidden/x%0d%0ay"])
def test_c030_rules_see_the_decoded_resolved_path(front, target):
    t = front.ask(get(target))
    assert not t.requests
    assert t.statuses == [403] and t.responses[0].body == b"rule"


@pytest.mark.parametrize("target", [b"/ADMIN/x", b"/admin;a=1/x", b"/adminx/", b"/x?/admin/", b"/x/admin/",
                                    b"/admin%3b/x", b"/%2561dmin/x",
                                    b"/Exact", b"/exact/", b"/exactly", b"/Secret/x", b"/x/secret/", b"/admin%252fx",
                                    b"/admin\\x"])
def test_c030_and_no_other(front, target):
    t = front.ask(get(target))
    assert t.statuses == [200]
    assert [q.target.encode() for q in t.requests] == [target]


@pytest.mark.parametrize("target", [b"/%72efused/x", b"//refused/x", b"/a/../refused/x", b"/refused%2fx"])
def test_c030_an_address_rule_is_not_passed_by_spelling_the_path_otherwise(front, target):
    t = front.ask(get(target))
    assert t.statuses in ([403], [400]) and not t.requests


@pytest.mark.parametrize("target", [b"/x/%2e%2e/y", b"/x/.%2e/y", b"/x%2f..%2fy", b"/x/..%2fy", b"/x%2f../y",
                                    b"/a/b%2f../../c", b"/%2e/x",
                                    b"/x/%2e/y", b"/x//../y"])
def test_c030_where_two_readers_would_differ_a_backend_is_not_asked(front, target):
    """Encoded dots and slashes that change the result of dot resolution: routed decoded, forwarded raw, so refused."""
    t = front.ask(get(target), eof=2)
    assert t.statuses == [400] and not t.requests


def test_c030_a_rule_that_takes_too_many_steps_is_not_passed_by(front):
    assert front.ask(get(b"/steps/a/ab")).statuses == [403]
    t = front.ask(get(b"/steps" + b"/ab" * 4000))
    assert t.statuses == [500] and not t.requests
    assert front.w.wait_error(r"REGEX_LIMIT: .* steps: ~ \^/steps\(/\(a\|b\|ab\)\)\*\$ while choosing a location")


@pytest.mark.parametrize("path, sent", [
    (b"a%26from=x", "a%26from=x"), (b"a&b=c;d", "a%26b=c%3Bd"), (b"a+b", "a%2Bb"), (b"a%20b", "a%20b"), (b"%3f%23", "%3F%23"),
    (b"x%25", "x%25"), (b"a/b", "a/b")])
def test_a_part_of_the_path_ends_no_parameter_of_a_rewritten_query(front, path, sent):
    t = front.ask(get(b"/search/" + path))
    assert [q.target for q in t.requests] == ["/q?for=%s&from=/search/%s" % (sent, sent)]


@pytest.mark.parametrize("target, to", [
    ("/moved/evil.test/x", "/evil.test/x"), ("/moved%2f%2fevil.test", "/evil.test"), ("/moved%5cevil.test", "/%5Cevil.test"),
    ("//evil.test/slash", "/evil.test/slash/"), ("/\\evil.test/slash", "/evil.test/slash/"),
    ("/\\/evil.test/slash", "/evil.test/slash/"), ("/x/slash", "/x/slash/"), ("/meant", "//other.test/meant")])
def test_a_client_cannot_make_a_redirect_lead_to_another_host(front, target, to):
    r = front.w.get(target)
    assert (r.status, r.get("location")) == (301, to)


def test_c035_malformed_escapes(front):
    paths = [b"/foo%", b"/a%z", b"/a%4", b"/%zz", b"/%NETHOOD%", b"/%", b"/%0", b"/%0g", b"/%g0", b"/%%", b"/%u0041",
             b"/a%2", b"/%-1",
             b"/%+1", b"/%1%41", b"/a%2?x=%41", b"/%00", b"/a%00b", b"/a.txt%00", b"/a.txt%00.jpg", b"/%25%",
             b"/%\xff\xff"]
    front.refused({repr(p): get(p) for p in paths})
    port = front.w.ports["PORTS"]
    for p in paths[:-1]:
        r = front.w.get(p.decode(), port=port)
        assert r.status == 400 and r.wants_close(), p
    t = front.ask(get(b"/ok?q=100%"))
    assert t.statuses == [200] and t.requests[0].target == "/ok?q=100%"
    assert static(front, "/a.txt?q=100%&%zz").body == b"a"


# --- the file system ------------------------------------------------------------------------------------------------

OUT = ["/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/.%2e/secret.txt", "/.%2e/",
       "/a/../../secret.txt", "/..%5csecret.txt",
       "/%252e%252e/secret.txt", "/..%c0%afsecret.txt", "/../www-leak/x", "/....//secret.txt", "/./.././secret.txt",
       "/..", "/../", "/%2e%2e",
       "/%2e%2e%2fsecret.txt", "/a/%2e%2e/%2e%2e/secret.txt", "/a/..%2f..%2fsecret.txt", "/..\\secret.txt",
       "/%2e%2e\\secret.txt", "/%5c..%5csecret.txt",
       "/..%255csecret.txt", "/..%ef%bc%8fsecret.txt", "/%c0%ae%c0%ae/secret.txt", "/%e0%80%ae%e0%80%ae/secret.txt",
       "/..;/secret.txt",
       "/..%3b/secret.txt", "/..%20/secret.txt", "/.../secret.txt", "/a.txt/../../secret.txt", "//../secret.txt",
       "/..//secret.txt", "/a//../../secret.txt",
       "/%2f..%2f..%2fsecret.txt", "/..%2f..%2f..%2f..%2f..%2fetc/passwd", "//etc/passwd", "/%2fetc/passwd",
       "/%2e%2e/www-leak/x", "/../www-leak%2fx",
       "/a/b.txt/../../../secret.txt", "/none/../../secret.txt", "/%2e%2e/%2e%2e/secret.txt", "/..%00/secret.txt",
       "/..%0a/secret.txt",
       "/%2e%2e%2e%2e/secret.txt", "/~/secret.txt", "/proc/self/root/etc/passwd", "/a/./../../secret.txt", "/-leak/x"]


@pytest.mark.parametrize("prefix", ["", "http://h.test"])
def test_c031_no_way_out_of_the_root(front, prefix):
    for target in OUT:
        for port in ("PORTS", "PORTR"):
            front.origin.take()
            conn = front.connect(port=front.w.ports[port])
            conn.send(get((prefix + target).encode()))
            r = conn.response()
            conn.close()
            if port == "PORTS":
                assert r.status in (400, 404), (target, r.status)
            else:  # what is no file may be the backend's, but then with the target as it was sent
                assert r.status in (400, 404, 200) and [q.target for q in front.settle()] in ([], [target]), (target,
                                                                                                              r.status)
            assert SECRET.encode() not in r.body and b"root:" not in r.body, target


@pytest.mark.parametrize("target", ["/files../secret", "/files../secret.txt", "/files/../secret",
                                    "/files%2f..%2fsecret", "/files/%2e%2e/secret",
                                    "/files/..%2fsecret.txt", "/files-secret", "/files%2e%2e/secret",
                                    "/files/../share-secret", "/files/..-secret",
                                    "/www/../secret.txt", "/www/..%2f..%2fsecret.txt", "/www/../../secret"])
def test_c031_c037_no_way_out_of_an_alias(front, target):
    r = front.w.get(target)
    assert SECRET.encode() not in r.body
    assert r.status in (200, 400, 403, 404)
    if r.status == 200:
        assert [q.target for q in front.settle()] == [target]


def test_c037_an_alias_cuts_at_a_segment(front):
    assert front.w.get("/files/f.txt").body == b"shared"
    assert front.w.get("/files/").body == b"share index"
    assert front.w.get("/files").status in (200, 301, 308)
    for target in ("/files../secret", "/filesystem", "/files.txt", "/files;x/f.txt"):
        front.origin.take()
        r = front.w.get(target)
        assert r.status == 200 and [q.target for q in front.settle()] == [target]


def test_c037_so_does_strip_prefix(front):
    for target, sent in (("/api/users?x=%2F", "/users?x=%2F"), ("/api", "/"), ("/api/", "/"),
                         ("/api//a%20b", "//a%20b"),
                         ("/apiary", "/apiary"), ("/api..", "/api.."), ("/api?x", "/?x")):
        front.origin.take()
        assert front.w.get(target).status == 200, target
        assert [q.target for q in front.settle()] == [sent], target


@pytest.mark.parametrize("target, body", [
    ("/100%25.txt", b"percent"), ("/a%252fb", b"literal"), ("/x%2520y", b"escape"), ("/%61.txt", b"a"),
    ("/a%2fb.txt", b"b"), ("/a%2Ftxt", None),
    ("/%2561.txt", None), ("/a%25252fb", None), ("/x%20y", None), ("/100%.txt", 400), ("/%2561%2562", None),
    # C036
    ("/a+b.txt", b"plus"), ("/a%2Bb.txt", b"plus"), ("/sp%20ace.txt", b"space"), ("/sp+ace.txt", None),
    ("/na%C3%AFve-%C3%BC.css", b"nfc"),
    ("/na%c3%afve-%c3%bc.css", b"nfc"), ("/nai%CC%88ve-u%CC%88.css", None), ("/%E6%97%A5%E6%9C%AC.png", b"png"),
    ("/q%22%3C%3E.txt", b"quote"),
    ("/back%5Cslash.txt", b"backslash"), ("/back\\slash.txt", b"backslash"), ("/semi;a=1", b"semi"),
    ("/semi%3Ba%3D1", b"semi"), ("/semi", None),
    ("/A.TXT", None), ("/a.txt?a+b%20c", b"a"), ("/in/", b"index"), ("/in/index.html", b"index"), ("/./a.txt", b"a"),
    ("/a/../a.txt", b"a"),
    ("//a.txt", b"a"), ("/a.txt/", None), ("/a.txt.", None), ("/a.txt%20", None), ("/a.txt%2f", None)])
def test_c032_c036_a_name_is_decoded_exactly_once(front, target, body):
    r = static(front, target)
    if isinstance(body, bytes):
        assert (r.status, r.body) == (200, body)
    else:
        assert r.status == (body or 404)


def test_c040_a_decoded_path_never_reaches_a_header_or_a_log_raw(front):
    front.lines()
    inputs = ["/dir%0d%0aSet-Cookie:%20a=1", "/dir%0d%0aSet-Cookie:%20a=1/x.txt", "/none%22", "/none%1b%5b2J", "/%0a",
              "/%0d", "/none%7f",
              "/q%22%3c%3e.txt", "/dir%0D%0ASet-Cookie:%20a=1?x=%0d%0aY:z"]
    for target in inputs:
        r = static(front, target)
        assert r.status in (200, 301, 308, 404), target
        assert not r.has("set-cookie") and not r.has("y")
        if r.has("location"):
            assert re.search(r"/dir%0d%0aSet-Cookie:(%20| )a=1/", r.get("location"), re.I), r.get("location")
            assert " " not in r.get("location")
    inputs2 = ["/x-header/a%0d%0aSet-Cookie:%20a=1", "/to-uri/a%0d%0aSet-Cookie:%20a=1", "/to-uri/%22%3c", "/to-uri/%c3%a9%20x",
               "/to-request-uri/a%0d%0aSet-Cookie:%20a=1?b=%0d%0ac"]
    for target in inputs2:
        r = front.w.get(target)
        assert r.status in (200, 301, 400, 404) and not r.has("set-cookie"), target
        if r.status == 301:
            assert re.fullmatch(r"[\x21-\x7e]+", r.get("location")), r.get("location")
    assert front.w.get("/to-uri/%c3%a9%20x%25%3f").get("location") == "https://new.test/to-uri/%C3%A9%20x%25%3F"
    assert static(front, "/x%00y").status == 400
    lines = front.lines()
    assert len(lines) == len(inputs) + len(inputs2) + 2
    assert not re.search(r"[^\x20-\x7e]", "".join(lines))
    assert "Set-Cookie: a=1\n" not in "\n".join(lines) + front.w.errors()
    assert not re.search(r"[^\x20-\x7e\n]", front.w.errors())


def test_c040_a_file_below_such_a_folder_is_served(front):
    assert static(front, "/dir%0d%0aSet-Cookie:%20a=1/x.txt").body == b"x"


# --- a static miss --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target, status", [("/assets/missing.js", 404), ("/assets/" + "n" * 300, 404),
                                            ("/assets/a.js/x", 404), ("/assets/loop", 404),
                                            ("/assets/loop/x", 404), ("/assets/d/", 403), ("/assets/a.js", 200),
                                            ("/assets/" + "d/" * 2000, 404),
                                            ("/assets/d/../missing", 404), ("/assets/" + "n/" * 2000, 404)])
def test_c041_without_a_backend_a_miss_is_an_error(front, target, status):
    front.origin.take()
    r = front.w.get(target)
    assert r.status == status and not front.settle()
    assert status == 200 or "html" in (r.get("content-type") or "") or "text" in (r.get("content-type") or "")


@pytest.mark.parametrize("target", ["/tried/missing.js", "/tried/d", "/tried/d/", "/tried/loop", "/tried/a.js/x",
                                    "/tried/" + "n" * 300,
                                    "/tried/%6dissing%2Ejs?x", "/tried//missing", "/tried/a.js/",
                                    "/tried/" + "n/" * 2000, "/tried/..%6d"])
def test_c041_with_a_backend_a_miss_is_the_backends_with_the_raw_target(front, target):
    front.origin.take()
    assert front.w.get(target).status == 200
    assert [q.target for q in front.settle()] == [target]


def test_c041_what_is_there_is_served(front):
    front.origin.take()
    assert front.w.get("/tried/a.js").body == b"js" and front.w.get("/tried/%61.js").body == b"js"
    assert not front.settle()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_c041_an_unreadable_file(front):
    for d in ("assets", "tried"):
        os.chmod(front.w.write("top/%s/closed.js" % d, "closed"), 0)
    assert front.w.get("/assets/closed.js").status == 403
    r = front.w.get("/tried/closed.js")
    assert r.status in (200, 403) and b"closed\n" not in r.body
