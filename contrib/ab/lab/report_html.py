# SPDX-License-Identifier: MIT
"""report.html: one file without anything outside it. Figures are written by Python; the script only dims and sorts.

Each figure of the tables carries its exact value: data-value, with data-arm, data-url and data-column (medians) or
data-run and data-column (single runs), named as in runs.tsv.
"""
import math
import os

from lab import machine, plots, tables
from lab.arms import HERE
from lab.report_md import environment_lines, method
from lab.svg import esc

STYLE = machine.read(os.path.join(HERE, "page.css"))
SCRIPT = machine.read(os.path.join(HERE, "page.js"))
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5cc2", "#8c6d31"]
PROCESSES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7"]
STYLE += "".join(
    ".c%d { stroke: %s; } .dot.c%d, i.c%d { fill: %s; background: %s; }\n" % (i, c, i, i, c, c)
    for i, c in enumerate(COLOURS)
)
STYLE += "".join(".p%d, i.p%d { fill: %s; background: %s; }\n" % (i, i, c, c) for i, c in enumerate(PROCESSES))

RUN_COLUMNS = (
    "run round arm twin url start seconds requests failures rps mean_ms p50_ms p99_ms max_ms cpu_us machine_us pss_kb"
).split()
MEDIANS = [
    ("rps", "requests/s", 4),
    ("mean_ms", "mean ms", 3),
    ("p50_ms", "p50 ms", 3),
    ("p99_ms", "p99 ms", 3),
    ("max_ms", "max ms", 3),
    ("cpu_us", "CPU us/request", 3),
    ("machine_us", "all CPUs us/request", 3),
    ("pss_kb", "memory KB", 4),
]


def table(head, rows, words=(0, 1)):
    """rows of text or ready-made <td>…; short rows end in a cell that spans the rest."""
    out = [
        "<div class=\"wide\"><table><thead><tr>%s</tr></thead><tbody>"
        % "".join("<th%s>%s</th>" % (" class=\"word\"" if i in words else "", esc(h)) for i, h in enumerate(head))
    ]
    for r in rows:
        cells = []
        for i, c in enumerate(r):
            if c.startswith("<td"):
                cells.append(c)
            else:
                more = " colspan=\"%d\"" % (len(head) - len(r) + 1) if i == len(r) - 1 and len(r) < len(head) else ""
                cells.append("<td%s%s>%s</td>" % (" class=\"word\"" if i in words or more else "", more, esc(c)))
        out.append("<tr>%s</tr>" % "".join(cells))
    return "\n".join(out) + "\n</tbody></table></div>"


def cell(value, shown, **data):
    attributes = "".join(" data-%s=\"%s\"" % (k, esc(v)) for k, v in data.items())
    exact = (
        ""
        if isinstance(value, float) and math.isnan(value)
        else " data-value=\"%s\"" % ("%.12g" % value if isinstance(value, float) else value)
    )
    return "<td%s%s>%s</td>" % (attributes, exact, esc(shown))


def results(a):
    head = ["URL", "arm", "runs", *(t for _, t, _ in MEDIANS), "of the CPU time", "failures"]
    rows = []
    for r in a.rows:
        cells = [
            cell(r.medians[c], tables.figure(r.medians[c], digits), arm=r.arm, url=r.url, column=c)
            for c, _, digits in MEDIANS
        ]
        by = " ".join("%s %s" % (k, tables.figure(v)) for k, v in r.cpu_by.items())
        kinds = "".join(" %s:%d" % kv for kv in r.kinds.items())
        rows.append(
            [
                r.url,
                r.arm,
                cell(r.n, r.n, arm=r.arm, url=r.url, column="runs"),
                *cells,
                by,
                cell(r.failures, "%d%s" % (r.failures, kinds), arm=r.arm, url=r.url, column="failures"),
            ]
        )
    rows += [["-", x["name"], "cannot run here: " + x["skip"]] for x in a.meta["arms"] if x.get("skip")]
    return table(head, rows)


