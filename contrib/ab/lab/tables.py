# SPDX-License-Identifier: MIT
"""Tables as rows of text, for the terminal and for Markdown: results, comparisons, and ab's own three."""
import math

from lab import stats
from lab.analysis import median, ratio, ratio_interval, times
from lab.loads import AB_PERCENTILES


def figure(value, digits=3):
    """Three significant digits, no exponents; empty for what is not known."""
    if value is None or math.isnan(value):
        return "-"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return "{:,.{}f}".format(value, places)


def latency(row, column, resolution):
    v = row.medians[column]
    return "<1" if v == 0 and resolution >= 1 else figure(v)


def results(a):
    """(head, rows): one for each arm and URL, then those that cannot run here."""
    head = [
        "URL",
        "arm",
        "runs",
        "requests/s",
        "mean ms",
        "p50 ms",
        "p99 ms",
        "CPU us/req",
        "of it",
        "all CPUs us/req",
        "MB",
        "failures",
    ]
    rows = []
    for r in a.rows:
        runs = a.runs(r.url, r.arm)
        resolution = max([x["resolution_ms"] for x in runs] or [0])
        by = " ".join("%s %s" % (k, figure(v)) for k, v in r.cpu_by.items()) if len(r.cpu_by) > 1 else ""
        rows.append(
            [
                r.url,
                r.arm,
                str(r.n),
                figure(r.medians["rps"], 4),
                figure(r.medians["mean_ms"]),
                latency(r, "p50_ms", resolution),
                latency(r, "p99_ms", resolution),
                figure(r.medians["cpu_us"]),
                by,
                figure(r.medians["machine_us"]),
                figure(r.medians["pss_kb"] / 1024),
                " ".join([str(r.failures), *("%s:%d" % kv for kv in r.kinds.items())]),
            ]
        )
    for arm in a.meta["arms"]:
        if arm.get("skip"):
            rows.append(["-", arm["name"], "0", "cannot run here: " + arm["skip"]])
    return head, rows


def comparisons(a, family=None):
    head = ["URL", "arm / baseline", "metric", "ratio", "95 % interval", "p (Holm)", "noise floor", "verdict"]
    rows = []
    for c in [*a.main, *a.cpu] if family is None else family:
        lo, hi = ratio_interval(c)
        rows.append(
            [
                c.url,
                "%s / %s" % (c.arm, c.base),
                c.metric.title,
                times(ratio(c)) if c.effect.n else "-",
                "%s - %s" % (times(lo), times(hi)) if c.effect.n > 1 else "-",
                "%.3g" % c.p,
                a.noise(c),
                a.short(c),
            ]
        )
    return head, rows


def text(head, rows):
    """Columns lined up with blanks; a row shorter than the head keeps its last cell whole."""
    widths = [max([len(head[i]), *(len(r[i]) for r in rows if len(r) == len(head))]) for i in range(len(head))]
    whole = [r for r in rows if len(r) == len(head)]
    right = [
        i > 1 and all(r[i][:1].isdigit() or r[i][:1] in ("-", "", "<", "±") for r in whole) for i in range(len(head))
    ]
    out = []
    for row in [head, *rows]:
        cells = []
        for i, cell in enumerate(row):
            last = i == len(row) - 1
            width = 0 if last and (len(row) < len(head) or not right[i]) else widths[i]
            cells.append(cell.rjust(width) if right[i] and not (last and width == 0) else cell.ljust(width))
        out.append("  ".join(cells).rstrip())
    return "\n".join(out)


