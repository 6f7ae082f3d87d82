# SPDX-License-Identifier: MIT
"""One weir under test: its directory, configuration, processes and logs, and the verdict on how it ended."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from wire import Conn

from . import util

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BIN = os.path.abspath(os.environ.get("WEIR_BIN", os.path.join(ROOT, "build", "plain", "src", "weir")))

# What a process says when it has found a fault in itself.
COMPLAINTS = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|SUMMARY: \w+Sanitizer"
                        r"|check failed: |\bbug: |stack smashing|buffer overflow detected|double free|corrupted")


# Looking for leaks takes as long as a short test: conftest.py says for which it is done.
leaks = True


def environment(extra=None):
    """The caller's environment without what would steer weir, and with strict sanitizers."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    env.update(ASAN_OPTIONS="detect_leaks=%d:exitcode=99:detect_stack_use_after_return=1:strict_string_checks=1" % leaks,
               UBSAN_OPTIONS="print_stacktrace=1", TSAN_OPTIONS="exitcode=99:second_deadlock_stack=1", NO_COLOR="1")
    env.update(extra or {})
    return env


def launched_by(monkeypatch, tmp_path, python):
    """From now on weir is started by a program that does this first, and then becomes it."""
    path = tmp_path / "weir"
    path.write_text("#!/usr/bin/python3\nimport os, signal, sys\n%s\nos.execv('%s', sys.argv)\n" % (python, BIN))
    path.chmod(0o755)
    monkeypatch.setattr(sys.modules[__name__], "BIN", str(path))


def cli(*args, env=None, cwd=None, timeout=20, stdin=subprocess.DEVNULL):
    """Runs `weir ARGS` to its end. Result: .returncode, .stdout, .stderr (text)."""
    done = subprocess.run([BIN, *map(str, args)], env=environment(env), cwd=cwd, stdin=stdin, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=util.scaled(timeout))
    assert not COMPLAINTS.search(done.stderr), done.stderr
    return done


# When a test's `files` were last changed: long ago, so that no validator of theirs becomes a strong one during the test.
DEPLOYED = 1700000000


