#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the black-box runners of t/suites against a weir of their own each, and compares with t/suites/expected.txt.

    t/run_suites.py [--bin WEIR] [--slow] [--only smuggle,proxy,…] [--logs DIR]

A folder named by WEIR_SUITES takes the place of t/suites (expected.txt included, if it has one). A runner that cannot
run here (no root, no strace, a missing module) is printed as skipped, never as passed. Last line: what passed, failed
and was skipped; exit 1 on a failing id that is not listed, on a listed id that passes, or when weir itself misbehaves.
"""
import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SUITES = os.path.abspath(os.environ.get("WEIR_SUITES") or os.path.join(ROOT, "t", "suites"))
sys.path.insert(0, os.path.join(SUITES, "common"))
sys.path.insert(0, os.path.join(ROOT, "t", "e2e"))
BACKEND_PORT = 18300  # the runners' own

PROXY_CONF = """
timeouts = { server = "5s"; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "127.0.0.1:%d";
            locations = ( { match = "/dead/"; proxy = "127.0.0.1:@DEAD@"; } ); } );
""" % BACKEND_PORT
STATIC_CONF = """
sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; gzip = true; } );
"""
FAULT_CONF = """
workers = 1;
sites = ( { listen = "127.0.0.1:@PORT@"; root = "public";
            locations = ( { match = "/app/"; proxy = "@ORIGIN@"; } ); } );
