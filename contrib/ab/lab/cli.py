# SPDX-License-Identifier: MIT
"""The command line of the laboratory."""
import argparse
import os
import resource
import shlex
import signal
import sys
import tempfile
import shutil
import time

from lab import analysis, arms, imports, loads, machine, report, setupfile, stats, tables
from lab.arms import Problem
from lab.runner import Different, Runner
from lab.setupfile import SetupError
from lab.store import Store

USAGE = """weir ab A.conf B.conf [...] [--url /image.jpg]... [--load 'ab -n 20000 -c 100']
       weir ab --setup NAME | --list
       weir ab report DIR
       weir ab import [NAME=]FILE... [--out DIR]"""
MOST_ROUNDS = 40


def say(text):
    print(text, file=sys.stderr, flush=True)


def parser():
    p = argparse.ArgumentParser(
        prog="weir ab",
        usage=USAGE,
        description="Measures configurations against each other and says what is noise.",
        epilog="Exit code: 0 decided, nothing is slower; 3 something is slower; 4 inconclusive; "
        "1 nothing could be measured, or failures make it void; 2 usage.",
    )
    p.add_argument(
        "arms",
        nargs="*",
        metavar="ARM",
        help="weir configurations, set-up files, names of set-ups, URLs; " "the first is the baseline",
    )
    p.add_argument("--setup", action="append", default=[], metavar="NAME", help="a shipped set-up")
    p.add_argument("--list", action="store_true", help="show the shipped set-ups")
    p.add_argument("--url", action="append", default=[], metavar="PATH", help="what is asked for (default: /)")
    p.add_argument("--load", help="the generator, without its URL (default: %s)" % loads.DEFAULT)
    p.add_argument("--generators", type=int, help="so many of them at once, the rate shared among them (default: 1)")
    p.add_argument("--rate", type=float, help="requests/s of a fixed rate: measures latency, not throughput")
    p.add_argument("--rounds", type=int, help="how often each arm is measured (default: as few as can decide)")
    p.add_argument(
        "--until-decided",
        action="store_true",
        help="more rounds until it is decided, at most --rounds (%d)" % MOST_ROUNDS,
    )
    p.add_argument("--metric", choices=sorted(analysis.METRICS), help="what decides (default: rps; p99 with --rate)")
    p.add_argument("--margin", type=float, help="differences within this many per cent do not matter (default: 3)")
    p.add_argument("--warmup", metavar="TIME", help="load before each run that is not counted (default: 1s)")
    p.add_argument("--cooldown", metavar="TIME", help="pause before each run (default: 500ms)")
    p.add_argument("--cpus", metavar="LIST", help="CPUs of the servers that a weir configuration starts, as in 0,1")
    p.add_argument("--load-cpus", metavar="LIST", help="CPUs of the generator")
    p.add_argument("--crowded", action="store_true", help="run arms that need more CPUs than there are")
    p.add_argument("--seed", type=int, help="of the order of runs and of the bootstrap (default: drawn)")
    p.add_argument("--out", metavar="DIR", help="where the results go (default: weir-ab-DATE-TIME)")
    return p


def show_needs(names):
    """For contrib/ab/install: what the arms of these set-ups need, one a line."""
    needs = {}
    for name in names:
        for arm in arms.Setup(arms.find(name), arms.Session("/nonexistent")).arms:
            needs.update(dict.fromkeys(n.partition(":")[2] or n for n in arm.needs))
    print("\n".join(needs))
    return 0


def cpu_list(text):
    try:
        return [int(c) for c in text.split(",")] if text else []
    except ValueError:
        raise Problem("`%s` is no list of CPUs, as in 0,1" % text) from None


def show_list():
    session = arms.Session("/nonexistent")
    for name, path in arms.available().items():
        try:
            setup = arms.Setup(path, session)
            print("%-20s %s" % (name, setup.plan.get("title", "")))
            for arm in setup.arms:
                print(
                    "    %-16s %s%s" % (arm.name, arm.title, "" if not arm.skip else " - cannot run here: " + arm.skip)
                )
        except SetupError as e:
            print("%-20s %s" % (name, e))
    return 0


