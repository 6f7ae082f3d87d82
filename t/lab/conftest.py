# SPDX-License-Identifier: MIT
"""Fixtures of the laboratory's tests. Like those of t/e2e, of which they use the helpers:

    WEIR_BIN=build/plain/src/weir /usr/bin/python3 -m pytest t/lab

Pure parts are imported; whole measurements are runs of contrib/ab/main.py or of `weir ab`, with loads of a second at
most: what is asserted is never a time, only what is said about it.
"""
import json
import os
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "contrib", "ab"), os.path.join(ROOT, "t", "e2e")]

from harness import util  # noqa: E402
from lab import loads, machine, store  # noqa: E402

DATA = os.path.join(HERE, "data")
MAIN = os.path.join(ROOT, "contrib", "ab", "main.py")
WEIR = os.environ.get("WEIR_BIN") or os.path.join(ROOT, "build", "plain", "src", "weir")


def pytest_collection_modifyitems(config, items):
    if os.environ.get("WEIR_LONG") != "1":
        left_out = [i for i in items if i.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [i for i in items if not i.get_closest_marker("long")]


@pytest.fixture
def data():
    def read(name):
        with open(os.path.join(DATA, name), encoding="utf-8") as f:
            return f.read()

    return read


@pytest.fixture
def lab(tmp_path):
    """lab(*args) runs the laboratory to its end in tmp_path: .returncode .stdout .stderr."""

    def run(*args, **env):
        return subprocess.run(
            ["/usr/bin/python3", MAIN, *map(str, args)],
            cwd=tmp_path,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=util.scaled(120),
        )

    return run


STAND_IN = os.path.join(HERE, "stand_in.py")


@pytest.fixture
def arms_file(tmp_path):
    """arms_file(a={...}, b={...}) writes a set-up with a stand-in server for each arm; the values are its faults."""

    def write(top="", **arms):
        items = []
        for name, faults in arms.items():
            env = " ".join('%s = "%s";' % (k.upper(), v) for k, v in faults.items())
            items.append(
                '{ name = "%s"; url = "http://127.0.0.1:${PORT_%s}"; processes = { name = "app"; '
                'run = "/usr/bin/python3 %s ${PORT_%s}"; env = { %s }; '
                'ready = "http://127.0.0.1:${PORT_%s}/ready"; }; }'
                % (name, name.upper(), STAND_IN, name.upper(), env, name.upper())
            )
        path = tmp_path / "stand-ins.setup"
        path.write_text('warmup = "0s"; cooldown = "0ms"; %s\narms = ( %s );\n' % (top, ",\n".join(items)))
        return str(path)

    return write


@pytest.fixture
def measurement(tmp_path):
    """measurement({"a": [...], "again": [...], "b": [...]}) → a Store with these requests/s and nothing else."""

    def make(rounds, margin=0.03, seed=1, name="m", **more):
        arms = [a for a in rounds if a != "again"]
        meta = {
            "title": "made",
            "about": "",
            "note": "",
            "command": "weir ab",
            "seed": seed,
            "regime": "saturation",
            "load": "wrk",
            "rate": None,
            "tool": "wrk",
            "urls": ["/"],
            "metric": "rps",
            "margin": margin,
            "warmup": 1,
            "cooldown": 0,
            "load_cpus": [],
            "published": [],
            "published_from": "",
            "problems": [],
            "warnings": [],
            "arms": [{"name": a, "title": a, "skip": None, "processes": []} for a in arms],
            **more,
        }
        s = store.Store(str(tmp_path / name))
        s.meta = meta
        run = 0
        for arm, values in rounds.items():
            for k, v in enumerate(values, 1):
                run += 1
                load = loads.Load()
                load.requests, load.seconds, load.rps = 1000, 1000 / v, v
                s.rows.append(
                    store.row_of(
                        run, k, arms[0] if arm == "again" else arm, arm == "again", "/", "saturation", float(run), load
                    )
                )
        return s

    return make


@pytest.fixture
def nothing_left(tmp_path, monkeypatch):
    """Marks all that the test starts by a variable of the environment; fails it if any of that runs when it ends."""
    mark = "LAB_TEST=%s" % tmp_path
    monkeypatch.setenv(*mark.split("=", 1))

    def left():
        return [
            p
            for p in machine.parents()
            if p != os.getpid() and mark in machine.read("/proc/%d/environ" % p).split("\0")
        ]

    yield left
    assert [machine.read("/proc/%d/cmdline" % p).replace("\0", " ") for p in left()] == []


def ports_of(out):
    return [int(n) for n in re.findall(r"127\.0\.0\.1:(\d+)", json.dumps(store.Store.open(str(out)).meta["arms"]))]


def ports_free(out):
    ports = ports_of(out)
    return ports and not any(machine.port_taken("127.0.0.1", p) for p in ports)
