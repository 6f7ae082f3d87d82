#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Records the noise that test_honesty.py judges the laboratory by: one arm against itself, several times a round.

    WEIR_BIN=build/plain/src/weir t/lab/record_noise.py t/lab/data/noise-quiet.tsv --quiet
    WEIR_BIN=build/plain/src/weir t/lab/record_noise.py t/lab/data/noise-busy.tsv --busy 2 --load 'ab -n 2000 -c 100'

What is measured is as in any comparison (a fresh start, a warm-up, a pause, ab), in rounds and in random order. --quiet
begins a round only when the machine has done next to nothing for a second, and leaves it out when others then used more
than a little; --busy N lets N processes compute meanwhile, each in spells of up to two seconds and with pauses as long, as
a compiler would. The file has a row for each run; `others` is the share of all CPUs that was used in its round by
whatever did not belong to it, `load` the load average before it.
"""
import argparse
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "contrib", "ab"))

from lab import arms, cli, machine, store  # noqa: E402
from lab.runner import Runner  # noqa: E402

ARM, URL = "meteor-1cpu:weir-proxy", "/"
RUNS = 4  # a round: three arms and the first one's second instance
COLUMNS = ("rps", "mean_ms", "p99_ms", "cpu_us")
QUIET = 0.08  # share of all CPUs that others may use


def compute(seed):
    arms.die_with_us()
    rng = random.Random(seed)
    while True:
        end = time.monotonic() + rng.uniform(0.1, 2)
        while time.monotonic() < end:
            sum(range(10000))
        time.sleep(rng.uniform(0.1, 2))


class Others:
    """The share of all CPUs that was used since by others than this process and its children, the ended ones included."""

    def __init__(self):
        self.then = self._now()

    @staticmethod
    def _now():
        usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return (*machine.machine_times()[:2], 1e6 * sum(u.ru_utime + u.ru_stime for u in usage))

    def share(self):
        busy, everything, own = (b - a for a, b in zip(self.then, self._now()))
        return max(0.0, busy - own) / max(1, everything)


def wait_for_quiet():
    while True:
        others = Others()
        time.sleep(1)
        if others.share() < QUIET:
            return


def record(a, work, out):
    setup = os.path.join(work, "noise.setup")
    with open(setup, "w", encoding="utf-8") as f:
        f.write('load_cpus = [ 1 ];\nurls = "%s";\narms = ( %s );\n' % (URL, ", ".join(['"%s"' % ARM] * (RUNS - 1))))
    session = arms.Session(work, a.seed)
    same, file = arms.load([setup], session)
    args = cli.parser().parse_args(["--load", a.load, "--seed", str(a.seed)])
    plan = cli.Plan(args, file)
    kept = store.Store.create(os.path.join(work, "runs"), plan.meta(same, []))
    runner = Runner(same, plan.urls, plan.command, kept, session, cli.say, warmup=plan.warmup, cooldown=plan.cooldown,
                    load_cpus=plan.load_cpus, rng_seed=a.seed)
    env = machine.environment({"ab", "node"})
    out.write("# %s against itself, %d runs a round: %s, URL %s, warm-up %g s, pause %g s, seed %d\n"
              % (ARM, RUNS, a.load, URL, plan.warmup, plan.cooldown, a.seed))
    out.write("# %s: %s\n" % (time.strftime("%Y-%m-%d"), "only rounds in which others used less than %d %% of the CPUs"
                              % (100 * QUIET) if a.quiet else "%d processes of the recorder computed, and whatever else ran"
                              % a.busy))
    out.write("# %s, CPUs %s, %s, Linux %s, node %s\n" % (env["processor"], env["cpus"], env["system"], env["kernel"],
                                                         env["versions"]["node"]))
    out.write("\t".join(("round", "others", "load", *COLUMNS)) + "\n")
    try:
        runner.try_all()
        if len(runner.arms) != RUNS - 1:
            raise arms.Problem("it cannot run here: %s" % [x.skip for x in same])
        runner.plan_rounds(a.rounds)
        number = 0
        while number < a.rounds:
            if a.quiet:
                wait_for_quiet()
            load, others = machine.read("/proc/loadavg").split()[0], Others()
            runner.round(number + 1)
            share = others.share()
            if a.quiet and share > QUIET:
                continue
            number += 1
            for row in kept.rows[-RUNS:]:
                out.write("\t".join([str(number), "%.3f" % share, load, *("%.6g" % row[c] for c in COLUMNS)]) + "\n")
            out.flush()
    finally:
        runner.stop()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("file")
    p.add_argument("--rounds", type=int, default=30)
    p.add_argument("--quiet", action="store_true")
    p.add_argument("--busy", type=int, default=0, metavar="N")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--load", default="ab -n 15000 -c 100")
    a = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    arms.adopt_orphans()
    others = [multiprocessing.Process(target=compute, args=(n,), daemon=True) for n in range(a.busy)]
    for o in others:
        o.start()
    with tempfile.TemporaryDirectory(prefix="weir-noise-") as work, open(a.file, "w", encoding="utf-8") as out:
        os.chmod(work, 0o755)
        record(a, work, out)


if __name__ == "__main__":
    main()
