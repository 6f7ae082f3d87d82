# SPDX-License-Identifier: MIT
"""WebSockets: the handshake and its refusals, and what the tunnel does with bytes, silence and ends."""
import base64
import hashlib
import os
import signal
import socket
import threading
import time

import pytest
from harness import util
from harness.backends import serve

CONF = """workers = 1; timeouts = { connect = "1s"; server = "1s"; header = "1s"; keepalive = "1s"; send = "1s";
                                   body = "1s"; tunnel = "%s"; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; } );"""
HOUR = CONF % "1h"
KEY = base64.b64encode(b"0123456789abcdef")
ACCEPT = base64.b64encode(hashlib.sha1(KEY + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
ASK = [b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: " + KEY]


def switch(*lines, accept=ACCEPT, upgrade=b"websocket"):
    lines = (b"Upgrade: " + upgrade, b"Connection: Upgrade", b"Sec-WebSocket-Accept: " + accept) + lines
    return b"HTTP/1.1 101 Switching Protocols\r\n" + b"".join(ln + b"\r\n" for ln in lines) + b"\r\n"


def ask(lines=ASK, version=b"HTTP/1.1"):
    return b"GET /ws %s\r\nHost: h.test\r\n%s\r\n" % (version, b"".join(ln + b"\r\n" for ln in lines))


def echo(conn, first=b""):
    """Accepts the handshake and sends everything back until FIN."""
    conn.head()
    conn.send(switch() + first + conn.rd.buf)
    conn.rd.buf = b""
    conn.sock.settimeout(20)
    while True:
        got = conn.sock.recv(65536)
        if not got:
            return
        conn.sock.sendall(got)


def opened(w, **kw):
    c = w.connect(**kw)
    c.send(ask())
    r = c.response()
    assert r.status == 101
    return c


def exactly(c, n, timeout=5):
    return c.rd.exactly(n, time.monotonic() + util.scaled(timeout))


# --- handshake --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("lines", [
    ASK,
    [b"Upgrade: WebSocket", b"connection: upgrade"] + ASK[2:],
    [b"Upgrade: websocket", b"Connection: keep-alive, Upgrade"] + ASK[2:],
    [b"Upgrade: websocket", b"Connection: keep-alive", b"Connection: Upgrade"] + ASK[2:],
    [b"Upgrade: websocket, foo", b"Connection: Upgrade"] + ASK[2:],
])
def test_c102_genuine_handshakes_reach_the_backend(weir, raw_backend, lines):
    b = raw_backend(echo)
    w = weir(HOUR, B=b.addr)
    c = w.connect()
    c.send(ask(lines + [b"Sec-WebSocket-Protocol: a, b", b"sec-websocket-protocol: c",
                        b"Sec-WebSocket-Extensions: permessage-deflate; x=\"y\"", b"Origin: http://o.test"]))
    r = c.response()
    assert r.status == 101 and r.get("sec-websocket-accept") == ACCEPT.decode()
    assert (r.all("upgrade"), r.all("connection")) == (["websocket"], ["Upgrade"])
    c.send(b"hello")
    assert exactly(c, 5) == b"hello"
    got = b.conns[0].received.split(b"\r\n")
    for line in (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: " + KEY,
                 b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Protocol: a, b", b"sec-websocket-protocol: c",
                 b"Sec-WebSocket-Extensions: permessage-deflate; x=\"y\"", b"Origin: http://o.test"):
        assert got.count(line) == 1, line
    assert w.wait_access('"GET /ws HTTP/1.1" 101 ')
    c.close()


@pytest.mark.parametrize("lines, version", [
    (ASK, b"HTTP/1.0"),
    ([b"Connection: Upgrade"] + ASK[2:], b"HTTP/1.1"),
    ([b"Upgrade: websocket"] + ASK[2:], b"HTTP/1.1"),
    ([b"Upgrade: h2c", b"Connection: Upgrade, HTTP2-Settings", b"HTTP2-Settings: AAA"], b"HTTP/1.1"),
    (ASK[:3], b"HTTP/1.1"),
    (ASK[:3] + [b"Sec-WebSocket-Key: short"], b"HTTP/1.1"),
    (ASK[:2] + [b"Sec-WebSocket-Version: 12", ASK[3]], b"HTTP/1.1"),
])
def test_c102_half_a_handshake_is_an_ordinary_request(weir, backend, lines, version):
    b = backend()
    w = weir(HOUR, B=b.addr)
    c = w.connect()
    c.send(ask(lines, version))
    assert c.response().status == 200
    q = b.take()[0]
    assert not (q.has("upgrade") or q.has("connection") or q.has("http2-settings")) and q.anomalies == []


@pytest.mark.parametrize("answer", [
    switch(accept=b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
    switch(upgrade=b"foo"),
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n" % ACCEPT,
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
])
def test_a_101_that_does_not_match_is_a_502(weir, raw_backend, answer):
    b = raw_backend(lambda conn: (conn.head(), conn.send(answer + b"RAW"), conn.wait_close(5)))
    w = weir(HOUR, B=b.addr)
    c = w.connect()
    c.send(ask())
    r = c.response()
    assert r.status == 502 and b"RAW" not in r.body
    w.wait_error("UPSTREAM_UNSOLICITED_101")


def test_a_101_that_nobody_asked_for_is_a_502(weir, raw_backend):
    b = raw_backend(lambda conn: (conn.head(), conn.send(switch() + b"RAW"), conn.wait_close(5)))
    w = weir(HOUR, B=b.addr)
    assert w.get("/x").status == 502


@pytest.mark.parametrize("which", ["server", "client", "both"])
def test_c103_bytes_that_come_with_the_handshake(weir, raw_backend, which):
    first = b"\x81\x05first" if which != "client" else b""
    mine = b"\x81\x85mask" + bytes(200) if which != "server" else b""
    b = raw_backend(lambda conn: echo(conn, first))
    w = weir(HOUR, B=b.addr)
    c = w.connect()
    c.send(ask() + mine)
    assert c.response().status == 101
    assert exactly(c, len(first + mine)) == first + mine
    c.send(b"then")
    assert exactly(c, 4) == b"then"


def test_c103_a_101_in_pieces(weir, raw_backend):
    def script(conn):
        conn.head()
        for at in range(0, len(switch()), 7):
            conn.send(switch()[at:at + 7])
        conn.send(b"first")
        conn.wait_close(5)
    w = weir(HOUR, B=raw_backend(script).addr)
    c = opened(w)
    assert exactly(c, 5) == b"first"


def test_c103_the_clients_bytes_wait_for_the_101(weir, raw_backend):
    seen, go = [], threading.Event()

    def script(conn):
        conn.head()
        conn.sock.settimeout(0.3)
        try:
            seen.append(conn.rd.buf + conn.sock.recv(100))
        except socket.timeout:
            seen.append(conn.rd.buf)
        go.set()
        conn.sock.settimeout(5)
        conn.send(switch())
        seen.append(conn.sock.recv(100))
        conn.wait_close(5)
    w = weir(HOUR, B=raw_backend(script).addr)
    c = w.connect()
    c.send(ask() + b"early")
    assert go.wait(5)
    assert c.response().status == 101
    util.wait_for("the bytes arrive", 5, lambda: len(seen) == 2)
    assert seen == [b"", b"early"]


@pytest.mark.parametrize("answer, body", [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain", b"plain"),
    (b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", b""),
    (b"HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", b"no"),
    (b"HTTP/1.1 426 Upgrade\r\nContent-Length: 0\r\nSec-WebSocket-Version: 13\r\n\r\n", b""),
    (b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", b""),
])
def test_c104_a_refused_handshake_is_an_ordinary_answer(weir, raw_backend, answer, body):
    def script(conn):
        while True:
            got = conn.head()
            conn.send(answer if got.startswith(b"GET /ws ") else b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nadmin")
    b = raw_backend(script)
    w = weir(HOUR.replace("proxy =", 'locations = ( { match = "/admin"; respond = 418; } ); proxy ='), B=b.addr)
    c = w.connect()
    c.send(ask() + b"GET /admin HTTP/1.1\r\nHost: h\r\n\r\n")  # the rules hold for what is pipelined behind it
    r = c.response()
    assert (r.status, r.body) == (int(answer[9:12]), body)
    assert c.response().status == 418
    assert b"/admin" not in b"".join(x.received for x in b.conns)


@pytest.mark.parametrize("version, upgrade, passes", [(b"HTTP/1.1", b"websocket", True), (b"HTTP/1.1", b"h2c", False),
                                                      (b"HTTP/1.0", b"websocket", False)])
def test_c104_a_426_names_what_is_asked_for(weir, raw_backend, version, upgrade, passes):
    b = raw_backend(serve(b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: %s\r\nConnection: Upgrade\r\n"
                          b"Content-Length: 2\r\n\r\nno" % upgrade))
    w = weir(HOUR, B=b.addr)
    c = w.connect()
    c.send(b"GET /ws %s\r\nHost: h.test\r\n\r\n" % version)
    r = c.response()
    assert (r.status, r.body) == (426, b"no")
    assert (r.all("upgrade"), "Upgrade" in r.all("connection")) == ((["websocket"], True) if passes else ([], False))


def test_c104_closed_without_an_answer(weir, raw_backend):
    w = weir(HOUR, B=raw_backend(lambda conn: conn.head()).addr)
    c = w.connect()
    c.send(ask())
    assert c.response().status == 502


# --- bytes ------------------------------------------------------------------------------------------------------------

def test_both_directions_at_once_under_backpressure(weir, raw_backend):
    b = raw_backend(echo)
    w = weir(HOUR, B=b.addr)
    c = opened(w, rcvbuf=8192, timeout=30)
    data = os.urandom(1 << 16)
    t = threading.Thread(target=lambda: c.send(*[data] * 160))
    t.start()
    for i in range(160):
        assert exactly(c, 1 << 16, 30) == data, i
    t.join()
    c.half_close()
    assert c.at_eof(util.scaled(5))


def test_a_side_that_does_not_read_stops_the_other_and_costs_nothing(weir, raw_backend):
    sent = []

    def script(conn):
        conn.head()
        conn.send(switch())
        conn.sock.settimeout(1)
        n = 0
        try:
            while n < 300000000:
                n += conn.sock.send(b"x" * 65536)
        except OSError:
            pass
        sent.append(n)
        conn.wait_close(20)
    w = weir(HOUR, B=raw_backend(script).addr)
    before = util.anon_bytes(w.tree())
    c = opened(w, rcvbuf=4096)
    util.wait_for("the backend is stuck", 20, lambda: sent)
    assert sent[0] < 30 << 20
    assert util.SCALE != 1 or util.anon_bytes(w.tree()) - before < 1 << 20
    cpu = util.cpu_ms(w.tree())
    time.sleep(1)  # a spinning loop would show
    assert util.cpu_ms(w.tree()) - cpu < 50
    c.close()


# --- silence ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("who", ["client", "server"])
def test_c106_traffic_either_way_keeps_a_tunnel(weir, raw_backend, who):
    got = []

    def script(conn):
        conn.head()
        conn.send(switch())
        if who == "server":
            for _ in range(12):
                time.sleep(0.2)
                conn.send(b"p")
        conn.wait_close(20)
        got.append(time.monotonic())
    w = weir(CONF % "1s", B=raw_backend(script).addr)
    c = opened(w)
    if who == "client":
        for _ in range(12):
            time.sleep(0.2)
            assert c.send(b"p")
    else:
        assert exactly(c, 12) == b"p" * 12
    since = time.monotonic()
    assert c.at_eof(util.scaled(5))
    assert 0.7 < time.monotonic() - since < 3 * util.SCALE
    util.wait_for("the server's side is closed too", 5, lambda: got)


def test_c106_no_other_timeout_applies(weir, raw_backend):
    w = weir(HOUR, B=raw_backend(echo).addr)
    c = opened(w)
    time.sleep(2)  # every other timeout of this configuration is 1 s
    c.send(b"still")
    assert exactly(c, 5) == b"still"


# --- ends -------------------------------------------------------------------------------------------------------------

def test_a_half_close_passes_on_behind_the_bytes_before_it(weir, raw_backend):
    got = []

    def script(conn):
        conn.head()
        conn.send(switch())
        conn.wait_close(10)  # reads until FIN
        got.append(conn.received)
        conn.send(b"last words")
    w = weir(HOUR, B=raw_backend(script).addr)
    c = opened(w)
    c.send(b"a" * 100000)
    c.half_close()
    assert exactly(c, 10) == b"last words"
    assert c.at_eof(util.scaled(5))
    assert got[0].endswith(b"a" * 100000)


@pytest.mark.parametrize("early", [b"", b"early"])
def test_a_half_close_behind_the_handshake_is_one(weir, raw_backend, early):
    go, left = threading.Event(), []

    def script(conn):
        conn.head()
        go.wait(5)
        conn.send(switch() + b"one")
        left.append(conn.wait_close(5))
        conn.send(b"two" + conn.received.split(b"\r\n\r\n")[1])
    w = weir(HOUR, B=raw_backend(script).addr)
    c = w.connect()
    c.send(ask() + early)
    c.half_close()
    go.set()
    assert c.response().status == 101
    assert exactly(c, 6 + len(early)) == b"onetwo" + early
    assert c.at_eof() and left == [True]
    assert w.wait_access('"GET /ws HTTP/1.1" 101 ')


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_the_servers_end_reaches_the_client(weir, raw_backend, how):
    def script(conn):
        conn.head()
        conn.send(switch() + b"bye")
        time.sleep(0.1)  # a reset must not overtake the bytes
        if how == "rst":
            conn.rst()
    w = weir(HOUR, B=raw_backend(script).addr)
    c = opened(w)
    assert exactly(c, 3) == b"bye"
    assert c.at_eof(util.scaled(5))


@pytest.mark.parametrize("reset", [False, True])
def test_the_clients_end_reaches_the_server(weir, raw_backend, reset):
    ended = []

    def script(conn):
        conn.head()
        conn.send(switch())
        ended.append(conn.wait_close(10))
    w = weir(HOUR, B=raw_backend(script).addr)
    c = opened(w)
    c.close(reset=reset)
    util.wait_for("the server sees it", 5, lambda: ended)
    assert ended == [True]


def test_a_client_that_left_before_the_101_leaves_nothing_behind(weir, raw_backend):
    ended, go = [], threading.Event()

    def script(conn):
        conn.head()
        go.wait(5)
        conn.send(switch() + b"first")
        ended.append(conn.wait_close(5))
    w = weir(HOUR, B=raw_backend(script).addr)
    c = w.connect()
    c.send(ask())
    c.close(reset=True)
    go.set()
    util.wait_for("the server's connection is closed", 8, lambda: ended)
    assert ended == [True]


def test_a_tunnel_is_no_request_in_flight(weir, raw_backend):
    b = raw_backend(echo)
    w = weir("""workers = 1; upstreams = { u = { maxconn = 1; servers = ( "@B@" ); }; };
                sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "u"; } );""", B=b.addr)
    conns = [opened(w) for _ in range(5)]
    for i, c in enumerate(conns):
        c.send(b"%d" % i)
        assert exactly(c, 1) == b"%d" % i


def test_tunnels_end_with_the_server(weir, raw_backend):
    ended = []

    def script(conn):
        conn.head()
        conn.send(switch())
        ended.append(conn.wait_close(20))
    w = weir(HOUR, B=raw_backend(script).addr)
    conns = [opened(w) for _ in range(3)]
    assert w.stop(signal.SIGINT) == 0
    for c in conns:
        assert c.at_eof(util.scaled(5))
    util.wait_for("the servers see it", 5, lambda: len(ended) == 3)


def test_c108_a_reload_touches_no_tunnel(weir, raw_backend):
    w = weir(HOUR, B=raw_backend(echo).addr)
    conns = [opened(w) for _ in range(20)]
    for i in range(5):
        w.reload(HOUR + "\n# %d\n" % i)
        for c in conns:
            c.send(b"%d" % i)
    for c in conns:
        assert exactly(c, 5) == b"01234"


@pytest.mark.skipif(util.SCALE != 1, reason="memory is only measured on a plain build")
def test_an_idle_websocket_costs_at_most_1536_bytes(weir, raw_backend):
    w = weir(HOUR, B=raw_backend(lambda conn: (conn.head(), conn.send(switch()), conn.wait_close(60))).addr)
    first = [opened(w) for _ in range(50)]
    before = util.anon_bytes(w.tree())
    more = [opened(w) for _ in range(300)]
    each = (util.anon_bytes(w.tree()) - before) / len(more)
    assert each < 1536, each
    for c in first + more:
        c.close()


def test_many_short_websockets_leave_nothing(weir, raw_backend):
    w = weir(HOUR, B=raw_backend(echo).addr)
    held = opened(w)

    def fds():
        return sum(len(os.listdir("/proc/%d/fd" % p)) for p in w.tree())
    before = fds()
    for i in range(100):
        c = opened(w)
        c.send(b"x")
        assert exactly(c, 1) == b"x"
        c.close(reset=i % 2 == 0)
    util.wait_for("every descriptor is closed", 5, lambda: fds() <= before)
    held.send(b"x")
    assert exactly(held, 1) == b"x"
