# SPDX-License-Identifier: MIT
"""Service managers: what is notified and when, socket activation as systemd does it, the unit file."""
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest
from harness import server
from harness.util import alive, free_port, scaled, wait_for

FILES = {"public/a.txt": "hello"}
PLAIN = '''workers = 2; timeouts = { lame_duck = 0; };
           sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; } );'''


class Manager:
    """The receiving end of sd_notify(3)."""

    def __init__(self):
        self.path = "/tmp/weir-notify-%d-%d" % (os.getpid(), free_port())
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.path)
        self.sock.settimeout(scaled(15))

    def next(self, skip=(b"WATCHDOG=1",)):
        while True:
            got = self.sock.recv(1000)
            if got not in skip:
                return got

    def close(self):
        self.sock.close()
        os.unlink(self.path)


@pytest.fixture
def manager():
    m = Manager()
    yield m
    m.close()


def ready(w):
    return b"READY=1\nMAINPID=%d" % w.pid


RELOADING = re.compile(rb"RELOADING=1\nMONOTONIC_USEC=(\d+)$")


def test_it_is_told_of_start_reload_and_stop(weir, manager):
    w = weir(PLAIN, files=FILES, env={"NOTIFY_SOCKET": manager.path})
    assert manager.next() == ready(w)
    w.send_signal(signal.SIGHUP)
    assert RELOADING.match(manager.next())
    assert manager.next() == ready(w)
    w.configure("broken")
    w.send_signal(signal.SIGHUP)
    assert RELOADING.match(manager.next())
    assert manager.next() == ready(w), "a refused reload ends too"
    w.send_signal(signal.SIGTERM)
    assert manager.next() == b"STOPPING=1"
    assert w.wait_exit() == 0


def test_ready_means_that_it_serves(weir, manager):
    w = weir(PLAIN, files=FILES, env={"NOTIFY_SOCKET": manager.path}, wait=False)
    assert manager.next() == ready(w)
    assert w.get("/a.txt").status == 200


def test_a_restart_after_a_crash_is_no_new_start(weir, manager):
    w = weir(PLAIN, files=FILES, env={"NOTIFY_SOCKET": manager.path})
    assert manager.next() == ready(w)
    os.kill(w.server_pid, signal.SIGKILL)
    assert manager.next() == ready(w)
    assert w.get("/a.txt").status == 200


def test_an_upgrade_is_a_reload_of_the_same_main_process(weir, manager):
    w = weir(PLAIN, files=FILES, env={"NOTIFY_SOCKET": manager.path})
    assert manager.next() == ready(w)
    w.send_signal(signal.SIGUSR2)
    assert RELOADING.match(manager.next())
    assert manager.next() == ready(w)
    w.send_signal(signal.SIGTERM)
    assert manager.next() == b"STOPPING=1"
    assert w.wait_exit() == 0


def test_the_watchdog_is_fed_while_the_server_turns(weir, manager):
    w = weir(PLAIN, files=FILES, env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "600000"})
    assert manager.next() == ready(w)
    for _ in range(3):
        assert manager.next(skip=()) == b"WATCHDOG=1"
    os.kill(w.server_pid, signal.SIGSTOP)
    manager.sock.settimeout(1)
    with pytest.raises(socket.timeout):
        for _ in range(5):
            manager.next(skip=())
    os.kill(w.server_pid, signal.SIGCONT)
    manager.sock.settimeout(scaled(15))
    assert manager.next(skip=()) == b"WATCHDOG=1"


# --- socket activation ---

ACTIVATE = shutil.which("systemd-socket-activate")


class Activated:
    """weir under systemd-socket-activate, which listens and starts it at the first connection."""

    def __init__(self, dirname, conf, *listens):
        self.dir = dirname
        with open(os.path.join(dirname, "proxy.conf"), "w") as f:
            f.write('control = "control.sock"; error_log = "error.log"; access_log = false; '
                    'timeouts = { lame_duck = 0; }; ' + conf)
        os.makedirs(os.path.join(dirname, "public"), exist_ok=True)
        with open(os.path.join(dirname, "public", "a.txt"), "w") as f:
            f.write("hello")
        cmd = [ACTIVATE]
        for ln in listens:
            cmd += ["-l", ln]
        # It hands its own environment on only by name.
        env = server.environment()
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            cmd += ["-E", name]
        self.proc = subprocess.Popen(cmd + [server.BIN, "run", "-c", os.path.join(dirname, "proxy.conf")], env=env,
                                     cwd=dirname, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=open(os.path.join(dirname, "stderr"), "w"))

    def errors(self):
        out = ""
        for name in ("error.log", "stderr"):
            path = os.path.join(self.dir, name)
            if os.path.exists(path):
                with open(path, errors="replace") as f:
                    out += f.read()
        return out

    def get(self, port):
        with socket.create_connection(("127.0.0.1", port), scaled(15)) as s:
            s.settimeout(scaled(15))
            s.sendall(b"GET /a.txt HTTP/1.0\r\n\r\n")
            got = b""
            while True:
                d = s.recv(65536)
                if not d:
                    return got
                got += d

    def close(self):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGINT)
        assert self.proc.wait(scaled(15)) in (0, -signal.SIGINT), self.errors()
        assert not server.COMPLAINTS.search(self.errors()), self.errors()


