# SPDX-License-Identifier: MIT
"""contrib/demo without its build, with few requests: six rows and the verdict, and nothing is left."""
import os
import re
import subprocess

import pytest
from conftest import ROOT, WEIR
from harness import util

pytestmark = [
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.skipif(not os.access(WEIR, os.X_OK), reason="weir is not built"),
]


def test_the_demo_prints_six_rows_and_the_verdict(tmp_path):
    os.makedirs(tmp_path / "src")
    os.symlink(os.path.abspath(WEIR), tmp_path / "src" / "weir")
    r = subprocess.run(
        [
            "/usr/bin/python3",
            os.path.join(ROOT, "contrib", "demo-app", "run.py"),
            *("--once --requests 50 --rounds 1 --warmup 50ms --build %s" % tmp_path).split(),
        ],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=util.scaled(60),
    )
    assert r.returncode == 0, r.stdout + r.stderr
    table, last = r.stdout.strip().split("\n\n")[-2:]
    head, *rows = [re.split(r"  +", ln) for ln in table.split("\n")]
    assert head == ["URL", "setup", "requests/s", "mean ms", "p99 ms", "failures", "ratio to Node"]
    assert [row[:2] for row in rows] == [
        [url, arm] for url in ("/", "/image.jpg") for arm in ("node", "weir-proxy", "weir-static")
    ]
    for row in rows:
        rps, mean, p99, failures, ratio = (float(cell.replace(",", "")) for cell in row[2:])
        assert rps > 0 and mean > 0 and p99 > 0 and failures == 0 and ratio > 0
    assert rows[0][-1] == rows[3][-1] == "1.00"
    assert re.match(r"Against weir-proxy .* for /: weir-static is .*; for /image.jpg: weir-static is ", last)
    assert "\n" not in last
