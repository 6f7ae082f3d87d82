# SPDX-License-Identifier: MIT
"""Requests that wait for a slot: order, limits, timeouts, those who leave, servers not there yet (C113-C115)."""
import json
import socket
import tempfile
import threading
import time

import pytest
from harness import backends, util

CONF = """
workers = %d;
log_level = "info";
access_log = { format = "json"; path = "stdout"; };
timeouts = { queue = "%s"; };
upstreams = { u = { servers = ( "@B@" ); %s }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "u"; } );
"""


class Gate:
    """A backend's handler: records how many requests it has at once; those to /slow… wait until they are let go."""

    def __init__(self):
        self.lock, self.now, self.most, self.started = threading.Lock(), 0, 0, []
        self.open = threading.Semaphore(0)

    def __call__(self, conn, q):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.started.append(q.target)
        if q.target == "/x":
            time.sleep(0.005)
        elif q.target.startswith("/slow"):
            self.open.acquire(timeout=util.scaled(20))
        with self.lock:
            self.now -= 1
        return None


def ask(w, path):
    c = w.connect(timeout=20)
    c.send(b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % path.encode())
    return c


def waiting(w):
    status = json.loads(w.cli("status", "--json").stdout)
    return sum(u["waiting"] for u in status["upstreams"])


def in_flight(w):
    status = json.loads(w.cli("status", "--json").stdout)
    return sum(s["in_flight"] for u in status["upstreams"] for s in u["servers"])


def test_c114_first_come_first_served_and_a_complete_503_when_it_takes_too_long(weir, backend):
    gate = Gate()
    w = weir(CONF % (1, "%dms" % (1000 * util.SCALE), "maxconn = 1;"), B=backend(gate).addr)
    first = ask(w, "/slow/1")
    util.wait_for("the backend is busy", 5, lambda: gate.started)
    others = []
    for i in range(2, 5):
        others.append(ask(w, "/slow/%d" % i))
        util.wait_for("it waits", 5, lambda: waiting(w) == i - 1)
    gate.open.release()
    assert first.response().status == 200
    util.wait_for("the next is served at once", 0.5, lambda: gate.started == ["/slow/1", "/slow/2"])
    for c in others[1:]:
        r = c.response()
        assert r.status == 503 and r.complete and r.body and r.get("content-length") and r.get("retry-after")
        c.send(b"GET /again HTTP/1.1\r\nHost: h\r\n\r\n")  # the connection is as good as before
    w.wait_error("QUEUE_TIMEOUT: no server became free within timeouts.queue while waiting for a free slot")
    gate.open.release()
    assert others[0].response().status == 200
    assert [c.response().status for c in others[1:]] == [200, 200]
    assert gate.most == 1 and not {"/slow/3", "/slow/4"} & set(gate.started)
    line = json.loads(w.wait_access('"uri":"/slow/3"'))
    assert line["failure"] == "QUEUE_TIMEOUT" and 0.8 < float(line["upstream_queue_time"]) < util.scaled(3)
    assert json.loads(w.wait_access('"uri":"/slow/1"'))["upstream_queue_time"] is None


def test_c114_a_full_queue_is_said_at_once(weir, backend):
    gate = Gate()
    w = weir(CONF % (1, "20s", "maxconn = 1; queue_size = 1;"), B=backend(gate).addr)
    first = ask(w, "/slow/1")
    util.wait_for("the backend is busy", 5, lambda: gate.started)
    second = ask(w, "/slow/2")
    util.wait_for("it waits", 5, lambda: waiting(w) == 1)
    before = time.monotonic()
    r = w.get("/3")
    assert r.status == 503 and r.get("retry-after") and time.monotonic() - before < util.scaled(1)
    w.wait_error("QUEUE_FULL")
    gate.open.release()
    gate.open.release()
    assert first.response().status == second.response().status == 200


def test_queue_size_0_means_that_nobody_waits(weir, backend):
    gate = Gate()
    w = weir(CONF % (1, "20s", "maxconn = 1; queue_size = 0;"), B=backend(gate).addr)
    assert w.get("/1").status == 200
    first = ask(w, "/slow/1")
    util.wait_for("the backend is busy", 5, lambda: "/slow/1" in gate.started)
    assert w.get("/2").status == 503
    gate.open.release()
    assert first.response().status == 200 and w.get("/3").status == 200


def test_c115_who_leaves_while_queued_is_passed_over(weir, backend):
    gate = Gate()
    w = weir(CONF % (2, "20s", "maxconn = 1;"), B=backend(gate).addr)
    first = ask(w, "/slow/1")
    util.wait_for("the backend is busy", 5, lambda: gate.started)
    queue = []
    for i in range(2, 7):
        queue.append(ask(w, "/q/%d" % i))
        util.wait_for("it waits", 5, lambda: waiting(w) == i - 1)
    for i in (1, 2):
        queue[i].close(reset=True)
    util.wait_for("their entries are gone at once", 5, lambda: waiting(w) == 3)
    assert json.loads(w.wait_access('"uri":"/q/3"'))["status"] == 499
    gate.open.release()
    assert first.response().status == 200
    assert [queue[i].response().status for i in (0, 3, 4)] == [200, 200, 200]
    assert gate.started == ["/slow/1", "/q/2", "/q/5", "/q/6"]


