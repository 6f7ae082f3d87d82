# SPDX-License-Identifier: MIT
"""The reverse proxy when things go wrong: early ends, failing servers, retries; which server is asked; slots."""
import re
import socket
import threading
import time

import pytest
from harness import util
from harness.backends import serve
from wire import Closed

ONE = """workers = 1; timeouts = { connect = "1s"; server = "1s"; send = "1s"; tunnel = "1s"; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; } );"""
POOL = """workers = 1; timeouts = { connect = "1s"; server = "1s"; };
upstreams = { u = { servers = ( %s ); %s }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "u"; } );"""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def ok(body=b"ok", *lines):
    fields = b"".join(ln + b"\r\n" for ln in lines)
    return b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (fields, len(body), body)


def chunked(*lines):
    return b"HTTP/1.1 200 OK\r\n%sTransfer-Encoding: chunked\r\n\r\n" % b"".join(ln + b"\r\n" for ln in lines)


def head(method=b"GET", path=b"/p", *lines, version=b"HTTP/1.1"):
    return b"%s %s %s\r\nHost: h.test\r\n%s\r\n" % (method, path, version, b"".join(ln + b"\r\n" for ln in lines))


def counting(script):
    """A script that knows the number of the request on its connection: script(conn, n, head)."""
    def run(conn):
        n = 0
        while True:
            n += 1
            if script(conn, n, conn.head()) is False:
                return
    return run


# --- early ends -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("size", [30 << 20, 100000])
def test_c090_an_answer_before_the_end_of_the_upload_reaches_the_client(weir, raw_backend, how, size):
    answer = b"HTTP/1.1 413 Too Big\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig"

    def script(conn):
        conn.head()
        conn.read(min(size, 65536))
        conn.send(answer)
        if how == "fin":
            conn.fin()
            time.sleep(0.3)
        # closing with unread data makes the kernel send RST
    b = raw_backend(script)
    w = weir(ONE, B=b.addr)
    for _ in range(5):
        c = w.connect(timeout=10)
        t = threading.Thread(target=lambda: c.send(head(b"POST", b"/p", b"Content-Length: %d" % size), b"x" * size))
        t.start()
        r = c.response()
        assert (r.status, r.body) == (413, b"big")
        c.close()
        t.join()


def test_c090_an_early_answer_goes_on_beside_the_upload(weir, raw_backend):
    def script(conn):
        conn.head()
        conn.send(chunked() + b"5\r\nearly\r\n")
        body = conn.read(10)
        conn.send(b"a\r\n%s\r\n0\r\n\r\n" % body)
        conn.wait_close(5)
    b = raw_backend(script)
    w = weir(ONE, B=b.addr)
    c = w.connect()
    c.send(head(b"POST", b"/p", b"Content-Length: 10") + b"01234")
    r = c.head()
    assert c.rd.until(b"early\r\n", time.monotonic() + util.scaled(5)) == b"5\r\n"
    c.send(b"56789")
    c.body(r)
    assert (r.body, r.complete) == (b"0123456789", True)


@pytest.mark.parametrize("phase, reset", [("waiting", True), ("body", True), ("body", False), ("upload", True),
                                          ("upload", False)])
def test_c092_when_the_client_leaves_the_server_is_let_go(weir, raw_backend, phase, reset):
    began, closed = threading.Event(), []

    def script(conn):
        conn.head()
        if phase == "upload":
            conn.read(500)
        if phase == "body":
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        began.set()
        if phase == "body":
            conn.sock.settimeout(5)
            try:
                while True:
                    conn.sock.sendall(b"x" * 65536)
            except socket.timeout:
                closed.append(False)
            except OSError:
                closed.append(True)
        else:
            closed.append(conn.wait_close(5))
    b = raw_backend(script)
    w = weir(ONE.replace('server = "1s"', 'server = "20s"').replace('send = "1s"', 'send = "20s"'), B=b.addr)
    c = w.connect()
    c.send(head(b"POST", b"/p", b"Content-Length: 1000") + b"x" * 500 if phase == "upload" else head())
    assert began.wait(5)
    if phase == "body":
        assert c.head().status == 200
    c.close(reset=reset)
    util.wait_for("the backend sees the end", 6, lambda: closed)
    assert closed == [True]
    w.wait_access(r'" (499|200) ')


# --- failures ---------------------------------------------------------------------------------------------------------

