# SPDX-License-Identifier: MIT
"""Whole measurements of stand-in servers: what is measured, and what is refused."""
import gzip
import os
import re

import pytest
from conftest import STAND_IN, ports_free
from lab import loads
from lab.arms import Arm
from lab.runner import Runner
from lab.store import Store

LOAD = ("--load", "ab -n 300 -c 5")
pytestmark = pytest.mark.usefixtures("nothing_left")


def test_two_arms_that_are_the_same(lab, arms_file, tmp_path):
    r = lab(
        arms_file(a={}, b={}),
        *LOAD,
        "--rounds",
        2,
        "--seed",
        5,
        "--url",
        "/x",
        "--url",
        "/y",
        "--warmup",
        "100ms",
        "--out",
        "o"
    )
    assert r.returncode == 4, r.stderr
    s = Store.open(str(tmp_path / "o"))
    assert len(s.rows) == 2 * 3 * 2
    seen = [(x["round"], x["arm"], x["twin"], x["url"]) for x in s.rows]
    assert sorted(seen) == sorted(
        (n, a, t, u) for n in (1, 2) for a, t in (("a", 0), ("a", 1), ("b", 0)) for u in ("/x", "/y")
    )
    assert all(
        x["requests"] == 300 and x["failures"] == 0 and x["rps"] > 0 and x["cpu_us"] > 0 and x["pss_kb"] > 1000
        for x in s.rows
    )
    assert [x["start"] for x in s.rows] == sorted(x["start"] for x in s.rows)
    assert s.meta["seed"] == 5 and s.meta["environment"]["cpus"] and s.meta["environment"]["versions"]["ab"]
    assert s.meta["answers"]["a"]["/x"]["status"] == 200 and len(s.meta["answers"]["b"]["/y"]["hash"]) == 64
    assert "inconclusive" in r.stdout.strip().split("\n")[-1]
    assert re.search(r"\[ ?\d+ %, \d+:\d\d left\]  round 2, b /y: ", r.stderr)
    names = set(os.listdir(tmp_path / "o"))
    assert {"env.json", "runs.tsv", "quantiles.tsv", "raw", "summary.md", "report.html", "plots"} <= names
    with gzip.open(tmp_path / "o" / "raw" / "1.tsv.gz", "rt") as f:
        assert f.readline().startswith("starttime\t") and len(f.readlines()) == 300
    assert ports_free(tmp_path / "o")


def runner(seed=1, warmup=0):
    """One that has not been given anything to run."""
    arms = [Arm(name, name, "") for name in "ab"]
    command = loads.Command("ab -n 1")
    return Runner(
        arms, ["/x", "/y"], command, None, None, print, warmup=warmup, cooldown=0, load_cpus=[], rng_seed=seed
    )


def test_what_the_warm_up_left_to_do_is_waited_for():
    used = [0, 5, 10, 15, 15, 99]  # seconds of processor time, at each look

    class Busy:
        processes = ["one"]

        def cpu_us(self):
            return {"one": used.pop(0) * 1e6}

    runner(warmup=1)._settle(Busy())
    assert used == [99]
    runner(warmup=0)._settle(Busy())  # no warm-up, nothing left of it
    assert used == [99]


def test_the_order_is_drawn_from_the_seed(monkeypatch):
    orders = []
    for seed in (1, 1, 2):
        made = runner(seed)
        order = []
        for name, instead in (
            ("start", lambda arm: None),
            ("stop", lambda: None),
            ("one", lambda arm, twin, url, number: order.append((number, arm.name, twin, url))),
        ):
            monkeypatch.setattr(made, name, instead)
        for number in range(1, 9):
            made.round(number)
        orders.append(order)
    assert orders[0] == orders[1] != orders[2]
    assert [o[0] for o in orders[0]] == sorted(o[0] for o in orders[0])  # a round is over before the next begins
    for number in range(1, 9):
        assert sorted(o[1:] for o in orders[0] if o[0] == number) == sorted(
            (arm, twin, url) for arm, twin in (("a", False), ("a", True), ("b", False)) for url in ("/x", "/y")
        )
    assert len({tuple(o[1:] for o in orders[0] if o[0] == number) for number in range(1, 9)}) > 4