def markdown(head, rows):
    """A row shorter than the head is filled up with empty cells."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for r in rows:
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in [*r, *[""] * (len(head) - len(r))]) + " |")
    return "\n".join(lines)


# --- the three tables of ab's users -------------------------------------------------------------------------------


def _ab_rows(a):
    """(label, {what ab printed: median over the runs}, the published figures or {})."""
    published = {(p.get("arm"), p.get("url")): p for p in a.meta.get("published", [])}
    for url in a.urls:
        for arm in a.arms:
            figures = [a.store.ab[r["run"]] for r in a.runs(url, arm) if r["run"] in a.store.ab]
            if not figures and (arm, url) not in published:
                continue
            med = {
                k: median([f.get(k, math.nan) for f in figures])
                for k in ("time", "rps", "ms", "kbs", "min", "mean", "median", "max")
            }
            columns = [f["percentiles"] for f in figures if len(f.get("percentiles", ())) == len(AB_PERCENTILES)]
            med["percentiles"] = [median(c) for c in zip(*map(lambda x: [float(v) for v in x], columns))]
            yield "%s %s" % (arm, url), med, published.get((arm, url), {})


def _both(med, published, key):
    return plain(med.get(key, math.nan)) + (" (%s)" % plain(float(published[key])) if key in published else "")


def plain(value):
    """As many digits as ab prints, no more."""
    return "-" if math.isnan(value) else "%.7g" % value if value >= 1000 else "%.5g" % value


def ab_tables(a):
    """[(title, head, rows)] results, combined, percentiles: medians over the runs, published figures in brackets."""
    entries = list(_ab_rows(a))
    if not entries:
        return []
    results_rows = [[name, *(_both(m, p, k) for k in ("time", "rps", "ms", "kbs"))] for name, m, p in entries]
    combined = [[name, *(_both(m, p, k) for k in ("min", "mean", "max"))] for name, m, p in entries]
    percentiles = []
    for name, m, p in entries:
        old = [float(v) for v in p.get("percentiles", [])]
        cells = []
        for i in range(len(AB_PERCENTILES)):
            new = plain(m["percentiles"][i]) if i < len(m["percentiles"]) else "-"
            cells.append(new + (" (%s)" % plain(old[i]) if i < len(old) else ""))
        percentiles.append([name, *cells])
    return [
        ("Results", ["setup", "time s", "req/s", "ms/req (all)", "KB/s"], results_rows),
        ("Combined", ["setup", "min ms", "mean ms", "max ms"], combined),
        ("Served within, ms", ["setup", *("%d %%" % p for p in AB_PERCENTILES)], percentiles),
    ]


def directions(a):
    """A sentence for each published difference to the baseline: does it point the same way here?"""
    old = {(p.get("arm"), p.get("url")): float(p["rps"]) for p in a.meta.get("published", []) if "rps" in p}
    out = []
    for c in a.main:
        if c.metric.column != "rps" or not {(c.arm, c.url), (c.base, c.url)} <= set(old):
            continue
        then = old[c.arm, c.url] / old[c.base, c.url]
        same = {stats.FASTER: then > 1, stats.SLOWER: then < 1}.get(c.word)
        found = (
            "confirmed"
            if same
            else "not confirmed, the other way round"
            if same is False
            else "not confirmed, %s" % a.short(c)
            if c.word == stats.EQUIVALENT
            else "open, %s" % a.short(c)
        )
        out.append("%s %s: %s of %s then, %s here: %s." % (c.arm, c.url, times(then), c.base, times(ratio(c)), found))
    return out


def published(a):
    """(head, rows) of published figures that are not in ab's tables, beside the new ones; None without any."""
    if (
        not a.meta.get("published")
        or a.meta.get("tool") == "ab"
        and any("percentiles" in p for p in a.meta["published"])
    ):
        return None
    rows = []
    for p in a.meta["published"]:
        row = next((r for r in a.rows if (r.arm, r.url) == (p.get("arm"), p.get("url"))), None)
        rows.append(
            [
                p.get("arm", ""),
                p.get("url", ""),
                figure(row.medians["rps"], 5) if row else "-",
                plain(float(p.get("rps", math.nan))),
                figure(row.medians["mean_ms"]) if row else "-",
                plain(float(p.get("mean", math.nan))),
            ]
        )
    return ["arm", "URL", "requests/s here", "published", "mean ms here", "published"], rows