def test_c101_each_failure_has_its_status(weir, raw_backend, dead):
    cases = {
        "/refused": (502, "CONNECT_FAILED", None),
        "/garbage": (502, "UPSTREAM_MALFORMED", serve(b"SSH-2.0-OpenSSH\r\n\r\n", then="stall")),
        "/silent": (504, "UPSTREAM_TIMEOUT", serve(then="stall")),
        "/closed": (502, "UPSTREAM_CLOSED", serve(then="close")),
        "/reset": (502, "UPSTREAM_CLOSED", serve(then="rst")),
        "/half": (502, "UPSTREAM_CLOSED", serve(b"HTTP/1.1 200 OK\r\nContent-Le", then="close")),
        "/own503": (503, None, serve(b"HTTP/1.1 503 Mine\r\nContent-Length: 4\r\n\r\nmine", then="again")),
    }
    locations, values = [], {}
    for i, (path, (_, _, script)) in enumerate(cases.items()):
        values["A%d" % i] = raw_backend(script).addr if script else dead.addr
        locations.append('{ match = "%s"; proxy = "@A%d@"; }' % (path, i))
    w = weir("""workers = 1; timeouts = { connect = "1s"; server = "300ms"; };
        sites = ( { listen = "127.0.0.1:@PORT@"; respond = 404; locations = ( %s ); } );""" % ", ".join(locations),
             **values)
    c = w.connect()
    for path, (status, symbol, _) in cases.items():
        c.send(head(b"GET", path.encode()))
        r = c.response()  # on one connection: a failure of the server is not the client's
        assert (r.status, r.complete) == (status, True), path
        assert r.get("content-length") == str(len(r.body))
        if symbol:
            w.wait_error(r'%s.*"GET %s"' % (symbol, path))
    assert r.body == b"mine" and r.reason == b"Mine"
    c.send(head(b"GET", b"/none"))
    assert c.response().status == 404


def test_c101_a_connect_that_hangs_is_a_504(weir):
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    fill = []
    for _ in range(4):  # the backlog is full: further SYNs are dropped
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(full.getsockname())
        fill.append(s)
    w = weir(ONE.replace('connect = "1s"', 'connect = "500ms"'), B="127.0.0.1:%d" % full.getsockname()[1])
    since = time.monotonic()
    assert w.get("/x").status == 504
    assert 0.4 < time.monotonic() - since < 3 * util.SCALE
    w.wait_error("CONNECT_TIMEOUT")
    for s in fill + [full]:
        s.close()


def test_c117_c118_retries_take_each_server_once_and_a_lone_one_is_always_tried(weir, raw_backend, dead):
    tries = []

    def dies(conn):
        tries.append(conn.head())
    bad = [raw_backend(dies) for _ in range(4)]
    w = weir(POOL % ('"@A@", "@B@", "@C@", "@D@"', "retries = 2;"), **{n: b.addr for n, b in zip("ABCD", bad)})
    assert w.get("/x").status == 502
    assert len(tries) == 3
    assert sorted(b.accepted() for b in bad) == [0, 1, 1, 1]
    lone = raw_backend(serve(OK, then="again"))
    w = weir(ONE, B=dead.addr)
    for _ in range(5):
        assert w.get("/x").status == 502
    w2 = weir(ONE, B=lone.addr)
    assert w2.get("/x").status == 200


def test_retries_0_means_one_attempt(weir, backend, dead):
    b = backend()
    w = weir(POOL % ('"@DEAD@", "@B@"', "retries = 0;"), B=b.addr, DEAD=dead.addr)
    assert sorted(w.get("/x").status for _ in range(4)) == [200, 200, 502, 502]


def test_without_redispatch_the_same_server_is_asked_again(weir, raw_backend, backend):
    def script(conn):
        conn.head()
        if conn.number > 1:
            conn.send(OK)
            conn.wait_close(5)
    b, other = raw_backend(script), backend()
    w = weir(POOL % ('"@B@", "@OTHER@"', "redispatch = false;"), B=b.addr, OTHER=other.addr)
    since = time.monotonic()
    assert w.get("/x").body == b"ok"
    assert 0.9 < time.monotonic() - since < 4 * util.SCALE
    assert other.take() == []


def test_an_upload_goes_on_after_a_wait_between_two_attempts(weir, raw_backend):
    failed, got = threading.Event(), []

    def script(conn):
        conn.head()
        got.append(conn.read(5))
        if conn.number == 1:
            failed.set()
            return
        got.append(conn.read(10))
        conn.send(OK)
        conn.wait_close(5)
    b = raw_backend(script)
    w = weir(POOL % ('"@B@"', "redispatch = false;"), B=b.addr)
    c = w.connect()
    c.send(head(b"PUT", b"/p", b"Content-Length: 15") + b"aaaaa")
    assert failed.wait(5)
    w.wait_error("the same server is asked again")
    c.send(b"bbbbb")
    util.wait_for("the second attempt", 5, lambda: b.accepted() == 2)
    c.send(b"ccccc")
    assert c.response().body == b"ok"
    assert got == [b"aaaaa", b"aaaaa", b"bbbbbccccc"]


def test_the_log_names_every_server_tried(weir, backend, dead):
    b = backend()
    w = weir(POOL % ('"@DEAD@", "@B@"', ""), B=b.addr, DEAD=dead.addr)
    assert w.get("/x").status == 200
    w.wait_error("CONNECT_FAILED: another server is asked.*%s" % re.escape(dead.addr))
    b.stop()
    one, other = re.escape(dead.addr), re.escape(b.addr)
    names = 'upstream: "(%s, %s|%s, %s)"' % (one, other, other, one)
    util.wait_for("both are named", 5, lambda: w.get("/x").status == 502 and re.search(names, w.errors()))


