# SPDX-License-Identifier: MIT
"""A reload while a request waits, in each step it can wait in: it is answered as it would have been without the reload.

Each is tried with a reload that changes nothing it uses, one that takes its location away, and one that takes its
upstream away; what asks afterwards gets what the new configuration says.
"""
import base64
import json
import os
import socket
import threading

import pytest

from harness.util import scaled, wait_for

HEAD = 'workers = 2; log_level = "info"; access_log = { path = "stdout"; format = "json"; }; timeouts = { lame_duck = 0; };'
UPSTREAM = 'upstreams = { app = { servers = ( "%s" ); maxconn = 1; %s }; %s };'
BEFORE = HEAD + UPSTREAM + '''
    sites = ( { listen = "127.0.0.1:@PORT@"; respond = "old";
                locations = ( { match = "/app"; proxy = "app"; }, { match = "/files/"; root = "public"; } ); } );'''
AFTER = {
    "same": HEAD + UPSTREAM + '''
    sites = ( { listen = "127.0.0.1:@PORT@"; respond = "new";
                locations = ( { match = "/app"; proxy = "app"; }, { match = "/files/"; root = "public"; } ); } );''',
    "no location": HEAD + UPSTREAM + '''
    sites = ( { listen = "127.0.0.1:@PORT@"; respond = "new"; } );''',
    "no upstream": HEAD + '''
    sites = ( { listen = "127.0.0.1:@PORT@"; respond = "new"; } );''',
}
BIG = os.urandom(8 << 20)
FILES = {"public/files/big.bin": BIG}


class App:
    """A backend's script: says when it has been asked, and does each part of its answer when it is told to."""

    def __init__(self, *parts, body=0):
        self.parts, self.body, self.asked, self.go = parts, body, threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, conn):
        while True:
            conn.head(timeout=30)
            self.asked.release()
            got = conn.read(self.body, timeout=30) if self.body else b""
            for part in self.parts:
                self.go.acquire(timeout=scaled(30))
                conn.send(part(got) if callable(part) else part)

    def wait(self):
        assert self.asked.acquire(timeout=scaled(10))


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n"


def get(w, path="/app", more=b""):
    c = w.connect(timeout=30)
    c.send(b"GET %s HTTP/1.1\r\nHost: h.test\r\n%s\r\n" % (path.encode(), more))
    return c


