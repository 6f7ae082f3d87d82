# SPDX-License-Identifier: MIT
"""Access and error logs: what a line looks like, rotation, full disks, readers that are slow or gone."""
import os
import re
import resource
import signal
import threading

import pytest
from harness import server
from harness.util import alive, scaled, wait_for

FILES = {"public/a.txt": "hello"}
SITE = 'sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; } );'
COMBINED = re.compile(r'^127\.0\.0\.1 - - \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] '
                      r'"((?:[^"\\\x00-\x1f\x7f-]|-|\\x[0-9A-F]{2})*)" (\d{3}) (\d+) '
                      r'"((?:[^"\\\x00-\x1f\x7f]|\\x[0-9A-F]{2})*)" "((?:[^"\\\x00-\x1f\x7f]|\\x[0-9A-F]{2})*)"$')


def ask(conn, target=b"/a.txt", extra=b""):
    conn.send(b"GET " + target + b" HTTP/1.1\r\nHost: h.test\r\n" + extra + b"\r\n")
    return conn.response("GET")


def lines_of(*paths):
    out = []
    for path in paths:
        with open(path, "rb") as f:
            data = f.read()
        assert data == b"" or data.endswith(b"\n"), "%s ends inside a line" % path
        out += data.split(b"\n")[:-1]
    return out


class Load:
    """Clients that ask for numbered targets until they are stopped; every answer is checked."""

    def __init__(self, w, n=2):
        self.w, self.stopped, self.errors, self.asked = w, threading.Event(), [], []
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(n)]
        for t in self.threads:
            t.start()

    def run(self, client):
        conn, n = self.w.connect(timeout=20), 0
        try:
            while not self.stopped.is_set():
                target = b"/a.txt?%d-%d" % (client, n)
                assert ask(conn, target).body == b"hello"
                self.asked.append(target)
                n += 1
        except Exception as e:
            self.errors.append(e)
        conn.close()

    def wait(self, n):
        wait_for("%d more requests" % n, 10, lambda k=len(self.asked) + n: len(self.asked) >= k or self.errors)

    def stop(self):
        self.stopped.set()
        for t in self.threads:
            t.join()
        assert not self.errors, self.errors[0]
        return sorted(self.asked)


def targets(lines):
    return sorted(re.search(rb'"GET (\S+) HTTP/1\.1" 200 5 ', ln).group(1) for ln in lines)


# --- lines ---

def test_a_line_is_in_the_combined_format(weir):
    w = weir(SITE, files=FILES)
    w.get("/a.txt?x=1", {"Referer": "http://r.test/", "User-Agent": "tester/1.0"})
    line = w.wait_access("a.txt")
    m = COMBINED.match(line)
    assert m, line
    assert m.groups() == ("GET /a.txt?x=1 HTTP/1.1", "200", "5", "http://r.test/", "tester/1.0")


@pytest.mark.parametrize("target, extra", [
    (b"/a.txt?q=%22%0a%0d", b""),
    (b"/a.txt?\"quoted\"", b""),
    (b"/a.txt?\\x22", b""),
    (b"/a.txt?\xc3\xa9", b""),
    (b"/a.txt", b"User-Agent: \"; DROP\\ \t\xff\x80\r\n"),
    (b"/a.txt", b"Referer: \"\" 200 0 \"\" \"\r\n"),
    (b"/a.txt", b"User-Agent: " + b"u" * 20000 + b"\r\n"),
])
def test_hostile_bytes_stay_inside_their_field(weir, target, extra):
    w = weir(SITE, files=FILES)
    c = w.connect()
    ask(c, target, extra)
    c.close()
    w.get("/a.txt?last")
    w.wait_access("last")
    assert len(w.access()) == 2
    for line in w.access():
        assert COMBINED.match(line), line[:500]


def test_a_client_cannot_forge_error_lines(weir):
    w = weir('log_level = "info"; ' + SITE, files=FILES)
    c = w.connect()
    c.send(b"GET /\x01\x1b[31m HTTP/1.1\r\nHost: h\r\nX: \n2026/01/01 00:00:00 [emerg] 1#0: forged\r\n\r\n")
    assert c.response("GET").status == 400
    w.wait_error(r"\[info\]")
    assert not re.search(r"^\S+ \S+ \[emerg\]", w.errors(), re.M)
    assert "\x1b" not in w.errors() and "\x01" not in w.errors()


