# SPDX-License-Identifier: MIT
"""The server process: starting, binding, signals, reload, draining, privileges, crashes, want of descriptors."""
import os
import re
import resource
import signal
import socket
import stat
import threading
import time

import pytest
from harness import server
from harness.util import SCALE, alive, cpu_ms, free_port, scaled, wait_for
from wire import Closed, Conn

FILES = {"public/a.txt": "hello"}
PLAIN = 'workers = 2; sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; } );'
DRAIN = '''
    timeouts = { lame_duck = %s; shutdown = %s; };
    sites = ( { listen = "127.0.0.1:@PORT@"; root = "public";
                locations = ( { match = "/slow"; proxy = "@ORIGIN@"; } ); } );
'''


def ask(conn, path="/a.txt"):
    conn.send(b"GET %s HTTP/1.1\r\nHost: h.test\r\n\r\n" % path.encode())
    return conn.response("GET")


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), scaled(2)).close()
        return False
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # the very moment
        return False


def threads_of(pid):
    """{name: thread id}"""
    out = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
            out[f.read().strip()] = int(tid)
    return out


@pytest.fixture
def slow(raw_backend):
    """A backend whose answer waits for .go."""
    class Slow:
        def __init__(self):
            self.asked, self.go = threading.Event(), threading.Event()
            self.addr = raw_backend(self.script).addr

        def script(self, conn):
            conn.head()
            self.asked.set()
            if self.go.wait(scaled(20)):
                conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow")
                conn.wait_close()
    s = Slow()
    yield s
    s.go.set()


def drained(weir, slow, lame_duck="0", shutdown='"30s"'):
    """A server with one request under way that its backend has seen, and an idle client."""
    w = weir(DRAIN % (lame_duck, shutdown), files=FILES, ORIGIN=slow.addr)
    idle, busy = w.connect(timeout=20), w.connect(timeout=20)
    assert ask(idle).body == b"hello"
    busy.send(b"GET /slow HTTP/1.1\r\nHost: h.test\r\n\r\n")
    assert slow.asked.wait(scaled(10))
    return w, idle, busy


# --- start ---

def test_the_log_begins_with_the_configuration_and_names_what_was_opened(weir):
    w = weir(PLAIN, files=FILES)
    w.wait_error(r"generation 1: ")
    lines = [ln for ln in w.errors().split("\n") if "proxy.conf:" not in ln]  # findings of the configuration aside
    assert re.match(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[notice\] %d#main: weir \S+: configuration %s$"
                    % (w.server_pid, re.escape(w.conf_path)), lines[0])
    assert re.search(r"\[notice\].* 2 loops, \d+ descriptors, at most \d+ clients$", w.errors(), re.M)
    assert re.search(r"\[notice\].* listening on 127\.0\.0\.1:%d$" % w.port, w.errors(), re.M)


def test_threads_have_names_and_their_cpus(weir):
    w = weir("cpu_affinity = [ 0 ]; " + PLAIN, files=FILES)
    wait_for("all threads run", 5, lambda: {"weir-loop-0", "weir-loop-1", "weir-log"} <= set(threads_of(w.server_pid)))
    threads = threads_of(w.server_pid)
    for name in ("weir-loop-0", "weir-loop-1"):
        wait_for("it is on its CPU", 5, lambda: os.sched_getaffinity(threads[name]) == {0})
    assert os.sched_getaffinity(threads["weir-log"]) == os.sched_getaffinity(0)


