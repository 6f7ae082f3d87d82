# SPDX-License-Identifier: MIT
"""Time, ports and processes: what every other part of the harness needs."""
import os
import random
import re
import signal
import socket
import time

SCALE = float(os.environ.get("WEIR_TIME_SCALE", "1"))


def scaled(seconds):
    """A deadline for this build: sanitizer builds are slower, and WEIR_TIME_SCALE says by how much."""
    return seconds * SCALE


def wait_for(what, seconds, probe, every=0.01):
    """Calls probe() until it returns something true, and returns that; fails with `what` when the time is up."""
    deadline = time.monotonic() + scaled(seconds)
    while True:
        got = probe()
        if got:
            return got
        if time.monotonic() > deadline:
            raise AssertionError("%s: not within %.1f s" % (what, scaled(seconds)))
        time.sleep(every)


_given = set()
# Below the ports that the kernel gives to outgoing connections, and a lane of its own for each parallel test process.
_LANES = 16
_LANE = int(re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", "")) or 0) % _LANES
_PORTS = range(10000, 32000)


def free_port():
    """A TCP port that nobody listens on now and that this run has not handed out yet."""
    while True:
        port = random.randrange(_PORTS.start + _LANE, _PORTS.stop, _LANES)
        if port in _given or port == 18300:  # the black-box runners' own
            continue
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port


class DeadPort:
    """A port that refuses every connection for as long as this object lives: bound, never listening."""

    def __init__(self):
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", free_port()))
        self.port = self.sock.getsockname()[1]
        self.addr = "127.0.0.1:%d" % self.port

    def close(self):
        self.sock.close()


def listening(host, port):
    try:
        socket.create_connection((host, port), 1).close()
        return True
    except OSError:
        return False


def _stat(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()
    except OSError:
        return None


def alive(pid):
    st = _stat(pid)
    return st is not None and st[0] not in "ZX"


def start_time(pid):
    """Comparable between processes; 0 for one that has gone."""
    st = _stat(pid)
    return int(st[19]) if st else 0


def parent(pid):
    st = _stat(pid)
    return int(st[1]) if st else 0


def tree(pid):
    """The process and all its descendants that are not zombies."""
    children = {}
    for d in os.listdir("/proc"):
        st = _stat(int(d)) if d.isdigit() else None
        if st and st[0] not in "ZX":
            children.setdefault(int(st[1]), []).append(int(d))
    out, todo = [], [pid] if alive(pid) else []
    while todo:
        p = todo.pop()
        out.append(p)
        todo += children.get(p, [])
    return out


def cpu_us(pids):
    """Processor time the running threads of these processes have had, in microseconds."""
    total = 0
    for pid in pids:
        try:
            for tid in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/schedstat" % (pid, tid)) as f:
                    total += int(f.read().split()[0])
        except OSError:
            pass  # it has ended meanwhile
    return total // 1000


def cpu_ms(pids):
    return cpu_us(pids) / 1000


def _rollup(pids, field):
    total = 0
    for p in pids:
        with open("/proc/%d/smaps_rollup" % p) as f:
            total += sum(int(ln.split()[1]) for ln in f if ln.startswith(field)) * 1024
    return total


def pss_bytes(pids):
    """All memory of these processes; their share of what they have in common with others."""
    return _rollup(pids, "Pss:")


def anon_bytes(pids):
    """Without the program and its libraries, whose share grows when other servers end: for what something costs."""
    return _rollup(pids, "Pss_Anon:")


def kill_all(pids):
    for p in pids:
        try:
            os.kill(p, signal.SIGKILL)
        except ProcessLookupError:
            pass
