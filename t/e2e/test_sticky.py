# SPDX-License-Identifier: MIT
"""Sticky sessions: the cookie, what makes it void, and sessions that are learnt without one."""
import json
import re
import threading

import pytest
from harness import util

CONF = """workers = 2; timeouts = { connect = "1s"; server = "5s"; queue = "1s"; };
upstreams = { app = { %s servers = ( %s ); }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "app"; %s } );"""
COOKIE = 'sticky = { cookie = "srv"; key = "secret"; };'


def origin(backend, name):
    """A recording backend that says who it is."""
    b = backend(lambda bc, q: b.answer(bc, q, b"X-Server: %s\r\n" % name.encode()))
    return b


def origins(backend, n):
    return [origin(backend, "s%d" % i) for i in range(n)]


def servers(bs, *extra):
    return ", ".join('{ address = "%s"; %s }' % (b.addr, (list(extra) + [""] * len(bs))[i]) for i, b in enumerate(bs))


def cookie_of(r):
    """(name, value, attributes) of the one Set-Cookie, None without."""
    lines = r.all("set-cookie")
    if not lines:
        return None
    assert len(lines) == 1, lines
    pair, *attributes = [p.strip() for p in lines[0].split(";")]
    name, _, value = pair.partition("=")
    return name, value, attributes


def cookie(value, name="srv"):
    return {"Cookie": "a=1; %s=%s; z=9" % (name, value)}


# --- the cookie -------------------------------------------------------------------------------------------------------

def test_the_cookie_and_what_it_says(weir, backend):
    bs = origins(backend, 3)
    w = weir(CONF % (COOKIE, servers(bs), ""))
    r = w.get("/")
    name, value, attributes = cookie_of(r)
    assert (name, attributes) == ("srv", ["Path=/", "HttpOnly", "SameSite=Lax"])
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", value)
    seen = {value: r.get("x-server")}
    for _ in range(11):
        r = w.get("/")
        value = cookie_of(r)[1]
        assert seen.setdefault(value, r.get("x-server")) == r.get("x-server")
    assert sorted(seen.values()) == ["s0", "s1", "s2"]
    for value, server in seen.items():
        for _ in range(4):  # whatever loop
            r = w.get("/", cookie(value))
            assert (r.get("x-server"), cookie_of(r)) == (server, None)


def test_over_https_it_is_secure(weir, backend):
    bs = origins(backend, 2)
    w = weir(CONF % (COOKIE, servers(bs), 'trusted = ( "127.0.0.1" );'))
    assert "Secure" in cookie_of(w.get("/", {"X-Forwarded-Proto": "https"}))[2]
    assert "Secure" not in cookie_of(w.get("/"))[2]


@pytest.mark.parametrize("forged", ["", "x", "A" * 22, "A" * 5000, "127.0.0.1", "\"\"", "=;=", "\xff\xfe"])
def test_what_weir_has_not_signed_is_as_good_as_nothing(weir, backend, forged):
    bs = origins(backend, 2)
    w = weir(CONF % (COOKIE, servers(bs), ""))
    got = {w.get("/", cookie(forged)).get("x-server") for _ in range(4)}
    assert got == {"s0", "s1"}  # balanced
    assert cookie_of(w.get("/", cookie(forged))) is not None


def test_one_bit_more_or_less_is_another_cookie(weir, backend):
    bs = origins(backend, 2)
    w = weir(CONF % (COOKIE, servers(bs), ""))
    value = cookie_of(w.get("/"))[1]
    for i in (0, 10, 21):
        other = value[:i] + ("B" if value[i] != "B" else "C") + value[i + 1:]
        assert cookie_of(w.get("/", cookie(other))) is not None
    assert cookie_of(w.get("/", cookie(value))) is None


def test_of_several_cookies_of_the_name_the_good_one_counts(weir, backend):
    bs = origins(backend, 2)
    w = weir(CONF % (COOKIE, servers(bs), ""))
    value = cookie_of(w.get("/"))[1]
    r = w.get("/", [("Cookie", "srv=old; srvx=%s" % ("A" * 22)), ("Cookie", "xsrv=1; srv=%s" % value)])
    assert cookie_of(r) is None


