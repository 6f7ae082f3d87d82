# SPDX-License-Identifier: MIT
"""The PROXY protocol: connections that say whose they are, from haproxy and by hand, and to backends."""
import re
import shutil
import socket
import struct
import subprocess

import pytest
from harness import util
from harness.backends import serve

FORMAT = "c=$remote_addr:$remote_port p=$realip_remote_addr d=$proxy_protocol_server_addr:$proxy_protocol_server_port"
CONF = """
    workers = 1; @TOP@
    access_log = { path = "stdout"; format = "%s"; };
    sites = ( { listen = { address = "127.0.0.1:@PORT@"; proxy_protocol = true; defer = @DEFER@; }; @MORE@ proxy = "@B@"; } );
""" % FORMAT
GET = b"GET /x HTTP/1.1\r\nHost: h.test\r\n\r\n"
V1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 80\r\n"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
needs_haproxy = pytest.mark.skipif(not shutil.which("haproxy"), reason="haproxy is missing")


def v2(command=0x21, family=0x11, block=None, tlvs=b""):
    if block is None:
        block = socket.inet_aton("192.0.2.7") + socket.inet_aton("198.51.100.1") + struct.pack(">HH", 4711, 80)
    return SIGNATURE + struct.pack(">BBH", command, family, len(block) + len(tlvs)) + block + tlvs


V6 = v2(family=0x21, block=socket.inet_pton(socket.AF_INET6, "2001:db8::7") + socket.inet_pton(socket.AF_INET6, "2001:db8::1") +
        struct.pack(">HH", 4711, 443))
SEEN = r"^c=192\.0\.2\.7:4711 p=127\.0\.0\.1 d=198\.51\.100\.1:80$"


def front(weir, b, more="", top="", defer="true"):
    return weir(CONF, B=b.addr, MORE=more, TOP=top, DEFER=defer)


