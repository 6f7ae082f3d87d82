# SPDX-License-Identifier: MIT
"""The supervisor: servers that crash and come back, signals that go on to them, what is left when either is killed."""
import ctypes
import os
import re
import signal
import socket
import stat
import threading
import time

import pytest
from harness import server
from harness.util import SCALE, alive, cpu_ms, pss_bytes, scaled, wait_for
from wire import Closed, Timeout

FILES = {"public/a.txt": "hello"}
PLAIN = 'workers = 2; sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; } );'


def ask(conn, path="/a.txt"):
    conn.send(b"GET %s HTTP/1.1\r\nHost: h.test\r\n\r\n" % path.encode())
    return conn.response("GET")


def answers(w, body=b"hello"):
    try:
        return w.get("/a.txt", timeout=2).body == body
    except (OSError, Closed, Timeout):
        return False


def sockets_of(pid):
    out = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            target = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except OSError:
            continue
        if target.startswith("socket:"):
            out.add(target)
    return out


def kill_server(w, sig=signal.SIGKILL):
    """Kills the server; returns its number when another one serves."""
    old = w.server_pid
    os.kill(old, sig)
    wait_for("another server serves", 10, lambda: not alive(old) and w.tree()[1:] and w.server_pid != old and answers(w))
    return old


# --- two processes ---

def test_the_supervisor_is_small_and_rests(weir):
    w = weir(PLAIN, files=FILES)
    assert answers(w)
    assert len(w.tree()) == 2
    if SCALE == 1:
        assert pss_bytes(w.tree()) < 4000 << 10
    began = cpu_ms([w.pid])
    time.sleep(2)
    assert cpu_ms([w.pid]) - began <= 10


def test_listening_sockets_are_the_supervisors_and_each_loop_has_one(weir):
    w = weir(PLAIN, files=FILES)
    shared = sockets_of(w.pid) & sockets_of(w.server_pid)
    with open("/proc/net/tcp") as f:
        rows = [ln.split() for ln in f]
    listening = {"socket:[%s]" % r[9] for r in rows if r[3] == "0A" and r[1].endswith(":%04X" % w.port)}
    assert len(listening) == 2
    assert listening <= shared


# --- a server that dies ---

@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSEGV])
def test_a_server_that_dies_is_replaced(weir, sig):
    if SCALE != 1 and sig == signal.SIGSEGV:
        pytest.skip("sanitizers keep their own handlers")
    w = weir(PLAIN, files=FILES)
    w.wait_error(r"generation 1: ")
    idle = w.connect()
    assert ask(idle).status == 200
    old = kill_server(w, sig)
    assert idle.at_eof()
    w.wait_error(r"\[error\] %d#supervisor: server %d was killed by %s( \(core dumped\))?; a new one starts in 0\.1 s with "
                 r"generation 1$" % (w.pid, old, sig.name))
    assert w.proc.poll() is None


def test_who_starts_it_may_ignore_sigchld(weir, monkeypatch, tmp_path):
    server.launched_by(monkeypatch, tmp_path, "signal.signal(signal.SIGCHLD, signal.SIG_IGN)")
    w = weir(PLAIN, files=FILES)
    dead = w.server_pid
    os.kill(dead, signal.SIGKILL)
    wait_for("another server", 5, lambda: re.search("killed by SIGKILL; a new one starts", w.errors()))
    wait_for("it serves", 5, lambda: w.get("/a.txt").status == 200)
    assert w.stop() == 0


def test_only_connections_of_the_dead_server_are_lost(weir):
    w = weir(PLAIN, files=FILES)
    w.wait_error(r"generation 1: ")
    stop, lost, done = threading.Event(), [], [0]

    def client():
        while not stop.is_set():
            try:
                r = w.get("/a.txt", timeout=10)
                assert r.body == b"hello"
                done[0] += 1
            except ConnectionRefusedError as e:
                lost.append(repr(e))
            except (Closed, ConnectionResetError, BrokenPipeError):
                done[0] += 1  # it was with the server that died
            except Exception as e:
                lost.append(repr(e))

    clients = [threading.Thread(target=client) for _ in range(4)]
    for t in clients:
        t.start()
    for _ in range(3):
        wait_for("clients are served", 10, lambda n=done[0]: done[0] > n + 20)
        kill_server(w)
    stop.set()
    for t in clients:
        t.join()
    assert not lost, lost[:3]


