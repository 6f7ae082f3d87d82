# SPDX-License-Identifier: MIT
"""weir explain: which site and location would answer, why the others lost, which file or upstream, and where each
header comes from. No server runs and no backend is asked."""
import re

import pytest
from harness import raw

CONF = """upstreams = { app = { servers = ( "127.0.0.1:9", "127.0.0.1:10" ); }; };
sites = (
  { listen = "127.0.0.1:8080"; names = ( "a.test" ); proxy = "app";
    response_headers = { X-Site = "one"; };
    locations = (
      { match = "/img/"; root = "public"; },
      { match = "= /img/exact.png"; respond = "exact"; },
      { match = "~ \\.php$"; respond = 403; },
      { match = "~* \\.PNG$"; root = "public"; expires = "30d";
        response_headers = { X-Place = "png"; }; },
      { match = "^~ /img/final/"; redirect = "https://$host$request_uri"; },
      { match = "/files"; alias = "public/"; },
      { match = "/secret/"; root = "public"; deny = ( "0.0.0.0/0" ); },
      { match = "/either/"; root = "public"; proxy = "app"; }
    ); },
  { listen = "127.0.0.1:8080"; names = ( "*.b.test" ); respond = "wild"; },
  { listen = "127.0.0.1:8081"; respond = "elsewhere"; }
);
"""
LINES = CONF.split("\n")


def line_of(text):
    return next(i for i, ln in enumerate(LINES, 1) if text in ln)


@pytest.fixture
def explain(cli, tmp_path):
    for name in ("img/a.png", "img/b.txt", "img/exact.png", "either/here.txt", "f.txt"):
        path = tmp_path / "public" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    conf = tmp_path / "proxy.conf"
    conf.write_text(CONF)

    def run(*args, code=0):
        done = cli("explain", "-c", conf, *args)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout
    run.dir = tmp_path
    return run


def has(out, *words):
    """One line of the output contains all the words."""
    assert any(all(w in ln for w in words) for ln in out.split("\n")), "no line with %r in\n%s" % (words, out)


def test_the_location_that_wins_and_why_the_others_lost(explain):
    out = explain("GET", "/img/a.png")
    has(out, "site", "a.test", "proxy.conf:%d" % line_of('"a.test"'))
    has(out, "location", "~* \\.PNG$", "proxy.conf:%d" % line_of("PNG"))
    has(out, "/img/", "regular expression", "proxy.conf:%d" % line_of('"/img/"'))
    has(out, "= /img/exact.png", "not exactly")
    has(out, "\\.php$", "does not match")
    has(out, "^~ /img/final/", "not a prefix")
    has(out, "/files", "not a prefix")
    has(out, "other site", "*.b.test")


@pytest.mark.parametrize("target, winner, loser, why", [
    ("/img/exact.png", "= /img/exact.png", "~* \\.PNG$", "exact"),
    ("/img/final/a.png", "^~ /img/final/", "~* \\.PNG$", "^~"),
    ("/img/final/a.png", "^~ /img/final/", "/img/", "longer prefix"),
    ("/img/a.php.png", "~* \\.PNG$", "~ \\.php$", "does not match"),
    ("/img/b.txt", "/img/", "~* \\.PNG$", "does not match"),
    ("/x/a.php", "~ \\.php$", "~* \\.PNG$", "earlier"),
    ("/filesystem", "/", "/files", "segment"),
    ("//img//%62.txt", "/img/", "/files", "not a prefix"),
])
def test_precedence(explain, target, winner, loser, why):
    out = explain(target)
    assert re.search(r"^location +%s( |$)" % re.escape(winner), out, re.M), out
    has(out, loser, why)


def test_the_file_that_would_be_tried(explain):
    out = explain("/img/a.png")
    has(out, str(explain.dir / "public" / "img/a.png"))
    has(out, "answer", "200")
    has(out, "Content-Length: 9")
    out = explain("/img/none.png")
    has(out, str(explain.dir / "public" / "img/none.png"))
    has(out, "answer", "404")
    out = explain("/files/f.txt")
    has(out, str(explain.dir / "public" / "f.txt"))


def test_headers_with_their_line(explain):
    out = explain("/img/a.png")
    has(out, "Expires: ", "proxy.conf:%d" % line_of("30d"))
    has(out, "Cache-Control: public, max-age=2592000", "proxy.conf:%d" % line_of("30d"))


def test_header_rules_with_their_line(explain):
    out = explain("/img/a.png")
    has(out, "X-Place: png", "proxy.conf:%d" % line_of("X-Place"))
    has(out, "X-Site: one", "proxy.conf:%d" % line_of("X-Site"))


def test_the_upstream(explain):
    out = explain("POST", "/app/x")
    has(out, "location", "/")
    has(out, "upstream", "app")
    assert "answer" not in out, "what a backend would say is not known"


def test_the_file_if_it_is_there_else_the_upstream(explain):
    has(explain("/either/here.txt"), str(explain.dir / "public" / "either/here.txt"))
    assert "upstream" not in explain("/either/here.txt")
    out = explain("/either/none.txt")
    has(out, str(explain.dir / "public" / "either/none.txt"))
    has(out, "upstream", "app")
    has(explain("POST", "/either/here.txt"), "upstream", "app")


