# SPDX-License-Identifier: MIT
"""Load generators: the command that is run, and what its output says.

Every parser gives a Load: requests, seconds, bytes, failures by kind, latencies in ms as quantiles at GRID and, where
the tool tells, single requests in true time order. A closed loop (ab, wrk, h2load) sends the next request when an
answer has come: it measures throughput, and its latencies are those of that many clients, no more. The open loop
(openloop, h2load --rps) sends at a fixed rate: only its latencies say what a user would have waited.
"""
import json
import math
import os
import re
import shlex
import subprocess
import zlib

import numpy as np

from lab import machine, stats
from lab.arms import HERE, INSTALL, Problem, beside, modules_dir

GRID = [i / 100 for i in range(100)] + [0.995, 0.999, 0.9999, 1.0]
KINDS = ("connect", "read", "write", "timeout", "status", "length", "aborted", "died", "late")
TOOLS = ("ab", "wrk", "h2load", "openloop")
DEFAULT = "ab -t 3 -n 200000 -c 100"
WRK_SCRIPT = os.path.join(HERE, "wrk.lua")


class Load:
    """The outcome of one run of a generator."""

    def __init__(self):
        self.requests, self.seconds, self.bytes = 0, math.nan, math.nan
        self.failures = {}
        self.mean_ms = self.min_ms = self.sd_ms = math.nan
        self.grid = []  # latencies in ms at GRID; empty if the tool does not tell
        self.points = None  # (seconds since the first, ms) of single requests, in time order
        self.resolution = 0.0  # of the latencies, ms
        self.rps = math.nan
        self.ab = {}  # what only ab prints: its own tables

    def fail(self, kind, n):
        if n:
            self.failures[kind] = self.failures.get(kind, 0) + int(n)

    def take_latencies(self, ms, starts=None):
        """Quantiles by nearest rank of all requests; `starts` (seconds) gives the order."""
        ms = np.asarray(ms, float)
        if len(ms) == 0:
            return
        s = np.sort(ms)
        self.grid = [stats.quantile_sorted(s, q) for q in GRID]
        self.mean_ms, self.min_ms, self.sd_ms = float(ms.mean()), float(s[0]), float(ms.std())
        if starts is not None:
            starts = np.asarray(starts, float)
            order = np.argsort(starts, kind="stable")
            self.points = (starts[order] - starts[order[0]], ms[order])

    def quantile(self, q):
        return self.grid[GRID.index(q)] if self.grid else math.nan

    def once(self):
        """Failures by kind. ab counts an error page of another length twice, as status and as length: once is enough."""
        f = dict(self.failures)
        if self.ab and f.get("status") and f.get("length"):
            f["length"] = max(0, f["length"] - f["status"])
        return f

    def total_failures(self):
        return sum(self.once().values())


# --- commands -----------------------------------------------------------------------------------------------------


