# SPDX-License-Identifier: MIT
"""What is drawn, and from which figures: pictures for the page, and gnuplot scripts of the same for whoever wants more.

Requests are drawn in the order in which they were sent. ab -g writes them sorted by duration, which draws a rising
line whatever happened; its seconds put them back in order, no finer than a second.
"""
import gzip
import math
import os
import re
import subprocess

import numpy as np

from lab import machine
from lab.analysis import median, percent, ratio, ratio_interval, times
from lab.loads import GRID
from lab.svg import Plot, span
from lab.tables import figure

CLOUD = 1500  # points of one series that are drawn
TAIL = [q for q in GRID if q >= 0.5 and q < 1]


def colour(a, arm):
    return "c%d" % (a.arms.index(arm) % 8)


def quantiles(a, url, arm):
    """At each of GRID the median over the rounds; empty if the generator told none."""
    rows = [a.store.grids[r["run"]] for r in a.runs(url, arm) if r["run"] in a.store.grids]
    return [median(column) for column in zip(*rows)] if rows else []


def points_of(a, run):
    """(seconds, ms) of a run's requests in time order, or None."""
    path = a.store.raw(run, "tsv.gz")
    if not os.path.exists(path):
        return None
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as f:
        head, *rows = f.read().split("\n")
    rows = [r.split("\t") for r in rows if r]
    if head.startswith("starttime\t"):
        got = [(float(r[1]), float(r[4])) for r in rows if len(r) >= 6]
    elif head.startswith("start_us\t"):
        got = [(int(r[0]) / 1e6, int(r[1]) / 1e3) for r in rows if r[2] == "ok"]
    else:  # h2load has no head
        rows = [r for r in [head.split("\t"), *rows] if len(r) >= 3 and r[1].isdigit()]
        got = [(int(r[0]) / 1e6, int(r[2]) / 1e3) for r in rows]
    got.sort(key=lambda p: p[0])
    return [(t - got[0][0], ms) for t, ms in got] if got else None


def percentile_curve(a, url):
    """Latency over how rare it is: the tail has as much room as the middle."""
    series = {
        arm: [(1 / (1 - q), v) for q, v in zip(GRID, quantiles(a, url, arm)) if q in TAIL and v == v and v > 0]
        for arm in a.arms
    }
    every = [v for s in series.values() for _, v in s]
    if not every:
        return None
    last = max(x for s in series.values() for x, _ in s)
    p = Plot(
        "Latency of %s by percentile" % url, "percentile", "ms", (2, last), span(every, log=True), xlog=True, ylog=True
    )
    for arm, s in series.items():
        p.line(s, colour(a, arm), title=arm)
    marks = [
        (2, "50"),
        (4, "75"),
        (10, "90"),
        (20, "95"),
        (100, "99"),
        (200, "99.5"),
        (1000, "99.9"),
        (10000, "99.99"),
    ]
    return str(p.axes(xticks=[m for m in marks if m[0] <= last * 1.001]))


def ecdf(a, url):
    series = {
        arm: [(v, q) for q, v in zip(GRID, quantiles(a, url, arm)) if v == v and v > 0 and q <= 0.999]
        for arm in a.arms
    }
    every = [v for s in series.values() for v, _ in s]
    if not every:
        return None
    p = Plot("Share of requests to %s answered within" % url, "ms", "share", span(every, log=True), (0, 1), xlog=True)
    for arm, s in series.items():
        p.line(s, colour(a, arm), step=True, title=arm)
    return str(p.axes())


def slopes(a, url):
    """A line for each round, from the baseline to the other arm: noise tilts them at random, a difference alike."""
    column, others = a.metric.column, a.arms[1:]
    pairs = {arm: a.pairs(url, arm, column) for arm in others} if a.paired else {}
    every = [v for ps in pairs.values() for xy in ps for v in xy]
    if not every:
        return None
    p = Plot(
        "%s of %s, round by round" % (a.metric.title, url),
        "",
        a.metric.unit,
        (-0.3, 2 * len(others) - 0.7),
        span(every),
    )
    ticks = []
    for i, arm in enumerate(others):
        ticks += [(2 * i, a.arms[0]), (2 * i + 1, arm)]
        for k, (x, y) in enumerate(pairs[arm]):
            p.line(
                [(2 * i, x), (2 * i + 1, y)],
                colour(a, arm),
                width=1.2,
                title="%s against %s: %s" % (arm, a.arms[0], times(y / x)),
            )
            p.point(2 * i, x, colour(a, a.arms[0]), title="%s %s" % (a.arms[0], figure(x, 4)))
            p.point(2 * i + 1, y, colour(a, arm), title="%s %s" % (arm, figure(y, 4)))
    return str(p.axes(xticks=ticks))