def test_a_server_that_keeps_crashing_does_not_spin(weir):
    w = weir(PLAIN, files=FILES)
    w.wait_error(r"generation 1: ")
    for _ in range(4):
        kill_server(w)
    delays = re.findall(r"a new one starts in (\d+\.\d) s", w.errors())
    assert delays == ["0.1", "0.2", "0.4", "0.8"]


def test_the_restarted_server_has_the_configuration_that_was_in_force(weir):
    conf = 'sites = ( { listen = "127.0.0.1:@PORT@"; respond = "%s"; } );'
    w = weir(conf % "one")
    w.reload(conf % "two")
    w.configure('sites = ( { listen = "127.0.0.1:@PORT@"; respond = "thr')  # half-edited
    old = w.server_pid
    os.kill(old, signal.SIGKILL)
    wait_for("the new server answers", 10, lambda: not alive(old) and answers(w, b"two"))
    w.wait_error(r"a new one starts in 0\.1 s with generation 2")
    wait_for("it has said so", 5, lambda: w.errors().count(" generation 2: ") == 2)
    w.reload(refused=True)
    assert "still on generation 2" in w.errors()
    w.reload(conf % "four")
    w.wait_error("generation 3: ")
    assert answers(w, b"four")


def test_includes_and_environment_are_in_what_is_kept(weir, free_port):
    more = free_port()
    w = weir('include = "more.conf"; sites = ( { listen = "127.0.0.1:@PORT@"; respond = "here"; } );',
             files={"more.conf": 'sites = ( { listen = "127.0.0.1:%d"; respond = "${ANSWER}"; } );' % more},
             env={"ANSWER": "from outside"})

    def both():
        return answers(w, b"here") and w.get("/", port=more).body == b"from outside"
    assert both()
    os.unlink(os.path.join(w.dir, "more.conf"))
    old = w.server_pid
    os.kill(old, signal.SIGKILL)
    wait_for("the new server answers", 10, lambda: not alive(old) and both())


def test_hup_while_no_server_runs_is_not_lost(weir):
    conf = 'sites = ( { listen = "127.0.0.1:@PORT@"; respond = "%s"; } );'
    w = weir(conf % "one")
    w.wait_error(r"generation 1: ")
    for _ in range(3):
        old = w.server_pid
        os.kill(old, signal.SIGKILL)
        wait_for("another one serves", 10, lambda: not alive(old) and answers(w, b"one"))
    w.configure(conf % "two")
    old = w.server_pid
    os.kill(old, signal.SIGKILL)
    w.wait_error(r"starts in 0\.8 s")
    w.send_signal(signal.SIGHUP)
    wait_for("the new configuration answers", 10, lambda: answers(w, b"two"))


def test_a_stop_while_no_server_runs_ends_it(weir):
    w = weir(PLAIN, files=FILES)
    w.wait_error(r"generation 1: ")
    for _ in range(3):
        kill_server(w)
    os.kill(w.server_pid, signal.SIGKILL)
    w.wait_error(r"starts in 0\.8 s")
    w.send_signal(signal.SIGTERM)
    assert w.wait_exit() == 0


@pytest.mark.parametrize("log", ["error_log", "access_log"])
def test_a_first_server_that_cannot_start_is_the_end(weir, log):
    w = weir("%s = \"@DIR@/x.log\"; %s" % (log, PLAIN), files=FILES)
    w.expect_exit = (1,)
    w.stop()
    path = os.path.join(w.dir, "x.log")
    if os.path.exists(path):
        os.unlink(path)
    os.symlink("x.log", path)
    w.start(wait=False)
    assert w.wait_exit() == 1
    assert re.search(r"cannot open the log .*/x\.log: Too many levels of symbolic links", w.errors())
    assert "a new one starts" not in w.errors()


# --- a server that hangs ---

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


class Held:
    """One thread of a process, stopped by ptrace; the others go on."""

    def __init__(self, tid):
        self.tid, self.libc = tid, ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long] * 4
        if self.libc.ptrace(PTRACE_SEIZE, tid, 0, 0) != 0:
            pytest.skip("ptrace is not permitted")
        assert self.libc.ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0
        os.waitpid(tid, 0x40000000)  # __WALL

    def release(self):
        self.libc.ptrace(PTRACE_DETACH, self.tid, 0, 0)


