# SPDX-License-Identifier: MIT
"""From runs to verdicts. Works on a Store alone, so that a report can be made again from its folder.

The first arm is the baseline; every other one (or those that `judge` names) is compared with it, for each URL, in one
main metric: throughput at saturation, the 99th percentile at a fixed rate, or what --metric said. The p-values of all
these comparisons are adjusted together (Holm); processor time is a second family of its own. A run with failures is no
win: an arm that failed a single request is refused, whatever its figures.
"""
import math
from collections import namedtuple

import numpy as np

from lab import stats

Metric = namedtuple("Metric", "column title unit higher words")
METRICS = {
    "rps": Metric("rps", "requests/s", "/s", True, ("faster", "slower")),
    "cpu": Metric("cpu_us", "CPU per request", "us", False, ("cheaper", "dearer")),
    "machine": Metric("machine_us", "all CPUs per request", "us", False, ("cheaper", "dearer")),
    "mean": Metric("mean_ms", "mean latency", "ms", False, ("faster", "slower")),
    "p50": Metric("p50_ms", "median latency", "ms", False, ("faster", "slower")),
    "p90": Metric("p90_ms", "90th percentile", "ms", False, ("faster", "slower")),
    "p99": Metric("p99_ms", "99th percentile", "ms", False, ("faster", "slower")),
}
Comparison = namedtuple("Comparison", "url arm base metric effect p floor word more why ratios")
Row = namedtuple("Row", "url arm n medians failures kinds cpu_by pss_by")


class Analysis:
    """`rows`: medians of each arm and URL; `main`, `cpu`: comparisons; `sentence`; `exit_code`."""

    def __init__(self, store):
        self.store, self.meta = store, store.meta
        self.metric = METRICS[store.meta.get("metric") or "rps"]
        self.arms = [a["name"] for a in store.meta["arms"] if not a.get("skip")]
        self.judged = judged(self.arms, store.meta.get("judge"))
        self.urls = store.meta["urls"]
        self.paired = store.meta.get("paired", True)
        self.alpha = store.meta.get("alpha", stats.ALPHA)
        self.margin = math.log1p(store.meta["margin"])
        self.by = {}
        for r in store.rows:
            self.by.setdefault((r["url"], r["arm"], r["twin"]), {})[r["round"]] = r
        self.rows = [self._row(url, arm) for url in self.urls for arm in self.arms]
        self.main = self._family(self.metric)
        cpu = METRICS["cpu"]
        self.cpu = self._family(cpu) if self.metric is not cpu else []
        self.cpu = [c for c in self.cpu if c.effect.n]

    # --- runs ---

    def runs(self, url, arm, twin=0):
        return [self.by.get((url, arm, twin), {})[k] for k in sorted(self.by.get((url, arm, twin), {}))]

    def _row(self, url, arm):
        runs = self.runs(url, arm)
        kinds = {}
        for r in [*runs, *self.runs(url, arm, 1)]:
            for k, n in r.items():
                if k.startswith("f_") and n:
                    kinds[k[2:]] = kinds.get(k[2:], 0) + n
        failures = sum(r["failures"] for r in [*runs, *self.runs(url, arm, 1)])
        columns = (
            "rps",
            "mean_ms",
            "min_ms",
            "p50_ms",
            "p90_ms",
            "p99_ms",
            "max_ms",
            "cpu_us",
            "machine_us",
            "pss_kb",
        )
        return Row(
            url,
            arm,
            len(runs),
            {c: median([r[c] for r in runs]) for c in columns},
            failures,
            kinds,
            medians_of([r["cpu_by"] for r in runs]),
            medians_of([r["pss_by"] for r in runs]),
        )

    def pairs(self, url, arm, column, twin=0, base=None):
        """(baseline or another base, arm) of all rounds in which both have a usable figure. The baseline's second
        instance is not averaged in: only a difference of two single runs is symmetric if nothing differs, whatever the
        noise looks like, and the signed-rank test rests on that."""
        a, b = self.by.get((url, base or self.arms[0], 0), {}), self.by.get((url, arm, twin), {})
        both = [(a[k][column], b[k][column]) for k in sorted(set(a) & set(b))]
        return [(x, y) for x, y in both if x > 0 and y > 0]  # false for nan too

    def _effect(self, url, arm, metric):
        seed = self.meta["seed"]
        if not self.paired:
            base, other = (
                [r[metric.column] for r in self.runs(url, x) if r[metric.column] > 0] for x in (self.arms[0], arm)
            )
            return stats.unpaired_effect(base, other, metric.higher, seed, self.alpha), []
        both = self.pairs(url, arm, metric.column)
        d = stats.log_ratios(*zip(*both), metric.higher) if both else np.array([])
        return stats.paired_effect(d, seed, self.alpha), [y / x for x, y in both]

    def _family(self, metric):
        """All comparisons in one metric, adjusted together."""
        todo = [(url, arm, *self._effect(url, arm, metric)) for url in self.urls for arm in self.judged]
        adjusted = stats.holm([e.p for _, _, e, _ in todo])
        out = []
        for (url, arm, effect, ratios), p in zip(todo, adjusted):
            floor = self._floor(url, metric)
            v = stats.verdict(effect, p, floor, self.margin, self.alpha, len(todo))
            why = self._refusal(url, arm)
            word, more = (stats.REFUSED, None) if why else (v.word, v.more)
            out.append(Comparison(url, arm, self.arms[0], metric, effect, p, floor, word, more, why, ratios))
        return out

    def _floor(self, url, metric):
        """What the baseline came out as differing from its own second instance."""
        d = self._against_itself(url, metric)
        return 0.0 if not self.paired else stats.noise_floor(d) if len(d) else math.inf

    def _against_itself(self, url, metric):
        both = self.pairs(url, self.arms[0], metric.column, twin=1)
        return stats.log_ratios(*zip(*both), metric.higher) if both else np.array([])

    def noise(self, c):
        """The noise floor of a comparison in words, and how well it is known: the interval of the baseline against
        itself, which is as wide as that of any two arms alike."""
        d = self._against_itself(c.url, c.metric)
        if not 0 < c.floor < 10:
            return "-"
        text = "±" + percent(math.expm1(c.floor))
        if len(d) < 2:
            return text
        lo, hi = stats.bootstrap_interval(d, self.meta["seed"])
        return "%s (%s - %s)" % (text, *(times(math.exp(v)) for v in sorted(v if c.metric.higher else -v for v in (lo, hi))))

    def _refusal(self, url, arm):
        """Why no verdict is given, or None."""
        for name in (arm, self.arms[0]):
            row = next(r for r in self.rows if r.url == url and r.arm == name)
            if row.failures:
                return "%s failed %d request%s (%s)" % (
                    name,
                    row.failures,
                    "s" if row.failures > 1 else "",
                    kinds_text(row.kinds),
                )
        return None

    # --- the verdict ---

    @property
    def decided(self):
        return bool(self.main) and all(c.word != stats.INCONCLUSIVE for c in self.main)

    @property
    def exit_code(self):
        words = {c.word for c in self.main}
        if self.meta.get("refused") or self.meta.get("problems") or stats.REFUSED in words:
            return 1
        if stats.SLOWER in words:
            return 3
        if stats.INCONCLUSIVE in words:
            return 4
        return 0 if self.rows and not any(r.failures for r in self.rows) else 1

    @property
    def sentence(self):
        if self.meta.get("refused"):
            return "Refused: %s." % self.meta["refused"].rstrip(".")
        if self.meta.get("problems"):
            return "No verdict: %s." % self.meta["problems"][0].rstrip(".")
        if not self.arms:
            return "No verdict: none of the arms can run here."
        if not self.main:
            failed = [r for r in self.rows if r.failures]
            return "No verdict: %s." % (
                "%s failed %d requests (%s)" % (failed[0].arm, failed[0].failures, kinds_text(failed[0].kinds))
                if failed
                else "there is only %s, and nothing to compare it with" % self.arms[0]
            )
        text = "; ".join(
            "for %s: %s" % (url, ", ".join(self.phrase(c) for c in self.main if c.url == url)) for url in self.urls
        )
        rounds = max(c.effect.n for c in self.main)
        return "Against %s (%s, %s %d %s), %s." % (
            self.arms[0],
            self.meta["regime"],
            self.metric.title + ",",
            rounds,
            ("round" if self.paired else "run") + ("s" if rounds > 1 else ""),
            text,
        )

    def phrase(self, c):
        """One comparison in words."""
        if c.word == stats.REFUSED:
            return "%s is refused (%s)" % (c.arm, c.why)
        lo, hi = ratio_interval(c)
        measured = (
            "%s, 95 %% between %s and %s" % (times(ratio(c)), times(lo), times(hi))
            if c.effect.n > 1
            else times(ratio(c))
        )
        if c.word == stats.EQUIVALENT:
            return "%s is equivalent within ±%s (%s)" % (c.arm, percent(self.meta["margin"]), measured)
        if c.word == stats.INCONCLUSIVE:
            return "%s is inconclusive (%s; %s)" % (c.arm, measured, more_text(c.more))
        return "%s is %s (%s)" % (c.arm, self.word(c), measured)

    @staticmethod
    def word(c):
        """faster and slower in the metric's own words."""
        return {stats.FASTER: c.metric.words[0], stats.SLOWER: c.metric.words[1]}.get(c.word, c.word)

    def short(self, c):
        """The verdict as a cell of a table."""
        if c.word == stats.EQUIVALENT:
            return "equivalent within ±%s" % percent(self.meta["margin"])
        if c.word == stats.INCONCLUSIVE:
            return "inconclusive (%s)" % more_text(c.more)
        return "refused: " + c.why if c.word == stats.REFUSED else self.word(c)