def seen(c):
    """What has arrived and has not been read."""
    try:
        return c.s.recv(65536, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return b""


# Each step: starts a request, yields when it waits there, then finishes it and says what must have come back.

def reading_the_head(w, app):
    c = w.connect(timeout=30)
    c.send(b"GET /app HTTP/1.1\r\nHo")
    wait_for("the client is known", 5, lambda: '"clients":0' not in w.cli("status", "--json").stdout)
    yield
    c.send(b"st: h.test\r\n\r\n")
    app.go.release(2)
    yield c.response("GET").body == b"complete"


def reading_the_body(w, app):
    c = w.connect(timeout=30)
    c.send(b"POST /app HTTP/1.1\r\nHost: h.test\r\nContent-Length: 8\r\n\r\nfirs")
    app.wait()
    yield
    c.send(b"t ok")
    app.go.release(2)
    yield c.response("POST").body == b"first ok"


def waiting_to_be_asked_for_the_body(w, app):
    c = w.connect(timeout=30)
    c.send(b"POST /app HTTP/1.1\r\nHost: h.test\r\nContent-Length: 8\r\nExpect: 100-continue\r\n\r\n")
    app.wait()
    yield
    c.send(b"first ok")
    app.go.release(2)
    r = c.response("POST")
    yield r.status == 200 and r.body == b"first ok"


def waiting_for_a_slot(w, app):
    first = get(w)
    app.wait()
    c = get(w)
    wait_for("the second waits", 5, lambda: '"waiting":1' in w.cli("status", "--json").stdout)
    yield
    app.go.release(4)
    yield first.response("GET").body == b"complete" and c.response("GET").body == b"complete"


def waiting_for_the_answer(w, app):
    c = get(w)
    app.wait()
    yield
    app.go.release(2)
    yield c.response("GET").body == b"complete"


def in_the_middle_of_the_answer(w, app):
    c = get(w)
    app.wait()
    app.go.release()
    wait_for("its beginning", 10, lambda: b"\r\n\r\n" in seen(c))
    yield
    app.go.release()
    yield c.response("GET").body == b"complete"


def sending_a_file_to_a_slow_client(w, app):
    c = w.connect(timeout=30, rcvbuf=4096)
    c.send(b"GET /files/big.bin HTTP/1.1\r\nHost: h.test\r\n\r\n")
    wait_for("its beginning", 10, lambda: b"\r\n\r\n" in seen(c))
    yield
    yield c.response("GET").body == BIG


def in_a_tunnel(w, app):
    c = get(w, more=b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                    b"Sec-WebSocket-Key: " + base64.b64encode(b"0123456789abcdef") + b"\r\n")
    app.wait()
    app.go.release()
    wait_for("the handshake", 10, lambda: b"\r\n\r\n" in seen(c))
    yield
    app.go.release()
    wait_for("what comes through", 10, lambda: seen(c).endswith(b"through"))
    yield True


def on_an_idle_connection(w, app):
    c = get(w, "/")
    assert c.response("GET").body == b"old"
    yield
    c.send(b"GET / HTTP/1.1\r\nHost: h.test\r\n\r\n")
    yield c.response("GET").body == b"new"


SWITCH = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          b"Sec-WebSocket-Accept: BACScCJPNqyz+UBoqMH89VmURoA=\r\n\r\n")
STEPS = {
    reading_the_head: lambda: App(OK, b"complete"),
    reading_the_body: lambda: App(OK, lambda got: got, body=8),
    waiting_to_be_asked_for_the_body: lambda: App(OK, lambda got: got, body=8),
    waiting_for_a_slot: lambda: App(OK, b"complete"),
    waiting_for_the_answer: lambda: App(OK, b"complete"),
    in_the_middle_of_the_answer: lambda: App(OK + b"comp", b"lete"),
    sending_a_file_to_a_slow_client: lambda: App(),
    in_a_tunnel: lambda: App(SWITCH, b"through"),
    on_an_idle_connection: lambda: App(),
}


@pytest.mark.threads
@pytest.mark.parametrize("change", AFTER)
@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.__name__)
def test_a_request_that_waits_is_answered(weir, raw_backend, step, change):
    app = STEPS[step]()
    addr = raw_backend(app).addr
    w = weir(BEFORE % (addr, "", ""), files=FILES)
    w.wait_error("generation 1: ")
    run = step(w, app)
    next(run)
    w.configure(AFTER[change] % (addr, "", "") if "%s" in AFTER[change] else AFTER[change])
    r = w.cli("reload")
    assert r.returncode == 0, r.stderr
    assert w.get("/").body == b"new"
    assert next(run) is True
    for line in w.access():
        assert '"status":5' not in line


@pytest.mark.threads
def test_a_request_that_waits_for_a_server_to_come_back(weir, raw_backend, free_port):
    port = free_port()
    w = weir(BEFORE % ("127.0.0.1:%d" % port, 'hold = "20s";', ""), files=FILES)
    w.wait_error("generation 1: ")
    c = get(w)
    wait_for("it has been tried", 10, lambda: json.loads(w.cli("status", "--json").stdout)
             ["upstreams"][0]["servers"][0]["failures"] > 0)
    w.configure(AFTER["same"] % ("127.0.0.1:%d" % port, 'hold = "20s";', 'other = { servers = ( "127.0.0.1:9" ); };'))
    assert w.cli("reload").returncode == 0
    app = App(OK, b"complete")
    app.go.release(2)
    raw_backend(app, port=port)
    assert c.response("GET").body == b"complete"
