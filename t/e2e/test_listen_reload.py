# SPDX-License-Identifier: MIT
"""Addresses that a reload brings and drops: nothing is lost on the way, nothing is left open, nothing half-applied."""
import os
import re
import socket
import threading

import pytest
from harness.util import SCALE, scaled, wait_for
from wire import Closed, Conn

FILES = {"public/a.txt": "hello"}
HEAD = 'workers = 2; timeouts = { lame_duck = "%s"; }; '


def site(listen, answer, more=""):
    return HEAD % "300ms" + 'sites = ( { listen = %s; respond = "%s"; %s } );' % (listen, answer, more)


def both(w, answer, extra, lame_duck="300ms"):
    return (HEAD % lame_duck + 'sites = ( { listen = "127.0.0.1:@PORT@"; respond = "%s"; },'
            ' { listen = "127.0.0.1:%d"; respond = "extra"; } );' % (answer, extra))


def one(answer, lame_duck="300ms"):
    return HEAD % lame_duck + 'sites = ( { listen = "127.0.0.1:@PORT@"; respond = "%s"; } );' % answer


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), scaled(2)).close()
        return False
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # the very moment
        return False


def ask(conn, path="/"):
    conn.send(b"GET %s HTTP/1.1\r\nHost: h.test\r\n\r\n" % path.encode())
    return conn.response("GET")


def sockets_on(port):
    with open("/proc/net/tcp") as f:
        rows = [ln.split() for ln in f]
    return sum(r[3] == "0A" and r[1].endswith(":%04X" % port) for r in rows)


def descriptors(w):
    w.wait_error("generation 1: ")  # the supervisor listens before the server has opened all it needs
    return {p: len(os.listdir("/proc/%d/fd" % p)) for p in w.tree()}


@pytest.mark.threads
def test_a_new_address_is_listened_on_by_every_loop(weir, free_port):
    extra = free_port()
    w = weir(one("first"))
    kept = w.connect()
    assert ask(kept).body == b"first"
    w.reload(both(w, "second", extra))
    w.wait_error(r"listening on 127\.0\.0\.1:%d$" % extra)
    for _ in range(40):
        assert w.get("/", port=extra).body == b"extra"
    assert sockets_on(extra) == 2
    assert ask(kept).body == b"second"


@pytest.mark.threads
def test_a_dropped_address_serves_on_for_a_while_and_then_refuses(weir, free_port):
    extra = free_port()
    w = weir(one("first", "2s"))
    before = descriptors(w)
    w.reload(both(w, "second", extra, "2s"))
    idle, busy = w.connect(port=extra, timeout=20), w.connect(port=extra, timeout=20)
    assert ask(idle).body == b"extra" and ask(busy).body == b"extra"
    w.reload(one("third", "2s"))
    # It still accepts, and answers as it did, for the last time on each connection.
    r = w.get("/", port=extra)
    assert r.body == b"extra" and "close" in r.tokens("connection")
    r = ask(busy)
    assert r.body == b"extra" and "close" in r.tokens("connection")
    assert busy.at_eof()
    assert w.get("/").body == b"third"
    wait_for("nobody listens there", 10, lambda: refuses(extra))
    assert idle.at_eof()
    w.wait_error(r"no longer listening on 127\.0\.0\.1:%d$" % extra)
    wait_for("all descriptors are back", 10, lambda: descriptors(w) == before)


def test_an_answer_under_way_is_finished_when_its_address_goes(weir, raw_backend, free_port):
    asked, go = threading.Event(), threading.Event()

    def script(conn):
        conn.head()
        asked.set()
        if go.wait(scaled(20)):
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow")
            conn.wait_close()

    extra = free_port()
    w = weir(HEAD % "0ms" + 'sites = ( { listen = "127.0.0.1:@PORT@"; respond = "x"; },'
             ' { listen = "127.0.0.1:%d"; proxy = "@ORIGIN@"; } );' % extra, ORIGIN=raw_backend(script).addr)
    busy = w.connect(port=extra, timeout=20)
    busy.send(b"GET /slow HTTP/1.1\r\nHost: h.test\r\n\r\n")
    assert asked.wait(scaled(10))
    w.reload(one("y", "0ms"))
    wait_for("nobody listens there", 10, lambda: refuses(extra))
    go.set()
    assert busy.response("GET").body == b"slow"
    assert busy.at_eof()
    assert re.search(r'"GET /slow HTTP/1.1" 200 4', w.wait_access("/slow"))


def test_a_preconnect_is_not_reset_when_its_address_goes(weir, free_port):
    extra = free_port()
    w = weir(one("first", "3s"))
    w.reload(both(w, "second", extra, "3s"))
    waiting = [Conn("127.0.0.1", extra, scaled(10)) for _ in range(10)]  # the kernel holds them: no bytes yet
    w.reload(one("third", "3s"))
    for c in waiting:
        assert ask(c).body == b"extra"


def test_an_address_that_comes_back_in_time_simply_stays(weir, free_port):
    extra = free_port()
    w = weir(one("first", "1s"))
    w.reload(both(w, "second", extra, "1s"))
    kept = w.connect(port=extra, timeout=20)
    assert ask(kept).body == b"extra"
    w.reload(one("third", "1s"))
    w.reload(both(w, "fourth", extra, "1s"))
    for _ in range(3):
        r = ask(kept)
        assert r.body == b"extra" and "close" not in r.tokens("connection")
    w.reload(both(w, "fifth", extra, "1s"))
    assert w.get("/", port=extra).body == b"extra"
    assert "no longer listening" not in w.errors()