"""


class Runner:
    """One runner: the configuration it needs, its arguments, and why it cannot run here (or None)."""

    def __init__(self, conf, args, slow_args=(), slow=True, seconds=300, files=None, needs=None):
        self.conf, self.args, self.slow_args, self.slow = conf, args, slow_args, slow
        self.seconds, self.files, self.needs = seconds, files or {}, needs


def needs_trace():
    if os.geteuid() != 0:
        return "needs root"
    return None if shutil.which("strace") else "needs strace"


def needs_websockets():
    return None if importlib.util.find_spec("websockets") else "needs python3-websockets"


PUBLIC = {"public/index.html": "<!doctype html><title>t</title>\n", "public/file": "x" * 5000}
RUNNERS = {
    "smuggle": Runner(PROXY_CONF, ["--backend-port", BACKEND_PORT],
                      ["--timeout", "5", "--quiet-ms", "300", "--settle", "5"], seconds=900),
    "proxy": Runner(PROXY_CONF, ["--backend-port", BACKEND_PORT, "--upstream-timeout", "5"]),
    "static": Runner(STATIC_CONF, ["--docroot", "@DIR@/public"], files=PUBLIC),
    "websocket": Runner(PROXY_CONF, ["--backend-port", BACKEND_PORT], needs=needs_websockets),
    "reload": Runner(STATIC_CONF, ["--reload", "kill -HUP @PID@", "--long-path", "/big"],
                     files={**PUBLIC, "public/big": "0123456789abcdef" * 600000}),
    # strace is what finds the faults here, and it keeps the sanitizers' own tracer out.
    "fault": Runner(FAULT_CONF, ["--pid", "@PID@", "--path", "/file"], slow=False, files=PUBLIC, needs=needs_trace),
    "fault-proxy": Runner(FAULT_CONF, ["--pid", "@PID@", "--path", "/app/x"], slow=False, files=PUBLIC,
                          needs=needs_trace),
    "idle": Runner(FAULT_CONF, ["--pid", "@PID@", "--conns", 3000, "--path", "/file"], slow=False, files=PUBLIC),
}
FAILED = re.compile(r"^FAIL (\S+)", re.M)
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)


def script_of(name):
    return os.path.join(SUITES, name.split("-")[0], "run.py")


def run_one(name, runner, slow, logs):
    """Returns (passed, ids that failed, what went wrong with weir or the runner itself)."""
    from harness import backends, server, util
    dead, origin = util.DeadPort(), backends.Recorder() if "@ORIGIN@" in runner.conf else None
    output, wrong = "", []
    try:
        w = server.Weir(runner.conf, files=runner.files, DEAD=dead.port, ORIGIN=origin.addr if origin else "")
    except AssertionError as e:
        return 0, [], [str(e)]
    try:
        values = {"@DIR@": w.dir, "@PID@": str(w.pid)}
        args = [re.sub("@[A-Z]+@", lambda m: values[m.group(0)], str(a)) for a in runner.args]
        cmd = ["/usr/bin/python3", script_of(name), "127.0.0.1", str(w.port), *args]
        done = subprocess.run(cmd + (list(runner.slow_args) if slow else []), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=runner.seconds,
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        output = done.stdout
    except subprocess.TimeoutExpired as e:
        output = (e.stdout or b"").decode(errors="replace")
        wrong.append("the runner did not end within %d s" % runner.seconds)
    try:
        verdict = w.errors()
        w.close()
    except AssertionError as e:
        wrong.append("weir: %s" % e)
    dead.close()
    if origin:
        origin.stop()
    with open(os.path.join(logs, name + ".log"), "w") as f:
        f.write(output + "\n--- error log of weir\n" + verdict)
    counts = COUNTS.findall(output)
    failed = FAILED.findall(output)
    if not counts:
        wrong.append("the runner printed no count: %s" % output[-300:].strip())
    elif int(counts[-1][1]) != len(set(failed)):
        wrong.append("%s failed by its count, %d by name" % (counts[-1][1], len(set(failed))))
    if name == "idle" and counts:
        print("      %s" % output.strip().split("\n")[0])
    return int(counts[-1][0]) if counts else 0, failed, wrong


def expected_failures():
    path = os.path.join(SUITES, "expected.txt")
    if not os.path.exists(path):
        path = os.path.join(ROOT, "t", "suites", "expected.txt")
    with open(path) as f:
        return {ln.split("#")[0].strip() for ln in f} - {""}


def main():
    p = argparse.ArgumentParser(description="Run the black-box runners against weir.")
    p.add_argument("--bin", help="the weir to test (default: WEIR_BIN, else build/plain/src/weir)")
    p.add_argument("--slow", action="store_true", help="a sanitizer build: longer time-outs, no strace, no memory figure")
    p.add_argument("--only", default=",".join(RUNNERS), help="comma-separated: %s" % " ".join(RUNNERS))
    p.add_argument("--logs", default=os.path.join(ROOT, "build", "log", "suites"))
    a = p.parse_args()
    if a.bin:
        os.environ["WEIR_BIN"] = a.bin
    os.makedirs(a.logs, exist_ok=True)
    expected, names = expected_failures(), a.only.split(",")
    passed = failed = skipped = 0
    print("runners from %s" % (SUITES if os.environ.get("WEIR_SUITES") else "t/suites"))
    for name in names:
        runner = RUNNERS[name]
        why = runner.needs and runner.needs()
        if not os.path.exists(script_of(name)):
            why = "no %s" % script_of(name)
        if why:
            skipped += 1
            print("SKIP  %-12s %s" % (name, why), flush=True)
            continue
        if a.slow and not runner.slow:
            continue
        ok, ids, wrong = run_one(name, runner, a.slow, a.logs)
        bad = sorted("%s/%s" % (name, i) for i in set(ids))
        news = [b for b in bad if b not in expected] + wrong
        # Only a complete run can say that a listed id passes now.
        news += ["%s is listed in expected.txt and passes: take it out" % e
                 for e in sorted(expected) if not wrong and e.startswith(name + "/") and e not in bad]
        passed, failed = passed + ok, failed + len(news)
        known = len(set(bad) & expected)
        print("%s  %-12s %d passed, %d failed%s" % ("FAIL" if news else "ok  ", name, ok, len(bad),
                                                    " (%d of them listed)" % known if known else ""), flush=True)
        for n in news:
            print("      " + n.replace("\n", "\n      "), flush=True)
    print("suites: %d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
