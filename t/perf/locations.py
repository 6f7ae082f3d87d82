#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What locations cost: processor time per request with one of them and with many.

    t/perf/locations.py [--bin WEIR] [--rounds N] [--seconds S]

One loop on CPU 0, wrk on CPU 1, answers of two bytes, a path that the last location takes. Each round runs every
configuration once, in changing order; the table has medians and the ratio to the first row of its kind. The bars are
1.10 for 1,000 prefixes beside one and 1.30 for 20 regular expressions beside one. Nothing is asserted.
"""
import argparse
import os
import random
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "t", "e2e"), os.path.join(ROOT, "t", "suites", "common")]

OF = '{ match = "%s"; respond = "ok"; access_log = false; }'
PREFIXES = ["/section-%03d/" % i for i in range(1000)]
REGEXES = ["~ \\.(ext%02d|alt%02d)$" % (i, i) for i in range(20)]
KINDS = {
    "one prefix": (["/section-999/"], "/section-999/page"),
    "1,000 prefixes": (PREFIXES, "/section-999/page"),
    "one regular expression": ([REGEXES[-1]], "/img/photo-2024-05-06.ext19"),
    "20 regular expressions": (REGEXES, "/img/photo-2024-05-06.ext19"),
}


def schedstat(pids):
    total = 0
    for pid in pids:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
                total += int(f.read().split()[0])
    return total / 1000


def measure(w, path, seconds, options=()):
    before = schedstat(w.tree())
    url = "http://127.0.0.1:%d%s" % (w.port, path)
    out = subprocess.run(["taskset", "-c", "1", "wrk", "-t1", "-c50", "-d%ds" % seconds, *options, url], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    used = schedstat(w.tree()) - before
    assert "Non-2xx" not in out, out
    requests = next(int(ln.split()[0]) for ln in out.splitlines() if "requests in" in ln)
    return used / requests


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--bin", default=os.path.join(ROOT, "build", "plain", "src", "weir"))
    p.add_argument("--rounds", type=int, default=6)
    p.add_argument("--seconds", type=int, default=2)
    args = p.parse_args()
    os.environ["WEIR_BIN"] = args.bin
    from harness.server import Weir
    servers, times = {}, {k: [] for k in KINDS}
    try:
        for kind, (matches, _) in KINDS.items():
            servers[kind] = Weir('workers = 1; cpu_affinity = 0; access_log = false; sites = ( { listen = '
                                 '"127.0.0.1:@PORT@"; locations = ( %s ); } );' % ",\n".join(OF % m for m in matches))
        for _ in range(args.rounds):
            order = list(KINDS)
            random.shuffle(order)
            for kind in order:
                times[kind].append(measure(servers[kind], KINDS[kind][1], args.seconds))
    finally:
        for w in servers.values():
            w.close()
    one = None
    for kind, v in times.items():
        us = statistics.median(v)
        one = us if kind.startswith("one") else one
        print("%-24s %6.2f us/request   %.2f" % (kind, us, us / one))


if __name__ == "__main__":
    main()