def test_an_address_that_comes_back_later_is_bound_anew(weir, free_port):
    extra = free_port()
    w = weir(one("first", "0ms"))
    for n in range(3):
        w.reload(both(w, "on %d" % n, extra, "0ms"))
        assert w.get("/", port=extra).body == b"extra"
        w.reload(one("off %d" % n, "0ms"))
        wait_for("nobody listens there", 10, lambda: refuses(extra))


def test_an_address_in_use_refuses_the_whole_reload(weir, free_port):
    extra = free_port()
    w = weir(one("first"))
    before = descriptors(w)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        w.reload(HEAD % "300ms" + 'sites = ( { listen = ( "127.0.0.1:@PORT@", "127.0.0.1:%d", "127.0.0.1:%d" );'
                 ' respond = "second"; } );' % (extra, port), refused=True)
    assert re.search(r"\[error\].* cannot listen on 127\.0\.0\.1:%d: Address already in use; another server listens there "
                     r"\(.*proxy\.conf:1\)" % port, w.errors())
    assert "still on generation 1" in w.errors()
    assert refuses(extra)
    assert w.get("/").body == b"first"
    assert descriptors(w) == before


def test_a_unix_socket_comes_and_goes(weir):
    w = weir(one("first", "0ms"))
    path = os.path.join(w.dir, "s.sock")
    w.reload(HEAD % "0ms" + 'sites = ( { listen = ( "127.0.0.1:@PORT@", "unix:s.sock" ); respond = "second"; } );')
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(scaled(5))
        s.connect(path)
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert s.recv(65536)
    w.reload(one("third", "0ms"))
    wait_for("the file is gone", 10, lambda: not os.path.lexists(path))


def test_defer_and_backlog_change_with_a_reload(weir):
    def conf(defer):
        return 'workers = 2; sites = ( { listen = { address = "127.0.0.1:@PORT@"; defer = %s; backlog = %d; };' \
               ' respond = "x"; } );' % (defer, 100 if defer == "true" else 200)
    w = weir(conf("true"))
    w.wait_error("generation 1: ")
    assert w.get("/").status == 200

    def accepted_without_bytes():
        before = len(os.listdir("/proc/%d/fd" % w.server_pid))
        with socket.create_connection(("127.0.0.1", w.port)):
            try:
                wait_for("it is accepted", 0.5 / SCALE, lambda: len(os.listdir("/proc/%d/fd" % w.server_pid)) > before)
                return True
            except AssertionError:
                return False

    assert not accepted_without_bytes()
    w.reload(conf("false"))
    assert accepted_without_bytes()
    w.reload(conf("true"))
    assert not accepted_without_bytes()


def test_the_limit_of_clients_changes_with_a_reload(weir):
    w = weir("limits = { clients = 1; }; " + one("x"))

    def hold_the_only_place():
        held = w.connect()
        held.send(b"GET / HTTP/1.1\r\nHost: h.test\r\nX-Unfinished: ")
        if w.get("/").status == 503:
            return held
        held.close()  # it came while another client was just leaving, and was refused itself
        return None

    held = wait_for("it is at its limit", 5, hold_the_only_place)
    assert held
    w.reload("limits = { clients = 100; }; " + one("x"))
    assert w.get("/").status == 200


@pytest.mark.threads
def test_addresses_come_and_go_under_load(weir, free_port):
    """Clients of the address that stays notice nothing; those of the other one are refused or served, never cut."""
    extra = free_port()
    w = weir(one("stays", "100ms"))
    stop, errors, done = threading.Event(), [], [0, 0]

    def steady():
        c = w.connect(timeout=20)
        while not stop.is_set():
            try:
                assert ask(c).status == 200
                assert w.get("/").status == 200
                done[0] += 1
            except Exception as e:
                errors.append(repr(e))
                return

    def visitor():
        while not stop.is_set():
            try:
                assert w.get("/", port=extra).body == b"extra"
                done[1] += 1
            except (ConnectionRefusedError, ConnectionResetError, Closed):
                pass
            except Exception as e:
                errors.append(repr(e))
                return

    threads = [threading.Thread(target=f) for f in (steady, steady, visitor)]
    for t in threads:
        t.start()
    try:
        for n in range(10):
            w.reload(both(w, "stays", extra, "100ms"))
            wait_for("visitors are served", 10, lambda seen=done[1]: done[1] > seen or errors)
            w.reload(one("stays", "100ms"))
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not errors, errors[:3]
    assert done[0] > 0 and done[1] > 0


def test_a_stray_after_a_crash_is_closed(weir, free_port):
    """A server that dies between a reload that opened an address and the word of it leaves it with the supervisor."""
    extra = free_port()
    w = weir(one("first", "20s"))
    w.reload(both(w, "second", extra, "20s"))
    w.reload(one("third", "20s"))  # leaving, and still open in both processes
    os.kill(w.server_pid, 9)
    wait_for("the new server answers", 10, lambda: not refuses(w.port) and w.get("/").body == b"third")
    wait_for("nobody listens there", 10, lambda: refuses(extra))


def test_an_address_becomes_a_wider_one_of_the_same_port_and_back(weir, free_port):
    """The kernel calls the port in use, but it is weir that uses it."""
    port = free_port()
    conf = 'timeouts = { lame_duck = 0; }; sites = ( { listen = "127.0.0.1:@PORT@"; respond = "x"; }, { listen = %s; respond = "y"; } );'
    w = weir(conf % ('"127.0.0.1:%d"' % port))
    for n, form in enumerate(('"%d"', '"0.0.0.0:%d"', '"127.0.0.1:%d"', '( "127.0.0.1:%d", "{0}" )'.format(port)), 1):
        w.configure(conf % (form % port))
        done = w.cli("reload")
        assert done.returncode == 0, done.stderr
        wait_for("the one before has gone", 5, lambda n=n: w.errors().count("no longer listening on ") == min(n, 3))
        assert w.get("/", port=port).body == b"y"
