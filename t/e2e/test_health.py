# SPDX-License-Identifier: MIT
"""Which servers get requests: failures, checks, an operator's word, backups (C116-C118, C121, C124)."""
import json
import os
import signal
import threading
import time

import pytest
import test_tunnel
from harness import util
from harness.backends import Recorder, serve

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CONF = """
workers = %d;
access_log = { path = "stdout"; format = "$status $upstream_addr"; };
timeouts = { server = "500ms"; connect = "1s"; };
upstreams = { u = { servers = ( %s ); %s }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "u"; } );
"""


def servers(w):
    status = json.loads(w.cli("status", "--json").stdout)
    return {s["address"]: s for u in status["upstreams"] for s in u["servers"]}


def state(w, addr):
    return servers(w)[addr]["state"]


def wait_state(w, addr, what, seconds=5):
    util.wait_for("%s is %s" % (addr, what), seconds, lambda: state(w, addr) == what)


def firsts(w, since=0):
    """The server each request was sent to first."""
    return [ln.split()[1].rstrip(",") for ln in w.access()[since:]]


def many(w, n, status=200):
    since = len(w.access())
    for _ in range(n):
        assert w.get("/x").status == status
    util.wait_for("the log", 5, lambda: len(w.access()) >= since + n)
    return firsts(w, since)


# --- failures of requests ---------------------------------------------------------------------------------------------

def test_a_server_that_keeps_failing_is_left_alone_and_comes_back(weir, backend, free_port):
    b, port = backend(), free_port()
    bad = "127.0.0.1:%d" % port
    w = weir(CONF % (2, '"@A@", "@B@"', ""), A=bad, B=b.addr)
    assert bad in many(w, 14)
    line = w.wait_error(r"server 127.0.0.1:%d gets no requests for 5 s: CONNECT_FAILED \(Connection refused\), "
                        r"5 of 5 attempts failed" % port)
    assert len([1 for ln in w.errors().split("\n") if "gets no requests" in ln]) == 1 and line
    s = servers(w)
    assert s[bad]["state"] == "ejected" and "CONNECT_FAILED" in s[bad]["cause"] and s[b.addr]["state"] == "up"
    assert bad not in many(w, 6)
    back = Recorder(port=port)
    try:
        util.wait_for("it is tried again", 9, lambda: many(w, 2) and back.targets())
        w.wait_error("answers again")
        assert state(w, bad) == "up"
        assert set(many(w, 4)) == {bad, b.addr}
    finally:
        back.stop()


def test_c118_a_lone_server_is_always_tried(weir, free_port):
    port = free_port()
    addr = "127.0.0.1:%d" % port
    w = weir(CONF % (1, '"@A@"', ""), A=addr)
    many(w, 12, 502)
    assert state(w, addr) == "up" and "gets no requests" not in w.errors()
    b = Recorder(port=port)
    try:
        assert w.get("/x").status == 200
    finally:
        b.stop()


def test_c118_the_last_usable_half_is_never_ejected(weir, dead, free_port):
    port = free_port()
    other = "127.0.0.1:%d" % port
    w = weir(CONF % (1, '"@A@", "@B@"', ""), A=dead.addr, B=other)
    many(w, 12, 502)
    assert sorted(s["state"] for s in servers(w).values()) == ["ejected", "up"]
    b = Recorder(port=port)
    try:
        many(w, 4)
    finally:
        b.stop()


def test_c117_both_servers_of_a_redispatched_request_have_failed(weir, raw_backend, dead):
    cut = raw_backend(serve(then="close"))
    w = weir(CONF % (1, '"@A@", "@B@"', ""), A=dead.addr, B=cut.addr)
    assert w.get("/x").status == 502
    assert [s["failures"] for s in servers(w).values()] == [1, 1]


