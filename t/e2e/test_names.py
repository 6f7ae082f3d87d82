# SPDX-License-Identifier: MIT
"""Servers by name (C122, C123): names that are not there yet, that change, that fail, and how often they are looked up."""
import socket
import threading
import time

import pytest
from harness import backends, names, util

CONF = """
workers = 2; timeouts = { connect = "2s"; };
upstreams = { other = { servers = ( "@B@" ); }; app = { servers = ( "app.test:%d" ); retries = 0; }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "app"; locations = ( { match = "/other"; proxy = "other"; } ); } );
"""


@pytest.fixture
def resolver():
    n = names.Names()
    yield n
    n.close()


def test_c122_a_name_that_is_not_there_yet(weir, backend, resolver):
    """The start is not held up; it is looked up again after a second, and the request after that is served."""
    app, b = backend(), backend()
    w = weir(CONF % app.port, B=b.addr, env=resolver.env)
    w.wait_error(r'server "app.test:%d": .*; it is not used until the name resolves' % app.port)
    assert (w.get("/other").status, w.get("/x").status) == (200, 503)
    resolver.write({"app.test": "127.0.0.1"})
    w.wait_error("the name resolves again", timeout=5)
    assert w.get("/x").status == 200
    first, second = resolver.lookups("app.test")
    assert 0.9 < second - first < util.scaled(3)


def test_c122_looking_up_blocks_nobody(weir, backend, resolver):
    app, b = backend(), backend()
    w = weir(CONF % app.port, B=b.addr, env=resolver.env)
    w.wait_error("until the name resolves")
    resolver.write({"app.test": "wait 1 127.0.0.1"})
    util.wait_for("it is being looked up", 5, lambda: len(resolver.lookups("app.test")) == 2)
    since = time.monotonic()
    assert [w.get("/other").status for _ in range(20)] == [200] * 20
    assert time.monotonic() - since < util.scaled(0.5) and "resolves again" not in w.errors()
    w.wait_error("the name resolves again", timeout=5)
    assert w.get("/x").status == 200