class Plan:
    """The command line and the set-up file put together; the command line wins."""

    def __init__(self, a, file):
        self.rate = a.rate or file.get("rate")
        text = a.load or (file.get("load") if bool(a.rate) == bool(file.get("rate")) else None)
        self.generators = a.generators or file.get("generators", 1)
        self.command = loads.Command(
            text or ("openloop -c 100 -d 5" if self.rate else loads.DEFAULT),
            self.rate and self.rate / self.generators,
        )
        self.urls = a.url or list(file.get("urls", [])) or ["/"]
        for url in self.urls:
            if not url.startswith("/"):
                raise Problem("--url `%s`: give the path, as in /image.jpg" % url)
        self.urls = list(dict.fromkeys(self.urls))
        self.metric = a.metric or file.get("metric") or ("p99" if self.rate else "rps")
        if self.metric not in analysis.METRICS:
            raise Problem("metric = \"%s\" is none of %s" % (self.metric, ", ".join(analysis.METRICS)))
        self.margin = (a.margin or file.get("margin") or 3.0) / 100
        self.warmup = setupfile.seconds(a.warmup or file.get("warmup", "1s"), "--warmup")
        self.cooldown = setupfile.seconds(a.cooldown or file.get("cooldown", "500ms"), "--cooldown")
        wanted = cpu_list(a.load_cpus) or [int(c) for c in file.get("load_cpus", [])]
        self.load_cpus = [c for c in wanted if c in machine.cpus()]
        self.file = file
        self.seed = a.seed if a.seed is not None else int.from_bytes(os.urandom(4), "big")

    def meta(self, all_arms, argv):
        return {
            "format": 1,
            "title": self.file.get("title", " against ".join(x.name for x in all_arms)),
            "about": self.file.get("about", ""),
            "note": self.file.get("note", ""),
            "command": shlex.join(["weir", "ab", *argv]),
            "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
            "seed": self.seed,
            "regime": self.command.regime,
            "load": self.command.text,
            "generators": self.generators,
            "rate": self.rate,
            "tool": self.command.tool,
            "urls": self.urls,
            "metric": self.metric,
            "margin": self.margin,
            "warmup": self.warmup,
            "cooldown": self.cooldown,
            "load_cpus": self.load_cpus,
            "judge": list(self.file.get("judge", [])),
            "published": self.file.get("published", []),
            "published_from": self.file.get("published_from", ""),
            "arms": [],
            "problems": [],
            "answers": {},
        }


def describe(all_arms):
    return [
        {
            "name": a.name,
            "title": a.title,
            "url": a.url,
            "file": a.file and os.path.basename(a.file),
            "skip": a.skip,
            "processes": [
                {"name": p.name, "run": shlex.join(p.run), "cpus": p.cpus, "env": p.env} for p in a.processes
            ],
        }
        for a in all_arms
    ]


def preflight(meta, plan, all_arms):
    programs = {plan.command.program} if plan.command.tool != "openloop" else set()
    for arm in all_arms:
        programs |= {p.run[0] for p in arm.processes}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    meta["environment"] = machine.environment(programs)
    meta["environment"]["descriptors"] = hard
    server_cpus = (
        sorted({c for arm in all_arms for c in arm.cpus()}) if all(a.cpus() for a in all_arms if not a.skip) else []
    )
    meta["warnings"] = machine.warnings(meta["environment"], plan.load_cpus, server_cpus, hard)
    for w in meta["warnings"]:
        say("note: " + w)


def rounds_of(a, comparisons):
    """(after which rounds to look, alpha of each look)."""
    if a.until_decided:
        at = stats.looks(max(8, a.rounds or MOST_ROUNDS))
        return at, stats.alpha_at_look(len(at))
    needed = stats.rounds_needed(comparisons)
    if a.rounds and a.rounds < needed:
        say(
            "note: %d rounds cannot decide %d comparison%s; it takes %d"
            % (a.rounds, comparisons, "s" if comparisons > 1 else "", needed)
        )
    return [a.rounds or needed], stats.ALPHA


