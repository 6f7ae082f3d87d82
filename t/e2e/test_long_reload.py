# SPDX-License-Identifier: MIT
"""Two hundred reloads under load with a thousand open WebSockets: nobody notices, and nothing grows."""
import base64
import contextlib
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest
from harness.util import SCALE, anon_bytes, scaled, wait_for

pytestmark = [pytest.mark.long, pytest.mark.skipif(not shutil.which("wrk"), reason="needs wrk")]

WEBSOCKETS = 1000 if SCALE == 1 else 100
RELOADS = 200 if SCALE == 1 else 30
KEY = base64.b64encode(b"0123456789abcdef")

# After the handshake every byte comes back as it is.
APP = '''
const http = require("http"), crypto = require("crypto");
const server = http.createServer((q, r) => r.end("app"));
server.on("upgrade", (q, s) => {
    const accept = crypto.createHash("sha1").update(q.headers["sec-websocket-key"]
        + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
    s.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
        + "Sec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n");
    s.on("error", () => {});
    s.pipe(s);
});
server.listen(process.env.PORT, "127.0.0.1");
'''

CONF = '''workers = 2; error_log = "error2.log"; access_log = "access-%(log)d.log"; timeouts = { lame_duck = "200ms"; };
upstreams = { app = { balance = "%(balance)s"; servers = ( "@APP@" ); };%(upstream)s };
sites = ( { listen = ( "127.0.0.1:@PORT@"%(listen)s ); root = "public"; proxy = "app";
            locations = ( { match = "/fixed"; respond = "answer %(n)d"; }%(location)s ); } );'''


def conf(n, extra):
    return CONF % {
        "n": n, "log": n % 3, "balance": ("round-robin", "least-conn")[n // 2 % 2],
        "upstream": ' other = { servers = ( "@APP@" ); };' if n % 3 == 0 else "",
        "listen": ', "127.0.0.1:%d"' % extra if n % 4 == 1 else "",
        "location": ', { match = "~ ^/re/%d"; proxy = "app"; }' % n if n % 5 else "",
    }


def websocket(w):
    c = w.connect(timeout=60)
    c.send(b"GET /ws HTTP/1.1\r\nHost: h.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + KEY + b"\r\n\r\n")
    r = c.head()
    assert r.status == 101 and r.get("sec-websocket-accept") == base64.b64encode(
        hashlib.sha1(KEY + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
    return c


def echoes(c, text):
    c.send(text)
    assert c.rd.exactly(len(text), time.monotonic() + scaled(30)) == text


@contextlib.contextmanager
def load(w, *paths):
    """wrk while the block runs; nothing may fail."""
    procs = [subprocess.Popen(["wrk", "-t", "1", "-c", "16", "-d", "1100s", "--timeout", "30s",
                               "http://127.0.0.1:%d%s" % (w.port, p)], stdout=subprocess.PIPE, text=True)
             for p in paths]
    try:
        yield
    finally:
        for p in procs:
            p.send_signal(signal.SIGINT)
        reports = [p.communicate(timeout=60)[0] for p in procs]
    for out in reports:
        assert int(re.search(r"(\d+) requests in", out).group(1)) > 100, out
        assert "Socket errors" not in out and "Non-2xx" not in out, out


def at_rest(w):
    """Bytes, when nothing is on its way: the least of what is seen in two seconds, for the log rings give their pages
    back when they are empty."""
    least = anon_bytes(w.tree())
    for _ in range(20):
        time.sleep(0.1)
        least = min(least, anon_bytes(w.tree()))
    return least


def state(w):
    """Descriptors and threads of each process, by its part."""
    return [(len(os.listdir("/proc/%d/fd" % p)), len(os.listdir("/proc/%d/task" % p))) for p in (w.pid, w.server_pid)]


def test_two_hundred_reloads_under_load_with_a_thousand_websockets(weir, node, free_port, record_property):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    app, extra = node(APP), free_port()
    w = weir(conf(0, extra), files={"public/a.txt": "hello" * 200}, APP=app.addr)
    log = os.path.join(w.dir, "error2.log")

    def said():
        with open(log, errors="replace") as f:
            return f.read()

    def reload(n):
        w.configure(conf(n, extra))
        before = len(said())
        w.send_signal(signal.SIGHUP)
        word = wait_for("the answer to a reload", 60, lambda: re.search(r"reload refused|generation \d+: .*",
                                                                        said()[before:]))
        assert word.group(0).startswith("generation"), said()[before:]

    def settled():
        # The last address to leave has left, and every loop has turned since.
        for _ in range(20):
            assert w.get("/a.txt").status == 200
        wait_for("nothing is on its way", 20, lambda: len(re.findall(r"#main: listening on 127\.0\.0\.1:%d$" % extra,
                 said(), re.M)) == len(re.findall(r"no longer listening on 127\.0\.0\.1:%d$" % extra, said(), re.M)))
        return state(w)

    sockets = [websocket(w) for _ in range(WEBSOCKETS)]
    for c in sockets:
        echoes(c, b"before")

    refused = 0

    def reload_many(count):
        nonlocal refused
        with load(w, "/a.txt", "/proxied"):
            for n in range(1, count + 1):
                reload(n)
                if n % 10 == 0:
                    echoes(sockets[n % WEBSOCKETS], b"during %d" % n)
                    w.configure("broken")
                    w.send_signal(signal.SIGHUP)
                    refused += 1
                    wait_for("a bad one is refused", 60, lambda: said().count("reload refused") == refused)

    reload_many(40)  # what it needs from then on it has
    before, memory = settled(), at_rest(w)
    reload_many(RELOADS)
    after, grown = settled(), at_rest(w)

    for i, c in enumerate(sockets):
        echoes(c, b"after %d" % i)
    record_property("memory", "%d -> %d" % (memory, grown))
    print("memory: %.0f KB, then %.0f KB" % (memory / 1024, grown / 1024))
    assert after[0] == before[0] and after[1][1] == before[1][1], "descriptors and threads: %r, then %r" % (before, after)
    assert abs(after[1][0] - before[1][0]) <= 32, "descriptors: %r, then %r" % (before, after)  # idle connections
    if SCALE == 1:
        assert grown <= memory * 1.02, "%d bytes, then %d" % (memory, grown)
    for c in sockets:
        c.close()
