# SPDX-License-Identifier: MIT
"""Upgrades: the new program takes the supervisor's place, a second server the first one's, and no client notices."""
import os
import re
import shutil
import signal
import subprocess
import threading

import pytest
from harness import names, server
from harness.util import SCALE, alive, scaled, wait_for
from wire import Closed, Conn

FILES = {"public/a.txt": "hello"}
PLAIN = '''workers = 2; timeouts = { lame_duck = "100ms"; };
           sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; } );'''


@pytest.fixture
def program(monkeypatch, tmp_path):
    """A copy of the program under test that a test may replace; weir(...) runs that one."""
    path = str(tmp_path / "weir")
    shutil.copy(server.BIN, path)
    monkeypatch.setattr(server, "BIN", path)

    class Program:
        def __init__(self):
            self.path = path
            self.original = path + ".original"
            shutil.copy(path, self.original)

        def replace(self, content=None):
            """As a package manager does: a new file in its place. None: the same program again."""
            new = path + ".new"
            if content is None:
                shutil.copy(self.original, new)
            else:
                with open(new, "w") as f:
                    f.write(content)
            os.chmod(new, 0o755)
            os.rename(new, path)
    return Program()


def upgrade(w, how="signal"):
    """Returns the numbers of the old and the new server."""
    w.wait_error(r"generation \d+: ")  # before that there is nothing to upgrade
    old = w.server_pid
    seen = len(re.findall("has taken over from", w.errors()))
    if how == "signal":
        w.send_signal(signal.SIGUSR2)
    else:
        done = w.cli("upgrade")
        assert done.returncode == 0, done.stderr
    wait_for("a second server has taken over", 15,
             lambda: len(re.findall("has taken over from", w.errors())) > seen)
    return old, w.server_pid


def listening(port):
    with open("/proc/net/tcp") as f:
        rows = [ln.split() for ln in f]
    return sum(r[3] == "0A" and r[1].endswith(":%04X" % port) for r in rows)


def refused(w):
    w.send_signal(signal.SIGUSR2)
    w.wait_error(r"#supervisor: upgrade refused: ", 15)


def ask(conn, path="/a.txt"):
    conn.send(b"GET %s HTTP/1.1\r\nHost: h.test\r\n\r\n" % path.encode())
    return conn.response("GET")


def exe(pid):
    return os.readlink("/proc/%d/exe" % pid)


