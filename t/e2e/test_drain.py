# SPDX-License-Identifier: MIT
"""WebSockets while the server drains: each gets a close frame between two frames, not all at once, and both sides end."""
import base64
import hashlib
import os
import re
import signal
import struct
import threading
import time

import pytest
from harness.util import alive, scaled, wait_for
from wire import Closed, Timeout

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONF = '''workers = 1; timeouts = { lame_duck = 0; shutdown = "%s"; };
          sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; } );'''


def frame(opcode, payload, mask=False):
    head = bytes([0x80 | opcode])
    n = len(payload)
    bit = 0x80 if mask else 0
    head += bytes([bit | n]) if n < 126 else bytes([bit | 126]) + struct.pack(">H", n) if n < 65536 \
        else bytes([bit | 127]) + struct.pack(">Q", n)
    return head + (b"\0\0\0\0" if mask else b"") + payload


def read_frame(read):
    """(opcode, payload) by a function that reads exactly n bytes."""
    a, b = read(2)
    n = b & 0x7F
    if n >= 126:
        n = int.from_bytes(read(2 if n == 126 else 8), "big")
    if b & 0x80:
        read(4)  # the key is zero
    return a & 0x0F, read(n) if n else b""


def accept(head):
    key = re.search(rb"(?im)^sec-websocket-key: *(\S+)", head).group(1)
    return base64.b64encode(hashlib.sha1(key + GUID).digest())


class Backend:
    """A WebSocket server: answers the handshake, runs script(conn), then behaves as RFC 6455 asks at the end."""

    def __init__(self, raw_backend, script=lambda conn: None):
        self.closes, self.lock = [], threading.Lock()

        def serve(conn):
            head = conn.head()
            conn.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      b"Sec-WebSocket-Accept: " + accept(head) + b"\r\n\r\n")
            script(conn)
            while True:
                opcode, payload = read_frame(lambda n: conn.read(n, timeout=60))
                if opcode == 8:
                    with self.lock:
                        self.closes.append(payload)
                    conn.send(frame(8, payload))
                    return
                conn.send(frame(opcode, payload))
        self.addr = raw_backend(serve).addr


class WebSocket:
    def __init__(self, w):
        self.c = w.connect(timeout=30)
        self.c.send(b"GET /ws HTTP/1.1\r\nHost: h.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + base64.b64encode(os.urandom(16)) + b"\r\n\r\n")
        assert self.c.head().status == 101

    def read(self, timeout=30):
        deadline = time.monotonic() + scaled(timeout)
        return read_frame(lambda n: self.c.rd.exactly(n, deadline))

    def send(self, opcode, payload):
        self.c.send(frame(opcode, payload, mask=True))

    def echo(self, text):
        self.send(1, text)
        assert self.read() == (1, text)


def code(payload):
    return int.from_bytes(payload, "big")


@pytest.mark.threads
def test_each_side_is_told_and_ends(weir, raw_backend):
    backend = Backend(raw_backend)
    w = weir(CONF % "10s", B=backend.addr)
    ws = WebSocket(w)
    ws.echo(b"hello")
    w.send_signal(signal.SIGTERM)
    opcode, payload = ws.read()
    assert (opcode, code(payload)) == (8, 1001)
    ws.send(8, payload)
    assert ws.c.at_eof()
    assert w.wait_exit() == 0
    assert [code(p) for p in backend.closes] == [1001]
    assert "cut off" not in w.errors()


def test_a_client_that_does_not_answer_is_cut(weir, raw_backend):
    w = weir(CONF % "60s", B=Backend(raw_backend).addr)
    ws = WebSocket(w)
    w.send_signal(signal.SIGTERM)
    while ws.read(60)[0] != 8:
        pass
    assert ws.c.at_eof(scaled(8)), "closed some seconds after its close frame"
    assert w.wait_exit() == 0


def test_the_close_frame_stands_between_two_frames(weir, raw_backend):
    """A server that talks all the time, in pieces that have nothing to do with its frames."""
    go = threading.Event()
    frames = b"".join(frame(2, bytes([i]) * n) for i, n in enumerate((0, 1, 125, 126, 4000, 70000)))

    def talk(conn):
        go.wait(scaled(20))
        data = frames * 200
        for at in range(0, len(data), 7777):
            conn.send(data[at:at + 7777])
            time.sleep(0.001)

    w = weir(CONF % "20s", B=Backend(raw_backend, talk).addr)
    ws = WebSocket(w)
    go.set()
    seen = 0
    for _ in range(20):
        opcode, payload = ws.read()
        assert opcode == 2 and payload == bytes([seen % 6]) * (0, 1, 125, 126, 4000, 70000)[seen % 6]
        seen += 1
    w.send_signal(signal.SIGTERM)
    while True:
        opcode, payload = ws.read()
        if opcode == 8:
            assert code(payload) == 1001
            break
        assert opcode == 2 and payload == bytes([seen % 6]) * (0, 1, 125, 126, 4000, 70000)[seen % 6]
        seen += 1
    assert seen < 200 * 6
    ws.send(8, payload)
    assert ws.c.at_eof(scaled(10)), "nothing follows the close frame"


def test_they_are_told_one_after_the_other(weir, raw_backend):
    w = weir(CONF % "4s", B=Backend(raw_backend).addr)
    sockets = [WebSocket(w) for _ in range(20)]
    w.send_signal(signal.SIGTERM)
    w.wait_error("draining: 20 clients")
    began = time.monotonic()
    times = []

    def one(ws):
        opcode, payload = ws.read()
        assert opcode == 8
        times.append(time.monotonic() - began)
        ws.send(8, payload)
        ws.c.at_eof()

    threads = [threading.Thread(target=one, args=(ws,)) for ws in sockets]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(times) == 20
    times.sort()
    assert times[-1] - times[0] > 1.5, times
    assert times[-1] < 4, times
    assert w.wait_exit() == 0
    assert "cut off" not in w.errors()


def test_one_that_ends_by_itself_is_not_told(weir, raw_backend):
    """The server has sent its own close frame; ours would be a second one."""
    w = weir(CONF % "5s", B=Backend(raw_backend, lambda conn: conn.send(frame(8, struct.pack(">H", 4000)))).addr)
    ws = WebSocket(w)
    assert ws.read() == (8, struct.pack(">H", 4000))
    w.send_signal(signal.SIGTERM)
    w.wait_error("draining")
    with pytest.raises((Closed, Timeout)):
        ws.read(2)
    ws.c.close()
    assert w.wait_exit() == 0


@pytest.mark.threads
def test_an_upgrade_says_service_restart_and_new_ones_reach_the_new_server(weir, raw_backend):
    backend = Backend(raw_backend)
    w = weir(CONF % "10s", B=backend.addr)
    ws = WebSocket(w)
    ws.echo(b"before")
    old = w.server_pid
    w.send_signal(signal.SIGUSR2)
    w.wait_error("has taken over from", 15)
    opcode, payload = ws.read()
    assert (opcode, code(payload)) == (8, 1012)
    ws.send(8, payload)
    assert ws.c.at_eof()
    wait_for("the old server has ended", 10, lambda: not alive(old))
    again = WebSocket(w)
    again.echo(b"after")


def test_a_reload_tells_nobody(weir, raw_backend):
    w = weir(CONF % "10s", B=Backend(raw_backend).addr)
    ws = WebSocket(w)
    for i in range(3):
        w.reload(CONF % "10s" + "\n# %d\n" % i)
        ws.echo(b"%d" % i)
