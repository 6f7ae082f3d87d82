# SPDX-License-Identifier: MIT
"""summary.md: the sentence, the tables, the environment."""
from lab import tables


def environment_lines(meta):
    e = meta.get("environment", {})
    if not e:
        return []
    return [
        "%s, CPUs %s%s, %d MB; %s, Linux %s"
        % (
            e["processor"],
            ",".join(map(str, e["cpus"])),
            ", virtual" if e["virtual"] else "",
            e["memory_kb"] // 1024,
            e["system"],
            e["kernel"],
        ),
        "; ".join("%s: %s" % (k, v or "not installed") for k, v in e["versions"].items()),
        "load average before: %s; descriptors: %s; generator on CPUs %s"
        % (" ".join(e["load_average"]), e.get("descriptors", "?"), ",".join(map(str, meta["load_cpus"])) or "any"),
    ]


def method(a):
    m = a.meta
    if not a.paired:
        return (
            "Imported files; unpaired: the runs were not interleaved, so whatever else changed between them is in the "
            "figures."
        )
    return (
        "%s; %s. Each round starts every arm afresh, the first one twice, in an order drawn with seed %d; "
        "warm-up %g s, pause %g s. Medians over the runs; ratios by Hodges-Lehmann over pairs of a round, "
        "95 %% intervals by bootstrap over "
        "rounds, p by Wilcoxon's signed-rank test, adjusted by Holm; alpha %g, margin ±%g %%."
        % (
            "Fixed rate, %g requests/s, latency from the intended send time" % m["rate"]
            if m["rate"]
            else "Saturation: each client sends its next request when it has its answer",
            m["load"] + (", %d at once" % m["generators"] if m.get("generators", 1) > 1 else ""),
            m["seed"],
            m["warmup"],
            m["cooldown"],
            a.alpha,
            100 * m["margin"],
        )
    )


def text(a):
    m = a.meta
    out = ["# " + m["title"], "", "**%s**" % a.sentence, ""]
    out += ["%s\n" % s for s in (m["about"], m["note"]) if s]
    out += ["    " + m["command"], "", method(a), ""]
    out += [tables.markdown(*tables.results(a)), ""]
    if a.main:
        out += [tables.markdown(*tables.comparisons(a)), ""]
    published = m["published_from"]
    said = tables.directions(a)
    for title, head, rows in tables.ab_tables(a):
        out += [
            "## %s%s" % (title, " (in brackets: as published)" if m["published"] else ""),
            "",
            tables.markdown(head, rows),
            "",
        ]
    rest = tables.published(a)
    if rest:
        out += ["## As published", "", tables.markdown(*rest), ""]
    if said:
        out += ["As published? " + " ".join(said), ""]
    if published:
        out += ["Published figures: %s. They are there for the direction, not as a target." % published, ""]
    out += ["## Environment", ""]
    out += ["- " + ln for ln in [*environment_lines(m), *("note: " + w for w in m.get("warnings", []))]]
    for p in m.get("problems", []):
        out.append("- problem: " + p)
    return "\n".join(out) + "\n"