@pytest.fixture
def activated():
    if not ACTIVATE:
        pytest.skip("needs systemd-socket-activate")
    made, dirs = [], []

    def new(*args):
        dirs.append("/tmp/weir-activated-%d-%d" % (os.getpid(), free_port()))
        os.makedirs(dirs[-1])
        made.append(Activated(dirs[-1], *args))
        return made[-1]
    yield new
    try:
        for a in made:
            a.close()
    finally:
        for d in dirs:
            shutil.rmtree(d, ignore_errors=True)


def listening(port):
    rows = []
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(name) as f:
            rows += [ln.split() for ln in f]
    return sum(r[3] == "0A" and r[1].endswith(":%04X" % port) for r in rows)


@pytest.mark.parametrize("how", ["127.0.0.1:%d", "%d"])
def test_a_socket_of_the_manager_is_used_by_every_loop(activated, free_port, how):
    port = free_port()
    a = activated('workers = 3; sites = ( { listen = "%s"; root = "public"; } );' % (how % port), how % port)
    wait_for("it listens", 10, lambda: listening(port))
    for _ in range(20):
        assert a.get(port).endswith(b"hello")
    assert listening(port) == 1, "no second socket beside the manager's"
    assert "the service manager's socket" not in a.errors()


def test_sockets_are_matched_by_address_and_strangers_closed(activated, free_port):
    first, other, own = free_port(), free_port(), free_port()
    a = activated('workers = 2; sites = ( { listen = ( "127.0.0.1:%d", "127.0.0.1:%d" ); root = "public"; } );'
                  % (first, own), "127.0.0.1:%d" % first, "127.0.0.1:%d" % other)
    wait_for("it listens", 10, lambda: listening(first))
    assert a.get(first).endswith(b"hello")
    assert a.get(own).endswith(b"hello"), "an address that the manager has not opened is opened as usual"
    wait_for("it says so", 5, lambda: "the service manager's socket 127.0.0.1:%d is in no `listen`" % other in a.errors())
    wait_for("nobody listens there", 5, lambda: not listening(other))


def test_an_upgrade_and_a_crash_keep_the_managers_socket(activated, free_port):
    port = free_port()
    a = activated('workers = 2; sites = ( { listen = "127.0.0.1:%d"; root = "public"; } );' % port,
                  "127.0.0.1:%d" % port)
    wait_for("it listens", 10, lambda: listening(port))
    assert a.get(port).endswith(b"hello")
    wait_for("the server is up", 10, lambda: "generation 1: " in a.errors())
    a.proc.send_signal(signal.SIGUSR2)
    wait_for("a second server has taken over", 15, lambda: "has taken over from" in a.errors())
    assert a.get(port).endswith(b"hello")
    new = int(re.search(r"server (\d+) has taken over", a.errors()).group(1))
    os.kill(new, signal.SIGKILL)
    wait_for("it is gone", 5, lambda: not alive(new))
    assert a.get(port).endswith(b"hello")


# --- the unit ---

def test_the_unit_file_is_one(tmp_path):
    with open(os.path.join(server.ROOT, "contrib", "weir.service.in")) as f:
        unit = f.read()
    unit = unit.replace("@sbindir@/weir", server.BIN).replace("@sysconfdir@", "/etc")
    path = tmp_path / "weir.service"
    path.write_text(unit)
    verify = shutil.which("systemd-analyze")
    if not verify:
        pytest.skip("needs systemd-analyze")
    done = subprocess.run([verify, "verify", "--man=no", str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60)
    complaints = [ln for ln in done.stdout.split("\n") if "weir.service" in ln]
    assert not complaints, done.stdout


def test_what_the_unit_relies_on(weir):
    with open(os.path.join(server.ROOT, "contrib", "weir.service.in")) as f:
        unit = dict(ln.strip().split("=", 1) for ln in f if "=" in ln and not ln.startswith("#"))
    assert unit["Type"] in ("notify", "notify-reload")
    assert unit["KillMode"] == "mixed"
    assert int(unit["WatchdogSec"]) >= 30, "not before weir's own watchdog has acted"
    assert int(unit["TimeoutStopSec"]) > 30


def test_numbers_that_the_manager_has_not_handed_over_are_not_weirs_own(weir, tmp_path, monkeypatch):
    """A launcher that counts wrongly: the socket that bears such a number later must not be closed as a stranger's."""
    server.launched_by(monkeypatch, tmp_path, "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='9')")
    w = weir(PLAIN, files=FILES)
    assert w.get("/a.txt").status == 200
    w.reload()
    assert w.stop() == 0