class Command:
    """A --load: its words, and the two commands made of it. `rate` makes it the open loop."""

    def __init__(self, text, rate=None):
        self.text, self.words, self.rate = text, shlex.split(text), rate
        self.tool = os.path.basename(self.words[0]) if self.words else ""
        if self.tool not in TOOLS:
            raise Problem("--load: `%s` is none of %s" % (self.tool, ", ".join(TOOLS)))
        if self.tool == "openloop" and not rate:
            raise Problem("--load openloop needs --rate")
        if rate and self.tool not in ("openloop", "h2load"):
            raise Problem(
                "%s has no fixed rate: it waits for each answer before it sends the next request; "
                "leave --load out, or use openloop or h2load" % self.tool
            )
        if not rate and self.tool == "h2load" and any(w.startswith("--rps") for w in self.words):
            raise Problem("h2load --rps is a fixed rate: say --rate R instead, so that it is reported as one")
        if self.has("-p", "-T", "-m") and self.tool == "ab":
            raise Problem("ab with a request body is not supported: the answer check could not send the same request")
        self.program = generator() if self.tool == "openloop" else machine.which(self.words[0])
        if not self.program:
            if self.tool == "openloop":
                raise Problem("--load: openloop is not built, and there is no C compiler")
            raise Problem("--load: %s is not installed (%s %s)" % (self.tool, INSTALL, self.tool))

    @property
    def regime(self):
        return "fixed rate" if self.rate else "saturation"

    def has(self, *options):
        return any(w in options for w in self.words)

    def option(self, name, default=None):
        """The value of `-c 100` or `-c100`."""
        for word, value in zip(self.words, [*self.words[1:], ""]):
            if word == name:
                return value
            if word.startswith(name) and not word.startswith("--") and len(word) > len(name):
                return word[len(name) :]
        return default

    def without(self, *options):
        """The words after the program, less those options and their values."""
        out, skip = [], False
        for word in self.words[1:]:
            if skip:
                skip = False
            elif word in options:
                skip = True
            elif not any(
                word.startswith(o) and not word.startswith("--") and len(word) > len(o)
                for o in options
                if not o.startswith("--")
            ) and not any(word.startswith(o + "=") for o in options):
                out.append(word)
        return out

    def keeps(self):
        """Does it keep connections open?"""
        return self.tool in ("wrk", "h2load") or self.has("-k")

    def warm(self, url, seconds):
        """The same load for a short time."""
        whole = str(max(1, math.ceil(seconds)))
        if self.tool == "ab":
            return [self.program, "-q", "-r", *self.without("-n", "-t", "-g", "-e"), "-t", whole, "-n", "200000", url]
        if self.tool == "wrk":
            return [self.program, *self.without("-d", "-s"), "-d", whole + "s", url]
        if self.tool == "h2load":
            return [self.program, *self._h2(self.without("-n", "-D", "--duration")), "-D", whole, url]
        return [self.program, *self.without("-d"), *self._rate(), "-d", whole, url]

    def measured(self, url, raw):
        """The run that counts; single requests go to the file raw where the tool can write them."""
        if self.tool == "ab":
            extra = [] if self.has("-r") else ["-r"]
            return [self.program, *extra, *self.without("-g", "-e"), "-g", raw, url]
        if self.tool == "wrk":
            return [self.program, *([] if self.has("-s") else ["-s", WRK_SCRIPT]), *self.words[1:], url]
        if self.tool == "h2load":
            return [self.program, *self._h2(self.words[1:]), "--log-file=" + raw, url]
        return [self.program, *self.words[1:], *self._rate(), "-o", raw, url]

    def _h2(self, words):
        """HTTP/1.1 unless told otherwise: none of the servers speaks HTTP/2 without TLS by default."""
        out = list(words)
        if not any(w == "--h1" or w.startswith(("-p", "--no-tls-proto", "--alpn")) for w in words):
            out.insert(0, "--h1")
        if self.rate:
            out.append("--rps=%g" % (self.rate / float(self.option("-c", "1"))))
        return out

    def _rate(self):
        return ["-r", "%g" % self.rate]

    def parse(self, text, raw):
        return {"ab": parse_ab, "wrk": parse_wrk, "h2load": parse_h2load, "openloop": parse_openloop}[self.tool](
            text, raw
        )


def generator():
    """The open-loop generator: installed, or from a build of the tree, or built now."""
    here = os.path.join(HERE, "openloop")
    weir = os.environ.get("WEIR_BIN", "")
    for path in (
        os.environ.get("WEIR_OPENLOOP"),
        here,
        os.path.join(os.path.dirname(weir), "..", "contrib", "ab", "openloop"),
        os.path.join(beside("build"), "plain", "contrib", "ab", "openloop"),
    ):
        if path and os.access(path, os.X_OK) and not os.path.isdir(path):
            return os.path.abspath(path)
    return compiled(here + ".c")


def compiled(source):
    """In a tree that is not built: what the C compiler makes of it, kept under a name that tells its contents."""
    text, compiler = machine.read(source), machine.which("cc")
    if not text or not compiler:
        return None
    folder = os.path.dirname(modules_dir())
    out = os.path.join(folder, "openloop-%08x" % zlib.crc32(text.encode()))
    if not os.access(out, os.X_OK):
        os.makedirs(folder, exist_ok=True)
        part = "%s.%d" % (out, os.getpid())
        if subprocess.run([compiler, "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-o", part, source]).returncode:
            return None
        os.replace(part, out)
    return out


# --- outputs ------------------------------------------------------------------------------------------------------


def number(pattern, text, default=math.nan):
    m = re.search(pattern, text, re.M)
    return float(m.group(1)) if m else default


def parse_ab(text, raw=None):
    out = Load()
    out.resolution = 1.0
    out.requests = int(number(r"^Complete requests:\s+(\d+)", text, 0))
    out.seconds = number(r"^Time taken for tests:\s+([\d.]+)", text)
    out.rps = number(r"^Requests per second:\s+([\d.]+)", text)
    out.bytes = number(r"^Total transferred:\s+(\d+)", text)
    m = re.search(r"\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)", text)
    for kind, n in zip(("connect", "read", "length", "read"), m.groups() if m else ()):
        out.fail(kind, int(n))
    out.fail("write", number(r"^Write errors:\s+(\d+)", text, 0))
    out.fail("status", number(r"^Non-2xx responses:\s+(\d+)", text, 0))
    if not out.requests or math.isnan(out.rps):
        out.fail("aborted", 1)
    out.mean_ms = number(r"^Time per request:\s+([\d.]+) \[ms\] \(mean\)$", text)
    total = re.search(r"^Total:\s+(\d+)\s+(\d+)\s+([\d.]+)\s+(\d+)\s+(\d+)", text, re.M)
    out.ab = {
        "time": out.seconds,
        "rps": out.rps,
        "kbs": number(r"^Transfer rate:\s+([\d.]+)", text),
        "ms": number(r"^Time per request:\s+([\d.]+) \[ms\] \(mean, across all", text),
        "percentiles": [int(number(r"^\s+%d%%\s+(\d+)" % p, text, -1)) for p in AB_PERCENTILES],
    }
    if total:
        out.ab.update(zip(("min", "mean", "sd", "median", "max"), map(float, total.groups())))
    mean = out.mean_ms
    if raw and os.path.exists(raw):
        ms, starts = read_ab_g(raw)
        out.take_latencies(ms, starts)
    elif total:
        out.min_ms, out.sd_ms = float(total.group(1)), float(total.group(3))
    out.mean_ms = mean if not math.isnan(mean) else out.mean_ms
    return out