def test_the_same_key_makes_the_same_cookies_another_does_not(weir, backend):
    bs = origins(backend, 2)
    conf = CONF % ("%s", servers(bs), "")
    value = cookie_of(weir(conf % COOKIE).get("/"))[1]
    assert cookie_of(weir(conf % COOKIE).get("/", cookie(value))) is None
    assert cookie_of(weir(conf % COOKIE.replace("secret", "else")).get("/", cookie(value))) is not None


def test_without_a_key_a_reload_and_a_new_set_of_servers_keep_clients_where_they_are(weir, backend):
    bs = origins(backend, 4)
    conf = CONF % ('sticky = { cookie = "srv"; };', "%s", "")
    w = weir(conf % servers(bs[:3]))
    homes = {}
    for _ in range(3):
        r = w.get("/")
        homes[cookie_of(r)[1]] = r.get("x-server")
    w.reload(conf % servers([bs[3], bs[2], bs[1]]))
    for value, server in homes.items():
        r = w.get("/", cookie(value))
        if server == "s0":
            assert cookie_of(r)[1] not in homes or r.get("x-server") != "s0"
        else:
            assert (r.get("x-server"), cookie_of(r)) == (server, None)


def test_a_draining_server_keeps_nobody_one_of_weight_0_its_own(weir, backend):
    bs = origins(backend, 3)
    w = weir(CONF % (COOKIE, servers(bs), ""))
    homes = {}
    for _ in range(3):
        r = w.get("/")
        homes[r.get("x-server")] = cookie_of(r)[1]
    w.reload(CONF % (COOKIE, servers(bs, "drain = true;", "weight = 0;"), ""))
    r = w.get("/", cookie(homes["s0"]))
    assert (r.get("x-server"), cookie_of(r)[1]) == ("s2", homes["s2"])
    r = w.get("/", cookie(homes["s1"]))
    assert (r.get("x-server"), cookie_of(r)) == ("s1", None)
    assert {w.get("/").get("x-server") for _ in range(4)} == {"s2"}


@pytest.mark.parametrize("redispatch", [True, False])
def test_c116_a_client_of_a_dead_server(weir, backend, redispatch):
    bs = origins(backend, 2)
    extra = COOKIE + "retries = 1; redispatch = %s;" % str(redispatch).lower()
    w = weir(CONF % (extra, servers(bs), ""))
    homes = {}
    for _ in range(2):
        r = w.get("/")
        homes[r.get("x-server")] = cookie_of(r)[1]
    bs[0].stop()
    r = w.get("/", cookie(homes["s0"]))
    if redispatch:
        assert (r.status, r.get("x-server"), cookie_of(r)[1]) == (200, "s1", homes["s1"])
    else:
        assert r.status in (502, 503)
        assert cookie_of(r) is None
    assert w.get("/", cookie(homes["s1"])).get("x-server") == "s1"


def test_c116_a_client_waits_for_its_own_server(weir, backend):
    gate = threading.Event()

    def slow(bc, q):
        if q.target == "/slow":
            gate.wait(util.scaled(10))
        return bs[0].answer(bc, q, b"X-Server: s0\r\n")
    bs = [backend(slow), origin(backend, "s1")]
    w = weir((CONF % (COOKIE + "maxconn = 1;", servers(bs), "")).replace('queue = "1s"', 'queue = "10s"'))
    homes = {}
    for _ in range(2):
        r = w.get("/")
        homes[r.get("x-server")] = cookie_of(r)[1]
    got = []

    def ask(path):
        got.append((path, w.get(path, cookie(homes["s0"]), timeout=10).get("x-server")))
    threads = [threading.Thread(target=ask, args=("/slow",))]
    threads[0].start()
    util.wait_for("s0 is busy", 5, lambda: "/slow" in bs[0].targets())
    threads.append(threading.Thread(target=ask, args=("/next",)))
    threads[1].start()
    assert w.get("/other", cookie(homes["s1"])).get("x-server") == "s1"
    assert w.get("/other").get("x-server") == "s1"
    gate.set()
    for t in threads:
        t.join()
    assert sorted(got) == [("/next", "s0"), ("/slow", "s0")]
    assert "/next" not in bs[1].targets()


