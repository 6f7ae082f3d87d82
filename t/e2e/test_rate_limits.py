# SPDX-License-Identifier: MIT
"""limits.requests and limits.in_flight: who is told 429, when, and what a reload keeps."""
import threading

import pytest
from harness.util import wait_for

SITE = """
    workers = 2;
    sites = ( { listen = "127.0.0.1:@PORT@"; trusted = "127.0.0.1"; @S@ respond = "ok";
                locations = ( { match = "/a"; respond = "a"; @A@ }, { match = "/free"; limits = { requests = 0; in_flight = false; };
                                respond = "free"; } ); } );
"""


def limited(weir, site="", location=""):
    return weir(SITE, S=site, A=location)


def statuses(w, n, path="/", who="192.0.2.1", extra=()):
    return [w.get(path, [("X-Forwarded-For", who), *extra]).status for _ in range(n)]


def test_more_than_burst_at_once_is_429(weir):
    w = limited(weir, 'limits = { requests = { rate = "5/h"; burst = 5; }; };')
    assert statuses(w, 8) == [200] * 5 + [429] * 3  # each on a connection of its own: over both loops
    r = w.get("/", {"X-Forwarded-For": "192.0.2.1"})
    assert r.status == 429 and 600 < int(r.get("retry-after")) <= 720
    assert statuses(w, 2, who="192.0.2.2") == [200] * 2
    w.wait_error(r"\[warn\].* TOO_MANY_REQUESTS: over limits\.requests while checking who asks, client: 192\.0\.2\.1, ")
    c = w.connect()  # the connection stays
    for _ in range(2):
        c.send(b"GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
        assert c.response("GET").status == 429


def test_a_plain_number_is_a_rate_in_seconds(weir):
    w = limited(weir, 'limits = { requests = 3; };')
    assert 429 in statuses(w, 12)
    r = wait_for("a token", 5, lambda: w.get("/", {"X-Forwarded-For": "192.0.2.1"}).status == 200)
    assert r


def test_where_a_limit_stands_it_counts(weir):
    w = limited(weir, 'limits = { requests = "2/h"; };'.replace('"2/h"', '{ rate = "2/h"; burst = 2; }'),
                'limits = { requests = { rate = "2/h"; burst = 3; }; };')
    assert statuses(w, 3) == [200, 200, 429]
    assert statuses(w, 4, "/a") == [200] * 3 + [429]
    assert statuses(w, 5, "/free") == [200] * 5


def test_ipv6_goes_by_its_64_and_a_key_by_its_text(weir):
    w = limited(weir, 'limits = { requests = { rate = "1/h"; }; };', 'limits = { requests = { rate = "1/h"; key = "$http_x_key"; }; };')
    assert [statuses(w, 1, who="2001:db8:0:1::%x" % i)[0] for i in range(3)] == [200, 429, 429]
    assert statuses(w, 1, who="2001:db8:0:2::1") == [200]
    for key, expected in (("a", [200, 429]), ("b", [200, 429])):
        assert statuses(w, 2, "/a", extra=[("X-Key", key)]) == expected
    assert statuses(w, 3, "/a") == [200] * 3  # no key, no limit


def test_dry_run_only_says_so(weir):
    w = limited(weir, 'limits = { requests = { rate = "1/h"; dry_run = true; }; in_flight = { max = 1; dry_run = true; }; };')
    assert statuses(w, 3) == [200] * 3
    w.wait_error(r"TOO_MANY_REQUESTS: over limits\.requests: passed, for dry_run while checking who asks, client: 192\.0\.2\.1")


@pytest.mark.threads
def test_a_reload_keeps_the_counts(weir):
    text = 'limits = { requests = { rate = "4/h"; burst = 4; }; };'
    w = limited(weir, text)
    assert statuses(w, 4) == [200] * 4
    w.reload(w.configure("# a line more\n" + SITE))
    assert statuses(w, 1) == [429]
    w.reload(w.configure(SITE.replace("@S@", text.replace("4/h", "1000000"))))
    wait_for("a faster rate", 5, lambda: statuses(w, 1) == [200])
    w.reload(w.configure(SITE.replace("@S@", "")))
    assert statuses(w, 8) == [200] * 8


@pytest.mark.parametrize("how", ["answered", "client gone"])
def test_in_flight(weir, raw_backend, how):
    go = threading.Event()

    def script(conn):
        conn.head()
        go.wait(20)
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        conn.wait_close()

    b = raw_backend(script)
    w = weir("""
        workers = 2;
        sites = ( { listen = "127.0.0.1:@PORT@"; trusted = "127.0.0.1"; limits = { in_flight = 3; }; proxy = "@B@"; } );
    """, B=b.addr)
    conns = [w.connect() for _ in range(3)]
    for c in conns:
        c.send(b"GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
    wait_for("three in flight", 5, lambda: len(b.conns) == 3)
    r = w.get("/", {"X-Forwarded-For": "192.0.2.1"})
    assert (r.status, r.get("retry-after")) == (429, "1")
    w.wait_error(r"TOO_MANY_IN_FLIGHT: over limits\.in_flight while checking who asks, client: 192\.0\.2\.1")
    w.reload(w.configure("# again\n" + w._text(w.conf_path)))
    assert statuses(w, 1) == [429]
    if how == "answered":
        go.set()
        assert [c.response("GET").status for c in conns] == [200] * 3
    else:
        for c in conns:
            c.close(reset=True)
        go.set()
    wait_for("room again", 5, lambda: statuses(w, 1) == [200])
    assert statuses(w, 5) == [200] * 5


def test_what_is_wrong_is_said(cli, tmp_path):
    rows = [
        ("requests = \"5/d\"", 'limits.requests: found "5/d"; expected requests a second (1 to 1000000), or "5/m", "100/h"'),
        ("requests = { burst = 5; }", "limits.requests: not complete; expected { rate = 10; }"),
        ("in_flight = { }", "limits.in_flight: not complete; expected { max = 10; }"),
        ("requests = { rate = 1; burts = 5; }", 'limits.requests.burts: no such setting; did you mean `burst`?'),
        ("in_flight = -1", "limits.in_flight: -1 is out of range"),
    ]
    for i, (text, message) in enumerate(rows):
        path = tmp_path / ("%d.conf" % i)
        path.write_text('sites = ( { listen = "8080"; limits = { %s; }; respond = 200; } );\n' % text)
        done = cli("check", "-c", path)
        assert done.returncode == 1 and message in done.stderr, done.stderr
