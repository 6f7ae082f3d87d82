# SPDX-License-Identifier: MIT
"""The harness notices what it promises to notice: tried with a stand-in server that misbehaves on request."""
import os
import stat

import pytest
from harness import server
from harness.backends import serve
from wire import Closed, Conn

STAND_IN = """#!/usr/bin/python3
import http.server, os, re, signal, sys, time
port = int(re.search(r'listen = "127.0.0.1:([0-9]+)"', open(sys.argv[3]).read()).group(1))
signal.signal(signal.SIGINT, lambda *_: os._exit(int(os.environ.get("STAND_IN_EXIT", "0"))))
print(os.environ.get("STAND_IN_SAYS", "ready"), "generation 1: ", sep="\\n", file=sys.stderr, flush=True)
if os.environ.get("STAND_IN_LEAKS") and os.fork() == 0:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(60)
if not os.environ.get("STAND_IN_DIES"):
    http.server.ThreadingHTTPServer(("127.0.0.1", port), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
CONF = 'sites = ( { listen = "127.0.0.1:@PORT@"; } );'


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    path = tmp_path / "weir"
    path.write_text(STAND_IN)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(server, "BIN", str(path))

    def start(**env):
        return server.Weir(CONF, files={"a.txt": "hello"}, env={"STAND_IN_" + k: v for k, v in env.items()})
    return start


def test_a_healthy_server_is_started_asked_and_stopped(stand_in):
    w = stand_in()
    r = w.get("/a.txt")
    assert (r.status, r.body) == (200, b"hello")
    w.wait_error("ready")
    w.close()
    assert not os.path.exists(w.dir)


@pytest.mark.parametrize("env, why", [
    ({"EXIT": "3"}, "exit code 3"),
    ({"SAYS": "==7==ERROR: AddressSanitizer: heap-use-after-free"}, "fault of its own"),
    ({"SAYS": "x.c:1:2: runtime error: signed integer overflow"}, "fault of its own"),
    ({"SAYS": "WARNING: ThreadSanitizer: data race (pid=7)"}, "fault of its own"),
    ({"SAYS": "weir: check failed: x at y.c:1"}, "fault of its own"),
    ({"LEAKS": "1"}, "all processes of weir gone"),
])
def test_a_bad_end_fails_the_test(stand_in, env, why):
    w = stand_in(**env)
    with pytest.raises(AssertionError, match=why):
        w.close()
    assert not os.path.exists(w.dir)


def test_a_server_that_does_not_start_fails_at_once_and_says_why(stand_in):
    with pytest.raises(AssertionError, match="ended at once, exit 0:\nno such thing"):
        stand_in(DIES="1", SAYS="no such thing")


def test_values_and_ports_reach_the_configuration(stand_in):
    w = stand_in()
    try:
        text = w.configure('a = "@PORT@"; b = "@PORT2@"; c = "@DIR@/x";')
        assert 'a = "%d"' % w.port in text
        assert 'b = "%d"' % w.ports["PORT2"] in text
        assert 'c = "%s/x"' % w.dir in text
        assert text.endswith('control = "control.sock";\n')
        assert w.configure('control = "x";') == 'control = "x";'
        with pytest.raises(AssertionError, match="no value for @WHO@"):
            w.configure('a = "@WHO@";')
    finally:
        w.close()


@pytest.mark.parametrize("then", ["close", "rst", "stall", "again"])
def test_a_raw_backend_sends_and_ends_as_told(raw_backend, then):
    b = raw_backend(serve(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"hi", then=then))
    c = Conn("127.0.0.1", b.port)
    c.send(b"GET /x HTTP/1.1\r\n\r\n")
    assert c.response().body == b"hi"
    if then == "again":
        c.send(b"GET /y HTTP/1.1\r\n\r\n")
        assert c.response().body == b"hi"
        assert b.conns[0].received.startswith(b"GET /x")
    elif then == "stall":
        assert not c.at_eof(0.2)
    else:
        with pytest.raises(Closed) as e:
            c.head()
        assert e.value.reset == (then == "rst")
    c.close()


def test_a_mistake_in_a_script_is_not_silent():
    from harness.backends import RawBackend
    b = RawBackend(lambda conn: conn.no_such_method())
    c = Conn("127.0.0.1", b.port)
    assert c.at_eof(5)
    c.close()
    with pytest.raises(AssertionError, match="no_such_method"):
        b.close()


def test_the_recorder_records_and_a_dead_port_refuses(backend, dead):
    b = backend()
    c = Conn("127.0.0.1", b.port)
    c.send(b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc")
    assert c.response().body == b"POST /p 3"
    assert [(q.target, q.body) for q in b.take()] == [("/p", b"abc")]
    c.close()
    with pytest.raises(ConnectionRefusedError):
        Conn("127.0.0.1", dead.port)


def test_node_listens_and_its_log_is_kept(node):
    n = node('console.log("up"); require("http").createServer((q, s) => s.end("node " + q.url))'
             '.listen(process.env.PORT, "127.0.0.1")')
    c = Conn("127.0.0.1", n.port)
    c.send(b"GET /z HTTP/1.1\r\nHost: h\r\n\r\n")
    assert c.response().body == b"node /z"
    c.close()
    assert n.log() == "up\n"
