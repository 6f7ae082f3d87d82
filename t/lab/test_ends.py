# SPDX-License-Identifier: MIT
"""However a measurement ends, it says so, nothing is left running, and the ports are free."""
import os
import signal
import subprocess

import pytest
from conftest import MAIN, STAND_IN, ports_free
from harness import util
from lab.store import Store

LOAD = ("--load", "ab -n 300 -c 5")
pytestmark = pytest.mark.usefixtures("nothing_left")


def test_a_process_that_dies_is_reported(lab, arms_file, tmp_path):
    r = lab(arms_file(a={}, b={"die_at": 400}), "--load", "ab -n 500 -c 5", "--rounds", 2, "--out", "o")
    assert r.returncode == 1
    last = r.stdout.strip().split("\n")[-1]
    assert last.startswith("No verdict: ") and "b: app ended by signal 9" in last
    assert ports_free(tmp_path / "o")


def running(tmp_path, *args):
    """The laboratory in the background, as soon as it measures."""
    log = open(tmp_path / "err", "w+b")
    p = subprocess.Popen(
        ["/usr/bin/python3", MAIN, *args],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    util.wait_for("a run has begun", 30, lambda: "round 1" in (tmp_path / "err").read_text())
    return p, log


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(arms_file, tmp_path, sig):
    p, log = running(
        tmp_path, arms_file(a={"child": 1}, b={}), "--load", "ab -t 2 -n 1000000 -c 5", "--rounds", "9", "--out", "o"
    )
    p.send_signal(sig)
    assert p.wait(util.scaled(20)) == 1
    log.close()
    assert "interrupted after" in (tmp_path / "err").read_text().strip().split("\n")[-1]
    assert ports_free(tmp_path / "o") and (tmp_path / "o" / "summary.md").exists()


def test_a_child_that_ignores_term_is_ended(lab, arms_file):
    assert lab(arms_file(a={"child": 1}, b={}), *LOAD, "--rounds", 1).returncode == 4  # nothing_left looks


def test_killed_itself_it_takes_the_servers_along(arms_file, tmp_path, nothing_left):
    p, log = running(
        tmp_path, arms_file(a={}, b={}), "--load", "ab -t 2 -n 1000000 -c 5", "--rounds", "9", "--out", "o"
    )
    p.kill()
    p.wait()
    log.close()
    util.wait_for("all that it started is gone", 10, lambda: not nothing_left())


def test_a_taken_port_is_not_measured(lab, tmp_path):
    server = subprocess.Popen(["/usr/bin/python3", STAND_IN, str(port := util.free_port())])
    try:
        util.wait_for("the other server", 10, lambda: util.listening("127.0.0.1", port))
        (tmp_path / "x.setup").write_text(
            'arms = { name = "x"; url = "http://127.0.0.1:%d"; processes = '
            '{ name = "app"; run = "/usr/bin/python3 %s %d"; }; };' % (port, STAND_IN, port)
        )
        r = lab("x.setup", *LOAD, "--rounds", 1)
        assert "port %d is taken by somebody else" % port in r.stdout
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def running_servers():
    """running_servers({faults}, ...) → base URLs of stand-ins that the laboratory did not start."""
    servers = []

    def start(*faults):
        ports = [util.free_port() for _ in faults]
        for port, fault in zip(ports, faults):
            env = {**os.environ, **{k.upper(): str(v) for k, v in fault.items()}}
            servers.append(subprocess.Popen(["/usr/bin/python3", STAND_IN, str(port)], env=env))
        for port in ports:
            util.wait_for("the servers", 20, lambda p=port: util.listening("127.0.0.1", p))
        return ["http://127.0.0.1:%d" % p for p in ports]

    yield start
    for s in servers:
        assert s.poll() is None  # they are not the laboratory's to stop
        s.kill()
        s.wait()


def test_servers_that_run_already(lab, running_servers):
    urls = running_servers({}, {})
    r = lab(*urls, *LOAD, "--rounds", 1, "--warmup", "0s", "--cooldown", "0s")
    assert r.returncode == 4 and urls[1][7:] + " is inconclusive" in r.stdout


def test_until_decided_stops_when_it_is(lab, running_servers, tmp_path):
    urls = running_servers({"stall": 0.05}, {})
    r = lab(
        *urls, "--load", "ab -n 120 -c 2 -k", "--warmup", "0s", "--cooldown", "0s", "--until-decided", "--out", "o"
    )
    assert r.returncode == 0, r.stdout + r.stderr
    assert urls[1][7:] + " is faster" in r.stdout
    assert max(x["round"] for x in Store.open(str(tmp_path / "o")).rows) in (8, 12, 18)


def test_a_generator_that_gives_up_ends_it(lab, running_servers):
    r = lab(*running_servers({}, {}), "--load", "ab -n 10 -c 20", "--rounds", 6, "--warmup", "0s")
    assert r.returncode == 1 and "ab gave up: " in r.stdout and "Traceback" not in r.stderr