AB_PERCENTILES = (50, 66, 75, 80, 90, 95, 98, 99, 100)


def read_ab_g(path):
    """(ms, start in seconds) of ab -g's file, which is sorted by duration: not the order in which things happened."""
    ms, starts = [], []
    with open(path, encoding="utf-8", errors="replace") as f:
        head = f.readline().rstrip("\n").split("\t")
        if head[:2] != ["starttime", "seconds"] or "ttime" not in head:
            raise Problem("%s: not a file of ab -g" % path)
        at, start = head.index("ttime"), head.index("seconds")
        for ln in f:
            row = ln.rstrip("\n").split("\t")
            if len(row) == len(head):
                ms.append(float(row[at]))
                starts.append(float(row[start]))
    return ms, starts


UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60000.0}
SIZES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def milliseconds(text):
    m = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text)
    return float(m.group(1)) * UNITS[m.group(2)] if m else math.nan


def parse_wrk(text, raw=None):
    out = Load()
    m = re.search(r"^\s+(\d+) requests in ([\d.]+\w+), ([\d.]+)([KMG]?B) read", text, re.M)
    if m:
        out.requests, out.seconds = int(m.group(1)), milliseconds(m.group(2)) / 1000
        out.bytes = float(m.group(3)) * SIZES[m.group(4)]
    out.rps = number(r"^Requests/sec:\s+([\d.]+)", text)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    for kind, n in zip(("connect", "read", "write", "timeout"), errors.groups() if errors else ()):
        out.fail(kind, int(n))
    out.fail("status", number(r"^\s+Non-2xx or 3xx responses: (\d+)", text, 0))
    latency = re.search(r"^\s+Latency\s+(\S+)\s+(\S+)\s+(\S+)", text, re.M)
    if latency:
        out.mean_ms, out.sd_ms = milliseconds(latency.group(1)), milliseconds(latency.group(2))
    exact = dict(ln.split("\t")[1:3] for ln in text.split("\n") if ln.startswith("weir-ab\t"))
    if "bytes" in exact:
        out.bytes, out.seconds, out.mean_ms = (
            float(exact["bytes"]),
            float(exact["us"]) / 1e6,
            float(exact["mean"]) / 1000,
        )
        out.rps = out.requests / out.seconds if out.seconds else math.nan
        out.grid = [float(exact["q%g" % q]) / 1000 for q in GRID]
        out.min_ms, out.resolution = out.grid[0], 0.001
    elif latency:  # --latency alone: four points
        quantiles = dict(re.findall(r"^\s+(50|75|90|99)%\s+(\S+)$", text, re.M))
        known = {int(p) / 100: milliseconds(v) for p, v in quantiles.items()}
        out.grid = [known.get(q, math.nan) for q in GRID] if known else []
    if not out.requests:
        out.fail("aborted", 1)
    return out


def parse_h2load(text, raw=None):
    out = Load()
    m = re.search(
        r"^requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout",
        text,
        re.M,
    )
    if m:
        total, done, _, failed, errored, timeout = map(int, m.groups())
        out.requests = done
        out.fail("timeout", timeout)
        out.fail("read", max(0, max(errored, failed - sum(bad_codes(text))) - timeout))
    out.fail("status", sum(bad_codes(text)))
    m = re.search(r"^finished in (\S+), ([\d.]+) req/s", text, re.M)
    if m:
        out.seconds, out.rps = milliseconds(m.group(1)) / 1000, float(m.group(2))
    out.bytes = number(r"^traffic: \S+ \((\d+)\) total", text)
    m = re.search(r"^time for request:\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)", text, re.M)
    if m:
        out.min_ms, _, out.mean_ms, out.sd_ms = map(milliseconds, m.groups())
    if raw and os.path.exists(raw):
        rows = [ln.split("\t") for ln in machine.read(raw).split("\n") if ln.count("\t") >= 2]
        good = [(int(r[2]) / 1000, int(r[0]) / 1e6) for r in rows if int(r[1]) > 0]
        out.take_latencies([g[0] for g in good], [g[1] for g in good])
        out.resolution = 0.001
    if not out.requests or math.isnan(out.rps):
        out.fail("aborted", 1)
    return out


