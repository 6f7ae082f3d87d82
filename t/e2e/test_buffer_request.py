# SPDX-License-Identifier: MIT
"""buffer_request: a body is collected before a server is asked for, up to the limit; then it streams."""
import hashlib
import json
import random
import re
import threading

import pytest
from harness import util

CONF = """
workers = %d; access_log = { format = "json"; path = "stdout"; };
timeouts = { queue = "10s"; body = "%s"; };
upstreams = { u = { %s servers = ( %s ); }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "u"; buffer_request = "%s"; } );
"""
POST = b"POST /p HTTP/1.1\r\nHost: h\r\n"


def conf(size, servers='"@B@"', more="", workers=1, body="60s"):
    return CONF % (workers, body, more, servers, size)


def counts(w):
    status = json.loads(w.cli("status", "--json").stdout)
    return [(s["in_flight"], s["requests"]) for u in status["upstreams"] for s in u["servers"]]


def noise(n):
    return random.Random(n).randbytes(n)


def digest(conn, q):
    """A handler that tells what it has read."""
    body = hashlib.sha256(q.body).hexdigest().encode()
    conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    return True


# --- what it is for ---------------------------------------------------------------------------------------------------

def test_a_slow_upload_has_no_slot_until_it_is_complete(weir, backend):
    b = backend(digest)
    w = weir(conf("64k", more="maxconn = 1;"), B=b.addr)
    slow, body = w.connect(), noise(20000)
    slow.send(POST + b"Content-Length: 20000\r\n\r\n" + body[:15000])
    for _ in range(3):
        assert w.get("/other").status == 200
    assert b.targets() == ["/other"] * 3 and counts(w) == [(0, 3)] and b.nconn == 1
    slow.send(body[15000:])
    assert slow.response().body.decode() == hashlib.sha256(body).hexdigest()
    q = b.take()[-1]
    assert (q.get("content-length"), q.get("transfer-encoding")) == ("20000", None)


def test_what_is_longer_streams_from_there_on(weir, raw_backend):
    """The server has the head before the client has sent all, and the rest as it comes."""
    steps = [threading.Event() for _ in range(3)]

    def script(conn):
        conn.head()
        steps[0].set()
        got = conn.read(100000)
        steps[1].set()
        got += conn.read(20000)
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" + hashlib.sha256(got).hexdigest().encode())
    b, body = raw_backend(script), noise(120000)
    w = weir(conf("80k"), B=b.addr)
    c = w.connect()
    c.send(POST + b"Content-Length: 120000\r\n\r\n" + body[:81000])
    assert not steps[0].wait(0.2) and b.accepted() == 0
    c.send(body[81000:100000])
    assert steps[0].wait(util.scaled(5)) and steps[1].wait(util.scaled(5))
    c.send(body[100000:])
    assert c.response().body.decode() == hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 300000, 5 << 20])
def test_every_byte_arrives(weir, backend, method, size):
    b = backend(digest)
    w = weir(conf("64k" if size < 1 << 20 else "8m", workers=2), B=b.addr)
    body = noise(size)
    want = hashlib.sha256(body).hexdigest()
    c = w.connect(timeout=20)
    head = ("%s /p HTTP/1.1\r\nHost: h\r\n" % method).encode()
    c.send(head + b"Content-Length: %d\r\n\r\n" % size + body)
    assert c.response().body.decode() == want
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[i:i + 50001] for i in range(0, size, 50001)))
    c.send(head + b"Transfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n")
    assert c.response().body.decode() == want
    first, second = b.take()
    assert first.get("content-length") == str(size)
    if size < 65536 or size > 1 << 20:  # complete within the limit: now the length is known
        assert (second.get("content-length"), second.get("transfer-encoding")) == (str(size), None)
    elif size > 200000:
        assert (second.get("content-length"), second.get("transfer-encoding")) == (None, "chunked")


def test_a_request_without_a_body_waits_for_nothing(weir, backend):
    b = backend()
    w = weir(conf("1m"), B=b.addr)
    assert [w.get("/a").status, w.post("/b", b"").status, w.head("/c").status] == [200] * 3


