# SPDX-License-Identifier: MIT
"""The command line: what it refuses, lists and imports; fixed rates; weir configurations by the verb itself."""
import os
import re
import subprocess

import pytest
from conftest import ROOT, WEIR
from harness import util
from lab import cli, machine
from lab.store import Store

LOAD = ("--load", "ab -n 300 -c 5")
pytestmark = pytest.mark.usefixtures("nothing_left")


def test_an_arm_that_cannot_run_says_why_in_its_row(lab, arms_file, tmp_path):
    path = arms_file(a={}, b={})
    text = open(path).read().rsplit(");", 1)[0]
    with open(path, "w") as f:
        f.write(
            text + ', { name = "gone"; url = "http://127.0.0.1:1"; needs = "no-such-program"; },'
            ' { name = "big"; url = "http://127.0.0.1:1"; min_cpus = 999; },'
            ' { name = "mute"; url = "http://127.0.0.1:${PORT_M}"; processes = { name = "app"; run = "sleep 60"; '
            'timeout = "200ms"; '
            'ready = "http://127.0.0.1:${PORT_M}/"; }; } );'
        )
    r = lab(path, *LOAD, "--rounds", 1, "--out", "o")
    assert r.returncode == 4, r.stderr
    assert re.search(r"gone +0 +cannot run here: no-such-program is not installed", r.stdout)
    assert re.search(r"big +0 +cannot run here: needs 999 CPUs", r.stdout)
    assert re.search(r"mute +0 +cannot run here: app: no answer from .* within 0.2 s", r.stdout)
    assert "cannot run here" in (tmp_path / "o" / "report.html").read_text()


def test_the_fixed_rate_counts_from_the_intended_time(lab, arms_file, tmp_path):
    """A server that stalls 0.5 s with every 40th answer: those that were due meanwhile have waited, too."""
    r = lab(
        arms_file(a={}, b={"stall": 0.5}), "--rate", 60, "--rounds", 1, "--load", "openloop -c 10 -d 1.8", "--out", "o"
    )
    assert r.returncode == 4, r.stdout + r.stderr
    rows = {(x["arm"], x["twin"]): x for x in Store.open(str(tmp_path / "o")).rows}
    assert rows["b", 0]["regime"] == "fixed rate" and rows["b", 0]["requests"] == 108
    assert rows["b", 0]["max_ms"] >= 490 and rows["b", 0]["p90_ms"] > 200  # 60 of them were due while it stalled
    assert "fixed rate, 99th percentile" in r.stdout


def test_a_server_that_cannot_carry_the_rate_is_refused(lab, arms_file, tmp_path):
    r = lab(
        arms_file(a={}, b={"stall": 1}), "--rate", 200, "--rounds", 1, "--load", "openloop -c 10 -d 1", "--out", "o"
    )
    assert r.returncode == 1 and "late" in r.stdout, r.stdout + r.stderr


@pytest.mark.parametrize(
    "args, code, message",
    [
        ((), 2, "usage"),
        (("gone.conf",), 1, "no file gone.conf, and no set-up of that name"),
        (("--load", "siege", "node-alone"), 1, "`siege` is none of"),
        (("--rate", "10", "--load", "ab -n 1", "node-alone"), 1, "no fixed rate"),
        (("--url", "x", "node-alone"), 1, "give the path"),
        (("--rounds", "0", "node-alone"), 1, "positive"),
        (("--nope",), 2, "unrecognized"),
        (("report", "/nonexistent"), 1, "not the folder of a measurement"),
    ],
)
def test_misuse(args, code, message, capsys, monkeypatch):
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    monkeypatch.setattr(cli.arms, "adopt_orphans", lambda: None)
    try:
        got = cli.main(list(args))
    except SystemExit as e:  # argparse's own refusals
        got = e.code
    assert got == code and message in capsys.readouterr().err


def test_who_is_to_be_judged_must_be_there(lab, arms_file):
    r = lab(arms_file(top='judge = ( "b", "c" );', a={}, b={}))
    assert r.returncode == 1 and "judge names `c`" in r.stderr


def test_list(lab):
    r = lab("--list")
    assert (
        r.returncode == 0
        and re.search(r"^meteor-1cpu +meteor-benchapp", r.stdout, re.M)
        and "cannot run here" in r.stdout
    )


def test_import(lab, data, tmp_path):
    for n, factor in enumerate((1, 1, 1, 1)):
        (tmp_path / ("w%d.txt" % n)).write_text(
            data("wrk-failed.txt").replace("  Non-2xx or 3xx responses: 812\n", "")
        )
    (tmp_path / "g.tsv").write_text(data("ab-g.tsv"))
    r = lab("import", "old=w0.txt", "old=w1.txt", "new=w2.txt", "new=w3.txt", "--out", "o")
    assert (
        r.returncode == 4
        and "new is inconclusive" in r.stdout
        and "unpaired" in (tmp_path / "o" / "summary.md").read_text()
    )
    r = lab("import", "x=g.tsv", "y=g.tsv")
    assert r.returncode == 1 and "too coarse" in r.stderr
    r = lab("import", "x=g.tsv", "y=g.tsv", "--metric", "p90", "--out", "o2")
    assert r.returncode == 4 and (tmp_path / "o2" / "report.html").exists()


@pytest.mark.skipif(
    not (os.access(WEIR, os.X_OK) and os.path.realpath(WEIR).startswith(os.path.realpath(ROOT) + "/")),
    reason="there is no weir built in this tree, which would know where its laboratory is",
)
def test_two_configurations_by_the_verb_itself(tmp_path):
    port = util.free_port()
    for name in "ab":
        (tmp_path / (name + ".conf")).write_text(
            'access_log = false; sites = ( { listen = "127.0.0.1:%d"; root = "%s"; } );' % (port, tmp_path)
        )
    (tmp_path / "x.txt").write_text("hello\n")
    r = subprocess.run(
        [
            WEIR,
            "ab",
            "a.conf",
            "b.conf",
            "--url",
            "/x.txt",
            "--load",
            "ab -n 500 -c 10",
            "--rounds",
            "1",
            "--warmup",
            "0s",
            "--cooldown",
            "0s",
            "--out",
            "o",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert r.returncode == 4, r.stdout + r.stderr
    s = Store.open(str(tmp_path / "o"))
    assert {x["arm"] for x in s.rows} == {"a", "b"} and all(x["pss_kb"] > 100 for x in s.rows)
    assert not machine.port_taken("127.0.0.1", port)