def test_c117_what_the_server_did_not_do_does_not_count(weir, raw_backend):
    def script(conn):
        while True:
            path = conn.head().split()[1]
            if path == b"/slow":
                return conn.wait_close(20)
            conn.send(b"HTTP/1.1 %s X\r\nContent-Length: 0\r\n\r\n" % path[1:])
    b = raw_backend(script)
    conf = CONF % (1, '"@A@"', 'maxconn = 1; queue_size = 0;') + 'limits = { body_size = "10b"; };'
    w = weir(conf.replace('server = "500ms"', 'server = "4s"'), A=b.addr)
    for status in (404, 500, 503, 400):
        assert w.get("/%d" % status).status == status
    assert w.post("/413", b"x" * 20).status == 413
    c = w.connect()
    c.send(b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
    util.wait_for("it is asked", 5, lambda: servers(w)[b.addr]["in_flight"] == 1)
    assert w.get("/200").status == 503  # the queue is full
    c.close(reset=True)
    util.wait_for("the abort is seen", 5, lambda: servers(w)[b.addr]["in_flight"] == 0)
    assert servers(w)[b.addr]["failures"] == 0
    assert w.get("/slow", timeout=10).status == 504
    assert servers(w)[b.addr]["failures"] == 1


# --- checks -----------------------------------------------------------------------------------------------------------

class Checked:
    """A backend whose /health says .status; keeps the heads of the checks."""

    def __init__(self):
        self.status, self.heads, self.answer = 200, [], None

    def __call__(self, conn):
        while True:
            head = conn.head()
            if head.split()[1] != b"/health":
                conn.send(OK)
                continue
            self.heads.append(head)
            if self.answer is not None:
                return conn.send(self.answer)
            conn.send(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % self.status)


HEALTH = 'health = { path = "/health"; interval = "50ms"; timeout = "300ms"; rise = 2; fall = 2; };'


def test_http_checks_take_a_server_out_and_back(weir, raw_backend, backend):
    checked, good = Checked(), Checked()
    a, b = raw_backend(checked), raw_backend(good)
    w = weir(CONF % (2, '"@A@", "@B@"', HEALTH), A=a.addr, B=b.addr)
    util.wait_for("checks come", 5, lambda: len(checked.heads) > 3)
    head = checked.heads[0]
    assert head.startswith(b"GET /health HTTP/1.1\r\n")
    assert b"\r\nHost: %s" % a.addr.encode() in head and b"\r\nConnection: close" in head
    checked.status = 500
    wait_state(w, a.addr, "down")
    assert "status 500, expected 200-399" in servers(w)[a.addr]["cause"]
    w.wait_error(r"upstream u: server %s is down: 2 failed checks in a row, the last one: status 500" % a.addr)
    assert set(many(w, 6)) == {b.addr}
    checked.status = 302
    wait_state(w, a.addr, "up")
    w.wait_error(r"upstream u: server %s is up: 2 good checks in a row" % a.addr)
    assert set(many(w, 6)) == {a.addr, b.addr}
    assert len([1 for ln in w.errors().split("\n") if " is down" in ln or " is up" in ln]) == 2


@pytest.mark.parametrize("answer,is_good", [
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", True),
    (b"HTTP/1.0 200 OK\r\n\r\nhello", True),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 10000000, True),
    (b"HTTP/1.1 301 M\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", True),
    (b"HTTP/1.1 103 E\r\n\r\nHTTP/1.1 204 N\r\n\r\n", True),
    (b"HTTP/1.1 404 N\r\nContent-Length: 0\r\n\r\n", False),
    (b"junk\r\n\r\n", False),
    (b"", False),
], ids=["chunked", "http/1.0", "large", "301", "interim", "404", "junk", "nothing"])
def test_c121_what_a_check_takes_for_an_answer(weir, raw_backend, backend, answer, is_good):
    checked = Checked()
    checked.answer = answer
    a = raw_backend(checked)
    w = weir(CONF % (1, '"@A@", "@B@"', HEALTH), A=a.addr, B=backend().addr)
    util.wait_for("several checks", 5, lambda: len(checked.heads) > 5)
    if is_good:
        assert state(w, a.addr) == "up"
    else:
        wait_state(w, a.addr, "down")


