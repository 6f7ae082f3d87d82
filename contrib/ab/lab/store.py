# SPDX-License-Identifier: MIT
"""DIR: what a measurement leaves, and what a report is made from. Written as it goes, so that a run cut short is kept.

    env.json        the plan, the environment, the answers, the problems
    runs.tsv        a row for each measured run
    quantiles.tsv   the latency quantiles of each run, ms
    raw/            what the generator printed (N.out) and its single requests (N.tsv.gz), N as in runs.tsv; N-2 and so
                    on are further generators of that run
    logs/           what the processes of the arms printed
"""
import csv
import gzip
import json
import math
import os
import shutil

from lab.arms import Problem
from lab.loads import GRID, KINDS

COLUMNS = [
    *"run round arm twin url regime start seconds requests failures".split(),
    *("f_" + k for k in KINDS),
    *"rps bytes mean_ms min_ms p50_ms p90_ms p99_ms p999_ms max_ms resolution_ms".split(),
    *"cpu_us cpu_by machine_us pss_kb pss_by stolen".split(),
]
TEXT = {"arm", "url", "regime", "cpu_by", "pss_by"}
WHOLE = {"run", "round", "twin", "requests", "failures", *("f_" + k for k in KINDS)}


def pairs(d):
    return " ".join("%s=%g" % (k, v) for k, v in d.items())


def unpairs(text):
    return {k: float(v) for k, _, v in (w.partition("=") for w in text.split())}


def shown(value):
    if isinstance(value, float):
        return "" if math.isnan(value) else "%.12g" % value
    return str(value)


def typed(name, text):
    if name in TEXT:
        return text
    if name in WHOLE:
        return int(text or 0)
    return float(text) if text else math.nan


class Store:
    def __init__(self, path):
        self.path, self.meta, self.rows, self.grids, self.ab = path, {}, [], {}, {}

    def file(self, *names):
        return os.path.join(self.path, *names)

    @classmethod
    def create(cls, path, meta):
        if os.path.exists(os.path.join(path, "runs.tsv")):
            raise Problem("%s holds a measurement already" % path)
        self = cls(path)
        for d in ("raw", "logs"):
            os.makedirs(self.file(d), exist_ok=True)
        self.meta = meta
        self.save_meta()
        with open(self.file("runs.tsv"), "w", encoding="utf-8") as f:
            f.write("\t".join(COLUMNS) + "\n")
        with open(self.file("quantiles.tsv"), "w", encoding="utf-8") as f:
            f.write("\t".join(["run", *("%g" % q for q in GRID)]) + "\n")
        return self

    @classmethod
    def open(cls, path):
        self = cls(path)
        try:
            with open(self.file("env.json"), encoding="utf-8") as f:
                self.meta = json.load(f)
            with open(self.file("runs.tsv"), encoding="utf-8", newline="") as f:
                for row in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE):
                    self.rows.append({c: typed(c, row.get(c) or "") for c in COLUMNS})
            with open(self.file("quantiles.tsv"), encoding="utf-8") as f:
                for ln in list(f)[1:]:
                    words = ln.rstrip("\n").split("\t")
                    self.grids[int(words[0])] = [float(w) if w else math.nan for w in words[1:]]
        except (OSError, ValueError) as e:
            raise Problem("%s: not the folder of a measurement: %s" % (path, e)) from None
        self.ab = {int(k): v for k, v in self.meta.get("ab", {}).items()}
        return self

    def save_meta(self):
        self.meta["ab"] = {str(k): v for k, v in self.ab.items()}
        part = self.file("env.json.part")
        with open(part, "w", encoding="utf-8") as f:
            json.dump(self.meta, f, indent=1)
            f.write("\n")
        os.replace(part, self.file("env.json"))

    def add(self, row, load):
        """A run: its row, the quantiles, ab's own figures."""
        self.rows.append(row)
        with open(self.file("runs.tsv"), "a", encoding="utf-8") as f:
            f.write("\t".join(shown(row[c]) for c in COLUMNS) + "\n")
        if load.grid:
            self.grids[row["run"]] = load.grid
            with open(self.file("quantiles.tsv"), "a", encoding="utf-8") as f:
                f.write("\t".join([str(row["run"]), *(shown(float(v)) for v in load.grid)]) + "\n")
        if load.ab:
            self.ab[row["run"]] = load.ab

    def raw(self, run, suffix):
        return self.file("raw", "%s.%s" % (run, suffix))

    def pack(self, run):
        """Single requests take much room: compressed as soon as they have been read."""
        plain = self.raw(run, "tsv")
        if os.path.exists(plain):
            with open(plain, "rb") as f, gzip.open(plain + ".gz", "wb", compresslevel=5) as g:
                shutil.copyfileobj(f, g)
            os.remove(plain)

    def problem(self, text):
        self.meta.setdefault("problems", []).append(text)
        self.save_meta()


def row_of(run, rnd, arm, twin, url, regime, start, load):
    """What the generator said; processor time and memory are filled in by whoever measured them."""
    row = dict.fromkeys(COLUMNS, math.nan)
    row.update(
        {
            "run": run,
            "round": rnd,
            "arm": arm,
            "twin": int(twin),
            "url": url,
            "regime": regime,
            "start": start,
            "seconds": load.seconds,
            "requests": load.requests,
            "failures": load.total_failures(),
            "rps": load.rps,
            "bytes": load.bytes,
            "mean_ms": load.mean_ms,
            "min_ms": load.min_ms,
            "p50_ms": load.quantile(0.5),
            "p90_ms": load.quantile(0.9),
            "p99_ms": load.quantile(0.99),
            "p999_ms": load.quantile(0.999),
            "max_ms": load.quantile(1.0),
            "resolution_ms": load.resolution,
            "cpu_by": "",
            "pss_by": "",
        }
    )
    row.update({"f_" + k: load.failures.get(k, 0) for k in KINDS})
    return row
