#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The demo behind contrib/demo: the app, weir twice before it, the comparison, one table.

Three ways to answer the same two requests: Node alone, weir passing everything on (conf/setups/meteor-proxy.conf) and
weir serving the static files itself (meteor-static.conf). Every round runs all of them, in an order of its own; the
table has the median over the rounds. Everything started here is stopped, by pid, whatever way this ends.
"""
import argparse
import ctypes
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAGES = {"/": 687, "/image.jpg": 100018}  # what is asked for, and how long the answer must be
CONCURRENCY = 100
STARTED = []


class Problem(Exception):
    """Something the user should read as one sentence."""


def say(text):
    print(text, flush=True)


def free(port):
    """The port, or another one if somebody has it."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            s.bind(("127.0.0.1", 0))
            say("port %d is taken; using %d" % (port, s.getsockname()[1]))
        return s.getsockname()[1]


def die_with_parent():
    """Even a kill -9 of the demo takes what it started along (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def start(name, port, args, env, log):
    with open(log, "wb") as out:
        proc = subprocess.Popen(args, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                start_new_session=True, preexec_fn=die_with_parent)
    STARTED.append(proc)
    deadline = time.monotonic() + 15
    while True:
        if proc.poll() is not None or time.monotonic() > deadline:
            with open(log, errors="replace") as f:
                raise Problem("%s did not start (%s):\n%s" % (name, log, f.read()[-2000:]))
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)


def stop_all():
    """INT ends weir and Node at once; what is still there after 3 s is killed."""
    for proc in STARTED:
        if proc.poll() is None:
            proc.send_signal(signal.SIGINT)
    for proc in STARTED:
        try:
            proc.wait(3)
        except subprocess.TimeoutExpired:
            os.killpg(proc.pid, signal.SIGKILL)
            proc.wait()


def same_answer(setups):
    """Before anything is timed: all three must give the same bytes."""
    for path, size in PAGES.items():
        bodies = {}
        for name, port in setups.items():
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=10) as r:
                    bodies[name] = r.read()
            except OSError as e:
                raise Problem("%s does not answer %s: %s" % (name, path, e))
            if len(bodies[name]) != size:
                raise Problem("%s answers %s with %d bytes, not %d" % (name, path, len(bodies[name]), size))
        if len(set(bodies.values())) != 1:
            raise Problem("the answers to %s differ" % path)


def ab(port, path, requests):
    """One run of ab: a new connection for each request, as in the published comparison."""
    cmd = ["ab", "-q", "-r", "-s", "30", "-n", str(requests), "-c", str(min(CONCURRENCY, requests)),
           "http://127.0.0.1:%d%s" % (port, path)]
    out = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300).stdout

    def number(pattern, default=None):
        m = re.search(pattern, out, re.M)
        if not m and default is None:
            raise Problem("ab said:\n" + out[-1000:])
        return float(m.group(1)) if m else default

    failures = number(r"^Failed requests:\s+(\d+)") + number(r"^Non-2xx responses:\s+(\d+)", 0)
    failures += requests - number(r"^Complete requests:\s+(\d+)")
    return {"rps": number(r"^Requests per second:\s+([\d.]+)"), "failures": failures,
            "ms": number(r"^Time per request:\s+([\d.]+) \[ms\] \(mean\)$"), "p99": number(r"^\s+99%\s+(\d+)")}


def measure(setups, requests, rounds):
    rows = {(path, name): [] for path in PAGES for name in setups}
    order = list(rows)
    for port in setups.values():  # one short run each, not counted: caches, the JIT compiler, idle connections
        for path in PAGES:
            ab(port, path, max(CONCURRENCY, requests // 10))
    for i in range(rounds):
        say("round %d of %d: %d requests of each kind, %d at a time" % (i + 1, rounds, requests, CONCURRENCY))
        for path, name in order[i % len(order):] + order[:i % len(order)]:
            rows[path, name].append(ab(setups[name], path, requests))
    return rows


def table(rows):
    line = "%-11s  %-26s %11s %9s %9s %9s %9s"
    say("")
    say(line % ("request", "answered by", "requests/s", "ms", "p99 ms", "failures", "x Node"))
    base = {}
    for (path, name), runs in rows.items():
        med = {k: statistics.median(r[k] for r in runs) for k in ("rps", "ms", "p99")}
        base.setdefault(path, med["rps"])
        say(line % (path, name, "%.0f" % med["rps"], "%.1f" % med["ms"], "%.0f" % med["p99"],
                    "%d" % sum(r["failures"] for r in runs), "%.2f" % (med["rps"] / base[path])))
    say("")


def own_conf(run_dir, conf):
    """The shipped set-up as it is, with a control socket of its own: two servers run side by side."""
    path = os.path.join(run_dir, "proxy.conf")
    with open(path, "w") as f:
        f.write('include = "%s";\ncontrol = "control.sock";\n' % os.path.join(ROOT, "conf", "setups", conf + ".conf"))
    return path


def run(a):
    say("preparing the demo app")
    bundle = os.path.join(a.build, "bundle")
    subprocess.run(["node", os.path.join(HERE, "bundle.js"), bundle], check=True)
    weir, setups = os.path.join(a.build, "src", "weir"), {}

    port = setups["Node alone"] = free(3000)
    app = "127.0.0.1:%d" % port
    start("the demo app", port, ["node", os.path.join(HERE, "app.js")], {"PORT": str(port), "BUNDLE": bundle},
          os.path.join(a.build, "app.log"))
    for name, conf, wish in (("weir, proxy only", "meteor-proxy", 8080),
                             ("weir, proxy + static files", "meteor-static", 8081)):
        port = setups[name] = free(wish)
        run_dir = os.path.join(a.build, conf)
        os.makedirs(run_dir, exist_ok=True)
        start(name, port, [weir, "run", "-c", own_conf(run_dir, conf)],
              {"APP": app, "BUNDLE": bundle, "LISTEN": "127.0.0.1:%d" % port}, os.path.join(a.build, conf + ".log"))
    same_answer(setups)
    rows = measure(setups, a.requests, a.rounds)
    table(rows)
    failures = sum(r["failures"] for runs in rows.values() for r in runs)
    if failures:
        say("%d requests failed: the figures above are not a result" % failures)
    if not a.once:
        for name, port in setups.items():
            say("%-27s http://127.0.0.1:%d/" % (name, port))
        say("Ctrl-C ends it.")
        while all(p.poll() is None for p in STARTED):
            time.sleep(0.5)
        raise Problem("a server ended by itself; its log is in %s" % a.build)
    return 1 if failures else 0


def main():
    p = argparse.ArgumentParser(prog="contrib/demo", description=__doc__.split("\n")[0])
    p.add_argument("--once", action="store_true", help="end after the table")
    p.add_argument("--requests", type=int, default=4000, help="requests of each kind in a round (%(default)s)")
    p.add_argument("--rounds", type=int, default=3, help="rounds (%(default)s)")
    p.add_argument("--build", default=os.path.join(ROOT, "build", "demo"), help=argparse.SUPPRESS)
    a = p.parse_args()

    def end(signum, _):
        raise KeyboardInterrupt

    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # INT too: a shell's background job ignores it
        signal.signal(sig, end)
    try:
        return run(a)
    except KeyboardInterrupt:
        say("\nstopping")
        return 0 if not a.once else 130
    except (Problem, subprocess.SubprocessError, OSError) as e:
        print("demo: %s" % e, file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        stop_all()


if __name__ == "__main__":
    sys.exit(main())