def test_tcp_checks_and_no_server_at_all(weir, free_port):
    port = free_port()
    addr = "127.0.0.1:%d" % port
    w = weir(CONF % (1, '"@A@"', 'health = { interval = "50ms"; };'), A=addr)
    wait_state(w, addr, "down")
    assert w.get("/x").status == 503
    w.wait_error("NO_SERVER")
    b = Recorder(port=port)
    try:
        wait_state(w, addr, "up")
        assert w.get("/x").status == 200
    finally:
        b.stop()


def test_checks_change_with_a_reload_and_are_made_once_for_all_loops(weir, raw_backend):
    checked = Checked()
    a = raw_backend(checked)
    conf = CONF % (3, '"@A@"', "%s")
    w = weir(conf % HEALTH.replace("50ms", "400ms"), A=a.addr)
    time.sleep(2)
    assert len(checked.heads) <= 7
    checked.status = 500
    wait_state(w, a.addr, "down")
    w.reload(conf % "")
    wait_state(w, a.addr, "up")
    n = len(checked.heads)
    time.sleep(1)
    assert len(checked.heads) == n


def test_checks_of_many_servers_spread(weir, raw_backend):
    """Those of 60 servers that begin together are soon all over the interval."""
    at = []

    def script(conn):
        conn.head()
        at.append(time.monotonic())
        conn.send(OK)
    backends = [raw_backend(script) for _ in range(60)]
    w = weir(CONF % (1, ", ".join('"%s"' % b.addr for b in backends), 'health = { path = "/"; interval = "500ms"; };'))
    util.wait_for("two rounds", 5, lambda: len(at) >= 120)
    second = sorted(at)[60:]
    assert second[-1] - second[0] > 0.3
    assert all(s["state"] == "up" for s in servers(w).values())


def test_a_check_that_outlasts_reloads_comes_to_its_end(weir, raw_backend, backend):
    a = raw_backend(lambda conn: conn.wait_close(20))
    conf = CONF % (1, '"@A@", "@B@"', 'health = { path = "/h"; interval = "100ms"; timeout = "600ms"; fall = 1; };')
    w = weir(conf, A=a.addr, B=backend().addr)
    for n in range(40):
        if state(w, a.addr) == "down":
            break
        w.reload(conf + "# %d" % n)
        time.sleep(0.1)
    assert state(w, a.addr) == "down" and n > 0


