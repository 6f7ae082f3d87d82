# SPDX-License-Identifier: MIT
"""The control socket: what the commands print and return, who may ask, and askers that misbehave."""
import json
import os
import re
import resource
import signal
import socket
import stat
import threading
import time

import pytest

from harness.util import cpu_ms, scaled, wait_for

CONF = '''
    workers = 2; timeouts = { lame_duck = 0; };
    upstreams = { app = { servers = ( "127.0.0.1:9", { address = "127.0.0.1:10"; maxconn = 7; } ); }; };
    sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "app"; locations = ( { match = "/ok"; respond = "ok"; } ); } );
'''


@pytest.fixture
def served(weir):
    w = weir(CONF)
    w.wait_error("generation 1: ")
    return w


class Asker:
    """A raw connection to the control socket."""

    def __init__(self, w):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.connect(w.dir + "/control.sock")  # blocking: it waits for a place in the backlog
        self.s.settimeout(scaled(5))
        self.f = self.s.makefile("rb")

    def ask(self, line):
        self.s.sendall(line)
        answer = self.f.readline()
        return json.loads(answer) if answer else None


def test_status_for_people_and_programs(served):
    assert served.get("/ok").status == 200
    r = served.cli("status")
    assert r.returncode == 0 and r.stderr == ""
    assert re.search(r"^weir \S+, serving for 0d 00:00:\d\d, pid %d, 2 loops$" % served.server_pid, r.stdout, re.M), r.stdout
    assert re.search(r"^configuration \S+/proxy\.conf, generation 1$", r.stdout, re.M), r.stdout
    assert re.search(r"^    127\.0\.0\.1:10 +\S+ +in flight 0 of 7,", r.stdout, re.M), r.stdout
    s = json.loads(served.cli("status", "--json").stdout)
    assert s["ok"] is True and s["generation"] == 1 and s["disk_differs"] is False
    assert s["requests"] == 1 and s["loops"] == 2 and s["pid"] == served.server_pid
    assert [u["name"] for u in s["upstreams"]] == ["app"]
    assert [x["address"] for x in s["upstreams"][0]["servers"]] == ["127.0.0.1:9", "127.0.0.1:10"]


def test_status_says_that_the_file_differs_and_how(served):
    served.configure(CONF.replace('"/ok"', '"/fine"'))
    s = json.loads(served.cli("status", "--json").stdout)
    assert s["disk_differs"] is True and "location" in s["disk_changes"]
    served.configure("sites = (")
    s = json.loads(served.cli("status", "--json").stdout)
    assert s["disk_differs"] is True and "proxy.conf:" in s["disk_error"]
    assert served.get("/ok").status == 200


def test_a_reload_waits_for_its_outcome(served):
    served.configure(CONF.replace('"/ok"', '"/fine"'))
    r = served.cli("reload")
    assert r.returncode == 0
    assert re.fullmatch(r"generation 2: .+, \d+ connections kept\n", r.stdout), r.stdout
    assert served.get("/fine").status == 200  # in force when the command returns


def test_a_refused_reload_says_why_and_exits_75(served):
    served.configure(CONF.replace("lame_duck = 0", "lame_dukc = 0").replace("maxconn = 7", 'maxconn = "many"'))
    r = served.cli("reload")
    assert r.returncode == 75 and r.stdout == ""
    assert re.search(r"proxy\.conf:\d+: .*lame_dukc.*lame_duck", r.stderr), r.stderr
    assert "still on generation 1" in r.stderr
    assert served.cli("reload", "--json").returncode == 75
    assert json.loads(served.cli("status", "--json").stdout)["generation"] == 1
    assert served.get("/ok").status == 200


def test_reopen_opens_the_logs_again(weir):
    w = weir('''
        error_log = "error.log"; access_log = "access.log";
        sites = ( { listen = "127.0.0.1:@PORT@"; respond = "ok"; } );
    ''')
    wait_for("the log", 5, lambda: os.path.exists(w.dir + "/access.log"))
    os.rename(w.dir + "/access.log", w.dir + "/access.1")
    assert w.cli("reopen").returncode == 0
    wait_for("a new log", 5, lambda: os.path.exists(w.dir + "/access.log"))
    w.get("/after")
    wait_for("its line", 5, lambda: "/after" in open(w.dir + "/access.log").read())
    assert "/after" not in open(w.dir + "/access.1").read()


def test_stop_drains_and_waits(weir, raw_backend):
    release = threading.Event()

    def slow(conn):
        conn.head()
        release.wait(scaled(10))
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")

    origin = raw_backend(slow)
    w = weir(CONF.replace("127.0.0.1:9\"", "@ORIGIN@\"").replace(', { address = "127.0.0.1:10"; maxconn = 7; }', ""),
             ORIGIN=origin.addr)
    conn = w.connect()
    conn.send(b"GET / HTTP/1.1\r\nHost: h.test\r\n\r\n")
    wait_for("the request at the backend", 5, lambda: json.loads(w.cli("status", "--json").stdout)
             ["upstreams"][0]["servers"][0]["in_flight"] == 1)
    done = []
    stopping = threading.Thread(target=lambda: done.append(w.cli("stop").returncode))
    stopping.start()
    w.wait_error("drain|stopping|shutting down")
    assert done == []
    release.set()
    assert conn.response("GET").body == b"late"
    stopping.join(scaled(10))
    assert done == [0]
    w.wait_exit()


