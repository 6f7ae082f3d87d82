# SPDX-License-Identifier: MIT
"""Which server gets a request: exact shares, over all loops, and what a reload or a dead server changes."""
import collections
import json
import socket
import threading

import pytest
from harness import util

CONF = """workers = %d; timeouts = { connect = "1s"; server = "10s"; queue = "2s"; };
upstreams = { app = { %s servers = ( %s ); }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "app"; } );"""


def conf(balance, bs, *extra, workers=2):
    extra = list(extra) + [""] * len(bs)
    return CONF % (workers, balance, ", ".join('{ address = "%s"; %s }' % (b.addr, e) for b, e in zip(bs, extra)))


def counts(bs):
    return [len(b.take()) for b in bs]


def where(bs, path):
    """The index of the one backend that has got this path since the last look."""
    got = [i for i, b in enumerate(bs) for q in b.take() if q.target == path]
    assert len(got) == 1, got
    return got[0]


def get_from(w, ip, path):
    with socket.create_connection(("127.0.0.1", w.port), util.scaled(5), source_address=(ip, 0)) as s:
        s.sendall(b"GET %s HTTP/1.0\r\nHost: h.test\r\n\r\n" % path.encode())
        assert s.makefile("rb").read().startswith(b"HTTP/1.1 200 ")


