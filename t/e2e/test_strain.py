# SPDX-License-Identifier: MIT
"""Everything at once: good answers, broken ones, servers and clients that leave, timeouts, reloads; both sides count.

Short forms run in check; WEIR_LONG=1 brings 100,000 requests (C112, C113, C116).
"""
import asyncio
import collections
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest
import test_tunnel
from conftest import LONG
from harness import util
from wire import Closed

MAXCONN = 6
CONF = """
workers = 2; log_level = "emerg";
access_log = { path = "access.txt"; format = "$request_method $uri $status"; };
timeouts = { queue = "50ms"; server = "200ms"; connect = "1s"; };
upstreams = { u = { maxconn = %d; queue_size = 24; servers = ( "@A@", "@DEAD@", "@B@" ); }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "u"; } );
""" % MAXCONN

BAD_ENDS = ("early", "inhead", "inbody", "inchunk", "junk")


def reset(writer):
    sock = writer.transport.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def is_cut(writer):
    """Has the other side closed it, seen or not?"""
    sock = writer.transport.get_extra_info("socket")
    try:
        return sock.fileno() < 0 or peek(sock.fileno()) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def peek(fd):
    with socket.socket(fileno=os.dup(fd)) as s:
        return s.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)


class Recorder:
    """One server: answers as the path says, and counts what it has at once, those that weir has cut left out."""

    def __init__(self):
        self.running, self.most, self.posts, self.seen = set(), 0, collections.Counter(), 0

    async def open(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", util.free_port(), backlog=1000)
        self.addr = "127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]

    def begin(self, writer):
        self.seen += 1
        self.running.add(writer)
        if len(self.running) > self.most:
            self.most = max(self.most, sum(not is_cut(w) for w in self.running))

    async def serve(self, reader, writer):
        try:
            while await self.one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.running.discard(writer)
            writer.close()

    async def one(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        method, path = head.split(b" ", 2)[:2]
        self.begin(writer)
        kind = path.split(b"/")[1].decode()
        if method == b"POST":
            self.posts[path] += 1
            await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", head).group(1)))
        if kind == "stall":
            await reader.read()  # until weir has had enough
            return False
        if kind in ("slow", "big"):
            await asyncio.sleep(0.02)
        end = self.running.discard
        if kind == "early":
            end(writer)
            reset(writer)
        elif kind == "inhead":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
            await asyncio.sleep(0)
            end(writer)
            reset(writer)
        elif kind == "inbody":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            await asyncio.sleep(0)
            end(writer)
            writer.close()
        elif kind == "inchunk":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
            await asyncio.sleep(0)
            end(writer)
            writer.close()
        elif kind == "junk":
            end(writer)
            writer.write(b"junk\r\n\r\n")
            writer.close()
        else:
            body = b"x" * (200000 if kind == "big" else 5)
            end(writer)  # before the last byte: with it the slot may be another's
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
            return True
        return False


class Client:
    """Asks one after another; notes each request's end. `last` is the number after the last request."""

    def __init__(self, port, numbers, rng):
        self.port, self.numbers, self.rng = port, numbers, rng
        self.reader = self.writer = None
        self.answers, self.cut, self.left = collections.Counter(), 0, 0

    async def run(self):
        for n in self.numbers:
            try:
                await self.one(n)
            except (ConnectionError, asyncio.IncompleteReadError):
                self.cut += 1
                self.drop()
        self.drop()

    def drop(self):
        if self.writer is not None:
            self.writer.close()
        self.writer = None

    def leave(self):
        self.left += 1
        reset(self.writer)
        self.writer = None

    async def one(self, n):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        kind = self.rng.choices(("ok", "slow", "big", "stall") + BAD_ENDS, (60, 20, 4, 1) + (2,) * 5)[0]
        method = self.rng.choices(("GET", "POST", "HEAD"), (7, 3, 1))[0]
        stage = self.rng.choices((None, "head", "sent", "body", "waits", "answer"), (85, 3, 3, 3, 3, 3))[0]
        head = "%s /%s/%d HTTP/1.1\r\nHost: h\r\n" % (method, kind, n)
        body = b"b" * 2000 if method == "POST" else b""
        head = (head + ("Content-Length: 2000\r\n" if body else "") + "\r\n").encode()
        if stage == "head":
            self.writer.write(head[:-3])
            await asyncio.sleep(0)
            return self.leave()
        self.writer.write(head + (body[:700] if stage == "body" else body))
        if stage in ("sent", "body"):
            await asyncio.sleep(0)
            return self.leave()
        if stage == "waits":
            await asyncio.sleep(self.rng.random() * 0.03)
            return self.leave()
        answer = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), util.scaled(20))
        if stage == "answer":
            return self.leave()
        status = int(answer.split()[1])
        await self.rest(answer, method)
        self.answers[status] += 1
        if status == 503:
            await asyncio.sleep(0.004)
        if b"\r\nconnection: close" in answer.lower():
            self.drop()

    async def rest(self, answer, method):
        length = re.search(rb"(?i)content-length: (\d+)", answer)
        if method == "HEAD":
            return
        if length:
            await asyncio.wait_for(self.reader.readexactly(int(length.group(1))), util.scaled(20))
            return
        while True:
            size = int(await self.reader.readline() or b"bad", 16) if not self.reader.at_eof() else None
            if size is None:
                raise ConnectionError
            await self.reader.readexactly(size + 2)
            if size == 0:
                return


