# SPDX-License-Identifier: MIT
"""The demo's app behind both shipped Meteor set-ups: the same bytes either way, and who answers what."""
import asyncio
import json
import os
import re
import subprocess

import pytest
import websockets
from harness.server import ROOT
from wire import Conn

APP = os.path.join(ROOT, "contrib", "demo-app")


@pytest.fixture
def demo(tmp_path, node, weir, free_port):
    """demo(set-up) → (weir before the app, the app)."""
    subprocess.run(["node", os.path.join(APP, "bundle.js"), str(tmp_path)], check=True)
    with open(os.path.join(APP, "app.js")) as f:
        app = node(f.read(), env={"BUNDLE": str(tmp_path)})

    def start(name):
        port = free_port()
        return weir('include = "%s";' % os.path.join(ROOT, "conf", "setups", name), port=port,
                    env={"APP": app.addr, "BUNDLE": str(tmp_path), "LISTEN": "127.0.0.1:%d" % port}), app
    return start


def ask(port, path):
    c = Conn("127.0.0.1", port, 10)
    c.send(b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % path.encode())
    r = c.response()
    c.close()
    return r


@pytest.mark.parametrize("name", ["meteor-proxy.conf", "meteor-static.conf"])
def test_the_answers_are_the_apps_whoever_gives_them(demo, name):
    w, app = demo(name)
    page = ask(app.port, "/")
    assert len(page.body) == 687
    assets = re.findall(r'(?:href|src)="(/[^"]+)"', page.body.decode())
    assert sorted(os.path.splitext(a)[1] for a in assets) == [".css", ".jpg", ".js"]
    for path in ["/", "/packages/demo/readme.txt", *assets]:
        direct, front = ask(app.port, path), w.get(path)
        assert (front.status, front.body) == (200, direct.body), path
        from_disk = name == "meteor-static.conf" and path != "/"
        # Only weir gives the 30 days; only the app has a max-age of 0.
        assert ("max-age=2592000" in (front.get("cache-control") or "")) == from_disk, path
    assert len(ask(app.port, "/image.jpg").body) == 100018
    assert w.get("/no-such-page").status == 404


@pytest.mark.parametrize("name", ["meteor-proxy.conf", "meteor-static.conf"])
def test_the_pages_websocket_works(demo, name):
    w, _ = demo(name)

    async def talk():
        async with websockets.connect("ws://127.0.0.1:%d/websocket" % w.port) as ws:
            first = json.loads(await ws.recv())
            await ws.send(json.dumps(12.5))
            while True:  # ticks come in between
                m = json.loads(await ws.recv())
                if "echo" in m:
                    return first, m
    first, echo = asyncio.run(asyncio.wait_for(talk(), 20))
    assert first["tick"] == 1 and echo == {"echo": 12.5}


def test_the_picture_is_a_jpeg_of_exactly_that_size_each_time(tmp_path):
    images = []
    for name in ("a", "b"):
        subprocess.run(["node", os.path.join(APP, "bundle.js"), str(tmp_path / name)], check=True)
        images.append((tmp_path / name / "programs" / "web.browser" / "app" / "image.jpg").read_bytes())
    assert images[0] == images[1] and len(images[0]) == 100018
    assert images[0].startswith(b"\xff\xd8\xff") and images[0].endswith(b"\xff\xd9")