def measure(a, argv):
    work = tempfile.mkdtemp(prefix="weir-ab-")
    os.chmod(work, 0o755)
    try:
        return measure_in(work, a, argv)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def measure_in(work, a, argv):
    session = arms.Session(work, a.seed)
    all_arms, file = arms.load([*a.arms, *a.setup], session, cpu_list(a.cpus), a.crowded)
    plan = Plan(a, file)
    for name in file.get("judge", []):
        if name not in [arm.name for arm in all_arms[1:]]:
            raise Problem("judge names `%s`, which is none of the arms after the first" % name)
    meta = plan.meta(all_arms, argv)
    out = a.out or time.strftime("weir-ab-%Y%m%d-%H%M%S")
    preflight(meta, plan, all_arms)
    store = Store.create(out, meta)
    runnable = [arm for arm in all_arms if not arm.skip]
    for arm in all_arms:
        if arm.skip:
            say("%s cannot run here: %s" % (arm.name, arm.skip))
    runner = Runner(
        runnable,
        plan.urls,
        plan.command,
        store,
        session,
        say,
        warmup=plan.warmup,
        cooldown=plan.cooldown,
        load_cpus=plan.load_cpus,
        rng_seed=plan.seed,
        generators=plan.generators,
    )
    try:
        runner.try_all()
        meta["answers"] = runner.answers
        meta["arms"] = describe(all_arms)
        if runner.arms:
            run_rounds(a, runner, store)
    except Different as e:
        meta["refused"] = str(e)
    except Problem as e:
        meta["problems"].append(str(e))
    except KeyboardInterrupt:
        meta["problems"].append("interrupted after %d runs" % runner.run_number)
        say("interrupted: stopping what runs")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        runner.stop()
        meta["arms"] = describe(all_arms)
        meta["finished"] = time.strftime("%Y-%m-%d %H:%M:%S %z")
        store.save_meta()
    return finish(store)


def run_rounds(a, runner, store):
    judged = analysis.judged([arm.name for arm in runner.arms], store.meta.get("judge"))
    at, alpha = rounds_of(a, max(1, len(judged) * len(runner.urls)))
    store.meta["alpha"], store.meta["looks"] = alpha, at
    done = 0
    for until in at:
        runner.plan_rounds(until)
        while done < until:
            done += 1
            runner.round(done)
        store.save_meta()
        if a.until_decided and analysis.Analysis(store).decided:
            break


def finish(store):
    """The reports, the table and the sentence; returns the exit code. Of what was written, not of what is in memory:
    `report DIR` must say the same."""
    store = Store.open(store.path)
    result = analysis.Analysis(store)
    report.write(result)
    say("all of it: %s" % store.file("report.html"))
    print(tables.text(*tables.results(result)))
    if result.main:
        print()
        print(tables.text(*tables.comparisons(result)))
    print()
    print(result.sentence)
    return result.exit_code


def main(argv):
    def end(_signum, _frame):
        raise KeyboardInterrupt

    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, end)
    arms.adopt_orphans()
    try:
        if argv[:1] == ["report"]:
            if len(argv) != 2:
                print("usage: weir ab report DIR", file=sys.stderr)
                return 2
            return finish(Store.open(argv[1]))
        if argv[:1] == ["needs"]:
            return show_needs(argv[1:])
        if argv[:1] == ["import"]:
            return imports.main(argv[1:], finish)
        a = parser().parse_args(argv)
        if a.list:
            return show_list()
        if not a.arms and not a.setup:
            parser().print_usage(sys.stderr)
            return 2
        if any(v is not None and v <= 0 for v in (a.rounds, a.rate, a.generators)):
            raise Problem("--rounds, --rate and --generators take positive numbers")
        return measure(a, argv)
    except (Problem, SetupError) as e:
        print("weir ab: %s" % e, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
