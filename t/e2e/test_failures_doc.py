# SPDX-License-Identifier: MIT
"""docs/failures.md is what contrib/gen-failures makes of the tables, and lists every row."""
import os
import re
import subprocess

from harness.server import ROOT


def test_the_page_of_failures_is_up_to_date():
    made = subprocess.run([os.path.join(ROOT, "contrib", "gen-failures")], stdout=subprocess.PIPE, check=True,
                          universal_newlines=True).stdout
    with open(os.path.join(ROOT, "docs", "failures.md")) as f:
        assert f.read() == made, "run contrib/gen-failures >docs/failures.md"
    with open(os.path.join(ROOT, "src", "serve", "fail.def")) as f:
        symbols = re.findall(r"^FAIL\((\w+)", f.read(), re.M)
    assert len(symbols) > 30
    assert re.findall(r"^\| `(\w+)`", made, re.M)[:len(symbols)] == symbols