def test_the_head_is_written_again_with_what_else_changes_it(weir, backend):
    """A chunked body that is complete: the length is named, a rewritten path stays rewritten."""
    b = backend()
    w = weir(conf("64k").replace("buffer_request", 'strip_prefix = "/app"; request_headers = { X-A = "1"; }; buffer_request'),
             B=b.addr)
    c = w.connect()
    c.send(b"POST /app/x?q HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    assert c.response().body == b"POST /x?q 5"
    q = b.take()[0]
    assert (q.all("content-length"), q.all("transfer-encoding"), q.all("x-a")) == (["5"], [], ["1"])


def test_it_is_inherited_and_taken_back(weir, raw_backend):
    seen = threading.Event()

    def script(conn):
        conn.head()
        seen.set()
        conn.read(10)
        conn.send(b"HTTP/1.1 204 No\r\n\r\n")
    b = raw_backend(script)
    w = weir("""buffer_request = "1m"; sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@";
                locations = ( { match = "/now"; proxy = "@B@"; buffer_request = 0; } ); } );""", B=b.addr)
    c = w.connect()
    c.send(POST.replace(b"/p", b"/now") + b"Content-Length: 10\r\n\r\n12345")
    assert seen.wait(util.scaled(5))
    c.send(b"67890")
    assert c.response().status == 204


def test_with_trailers_it_stays_chunked(weir, backend):
    b = backend(digest)
    w = weir(conf("64k"), B=b.addr)
    c = w.connect()
    c.send(POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n")
    assert c.response().body.decode() == hashlib.sha256(b"hello").hexdigest()
    q = b.take()[0]
    assert (q.get("transfer-encoding"), q.get("content-length")) == ("chunked", None)
    assert [(n.lower(), v) for n, v in q.trailers] == [("x-t", "1")]


# --- with others ------------------------------------------------------------------------------------------------------

def test_c075_expect_is_answered_at_once(weir, backend):
    b = backend(digest)
    w = weir(conf("64k"), B=b.addr)
    for framing, data in ((b"Content-Length: 5", b"hello"), (b"Transfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n")):
        c = w.connect()
        c.send(POST + framing + b"\r\nExpect: 100-continue\r\n\r\n")
        assert c.head().status == 100 and counts(w)[0][0] == 0
        c.send(data)
        r = c.response()
        assert (r.status, r.interim) == (200, []) and r.body.decode() == hashlib.sha256(b"hello").hexdigest()
        c.close()
    assert all(q.get("expect") is None for q in b.take())


def test_c091_limits_body_size(weir, backend):
    b = backend()
    w = weir("limits = { body_size = \"10k\"; };" + conf("64k"), B=b.addr)
    c = w.connect()
    c.send(POST + b"Content-Length: 20000\r\nExpect: 100-continue\r\n\r\n")
    assert c.response().status == 413
    c = w.connect()
    c.send(POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1000\r\n%s\r\n" % (b"x" * 4096) * 3)
    assert c.response().status == 413
    assert b.nconn == 0 and counts(w) == [(0, 0)]


def test_c092_a_client_that_leaves(weir, backend):
    b = backend()
    w = weir(conf("64k"), B=b.addr)
    for reset in (False, True):
        c = w.connect()
        c.send(POST + b"Content-Length: 20000\r\n\r\n" + b"x" * 10000)
        c.close(reset=reset)
    util.wait_for("both are logged", 5, lambda: len(w.access()) == 2)
    assert [json.loads(ln)["status"] for ln in w.access()] == [499, 499]
    assert b.nconn == 0 and counts(w) == [(0, 0)]


def test_a_client_that_stalls(weir, backend):
    b = backend()
    w = weir("log_level = \"info\";" + conf("64k", body="300ms"), B=b.addr)
    c = w.connect()
    c.send(POST + b"Content-Length: 20000\r\n\r\n" + b"x" * 10000)
    r = c.response()
    assert r.status == 408 and b.nconn == 0
    w.wait_error("CLIENT_BODY_TIMEOUT.* while collecting the request's body")


def test_it_waits_for_a_slot_with_what_it_has(weir, backend):
    gate = threading.Event()

    def handler(conn, q):
        if q.target == "/slow":
            gate.wait(util.scaled(10))
        return digest(conn, q)
    b = backend(handler)
    w = weir(conf("8k", more="maxconn = 1;"), B=b.addr)
    slow, whole, part = w.connect(), w.connect(), w.connect()
    slow.send(b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
    util.wait_for("the server is busy", 5, lambda: b.targets() == ["/slow"])
    whole.send(POST + b"Content-Length: 5000\r\n\r\n" + noise(5000))
    part.send(POST + b"Content-Length: 50000\r\n\r\n" + noise(50000)[:9000])
    util.wait_for("both wait", 5, lambda: json.loads(w.cli("status", "--json").stdout)["upstreams"][0]["waiting"] == 2)
    gate.set()
    assert whole.response().body.decode() == hashlib.sha256(noise(5000)).hexdigest()
    part.send(noise(50000)[9000:])
    assert part.response().body.decode() == hashlib.sha256(noise(50000)).hexdigest()


# --- again elsewhere --------------------------------------------------------------------------------------------------

def test_a_post_whose_head_went_nowhere_goes_elsewhere(weir, backend, dead):
    b = backend(digest)
    w = weir(conf("1m", '"@DEAD@", "@B@"'), DEAD=dead.addr, B=b.addr)
    for size in (100, 200000, 3 << 20):  # the last one is not complete when it is sent on
        for _ in range(2):
            r = w.post("/p", noise(size), timeout=20)
            assert (r.status, r.body.decode()) == (200, hashlib.sha256(noise(size)).hexdigest())


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_c070_a_server_that_dies_with_the_body(weir, raw_backend, backend, method):
    """What is idempotent goes to the other server with all of its body, what is not goes nowhere."""
    def dies(conn):
        n = int(re.search(rb"(?i)content-length: (\d+)", conn.head()).group(1))
        conn.read(n)
        conn.rst()
    a, b, body = raw_backend(dies), backend(digest), noise(500000)
    w = weir(conf("1m", '"@A@", { address = "@B@"; backup = true; }'), A=a.addr, B=b.addr)
    r = w.request(method, "/p", body=body, timeout=20)
    assert a.accepted() == 1
    if method == "PUT":
        assert (r.status, r.body.decode()) == (200, hashlib.sha256(body).hexdigest())
    else:
        assert r.status == 502 and b.targets() == []


def test_c090_an_answer_before_all_was_sent(weir, raw_backend):
    def script(conn):
        conn.head()
        conn.send(b"HTTP/1.1 413 Too Much\r\nConnection: close\r\nContent-Length: 4\r\n\r\nno!\n")
        conn.wait_close(5)
    w = weir(conf("16m"), B=raw_backend(script).addr)
    r = w.post("/p", noise(12 << 20), timeout=20)
    assert (r.status, r.body) == (413, b"no!\n")
    assert w.get("/p").status == 413 and counts(w) == [(0, 2)]


def test_the_connection_lives_on_when_no_server_took_what_came(weir, backend):
    """The answer is given while the body is held back; what still comes of it is dropped, and the next one is read."""
    gate = threading.Event()

    def handler(conn, q):
        if q.target == "/slow":
            gate.wait(util.scaled(10))
        return digest(conn, q)
    b = backend(handler)
    w = weir(conf("8k", more="maxconn = 1;").replace('queue = "10s"', 'queue = "200ms"'), B=b.addr)
    slow, c = w.connect(), w.connect()
    slow.send(b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
    util.wait_for("the server is busy", 5, lambda: b.targets() == ["/slow"])
    c.send(POST + b"Content-Length: 40000\r\n\r\n" + b"x" * 10000)
    assert c.response().status == 503
    gate.set()
    assert slow.response().status == 200
    c.send(b"x" * 30000 + b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
    assert c.response().status == 200


# --- how much memory --------------------------------------------------------------------------------------------------

def peak_kb(w):
    with open("/proc/%d/status" % w.server_pid) as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))


def upload(w, size, piece):
    """Sends that much and returns its digest and the answer."""
    sha, c = hashlib.sha256(), w.connect(timeout=60)
    c.send(POST + b"Content-Length: %d\r\n\r\n" % size)
    for _ in range(size // len(piece)):
        c.send(piece)
        sha.update(piece)
    r = c.response()
    c.close()
    return sha.hexdigest(), r


def sink(conn):
    """Reads what it is sent and answers its digest; /N sends N bytes."""
    head = conn.head()
    n, sha = re.search(rb"(?i)content-length: (\d+)", head), hashlib.sha256()
    left = int(n.group(1)) if n else 0
    while left > 0:
        got, conn.rd.buf = conn.rd.buf, b""
        sha.update(got)
        left -= len(got)
        if left > 0:
            conn.rd.buf = conn.sock.recv(1 << 20)
            assert conn.rd.buf
    conn.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 64\r\n\r\n" + sha.hexdigest().encode())


LONG_SIZES = pytest.param(5 << 30, marks=pytest.mark.long)


@pytest.mark.parametrize("buffer", ["0", "1m"])
@pytest.mark.parametrize("size", [200 << 20, LONG_SIZES])
def test_an_upload_of_any_size_takes_constant_memory(weir, raw_backend, buffer, size):
    w = weir(conf(buffer) if buffer != "0" else conf("8k").replace('buffer_request = "8k";', ""), B=raw_backend(sink).addr)
    upload(w, 4 << 20, noise(1 << 20))
    before = peak_kb(w)
    sha, r = upload(w, size, noise(1 << 20))
    assert r.body.decode() == sha
    assert peak_kb(w) - before < 4096 * util.SCALE, (before, peak_kb(w))


@pytest.mark.parametrize("size", [200 << 20, LONG_SIZES])
def test_a_download_of_any_size_takes_constant_memory(weir, raw_backend, size):
    piece = noise(1 << 20)

    def source(conn):
        n = int(conn.head().split()[1][1:])
        conn.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % n)
        for _ in range(n // len(piece)):
            conn.send(piece)
    w = weir(conf("1m"), B=raw_backend(source).addr)

    def fetch(n):
        c, sha = w.connect(timeout=60), hashlib.sha256()
        c.send(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % n)
        assert c.head().status == 200
        left, got = n, c.rd.buf
        while True:
            sha.update(got)
            left -= len(got)
            if left == 0:
                return sha.hexdigest()
            got = c.s.recv(1 << 20)
            assert got
    fetch(4 << 20)
    before, want = peak_kb(w), hashlib.sha256()
    got = fetch(size)
    for _ in range(size // len(piece)):
        want.update(piece)
    assert got == want.hexdigest() and peak_kb(w) - before < 4096 * util.SCALE, (before, peak_kb(w))


def test_many_slow_uploads_hold_no_more_than_that_each(weir, backend):
    """limits.clients times buffer_request (and one read) bounds the whole; what has been sent on is given back."""
    b, n = backend(digest), 40
    w = weir("limits = { clients = 100; };" + conf("256k"), B=b.addr)
    before, clients = peak_kb(w), [w.connect(timeout=20) for _ in range(n)]
    for c in clients:
        c.send(POST + b"Content-Length: 250000\r\n\r\n" + noise(249999))
    util.wait_for("weir has it all", 10, lambda: json.loads(w.cli("status", "--json").stdout)["bytes_in"] >= n * 249999)
    assert b.nconn == 0
    if util.SCALE == 1:  # sanitizers have memory of their own
        assert peak_kb(w) - before < n * (256 + 64) + 4096
    for c in clients:
        c.send(b"x")
    assert {c.response().status for c in clients} == {200}