def test_stop_now_does_not_wait(served):
    conn = served.connect()
    conn.send(b"GET /ok HTTP/1.1\r\nHost: h.test\r\n\r\n")
    assert conn.response("GET").status == 200
    assert served.cli("stop", "--now").returncode == 0
    served.wait_exit(5)
    assert conn.at_eof()


def test_without_a_server_a_command_fails_and_says_where_it_looked(served):
    served.stop()
    for verb in ("status", "reload", "stop", "reopen", "upgrade"):
        r = served.cli(verb)
        assert r.returncode == 1 and "control.sock" in r.stderr, (verb, r)


@pytest.mark.parametrize("args", [("status", "--now"), ("reload", "x"), ("server",), ("server", "app/127.0.0.1:9")])
def test_misuse_exits_2(served, args):
    r = served.cli(*args)
    assert r.returncode == 2 and r.stderr.startswith("usage: weir " + args[0]) and r.stdout == ""


def test_only_the_owner_can_open_it(served):
    assert stat.S_IMODE(os.stat(served.dir + "/control.sock").st_mode) == 0o600


@pytest.mark.root
def test_another_user_is_refused_whatever_the_mode(served):
    path = served.dir + "/control.sock"
    os.chmod(path, 0o666)
    os.chmod(served.dir, 0o755)
    pid = os.fork()
    if pid == 0:
        code = 9
        try:
            os.setuid(65534)
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(5)
            s.connect(path)
            s.sendall(b"stop now\n")
            code = 3 if s.recv(100) == b"" else 4
        except PermissionError:
            code = 5  # a folder above is closed to it
        except ConnectionError:
            code = 3
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == 5:
        pytest.skip("the test's folder is closed to other users")
    assert code == 3
    served.wait_error("control socket: a command of another user is refused")
    assert served.get("/ok").status == 200


@pytest.mark.parametrize("line", [b"\n", b"dance\n", b"statusx\n", b"status extra\n", b"\x00\xff{}\n", b"server\n",
                                  b"server nobody/1.2.3.4:5 up\n", b"server app/127.0.0.1:9 weight 257\n",
                                  b"server app/127.0.0.1:9 sideways\n"])
def test_what_is_no_command_gets_an_error(served, line):
    a = Asker(served)
    answer = a.ask(line)
    assert answer["ok"] is False and len(answer["error"]) > 5
    assert a.ask(b"status\n")["ok"] is True  # the connection is still good


def test_a_line_without_an_end_is_cut(served):
    a = Asker(served)
    a.s.sendall(b"s" * 4096)
    try:
        assert a.f.readline() == b""
    except ConnectionResetError:
        pass  # there were bytes unread
    assert Asker(served).ask(b"status\n")["ok"] is True


def test_a_command_may_come_in_pieces(served):
    a = Asker(served)
    for byte in b"status":
        a.s.sendall(bytes([byte]))
    assert a.ask(b"\n")["ok"] is True


def test_silent_askers_keep_nobody_out(served):
    silent = [Asker(served) for _ in range(40)]
    silent[-1].s.sendall(b"stat")
    r = served.cli("status", timeout=scaled(10))
    assert r.returncode == 0 and "generation 1" in r.stdout
    del silent


def test_an_asker_that_leaves_disturbs_nobody(served):
    for _ in range(30):
        a = Asker(served)
        a.s.sendall(b"reload\n")
        a.s.close()
        a.f.close()
    assert served.cli("status").returncode == 0
    assert served.get("/ok").status == 200


def test_no_descriptor_for_who_asks_costs_no_time(served):
    pid = served.server_pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = max(int(fd) for fd in os.listdir("/proc/%d/fd" % pid)) + 1
    holes = used - len(os.listdir("/proc/%d/fd" % pid))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used - holes, hard))
    asker = Asker(served)
    asker.s.sendall(b"status\n")
    began = cpu_ms([pid])
    time.sleep(0.5)
    assert cpu_ms([pid]) - began < 50
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    assert json.loads(asker.f.readline())["ok"]


@pytest.mark.long
def test_status_of_a_server_that_was_stopped_ends_after_a_while(served):
    os.kill(served.server_pid, signal.SIGSTOP)
    try:
        done = served.cli("status", timeout=30)
        assert done.returncode == 1 and "no answer within 10 s" in done.stderr
    finally:
        os.kill(served.server_pid, signal.SIGCONT)


@pytest.mark.long
def test_a_configuration_that_is_a_pipe_nobody_writes_to_stops_nothing(served):
    os.unlink(served.conf_path)
    os.mkfifo(served.conf_path)
    served.reload(refused=True)
    assert "cannot read it: No data available" in served.errors()
    assert served.get("/ok").body == b"ok"