def bad_codes(text):
    m = re.search(r"^status codes: \d+ 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", text, re.M)
    return [int(n) for n in m.groups()] if m else [0]


def parse_openloop(text, raw=None):
    """Its last lines are `key<TAB>value`; raw has a row for each request: intended start us, latency us, kind."""
    out = Load()
    values = dict(ln.split("\t", 1) for ln in text.split("\n") if re.match(r"[a-z_]+\t", ln))
    if "requests" not in values:
        out.fail("aborted", 1)
        return out
    out.requests, out.seconds, out.bytes = int(values["requests"]), float(values["seconds"]), float(values["bytes"])
    for kind in KINDS:
        out.fail(kind, int(values.get(kind, 0)))
    out.rps = out.requests / out.seconds if out.seconds else math.nan
    out.resolution = 0.001
    if raw and os.path.exists(raw):
        rows = [ln.split("\t") for ln in machine.read(raw).split("\n")[1:] if ln]
        out.take_latencies(
            [int(r[1]) / 1000 for r in rows if r[2] == "ok"], [int(r[0]) / 1e6 for r in rows if r[2] == "ok"]
        )
    return out


def merged(parts):
    """Several generators that ran at once, as one: counts are added, quantiles are those of all requests together."""
    if len(parts) == 1:
        return parts[0]
    out = Load()
    out.requests, out.seconds = sum(p.requests for p in parts), max(p.seconds for p in parts)
    out.rps, out.bytes = sum(p.rps for p in parts), sum(p.bytes for p in parts)
    out.min_ms, out.resolution = min(p.min_ms for p in parts), max(p.resolution for p in parts)
    if out.requests:
        out.mean_ms = sum(p.mean_ms * p.requests for p in parts) / out.requests
    for p in parts:
        for kind, n in p.once().items():
            out.fail(kind, n)
    if all(p.grid for p in parts):
        steps = [(v, (q - before) * p.requests) for p in parts for v, q, before in zip(p.grid, GRID, [0, *GRID])]
        steps.sort()
        shares = np.cumsum([n for _, n in steps]) / out.requests
        at = np.minimum(np.searchsorted(shares, np.array(GRID) - 1e-9), len(steps) - 1)
        out.grid = [steps[i][0] for i in at]
    return out


def parse_autocannon(text, raw=None):
    """The JSON of autocannon -j."""
    d = json.loads(text)
    out = Load()
    out.requests, out.seconds = int(d["requests"]["total"]), float(d["duration"])
    out.rps, out.bytes = out.requests / out.seconds, float(d["throughput"]["total"])
    out.fail("read", d.get("errors", 0) - d.get("timeouts", 0))
    out.fail("timeout", d.get("timeouts", 0))
    out.fail("status", d.get("non2xx", 0))
    out.fail("length", d.get("mismatches", 0))
    lat = d["latency"]
    out.mean_ms, out.min_ms, out.sd_ms, out.resolution = lat["mean"], lat["min"], lat["stddev"], 1.0
    known = {0.0: lat["min"], 1.0: lat["max"]}
    known.update({float(k[1:].replace("_", ".")) / 100: v for k, v in lat.items() if re.fullmatch(r"p\d+(_\d+)?", k)})
    out.grid = [float(known.get(q, math.nan)) for q in GRID]
    return out


def recognise(path):
    """(kind, Load) of a file that some tool wrote."""
    text = machine.read(path, None)
    if text is None:
        raise Problem("cannot read %s" % path)
    if text.startswith("starttime\tseconds\t"):
        out = Load()
        ms, starts = read_ab_g(path)
        out.take_latencies(ms, starts)
        out.requests, out.resolution = len(ms), 1.0
        if len(ms) > 1:
            out.seconds = max(s + m / 1000 for s, m in zip(starts, ms)) - min(starts)
        return "ab -g", out
    if re.search(r"^Requests per second: +[\d.]+ ", text, re.M):
        return "ab", parse_ab(text)
    if re.search(r"^Requests/sec: +[\d.]+$", text, re.M):
        return "wrk", parse_wrk(text)
    if re.search(r"^finished in .* req/s", text, re.M):
        return "h2load", parse_h2load(text)
    if text.lstrip().startswith("{") and '"latency"' in text:
        return "autocannon", parse_autocannon(text)
    raise Problem("%s: neither ab, ab -g, wrk, h2load nor autocannon -j wrote this" % path)