@pytest.mark.parametrize("version,header", [("v1", b"PROXY UNKNOWN\r\n"), ("v2", b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0")])
def test_a_tcp_check_begins_with_a_proxy_header_as_requests_do(weir, raw_backend, version, header):
    """What reads one may log, or even ban, a connection without; the connection is weir's own."""
    seen = []

    def script(conn):
        assert conn.wait_close(5)
        seen.append(conn.received)
    a = raw_backend(script)
    w = weir(CONF % (1, '"@A@"', 'proxy_protocol = "%s"; health = { interval = "50ms"; fall = 1; };' % version), A=a.addr)
    util.wait_for("checks come", 5, lambda: len(seen) > 2)
    assert set(seen) == {header} and state(w, a.addr) == "up"
    a.close()
    wait_state(w, a.addr, "down")


def test_c116_a_health_down_cuts_no_answer(weir, raw_backend, backend):
    go, checked = threading.Event(), Checked()

    def script(conn):
        if b"/health" in conn.head():
            conn.send(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % checked.status)
            return
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        go.wait(10)
        conn.send(b"cd")
    a = raw_backend(script)
    w = weir((CONF % (1, '"@A@"', HEALTH)).replace('server = "500ms"', 'server = "20s"'), A=a.addr)
    c = w.connect(timeout=10)
    c.send(b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
    util.wait_for("it runs", 5, lambda: servers(w)[a.addr]["in_flight"] == 1)
    checked.status = 500
    wait_state(w, a.addr, "down")
    go.set()
    assert c.response().body == b"abcd"


# --- an operator's word -----------------------------------------------------------------------------------------------

def order(w, *words):
    return w.cli("server", *words)


def test_weir_server(weir, backend):
    a, b = backend(), backend()
    w = weir(CONF % (2, '"@A@", "@B@"', ""), A=a.addr, B=b.addr)
    for word, is_now in (("drain", "draining"), ("down", "down")):
        assert order(w, "u/" + a.addr, word).returncode == 0
        assert state(w, a.addr) == is_now and servers(w)[a.addr]["cause"] == "an operator said so"
        assert set(many(w, 4)) == {b.addr}
        w.reload()
        assert state(w, a.addr) == is_now
        assert order(w, "u/" + a.addr, "up").returncode == 0
        assert state(w, a.addr) == "up" and set(many(w, 4)) == {a.addr, b.addr}
    assert order(w, "u/" + a.addr, "weight", "3").returncode == 0
    got = many(w, 8)
    assert got.count(a.addr) == 6 and servers(w)[a.addr]["weight"] == 3
    w.reload()
    assert servers(w)[a.addr]["weight"] == 3
    w.reload((CONF % (2, '{ address = "@A@"; weight = 2; }, "@B@"', "")))
    assert servers(w)[a.addr]["weight"] == 2
    for words in (("u/nothing", "up"), ("u/" + a.addr, "sideways"), ("u/" + a.addr, "weight", "x"), ("x", "up")):
        done = order(w, *words)
        assert done.returncode == 1 and "expected" in done.stderr
    assert order(w, "u/" + a.addr).returncode == 2


def test_a_word_outlives_a_crash_and_an_upgrade(weir, backend):
    """Or a crash sends requests to what is down for maintenance."""
    a, b, c = backend(), backend(), backend()
    conf = CONF % (2, '"@A@", "@B@", "@C@"', "%s")
    w = weir(conf % "", A=a.addr, B=b.addr, C=c.addr)
    w.wait_error("generation 1: ")
    for words in ((a.addr, "down"), (b.addr, "drain"), (c.addr, "weight", "7")):
        assert order(w, "u/" + words[0], *words[1:]).returncode == 0
    now = [("down", 1), ("draining", 1), ("up", 7)]

    def said():
        try:
            return [(s["state"], s["weight"]) for s in servers(w).values()]
        except ValueError:
            return None  # no server just now
    dead = w.server_pid
    os.kill(dead, signal.SIGKILL)
    w.wait_error("server %d was killed by SIGKILL; a new one starts" % dead)
    util.wait_for("a new one serves", 5, lambda: said() == now)
    assert set(many(w, 4)) == {c.addr}
    assert order(w, "u/" + a.addr, "up").returncode == 0
    w.reload(conf % "" + "# again\n")
    w.send_signal(signal.SIGUSR2)
    w.wait_error("has taken over from", 15)
    util.wait_for("the new one says the same", 5, lambda: said() == [("up", 1)] + now[1:])
    w.configure((conf % "").replace('"@C@"', '{ address = "@C@"; weight = 2; }'))
    assert w.cli("reload").returncode == 0
    dead = w.server_pid
    os.kill(dead, signal.SIGKILL)
    w.wait_error("server %d was killed by SIGKILL; a new one starts" % dead)
    util.wait_for("what the configuration has overruled is forgotten", 5,
                  lambda: said() == [("up", 1), ("draining", 1), ("up", 2)])


def test_a_word_ends_with_the_server_it_was_said_of(weir, backend):
    """A connection that is still kept must not bring it back with the server."""
    a, b = backend(), backend()
    conf = CONF % (1, "%s", "")
    w = weir(conf % '"@A@", "@B@"', A=a.addr, B=b.addr)
    many(w, 4)
    for words in (("down",), ("weight", "7")):
        assert order(w, "u/" + a.addr, *words).returncode == 0
    w.reload(conf % '"@B@"')
    w.reload(conf % '"@A@", "@B@"')
    s = servers(w)[a.addr]
    assert (s["state"], s["weight"]) == ("up", 1) and set(many(w, 4)) == {a.addr, b.addr}


def test_c124_backups_serve_while_no_primary_can(weir, backend):
    a, b, c = backend(), backend(), backend()
    w = weir(CONF % (1, '"@A@", "@B@", { address = "@C@"; backup = true; }', ""), A=a.addr, B=b.addr, C=c.addr)
    order(w, "u/" + a.addr, "down")
    assert set(many(w, 4)) == {b.addr}
    order(w, "u/" + b.addr, "down")
    assert set(many(w, 4)) == {c.addr}
    order(w, "u/" + a.addr, "up")
    assert set(many(w, 4)) == {a.addr}


def test_c124_a_full_primary_is_not_down(weir, raw_backend, backend):
    go = threading.Event()

    def script(conn):
        while True:
            conn.head()
            go.wait(10)
            conn.send(OK)
    a, b = raw_backend(script), backend()
    conf = CONF % (1, '{ address = "@A@"; maxconn = 1; }, { address = "@B@"; backup = true; }', "")
    w = weir(conf.replace('server = "500ms"', 'server = "20s"'), A=a.addr, B=b.addr)
    clients = [w.connect(timeout=10) for _ in range(2)]
    for c in clients:
        c.send(b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
    util.wait_for("one runs and one waits", 5, lambda: json.loads(
        w.cli("status", "--json").stdout)["upstreams"][0]["waiting"] == 1)
    go.set()
    assert [c.response().status for c in clients] == [200, 200] and b.targets() == []


def test_configured_drain(weir, backend):
    a, b = backend(), backend()
    w = weir(CONF % (1, '{ address = "@A@"; drain = true; }, "@B@"', ""), A=a.addr, B=b.addr)
    assert set(many(w, 4)) == {b.addr} and state(w, a.addr) == "draining"


def test_max_tunnels(weir, raw_backend):
    """As many as that, then the other server; then none, at once; and again when one has ended."""
    a, b = raw_backend(test_tunnel.echo), raw_backend(test_tunnel.echo)
    w = weir(CONF % (2, '"@A@", "@B@"', "max_tunnels = 1;"), A=a.addr, B=b.addr)
    open_ones = [test_tunnel.opened(w) for _ in range(2)]
    assert [s["tunnels"] for s in servers(w).values()] == [1, 1]
    c = w.connect()
    c.send(test_tunnel.ask())
    assert c.response().status == 503
    open_ones[0].close()
    util.wait_for("it has ended", 5, lambda: sum(s["tunnels"] for s in servers(w).values()) == 1)
    test_tunnel.opened(w).close()


def test_a_handshake_that_comes_too_late_for_max_tunnels(weir, raw_backend):
    """Both were under way when the last place was taken: whoever is second gets an error, and nothing of the 101."""
    both = threading.Barrier(2)

    def script(conn):
        conn.head()
        both.wait(5)
        conn.send(test_tunnel.switch(b"Set-Cookie: a=b"))
        conn.wait_close(5)
    w = weir(CONF % (1, '"@A@"', "max_tunnels = 1;"), A=raw_backend(script).addr)
    clients = [w.connect() for _ in range(2)]
    for c in clients:
        c.send(test_tunnel.ask())
    got = {r.status: r for r in [c.response() for c in clients]}
    assert sorted(got) == [101, 503] and got[503].reason == b"Service Unavailable"
    assert not (got[503].has("upgrade") or got[503].has("set-cookie") or got[503].has("sec-websocket-accept"))