def forest(a):
    """Ratios with their intervals; the grey band is the margin, the dashes the noise floor."""
    shown = [c for c in [*a.main, *a.cpu] if c.effect.n > 1]
    if not shown:
        return None
    every = [1.0, 1 + a.meta["margin"], 1 / (1 + a.meta["margin"])]
    for c in shown:
        every += [v for v in (*ratio_interval(c), ratio(c)) if 0 < v < 1e6]
    p = Plot(
        "Ratio to %s, 95 %% intervals" % a.arms[0],
        "ratio (logarithmic)",
        "",
        span(every, log=True),
        (-0.6, len(shown) - 0.4),
        xlog=True,
        height=90 + 34 * len(shown),
        left=230,
    )
    m = 1 + a.meta["margin"]
    p.bar(1 / m, m, -0.6, len(shown) - 0.4, "margin", "within ±%s" % percent(a.meta["margin"]))
    ticks = []
    for i, c in enumerate(shown):
        y = len(shown) - 1 - i
        lo, hi = (min(max(v, p.x[0]), p.x[1]) for v in ratio_interval(c))
        ticks.append((y, "%s %s, %s" % (c.arm, c.url, c.metric.title)))
        for edge in (math.exp(-c.floor), math.exp(c.floor)):
            if c.floor and p.x[0] < edge < p.x[1]:
                p.rule(edge, y - 0.3, edge, y + 0.3, "floor")
        p.rule(lo, y, hi, y, "interval " + colour(a, c.arm))
        p.point(ratio(c), y, colour(a, c.arm), r=5, title="%s: %s" % (c.arm, a.short(c)))
    p.rule(1, -0.6, 1, len(shown) - 0.4, "one")
    return str(p.axes(yticks=ticks))


def timeline(a, url):
    """Every run where it happened: drift and disturbances show here, and the order was drawn to spread them."""
    runs = [r for r in a.store.rows if r["url"] == url and r[a.metric.column] > 0]
    if not runs or not a.paired:
        return None
    start = min(r["start"] for r in a.store.rows)
    p = Plot(
        "Runs for %s as they happened" % url,
        "s since the start",
        "%s, %s" % (a.metric.title, a.metric.unit),
        span([r["start"] - start for r in runs]),
        span([r[a.metric.column] for r in runs], zero=True),
    )
    for arm in a.arms:
        for twin in (0, 1):
            mine = [(r["start"] - start, r[a.metric.column]) for r in runs if r["arm"] == arm and r["twin"] == twin]
            if not mine:
                continue
            p.line(sorted(mine), colour(a, arm) + (" again" if twin else ""), width=1, title=arm)
            for x, y in mine:
                p.point(
                    x,
                    y,
                    colour(a, arm) + (" again" if twin else ""),
                    title="%s%s %s" % (arm, " (again)" if twin else "", figure(y, 4)),
                )
    return str(p.axes())


def cpu_bars(a):
    """Processor time for each request, by process."""
    rows = [r for r in a.rows if r.cpu_by]
    if not rows:
        return None
    names = list(dict.fromkeys(n for r in rows for n in r.cpu_by))
    top = max(max(r.medians["cpu_us"], r.medians["machine_us"]) for r in rows)
    p = Plot(
        "CPU per request by process (outline: the whole machine)",
        "us",
        "",
        (0, top * 1.05),
        (-0.6, len(rows) - 0.4),
        height=84 + 30 * len(rows),
        left=230,
    )
    ticks = []
    for i, r in enumerate(rows):
        y, x = len(rows) - 1 - i, 0.0
        ticks.append((y, "%s %s" % (r.arm, r.url)))
        for name, us in r.cpu_by.items():
            p.bar(x, x + us, y - 0.3, y + 0.3, "p%d" % (names.index(name) % 4), "%s: %s us" % (name, figure(us)))
            x += us
        p.bar(
            0,
            r.medians["machine_us"],
            y - 0.36,
            y + 0.36,
            "outline",
            "all CPUs: %s us" % figure(r.medians["machine_us"]),
        )
    return str(p.axes(yticks=ticks)), names