@pytest.mark.parametrize("redispatch", [True, False])
def test_c116_those_who_wait_for_a_server_that_goes(weir, backend, redispatch):
    """Five clients of s0 stand in its queue when it goes down: to the other one with a new cookie, or 503 at once."""
    gate = threading.Event()

    def slow(bc, q):
        if q.target == "/slow":
            gate.wait(util.scaled(10))
        return bs[0].answer(bc, q, b"X-Server: s0\r\n")
    bs = [backend(slow), origin(backend, "s1")]
    extra = COOKIE + "maxconn = 1; redispatch = %s;" % str(redispatch).lower()
    w = weir((CONF % (extra, servers(bs), "")).replace('queue = "1s"', 'queue = "20s"').replace('"5s"', '"20s"'))
    homes = {}
    for _ in range(2):
        r = w.get("/")
        homes[r.get("x-server")] = cookie_of(r)[1]

    def ask(path):
        c = w.connect(timeout=20)
        c.send(b"GET %s HTTP/1.1\r\nHost: h\r\nCookie: srv=%s\r\n\r\n" % (path, homes["s0"].encode()))
        return c
    running = ask(b"/slow")
    util.wait_for("s0 is busy", 5, lambda: "/slow" in bs[0].targets())
    waits = [ask(b"/q%d" % i) for i in range(5)]
    util.wait_for("five wait", 5, lambda: json.loads(w.cli("status", "--json").stdout)["upstreams"][0]["waiting"] == 5)
    assert w.cli("server", "app/" + bs[0].addr, "down").returncode == 0
    for c in waits:
        r = c.response()
        if redispatch:
            assert (r.status, r.get("x-server"), cookie_of(r)[1]) == (200, "s1", homes["s1"])
        else:
            assert (r.status, cookie_of(r)) == (503, None)
    assert [t for t in bs[0].targets() if t.startswith("/q")] == []
    gate.set()
    r = running.response()  # what runs is not cut
    assert (r.status, r.get("x-server")) == (200, "s0")


def test_c124_a_backups_client_stays_there(weir, backend):
    bs = origins(backend, 2)
    w = weir(CONF % (COOKIE, servers(bs, "", "backup = true;"), ""))
    assert {w.get("/").get("x-server") for _ in range(3)} == {"s0"}
    bs[0].stop()
    r = w.get("/")
    assert (r.status, r.get("x-server")) == (200, "s1")
    home = cookie_of(r)[1]
    w.reload(CONF % (COOKIE, servers([origin(backend, "s2"), bs[1]], "", "backup = true;"), ""))
    assert w.get("/").get("x-server") == "s2"  # whoever is new goes to the primary at once
    assert w.get("/", cookie(home)).get("x-server") == "s1"


def test_explain_says_whose_client_it_is(weir, backend):
    bs = origins(backend, 3)
    w = weir(CONF % (COOKIE, servers(bs), ""))
    value = cookie_of(w.get("/"))[1]
    home = w.get("/", cookie(value)).get("x-server")
    got = w.cli("explain", "http://127.0.0.1:%d/" % w.port, "-H", "Cookie: srv=%s" % value)
    assert bs[int(home[1])].addr in got.stdout


# --- sessions without a cookie ----------------------------------------------------------------------------------------

AUTO = 'sticky = "auto";'