async def strain(weir, dead, total, n_clients=42):
    backs = [Recorder(), Recorder()]
    for b in backs:
        await b.open()
    w = await asyncio.to_thread(lambda: weir(CONF, A=backs[0].addr, B=backs[1].addr, DEAD=dead.addr))
    rng = random.Random(4)
    clients = [Client(w.port, range(i, total, n_clients), random.Random(i)) for i in range(n_clients)]
    running = asyncio.gather(*(c.run() for c in clients))
    while not running.done():
        w.send_signal(signal.SIGHUP)
        await asyncio.wait([running], timeout=0.3 + rng.random() / 2)
    await running
    return w, backs, clients


def counts(w):
    status = json.loads(w.cli("status", "--json").stdout)
    servers = [s for u in status["upstreams"] for s in u["servers"]]
    return (sum(s["in_flight"] for s in servers), sum(u["waiting"] for u in status["upstreams"]), status["clients"])


def failures(w):
    return json.loads(w.cli("status", "--json").stdout)["failures"]


def check_strain(weir, dead, total):
    w, backs, clients = asyncio.run(strain(weir, dead, total))
    util.wait_for("every slot is free, nobody waits", 10, lambda: counts(w) == (0, 0, 0))
    answers = sum((c.answers for c in clients), collections.Counter())
    cut, left = sum(c.cut for c in clients), sum(c.left for c in clients)
    print("answers %s, cut %d, left %d, seen by the servers %s, at most %s at once, failures %s" % (
        dict(answers), cut, left, [b.seen for b in backs], [b.most for b in backs], failures(w)))
    assert sum(answers.values()) + cut + left == total
    assert set(answers) <= {200, 502, 503, 504} and answers[200] > total / 4
    assert all(1 < b.most <= MAXCONN for b in backs)
    want = {"QUEUE_FULL", "CLIENT_ABORTED", "UPSTREAM_CLOSED"}
    if total >= 50000:  # a short run on a fast machine may see neither of these
        want |= {"QUEUE_TIMEOUT", "UPSTREAM_TIMEOUT"}
    assert want <= set(failures(w))
    assert all(n == 1 for b in backs for n in b.posts.values())
    assert not set(backs[0].posts) & set(backs[1].posts)

    def lines():
        with open(os.path.join(w.dir, "access.txt")) as f:
            return [ln.split() for ln in f if ln.count(" ") == 2]
    util.wait_for("the log is complete", 10, lambda: len(lines()) >= total - left)
    seen = collections.Counter(uri for _, uri, _ in lines() if uri != "-")
    assert max(seen.values()) == 1  # exactly once each
    numbers = {int(uri.split("/")[2]) for uri in seen}
    assert len(numbers) >= total - left


def test_every_request_ends_once_and_every_slot_comes_back(weir, dead):
    check_strain(weir, dead, 3000)


@pytest.mark.long
def test_every_request_ends_once_and_every_slot_comes_back_100000(weir, dead):
    check_strain(weir, dead, 100000)


# --- one kind of end after another (C112) -----------------------------------------------------------------------------