def series(a, url, arm):
    """Requests of the arm's first run in the order in which they were sent, with the median of each second."""
    runs = a.runs(url, arm)
    points = points_of(a, runs[0]["run"]) if runs else None
    if not points:
        return None
    step = max(1, len(points) // CLOUD)
    drawn = [(t, max(ms, 0.05)) for t, ms in points[::step]]
    whole = all(t == int(t) for t, _ in points[:1000])
    if whole:  # ab: spread the requests of a second over it, in no order that it would know
        counts = {}
        drawn_at = []
        totals = {}
        for t, _ in drawn:
            totals[t] = totals.get(t, 0) + 1
        for t, ms in np.random.default_rng(1).permutation(drawn) if drawn else []:
            counts[t] = counts.get(t, 0) + 1
            drawn_at.append((t + counts[t] / (totals[t] + 1), ms))
        drawn = drawn_at
    seconds = {}
    for t, ms in points:
        seconds.setdefault(int(t), []).append(max(ms, 0.05))
    p = Plot(
        "%s %s, first run: every request when it was sent" % (arm, url),
        "s",
        "ms",
        (0, max(t for t, _ in drawn) or 1),
        span([ms for _, ms in drawn], log=True),
        ylog=True,
        height=220,
    )
    p.dots(drawn, colour(a, arm))
    p.line(
        [(min(t + 0.5, p.x[1]), median(v)) for t, v in sorted(seconds.items())],
        "middle",
        title="median of each second",
    )
    return str(p.axes())


# --- gnuplot ------------------------------------------------------------------------------------------------------


def safe(text):
    return re.sub(r"[^\w.-]+", "_", text).strip("_") or "root"


HEAD = """reset session
set terminal svg size 800,400 dynamic background rgb 'white'
set output '%s.svg'
set grid
set key outside
set datafile separator tab
"""


def block(name, rows):
    return "$%s << EOD\n%s\nEOD\n" % (
        name,
        "\n".join("\t".join("%.9g" % v if isinstance(v, float) else str(v) for v in r) for r in rows),
    )


def quoted(text):
    return "'%s'" % text.replace("'", "''").replace("_", "\\\\_")


def script_percentiles(a, url):
    parts, blocks = [], ""
    for i, arm in enumerate(a.arms):
        rows = [(100 * q, v) for q, v in zip(GRID, quantiles(a, url, arm)) if v == v]
        if rows:
            blocks += block("d%d" % i, rows)
            parts.append("$d%d using 1:2 with lines lw 2 title %s" % (i, quoted(arm)))
    if not parts:
        return None
    return (
        blocks
        + "set logscale y\nset xlabel 'percentile'\nset ylabel 'ms'\nset title 'Latency of %s'\nplot %s\n"
        % (url, ", ".join(parts))
    )


def script_ratios(a):
    rows = [
        (i, ratio(c), *ratio_interval(c), "%s %s %s" % (c.arm, c.url, c.metric.title.replace(" ", "_")))
        for i, c in enumerate([*a.main, *a.cpu])
        if c.effect.n > 1
    ]
    if not rows:
        return None
    return block("d", rows) + (
        "set xlabel 'ratio to %s'\nset logscale x\nset yrange [-1:%d] reverse\nset lmargin 40\nunset key\n"
        "set arrow from 1, graph 0 to 1, graph 1 nohead dt 2\n"
        "plot $d using 2:1:3:4:ytic(5) with xerrorbars pt 7 lw 2\n" % (a.arms[0], len(rows))
    )


def script_series(a, url, arm):
    """ab -g's file, put in time order by its own seconds (second column)."""
    runs = a.runs(url, arm)
    raw = a.store.raw(runs[0]["run"], "tsv.gz") if runs else ""
    if not os.path.exists(raw):
        return None
    name = os.path.join("..", "raw", os.path.basename(raw))
    with gzip.open(raw, "rt") as f:
        head = f.readline()
    if head.startswith("starttime\t"):
        source, x, y = "< gzip -dc %s | tail -n +2 | sort -s -t '\t' -k2,2n" % name, "($2-first)", "5"
        column = 2
    elif head.startswith("start_us\t"):
        source, x, y, column = "< gzip -dc %s | tail -n +2" % name, "($1-first)/1e6", "($2/1e3)", 1
    else:
        source, x, y, column = "< gzip -dc %s | sort -s -n" % name, "($1-first)/1e6", "($3/1e3)", 1
    source = source.replace("'", "''")
    return (
        "set xlabel 'seconds'\nset ylabel 'response time (ms)'\nset title %s\nunset key\n"
        "stats '%s' using %d nooutput\nfirst = STATS_min\n"
        "plot '%s' using %s:%s with points pt 7 ps 0.2\n"
        % (quoted("%s %s" % (arm, url)), source, column, source, "(%s)" % x, y)
    )


def write_gnuplot(a):
    """plots/*.gp, and their pictures where gnuplot is installed. False: gnuplot refused one of them."""
    folder = a.store.file("plots")
    os.makedirs(folder, exist_ok=True)
    scripts = {"ratios": script_ratios(a)}
    for url in a.urls:
        scripts["percentiles-" + safe(url)] = script_percentiles(a, url)
        for arm in a.arms:
            scripts["series-%s-%s" % (safe(arm), safe(url))] = script_series(a, url, arm)
    names = []
    for name, text in scripts.items():
        if not text:
            continue
        with open(os.path.join(folder, name + ".gp"), "w", encoding="utf-8") as f:
            f.write(HEAD % name + text)
        names.append(name + ".gp")
    gnuplot = machine.which("gnuplot")
    if not gnuplot or not names:
        return True
    return (
        subprocess.run(
            [gnuplot, *names],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
        ).returncode
        == 0
    )