def test_a_body_waits_unread(weir, backend):
    gate = Gate()
    w = weir(CONF % (1, "20s", "maxconn = 1;"), B=backend(gate).addr)
    first = ask(w, "/slow/1")
    util.wait_for("the backend is busy", 5, lambda: gate.started)
    c = w.connect(timeout=20)
    c.send(b"POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    util.wait_for("it waits", 5, lambda: waiting(w) == 1)
    assert not c.at_eof(0.2) and not c.rd.buf  # no 100 Continue yet
    gate.open.release()
    assert first.response().status == 200
    c.send(b"hello")
    assert c.response().body == b"POST /2 5"


def test_c113_maxconn_holds_over_loops_reloads_and_changes(weir, backend):
    gate = Gate()
    conf = CONF % (2, "20s", "maxconn = %d; queue_size = 10000;")
    w = weir(conf % 5, B=backend(gate).addr)
    results, stop = [], time.monotonic() + util.scaled(2)

    def client():
        c = w.connect(timeout=20)
        while time.monotonic() < stop:
            c.send(b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
            results.append(c.response().status)
        c.close()
    ts = [threading.Thread(target=client) for _ in range(40)]
    for t in ts:
        t.start()
    w.reload(conf % 3)
    time.sleep(0.2)  # what began under 5 may still run
    with gate.lock:
        first, gate.most = gate.most, 0
    w.reload(conf % 3 + "# again\n")
    for t in ts:
        t.join()
    assert set(results) == {200} and len(results) > 100
    assert first <= 5 and 1 < gate.most <= 3
    util.wait_for("every slot is free", 5, lambda: in_flight(w) == 0 and waiting(w) == 0)


@pytest.mark.threads
def test_c113_maxconn_holds_while_servers_come_and_go(weir, backend):
    """Two servers that go down and up and change their weight all the time: never more at once than they may have."""
    gates = [Gate(), Gate()]
    a, b = (backend(g) for g in gates)
    w = weir(CONF.replace('"@B@"', '"@A@", "@B@"') % (2, "20s", "maxconn = 4; queue_size = 10000;"), A=a.addr, B=b.addr)
    results, stop = [], threading.Event()

    def client():
        c = w.connect(timeout=20)
        while not stop.is_set():
            c.send(b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
            results.append(c.response().status)
        c.close()
    ts = [threading.Thread(target=client) for _ in range(40)]
    for t in ts:
        t.start()
    for i in range(8):
        for word in (("down",), ("up",), ("weight", str(1 + i % 3)), ("drain",), ("up",)):
            assert w.cli("server", "u/" + (a, b)[i % 2].addr, *word).returncode == 0
    stop.set()
    for t in ts:
        t.join()
    assert set(results) == {200} and len(results) > 100
    assert all(1 < g.most <= 4 for g in gates), [g.most for g in gates]
    util.wait_for("every slot is free", 5, lambda: in_flight(w) == 0 and waiting(w) == 0)


def test_more_slots_by_a_reload_are_handed_out(weir, backend):
    gate = Gate()
    conf = CONF % (2, "20s", "maxconn = %d;")
    w = weir(conf % 1, B=backend(gate).addr)
    clients = [ask(w, "/slow/%d" % i) for i in range(3)]
    util.wait_for("two wait", 5, lambda: waiting(w) == 2)
    w.reload(conf % 3)
    util.wait_for("all are served", 5, lambda: len(gate.started) == 3)
    for _ in clients:
        gate.open.release()
    assert [c.response().status for c in clients] == [200] * 3


@pytest.mark.threads
def test_who_waits_is_told_at_once_when_the_last_server_goes(weir, backend):
    gate = Gate()
    a = backend(gate)
    w = weir(CONF % (2, "20s", "maxconn = 1;"), B=a.addr)
    first = ask(w, "/slow/1")
    util.wait_for("the backend is busy", 5, lambda: gate.started)
    others = [ask(w, "/x/%d" % i) for i in range(5)]
    util.wait_for("five wait", 5, lambda: waiting(w) == 5)
    before = time.monotonic()
    assert w.cli("server", "u/" + a.addr, "down").returncode == 0
    for c in others:
        r = c.response()
        assert r.status == 503 and r.complete and r.get("retry-after")
    assert time.monotonic() - before < util.scaled(3) and waiting(w) == 0
    w.wait_error("NO_SERVER")
    gate.open.release()
    assert first.response().status == 200  # it runs on


def test_with_hold_who_waits_goes_on_waiting_when_the_last_server_goes(weir, backend):
    gate = Gate()
    a = backend(gate)
    w = weir(CONF % (1, "20s", 'maxconn = 1; hold = "20s";'), B=a.addr)
    first = ask(w, "/slow/1")
    util.wait_for("the backend is busy", 5, lambda: gate.started)
    second = ask(w, "/y")
    util.wait_for("it waits", 5, lambda: waiting(w) == 1)
    assert w.cli("server", "u/" + a.addr, "down").returncode == 0
    util.wait_for("it waits elsewhere", 5, lambda: waiting(w) == 0)
    gate.open.release()
    assert first.response().status == 200 and not second.at_eof(0.3)
    assert w.cli("server", "u/" + a.addr, "up").returncode == 0
    assert second.response().status == 200


def test_the_end_of_an_ejection_is_noticed_by_those_who_wait(weir, backend, raw_backend):
    """One server fails too often, the other is busy all the time: five seconds later the first gets who waits."""
    gate, good = Gate(), threading.Event()

    def script(conn):
        while True:
            conn.head()
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na" if good.is_set() else b"junk\r\n\r\n")
            if not good.is_set():
                return
    a, b = raw_backend(script), backend(gate)
    w = weir(CONF.replace('"@B@"', '"@A@", "@B@"') % (2, "60s", "maxconn = 1; retries = 0;"), A=a.addr, B=b.addr)
    util.wait_for("it is ejected", 10, lambda: w.get("/x") and "gets no requests for 5 s" in w.errors())
    good.set()
    busy = ask(w, "/slow/1")
    util.wait_for("the other one is busy", 5, lambda: "/slow/1" in gate.started)
    waits = ask(w, "/waits")
    util.wait_for("it waits", 3, lambda: waiting(w) == 1)
    assert waits.response().body == b"a"  # nothing else has happened since
    gate.open.release()
    assert busy.response().status == 200


def test_redispatch_does_not_begin_with_the_dead_server_each_time(weir, backend, dead):
    b = backend()
    w = weir("""workers = 1; access_log = { path = "stdout"; format = "$upstream_addr"; };
                upstreams = { u = { servers = ( "@DEAD@", "@B@" ); }; };
                sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "u"; } );""", DEAD=dead.addr, B=b.addr)
    for _ in range(8):
        assert w.get("/x").status == 200
    util.wait_for("the log", 5, lambda: len(w.access()) == 8)
    assert sorted(w.access()) == sorted(["%s, %s" % (dead.addr, b.addr), b.addr] * 4)


def late(port, handler=None):
    return backends.Recorder(handler, port=port)


def test_hold_waits_for_a_server_that_is_not_there_yet(weir):
    port = util.free_port()
    w = weir(CONF % (1, "20s", 'hold = "10s";'), B="127.0.0.1:%d" % port)
    c, post = ask(w, "/1"), w.connect(timeout=20)
    post.send(b"POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    assert not c.at_eof(0.5) and not c.rd.buf and not post.rd.buf
    b = late(port)
    try:
        assert c.response().body == b"GET /1 0"
        post.send(b"hello")
        assert post.response().body == b"POST /2 5"
        assert b.targets() == ["/1", "/2"] or b.targets() == ["/2", "/1"]
    finally:
        b.stop()


def test_hold_ends(weir, dead):
    w = weir(CONF % (1, "20s", 'hold = "700ms";'), B=dead.addr)
    before = time.monotonic()
    assert w.get("/1").status == 502
    assert 0.6 < time.monotonic() - before < util.scaled(2)
    c = ask(w, "/2")
    assert not c.at_eof(0.1)
    c.close(reset=True)
    assert json.loads(w.wait_access('"uri":"/2"'))["status"] == 499
    assert in_flight(w) == 0


def test_c128_a_unix_socket_with_a_full_backlog_is_asked_again(weir):
    folder = tempfile.TemporaryDirectory(prefix="weir-")
    path = folder.name + "/s"
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(0)
    fillers = []
    while True:  # connect says EAGAIN when the backlog is full
        f = socket.socket(socket.AF_UNIX)
        f.setblocking(False)
        try:
            f.connect(path)
        except BlockingIOError:
            f.close()
            break
        fillers.append(f)
    w = weir(CONF % (1, "20s", ""), B="unix:" + path)
    c = ask(w, "/1")
    assert not c.at_eof(0.1)

    def accept():
        for _ in range(len(fillers)):
            s.accept()[0].close()
        conn, _ = s.accept()
        conn.recv(1000)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        conn.close()
    t = threading.Thread(target=accept, daemon=True)
    t.start()
    assert c.response().body == b"hi"
    t.join()
    for f in fillers:
        f.close()
    s.close()
    folder.cleanup()