class Weir:
    """See conftest.py for what a test does with it."""

    def __init__(self, conf, env=None, args=(), wait=True, files=None, port=None, **values):
        # Not pytest's tmp_path: a unix socket's path has at most 107 bytes.
        self.dir = tempfile.mkdtemp(prefix="weir-")
        os.chmod(self.dir, 0o755)
        self.ports, self.values, self.env = {"PORT": port} if port else {}, values, env
        self.proc, self.expect_exit = None, (0,)
        self.error_path = os.path.join(self.dir, "error.log")
        self.access_path = os.path.join(self.dir, "access.log")
        self.conf_path = os.path.join(self.dir, "proxy.conf")
        for name, content in (files or {}).items():
            os.utime(self.write(name, content), (DEPLOYED, DEPLOYED))
        self.configure(conf)
        try:
            self.start(args, wait)
        except BaseException:
            if self.proc and self.proc.poll() is None:
                util.kill_all(self.tree())
                self.proc.wait()
            shutil.rmtree(self.dir, ignore_errors=True)
            raise

    # --- configuration and files ---

    def write(self, name, content):
        """Makes a file (folders included) below the server's directory; returns its path."""
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return path

    def configure(self, conf):
        """Writes proxy.conf: @PORT…@ becomes a free port (kept over reloads), @NAME@ a keyword of weir(...)."""
        def value(m):
            name = m.group(1)
            if name in self.values:
                return str(self.values[name])
            if name == "DIR":
                return self.dir
            assert name.startswith("PORT"), "no value for @%s@" % name
            if name not in self.ports:
                self.ports[name] = util.free_port()
            return str(self.ports[name])

        text = re.sub(r"@([A-Z][A-Z0-9_]*)@", value, conf)
        if not re.search(r"\bcontrol\s*=", text):  # at the end: line numbers stay
            text += '\ncontrol = "control.sock";\n'
        self.text = text
        self.write("proxy.conf", text)
        return text

    # --- life ---

    def start(self, args=(), wait=True):
        before = len(self.errors()) if os.path.exists(self.error_path) else 0
        with open(self.error_path, "ab") as err, open(self.access_path, "ab") as out:
            self.proc = subprocess.Popen([BIN, "run", "-c", self.conf_path, *args], stdin=subprocess.DEVNULL,
                                         stdout=out, stderr=err, cwd=self.dir,
                                         env=environment({"XDG_RUNTIME_DIR": self.dir, **(self.env or {})}))
        if wait:
            for port in self.ports.values():
                util.wait_for("weir listens on %d" % port, 10, lambda: self._up(port))
            if not re.search(r"\b(error_log|log_level|user)\b", self.text):  # the addresses are bound before it serves
                util.wait_for("weir serves", 10, lambda: self._up(None) and re.search(
                    r"generation \d+: ", self.errors()[before:]))

    def _up(self, port):
        assert self.proc.poll() is None, "weir ended at once, exit %s:\n%s" % (self.proc.returncode, self.errors())
        return port is None or util.listening("127.0.0.1", port)

    @property
    def port(self):
        return self.ports["PORT"]

    @property
    def pid(self):
        return self.proc.pid

    @property
    def server_pid(self):
        """The process that serves: .pid is its supervisor. During an upgrade the newest one."""
        return util.wait_for("weir has a server", 10, lambda: max(
            (p for p in self.tree() if util.parent(p) == self.pid), key=util.start_time, default=None))

    def tree(self):
        return util.tree(self.pid)

    def send_signal(self, sig):
        self.proc.send_signal(sig)

    def wait_exit(self, timeout=10):
        """Waits for the end; returns the exit code."""
        try:
            return self.proc.wait(util.scaled(timeout))
        except subprocess.TimeoutExpired:
            raise AssertionError("weir did not end within %.0f s\n%s" % (util.scaled(timeout), self.errors()))

    def stop(self, sig=signal.SIGINT, timeout=10):
        """Sends the signal (INT: at once; TERM: drain) and waits for all of its processes to be gone."""
        if self.proc.poll() is None:
            pids = self.tree()
            self.proc.send_signal(sig)
            try:
                code = self.wait_exit(timeout)
                util.wait_for("all processes of weir gone", 5, lambda: not any(map(util.alive, pids)))
            except BaseException:
                util.kill_all([p for p in pids if util.alive(p)])
                self.proc.wait()
                raise
            return code
        return self.proc.returncode

    def cli(self, *args, **kw):
        """A command with this server's configuration: w.cli("check")."""
        return cli(args[0], "-c", self.conf_path, *args[1:], **kw)

    def reload(self, conf=None, refused=False):
        """Writes the new configuration, sends HUP and waits for the server's word in the error log (at level notice)."""
        if conf is not None:
            self.configure(conf)
        self.wait_error(r"generation \d+: ")  # the first one may still be on its way to the log
        before = len(self.errors())
        self.send_signal(signal.SIGHUP)
        word = util.wait_for("the server's answer to a reload", 10, lambda: re.search(
            r"reload (refused|failed|ignored)|generation \d+: ", self.errors()[before:]))
        assert word.group(0).startswith("reload refused" if refused else "generation"), self.errors()[before:]

    def close(self):
        """The verdict: stops what still runs; fails on a crash, a leaked process or a sanitizer's report."""
        try:
            code = self.stop()
            errors = self.errors()
            assert not COMPLAINTS.search(errors), "weir reported a fault of its own:\n" + errors[-20000:]
            assert code in self.expect_exit, "weir ended with exit code %s\n%s" % (code, errors[-8000:])
        finally:
            shutil.rmtree(self.dir, ignore_errors=True)

    # --- logs ---

    @staticmethod
    def _text(path):
        try:
            with open(path, errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def errors(self):
        return self._text(self.error_path)

    def access(self):
        """The complete lines of the access log."""
        return self._text(self.access_path).split("\n")[:-1]

    def wait_error(self, regex, timeout=5):
        return util.wait_for("error log has /%s/" % regex, timeout, lambda: re.search(regex, self.errors(), re.M))

    def wait_access(self, regex, timeout=5):
        """The first access-log line that matches."""
        return util.wait_for("access log has /%s/" % regex, timeout,
                             lambda: next((ln for ln in self.access() if re.search(regex, ln)), None))

    # --- requests ---

    def connect(self, port=None, timeout=5, **kw):
        """A raw client connection (wire.Conn): .send(bytes…), .response(method), .at_eof(), .half_close(), .close()."""
        return Conn("127.0.0.1", port or self.port, util.scaled(timeout), **kw)

    def request(self, method, path, headers=(), body=b"", port=None, timeout=5, host="h.test"):
        """One request on a connection of its own. headers: dict or list of pairs; a body gets its Content-Length."""
        lines = ["%s %s HTTP/1.1" % (method, path)]
        pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
        if not any(n.lower() == "host" for n, _ in pairs):
            lines.append("Host: " + host)
        lines += ["%s: %s" % p for p in pairs]
        if body or method in ("POST", "PUT", "PATCH"):
            lines.append("Content-Length: %d" % len(body))
        conn = self.connect(port, timeout)
        try:
            conn.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
            return conn.response(method)
        finally:
            conn.close()

    def get(self, path="/", headers=(), **kw):
        return self.request("GET", path, headers, **kw)

    def head(self, path="/", headers=(), **kw):
        return self.request("HEAD", path, headers, **kw)

    def post(self, path, body, headers=(), **kw):
        return self.request("POST", path, headers, body, **kw)