def test_redirects_refusals_and_bad_targets(explain):
    has(explain("http://a.test/img/final/x?y"), "Location: https://a.test/img/final/x?y")
    has(explain("/secret/x"), "403")
    has(explain("/secret/x"), "because", "DENIED")
    has(explain("/%zz"), "400")
    has(explain("/../x"), "400")
    has(explain("POST", "/img/b.txt"), "405")
    has(explain("HEAD", "/img/b.txt"), "200")


def test_the_site_by_host_and_port(explain):
    has(explain("http://x.b.test/"), "site", "*.b.test")
    has(explain("http://a.test:8081/"), "site", "8081")
    has(explain("/", "-H", "Host: x.b.test"), "site", "*.b.test")
    has(explain("http://unknown.test/"), "site", "a.test")


def test_headers_of_the_question_count(explain):
    assert "304" in explain("/img/b.txt", "-H", "If-None-Match: *")
    has(explain("/img/b.txt", "-H", "Range: bytes=0-1"), "answer", "206")


def test_the_address_is_the_one_with_the_port_then_the_one_with_the_name(cli, explain):
    conf = explain.dir / "ports.conf"
    conf.write_text('sites = ( { listen = "127.0.0.1:8080"; names = "a.test"; respond = "a"; },\n'
                    '{ listen = "127.0.0.1:8081"; names = ( "b.test", "*.c.test" ); respond = "b"; },\n'
                    '{ listen = "127.0.0.1:8082"; names = "b.test"; respond = "second b"; } );')
    for args, answer in ((("http://b.test/",), "b"), (("http://B.test./",), "b"), (("http://x.c.test:8081/",), "b"),
                         (("/", "-H", "Host: b.test:80"), "b"), (("http://b.test:8082/",), "second b"),
                         (("http://a.test:8082/",), "second b"), (("http://none.test/",), "a"), (("/",), "a")):
        done = cli("explain", "-c", conf, *args)
        has(done.stdout, "respond  ", "  %s  " % answer)
        assert "nothing listens" not in done.stdout
    has(cli("explain", "-c", conf, "http://b.test:99/").stdout, "note", "nothing listens on port 99")


def test_misuse_names_the_word(cli, explain):
    for args, word in ((("GET", "x"), "x"), (("/", "-H", "nocolon"), "nocolon"), (("/", "--frob"), "--frob"),
                       (("G@ET", "/"), "G@ET"), (("GET", "/", "extra"), "extra"), (("http://a b/",), "http://a b/")):
        done = cli("explain", "-c", explain.dir / "proxy.conf", *args)
        assert (done.returncode, done.stdout) == (2, "") and '"%s"\nusage: ' % word in done.stderr


def test_a_regular_expression_that_gives_up_is_named(cli, explain):
    conf = explain.dir / "steps.conf"
    conf.write_text('sites = ( { listen = "8080"; respond = "ok";\n'
                    'locations = ( { match = "~ ^(/(a|b|ab))*$"; respond = 403; } ); } );')
    out = cli("explain", "-c", conf, "/ab" * 4000).stdout
    has(out, "gave up", "~ ^(/(a|b|ab))*$", "steps.conf:2")
    has(out, "because", "REGEX_LIMIT")


@pytest.mark.parametrize("args", [(), ("GET",), ("GET", "x"), ("GET", "/", "extra"), ("/", "-H"),
                                  ("/", "-H", "nocolon"), ("/", "--frob"),
                                  ("G ET", "/"), ("/", "-H", "X: a\r\nY: b")])
def test_misuse(cli, explain, args):
    done = cli("explain", "-c", explain.dir / "proxy.conf", *args)
    assert done.returncode == 2 and done.stdout == "" and "explain" in done.stderr


def test_a_bad_config_is_told_as_check_tells_it(cli, tmp_path):
    conf = tmp_path / "proxy.conf"
    conf.write_text('sites = ( { listen = "8080"; prxy = "127.0.0.1:9"; } );')
    explained, checked = cli("explain", "-c", conf, "/"), cli("check", "-c", conf)
    assert explained.returncode == checked.returncode == 1
    assert explained.stderr and explained.stderr in checked.stderr and "proxy.conf:1" in explained.stderr


def test_it_says_what_a_server_does():
    """The same question to a running server: explain runs the real request path."""
    conf = CONF.replace("127.0.0.1:8080", "127.0.0.1:@PORT@").replace("127.0.0.1:8081", "127.0.0.1:@PORTX@")
    f = raw.Front(conf, {"public/img/a.png": "png", "public/img/b.txt": "text", "public/f.txt": "f"})
    try:
        for target in ("/img/a.png", "/img/b.txt", "/img/none.png", "/img/exact.png", "/img/final/x", "/x.php",
                       "/files/f.txt", "/secret/x", "/%zz",
                       "/files", "/img/", "/img"):
            r = f.w.get(target, host="a.test")
            if r.status == 502:
                continue
            out = f.w.cli("explain", target).stdout
            has(out, "answer", str(r.status))
            for name in ("X-Site", "X-Place", "Location", "Content-Length", "Content-Type", "ETag", "Cache-Control"):
                assert (r.get(name) is not None) == ("%s: " % name.lower() in out.lower()), (target, name, out,
                                                                                             r.headers)
                if r.get(name) is not None:
                    assert ("%s: %s" % (name, r.get(name))).lower() in out.lower(), (target, name, out)
    finally:
        f.close()