BATCH = """
workers = 2; access_log = false; log_level = "emerg"; limits = { body_size = "1k"; };
timeouts = { connect = "100ms"; server = "20s"; };
upstreams = { u = { maxconn = 2; servers = ( "@B@" ); }; refused = { maxconn = 2; servers = ( "@DEAD@" ); };
              both = { maxconn = 2; servers = ( "@DEAD@", "@B@" ); }; far = { maxconn = 2; servers = ( "@FULL@" ); }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "u";
            locations = ( { match = "/stall"; proxy = "u"; timeouts = { server = "100ms"; }; },
                          { match = "/refused"; proxy = "refused"; }, { match = "/both"; proxy = "both"; },
                          { match = "/far"; proxy = "far"; } ); } );
"""


def batch_script(conn):
    while True:
        path = conn.head().split()[1]
        if path == b"/rst":
            return conn.rst()
        if path == b"/midbody":
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel")
            return conn.rst()
        if path == b"/cut":
            return conn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
        if path in (b"/stall", b"/busy"):
            return conn.wait_close(10)
        if path == b"/ws":
            conn.send(test_tunnel.switch())
            return conn.wait_close(10)
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def ask(w, method, path):
    """The status; 0: cut."""
    try:
        r = w.request(method, path)
        return r.status if r.complete else 0
    except Closed:
        return 0


def leave(w, data, pause):
    c = w.connect()
    c.send(data)
    time.sleep(pause)
    c.close(reset=True)


def open_and_close(w):
    c = w.connect()
    c.send(test_tunnel.ask())
    assert c.response().status == 101
    c.close()


GET = b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n"
BATCHES = {
    "refused": lambda w, b: ask(w, "GET", "/refused") == 502 or 1 / 0,
    "connect timeout": lambda w, b: ask(w, "GET", "/far") == 504 or 1 / 0,
    "retry to the other": lambda w, b: ask(w, "GET", "/both") == 200 or 1 / 0,
    "reset before the head": lambda w, b: ask(w, "GET", "/rst") == 502 or 1 / 0,
    "reset in the body": lambda w, b: ask(w, "GET", "/midbody") == 0 or 1 / 0,
    "truncated chunk": lambda w, b: ask(w, "GET", "/cut") == 0 or 1 / 0,
    "read timeout": lambda w, b: ask(w, "GET", "/stall") == 504 or 1 / 0,
    "HEAD": lambda w, b: ask(w, "HEAD", "/ok") == 200 or 1 / 0,
    "413": lambda w, b: w.post("/ok", b"x" * 2000).status == 413 or 1 / 0,
    "101": lambda w, b: open_and_close(w),
    "client leaves in its head": lambda w, b: leave(w, (GET % b"/ok")[:-2], 0),
    "client leaves at once": lambda w, b: leave(w, GET % b"/ok", 0),
    "client leaves while the server thinks": lambda w, b: leave(w, GET % b"/busy", 0.01),
    "client leaves in its body": lambda w, b: leave(
        w, b"POST /ok HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhi", 0.01),
    "down while it is busy": lambda w, b: down_while_busy(w, b),
}


def down_while_busy(w, b):
    c = w.connect()
    c.send(GET % b"/busy")
    util.wait_for("it runs", 5, lambda: counts(w)[0] == 1)
    assert w.cli("server", "u/" + b.addr, "down").returncode == 0
    assert ask(w, "GET", "/ok") == 503
    c.close(reset=True)
    assert w.cli("server", "u/" + b.addr, "up").returncode == 0


@pytest.mark.parametrize("kind", BATCHES)
def test_c112_no_end_leaks_a_slot(weir, raw_backend, dead, kind):
    full = socket.socket()  # a backlog that takes nobody: the connect is never answered
    full.bind(("127.0.0.1", util.free_port()))
    full.listen(0)
    fillers = []
    for _ in range(4):
        f = socket.socket()
        f.setblocking(False)
        f.connect_ex(full.getsockname())
        fillers.append(f)
    b = raw_backend(batch_script)
    w = weir(BATCH, B=b.addr, DEAD=dead.addr, FULL="127.0.0.1:%d" % full.getsockname()[1])
    slow = kind in ("connect timeout", "read timeout", "down while it is busy")
    for _ in range((100 if slow else 1000) if LONG else 4 if slow else 15):
        BATCHES[kind](w, b)
    util.wait_for("every slot is free", 5, lambda: counts(w)[:2] == (0, 0))
    two = [w.connect() for _ in range(2)]
    for c in two:
        c.send(GET % b"/busy")
    util.wait_for("two run at once", 5, lambda: counts(w)[0] == 2)
    for c in two:
        c.close(reset=True)
    for f in fillers + [full]:
        f.close()