def start_of(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[19]


@pytest.mark.threads
@pytest.mark.parametrize("how", ["signal", "command"])
def test_an_upgrade_keeps_the_supervisors_number_and_replaces_the_server(weir, program, how):
    w = weir(PLAIN, files=FILES)
    w.wait_error("generation 1: ")
    began = start_of(w.pid)
    program.replace()
    assert exe(w.pid).endswith("(deleted)")
    old, new = upgrade(w, how)
    assert new != old and start_of(w.pid) == began
    assert exe(w.pid) == program.path and exe(new) == program.path
    assert w.get("/a.txt").body == b"hello"
    wait_for("the old server has ended", 10, lambda: not alive(old))
    assert len(w.tree()) == 2
    # And once more, from the new one; reload and stop still work.
    upgrade(w, how)
    w.reload(PLAIN.replace('root = "public"', 'respond = "new"'))
    wait_for("the new configuration answers", 5, lambda: w.get("/").body == b"new")


def test_a_program_that_cannot_be_executed_changes_nothing(weir, program):
    w = weir(PLAIN, files=FILES)
    w.wait_error("generation 1: ")
    server_pid = w.server_pid
    program.replace("not a program\n")
    refused(w)
    w.wait_error(r"upgrade: cannot run .*/weir: Exec format error")
    os.unlink(program.path)
    done = w.cli("upgrade") if os.path.exists(program.path) else None
    assert done is None
    w.send_signal(signal.SIGUSR2)
    w.wait_error(r"upgrade: cannot run .*/weir: No such file or directory")
    assert w.server_pid == server_pid and w.get("/a.txt").body == b"hello"
    # Nothing stays behind of the attempts: a good program is taken.
    program.replace()
    upgrade(w)


def test_a_program_that_refuses_the_configuration_changes_nothing(weir, program):
    w = weir(PLAIN, files=FILES)
    w.wait_error("generation 1: ")
    server_pid = w.server_pid
    program.replace("#!/bin/sh\necho \"proxy.conf:7: nobody knows this\" >&2\nexit 1\n")
    refused(w)
    w.wait_error(r"\[error\] %d#supervisor: upgrade: proxy\.conf:7: nobody knows this$" % w.pid)
    assert w.server_pid == server_pid and w.get("/a.txt").body == b"hello"


def test_a_program_without_supervisors_is_refused(weir, program):
    """One that does not know what it would be handed: usage error."""
    w = weir(PLAIN, files=FILES)
    w.wait_error("generation 1: ")
    program.replace("#!/bin/sh\n[ \"$2\" = --upgrade ] && exit 2\nexit 0\n")
    refused(w)
    assert w.get("/a.txt").body == b"hello"


def test_a_refused_upgrade_is_told_to_who_asked(weir, program):
    w = weir(PLAIN, files=FILES)
    w.wait_error("generation 1: ")
    program.replace("#!/bin/sh\nexit 1\n")
    done = subprocess.run([program.original, "upgrade", "-c", w.conf_path], env=server.environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=scaled(20))
    assert done.returncode == 1
    assert "refuses the running configuration" in done.stderr


def test_a_new_server_that_does_not_come_up_leaves_the_old_one(weir, program):
    w = weir('error_log = "error2.log"; access_log = "a/x.log"; ' + PLAIN, files={**FILES, "a/x.log": ""})
    wait_for("it serves", 5, lambda: w.get("/a.txt").status == 200)
    server_pid = w.server_pid
    os.unlink(os.path.join(w.dir, "a/x.log"))
    os.symlink("x.log", os.path.join(w.dir, "a/x.log"))
    path = os.path.join(w.dir, "error2.log")
    w.send_signal(signal.SIGUSR2)
    wait_for("it says so", 15, lambda: re.search(r"upgrade failed: server \d+ ended with exit code 1 before it served; "
                                                 r"%d serves on" % server_pid, open(path).read()))
    assert w.server_pid == server_pid and w.get("/a.txt").body == b"hello"
    os.unlink(os.path.join(w.dir, "a/x.log"))
    w.send_signal(signal.SIGUSR2)
    wait_for("another server serves", 15, lambda: "has taken over from" in open(path).read())
    assert w.get("/a.txt").body == b"hello"


def test_the_running_configuration_goes_along_not_the_file(weir, program):
    conf = 'timeouts = { lame_duck = 0; }; sites = ( { listen = "127.0.0.1:@PORT@"; respond = "%s"; } );'
    w = weir(conf % "one")
    w.reload(conf % "two")
    w.configure("half of a")
    upgrade(w)
    assert w.get("/").body == b"two"
    w.wait_error(r"\[notice\] %d#main: generation 2: " % w.server_pid)
    w.reload(refused=True)
    assert "still on generation 2" in w.errors()


@pytest.mark.threads
def test_a_reload_while_the_new_server_starts_is_not_lost(weir, program, free_port):
    """The new server was started with the text of before; the address that the reload brought is the supervisor's."""
    extra = free_port()
    conf = ('workers = 2; timeouts = { lame_duck = 0; };'
            'sites = ( { listen = "127.0.0.1:@PORT@"; respond = "%s"; }%s );')
    w = weir(conf % ("one", ""))
    w.wait_error("generation 1: ")
    for n in range(5):
        seen = len(re.findall("has taken over from", w.errors()))
        with_extra = ', { listen = "127.0.0.1:%d"; respond = "extra"; }' % extra if n % 2 == 0 else ""
        w.configure(conf % ("answer %d" % n, with_extra))
        w.send_signal(signal.SIGUSR2)
        wait_for("the new program has taken over", 15,
                 lambda seen=seen: len(re.findall("upgrade: weir", w.errors())) > seen)
        w.send_signal(signal.SIGHUP)
        wait_for("a second server has taken over", 15,
                 lambda seen=seen: len(re.findall("has taken over from", w.errors())) > seen)
        wait_for("it has the new configuration", 15, lambda n=n: w.get("/").body == b"answer %d" % n)
        if with_extra:
            wait_for("the new address answers", 10, lambda: w.get("/", port=extra).body == b"extra")
    assert w.get("/").body == b"answer 4"


@pytest.mark.parametrize("before, after", [(1, 3), (3, 1)])
def test_more_or_fewer_loops(weir, program, before, after):
    conf = 'workers = %d; timeouts = { lame_duck = 0; }; sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; } );'
    w = weir(conf % before, files=FILES)
    w.reload(conf % after)
    w.wait_error("workers has changed: it needs an upgrade")
    old, _ = upgrade(w)
    wait_for("the old server has ended", 10, lambda: not alive(old))
    w.wait_error(r"#main: %d loops, " % after)
    for _ in range(60):
        assert w.get("/a.txt").body == b"hello"
    assert listening(w.port) == max(before, after)


@pytest.fixture
def resolver():
    n = names.Names({"app.test": "127.0.0.1"})
    yield n
    n.close()


def begin_slowly(w, resolver):
    """Begins an upgrade whose server waits for a name, with all sockets in its hands; returns its number."""
    w.wait_error("generation 1: ")
    old, n = w.server_pid, len(resolver.lookups("app.test"))
    resolver.write({"app.test": "wait 5 127.0.0.1"})
    w.send_signal(signal.SIGUSR2)
    wait_for("the new server looks the name up", 15, lambda: len(resolver.lookups("app.test")) > n)
    assert w.server_pid != old
    return w.server_pid


def test_what_was_opened_for_a_server_that_does_not_come_up_is_closed(weir, program, resolver):
    """Or the kernel would complete handshakes that nobody answers: two of three here."""
    conf = ('workers = %d; upstreams = { app = { servers = ( "app.test:1" ); }; };'
            'sites = ( { listen = "127.0.0.1:@PORT@"; respond = "hello"; locations = ( { match = "/p"; proxy = "app"; } ); } );')
    w = weir(conf % 1, env=resolver.env)
    w.reload(conf % 3)
    new = begin_slowly(w, resolver)
    assert listening(w.port) == 3
    os.kill(new, signal.SIGKILL)
    w.wait_error("upgrade failed: server %d was killed by SIGKILL before it served" % new)
    assert listening(w.port) == 1
    assert [w.get("/").body for _ in range(10)] == [b"hello"] * 10


def test_an_address_given_up_while_a_server_starts_that_does_not_come_up(weir, program, resolver, free_port):
    extra = free_port()
    conf = ('workers = 2; timeouts = { lame_duck = 0; }; upstreams = { app = { servers = ( "app.test:1" ); }; };'
            'sites = ( { listen = "127.0.0.1:@PORT@"; respond = "hello"; locations = ( { match = "/p"; proxy = "app"; } ); }%s );')
    w = weir(conf % (', { listen = "127.0.0.1:%d"; respond = "extra"; }' % extra), env=resolver.env)
    new = begin_slowly(w, resolver)
    w.reload(conf % "")
    w.wait_error("no longer listening on 127.0.0.1:%d" % extra)
    os.kill(new, signal.SIGKILL)
    w.wait_error("upgrade failed: server %d was killed by SIGKILL before it served" % new)
    assert listening(extra) == 0 and listening(w.port) == 2
    assert w.get("/").body == b"hello"


def test_a_crash_after_an_upgrade_is_recovered_from(weir, program):
    w = weir(PLAIN, files=FILES)
    w.wait_error("generation 1: ")
    old, new = upgrade(w)
    os.kill(new, signal.SIGKILL)
    wait_for("another one serves", 10, lambda: not alive(new) and w.get("/a.txt").body == b"hello")
    w.wait_error("server %d was killed by SIGKILL; a new one starts" % new)


def test_the_pid_file_and_the_control_socket_stay(weir, program):
    w = weir('pid_file = "weir.pid"; ' + PLAIN, files=FILES)
    path = os.path.join(w.dir, "weir.pid")
    wait_for("the pid file is written", 5, lambda: os.path.exists(path) and open(path).read() == "%d\n" % w.pid)
    upgrade(w)
    upgrade(w, "command")
    assert open(path).read() == "%d\n" % w.pid
    assert w.cli("status").returncode == 0
    assert w.stop() == 0
    assert not os.path.exists(path)


@pytest.mark.threads
def test_answers_under_way_are_finished_by_the_old_server(weir, raw_backend, program):
    asked, go = threading.Event(), threading.Event()

    def script(conn):
        conn.head()
        asked.set()
        if go.wait(scaled(20)):
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow")
            conn.wait_close()

    w = weir('timeouts = { lame_duck = "100ms"; }; sites = ( { listen = "127.0.0.1:@PORT@"; root = "public";'
             ' locations = ( { match = "/slow"; proxy = "@ORIGIN@"; },'
             ' { match = "= /ready"; builtin = "ready"; } ); } );', files=FILES, ORIGIN=raw_backend(script).addr)
    busy, idle, fresh = (w.connect(timeout=20) for _ in range(3))
    check = w.connect(timeout=20)
    assert ask(idle).status == 200 and ask(check, "/ready").status == 200
    busy.send(b"GET /slow HTTP/1.1\r\nHost: h.test\r\n\r\n")
    assert asked.wait(scaled(10))
    old, new = upgrade(w)
    # A balancer's check must not be told that this host is going; the answer is the last on its connection.
    w.wait_error("another server has taken over; draining")
    assert idle.at_eof(), "idle connections are closed"
    assert alive(old)
    go.set()
    r = busy.response("GET")
    assert r.body == b"slow" and "close" in r.tokens("connection")
    # One that was opened in advance gets its answer, whoever has it.
    assert ask(fresh).body == b"hello"
    check.close()
    wait_for("the old server has ended", 10, lambda: not alive(old))
    assert w.get("/ready").status == 200


def test_ready_stays_ready_on_the_old_servers_connections(weir, program):
    w = weir('timeouts = { lame_duck = "20s"; }; sites = ( { listen = "127.0.0.1:@PORT@"; builtin = "ready"; } );')
    check = w.connect(timeout=20)
    assert ask(check, "/").status == 200
    upgrade(w)
    w.wait_error("another server has taken over; draining")
    r = ask(check, "/")
    assert r.status == 200 and "close" in r.tokens("connection")
    w.expect_exit = (0,)


def preconnects(w, n):
    return [Conn("127.0.0.1", w.port, scaled(20)) for _ in range(n)]


@pytest.mark.threads
def test_upgrades_under_load_lose_nothing(weir, program):
    """Clients that open a connection for each request; and some that opened theirs long before they ask."""
    upgrades = 10 if SCALE == 1 else 3
    w = weir(PLAIN, files=FILES)
    w.wait_error("generation 1: ")
    stop, errors, done = threading.Event(), [], [0]
    waiting = preconnects(w, 20)

    def client():
        while not stop.is_set():
            try:
                assert w.get("/a.txt", timeout=20).body == b"hello"
                done[0] += 1
            except (Exception, Closed) as e:
                errors.append(repr(e))
                return

    clients = [threading.Thread(target=client) for _ in range(4)]
    for t in clients:
        t.start()
    try:
        for _ in range(upgrades):
            upgrade(w)
            wait_for("clients are served", 10, lambda seen=done[0]: done[0] > seen + 10 or errors)
            assert ask(waiting.pop()).body == b"hello"
    finally:
        stop.set()
        for t in clients:
            t.join()
    assert not errors, errors[:3]
    for c in waiting:
        assert ask(c).body == b"hello"


@pytest.mark.skipif(not shutil.which("ab"), reason="needs ab")
def test_ten_upgrades_under_ab(weir, program):
    upgrades = 10 if SCALE == 1 else 2
    w = weir(PLAIN + ' access_log = false;', files=FILES)
    w.wait_error("generation 1: ")
    waiting = preconnects(w, 20)
    ab = subprocess.Popen(["ab", "-r", "-t", "120", "-n", "10000000", "-c", "8", "http://127.0.0.1:%d/a.txt" % w.port],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(upgrades):
            upgrade(w)
    finally:
        ab.send_signal(signal.SIGINT)  # it prints its report
        out, err = ab.communicate(timeout=30)
    assert int(re.search(r"Complete requests:\s+(\d+)", out).group(1)) > 100, out + err
    assert re.search(r"Failed requests:\s+0$", out, re.M), out + err
    assert "Non-2xx" not in out, out
    for c in waiting:
        assert ask(c).body == b"hello"