# --- balancing --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("workers", [1, 2])
def test_round_robin_is_exact_over_all_loops(weir, backend, workers):
    bs = [backend() for _ in range(3)]
    servers = '{ address = "@A@"; weight = 3; }, "@B@", "@C@"'
    w = weir(POOL.replace("workers = 1", "workers = %d" % workers) % (servers, ""),
             **{n: b.addr for n, b in zip("ABC", bs)})
    for _ in range(50):
        assert w.get("/x").status == 200
    assert [len(b.take()) for b in bs] == [30, 10, 10]


def test_c112_slots_come_back_whatever_happens(weir, raw_backend):
    """maxconn 2 and every way a request can end, then two at once must still run."""
    both = threading.Barrier(2)

    def script(conn, n, got):
        path = got.split()[1]
        if path == b"/ok":
            conn.send(OK)
        elif path == b"/both":
            both.wait(5)
            conn.send(OK)
        elif path == b"/204":
            conn.send(b"HTTP/1.1 204 N\r\n\r\n")
        elif path == b"/cut":
            conn.send(chunked() + b"5\r\nhel")
            return False
        elif path == b"/rst":
            conn.rst()
            return False
        elif path == b"/junk":
            conn.send(b"junk\r\n\r\n")
            return False
        elif path == b"/slow":
            conn.wait_close(5)
            return False
    b = raw_backend(counting(script))
    w = weir(POOL.replace('server = "1s"', 'server = "200ms"') % ('"@B@"', "maxconn = 2;"), B=b.addr)
    for path in ("/ok", "/204", "/cut", "/rst", "/junk", "/slow", "/head") * 3:
        try:
            w.request("HEAD" if path == "/head" else "GET", path.replace("/head", "/ok"))
        except Closed:
            pass
    for path in (b"/slow", b"/cut"):
        for _ in range(3):
            c = w.connect()
            c.send(head(b"GET", path))
            c.close(reset=True)
    util.wait_for("aborts are seen", 5, lambda: len([ln for ln in w.access() if '" 499 ' in ln or "/slow" in ln]) >= 6)
    results = []
    ts = [threading.Thread(target=lambda: results.append(w.get("/both", timeout=10).status)) for _ in range(2)]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    assert results == [200, 200]


@pytest.mark.parametrize("family", ["v4", "v6", "both"])
def test_c123_localhost_is_one_server_whatever_it_listens_on(weir, family):
    families = {"v4": [socket.AF_INET], "v6": [socket.AF_INET6], "both": [socket.AF_INET, socket.AF_INET6]}[family]
    socks, port = [], util.free_port()
    for f in families:
        s = socket.socket(f)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if f == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            s.bind(("127.0.0.1" if f == socket.AF_INET else "::1", port))
        except OSError:
            pytest.skip("no IPv6 here")
        s.listen(16)
        socks.append(s)
    if family == "v6" and not any(a[0] == socket.AF_INET6 for a in socket.getaddrinfo("localhost", port)):
        pytest.skip("localhost has no IPv6 address here")

    def answer(s):
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            c.recv(65536)
            c.sendall(ok(b"ok", b"Connection: close"))
            c.close()
    for s in socks:
        threading.Thread(target=answer, args=(s,), daemon=True).start()
    w = weir(ONE, B="localhost:%d" % port)
    for _ in range(6):
        assert w.get("/x").body == b"ok"
    assert "CONNECT_FAILED" not in w.errors()
    for s in socks:
        s.shutdown(socket.SHUT_RDWR)
        s.close()


def test_a_name_that_does_not_resolve_leaves_the_rest_running(weir, backend):
    b = backend()
    w = weir("""workers = 1; sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@";
                locations = ( { match = "/gone"; proxy = "no-such-host.invalid:80"; } ); } );""", B=b.addr)
    w.wait_error("no-such-host.invalid")
    assert w.get("/x").status == 200
    assert w.get("/gone").status == 503
    w.wait_error("NO_SERVER")


def test_c128_unix_socket_backends(weir, tmp_path):
    path = str(tmp_path / "s")
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    w = weir(ONE, B="unix:" + path)
    assert w.get("/x").status == 502  # bound, nobody listens
    s.listen(0)
    waiting = []
    for _ in range(3):  # its backlog is full: EAGAIN, for which no event will come
        c = socket.socket(socket.AF_UNIX)
        c.setblocking(False)
        if c.connect_ex(path):
            break
        waiting.append(c)
    since = time.monotonic()
    assert w.get("/x").status == 504  # asked again until timeouts.connect is over
    assert time.monotonic() - since < util.scaled(2)
    for c in waiting:
        c.close()
        s.accept()[0].close()

    def answer():
        c, _ = s.accept()
        c.recv(65536)
        c.sendall(OK)
        c.close()
    t = threading.Thread(target=answer)
    t.start()
    assert w.get("/x").body == b"ok"
    t.join()
    s.close()
    (tmp_path / "s").unlink()
    assert w.get("/x").status == 502
    w.wait_error(r"CONNECT_FAILED.*No such file")
