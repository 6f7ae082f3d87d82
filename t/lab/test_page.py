# SPDX-License-Identifier: MIT
"""report.html in a browser: it renders, its script has no error, and its figures are those of runs.tsv."""
import csv
import glob
import html.parser
import json
import os
import re
import shutil
import statistics
import subprocess

import pytest
from harness import util

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--window-size=1200,900",
]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "probe.js")) as probe:
    PROBE = "<script>%s</script></body>" % probe.read()


class Page(html.parser.HTMLParser):
    """All cells that carry a value, and what the probe saw."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.seen, self.open, self.scripts = [], None, None, 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag == "td":
            self.open = [a, ""]
            self.cells.append(self.open)
        if tag == "body":
            self.seen = json.loads(a["data-seen"])

    def handle_endtag(self, tag):
        if tag == "td":
            self.open = None

    def handle_data(self, text):
        if self.open:
            self.open[1] += text


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A real measurement, and what Chromium makes of its page."""
    from conftest import MAIN, STAND_IN

    folder = tmp_path_factory.mktemp("page")
    arms = ",".join(
        '{ name = "%s"; url = "http://127.0.0.1:${PORT_%d}"; processes = { name = "app"; '
        'run = "/usr/bin/python3 %s ${PORT_%d}"; '
        'ready = "http://127.0.0.1:${PORT_%d}/ready"; }; }' % (name, n, STAND_IN, n, n)
        for n, name in enumerate(["one", "two"])
    )
    (folder / "x.setup").write_text(
        'title = "a <b> & \\"c\\""; warmup = "0s"; cooldown = "0s"; load = "ab -n 200 -c 5"; '
        'urls = ( "/", "/b?c=1&d=2" ); '
        'arms = ( %s, { name = "gone"; needs = "no-such-program"; } );' % arms
    )
    done = subprocess.run(
        ["/usr/bin/python3", MAIN, "x.setup", "--rounds", "2", "--out", "o"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 4, done.stderr
    page = (folder / "o" / "report.html").read_text()
    (folder / "probe.html").write_text(page.replace("</body>", PROBE))
    seen = subprocess.run(
        [
            CHROMIUM,
            *FLAGS,
            "--user-data-dir=%s" % (folder / "chromium"),
            "--dump-dom",
            "file://%s" % (folder / "probe.html"),
        ],
        capture_output=True,
        text=True,
        timeout=util.scaled(90),
    )
    assert "data-seen" in seen.stdout, seen.stderr[-3000:]
    with open(folder / "o" / "runs.tsv", newline="") as f:
        rows = list(csv.DictReader(f, delimiter="\t"))
    return page, Page(seen.stdout), seen.stderr, rows, folder / "o"


needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")


@needs_chromium
def test_it_renders_without_an_error(opened):
    page, dom, log, _, _ = opened
    assert dom.seen["errors"] == [] and "CONSOLE" not in log
    assert dom.seen["h1"] == 'a <b> & "c"'
    assert len(dom.seen["svg"]) >= 12 and all(w > 200 and h > 50 for w, h in dom.seen["svg"])
    assert all(n > 0 for n in dom.seen["drawn"]) and dom.seen["outside"] == 0
    titles = " ".join(dom.seen["titles"])
    for kind in (
        "Ratio to one",
        "CPU per request by process",
        "round by round",
        "by percentile",
        "answered within",
        "as they happened",
        "every request when it was sent",
    ):
        assert kind in titles
    assert dom.seen["dimmed"] > 0 and dom.seen["undimmed"] == 0
    assert dom.seen["sorted"] == sorted(dom.seen["sorted"])
    assert dom.seen["wide"] <= 1200  # tables scroll, the page does not


@needs_chromium
def test_it_needs_nothing_but_itself(opened):
    page, dom, _, _, _ = opened
    assert dom.seen["resources"] == 0
    assert not re.search(r"<(?:link|img|iframe|object)\b|<script[^>]+src|@import|url\(", page)


@needs_chromium
def test_its_figures_are_those_of_the_runs(opened):
    _, dom, _, rows, _ = opened
    checked = 0
    for a, text in dom.cells:
        if "data-run" in a:
            want = next(r for r in rows if r["run"] == a["data-run"])[a["data-column"]]
            if a["data-column"] in ("arm", "url"):
                assert text == want
            elif want == "":
                assert "data-value" not in a
            else:
                assert float(a["data-value"]) == pytest.approx(float(want), rel=1e-9)
            checked += 1
        elif "data-arm" in a:
            mine = [r for r in rows if (r["arm"], r["url"]) == (a["data-arm"], a["data-url"])]
            first = [r for r in mine if r["twin"] == "0"]
            column = a["data-column"]
            want = (
                len(first)
                if column == "runs"
                else sum(int(r["failures"]) for r in mine)
                if column == "failures"
                else statistics.median(float(r[column]) for r in first)
            )
            assert float(a["data-value"]) == pytest.approx(want, rel=1e-9), column
            if column not in ("runs", "failures"):  # what is shown is the value in three digits at least
                assert float(text.replace(",", "")) == pytest.approx(want, rel=0.006)
            checked += 1
    assert checked == len(rows) * 17 + 2 * 2 * 10 and len(rows) == 2 * 3 * 2


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
@needs_chromium
def test_gnuplot_draws_every_script(opened):
    folder = opened[-1] / "plots"
    scripts = glob.glob(str(folder / "*.gp"))
    assert len(scripts) == 1 + 2 + 4
    for script in scripts:
        picture = script[:-3] + ".svg"
        assert os.path.getsize(picture) > 3000, script
        with open(picture) as f:
            assert f.read().rstrip().endswith("</svg>")
