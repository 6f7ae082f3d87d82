#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""weir beside nginx and HAProxy: processor time, throughput, tail and memory, in interleaved rounds.

    t/perf/run.py [--only ROW,ROW…] [--rounds N] [--seconds S] [--bin WEIR] [--list]

One event loop each, on CPU 0; load generator and origin on CPU 1; loopback; no access logs. In every round each server
does the same work, in rotating order; the table has medians over the rounds. Ratios are of processor time per request,
weir's over the other's, beside the bar set for that row. Figures of different runs say nothing about each other:
compare inside one run only. Nothing is asserted. Needs nginx, haproxy, wrk, ab, two CPUs.
"""
import argparse
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "t", "e2e"), os.path.join(ROOT, "t", "suites", "common")]

import servers  # noqa: E402
from harness import util  # noqa: E402
from wire import Conn  # noqa: E402


class Row:
    """One kind of work: path, length of the answer, tool, connections, who can do it, weir's bar."""

    def __init__(self, text, path, length, tool, conns, who, bar):
        self.text, self.path, self.length, self.tool, self.conns = text, path, length, tool, conns
        self.who, self.bar = who, bar


STATIC, PROXY, NOPUSH = ("nginx", "weir"), ("nginx", "haproxy", "weir"), ("nginx", "nginx-nopush", "weir")
ROWS = {
    "static-687": Row("687-byte file, kept connections", "/static/page.html", 687, "wrk", 100, STATIC, 0.75),
    "static-21k": Row("21 KB file, kept connections", "/static/style.css", 21000, "wrk", 100, STATIC, 0.90),
    "static-100k": Row("100,018-byte file, kept connections", "/static/image.jpg", 100018, "wrk", 100, NOPUSH, 0.90),
    "proxy-hello": Row("proxied hello, kept connections", "/hello", 13, "wrk", 100, PROXY, 0.85),
    "proxy-100k": Row("proxied 100 KB, kept connections", "/100k.jpg", 100018, "wrk", 20, PROXY, 0.80),
    "proxy-1m": Row("proxied 1 MB, kept connections", "/1m.bin", 1 << 20, "wrk", 20, PROXY, 0.75),
    "new-static": Row("687-byte file, a connection each", "/static/page.html", 687, "ab", 100, STATIC, 0.85),
    "new-hello": Row("proxied hello, a connection each", "/hello", 13, "ab", 100, PROXY, 0.85),
    "new-100k": Row("proxied 100 KB, a connection each", "/100k.jpg", 100018, "ab", 100, PROXY, 0.70),
}
MEMORY = {
    "idle": ("user memory for an idle kept connection, bytes", PROXY, 512),
    "rest": ("memory at rest (PSS), KB", PROXY, 4000),
}


def machine_us():
    """Processor time of the whole machine so far: user, nice, system, irq, softirq."""
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:]]
    return (v[0] + v[1] + v[2] + v[5] + v[6]) * 1000000 // os.sysconf("SC_CLK_TCK")


def wrk_figures(out):
    """What wrk printed: (requests done, requests/s, p99 in ms, failures)."""
    def found(pattern, default="0"):
        m = re.search(pattern, out, re.M)
        return m.group(1) if m else default

    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", out)
    failures = sum(map(int, errors.groups())) if errors else 0
    failures += int(found(r"Non-2xx or 3xx responses: (\d+)"))
    p99 = re.search(r"^\s+99%\s+([\d.]+)(us|ms|s)$", out, re.M)
    p99 = float(p99.group(1)) * {"us": 0.001, "ms": 1, "s": 1000}[p99.group(2)] if p99 else float("nan")
    return int(found(r"^\s+(\d+) requests in")), float(found(r"^Requests/sec:\s+([\d.]+)")), p99, failures