def engine(backend, name, framing="%s", split=False):
    """Engine.IO's polling transport: makes sessions, and knows its own only."""
    sids = []

    def handler(bc, q):
        m = re.search(r"[?&]sid=([^&]*)", q.target)
        if m:
            ok = m.group(1) in sids
            body = b"ok" if ok else b'{"code":1,"message":"Session ID unknown"}'
            bc.send(b"HTTP/1.1 %s\r\nX-Server: %s\r\nContent-Length: %d\r\n\r\n%s" % (
                b"200 OK" if ok else b"400 Bad Request", name.encode(), len(body), body))
            return True
        sids.append("%s-%s" % (name, "x" * 16 + str(len(sids))))
        body = (framing % ('0{"sid":"%s","upgrades":["websocket"],"pingInterval":25000}' % sids[-1])).encode()
        bc.send(b"HTTP/1.1 200 OK\r\nX-Server: %s\r\nContent-Length: %d\r\n\r\n" % (name.encode(), len(body)))
        for piece in ([body[i:i + 7] for i in range(0, len(body), 7)] if split else [body]):
            bc.send(piece)
            if split:
                threading.Event().wait(0.005)  # pieces that arrive one by one
        return True
    b = backend(handler)
    return b


@pytest.mark.parametrize("framing, split", [("%s", False), ("%s", True), ("96:%s", True),
                                            ("\x00\x09\x06\xff%s", False)])
def test_socket_io_sessions_without_cookies_stay_where_they_were_made(weir, backend, framing, split):
    bs = [engine(backend, "s%d" % i, framing, split) for i in range(3)]
    w = weir(CONF % (AUTO, servers(bs), ""))
    sids = []
    for _ in range(9):
        body = w.get("/socket.io/?EIO=4&transport=polling&t=abc").body.decode("utf-8")
        sids.append(re.search('"sid":"([^"]*)"', body).group(1))
    assert len({s.split("-")[0] for s in sids}) == 3
    for _ in range(2):
        for sid in sids:
            for method in (w.get, lambda path: w.post(path, b"40")):
                r = method("/socket.io/?EIO=4&transport=polling&t=abd&sid=" + sid)
                assert (r.status, r.get("x-server")) == (200, sid.split("-")[0])


def test_the_session_is_surer_than_the_cookie(weir, backend):
    bs = [engine(backend, "s%d" % i) for i in range(2)]
    w = weir(CONF % (AUTO, servers(bs), ""))
    tabs = []
    for _ in range(2):
        r = w.get("/socket.io/?EIO=4&transport=polling")
        tabs.append((re.search(b'"sid":"([^"]*)"', r.body).group(1).decode(), cookie_of(r)[:2]))
    assert tabs[0][1][0] == "weir_app"
    for (sid, _), (_, (name, other)) in zip(tabs, reversed(tabs)):
        r = w.get("/socket.io/?EIO=4&transport=polling&sid=" + sid, cookie(other, name))
        assert r.status == 200


@pytest.mark.threads
@pytest.mark.parametrize("path", ["/sockjs/%s/%s/", "/a/b/sockjs/%s/%s/", "/%s/%s/"])
def test_sockjs_sessions_without_cookies(weir, backend, path):
    bs = origins(backend, 3)
    w = weir(CONF % (AUTO, servers(bs), ""))
    homes = {}
    for i in range(9):
        base = path % ("%03d" % (i % 2), "session%d" % i)
        homes[base] = w.post(base + "xhr", b"").get("x-server")
    assert set(homes.values()) == {"s0", "s1", "s2"}
    for transport in ("xhr_send", "xhr", "xhr_streaming", "eventsource", "jsonp", "jsonp_send", "htmlfile"):
        for base, home in homes.items():
            assert w.post(base + transport, b"").get("x-server") == home
    assert {w.get("/sockjs/info").get("x-server") for _ in range(4)} == {"s0", "s1", "s2"}


def test_a_session_of_a_dead_server_goes_elsewhere_and_stays_there(weir, backend):
    bs = origins(backend, 3)
    w = weir(CONF % (AUTO, servers(bs), ""))
    home = w.post("/sockjs/000/abc/xhr", b"").get("x-server")
    bs[int(home[1])].stop()
    other = w.get("/sockjs/000/abc/eventsource").get("x-server")
    assert other != home
    for _ in range(4):
        assert w.get("/sockjs/000/abc/eventsource").get("x-server") == other


def test_only_auto_learns(weir, backend):
    bs = origins(backend, 3)
    w = weir(CONF % (COOKIE, servers(bs), ""))
    assert len({w.post("/sockjs/000/abc/xhr", b"").get("x-server") for _ in range(3)}) == 3