def test_several_generators_at_once_are_one_run(lab, arms_file, tmp_path):
    r = lab(arms_file(a={}, b={"bad_every": 100, "after": 301}), *LOAD, "--generators", 3, "--rounds", 1, "--out", "o")
    rows = {(x["arm"], x["twin"]): x for x in Store.open(str(tmp_path / "o")).rows}
    assert rows["a", 0]["requests"] == rows["b", 0]["requests"] == 900 and rows["a", 0]["failures"] == 0
    assert rows["b", 0]["f_status"] == 6 and "b is refused (b failed 6 requests (status 6))" in r.stdout
    assert {"1.tsv.gz", "1-2.tsv.gz", "1-3.tsv.gz", "1-3.out"} <= set(os.listdir(tmp_path / "o" / "raw"))
    assert "ab -n 300 -c 5, 3 at once" in (tmp_path / "o" / "summary.md").read_text()


def test_a_process_that_is_to_leave_is_no_death_but_what_fails_counts(lab, tmp_path):
    process = (
        '{ name = "%s"; run = "/usr/bin/python3 ' + STAND_IN + ' ${PORT_%s}"; ready = "tcp://127.0.0.1:${PORT_%s}"; %s }'
    )
    arm = '{ name = "%s"; url = "http://127.0.0.1:${PORT_A}"; processes = ( %s ); }'
    leave = 'leave = "100ms";'
    (tmp_path / "x.setup").write_text(
        'warmup = "0s"; cooldown = "0s"; arms = ( %s, %s );'
        % (
            arm % ("stays", process % ("app", "A", "A", "") + ", " + process % ("beside", "B", "B", leave)),
            arm % ("goes", process % ("app", "A", "A", leave)),
        )
    )
    r = lab("x.setup", "--rate", 100, "--load", "openloop -c 5 -d 0.5", "--rounds", 1, "--out", "o")
    rows = {(x["arm"], x["twin"]): x for x in Store.open(str(tmp_path / "o")).rows}
    assert rows["stays", 0]["failures"] == rows["stays", 1]["failures"] == 0, r.stderr
    assert rows["goes", 0]["failures"] > 20 and "goes is refused" in r.stdout
    assert ports_free(tmp_path / "o")


def test_the_report_can_be_made_again(lab, arms_file, tmp_path):
    first = lab(arms_file(a={}, b={}), *LOAD, "--rounds", 1, "--out", "o")
    page = (tmp_path / "o" / "report.html").read_text()
    (tmp_path / "o" / "report.html").unlink()
    again = lab("report", "o")
    assert (again.returncode, again.stdout) == (first.returncode, first.stdout)
    assert (tmp_path / "o" / "report.html").read_text() == page


@pytest.mark.parametrize(
    "fault, why",
    [
        ({"bad_every": 100}, "status 500 instead of status 200"),
        ({"short_every": 100}, "52 bytes instead of 104 bytes"),
        ({"body": "Goodbye, you"}, "12 bytes instead of 104 bytes"),
        ({"body": "Hello, World!" * 8}, "other bytes"),
    ],
)
def test_another_answer_is_refused_before_anything_is_timed(lab, arms_file, tmp_path, fault, why):
    r = lab(arms_file(a={}, b=fault), *LOAD, "--rounds", 6, "--out", "o")
    assert r.returncode == 1
    assert r.stdout.strip().split("\n")[-1].startswith("Refused: ") and why in r.stdout
    assert Store.open(str(tmp_path / "o")).rows == []


@pytest.mark.parametrize("load", ["ab -n 1000 -c 5", "wrk -t1 -c5 -d1s"])
@pytest.mark.parametrize("fault", ["bad_every", "short_every"])
def test_faults_that_begin_later_are_refused_too(lab, arms_file, fault, load):
    body = "x" * 2000
    r = lab(
        arms_file(a={"body": body}, b={"body": body, fault: 100, "after": 301}),
        "--load",
        load,
        "--rounds",
        1,
        "--out",
        "o",
    )
    assert r.returncode == 1, r.stdout + r.stderr
    assert re.search(r"b is refused \(b failed \d+ requests? \((status|length) ", r.stdout), r.stdout
