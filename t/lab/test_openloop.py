# SPDX-License-Identifier: MIT
"""The open-loop generator against servers that answer in every way HTTP/1 allows, and in some that it does not."""
import asyncio
import csv
import subprocess
import threading

import pytest
from harness import util
from lab import loads

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


class Scripted:
    """A server: script(n, head) → bytes to send for the nth request, or (bytes, "close"); None closes at once."""

    def __init__(self, script):
        self.script, self.heads, self.connections = script, [], 0
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        self.ready.wait()

    def _run(self):
        self.server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            while True:
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                got = self.script(len(self.heads), self.heads[-1])
                for part in got if isinstance(got, list) else [got]:
                    if part is None or part == "close":
                        return
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0.001)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


@pytest.fixture
def scripted():
    servers = []

    def start(script):
        servers.append(Scripted(script))
        return servers[-1]

    yield start
    for s in servers:
        s.close()


@pytest.fixture
def openloop(tmp_path):
    """openloop(port, *options) → (what it counted, the rows of its file)."""

    def run(port, *options, rate=50, seconds=0.4):
        raw = tmp_path / "raw.tsv"
        cmd = [loads.generator(), "-r", rate, "-d", seconds, "-o", raw, *options, "http://127.0.0.1:%d/path?q" % port]
        p = subprocess.run(list(map(str, cmd)), capture_output=True, text=True, timeout=util.scaled(60))
        assert p.returncode == 0, p.stderr
        with open(raw, newline="") as f:
            rows = list(csv.DictReader(f, delimiter="\t"))
        return loads.parse_openloop(p.stdout), rows

    return run


@pytest.mark.parametrize(
    "answer",
    [
        OK,
        [OK[:9], OK[9:30], OK[30:]],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5", b"\r\nhel", b"lo\r", b"\n0\r\nT: x\r\n", b"\r\n"],
        [b"HTTP/1.0 200 OK\r\n\r\nhello", "close"],
        [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", "close"],
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ],
    ids=["length", "in parts", "chunked", "chunked in parts", "until the end", "close", "none"],
)
def test_answers_of_every_kind(scripted, openloop, answer):
    s = scripted(lambda n, head: answer)
    got, rows = openloop(s.port)
    assert (got.requests, got.failures) == (20, {}) and {r["kind"] for r in rows} == {"ok"}
    assert [int(r["start_us"]) for r in rows] == [20000 * i for i in range(20)]
    assert len(s.heads) == 20
    assert s.connections == 20 if isinstance(answer, list) and "close" in answer else s.connections <= 20
    assert s.heads[0].startswith("GET /path?q HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % s.port)


@pytest.mark.parametrize(
    "bad, kind",
    [
        (OK.replace(b"200 OK", b"503 Busy"), "status"),
        (OK.replace(b"5\r\n\r\nhello", b"4\r\n\r\nhell"), "length"),
        ([OK[:-2], "close"], "read"),
        ([b"SSH-2.0-x\r\n\r\n", "close"], "read"),
        (None, "read"),
    ],
    ids=["status", "length", "cut", "not HTTP", "closed"],
)
def test_failures_by_kind(scripted, openloop, bad, kind):
    s = scripted(lambda n, head: bad if n == 10 else OK)
    got, rows = openloop(s.port)
    assert got.failures == {kind: 1} and [r["kind"] for r in rows].count(kind) == 1


def test_refused_and_never_answered(scripted, openloop):
    dead = util.DeadPort()
    got, _ = openloop(dead.port)
    dead.close()
    assert got.failures == {"connect": 20}
    s = scripted(lambda n, head: b"" if n <= 5 else OK)
    got, rows = openloop(s.port, "-t", 0.5)
    assert got.failures == {"timeout": 5}
    assert all(int(r["latency_us"]) >= 500000 for r in rows if r["kind"] == "timeout")


def test_requests_wait_for_a_connection_and_have_waited(scripted, openloop):
    """Two connections, of which the server holds one up: the others pass it by, and nothing is lost."""
    s = scripted(lambda n, head: [b""] * 150 + [OK] if n == 3 else OK)
    got, rows = openloop(s.port, "-c", 2, rate=100, seconds=0.5)
    assert (got.requests, got.failures) == (50, {}) and s.connections <= 2
    assert max(int(r["latency_us"]) for r in rows) >= 150000


def test_options(scripted, openloop):
    s = scripted(lambda n, head: [OK, "close"] if "close" in head else OK)
    openloop(s.port, "-x", "-H", "X-Y: z", "-H", "Accept: text/html")
    assert s.connections == 20
    assert "\r\nConnection: close\r\nX-Y: z\r\nAccept: text/html\r\n\r\n" in s.heads[0]
    for bad in (["-r", "0"], ["-r", "x", "-d", "1", "http://x/"], ["-r", "1", "-d", "1", "ftp://x/"], []):
        p = subprocess.run([loads.generator(), *bad], capture_output=True, text=True)
        assert p.returncode == 2 and p.stderr.startswith("openloop: ")
