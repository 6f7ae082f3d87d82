# SPDX-License-Identifier: MIT
"""Applications that answer requests, behind weir: Express, an event stream, a page that React streams."""
import json

import pytest
from harness import apps

pytestmark = [pytest.mark.apps, pytest.mark.skipif(not apps.installed(), reason="npm packages of t/apps are missing")]
needs_chromium = pytest.mark.skipif(not apps.CHROMIUM, reason="chromium is not installed")

CONF = """
workers = 2; access_log = false; %s
upstreams = { app = { servers = ( %s ); }; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "app"; } );
"""


@pytest.fixture
def front(weir, app):
    """front(NAME, more configuration) → (the weir in front of it, the app)."""
    def start(name, more=""):
        a = app(name)
        return weir(CONF % (more, '"%s"' % a.addr)), a
    return start


# --- Express ----------------------------------------------------------------------------------------------------------

def where(got, port):
    """Ports differ between the two ways to the app, and nothing else may."""
    return json.loads(json.dumps(got).replace("127.0.0.1:%d" % port, "HERE"))


@pytest.mark.parametrize("more", ["", 'gzip = true; buffer_request = "64k";'])
def test_express_says_the_same_through_weir(front, more):
    w, app = front("express", more)
    through, direct = apps.run("express", w.port), apps.run("express", app.port)
    assert where(through, w.port) == where(direct, app.port)
    assert through["who"] == {"ip": "127.0.0.1", "protocol": "http", "hostname": "127.0.0.1", "secure": False,
                              "url": "/whoami?a=1&a=%20"}
    assert through["me"] == {"user": "a b;c=d", "theme": "dark", "from": "login"} and through["login"][0] == 302
    assert through["followed"]["body"] == '{"n":[1,"é"]}'
    for kind, size in (("small", 100), ("memory", 3 << 20), ("disk", 5 << 20)):
        assert [f["size"] for f in through[kind]["files"]] == [size, 64, 0]
    assert through["limit"]["status"] == 500 and "large" in through["limit"]["body"]
    assert [through[k]["status"] for k in ("badJson", "tooLarge", "not", "part", "boom", "late", "missing")] == [
        400, 413, 304, 206, 500, 418, 404]
    assert through["cut"] not in ("half", "")  # an answer that breaks off must not look complete


@needs_chromium
def test_express_in_a_browser(front):
    w, app = front("express")
    assert apps.seen(app, w.port) == {"color": "rgb(17, 34, 51)", "me": {"user": "a b;c=d", "theme": "dark"},
                                      "title": "from a page", "size": 100000}


# --- an event stream --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("gzip, accepts, coding", [("false", "gzip", None), ("true", "gzip", "gzip"),
                                                   ("true", "identity", None)])
def test_each_event_arrives_before_the_next_is_made(front, gzip, accepts, coding):
    w, _ = front("ticker", 'gzip = { min_length = "0k"; };' if gzip == "true" else "")
    got = apps.run("ticker", w.port, ENCODING=accepts)
    assert got["ticks"] == [[n, "tick %d\n%s" % (n, "x" * n)] for n in range(1, 41)]
    assert got["hello"] == ["0", "20"]  # it was dropped after the 20th, and came back by itself
    assert got["encoding"] == [coding] * 2


@needs_chromium
def test_an_event_stream_in_a_browser(front):
    w, app = front("ticker", "gzip = true;")
    assert apps.seen(app, w.port) == {"ticks": ["tick %d" % n for n in range(1, 11)]}


# --- React ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("more, coding", [("", None), ("gzip = true;", "gzip")])
def test_what_react_has_rendered_arrives_before_the_rest_is_made(front, more, coding):
    w, app = front("react", more)
    through, direct = apps.run("react", w.port, ENCODING="gzip"), apps.run("react", app.port)
    assert (through["html"], through["before"]) == (direct["html"], False)
    assert "entry <!-- -->199" in through["html"] and through["encoding"] == coding


@needs_chromium
def test_a_react_page_in_a_browser(front):
    w, app = front("react")
    assert apps.seen(app, w.port, "/asks?page") == {"h1": "first", "entries": 200}