@pytest.mark.long
@pytest.mark.root
@pytest.mark.skipif(SCALE != 1, reason="sanitizers keep their own handlers")
def test_a_loop_that_hangs_says_where_and_then_is_ended(weir):
    w = weir(PLAIN, files=FILES)
    w.wait_error(r"generation 1: ")
    old = w.server_pid

    def loop():
        for tid in os.listdir("/proc/%d/task" % w.server_pid):
            with open("/proc/%d/task/%s/comm" % (w.server_pid, tid)) as f:
                if f.read().strip() == "weir-loop-1":
                    return int(tid)
    held = Held(loop())
    w.wait_error(r"\[emerg\].* loop 1 has not turned for 10 s$", 25)
    held.release()
    w.wait_error(r"^weir\[%d\] \[emerg\] thread weir-loop-1 is here$" % old)
    w.wait_error(r"^\S*weir\(\+0x[0-9a-f]+\)")
    assert answers(w) and w.server_pid == old, "one that turns again is left alone"
    held = Held(loop())
    w.wait_error(r"\[emerg\].* loop 1 has not turned for 30 s: ending$", 60)
    held.release()
    w.wait_error(r"crashed: SIGABRT in thread weir-loop-1$")
    wait_for("another server serves", 10, lambda: not alive(old) and answers(w))


@pytest.mark.long
def test_a_server_that_is_stopped_is_left_alone(weir):
    w = weir(PLAIN, files=FILES)
    w.wait_error(r"generation 1: ")
    old = w.server_pid
    os.kill(old, signal.SIGSTOP)
    time.sleep(45)
    os.kill(old, signal.SIGCONT)
    wait_for("it answers", 10, lambda: answers(w))
    time.sleep(6)
    assert alive(old) and "does not answer" not in w.errors() and "has not turned" not in w.errors()


# --- a supervisor that dies ---

@pytest.mark.threads
def test_without_its_supervisor_a_server_drains(weir, raw_backend):
    asked, go = threading.Event(), threading.Event()

    def script(conn):
        conn.head()
        asked.set()
        if go.wait(scaled(20)):
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow")
            conn.wait_close()

    w = weir('timeouts = { lame_duck = 0; }; sites = ( { listen = "127.0.0.1:@PORT@"; root = "public";'
             ' locations = ( { match = "/slow"; proxy = "@ORIGIN@"; } ); } );', files=FILES,
             ORIGIN=raw_backend(script).addr)
    w.expect_exit = (-signal.SIGKILL,)
    busy, idle = w.connect(timeout=20), w.connect(timeout=20)
    assert ask(idle).status == 200
    busy.send(b"GET /slow HTTP/1.1\r\nHost: h.test\r\n\r\n")
    assert asked.wait(scaled(10))
    server = w.server_pid
    w.send_signal(signal.SIGKILL)
    w.wait_exit()
    w.wait_error(r"the supervisor has gone")
    assert idle.at_eof()
    assert alive(server)
    go.set()
    assert busy.response("GET").body == b"slow"
    wait_for("the server has ended", 10, lambda: not alive(server))


# --- signals ---

def test_a_signal_is_passed_on_with_its_sender(weir):
    w = weir(PLAIN, files=FILES)
    w.wait_error(r"generation 1: ")
    w.send_signal(signal.SIGHUP)
    w.wait_error(r"%d#main: signal HUP from process %d$" % (w.server_pid, os.getpid()))
    w.wait_error("generation 2: ")


def test_a_signal_to_both_processes_is_one_signal(weir, raw_backend):
    asked, go = threading.Event(), threading.Event()

    def script(conn):
        conn.head()
        asked.set()
        if go.wait(scaled(20)):
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow")

    w = weir('timeouts = { lame_duck = 0; }; sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@"; } );',
             ORIGIN=raw_backend(script).addr)
    busy = w.connect(timeout=20)
    busy.send(b"GET /slow HTTP/1.1\r\nHost: h.test\r\n\r\n")
    assert asked.wait(scaled(10))
    server = w.server_pid
    for pid in (server, w.pid):  # as `pkill weir` does, or a service manager that signals the whole group
        os.kill(pid, signal.SIGTERM)
    w.wait_error("signal TERM")  # once or twice: the kernel makes one of two that wait together
    go.set()
    assert busy.response("GET").body == b"slow"
    assert w.wait_exit() == 0
    assert "ending at once" not in w.errors()