def judged(arms, names):
    """The arms that are compared with the first: all, or those that the set-up's `judge` names; others are only shown."""
    return [arm for arm in arms[1:] if not names or arm in names]


def more_text(more):
    if more is None:
        return "no number of rounds can be named"
    if more > 500:
        return "more rounds than make sense"
    return "about %d more round%s" % (more, "" if more == 1 else "s")


def kinds_text(kinds):
    return ", ".join("%s %d" % (k, n) for k, n in kinds.items()) or "unknown"


def median(values):
    values = [v for v in values if not math.isnan(v)]
    return float(np.median(values)) if values else math.nan


def medians_of(texts):
    """Medians by name of "front=1.5 app=20" columns."""
    from lab.store import unpairs

    all_of = {}
    for t in texts:
        for k, v in unpairs(t).items():
            all_of.setdefault(k, []).append(v)
    return {k: median(v) for k, v in all_of.items()}


def _turn(c, value):
    """An oriented log-ratio as the plain ratio arm/baseline of the metric."""
    return math.exp(value if c.metric.higher else -value)


def ratio(c):
    return _turn(c, c.effect.est) if c.effect.n else math.nan


def ratio_interval(c):
    if c.effect.n < 2:
        return math.nan, math.nan
    return tuple(sorted((_turn(c, c.effect.lo), _turn(c, c.effect.hi))))


def times(value):
    return "%.3f×" % value if value < 10 else "%.1f×" % value


def percent(share):
    return ("%.1f" % (100 * share)).rstrip("0").rstrip(".") + " %"