def test_c122_of_several_addresses_one_is_enough(weir, backend, resolver):
    """A name is one server: no error and no failure while one address works, and the one that works comes first."""
    b = backend()
    app = backends.RawBackend(backends.serve(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"))
    resolver.write({"app.test": "127.0.0.2 127.0.0.3 127.0.0.1"})
    w = weir(CONF % app.port, B=b.addr, env=resolver.env)
    try:
        assert [w.get("/x").body for _ in range(5)] == [b"ok"] * 5
        assert "CONNECT_FAILED" not in w.errors() and '"failures":0' in w.cli("status", "--json").stdout
    finally:
        app.close()


@pytest.mark.parametrize("listens", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("name", ["app.test", "literal"])
def test_c123_both_families_of_a_name(weir, backend, resolver, listens, name):
    """Node listens on one of them only, and which comes first is the resolver's business."""
    s = socket.socket(socket.AF_INET6 if ":" in listens else socket.AF_INET)
    try:
        s.bind((listens, util.free_port()))
    except OSError:
        pytest.skip("no IPv6 here")
    s.listen(16)
    port, b = s.getsockname()[1], backend()

    def answer():
        try:
            while True:
                c = s.accept()[0]
                c.recv(65536)
                c.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
                c.close()
        except OSError:
            pass  # the test is over
    threading.Thread(target=answer, daemon=True).start()
    resolver.write({"app.test": "::1 127.0.0.1"})
    address = "app.test" if name == "app.test" else "[::1]" if ":" in listens else listens
    w = weir((CONF % port).replace("app.test", address), B=b.addr, env=resolver.env)
    assert [w.get("/x").body for _ in range(5)] == [b"ok"] * 5
    assert "CONNECT_FAILED" not in w.errors() and '"failures":0' in w.cli("status", "--json").stdout
    s.shutdown(socket.SHUT_RDWR)
    s.close()


def test_c122_a_reload_while_the_resolver_is_down(weir, backend, resolver):
    """What is known stays in use."""
    app, b = backend(), backend()
    resolver.write({"app.test": "127.0.0.1"})
    w = weir(CONF % app.port, B=b.addr, env=resolver.env)
    assert w.get("/x").status == 200
    resolver.write({})
    w.reload(CONF % app.port + "# again\n")
    assert w.get("/x").status == 200


@pytest.mark.long
def test_c122_later_and_later_while_it_does_not_resolve(weir, backend, resolver):
    app, b = backend(), backend()
    w = weir(CONF % app.port, B=b.addr, env=resolver.env)
    util.wait_for("six look-ups", 60, lambda: len(resolver.lookups("app.test")) == 6)
    t = resolver.lookups("app.test")
    for gap, wanted in zip((b - a for a, b in zip(t, t[1:])), (1, 2, 4, 8, 10)):
        assert wanted * 0.9 < gap < wanted + util.scaled(1.5)
    assert len([ln for ln in w.errors().split("\n") if "until the name resolves" in ln]) == 1  # said once


@pytest.mark.long
def test_c122_a_name_that_changes_and_one_that_fails(weir, backend, resolver):
    b = backend()
    app = backend()
    resolver.write({"app.test": "127.0.0.1"})
    w = weir(CONF % app.port, B=b.addr, env=resolver.env)
    assert w.get("/x").status == 200
    resolver.write({"app.test": "127.0.0.9"})
    n = len(resolver.lookups("app.test"))
    util.wait_for("it is looked up again", 15, lambda: len(resolver.lookups("app.test")) > n)
    util.wait_for("requests go there", 5, lambda: w.get("/x").status == 502)
    resolver.write({})
    w.wait_error("its last known addresses stay in use", timeout=15)
    resolver.write({"app.test": "127.0.0.1"})
    w.wait_error("the name resolves again", timeout=15)
    assert w.get("/x").status == 200


def test_a_silent_name_server_holds_up_neither_the_start_nor_other_names_nor_the_end(weir, backend, resolver):
    app, b = backend(), backend()
    resolver.write({"app.test": "wait 30 127.0.0.1", "fine.test": "127.0.0.1"})
    conf = (CONF % app.port).replace('"@B@"', '"fine.test:%d"' % b.port)
    since = time.monotonic()
    w = weir(conf, env=resolver.env)
    assert (w.get("/other", timeout=10).status, w.get("/x").status) == (200, 503)
    assert time.monotonic() - since < util.scaled(4)
    w.wait_error("looking up the names of servers takes long")
    assert w.cli("server", "other/fine.test:%d" % b.port, "drain").returncode == 0  # an outage is when that is needed
    since = time.monotonic()
    assert w.stop() == 0 and time.monotonic() - since < util.scaled(3)
    assert "stopped, in the middle of a load" in w.errors()


def test_a_connection_to_an_address_that_the_name_has_lost_is_not_kept(weir, backend, raw_backend, resolver):
    """Or busy connections would lead to the old place for as long as it lives."""
    def script(conn):
        while True:
            conn.head()
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold")
    old = raw_backend(script)
    resolver.write({"app.test": "127.0.0.1"})
    # While another name does not resolve, names are looked up more often.
    conf = (CONF % old.port).replace('"@B@"', '"none.test:1"').replace("workers = 2", "workers = 1")
    w = weir(conf, env=resolver.env)
    assert [w.get("/x").body for _ in range(3)] == [b"old"] * 3 and old.accepted() == 1
    n = len(resolver.lookups("app.test"))
    util.wait_for("it is looked up again", 5, lambda: len(resolver.lookups("app.test")) > n)
    assert w.get("/x").body == b"old" and old.accepted() == 1  # nothing has changed
    resolver.write({"app.test": "127.0.0.9"})
    util.wait_for("requests go to the new address", 5, lambda: w.get("/x").status == 502)