def runs(a):
    out = [
        "<div class=\"wide\"><table id=\"runs\"><thead><tr>%s</tr></thead><tbody>"
        % "".join("<th>%s</th>" % c for c in RUN_COLUMNS)
    ]
    for r in a.store.rows:
        cells = []
        for c in RUN_COLUMNS:
            shown = (
                tables.figure(r[c], 4)
                if isinstance(r[c], float) and c != "start"
                else "%.1f" % r[c]
                if c == "start"
                else str(r[c])
            )
            cells.append(cell(r[c], shown, run=r["run"], column=c))
        out.append("<tr>%s</tr>" % "".join(cells))
    return "\n".join(out) + "\n</tbody></table></div>"


def key(a):
    return "<p>%s</p>" % "".join(
        "<span class=\"key\" data-series=\"%s\"><i class=\"%s\"></i>%s</span>"
        % (plots.colour(a, arm), plots.colour(a, arm), esc(arm))
        for arm in a.arms
    )


def pictures(a):
    out = []
    forest = plots.forest(a)
    cpu = plots.cpu_bars(a)
    if forest:
        out.append(forest)
    if cpu:
        out.append(
            "<div>%s<p class=\"note\">%s</p></div>"
            % (
                cpu[0],
                "".join(
                    "<span class=\"key\"><i class=\"p%d\"></i>%s</span>" % (i % 4, esc(n))
                    for i, n in enumerate(cpu[1])
                ),
            )
        )
    for url in a.urls:
        out += [
            p
            for p in (plots.slopes(a, url), plots.percentile_curve(a, url), plots.ecdf(a, url), plots.timeline(a, url))
            if p
        ]
    series = [s for s in (plots.series(a, url, arm) for url in a.urls for arm in a.arms) if s]
    text = key(a) + "<div class=\"plots\">%s</div>" % "\n".join(out)
    if series:
        text += "<h2>Requests in the order in which they were sent</h2>%s<div class=\"plots\">%s</div>" % (
            "<p class=\"note\">ab knows only the second in which a request was sent; "
            "within a second the order is not its own.</p>"
            if a.meta.get("tool") == "ab"
            else "",
            "\n".join(series),
        )
    return text


def verdict_class(a):
    return {1: "refused", 3: "slower", 4: "inconclusive"}.get(a.exit_code, "decided")


def text(a):
    m = a.meta
    parts = [
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">",
        "<meta name=\"viewport\" content=\"width=device-width\">",
        "<title>%s</title>\n<style>%s</style>\n</head>\n<body>" % (esc(m["title"]), STYLE),
        "<h1>%s</h1>" % esc(m["title"]),
        "<p class=\"verdict %s\">%s</p>" % (verdict_class(a), esc(a.sentence)),
    ]
    parts += ["<p>%s</p>" % esc(s) for s in (m["about"], m["note"]) if s]
    parts += ["<p class=\"note\">note: %s</p>" % esc(w) for w in m.get("warnings", [])]
    parts += ["<h2>Results</h2>", results(a)]
    if a.main:
        parts += ["<h2>Comparisons</h2>", table(*tables.comparisons(a), words=(0, 1, 2, 7))]
    parts += ["<h2>Pictures</h2>", pictures(a)]
    for title, head, rows in tables.ab_tables(a):
        parts += [
            "<h2>%s%s</h2>" % (esc(title), " (in brackets: as published)" if m["published"] else ""),
            table(head, rows, words=(0,)),
        ]
    rest = tables.published(a)
    if rest:
        parts += ["<h2>As published</h2>", table(*rest)]
    if m["published_from"]:
        parts.append(
            "<p class=\"note\">Published figures: %s. They are there for the direction, not as a target.</p>"
            % esc(m["published_from"])
        )
    parts += [
        "<h2>Runs</h2>",
        runs(a),
        "<h2>How</h2>",
        "<pre>%s</pre>" % esc(m["command"]),
        "<p>%s</p>" % esc(method(a)),
    ]
    parts += ["<p>%s</p>" % esc(ln) for ln in environment_lines(m)]
    rows = [
        [x["name"], p["name"], p["run"], ",".join(map(str, p["cpus"])) or "any"]
        for x in m["arms"]
        for p in x.get("processes", [])
    ]
    if rows:
        parts.append(table(["arm", "process", "command", "CPUs"], rows, words=(0, 1, 2)))
    parts += ["<script>%s</script>" % SCRIPT, "</body>\n</html>\n"]
    return "\n".join(parts)
