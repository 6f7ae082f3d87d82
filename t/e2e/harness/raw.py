# SPDX-License-Identifier: MIT
"""Raw bytes against one server, in batches: what each input got, what the backend saw of it, what the log says.

A Front is one weir (one event loop, so that log lines come in the order of the requests) before one recording backend.

    front.refused({name: bytes, …})         each gets a complete error answer, is closed, and nothing of it goes further
    front.ask(b"…", "GET", "HEAD")          one connection: all bytes in one write, an answer for each method
    front.lines()                           the access-log lines since the last call, none missing
"""
import re
import select
import time

import pytest
import wire

from . import backends, server, util

HOST = b"Host: h.test\r\n"
# Follows most inputs in the same write; it must never be answered or forwarded when the input is refused.
NEXT = b"GET /smuggled HTTP/1.1\r\nHost: h.test\r\n\r\n"
LOG_STATUS = re.compile(r'\] "(?:[^"\\]|\\.)*" ([0-9]{3}) ')


def get(path=b"/p", *lines, method=b"GET", version=b"HTTP/1.1", host=HOST, body=b""):
    """The bytes of a request; lines are whole header lines without their CRLF."""
    return b"%s %s %s\r\n%s%s\r\n%s" % (method, path, version, host, b"".join(ln + b"\r\n" for ln in lines), body)


def post(path=b"/p", *lines, body=b"", **kw):
    return get(path, *lines, method=b"POST", body=body, **kw)


def chunked(body, path=b"/p", *lines, **kw):
    """A POST whose chunked body is these exact bytes."""
    return post(path, b"Transfer-Encoding: chunked", *lines, body=body, **kw)


def chunks(body, step):
    """The body in chunks of this size, the last one included."""
    pieces = (body[i:i + step] for i in range(0, len(body), step))
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


class Talk:
    """What came of one connection. .responses; .closed: the server closed it; .requests: what the backend recorded."""

    def __init__(self):
        self.responses, self.requests, self.closed, self.error = [], [], False, None

    @property
    def statuses(self):
        return [r.status for r in self.responses]


class Front:
    def __init__(self, conf, files=None, handler=None, **values):
        self.origin = backends.Recorder(handler)
        try:
            self.w = server.Weir("workers = 1;\n" + conf, files=files, ORIGIN=self.origin.addr, **values)
        except BaseException:
            self.origin.stop()
            raise
        self.marks = self.seen = 0

    def close(self):
        try:
            self.w.close()
        finally:
            self.origin.stop()

    # --- talking ---

    def connect(self, **kw):
        return self.w.connect(**kw)

    def _is_quiet(self):
        """Has the backend read all that was sent to it, and is it in the middle of no request?"""
        poll = select.poll()
        poll.register(self.origin.ls, select.POLLIN)
        with self.origin.lock:
            conns = [c for c in self.origin.conns if c.open]
        for c in conns:
            try:
                poll.register(c.sock, select.POLLIN)
            except ValueError:  # closed meanwhile
                return False
        return not poll.poll(0) and not any(c.rd.buf or c.dirty for c in conns)

    def settle(self):
        """Waits until the backend has seen the end of what was sent to it; returns and forgets what it recorded."""
        for _ in range(2):  # a thread may be between reading and recording
            util.wait_for("the backend's connections are between requests", 5, self._is_quiet, every=0.002)
            time.sleep(0.001)
        self.origin.prune()
        return self.origin.take()

    def ask(self, data, *methods, timeout=5, eof=0.05):
        """Sends the bytes in one write on a connection of its own and reads a final answer for each method."""
        self.origin.take()
        talk, conn = Talk(), self.connect(timeout=timeout)
        try:
            conn.send(data)
            for m in methods or ("GET",):
                talk.responses.append(conn.response(m))
            talk.closed = conn.at_eof(util.scaled(eof))
            talk.rest = conn.rd.buf
        finally:
            conn.close()
        talk.requests = self.settle()
        return talk

    def refusal(self, data, statuses, timeout=5, started=False):
        """None if these bytes are refused as promised, else what was wrong. → (status, why)"""
        self.origin.take()
        conn = self.connect(timeout=timeout)
        try:
            conn.send(data)
            try:
                r = conn.response()
            except (wire.Closed, wire.Timeout, wire.Malformed) as e:
                return 0, "no answer: %s" % e
            if r.status not in statuses:
                return r.status, "answered %d" % r.status
            if not r.complete or r.get("content-length") is None:
                return r.status, "the answer is not complete, or without Content-Length"
            if "close" not in r.tokens("connection"):
                return r.status, "the answer does not say Connection: close"
            if not conn.at_eof(util.scaled(timeout)):
                return r.status, "not closed after the answer (then came %r)" % conn.rd.buf[:60]
            if conn.rd.reset:
                return r.status, "reset instead of closed"
        finally:
            conn.close()
        seen = self.settle()
        if any(q.complete for q in seen) or (seen and not started):
            return r.status, "the backend saw %r" % seen
        return r.status, None

    def refused(self, inputs, statuses=(400,), then=NEXT, started=False, logged=True):
        """Fails with every input that is not refused with one of the statuses, followed by `then` in the same write.

        started: the backend may have seen a part of it (a body that turns out to be malformed), never all of it."""
        assert inputs
        self.lines()
        wrong, answered = [], []
        for name, data in inputs.items():
            status, why = self.refusal(data + then, statuses, started=started)
            answered.append(status)
            if why:
                wrong.append("%s: %s" % (name, why))
        lines = self.lines()
        statuses_logged = [int(m.group(1)) if m else 0 for m in map(LOG_STATUS.search, lines)]
        if logged and statuses_logged != answered:
            wrong.append("answered %r, but logged:\n%s" % (answered, "\n".join(lines)))
        assert not wrong, "%d of %d inputs\n%s" % (len(wrong), len(inputs), "\n".join(wrong))

    def never_whole(self, data, hold=0.3):
        """These bytes must not make a whole request for the backend, neither while the connection is open nor after a
        FIN. Returns the answer, if there was one."""
        self.origin.take()
        conn = self.connect()
        r = None
        try:
            conn.send(data)
            try:
                r = conn.response(timeout=util.scaled(hold))
                assert r.status >= 400, "answered %d" % r.status
            except wire.Timeout:
                conn.half_close()
                assert conn.at_eof(util.scaled(5)), "not closed after a FIN within the request"
            except wire.Closed:
                pass
        finally:
            conn.close()
        assert not any(q.complete for q in self.settle())
        return r

    # --- the log ---

    def lines(self):
        """The access-log lines of everything finished since the last call: a request of its own marks the end."""
        self.marks += 1
        mark = "/mark/%d" % self.marks
        assert self.w.get(mark).status
        util.wait_for("the log has " + mark, 5, lambda: any(" %s HTTP" % mark in ln for ln in self.w.access()))
        self.settle()
        every = self.w.access()
        at = next(i for i, ln in enumerate(every) if " %s HTTP" % mark in ln)
        new, self.seen = every[self.seen:at], at + 1
        return new


def needs(w, setting):
    """Skips the test while this server says that the setting is not built yet."""
    if "`%s` has no effect in this version" % setting in w.errors():
        pytest.skip("`%s` has no effect in this version yet" % setting)


def feed_slowly(conn, data, step=1, pause=0.0):
    """Sends step bytes a write; without a pause the kernel may still join some of them."""
    for i in range(0, len(data), step):
        if not conn.send(data[i:i + step]):
            return
        if pause:
            time.sleep(pause)
