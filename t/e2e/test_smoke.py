# SPDX-License-Identifier: MIT
"""One pass over what everything else stands on: it starts, answers from disk and from a backend, logs, and ends."""
import re
import signal

import pytest
from harness import util
from harness.server import cli

BOTH = """
sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; proxy = "@ORIGIN@"; } );
"""
FILES = {"public/a.txt": "hello\n", "public/index.html": "<p>index</p>\n"}


@pytest.fixture
def both(weir, backend):
    origin = backend()
    w = weir(BOTH, files=FILES, ORIGIN=origin.addr)
    w.origin = origin
    return w


def test_a_file_that_is_there_comes_from_disk(both):
    r = both.get("/a.txt")
    assert (r.status, r.body) == (200, b"hello\n")
    assert r.get("content-type").startswith("text/plain")
    assert r.get("server") == "weir"
    assert r.has("date") and r.has("etag") and r.has("last-modified")
    assert both.origin.targets() == []


def test_everything_else_comes_from_the_backend(both):
    assert both.get("/not-there?q=1").body == b"GET /not-there?q=1 0"
    assert both.post("/a.txt", b"abc").body == b"POST /a.txt 3"
    assert both.origin.targets() == ["/not-there?q=1", "/a.txt"]


def test_head_has_the_length_and_no_body(both):
    c = both.connect()
    c.send(b"HEAD /a.txt HTTP/1.1\r\nHost: h\r\n\r\n")
    r = c.response("HEAD")
    assert (r.status, r.get("content-length")) == (200, "6")
    c.send(b"GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n")
    assert c.response().body == b"hello\n"  # no stray byte of a body before it
    c.close()


def test_a_connection_is_kept_and_pipelined_requests_are_answered_in_order(both):
    c = both.connect()
    for i in range(3):
        c.send(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\nGET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n" % i)
        assert c.response().body == b"GET /%d 0" % i
        assert c.response().body == b"hello\n"
    c.close()


def test_the_backend_sees_host_and_forwarded_fields(both):
    both.get("/x", {"Host": "example.org", "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"})
    (q,) = both.origin.take()
    assert q.get("host") == "example.org"
    assert q.get("x-forwarded-for") == "127.0.0.1"  # what an untrusted peer claims is not passed on
    assert q.get("x-forwarded-proto") == "http"


def test_each_request_has_one_line_in_the_access_log(both):
    both.get("/a.txt?x=1", {"User-Agent": "smoke"})
    line = both.wait_access(r"a\.txt")
    assert re.match(r'127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] '
                    r'"GET /a\.txt\?x=1 HTTP/1\.1" 200 6 "-" "smoke"', line)
    both.get("/b")
    both.wait_access(r'"GET /b HTTP/1\.1" 200')
    assert len(both.access()) == 2


def test_a_backend_that_is_not_there_is_a_502(weir, dead):
    w = weir('sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@DEAD@"; } );', DEAD=dead.addr)
    r = w.get("/")
    assert r.status == 502 and r.complete and r.body
    w.wait_access(r'"GET / HTTP/1\.1" 502')


def test_int_ends_it_at_once_even_with_a_client_connected(both):
    c = both.connect()
    c.send(b"GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n")
    c.response()
    assert both.stop(signal.SIGINT, timeout=2) == 0
    assert c.at_eof(1)


def test_term_lets_a_running_request_finish(weir, raw_backend):
    def slow(conn):
        conn.head()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")
        util.wait_for("the drain has begun", 10, lambda: "draining" in w.errors())
        conn.send(b"-last")
    w = weir('sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@"; } ); timeouts = { lame_duck = "100ms"; };',
             ORIGIN=raw_backend(slow).addr)
    c = w.connect()
    c.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    head = c.head()
    w.send_signal(signal.SIGTERM)
    r = c.body(head)
    assert (r.body, r.complete) == (b"first-last", True)
    assert c.at_eof(util.scaled(5))
    assert w.wait_exit() == 0


def test_hup_puts_a_new_configuration_in_force(both):
    both.write("other/a.txt", "new\n")
    both.reload(BOTH.replace("public", "other"))
    assert both.get("/a.txt").body == b"new\n"


def test_a_refused_reload_leaves_the_old_configuration_in_force(both):
    both.reload("sites = ( { listen = 1.5; } );", refused=True)
    assert both.get("/a.txt").body == b"hello\n"


def test_an_address_in_use_is_an_error_that_names_it(both):
    done = cli("run", "-c", both.conf_path)
    assert done.returncode == 1
    assert "127.0.0.1:%d" % both.port in done.stderr and "in use" in done.stderr.lower(), done.stderr
