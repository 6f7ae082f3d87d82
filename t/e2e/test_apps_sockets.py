# SPDX-License-Identifier: MIT
"""Applications with lasting connections, behind weir: socket.io and SockJS with all their transports, plain ws."""
import pytest
from conftest import LONG
from harness import apps, util

pytestmark = [pytest.mark.apps, pytest.mark.skipif(not apps.installed(), reason="npm packages of t/apps are missing")]
needs_chromium = pytest.mark.skipif(not apps.CHROMIUM, reason="chromium is not installed")

CONF = """
workers = 2; access_log = false;
upstreams = { app = { %s servers = ( %s ); }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "app"; } );
"""
COOKIE = 'sticky = { cookie = "srv"; key = "k"; };'
AUTO = 'sticky = "auto";'


def fronted(weir, apps_, more=""):
    return weir(CONF % (more, ", ".join('"%s"' % a.addr for a in apps_)))


# --- socket.io --------------------------------------------------------------------------------------------------------

def check_talk(talk, transport):
    assert {k: v for k, v in talk.items() if k != "server"} == {
        "transport": transport, "echo": True, "inOrder": True}


@pytest.mark.parametrize("sticky", [AUTO, COOKIE], ids=["auto", "cookie"])
@pytest.mark.parametrize("transports", ["polling,websocket", "polling", "websocket"])
def test_socket_io(weir, app, transports, sticky):
    """Eight clients spread over two servers, each with one of them; both are restarted, and each client comes back."""
    two = [app("socketio"), app("socketio")]
    w = fronted(weir, two, sticky)
    client = apps.Client("socketio", w.port, TRANSPORTS=transports, COOKIE=int(sticky == COOKIE), RESTART=1)
    try:
        assert client.line() == "RESTART"
        for a in two:
            a.close()
            app("socketio", port=a.port)
        got = client.result()
    finally:
        client.close()
    last = transports.split(",")[-1]
    assert {c["first"]["server"] for c in got} == {str(a.port) for a in two}
    for c in got:
        check_talk(c["first"], last)
        check_talk(c["second"], last)
        assert c["isNew"] and c["errors"] == 0


def test_socket_io_over_polling_needs_it(weir, app):
    """What `sticky` is for: without it a session's requests reach a server that does not know it."""
    two = [app("socketio"), app("socketio")]
    w = fronted(weir, two)
    assert '"code":1' in w.get("/socket.io/?EIO=4&transport=polling&sid=nobodys").body.decode()
    sid = w.get("/socket.io/?EIO=4&transport=polling").body.decode().split('"')[3]
    answers = [w.post("/socket.io/?EIO=4&transport=polling&sid=" + sid, b"40").status for _ in range(2)]
    assert sorted(answers) == [200, 400]


@needs_chromium
def test_socket_io_in_a_browser(weir, app):
    a = app("socketio")
    w = fronted(weir, [a], AUTO)
    assert apps.seen(a, w.port) == {"numbers": 20, "upgraded": "websocket", "text": "grüß"}


# --- SockJS -----------------------------------------------------------------------------------------------------------

def test_sockjs(weir, app):
    two = [app("sockjs"), app("sockjs")]
    got = apps.run("sockjs", fronted(weir, two, AUTO).port)
    assert list(got) == ["websocket", "xhr-streaming", "eventsource", "xhr-polling"]
    for transport, sessions in got.items():
        assert {s["server"] for s in sessions} == {str(a.port) for a in two}, transport
        for s in sessions:
            assert (s["same"], s["transport"], s["code"], s["reason"]) == (True, transport, 3001, "enough")


@needs_chromium
def test_sockjs_in_a_browser(weir, app):
    a = app("sockjs")
    got = apps.seen(a, fronted(weir, [a], AUTO).port)
    htmlfile = got.pop("iframe-htmlfile")  # not every browser's
    assert htmlfile in ("iframe-htmlfile,one,zwölf", "closed: 2000")
    assert got == {name: name + ",one,zwölf" for name in (
        "websocket", "xhr-streaming", "eventsource", "iframe-eventsource", "xhr-polling", "iframe-xhr-polling",
        "jsonp-polling")}


# --- ws ---------------------------------------------------------------------------------------------------------------

def test_ws(weir, app):
    n = 8000 if LONG else 1000
    a = app("ws")
    w = fronted(weir, [a])
    got = apps.run("ws", w.port, N=n)
    assert got["open"] == n and got["closed"] == {"4321 done": n}
    assert got["echo0"] == got["echo1"] == {"true": n}
    assert got["deflate"] == {"extensions": "permessage-deflate", "protocol": "chat", "echo": [True] * 4,
                              "closed": "4321 done"}
    assert got["plain"] == {"extensions": "", "protocol": "chat", "echo": [True] * 4, "closed": "4321 done"}
    assert got["pong"] == "are you there"
    util.wait_for("all have gone, each with its code", 10, lambda: w.get("/open").body == b'{"open":0,"codes":{"4321":%d}}'
                  % (n + 3))


@needs_chromium
def test_ws_in_a_browser(weir, app):
    a = app("ws")
    got = apps.seen(a, fronted(weir, [a]).port)
    assert got.pop("extensions").startswith("permessage-deflate")
    assert got == {"got": ["grün", 100000], "code": 4000, "clean": True}