def test_locations_have_logs_of_their_own_or_none(weir):
    w = weir('''access_log = "main.log";
                sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; locations = (
                    { match = "/quiet"; respond = "q"; access_log = false; },
                    { match = "/apart"; respond = "a"; access_log = "apart.log"; } ); } );''', files=FILES)
    for path in ("/quiet", "/apart", "/a.txt"):
        assert w.get(path).status == 200
    w.stop()
    assert [b"/a.txt" in ln for ln in lines_of(os.path.join(w.dir, "main.log"))] == [True]
    assert [b"/apart" in ln for ln in lines_of(os.path.join(w.dir, "apart.log"))] == [True]
    assert os.stat(os.path.join(w.dir, "main.log")).st_mode & 0o137 == 0


# --- opening ---

@pytest.mark.parametrize("setting", ["access_log", "error_log"])
def test_a_log_that_cannot_be_opened_ends_the_start(weir, setting):
    w = weir('%s = "x.log"; ' % setting + SITE, files=FILES)
    assert w.stop() == 0
    path = os.path.join(w.dir, "x.log")
    os.unlink(path)
    os.symlink("x.log", path)
    w.expect_exit = (1,)
    w.start(wait=False)
    assert w.wait_exit() == 1
    assert re.search(r"cannot open the log .*/x\.log: Too many levels of symbolic links$", w.errors(), re.M)


def test_errors_of_the_start_appear_on_stderr_beside_the_error_log(weir):
    w = weir('error_log = "e.log"; sites = ( { listen = "192.0.2.1:8080"; root = "public"; } );', files=FILES, wait=False)
    w.expect_exit = (1,)
    assert w.wait_exit() == 1
    assert "192.0.2.1:8080" in w.errors()


# --- rotation ---

@pytest.mark.threads
def test_rotation_under_load_loses_no_line(weir):
    w = weir('workers = 2; access_log = "a.log"; error_log = "e.log"; ' + SITE, files=FILES)
    path = os.path.join(w.dir, "a.log")
    load = Load(w)
    for n in range(1, 6):
        load.wait(50)
        os.rename(path, "%s.%d" % (path, n))
        w.send_signal(signal.SIGUSR1)
        wait_for("the new file is there", 10, lambda: os.path.exists(path))
    load.wait(50)
    asked = load.stop()
    wait_for("no old file is open", 5, lambda: not [t for t in open_files(w) if re.search(r"\.log\.\d|\.log.*deleted", t)])
    assert w.stop() == 0
    lines = lines_of(path, *("%s.%d" % (path, n) for n in range(1, 6)))
    assert targets(lines) == asked
    assert min(len(lines_of("%s.%d" % (path, n))) for n in range(1, 6)) > 0
    assert b"logs reopened" in b"".join(lines_of(os.path.join(w.dir, "e.log")))


def open_files(w):
    out = []
    for fd in os.listdir("/proc/%d/fd" % w.server_pid):
        try:
            out.append(os.readlink("/proc/%d/fd/%s" % (w.server_pid, fd)))
        except OSError:
            pass
    return out


def test_a_deleted_log_comes_back(weir):
    w = weir('access_log = "a.log"; ' + SITE, files=FILES)
    path = os.path.join(w.dir, "a.log")
    w.wait_error("generation 1: ")
    os.unlink(path)
    w.send_signal(signal.SIGUSR1)
    w.wait_error("logs reopened")
    w.get("/a.txt")
    wait_for("the line is there", 5, lambda: lines_of(path))


def test_truncating_in_place_leaves_no_hole(weir):
    w = weir('access_log = "a.log"; ' + SITE, files=FILES)
    path = os.path.join(w.dir, "a.log")
    for _ in range(20):
        w.get("/a.txt")
    wait_for("twenty lines", 5, lambda: len(lines_of(path)) == 20)
    os.truncate(path, 0)
    w.get("/a.txt?after")
    wait_for("the next line", 5, lambda: os.path.getsize(path) > 0)
    assert [b"?after" in ln for ln in lines_of(path)] == [True]


def test_a_failed_reopening_keeps_the_old_file(weir):
    w = weir('access_log = "logs/a.log"; ' + SITE, files={**FILES, "logs/keep": ""})
    w.wait_error("generation 1: ")
    os.rename(os.path.join(w.dir, "logs"), os.path.join(w.dir, "moved"))
    w.send_signal(signal.SIGUSR1)
    w.wait_error(r"\[error\].* cannot reopen the log .*/logs/a\.log: No such file or directory; the old file stays")
    w.get("/a.txt?still")
    wait_for("the line is there", 5, lambda: lines_of(os.path.join(w.dir, "moved", "a.log")))