def test_term_to_the_server_alone_stops_both(weir):
    w = weir('timeouts = { lame_duck = 0; }; ' + PLAIN, files=FILES)
    w.wait_error(r"generation 1: ")
    os.kill(w.server_pid, signal.SIGTERM)
    assert w.wait_exit() == 0


# --- files ---

def test_the_pid_file_is_the_supervisors(weir):
    w = weir('pid_file = "weir.pid"; ' + PLAIN, files=FILES)
    path = os.path.join(w.dir, "weir.pid")
    wait_for("the pid file is written", 5, lambda: os.path.exists(path) and open(path).read() == "%d\n" % w.pid)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644 & ~os.umask(os.umask(0))
    kill_server(w)
    assert open(path).read() == "%d\n" % w.pid
    assert w.stop() == 0
    assert not os.path.exists(path)


def test_a_pid_file_in_use_ends_the_start_and_stays(weir):
    w = weir('pid_file = "weir.pid"; ' + PLAIN, files=FILES)
    path = os.path.join(w.dir, "weir.pid")
    wait_for("the pid file is written", 5, lambda: os.path.exists(path) and open(path).read() == "%d\n" % w.pid)
    second = weir('pid_file = "%s"; %s' % (path, PLAIN), files=FILES, wait=False)
    second.expect_exit = (1,)
    assert second.wait_exit() == 1
    assert "pid_file %s belongs to another server" % path in second.errors()
    assert open(path).read() == "%d\n" % w.pid


def test_a_pid_file_left_by_a_killed_supervisor_is_taken_over(weir):
    w = weir('pid_file = "weir.pid"; timeouts = { lame_duck = 0; }; ' + PLAIN, files=FILES)
    path = os.path.join(w.dir, "weir.pid")
    wait_for("the pid file is written", 5, lambda: os.path.exists(path) and open(path).read() == "%d\n" % w.pid)
    pids = w.tree()
    w.send_signal(signal.SIGKILL)
    w.wait_exit()
    wait_for("the server has drained", 10, lambda: not any(map(alive, pids)))
    w.start()
    wait_for("the pid file is written", 5, lambda: open(path).read() == "%d\n" % w.pid)


# --- rights ---

def status_of(pid):
    with open("/proc/%d/status" % pid) as f:
        return dict(ln.rstrip("\n").split(":\t", 1) for ln in f if ":\t" in ln)


@pytest.mark.root
def test_the_supervisor_keeps_only_the_right_to_bind(weir):
    w = weir('user = "nobody:nogroup"; ' + PLAIN, files=FILES)
    os.chmod(os.path.join(w.dir, "public"), 0o755)
    assert answers(w)
    above, below = status_of(w.pid), status_of(w.server_pid)
    for status in (above, below):
        assert set(status["Uid"].split()) == {"65534"} and status["NoNewPrivs"] == "1"
    assert int(above["CapPrm"], 16) == int(above["CapEff"], 16) == int(above["CapAmb"], 16) == 1 << 10
    for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
        assert int(below[name], 16) == 0, name


@pytest.mark.root
def test_what_the_user_cannot_read_ends_the_start(weir):
    w = weir('user = "nobody"; ' + PLAIN, files=FILES)
    w.stop()
    os.chmod(w.conf_path, 0o600)
    w.expect_exit = (1,)
    w.start(wait=False)
    assert w.wait_exit() == 1
    assert re.search(r'user "nobody" cannot read \S+proxy\.conf: a reload could not either', w.errors())


@pytest.mark.root
def test_a_low_port_is_bound_after_the_drop(weir):
    port = next(p for p in range(600, 1000) if socket.socket().connect_ex(("127.0.0.1", p)) != 0)
    w = weir('user = "nobody"; workers = 2; sites = ( { listen = "127.0.0.1:%d"; respond = "low"; } );' % port,
             wait=False)
    wait_for("it answers", 10, lambda: w.proc.poll() is None and _low(w, port))


def _low(w, port):
    try:
        return w.get("/", port=port).body == b"low"
    except (OSError, Closed, Timeout):
        return False
