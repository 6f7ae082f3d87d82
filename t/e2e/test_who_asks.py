# SPDX-License-Identifier: MIT
"""Who the client is: what trusted peers say and strangers do not, in variables, logs, rules and towards the backend."""
import os
import socket

import pytest
from wire import Conn

FORMAT = "c=$remote_addr:$remote_port p=$realip_remote_addr s=$scheme id=$request_id"
CONF = """
    workers = 1;
    access_log = { path = "stdout"; format = "%s"; };
    sites = ( { listen = ( "127.0.0.1:@PORT@", "[::1]:@PORT@", "unix:w.sock" ); @WHOM@ proxy = "@B@"; @MORE@ } );
""" % FORMAT
LOCAL = 'trusted = ( "127.0.0.0/8", "10.0.0.0/8" );'


def over_unix(w, *lines):
    """One request over the unix socket; its answer."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.path.join(w.dir, "w.sock"))
    c = Conn.__new__(Conn)
    from wire import Reader
    s.settimeout(5)
    c.s, c.timeout, c.rd, c.send_failed = s, 5, Reader(s), False
    c.send("\r\n".join(["GET /u HTTP/1.1", "Host: h.test", *lines, "", ""]).encode())
    r = c.response("GET")
    c.close()
    return r


@pytest.mark.parametrize("said, client, scheme", [
    ({}, "127.0.0.1:[0-9]+", "http"),
    ({"X-Forwarded-For": "192.0.2.7"}, "192.0.2.7:-", "http"),
    ({"X-Forwarded-For": "192.0.2.7:99, 10.1.2.3"}, "192.0.2.7:99", "http"),
    ({"X-Forwarded-For": "203.0.113.5, 192.0.2.7, 10.1.2.3", "X-Forwarded-Proto": "https"}, "192.0.2.7:-", "https"),
    ({"Forwarded": 'for="[2001:db8::7]:4711";proto=https'}, "2001:db8::7:4711", "https"),
    ({"X-Forwarded-For": "unknown"}, "127.0.0.1:[0-9]+", "http"),
    ({"X-Forwarded-For": "192.0.2.7, garbage, 10.1.2.3"}, "10.1.2.3:-", "http"),
])
def test_the_client_a_trusted_peer_names(weir, backend, said, client, scheme):
    b = backend()
    w = weir(CONF, B=b.addr, WHOM=LOCAL, MORE="")
    assert w.get("/x", said).status == 200
    line = w.wait_access(r"^c=%s p=127\.0\.0\.1 s=%s id=[0-9a-f]{32}$" % (client, scheme))
    q = b.take()[0]
    assert q.get("x-request-id") == line.split("id=")[1]
    assert q.get("x-real-ip") == line[2:].split(" ")[0].rsplit(":", 1)[0]


def test_a_stranger_is_believed_nothing(weir, backend):
    b = backend()
    w = weir(CONF, B=b.addr, WHOM='trusted = "10.0.0.0/8";', MORE="")
    said = {"X-Forwarded-For": "10.0.0.1", "Forwarded": "for=10.0.0.1;proto=https", "X-Forwarded-Proto": "https",
            "X-Real-IP": "10.0.0.1", "X-Request-ID": "mine", "X-Forwarded-Prefix": "/p"}
    assert w.get("/x", said).status == 200
    line = w.wait_access(r"^c=127\.0\.0\.1:[0-9]+ p=127\.0\.0\.1 s=http id=[0-9a-f]{32}$")
    q = b.take()[0]
    assert q.get("x-request-id") == line.split("id=")[1]
    assert q.get("x-forwarded-for") == q.get("x-real-ip") == "127.0.0.1"
    assert not q.has("forwarded") and not q.has("x-forwarded-prefix")


def test_request_ids_of_trusted_peers_are_kept_if_they_are_harmless(weir, backend):
    b = backend()
    w = weir(CONF, B=b.addr, WHOM=LOCAL, MORE="")
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert w.get("/x", {"X-Request-ID": "Root=1-67891233-abc", "traceparent": trace}).status == 200
    w.wait_access(r" id=Root=1-67891233-abc$")
    q = b.take()[0]
    assert q.all("x-request-id") == ["Root=1-67891233-abc"] and q.all("traceparent") == [trace]
    for bad in ("a b", 'a"b', "x" * 129, "", "a,b"):
        assert w.get("/x", {"X-Request-ID": bad}).status == 200
        got = b.take()[0].all("x-request-id")
        assert len(got) == 1 and len(got[0]) == 32 and got[0] != bad


def test_peers_on_unix_sockets(weir, backend):
    b = backend()
    w = weir(CONF, B=b.addr, WHOM='trusted = "unix";', MORE="")
    assert over_unix(w, "X-Forwarded-For: 192.0.2.7").status == 200
    w.wait_access(r"^c=192\.0\.2\.7:- p=unix: s=http ")
    assert b.take()[0].all("x-forwarded-for") == ["192.0.2.7"]
    assert over_unix(w).status == 200
    w.wait_access(r"^c=unix::- p=unix: ")
    q = b.take()[0]
    assert not q.has("x-forwarded-for") and not q.has("x-real-ip")
    assert w.get("/x", {"X-Forwarded-For": "192.0.2.7"}).status == 200  # by TCP: not trusted
    assert b.take()[0].all("x-forwarded-for") == ["127.0.0.1"]


def status_from(w, address):
    return w.get("/x", {"X-Forwarded-For": address}).status


def test_allow_and_deny_go_by_the_client_not_the_peer(weir, backend):
    b = backend()
    w = weir(CONF, B=b.addr, WHOM=LOCAL,
             MORE='allow = ( "192.0.2.0/24", "2001:db8::/32" ); deny = ( "192.0.2.128/25", "2001:db8:bad::/48" );')
    assert [status_from(w, a) for a in ("192.0.2.7", "192.0.2.200", "203.0.113.5", "2001:db8::1", "2001:db8:bad::1", "2001:db9::1",
                                        "::ffff:192.0.2.7", "::ffff:192.0.2.200")] == [200, 403, 403, 200, 403, 403, 200, 403]
    assert w.get("/x").status == 403  # the trusted peer for itself is not in `allow`
    assert status_from(w, "192.0.2.7, garbage") == 403
    assert len(b.take()) == 3


def test_allow_and_deny_by_ipv6_and_unix_peers(weir, backend):
    b = backend()
    w = weir(CONF, B=b.addr, WHOM="", MORE='allow = ( "::1", "unix" );')
    c = Conn("::1", w.port, 5)
    c.send(b"GET /6 HTTP/1.1\r\nHost: h.test\r\n\r\n")
    assert c.response("GET").status == 200
    c.close()
    assert over_unix(w).status == 200
    assert w.get("/x", {"X-Forwarded-For": "::1"}).status == 403
    w.reload(w.configure(CONF.replace("@MORE@", 'deny = ( "unix", "127.0.0.0/8" );')))
    assert over_unix(w).status == 403
    assert w.get("/x").status == 403
    c = Conn("::1", w.port, 5)
    c.send(b"GET /6 HTTP/1.1\r\nHost: h.test\r\n\r\n")
    assert c.response("GET").status == 200
    c.close()


def test_each_request_of_a_connection_has_its_own_client(weir, backend):
    b = backend()
    w = weir(CONF, B=b.addr, WHOM=LOCAL, MORE='deny = "192.0.2.0/24";')
    c = w.connect()
    got = []
    for address in ("192.0.2.7", "203.0.113.5", "192.0.2.8"):
        c.send(b"GET /x HTTP/1.1\r\nHost: h.test\r\nX-Forwarded-For: %s\r\n\r\n" % address.encode())
        got.append(c.response("GET").status)
    c.send(b"GET /x HTTP/1.1\r\nHost: h.test\r\n\r\n")
    got.append(c.response("GET").status)
    c.close()
    assert got == [403, 200, 403, 200]


def test_ip_hash_goes_by_the_client(weir, backend):
    a, b = backend(), backend()
    w = weir("""
        upstreams = { u = { balance = "ip-hash"; servers = ( "@A@", "@B@" ); }; };
        sites = ( { listen = "127.0.0.1:@PORT@"; trusted = "127.0.0.1"; proxy = "u"; } );
    """, A=a.addr, B=b.addr)
    for i in range(24):
        for _ in range(2):
            assert status_from(w, "192.0.2.%d" % i) == 200
    counts = {}
    for origin in (a, b):
        for q in origin.take():
            counts.setdefault(q.get("x-real-ip"), set()).add(origin.addr)
    assert len(counts) == 24 and all(len(v) == 1 for v in counts.values())
    assert len({next(iter(v)) for v in counts.values()}) == 2