# --- servers that come and go under load ------------------------------------------------------------------------------

APP = """
const http = require('http');
http.createServer((q, a) => setTimeout(() => a.end('ok ' + q.url), 3)).listen(process.env.PORT, '127.0.0.1');
"""
NODES = """
workers = 2; access_log = false;
upstreams = { nodes = { maxconn = 32; servers = ( "@A@", "@B@", "@C@", "@D@" ); }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "nodes"; } );
"""


class Load(threading.Thread):
    """GETs on kept-alive connections until stopped; .failed: everything that was not a 200 with its body."""

    def __init__(self, w):
        super().__init__()
        self.w, self.stop, self.good, self.failed = w, threading.Event(), 0, []
        self.start()

    def run(self):
        c = self.w.connect(timeout=20)
        while not self.stop.is_set():
            path = b"/%d" % self.good
            try:
                c.send(b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % path)
                r = c.response()
                if r.status != 200 or r.body != b"ok " + path:
                    self.failed.append((r.status, r.body))
            except Exception as e:
                self.failed.append(e)
                c = self.w.connect(timeout=20)
            self.good += 1
        c.close()


def finish(loads):
    for t in loads:
        t.stop.set()
    for t in loads:
        t.join()
    assert [t.failed for t in loads if t.failed] == []
    return sum(t.good for t in loads)


def nodes_of(node):
    nodes = [node(APP) for _ in range(4)]
    return nodes, dict(zip("ABCD", (n.addr for n in nodes)))


def test_four_node_servers_killed_and_restarted_in_turn(weir, node):
    nodes, values = nodes_of(node)
    w = weir(NODES, **values)
    loads = [Load(w) for _ in range(6)]
    for i in range(4):
        nodes[i].proc.kill()
        nodes[i].proc.wait()
        time.sleep(0.3)
        nodes[i] = node(APP, port=nodes[i].port)
    assert finish(loads) > 100


@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")
def test_four_node_servers_killed_and_restarted_in_turn_under_wrk(weir, node):
    """50 connections that ask without a pause: not one failed request, whichever server has just gone."""
    nodes, values = nodes_of(node)
    w = weir(NODES, **values)
    rounds = 5 if LONG else 1
    wrk = subprocess.Popen(["wrk", "-t1", "-c50", "-d600s", "http://127.0.0.1:%d/x" % w.port], stdout=subprocess.PIPE, text=True)
    try:
        for i in list(range(4)) * rounds:
            nodes[i].proc.kill()
            nodes[i].proc.wait()
            asked = requests(w)
            util.wait_for("the others serve", 5, lambda: requests(w) > asked + 200)
            nodes[i] = node(APP, port=nodes[i].port)
        wrk.send_signal(signal.SIGINT)  # then it says what it has seen
        text = wrk.communicate(timeout=util.scaled(20))[0]
    finally:
        wrk.kill()
        wrk.wait()
    assert int(re.search(r"(\d+) requests in", text).group(1)) > 1000 * rounds
    assert "Non-2xx" not in text and "Socket errors" not in text, text


def requests(w):
    status = json.loads(w.cli("status", "--json").stdout)
    return sum(s["requests"] for u in status["upstreams"] for s in u["servers"])


def test_the_page_lives_until_the_last_server_goes(weir, node):
    nodes, values = nodes_of(node)
    w = weir(NODES, **values)
    loads = [Load(w) for _ in range(3)]
    for n in nodes[:3]:
        before = sum(t.good for t in loads)
        n.proc.kill()
        util.wait_for("requests go on", 10, lambda: sum(t.good for t in loads) > before + 20)
    finish(loads)
    nodes[3].proc.kill()
    nodes[3].proc.wait()
    assert w.get("/").status == 502