@pytest.mark.threads
def test_round_robin_is_exact_over_all_loops(weir, backend):
    bs = [backend() for _ in range(3)]
    w = weir(conf("", bs, "weight = 3;", "weight = 2;", workers=3))

    def client():
        for _ in range(10):
            assert w.get("/").status == 200
    threads = [threading.Thread(target=client) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert counts(bs) == [30, 20, 10]


@pytest.mark.threads
def test_a_server_named_twice_is_one_with_both_weights(weir, backend):
    a, b = backend(), backend()
    w = weir('''workers = 1; upstreams = { u = { servers = ( "@A@", "@B@", { address = "@A@"; weight = 2; } ); }; };
                sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "u"; } );''', A=a.addr, B=b.addr)
    for _ in range(8):
        assert w.get("/").status == 200
    assert (len(a.targets()), len(b.targets())) == (6, 2)
    (upstream,) = json.loads(w.cli("status", "--json").stdout)["upstreams"]
    assert [(s["address"], s["weight"], s["requests"]) for s in upstream["servers"]] == [(a.addr, 3, 6), (b.addr, 1, 2)]


def test_least_conn_goes_by_what_is_in_flight_whatever_the_loop(weir, backend):
    gate, held = threading.Event(), [0]

    def slow(bc, q):
        if q.target == "/slow":
            gate.wait(util.scaled(20))
    bs = [backend(slow) for _ in range(3)]
    w = weir(conf('balance = "least-conn";', bs, "weight = 2;", workers=3))
    threads = []
    for _ in range(8):
        threads.append(threading.Thread(target=w.get, args=("/slow",), kwargs={"timeout": 20}))
        threads[-1].start()
        held[0] += 1
        util.wait_for("it has arrived", 5, lambda: sum(len(b.targets()) for b in bs) == held[0])
    assert counts(bs) == [4, 2, 2]
    gate.set()
    for t in threads:
        t.join()
    for _ in range(12):  # nothing is in flight: in turn, by weight
        w.get("/")
    assert counts(bs) == [6, 3, 3]


def test_random_reaches_all_and_spares_the_busy_one(weir, backend):
    gate = threading.Event()

    def slow(bc, q):
        if q.target == "/slow":
            gate.wait(util.scaled(20))
    bs = [backend(slow), backend(slow)]
    w = weir(conf('balance = "random";', bs))
    for _ in range(40):
        assert w.get("/").status == 200
    assert min(counts(bs)) >= 6  # less than one in a million
    t = threading.Thread(target=w.get, args=("/slow",), kwargs={"timeout": 20})
    t.start()
    util.wait_for("one is busy", 5, lambda: any(b.targets() for b in bs))
    busy = 0 if bs[0].targets() else 1
    for _ in range(40):
        assert w.get("/").status == 200
    gate.set()
    t.join()
    assert counts(bs)[busy] <= 1 + 12  # one in 32 of them


def test_ip_hash_keeps_a_client_on_its_server(weir, backend):
    bs = [backend() for _ in range(4)]
    w = weir(conf('balance = "ip-hash";', bs))
    homes = {}
    for i in range(40):
        ip = "127.0.%d.7" % i
        for path in ("/a", "/b"):
            get_from(w, ip, path)
            at = where(bs, path)
            assert homes.setdefault(ip, at) == at
    assert len(set(homes.values())) == 4


def test_uri_hash_goes_by_the_path_without_the_query(weir, backend):
    bs = [backend() for _ in range(4)]
    w = weir(conf('balance = "uri-hash";', bs))
    homes = set()
    for i in range(40):
        w.get("/p%d?x=1" % i)
        at = where(bs, "/p%d?x=1" % i)
        w.get("/p%d?x=2" % i)
        assert where(bs, "/p%d?x=2" % i) == at
        homes.add(at)
    assert homes == {0, 1, 2, 3}


def test_a_template_and_what_has_no_key_goes_in_turn(weir, backend):
    bs = [backend() for _ in range(4)]
    w = weir(conf('balance = "hash"; hash = "$cookie_user$arg_room";', bs))
    for i in range(12):
        w.get("/x", {"Cookie": "user=u%d" % i})
        at = where(bs, "/x")
        w.get("/y?room=u%d" % i)
        assert where(bs, "/y?room=u%d" % i) == at
    for _ in range(8):
        w.get("/none")
    assert counts(bs) == [2, 2, 2, 2]


def test_a_server_more_takes_its_share_and_no_more(weir, backend):
    bs = [backend() for _ in range(4)]
    w = weir(conf('balance = "uri-hash";', bs[:3]))

    def homes():
        for i in range(200):
            w.get("/k%d" % i)
        return {q.target: i for i, b in enumerate(bs) for q in b.take()}
    before = homes()
    w.reload(conf('balance = "uri-hash";', bs))
    after = homes()
    moved = [k for k in before if before[k] != after[k]]
    assert 20 <= len(moved) <= 200 * (0.25 + 0.10)
    assert collections.Counter(after[k] for k in moved)[3] >= len(moved) * 0.8
    w.reload(conf('balance = "uri-hash";', list(reversed(bs[:3]))))  # the order in the file is nothing
    assert homes() == before


def test_a_dead_servers_keys_spread_over_the_others(weir, backend):
    bs = [backend() for _ in range(4)]
    w = weir(conf('balance = "uri-hash"; retries = 3;', bs))
    for i in range(60):
        w.get("/k%d" % i)
    before = {q.target: i for i, b in enumerate(bs) for q in b.take()}
    bs[3].stop()
    for i in range(60):
        assert w.get("/k%d" % i).status == 200
    after = {q.target: i for i, b in enumerate(bs[:3]) for q in b.take()}
    assert all(after[k] == before[k] for k in before if before[k] != 3)
    assert {after[k] for k in before if before[k] == 3} == {0, 1, 2}


def test_c114_a_key_waits_for_its_own_server(weir, backend):
    gate = threading.Event()

    def slow(bc, q):
        if "slow" in q.target:
            gate.wait(util.scaled(20))
    bs = [backend(slow) for _ in range(2)]
    w = weir(conf('balance = "hash"; hash = "$arg_k"; maxconn = 1;', bs).replace('queue = "2s"', 'queue = "20s"'))
    w.get("/where?k=1")
    home = where(bs, "/where?k=1")
    threads = []
    for path in ("/slow?k=1", "/next?k=1"):
        threads.append(threading.Thread(target=w.get, args=(path,), kwargs={"timeout": 20}))
        threads[-1].start()
        if "slow" in path:
            util.wait_for("it is busy", 5, lambda: bs[home].targets())
    assert w.get("/any").status == 200
    gate.set()
    for t in threads:
        t.join()
    assert [q.target for q in bs[home].take()] == ["/slow?k=1", "/next?k=1"]
    assert [q.target for q in bs[1 - home].take()] == ["/any"]


@pytest.mark.parametrize("factor, spread", [(0, [8, 0, 0, 0]), (125, [3, 3, 2, 0])])
def test_one_hot_key_is_bounded(weir, backend, factor, spread):
    gate = threading.Event()

    def slow(bc, q):
        gate.wait(util.scaled(10))
    bs = [backend(slow) for _ in range(4)]
    w = weir(conf('balance = "uri-hash"; hash_balance_factor = %d;' % factor, bs))
    clients = []
    for i in range(8):  # one after another: the loops see each other's
        clients.append(w.connect(timeout=10))
        clients[-1].send(b"GET /hot HTTP/1.1\r\nHost: h\r\n\r\n")
        util.wait_for("it runs", 5, lambda: sum(len(b.targets()) for b in bs) == i + 1)
    gate.set()
    assert {c.response().status for c in clients} == {200}
    assert sorted(counts(bs), reverse=True) == spread


@pytest.mark.parametrize("balance", ["round-robin", "least-conn", "random", "uri-hash"])
def test_c124_backups_only_when_nobody_else_is_left(weir, backend, balance):
    bs = [backend() for _ in range(3)]
    w = weir(conf('balance = "%s"; retries = 2;' % balance, bs, "", "", "backup = true;"))
    for i in range(12):
        assert w.get("/%d" % i).status == 200
    assert counts(bs)[2] == 0
    bs[0].stop()
    for i in range(12):
        assert w.get("/%d" % i).status == 200
    assert [len(b.take()) for b in bs[1:]] == [12, 0]
    bs[1].stop()
    for i in range(4):
        assert w.get("/%d" % i).status == 200
    assert len(bs[2].take()) == 4


@pytest.mark.parametrize("balance", ["round-robin", "least-conn", "random", "uri-hash"])
def test_weight_0_and_drain_get_nothing(weir, backend, balance):
    bs = [backend() for _ in range(3)]
    w = weir(conf('balance = "%s";' % balance, bs, "weight = 0;", "drain = true;"))
    for i in range(12):
        assert w.get("/%d" % i).status == 200
    assert counts(bs) == [0, 0, 12]