def test_the_soft_limit_of_descriptors_is_raised(weir):
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, old[1]), old[1]))
    try:
        w = weir(PLAIN, files=FILES)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)
    w.wait_error(r"2 loops, %d descriptors, at most %d clients" % (old[1], old[1] // 2))
    assert resource.prlimit(w.server_pid, resource.RLIMIT_NOFILE) == (old[1], old[1])


def test_too_few_descriptors_for_the_clients_wanted_is_said(weir):
    w = weir("limits = { clients = 100000000; }; " + PLAIN, files=FILES)
    w.wait_error(r"\[warn\].* limits\.clients = 100000000 needs up to 200000000 descriptors, and the limit is \d+")


def test_both_loops_get_connections(weir):
    w = weir('log_level = "info"; ' + PLAIN, files=FILES)
    for _ in range(60):
        c = w.connect()
        c.send(b"BAD\r\n\r\n")
        assert c.response("GET").status == 400
        c.close()
    # A client's fault is logged by the loop that met it.
    w.wait_error(r"\[info\] %d#0: " % w.server_pid)
    w.wait_error(r"\[info\] %d#1: " % w.server_pid)


@pytest.mark.root
def test_root_is_given_up_for_good(weir):
    w = weir('user = "nobody:nogroup"; ' + PLAIN, files=FILES)
    os.chmod(os.path.join(w.dir, "public"), 0o755)
    assert w.get("/a.txt").status == 200
    with open("/proc/%d/status" % w.server_pid) as f:
        status = dict(ln.rstrip("\n").split(":\t", 1) for ln in f if ":\t" in ln)
    assert set(status["Uid"].split()) == {"65534"} and set(status["Gid"].split()) == {"65534"}
    assert status["Groups"].split() in ([], ["65534"])
    assert status["CapEff"].strip("0") == "" and status["CapPrm"].strip("0") == ""
    assert status["NoNewPrivs"] == "1"
    assert "running as root" not in w.errors()


@pytest.mark.root
def test_root_without_a_user_is_warned_once(weir):
    w = weir(PLAIN, files=FILES)
    w.wait_error("generation 1")
    assert w.errors().count("running as root: set `user`") == 1


def test_a_user_or_group_that_does_not_exist_is_an_error_of_the_configuration(weir):
    w = weir(PLAIN, files=FILES)
    for user, kind in (("no-such-user", "user"), ("root:no-such-group", "group")):
        w.reload('user = "%s"; ' % user + PLAIN, refused=True)
        assert 'proxy.conf:1: user: there is no %s "no-such-%s"; expected "user" or' % (kind, kind) in w.errors()


def test_the_service_manager_is_told(weir, tmp_path):
    path = os.path.join("/tmp", "weir-notify-%d" % os.getpid())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(scaled(10))
        try:
            w = weir(PLAIN, files=FILES, env={"NOTIFY_SOCKET": path})
            assert manager.recv(200) == b"READY=1\nMAINPID=%d" % w.pid
            w.send_signal(signal.SIGHUP)
            assert re.match(rb"RELOADING=1\nMONOTONIC_USEC=\d+$", manager.recv(200))
            assert manager.recv(200) == b"READY=1\nMAINPID=%d" % w.pid
            w.send_signal(signal.SIGINT)
            assert manager.recv(200) == b"STOPPING=1"
            assert w.wait_exit() == 0
        finally:
            os.unlink(path)


# --- binding ---

def test_a_port_in_use_is_named_and_nobody_loses_a_connection(weir):
    first = weir(PLAIN, files=FILES)
    second = weir('workers = 2; sites = ( { listen = ( "127.0.0.1:%d", "127.0.0.1:%d" ); root = "public"; } );'
                  % (first.port, free_port()), files=FILES, wait=False)
    second.expect_exit = (1,)
    assert second.wait_exit() == 1
    assert re.search(r"cannot listen on 127\.0\.0\.1:%d: Address already in use; another server listens there "
                     r"\(.*proxy\.conf:\d+\)" % first.port, second.errors())
    assert second.access() == []
    for _ in range(100):
        assert first.get("/a.txt").body == b"hello"


def test_every_address_that_fails_is_named(weir):
    with socket.socket() as a, socket.socket() as b:
        for s in (a, b):
            s.bind(("127.0.0.1", 0))
            s.listen()
        ports = [s.getsockname()[1] for s in (a, b)]
        w = weir('sites = ( { listen = ( "127.0.0.1:%d", "127.0.0.1:%d" ); root = "."; } );' % tuple(ports), wait=False)
        w.expect_exit = (1,)
        assert w.wait_exit() == 1
        for port in ports:
            assert "cannot listen on 127.0.0.1:%d: Address already in use" % port in w.errors()


def test_a_restart_right_after_a_stop_binds(weir):
    w = weir(PLAIN, files=FILES)
    for _ in range(3):
        c = w.connect()
        assert ask(c).status == 200
        w.stop()  # with an open client: its side of the connection stays behind in TIME_WAIT
        w.start()
        assert w.get("/a.txt").status == 200


UNIX = 'workers = 2; sites = ( { listen = ( "127.0.0.1:@PORT@", "unix:@SOCK@" ); root = "public"; } );'


def ask_unix(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(scaled(5))
        s.connect(path)
        s.sendall(b"GET /a.txt HTTP/1.0\r\n\r\n")
        got = b""
        while True:
            d = s.recv(65536)
            if not d:
                return got
            got += d


@pytest.fixture
def sock(tmp_path_factory):
    path = "/tmp/weir-sock-%d-%d" % (os.getpid(), free_port())
    yield path
    if os.path.lexists(path):
        os.unlink(path)


def test_a_unix_socket_serves_and_its_file_goes_at_the_end(weir, sock):
    w = weir(UNIX, files=FILES, SOCK=sock)
    for _ in range(20):
        assert ask_unix(sock).endswith(b"hello")
    assert stat.S_ISSOCK(os.lstat(sock).st_mode)
    assert w.stop() == 0
    assert not os.path.lexists(sock)


def test_a_socket_file_left_by_a_crash_is_replaced(weir, sock):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(sock)  # and never listened again
    weir(UNIX, files=FILES, SOCK=sock).wait_error("generation 1: ")  # the port answers before every address is open
    assert ask_unix(sock).endswith(b"hello")


def test_a_second_server_leaves_the_firsts_socket_alone(weir, sock):
    weir(UNIX, files=FILES, SOCK=sock)
    inode = os.lstat(sock).st_ino
    second = weir(UNIX, files=FILES, SOCK=sock, wait=False)
    second.expect_exit = (1,)
    assert second.wait_exit() == 1
    assert "cannot listen on unix:%s: Address already in use" % sock in second.errors()
    assert os.lstat(sock).st_ino == inode
    assert ask_unix(sock).endswith(b"hello")


# --- signals ---

def test_int_ends_at_once(weir, slow):
    w, idle, busy = drained(weir, slow)
    w.send_signal(signal.SIGINT)
    assert w.wait_exit() == 0
    with pytest.raises(Closed):
        busy.response("GET")


@pytest.mark.threads
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGQUIT])
def test_draining_answers_what_is_running(weir, slow, sig):
    w, idle, busy = drained(weir, slow)
    w.send_signal(sig)
    assert idle.at_eof()
    wait_for("nobody listens any more", 5, lambda: refuses(w.port))
    assert alive(w.pid)
    slow.go.set()
    r = busy.response("GET")
    assert (r.status, r.body) == (200, b"slow")
    assert "close" in r.tokens("connection")
    assert w.wait_exit() == 0
    assert [ln for ln in w.access() if '"GET /slow HTTP/1.1" 200 4' in ln]


def test_a_second_signal_ends_the_draining(weir, slow):
    w, idle, busy = drained(weir, slow)
    w.send_signal(signal.SIGTERM)
    assert idle.at_eof()
    w.send_signal(signal.SIGTERM)
    assert w.wait_exit() == 0
    with pytest.raises(Closed):
        busy.response("GET")


def test_draining_has_a_limit(weir, slow):
    w, idle, busy = drained(weir, slow, shutdown='"300ms"')
    began = time.monotonic()
    w.send_signal(signal.SIGTERM)
    assert w.wait_exit() == 0
    assert 0.3 <= time.monotonic() - began < scaled(5)
    assert re.search(r"\[warn\].* timeouts\.shutdown is over: 1 clients are cut off", w.errors())


def test_a_lame_duck_still_serves_but_closes(weir, slow):
    w, idle, busy = drained(weir, slow, lame_duck='"60s"')
    w.send_signal(signal.SIGTERM)
    w.wait_error("draining: 2 clients")
    r = w.get("/a.txt")
    assert (r.status, r.body) == (200, b"hello")
    assert "close" in r.tokens("connection")
    r = ask(idle)
    assert r.body == b"hello" and "close" in r.tokens("connection")
    w.send_signal(signal.SIGTERM)
    assert w.wait_exit() == 0


def test_sigpipe_and_clients_that_vanish_end_nothing(weir):
    w = weir(PLAIN, files={**FILES, "public/big": b"x" * 20000000})
    w.send_signal(signal.SIGPIPE)
    for _ in range(20):
        c = w.connect(rcvbuf=8192)
        c.send(b"GET /big HTTP/1.1\r\nHost: h.test\r\n\r\n")
        assert c.head().status == 200
        c.close(reset=True)
    assert w.get("/a.txt").body == b"hello"
    assert alive(w.pid)


# --- reload ---

@pytest.mark.threads
def test_a_reload_changes_answers_and_keeps_connections(weir):
    conf = 'workers = 2; sites = ( { listen = "127.0.0.1:@PORT@"; respond = "%s"; } );'
    w = weir(conf % "one")
    kept = [w.connect(timeout=20) for _ in range(8)]
    assert {ask(c).body for c in kept} == {b"one"}
    for generation in range(2, 12):
        w.configure(conf % ("answer %d" % generation))
        w.send_signal(signal.SIGHUP)
        w.wait_error(r"\[notice\].* generation %d: " % generation)
        want = b"answer %d" % generation
        wait_for("every loop has adopted it", 5, lambda: {ask(c).body for c in kept} == {want})
    assert "reload refused" not in w.errors()


@pytest.mark.threads
def test_a_bad_configuration_is_refused_and_the_old_one_stays(weir):
    w = weir(PLAIN, files=FILES)
    w.configure('workers = 2;\nsites = ( { listen = "127.0.0.1:@PORT@"; rot = "public"; gzip = "perhaps"; } );')
    w.send_signal(signal.SIGHUP)
    w.wait_error(r"\[error\].* reload refused: still on generation 1$")
    assert len(re.findall(r"\[error\].*proxy\.conf:2: ", w.errors())) >= 2, "every finding is in the log"
    assert w.get("/a.txt").body == b"hello"
    w.configure(PLAIN)
    w.send_signal(signal.SIGHUP)
    w.wait_error(r"generation 2: ")
    assert w.get("/a.txt").body == b"hello"


def test_what_a_reload_cannot_change_is_said(weir):
    w = weir(PLAIN, files=FILES)
    w.configure('workers = 1; cpu_affinity = [ 0 ]; pid_file = "weir.pid";'
                'sites = ( { listen = "127.0.0.1:@PORT@"; respond = "new"; } );')
    w.send_signal(signal.SIGHUP)
    w.wait_error("generation 2: ")
    for name in ("workers", "cpu_affinity"):
        assert "%s has changed: it needs an upgrade" % name in w.errors()
    assert "pid_file has changed: it needs a restart" in w.errors()
    assert "user has changed" not in w.errors()
    assert w.get("/").body == b"new"


def test_a_reload_that_cannot_open_its_log_is_refused(weir):
    w = weir(PLAIN, files=FILES)
    os.symlink("x.log", os.path.join(w.dir, "x.log"))
    w.configure('access_log = "x.log"; ' + PLAIN)
    w.send_signal(signal.SIGHUP)
    w.wait_error("reload refused: still on generation 1")
    assert re.search(r"cannot open the log .*/x\.log: Too many levels of symbolic links", w.errors())
    assert w.get("/a.txt").status == 200


@pytest.mark.threads
def test_many_reloads_under_load_lose_nothing_and_leave_nothing(weir, backend):
    origin = backend()
    conf = '''workers = 2; access_log = "access-%d.log";
              sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; proxy = "@ORIGIN@"; } );'''
    w = weir(conf % 0, files=FILES, ORIGIN=origin.addr)
    stop, errors, done = threading.Event(), [], [0, 0]

    def client(i):
        c = w.connect(timeout=20)
        while not stop.is_set():
            try:
                r = ask(c, "/a.txt" if done[i] % 2 else "/proxied")
                if r.status != 200:
                    errors.append(r.status)
                done[i] += 1
            except Exception as e:
                errors.append(e)
                return
        c.close()

    clients = [threading.Thread(target=client, args=(i,)) for i in range(2)]
    for t in clients:
        t.start()
    for n in range(1, 21):
        w.configure(conf % (n % 3))
        w.send_signal(signal.SIGHUP)
        w.wait_error(r"generation %d: " % (n + 1))
    stop.set()
    for t in clients:
        t.join()
    assert not errors, errors[:3]
    assert w.get("/a.txt").status == 200  # both loops turn once more
    wait_for("only the log in force is open", 10, lambda: len(open_logs(w)) == 1 or w.get("/a.txt") is None)
    w.stop()
    lines = sum(len(open(os.path.join(w.dir, "access-%d.log" % n)).readlines()) for n in range(3))
    assert lines >= sum(done) and '"GET /proxied' in open(os.path.join(w.dir, "access-0.log")).read()


def open_logs(w):
    """The access logs the process holds open; also the clients' turn for loops that have slept since the reload."""
    w.get("/a.txt")
    out = []
    for fd in os.listdir("/proc/%d/fd" % w.server_pid):
        try:
            target = os.readlink("/proc/%d/fd/%s" % (w.server_pid, fd))
        except OSError:
            continue
        if re.search(r"/access-\d\.log", target):
            out.append(target)
    return out


# --- descriptors ---

@pytest.fixture
def few_descriptors(tmp_path, monkeypatch):
    """weir started under `ulimit -n 64`."""
    path = tmp_path / "weir"
    path.write_text('#!/bin/sh\nulimit -n 64\nexec "%s" "$@"\n' % server.BIN)
    path.chmod(0o755)
    monkeypatch.setattr(server, "BIN", str(path))


def test_more_clients_than_descriptors(weir, few_descriptors):
    w = weir(PLAIN, files=FILES)
    w.wait_error("2 loops, 64 descriptors, at most 32 clients")
    busy, refused = [], 0
    for _ in range(200):
        c = w.connect()
        c.send(b"GET /a.txt HTTP/1.1\r\nHost: h.test\r\nX-Unfinished: ")
        busy.append(c)
    # Within the limit they are served; nothing spins over the rest.
    began = cpu_ms(w.tree())
    time.sleep(1)
    assert cpu_ms(w.tree()) - began < 100
    for c in busy:
        c.send(b"1\r\n\r\n")
    served = 0
    for c in busy[:16]:
        try:
            served += c.response("GET").status == 200
        except (Closed, ConnectionError):
            pass
    assert served > 0
    for c in busy:
        c.close()
    wait_for("it has recovered", 10, lambda: _answers(w))
    assert alive(w.pid)
    assert len(re.findall(r"accepting pauses", w.errors())) <= 60


def _answers(w):
    try:
        return w.get("/a.txt").body == b"hello"
    except (Closed, OSError, AssertionError):
        return False


def test_no_descriptor_left_pauses_accepting_and_costs_no_time(weir):
    w = weir('workers = 2; sites = ( { listen = "127.0.0.1:@PORT@"; respond = "hello"; } );')
    kept = [w.connect(timeout=20) for _ in range(4)]
    for c in kept:
        assert ask(c).status == 200
    fds = len(os.listdir("/proc/%d/fd" % w.server_pid))
    old = resource.prlimit(w.server_pid, resource.RLIMIT_NOFILE)
    resource.prlimit(w.server_pid, resource.RLIMIT_NOFILE, (fds + 2, old[1]))
    waiting = []
    for _ in range(20):
        c = w.connect()
        c.send(b"GET /a.txt HTTP/1.1\r\nHost: h.test\r\n\r\n")
        waiting.append(c)
    w.wait_error(r"Too many open files")
    began = cpu_ms(w.tree())
    time.sleep(1)
    assert cpu_ms(w.tree()) - began < 100
    assert len(re.findall(r"accepting pauses", w.errors())) < 60
    for c in kept:
        assert ask(c).body == b"hello", "clients that are there are still served"
    resource.prlimit(w.server_pid, resource.RLIMIT_NOFILE, old)
    for c in waiting:
        assert c.response("GET").body == b"hello", "who waited is served once there are descriptors again"
