# SPDX-License-Identifier: MIT
"""Backends: one that understands and records requests, one that sends whatever bytes a test likes, and real Node."""
import os
import socket
import struct
import subprocess
import tempfile
import threading
import time

import wire

from . import util


class Recorder(wire.Backend):
    """wire.Backend on a port of its own: answers `METHOD TARGET LENGTH`, records .requests (see take())."""

    def __init__(self, handler=None, port=0):
        super().__init__(port or util.free_port(), handler=handler)
        self.addr = "127.0.0.1:%d" % self.port

    def targets(self):
        with self.lock:
            return [q.target for q in self.requests]


class RawConn:
    """One accepted connection of a RawBackend."""

    def __init__(self, sock, number):
        self.sock, self.number, self.received = sock, number, b""
        self.rd = wire.Reader(sock)

    def head(self, timeout=10):
        """Reads up to the end of a request head; returns it without the final empty line."""
        got = self.rd.until(b"\r\n\r\n", time.monotonic() + util.scaled(timeout))
        self.received += got + b"\r\n\r\n"
        return got

    def read(self, n, timeout=10):
        got = self.rd.exactly(n, time.monotonic() + util.scaled(timeout))
        self.received += got
        return got

    def send(self, data):
        self.sock.settimeout(util.scaled(10))
        self.sock.sendall(data)

    def wait_close(self, timeout=10):
        """True when the peer closes (or resets) within the time; what it sends meanwhile goes to .received."""
        deadline = time.monotonic() + util.scaled(timeout)
        try:
            while True:
                self.received, self.rd.buf = self.received + self.rd.buf, b""
                self.rd.fill(deadline)
        except wire.Closed:
            return True
        except wire.Timeout:
            return False

    def close(self):
        self.sock.close()

    def fin(self):
        self.sock.shutdown(socket.SHUT_WR)

    def rst(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class RawBackend:
    """Runs script(conn) on a thread for each accepted connection; the connection is closed when it returns."""

    def __init__(self, script, port=0):
        self.script, self.conns, self.failures, self.lock = script, [], [], threading.Lock()
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind(("127.0.0.1", port or util.free_port()))
        self.sock.listen(128)
        self.port = self.sock.getsockname()[1]
        self.addr = "127.0.0.1:%d" % self.port
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                s, _ = self.sock.accept()
            except OSError:
                return
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                conn = RawConn(s, len(self.conns) + 1)
                self.conns.append(conn)
            threading.Thread(target=self._run, args=(conn,), daemon=True).start()

    def _run(self, conn):
        try:
            self.script(conn)
        except (wire.Closed, wire.Timeout, OSError):
            pass  # the peer went away, or the test is over
        except Exception as e:  # a mistake in the test's script must not look like a quiet backend
            self.failures.append(e)
        finally:
            conn.close()

    def accepted(self):
        with self.lock:
            return len(self.conns)

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        with self.lock:
            for c in self.conns:
                try:
                    c.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        assert not self.failures, "the backend's script failed: %r" % self.failures[0]


def serve(*parts, then="close"):
    """A script: read a request head, send the parts, then "close", "rst", "stall" (until the peer goes) or "again"."""
    def script(conn):
        while True:
            conn.head()
            for p in parts:
                conn.send(p)
            if then == "again":
                continue
            if then == "rst":
                conn.rst()
            elif then == "stall":
                conn.wait_close(60)
            return
    return script


class Node:
    """A Node script of the test's own; it listens on process.env.PORT."""

    def __init__(self, script, port=0, env=None):
        self.port = port or util.free_port()
        self.addr = "127.0.0.1:%d" % self.port
        self.dir = tempfile.TemporaryDirectory(prefix="weir-node-")
        path = os.path.join(self.dir.name, "app.js")
        with open(path, "w") as f:
            f.write(script)
        self.log_path = os.path.join(self.dir.name, "log")
        with open(self.log_path, "wb") as log:
            self.proc = subprocess.Popen(["node", path], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                         env={**os.environ, **(env or {}), "PORT": str(self.port)})
        try:
            util.wait_for("Node listens", 15, self._up)
        except BaseException:
            self.close()
            raise

    def _up(self):
        assert self.proc.poll() is None, "Node ended at once:\n" + self.log()
        return util.listening("127.0.0.1", self.port)

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    @property
    def pid(self):
        return self.proc.pid

    def close(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()
        self.dir.cleanup()
