#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The demo behind contrib/demo: the app, weir twice before it, the comparison, one table and the verdict.

Three ways to answer the same two requests: Node alone, weir passing everything on (conf/setups/meteor-proxy.conf) and
weir serving the static files itself (meteor-static.conf). The laboratory (contrib/ab, set-up demo) measures them against
each other. Everything started here is stopped, by pid, whatever way this ends.
"""
import argparse
import ctypes
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CONCURRENCY = 100
ARMS = ("node", "weir-proxy", "weir-static")
DECIDED = (0, 3, 4)  # nothing is slower, something is, inconclusive
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


def measure(a, weir):
    """The laboratory compares the three, with its own instances: those above stay as they are. Prints the table and the
    verdict; fails if there is none."""
    out = os.path.join(a.build, "measured")
    shutil.rmtree(out, ignore_errors=True)
    cmd = [sys.executable, os.path.join(ROOT, "contrib", "ab", "main.py"), "demo", "--out", out]
    if a.requests:
        cmd += ["--load", "ab -n %d -c %d" % (a.requests, min(CONCURRENCY, a.requests))]
    for option, value in (("--rounds", a.rounds), ("--warmup", a.warmup)):
        cmd += [option, str(value)] if value else []
    said = os.path.join(a.build, "measured.txt")
    with open(said, "w") as f:
        proc = subprocess.Popen(cmd, env={**os.environ, "WEIR_BIN": weir}, stdin=subprocess.DEVNULL, stdout=f,
                                start_new_session=True, preexec_fn=die_with_parent)
        STARTED.append(proc)
        code = proc.wait()
        STARTED.remove(proc)
    if code in DECIDED:
        show(out)
        return
    with open(said, errors="replace") as f:
        raise Problem("the comparison is void; what was measured is in %s\n%s" % (out, f.read().strip()[-2000:]))


def show(out):
    """One row for each URL and each way to answer it, and the laboratory's sentence."""
    sys.path.insert(0, os.path.join(ROOT, "contrib", "ab"))
    from lab import analysis, stats, store, tables

    result = analysis.Analysis(store.Store.open(out))
    rows = []
    for url in result.urls:
        for arm in ARMS:
            row = next(r for r in result.rows if (r.url, r.arm) == (url, arm))
            pairs = result.pairs(url, arm, "rps", base=ARMS[0])
            rows.append([url, arm, *(tables.figure(row.medians[c], d) for c, d in
                                     (("rps", 4), ("mean_ms", 3), ("p99_ms", 3))), str(row.failures),
                         "%.2f" % math.exp(stats.hodges_lehmann([math.log(y / x) for x, y in pairs])) if pairs else "-"])
    say("")
    say(tables.text(["URL", "setup", "requests/s", "mean ms", "p99 ms", "failures", "ratio to Node"], rows))
    say("")
    say(result.sentence)


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
    say("measuring: %s" % ", ".join(setups))
    measure(a, weir)
    if not a.once:
        say("")
        for name, port in setups.items():
            say("%-27s http://127.0.0.1:%d/" % (name, port))
        say("Ctrl-C ends it.")
        while all(p.poll() is None for p in STARTED):
            time.sleep(0.5)
        raise Problem("a server ended by itself; its log is in %s" % a.build)
    return 0


def main():
    p = argparse.ArgumentParser(prog="contrib/demo", description=__doc__.split("\n")[0])
    p.add_argument("--once", action="store_true", help="end after the table")
    p.add_argument("--requests", type=int, help="requests of each kind in a round (default: as conf/setups/demo.setup says)")
    p.add_argument("--rounds", type=int, help="rounds (default: as few as can decide)")
    p.add_argument("--warmup", help=argparse.SUPPRESS)
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
