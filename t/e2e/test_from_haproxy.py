# SPDX-License-Identifier: MIT
"""docs/from-haproxy.md: its words are settings, and its configuration serves with the server that is not there."""
import json
import os
import re

import test_strain
from harness.server import ROOT


def read(*path):
    with open(os.path.join(ROOT, *path)) as f:
        return f.read()


def test_the_published_configuration_with_the_server_that_is_not_there(weir, node, dead):
    text = re.sub(r"(?m)^#.*\n", "", read("conf", "setups", "node-balance.conf"))
    block = re.search(r"(?ms)^    workers = 2;.*?^    sites[^\n]*\n", read("docs", "from-haproxy.md")).group(0)
    assert re.sub(r"\s+", "", block) == re.sub(r"\s+", "", text)
    addrs = [node(test_strain.APP).addr for _ in range(3)] + [dead.addr]
    for port, addr in zip((8081, 8082, 8084, 8085), addrs):
        text = text.replace('"127.0.0.1:%d"' % port, '"%s"' % addr)
    w = weir(text.replace('"8090"', '"127.0.0.1:@PORT@"'))
    loads = [test_strain.Load(w) for _ in range(10)]
    w.wait_error("server %s gets no requests for 5 s: CONNECT_FAILED" % dead.addr)
    before = sum(t.good for t in loads)
    test_strain.util.wait_for("it goes on", 20, lambda: sum(t.good for t in loads) > before + 200)
    test_strain.finish(loads)
    servers = json.loads(w.cli("status", "--json").stdout)["upstreams"][0]["servers"]
    assert [s["state"] for s in servers] == ["up"] * 3 + ["ejected"]
    share = [s["requests"] for s in servers[:3]]
    assert max(share) - min(share) < sum(share) / 5


def test_each_word_on_weirs_side_is_a_setting():
    settings = read("docs", "settings.md")
    names = set(re.findall(r"^\| `(\w+)` \|", settings, re.M)) | {"listen", "servers"}
    rows = re.findall(r"^\| `[^|]+\| ([^|]+) \|", read("docs", "from-haproxy.md"), re.M)
    assert len(rows) > 30
    for row in rows:
        for word in re.findall(r"`([\w.]+)(?:`| =)", row):
            assert word == "weir" or word.split(".")[-1] in names, "%s in: %s" % (word, row)
