# SPDX-License-Identifier: MIT
"""Waiting costs nothing. Each state in which weir has to wait while a socket is readable or writable is held for two
seconds; a watcher left armed there spins at millions of callbacks a second.

Every state has a server of its own; all are held at the same time, and the tests below only look at what each
has used."""
import threading
import time

import pytest
from harness import backends, raw, server, util
from harness.raw import chunked, get, post

HOLD = 2
CONF = """
workers = 1;
timeouts = { queue = "60s"; header = "60s"; };
limits = { body_size = "10m"; };
upstreams = { one = { servers = ( "@B@" ); maxconn = 1; }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@";
            locations = ( { match = "/f/"; root = "public"; }, { match = "/one/"; proxy = "one"; },
                          { match = "/no/"; respond = 403; } ); } );
"""
WS = [b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13",
      b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
ACCEPT = (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")


def think(conn):
    conn.head()
    conn.wait_close(60)


def take_no_body(conn):
    conn.head()
    time.sleep(30)


def pour(conn):
    """As fast as it is taken, until the peer goes."""
    conn.sock.settimeout(60)
    while True:
        conn.sock.sendall(b"x" * 65536)


def flood(conn):
    conn.head()
    conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    pour(conn)


def begin_stream(conn):
    conn.head()
    conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
    conn.wait_close(60)


def answer_and_say_more(conn):
    conn.head()
    conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmore")
    conn.wait_close(60)


def answer_early(conn):
    conn.head()
    conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello")
    conn.wait_close(60)


def upgrade(conn):
    conn.head()
    conn.send(ACCEPT)
    conn.wait_close(60)


def upgrade_and_sleep(conn):
    conn.head()
    conn.send(ACCEPT)
    time.sleep(30)


def upgrade_and_flood(conn):
    conn.head()
    conn.send(ACCEPT)
    pour(conn)


def some(c, *data):
    """Sends without waiting for room: what does not fit is left out."""
    c.s.settimeout(0.1)
    for d in data:
        try:
            c.s.sendall(d)
        except OSError:
            return


PIPELINED = [get(b"/f/a.txt", b"X: %s" % (b"y" * 1000))] * 1000
# name: (backend's script, clients: each a list of bytes, how the client goes on)
STATES = {
    "slow backend": (think, [[get()]], None),
    "slow backend, pipelined bytes behind it": (think, [[get()] + PIPELINED], None),
    "slow backend, client has sent FIN": (think, [[get()]], "fin"),
    "slow backend, pipelined bytes and FIN": (think, [[get()] + PIPELINED[:5]], "fin"),
    "slow backend, more pipelined than is kept, and FIN": (think, [[get()] + PIPELINED[:50]], "fin"),
    "answer begun, client has sent FIN": (answer_early, [[get()]], "fin"),
    "answer begun, pipelined bytes": (answer_early, [[get()] + PIPELINED], None),
    "event stream, client has sent FIN": (begin_stream, [[get()]], "fin"),
    "event stream, client goes on sending": (begin_stream, [[get()] + PIPELINED], None),
    "client does not read what the backend floods": (flood, [[get()]], None),
    "client does not read a file": (think, [[get(b"/f/big")] * 50], None),
    "client does not read a file and has sent FIN": (think, [[get(b"/f/big")] * 50], "fin"),
    "client does not read and goes on sending": (flood, [[get()] + PIPELINED], None),
    "backend does not read the upload": (take_no_body,
                                         [[post(b"/p", b"Content-Length: 9000000", body=b"x" * 9000000)]], None),
    "backend does not read the chunks": (take_no_body,
                                         [[chunked(raw.chunks(b"x" * (8 << 20), 1 << 20))]], None),
    "half an upload": (take_no_body, [[post(b"/p", b"Content-Length: 100", body=b"x")]], None),
    "queue of requests": (think, [[get(b"/one/%d" % i)] for i in range(5)], None),
    "queue, with pipelined bytes": (think, [[get(b"/one/%d" % i)] + PIPELINED for i in range(3)], None),
    "queue, with FIN": (think, [[get(b"/one/%d" % i)] for i in range(3)], "fin"),
    "queue, with bodies": (think,
                           [[post(b"/one/", b"Content-Length: 1000000", body=b"x" * 1000000)] for _ in range(3)], None),
    "lingering": (think, [[post(b"/no/", b"Content-Length: 1000000", body=b"x" * 1000)]], None),
    "lingering after 413": (think, [[post(b"/p", b"Content-Length: 100000000", body=b"x" * 1000)]], None),
    "half a head": (think, [[b"GET /p HTTP/1.1\r\nHo"]], None),
    "nothing sent": (think, [[]], None),
    "idle kept alive": (answer_and_say_more, [[get(b"/f/a.txt")]], None),
    "backend said more than was asked": (answer_and_say_more, [[get()]], None),
    "tunnel": (upgrade, [[get(b"/ws", *WS)]], None),
    "tunnel, backend does not read": (upgrade_and_sleep, [[get(b"/ws", *WS)]], "fin"),
    "tunnel, client does not read": (upgrade_and_flood, [[get(b"/ws", *WS)]], None),
}


class State:
    def __init__(self, name):
        script, clients, then = STATES[name]
        self.backend = backends.RawBackend(script)
        self.w = server.Weir(CONF, files={"public/f/a.txt": "hello\n", "public/f/big": b"x" * (4 << 20)},
                             B=self.backend.addr)
        self.clients = [self.w.connect(rcvbuf=4096) for _ in clients]
        for c, data in zip(self.clients, clients):
            some(c, *data)
            if then == "fin":
                c.half_close()

    def quiet_cpu(self):
        """Milliseconds of CPU since hold() began."""
        return util.cpu_ms(self.pids) - self.before

    def begin(self):
        self.pids = self.w.tree()
        self.before = util.cpu_ms(self.pids)

    def close(self):
        for c in self.clients:
            c.close(reset=True)
        try:
            self.w.close()
        finally:
            self.backend.close()


@pytest.fixture(scope="module")
def used():
    states, result, failed = {}, {}, []
    try:
        for name in STATES:
            states[name] = State(name)
        time.sleep(util.scaled(1))  # what was under way when the last bytes came
        for s in states.values():
            s.begin()
        time.sleep(HOLD)
        for name, s in states.items():
            result[name] = (s.quiet_cpu(), s.w.errors()[-1000:])
    finally:
        closers = [threading.Thread(target=lambda s=s: closing(s, failed)) for s in states.values()]
        for t in closers:
            t.start()
        for t in closers:
            t.join()
    assert not failed, failed[0]
    return result


def closing(state, failed):
    try:
        state.close()
    except Exception as e:
        failed.append(e)


@pytest.mark.parametrize("name", STATES)
def test_waiting_costs_nothing(used, name):
    ms, errors = used[name]
    assert ms < 20 * util.SCALE, "%d ms of CPU in %d s; its log ends:\n%s" % (ms, HOLD, errors)