@pytest.mark.parametrize("header, line", [
    (V1, SEEN), (v2(), SEEN), (v2(tlvs=b"\x04\0\x03abc" * 100), SEEN),
    (b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 443\r\n", r"^c=2001:db8::7:4711 p=127\.0\.0\.1 d=2001:db8::1:443$"),
    (V6, r"^c=2001:db8::7:4711 p=127\.0\.0\.1 d=2001:db8::1:443$"),
    (b"PROXY UNKNOWN\r\n", r"^c=127\.0\.0\.1:[0-9]+ p=127\.0\.0\.1 d=-:-$"),
    (v2(0x20, 0, b""), r"^c=127\.0\.0\.1:[0-9]+ p=127\.0\.0\.1 d=-:-$"),
    (v2(0x21, 0, b""), r"^c=127\.0\.0\.1:[0-9]+ p=127\.0\.0\.1 d=-:-$"),
    (v2(0x21, 0x31, b"a" * 216), r"^c=127\.0\.0\.1:[0-9]+ p=127\.0\.0\.1 d=-:-$"),
], ids=["v1", "v2", "v2-tlvs", "v1-6", "v2-6", "v1-unknown", "local", "unspec", "unix"])
def test_whose_a_connection_is(weir, backend, header, line):
    b = backend()
    w = front(weir, b)
    c = w.connect()
    c.send(header + GET)
    assert c.response("GET").status == 200
    w.wait_access(line)
    c.send(GET)  # and it stays so
    assert c.response("GET").status == 200
    c.close()
    w.stop()
    assert len([ln for ln in w.access() if re.search(line, ln)]) == 2
    assert len({q.get("x-forwarded-for") for q in b.take()}) == 1


@pytest.mark.parametrize("defer", ["true", "false"])
@pytest.mark.parametrize("header", [V1, v2(tlvs=b"\x04\0\x03abc")], ids=["v1", "v2"])
def test_a_header_in_pieces(weir, backend, header, defer):
    b = backend()
    w = front(weir, b, defer=defer)
    conns = [w.connect() for _ in range(len(header) + 1)]
    for i, c in enumerate(conns):
        c.send(header[:i])
    for i, c in enumerate(conns):
        c.send(header[i:] + GET[:i % 7])
    for i, c in enumerate(conns):
        c.send(GET[i % 7:])
        assert c.response("GET").status == 200
        c.close()
    w.stop()
    assert len([ln for ln in w.access() if re.search(SEEN, ln)]) == len(conns)


@pytest.mark.parametrize("sent, why", [
    (GET, "the connection begins with something else"),
    (b"POST / HTTP/1.1\r\n", "the connection begins with something else"),
    (b"\x16\x03\x01\x02\x00\x01", "the connection begins with something else"),
    (b"PROXY TCP4 1.1.1.1\r\n" + GET, "malformed address"),
    (b"PROXY UNKNOWN" + b"x" * 200, "its line is longer than 107 bytes"),
    (v2(0x21, 0x11, b"\0" * 11) + GET, "too short for its addresses"),
    (v2(tlvs=b"x" * 4085), "longer than 4096 bytes"),
])
def test_a_connection_without_a_header_is_closed(weir, backend, sent, why):
    b = backend()
    w = front(weir, b)
    c = w.connect()
    c.send(sent)
    assert c.at_eof()
    w.wait_error(r"\[warn\].* PROXY_HEADER: %s: connection closed, client: 127\.0\.0\.1, listen: 127\.0\.0\.1:%d$" % (why, w.port))
    assert b.take() == []
    w.stop()
    assert w.access() == []


def test_a_header_has_until_timeouts_header(weir, backend):
    w = front(weir, backend(), top='timeouts = { header = "300ms"; };')
    c = w.connect()
    c.send(V1[:20])
    assert c.at_eof(timeout=util.scaled(5))
    w.wait_error("PROXY_HEADER: no complete header within timeouts.header")
    c = w.connect()
    c.send(V1[:20])
    c.half_close()
    assert c.at_eof()
    w.wait_error("PROXY_HEADER: it ended within the header")


def test_only_peers_that_are_trusted_may_say_it(weir, backend):
    b = backend()
    w = front(weir, b, more='trusted = "10.0.0.0/8";')
    c = w.connect()
    c.send(V1 + GET)
    assert c.at_eof()
    w.wait_error(r"PROXY_HEADER: the peer is not in `trusted`: connection closed, client: 127\.0\.0\.1")
    assert b.take() == []
    w.reload(w.configure(CONF.replace("@MORE@", 'trusted = ( "127.0.0.1", "192.0.2.0/24" );')))
    c = w.connect()  # whom the header names is a proxy, too
    c.send(V1 + b"GET /x HTTP/1.1\r\nHost: h.test\r\nX-Forwarded-For: 203.0.113.5\r\n\r\n")
    assert c.response("GET").status == 200
    w.wait_access(r"^c=203\.0\.113\.5:- p=127\.0\.0\.1 ")
    assert b.take()[0].get("x-forwarded-for") == "203.0.113.5, 192.0.2.7"
    c = w.connect()  # whom the header names is a stranger: what he says himself is nothing
    c.send(V1.replace(b"192.0.2.7", b"203.0.113.9") + b"GET /x HTTP/1.1\r\nHost: h.test\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n")
    assert c.response("GET").status == 200
    assert b.take()[0].get("x-forwarded-for") == "203.0.113.9"


def test_every_site_of_an_address_must_trust_the_peer(weir, backend):
    w = weir("""
        sites = ( { listen = { address = "127.0.0.1:@PORT@"; proxy_protocol = true; }; names = "a"; trusted = "127.0.0.1"; respond = 200; },
                  { listen = "127.0.0.1:@PORT@"; names = "b"; trusted = "10.0.0.0/8"; respond = 200; } );
    """)
    c = w.connect()
    c.send(V1 + b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
    assert c.at_eof()


def test_rules_go_by_whom_the_header_names(weir, backend):
    w = front(weir, backend(), more='deny = "192.0.2.0/24";')
    c = w.connect()
    c.send(V1 + GET)
    assert c.response("GET").status == 403
    c = w.connect()
    c.send(V1.replace(b"192.0.2.7", b"203.0.113.7") + GET)
    assert c.response("GET").status == 200


OUT = """
    workers = 1;
    upstreams = { u = { servers = ( "@B@" ); proxy_protocol = @V@; @MORE@ }; };
    sites = ( { listen = "127.0.0.1:@PORT@"; trusted = "127.0.0.1"; proxy = "u"; } );
"""


def read_header(conn):
    """The PROXY header a backend's connection begins with: (source, its port, destination port)."""
    first = conn.read(6)
    if first == b"PROXY ":
        line = first
        while not line.endswith(b"\r\n"):
            line += conn.read(1)
        words = line.split()
        return (words[1].decode(),) if len(words) == 2 else (words[2].decode(), int(words[4]), int(words[5]))
    rest = conn.read(10)
    assert first + rest[:6] == SIGNATURE, first + rest
    command, family, n = struct.unpack(">BBH", rest[6:])
    block = conn.read(n)
    if command == 0x20 or family == 0:
        return ("LOCAL" if command == 0x20 else "UNKNOWN",)
    assert (command, family) == (0x21, 0x11)
    return (socket.inet_ntoa(block[:4]), *struct.unpack(">HH", block[8:12]))


@pytest.mark.parametrize("version", ["true", '"v2"'])
def test_backends_are_told_and_connections_never_shared(weir, raw_backend, version):
    seen = []

    def script(conn):
        whose = read_header(conn)
        head = conn.head()
        seen.append((whose, re.search(rb"(?i)x-real-ip: (\S+)", head).group(1).decode(), b"onnection: close" in head))
        conn.send(OK)
        conn.wait_close()

    b = raw_backend(script)
    w = weir(OUT, B=b.addr, V=version, MORE="")
    c = w.connect()
    here = c.s.getsockname()
    for address in ("192.0.2.1", "192.0.2.2", "192.0.2.1"):
        c.send(b"GET /x HTTP/1.1\r\nHost: h.test\r\nX-Forwarded-For: %s:99\r\n\r\n" % address.encode())
        assert c.response("GET").body == b"ok"
    c.send(GET)
    assert c.response("GET").body == b"ok"
    c.close()
    assert seen == [((a, 99, w.port), a, True) for a in ("192.0.2.1", "192.0.2.2", "192.0.2.1")] + [
        (("127.0.0.1", here[1], w.port), "127.0.0.1", True)]


def test_a_further_attempt_and_a_check_begin_with_a_header_too(weir, raw_backend):
    seen = []

    def script(conn):
        whose = read_header(conn)
        head = conn.head()
        if b"weir-check" not in head:
            seen.append(whose[0])
            if len(seen) == 1:
                conn.rst()
                return
        else:
            seen.append("check " + whose[0])
        conn.send(OK)

    b = raw_backend(script)
    w = weir(OUT, B=b.addr, V='"v2"', MORE='redispatch = false; health = "/h";')
    util.wait_for("a check", 5, lambda: "check LOCAL" in seen)
    seen.clear()
    assert w.get("/x").status == 200
    assert [s for s in seen if not s.startswith("check")] == ["127.0.0.1"] * 2


def haproxy(tmp_path, text):
    path = tmp_path / "haproxy.cfg"
    path.write_text("global\n    maxconn 100\ndefaults\n    mode http\n    timeout connect 5s\n    timeout client 10s\n    timeout server 10s\n" +
                    text)
    return subprocess.Popen(["haproxy", "-db", "-f", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@needs_haproxy
@pytest.mark.parametrize("word, version", [("send-proxy", "true"), ("send-proxy-v2", '"v2"')])
def test_between_two_haproxies(weir, free_port, tmp_path, word, version):
    """client → haproxy → weir → haproxy: the last one sees the client's own address and port."""
    outer, inner = free_port(), free_port()
    w = weir("""
        access_log = { path = "stdout"; format = "c=$remote_addr:$remote_port"; };
        upstreams = { u = { servers = ( "127.0.0.1:%d" ); proxy_protocol = %s; }; };
        sites = ( { listen = { address = "127.0.0.1:@PORT@"; proxy_protocol = true; }; trusted = "127.0.0.1"; proxy = "u"; } );
    """ % (inner, version))
    proc = haproxy(tmp_path, """
frontend outer
    bind 127.0.0.1:%d
    default_backend weir
backend weir
    server w 127.0.0.1:%d %s check check-send-proxy
frontend inner
    bind 127.0.0.1:%d accept-proxy
    http-request return status 200 content-type text/plain lf-string "%%[src]:%%[src_port] to %%[dst_port]"
""" % (outer, w.port, word, inner))
    try:
        util.wait_for("haproxy listens", 10, lambda: util.listening("127.0.0.1", outer))
        for _ in range(3):
            c = w.connect(outer)
            c.send(GET)
            whose = "%s:%d" % c.s.getsockname()
            r = c.response("GET")
            assert (r.status, r.body.decode()) == (200, "%s to %d" % (whose, outer))
            c.close()
            w.wait_access("^c=%s$" % re.escape(whose))
    finally:
        proc.terminate()
        proc.wait()