def load(row, port, seconds):
    """Runs the generator; returns (requests done, requests/s, p99 in ms, failures)."""
    url = "http://127.0.0.1:%d%s" % (port, row.path)
    if row.tool == "wrk":
        cmd = ["wrk", "-t1", "-c%d" % row.conns, "-d%ds" % seconds, "--latency", "--timeout", "10s", url]
    else:
        cmd = ["ab", "-q", "-r", "-t", str(seconds), "-n", "10000000", "-c", str(row.conns), url]
    out = subprocess.run(servers.pinned(1, cmd), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout

    if row.tool == "wrk":
        return wrk_figures(out)

    def found(pattern, default="0"):
        m = re.search(pattern, out, re.M)
        return m.group(1) if m else default

    failures = int(found(r"^Failed requests:\s+(\d+)")) + int(found(r"^Non-2xx responses:\s+(\d+)"))
    return (int(found(r"^Complete requests:\s+(\d+)")), float(found(r"^Requests per second:\s+([\d.]+)")),
            float(found(r"^\s+99%\s+(\d+)", "nan")), failures)


def target(name, running):
    s = running[name.split("-")[0]]
    return s, s.port2 if name == "nginx-nopush" else s.port


def check_answer(row, port, name):
    c = Conn("127.0.0.1", port, 10)
    c.send(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % row.path.encode())
    r = c.response()
    c.close()
    if r.status != 200 or len(r.body) != row.length:
        raise AssertionError("%s answers %s with %d and %d bytes" % (name, row.path, r.status, len(r.body)))


def measure(row, running, rounds, seconds):
    """Returns {server: {figure: median}}; prints a line for each run that had failures."""
    got = {name: [] for name in row.who}
    for name in row.who:
        server, port = target(name, running)
        check_answer(row, port, name)
        load(row, port, 1)  # warm
    for i in range(rounds):
        k = i % len(row.who)
        for name in row.who[k:] + row.who[:k]:
            server, port = target(name, running)
            cpu, machine = server.cpu_us(), machine_us()
            n, rps, p99, failures = load(row, port, seconds)
            cpu, machine = server.cpu_us() - cpu, machine_us() - machine
            if failures or not n:
                print("    %s: %d of %d requests failed" % (name, failures, n))
            got[name].append({"cpu": cpu / max(n, 1), "machine": machine / max(n, 1), "rps": rps, "p99": p99})
    return {name: {k: statistics.median(r[k] for r in runs) for k in runs[0]} for name, runs in got.items()}


def show(key, row, med):
    """The row's table: one line a server, then weir's ratio to each and to the better one."""
    print("\n%s: %s (%s, %d connections)" % (key, row.text, row.tool, row.conns))
    print("    %-14s %14s %15s %12s %9s %12s" % ("server", "its CPU us/req", "all CPUs us/req", "requests/s", "p99 ms",
                                               "weir/it CPU"))
    for name in row.who:
        m = med[name]
        print("    %-14s %14.2f %15.2f %12.0f %9.2f %12s" % (
            name, m["cpu"], m["machine"], m["rps"], m["p99"],
            "" if name == "weir" else "%.2f" % (med["weir"]["cpu"] / m["cpu"] if m["cpu"] else float("nan"))), flush=True)
    best = min(med[name]["cpu"] for name in row.who if name != "weir")
    ratio = med["weir"]["cpu"] / best if best else float("nan")
    print("    weir / the better one: %.2f   bar: %.2f   %s" % (ratio, row.bar, "met" if ratio <= row.bar else "NOT met"))


def idle_bytes(server):
    out = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "t", "suites", "idle", "run.py"), "127.0.0.1",
                          str(server.port), "--pid", str(server.proc.pid), "--conns", "5000", "--path", "/hello"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    m = re.search(r"(-?\d+) octets of PSS each", out)
    return float(m.group(1)) if m else float("nan")


def show_memory(key, values):
    text, who, bar = MEMORY[key]
    print("\n%s: %s" % (key, text))
    for name in who:
        print("    %-14s %14.0f" % (name, values[name]))
    print("    bar: %d   %s" % (bar, "met" if values["weir"] <= bar else "NOT met"), flush=True)


def header(weir_bin):
    model = "unknown processor"
    with open("/proc/cpuinfo") as f:
        for ln in f:
            if ln.startswith("model name"):
                model = ln.split(":", 1)[1].strip()
    print("%s, %d CPUs, Linux %s" % (model, os.cpu_count(), platform.release()))
    for name in ("nginx", "haproxy", "weir"):
        print("    %-8s %s" % (name, servers.version(name, weir_bin)))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--only", default=",".join([*ROWS, *MEMORY]), help="rows, comma-separated (see --list)")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=int, default=3, help="of load in each run")
    p.add_argument("--bin", default=os.environ.get("WEIR_BIN", os.path.join(ROOT, "build", "plain", "src", "weir")))
    p.add_argument("--list", action="store_true")
    a = p.parse_args()
    if a.list:
        for key in [*ROWS, *MEMORY]:
            print("%-12s %s" % (key, ROWS[key].text if key in ROWS else MEMORY[key][0]))
        return 0
    keys = a.only.split(",")
    unknown = [k for k in keys if k not in ROWS and k not in MEMORY]
    lacking = [t for t in ("nginx", "haproxy", "wrk", "ab", "taskset")
               if not (shutil.which(t) or shutil.which("/usr/sbin/" + t))]
    if unknown or lacking or os.cpu_count() < 2:
        sys.exit("no such row: %s" % unknown if unknown else "needs %s" % (", ".join(lacking) or "two CPUs"))
    header(a.bin)
    work, running = tempfile.mkdtemp(prefix="weir-perf-"), {}
    os.chmod(work, 0o755)
    try:
        servers.make_files(work)
        origin = running["origin"] = servers.start_origin(work)
        at_rest = {}
        for name in PROXY:
            running[name] = servers.start(name, work, origin.port, a.bin)
            at_rest[name] = running[name].pss_kb()
        for key in keys:
            if key == "rest":
                show_memory(key, at_rest)
            elif key == "idle":
                show_memory(key, {n: idle_bytes(running[n]) for n in PROXY})
            else:
                show(key, ROWS[key], measure(ROWS[key], running, a.rounds, a.seconds))
    finally:
        for s in reversed(list(running.values())):
            s.stop()
        shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (AssertionError, KeyboardInterrupt) as e:
        sys.exit("perf: %s" % (e or "stopped"))