# --- trouble ---

@pytest.mark.threads
def test_a_full_disk_costs_counted_lines_only(weir):
    w = weir('access_log = "/dev/full"; ' + SITE, files=FILES)
    c = w.connect(timeout=20)
    for _ in range(500):
        assert ask(c).body == b"hello"
    w.wait_error(r"\[error\].* cannot write to the log /dev/full: No space left on device; lines are dropped")
    assert w.stop() == 0
    assert re.search(r"\[warn\].* the log /dev/full has lost 500 lines$", w.errors(), re.M)
    assert w.errors().count("No space left") == 1


def test_a_disk_that_was_full_is_written_to_again(weir):
    w = weir('access_log = "a.log"; ' + SITE, files=FILES)
    path = os.path.join(w.dir, "a.log")
    # A limit of the file's size stands for the disk's, and cuts a line in its middle.
    old = resource.prlimit(w.server_pid, resource.RLIMIT_FSIZE)
    resource.prlimit(w.server_pid, resource.RLIMIT_FSIZE, (1000, old[1]))
    c = w.connect(timeout=20)
    for n in range(100):
        ask(c, b"/a.txt?%d" % n)
    w.wait_error(r"cannot write to the log .*/a\.log: File too large")
    resource.prlimit(w.server_pid, resource.RLIMIT_FSIZE, old)
    ask(c, b"/a.txt?after")
    m = w.wait_error(r"\[notice\].* the log .*/a\.log takes lines again; (\d+) were lost")
    lines = wait_for("the line is there", 5, lambda: b"?after" in b"".join(lines_of(path)) and lines_of(path))
    whole = [ln for ln in lines if COMBINED.match(ln.decode())]
    assert len(whole) + int(m.group(1)) == 101
    assert len(lines) - len(whole) <= 1, "at most one line was cut, and it was ended"


def test_a_fifo_nobody_reads_stalls_nobody(weir):
    w = weir(SITE, files=FILES)
    fifo = os.path.join(w.dir, "fifo")
    os.mkfifo(fifo)
    w.configure('access_log = "fifo"; ' + SITE)
    w.send_signal(signal.SIGHUP)
    w.wait_error("generation 2")
    c = w.connect(timeout=20)
    long = b"x" * 2000
    for n in range(300):  # more than a pipe and a batch hold
        assert ask(c, b"/a.txt?%d" % n, b"User-Agent: " + long + b"\r\nReferer: " + long + b"\r\n").body == b"hello"
    w.wait_error(r"cannot write to the log .*/fifo: nobody reads it; lines are dropped and counted")
    fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    got = b""

    def read_all():
        nonlocal got
        try:
            while True:
                d = os.read(fd, 65536)
                if not d:
                    break
                got += d
        except BlockingIOError:
            pass
        return re.search(r"fifo takes lines again; (\d+) were lost", w.errors())

    m = wait_for("it is written to again", 10, read_all)
    os.close(fd)
    assert got.endswith(b"\n")
    assert got.count(b"\n") + int(m.group(1)) == 300


def test_a_reader_of_stdout_that_is_gone_ends_nothing(weir, tmp_path, monkeypatch):
    script = tmp_path / "weir"
    script.write_text('#!/bin/bash\nexec "%s" "$@" > >(exec true)\n' % server.BIN)
    script.chmod(0o755)
    monkeypatch.setattr(server, "BIN", str(script))
    w = weir(SITE, files=FILES)
    for _ in range(3):
        assert w.get("/a.txt").status == 200
    w.wait_error(r"cannot write to the log stdout: Broken pipe; lines are dropped and counted")
    assert w.get("/a.txt").status == 200
    assert alive(w.pid)


@pytest.mark.long
def test_full_speed_drops_no_line(weir):
    import subprocess
    w = weir('workers = 2; access_log = "a.log"; ' + SITE, files=FILES)
    out = subprocess.run(["ab", "-q", "-k", "-c", "32", "-n", "200000", "http://127.0.0.1:%d/a.txt" % w.port],
                         stdout=subprocess.PIPE, timeout=scaled(300), check=True).stdout
    assert re.search(rb"Failed requests: +0\n", out), out
    assert w.stop() == 0
    assert len(lines_of(os.path.join(w.dir, "a.log"))) >= 200000
    assert "dropped" not in w.errors()
