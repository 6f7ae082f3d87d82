# SPDX-License-Identifier: MIT
"""Access log formats: JSON lines that parse whatever a client sends, own formats with variables, formats per location."""
import json
import os
import re
import signal

from harness.backends import serve
from harness.util import SCALE, wait_for

OK = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", then="again")


def ask(w, target, field):
    conn = w.connect()
    conn.send(b"GET " + target + b" HTTP/1.1\r\nHost: h.test\r\n" + field + b"\r\n\r\n")
    r = conn.response("GET")
    conn.close()
    assert r.status == 200
    return r


def lines(path, n):
    def probe():
        try:
            with open(path, "rb") as f:
                got = f.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return None
        return got if len(got) >= n else None
    return wait_for("%d lines in %s" % (n, path), 5, probe)


def test_json_lines_parse_whatever_is_sent(weir, raw_backend, dead):
    origin = raw_backend(OK)
    w = weir('''
        workers = 1; access_log = { path = "j.log"; format = "json"; };
        upstreams = { two = { servers = ( "@DEAD@", "@ORIGIN@" ); }; };
        sites = ( { listen = "127.0.0.1:@PORT@"; names = "h.test"; proxy = "two"; } );
    ''', ORIGIN=origin.addr, DEAD=dead.addr)
    for _ in range(2):
        ask(w, b"/a?b=%22", b"User-Agent: q\"b\\s\tt \xc3\xa9 \xff")
    conn = w.connect()
    conn.send(b"\x16\x03\x01\x02\x00")
    conn.at_eof()
    rows = [json.loads(x) for x in lines(w.dir + "/j.log", 3)]
    tried = [r for r in rows if r["upstream_addr"] and "," in r["upstream_addr"]]
    assert tried, rows
    assert tried[0]["upstream_addr"] == "%s, %s" % (dead.addr, origin.addr)
    assert tried[0]["upstream_status"] == "502, 200"
    assert tried[0]["upstream_connect_time"].startswith("-, 0.")
    first = rows[0]
    assert (first["method"], first["uri"], first["status"], first["body_bytes_sent"]) == ("GET", "/a?b=%22", 200, 2)
    assert first["host"] == "h.test" and first["protocol"] == "HTTP/1.1" and first["request_time"] >= 0
    assert first["user_agent"] == 'q"b\\s\tt \xe9 \xff'
    assert len({r["request_id"] for r in rows}) == 3 and all(re.fullmatch("[0-9a-f]{32}", r["request_id"]) for r in rows)
    bad = [r for r in rows if r["status"] == 400]
    assert len(bad) == 1 and bad[0]["method"] is None and bad[0]["failure"].startswith("BAD_")


def test_what_each_server_gave_and_nothing_else(weir, raw_backend, dead):
    """Not what the client got: a cut answer had its status, and a server that was not waited for has given none."""
    def script(conn):
        if b"/cut" in conn.head():
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")
            return
        conn.wait_close(5)
    origin = raw_backend(script)
    w = weir('''
        workers = 1; access_log = { path = "own.log"; format = "$status $upstream_addr; $upstream_status; $upstream_connect_time"; };
        upstreams = { two = { servers = ( "@DEAD@", "@ORIGIN@" ); }; };
        sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "two"; } );
    ''', ORIGIN=origin.addr, DEAD=dead.addr)
    conn = w.connect()
    conn.send(b"POST /gone HTTP/1.1\r\nHost: h.test\r\nContent-Length: 9\r\n\r\nabc")
    wait_for("the second server is asked", 5, origin.accepted)
    conn.close(reset=True)
    both = "%s, %s" % (dead.addr, origin.addr)
    assert re.fullmatch(r"499 %s; 502, -; -, 0\.\d+" % both, lines(w.dir + "/own.log", 1)[0].decode())
    assert not w.get("/cut").complete
    assert re.fullmatch(r"200 (%s, )?%s; (502, )?200; .*" % (dead.addr, origin.addr), lines(w.dir + "/own.log", 2)[1].decode())


def test_an_own_format_escapes_and_marks_what_is_empty(weir):
    w = weir('''
        workers = 1; access_log = { path = "own.log"; format = "$request_method|$status|$http_x_y|$arg_a|$upstream_addr|$$"; };
        sites = ( { listen = "127.0.0.1:@PORT@"; respond = "x"; } );
    ''')
    ask(w, b"/?a=1", b'X-Y: a"b\\c\xe9')
    w.get("/")
    got = lines(w.dir + "/own.log", 2)
    assert got[0].startswith(b'GET|200|a\\x22b\\x5Cc\\xE9')
    assert got[0].endswith(b"|1|-|$") and b'"' not in got[0]
    assert got[1] == b"GET|200|-|-|-|$"


def test_logs_by_site_and_location(weir):
    w = weir('''
        workers = 1; access_log = "top.log";
        sites = ( { listen = "127.0.0.1:@PORT@"; respond = "x"; locations = (
            { match = "/quiet"; respond = "q"; access_log = false; },
            { match = "/own"; respond = "o"; access_log = { path = "own.log"; format = "$uri"; }; } ); } );
    ''')
    for path in ("/quiet", "/own/1", "/a", "/own/2"):
        w.get(path)
    assert lines(w.dir + "/own.log", 2) == [b"/own/1", b"/own/2"]
    top = lines(w.dir + "/top.log", 1)
    assert len(top) == 1 and b'"GET /a HTTP/1.1"' in top[0]


def test_the_error_log_in_json(weir, dead):
    conf = '''
        workers = 2; error_log = { path = "e.json"; format = "json"; }; log_level = "info";
        sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@DEAD@"; } );
    '''
    w = weir(conf, DEAD=dead.addr)

    def rows(has):
        def probe():
            if not os.path.exists(w.dir + "/e.json"):
                return None
            with open(w.dir + "/e.json", encoding="utf-8") as f:
                got = [json.loads(line) for line in f]  # every line, whoever wrote it
            return got if any(re.search(has, r["message"]) for r in got) else None
        return wait_for("%s in the error log" % has, 10, probe)

    rows("^generation 1: ")
    assert w.get('/a"b').status == 502
    failed = [r for r in rows("while connecting") if "while connecting" in r["message"]][0]
    assert failed["level"] == "error" and failed["pid"] == w.server_pid and failed["thread"] in ("0", "1")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", failed["time"])
    dies_of = signal.SIGSEGV if SCALE == 1 else signal.SIGKILL  # sanitizers keep their own handlers
    os.kill(w.server_pid, dies_of)  # its last line, the supervisor's, and those of the next server
    after = rows("a new one starts")
    assert [r for r in after if "a new one starts" in r["message"]][0]["thread"] == "supervisor"
    crash = [r for r in after if r["message"].startswith("crashed: SIGSEGV")]
    assert len(crash) == (dies_of == signal.SIGSEGV)
    assert all(r["level"] == "emerg" and any(f.startswith("weir+0x") for f in r["stack"]) for r in crash)
    w.configure(conf.replace('"json"', '"text"'))
    assert w.cli("reload").returncode == 0
    wait_for("a line of text", 5, lambda: re.search(r"^\d{4}/\d\d/\d\d .*\[notice\]", open(w.dir + "/e.json").read(), re.M))
