# SPDX-License-Identifier: MIT
"""The rounds. In each of them every arm, and the first one once more, is started afresh, asked for every URL after a
warm-up and a pause, and stopped; in an order that is drawn anew each time. Only one arm runs at a time.

Whatever way this ends, nothing that was started is left: the arm that runs is stopped by the caller's stop().
"""
import os
import random
import signal
import subprocess
import threading
import time

from lab import answers, loads, machine
from lab.arms import Died, Problem, die_with_us, prepare
from lab.store import pairs, row_of

SAMPLES = 300
LIMIT = 900  # seconds that one run of a generator may take
SETTLE = 10  # seconds that an arm may take to come to rest after its warm-up
IDLE = 0.1  # of a CPU: rest


class Sampler(threading.Thread):
    """Memory once a second, and a line about how it goes."""

    def __init__(self, arm, out, title, bytes_per_request, progress, say):
        super().__init__(daemon=True)
        self.arm, self.out, self.title = arm, out, title
        self.bytes_per_request, self.progress, self.say = bytes_per_request, progress, say
        self.pss, self.ended = {}, threading.Event()

    def run(self):
        then, lo = time.monotonic(), machine.loopback_bytes()
        cpu = self._memory()
        while not self.ended.wait(1.0):
            t, now_lo, now_cpu = time.monotonic(), machine.loopback_bytes(), self._memory()
            parts = []
            if self.bytes_per_request:
                parts.append("about %d requests/s" % ((now_lo - lo) / self.bytes_per_request / (t - then)))
            parts += [
                "%s %d %% CPU %.1f MB" % (n, (us - cpu.get(n, 0)) / 10000 / (t - then), self.pss_now[n] / 1024)
                for n, us in now_cpu.items()
            ]
            done = last_completed(self.out)
            if done:
                parts.append("%s done" % done)
            self.say("%s  %s: %s" % (self.progress(), self.title, ", ".join(parts) or "running"))
            then, lo, cpu = t, now_lo, now_cpu

    def _memory(self):
        snapshot = self.arm.snapshot()
        self.pss_now = {n: kb for n, (_, kb) in snapshot.items()}
        for n, kb in self.pss_now.items():
            self.pss[n] = max(self.pss.get(n, 0), kb)
        return {n: us for n, (us, _) in snapshot.items()}

    def finish(self):
        self.ended.set()
        self.join()
        return self.pss


def keep_log(path, to):
    """Its last part, and an empty file for the next time: access logs may stand in it."""
    with open(path, "rb") as f:
        f.seek(max(0, os.path.getsize(path) - (64 << 10)))
        text = f.read()
    if text:
        with open(to, "wb") as f:
            f.write(text)
    os.truncate(path, 0)


def last_line(path):
    lines = [ln.strip() for ln in machine.read(path).split("\n") if ln.strip()]
    return lines[-1][:300] if lines else "it said nothing"


def last_completed(path):
    """ab's and openloop's own count, from what they printed so far."""
    lines = [ln for ln in machine.read(path).split("\n") if ln.startswith("Completed ")]
    return lines[-1].split()[1] if lines else None


class Runner:
    """Holds what all rounds share. `say` prints progress."""

    def __init__(
        self, arms, urls, command, store, session, say, *, warmup, cooldown, load_cpus, rng_seed, generators=1
    ):
        self.arms, self.urls, self.command, self.store = arms, urls, command, store
        self.session, self.say, self.warmup, self.cooldown = session, say, warmup, cooldown
        self.load_cpus, self.rng = load_cpus, random.Random(rng_seed)
        self.headers = answers.headers_of(command.words)
        self.answers, self.running, self.generators, self.loads = {}, None, [], generators
        self.run_number = self.done = self.planned = 0
        self.began = None

    # --- progress ---

    def plan_rounds(self, rounds):
        self.planned = rounds * (len(self.arms) + 1) * len(self.urls)

    def progress(self):
        took = time.monotonic() - self.began
        if not self.done:
            return "[  0 %]"
        left = took / self.done * (self.planned - self.done)
        return "[%3d %%, %d:%02d left]" % (100 * self.done // max(1, self.planned), left // 60, left % 60)

    # --- arms ---

    def start(self, arm):
        self.running = arm
        arm.start()

    def stop(self):
        """Ends the generator and the arm that runs, if any; fails if a port stays taken."""
        self._end_generators()
        arm, self.running = self.running, None
        if not arm or not arm.started:
            return
        arm.stop()
        arm.started = False
        for p in arm.processes:
            if p.log and os.path.exists(p.log):
                keep_log(p.log, self.store.file("logs", "%s-%s.log" % (arm.name, p.name)))
        deadline = time.monotonic() + 3
        while arm.processes and any(machine.port_taken(h, port) for h, port in arm._endpoints()):
            if time.monotonic() > deadline:
                raise Problem("%s was stopped, but its port is still taken" % arm.name)
            time.sleep(0.02)

    def try_all(self):
        """Starts each arm once and compares the answers. An arm that does not start gets its reason (arm.skip); one
        that answers otherwise than the first makes it all void: a Problem."""
        for arm in self.arms:
            self.say("asking %s" % arm.name)
            try:
                prepare(arm, self.session)
                self.start(arm)
                self.answers[arm.name] = self._ask(arm)
            except Problem as e:
                if isinstance(e, Different):
                    raise
                arm.skip = str(e)
            finally:
                self.stop()
        self.arms = [a for a in self.arms if not a.skip]
        if self.arms:
            self._compare()

    def _ask(self, arm):
        got = {}
        for url in self.urls:
            first, odd = answers.sample(arm.url, url, self.headers, SAMPLES, self.command.keeps())
            arm.check()
            if first is None:
                raise Different("%s does not answer %s: %s" % (arm.name, url, odd[0]))
            if odd:
                raise Different("%s does not always answer %s alike: %s; %d such" % (arm.name, url, odd[0], len(odd)))
            if first["status"] // 100 != 2:
                raise Different("%s answers %s with status %d" % (arm.name, url, first["status"]))
            got[url] = first
        return got

    def _compare(self):
        base = self.arms[0]
        for arm in self.arms[1:]:
            for url in self.urls:
                why = answers.difference(self.answers[base.name][url], self.answers[arm.name][url])
                if why:
                    raise Different(
                        "%s and %s do not give the same answer to %s: %s" % (base.name, arm.name, url, why)
                    )

    # --- rounds ---

    def round(self, number):
        if self.began is None:
            self.began = time.monotonic()
            if self.load_cpus:  # what this process does is not done where the servers run
                os.sched_setaffinity(0, self.load_cpus)
        order = [(a, False) for a in self.arms] + [(self.arms[0], True)]
        self.rng.shuffle(order)
        for arm, twin in order:
            urls = list(self.urls)
            self.rng.shuffle(urls)
            try:
                self.start(arm)
                for url in urls:
                    self.one(arm, twin, url, number)
            finally:
                self.stop()

    def one(self, arm, twin, url, number):
        self.run_number += 1
        run, full = self.run_number, arm.url + url
        per_request = self._warm(arm, full)
        self._settle(arm)
        title = "round %d, %s%s %s" % (number, arm.name, " (again)" if twin else "", url)
        files = [(self.store.raw(n, "out"), self.store.raw(n, "tsv")) for n in names_of(run, self.loads)]
        start = time.time()
        cpu, (busy, everything, stolen) = arm.cpu_us(), machine.machine_times()
        sampler = Sampler(arm, files[0][0], title, per_request, self.progress, self.say)
        sampler.start()
        died = None
        leaving = arm.leave_later()
        try:
            self._generate([(self.command.measured(full, raw), out) for out, raw in files], arm)
        except Died as e:
            died = e
        finally:
            pss = sampler.finish()
            for timer in leaving:
                timer.cancel()
        busy2, everything2, stolen2 = machine.machine_times()
        used = {n: us - cpu.get(n, 0) for n, us in arm.cpu_us().items()}
        load = loads.merged([self.command.parse(machine.read(out), raw) for out, raw in files])
        self._judge(load, arm, url, died)
        row = row_of(run, number, arm.name, twin, url, self.command.regime, start, load)
        n = load.requests or float("nan")
        if used and not died and not any(p.left for p in arm.processes):  # who has gone has taken its count along
            row.update(cpu_us=sum(used.values()) / n, cpu_by=pairs({k: v / n for k, v in used.items()}))
        row.update(
            machine_us=(busy2 - busy) / n,
            pss_kb=float(sum(pss.values())) if pss else float("nan"),
            pss_by=pairs(pss),
            stolen=(stolen2 - stolen) / max(1, everything2 - everything),
        )
        self.store.add(row, load)
        for n in names_of(run, self.loads):
            self.store.pack(n)
        self.done += 1
        self.say(
            "%s  %s: %.0f requests/s%s"
            % (self.progress(), title, load.rps, "; %d failed" % row["failures"] if row["failures"] else "")
        )
        if died:
            raise Died("round %d: %s: %s" % (number, arm.name, died))
        if "aborted" in load.failures:
            raise Problem("round %d: %s: %s gave up: %s" % (number, arm.name, self.command.tool, last_line(files[0][0])))

    def _judge(self, load, arm, url, died):
        """Failures that the generator does not see: short answers, a server that could not follow, a death."""
        expected = self.answers.get(arm.name, {}).get(url)
        if died:
            load.fail("died", 1)
        if expected and load.requests and load.bytes == load.bytes and not load.total_failures():
            mean = load.bytes / load.requests
            least = expected["wire"] * 0.999 - 1 if self.command.tool != "ab" else expected["length"]
            if mean < (expected["length"] if expected["chunked"] else least):
                load.fail("length", 1)
        rate = (self.command.rate or 0) * self.loads
        if load.rps < 0.95 * rate:
            load.fail("late", round(load.requests * (1 - load.rps / rate)))

    def _warm(self, arm, url):
        """Returns about how many bytes on loopback a request is worth, for the line a second."""
        if not self.warmup:
            return 0
        out = os.path.join(self.session.work, "warm.out")
        lo = machine.loopback_bytes()
        self._generate([(self.command.warm(url, self.warmup), out)], arm, self.warmup)
        lo = machine.loopback_bytes() - lo
        requests = self.command.parse(machine.read(out), None).requests
        return lo / requests if requests else 0

    def _settle(self, arm):
        """The pause, and longer while the arm still works off what the warm-up's clients left behind when they went."""
        time.sleep(self.cooldown)
        if not self.warmup:
            return
        cpu, then, end = sum(arm.cpu_us().values()), time.monotonic(), time.monotonic() + SETTLE
        while arm.processes and then < end:
            time.sleep(0.05)
            used, now = sum(arm.cpu_us().values()), time.monotonic()
            if used - cpu < IDLE * 1e6 * (now - then):
                return
            cpu, then = used, now

    def _generate(self, runs, arm, seconds=None):
        """Runs generators [(arguments, file for what they print)] at once and to their end, or interrupts them after so
        many seconds: none of them can be told to run for half a second. Died as soon as a process of the arm ends."""

        def child():
            die_with_us()
            os.sched_setaffinity(0, self.load_cpus or machine.cpus())

        for args, out in runs:
            with open(out, "wb") as f:
                self.generators.append(
                    subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=f, stderr=f, preexec_fn=child)
                )
        began = time.monotonic()
        interrupt = began + (seconds or LIMIT)
        try:
            for g in self.generators:
                while not ended(g):
                    arm.check()
                    if time.monotonic() >= interrupt:
                        interrupt = began + LIMIT
                        for one in self.generators:
                            one.send_signal(signal.SIGINT)
                    if time.monotonic() > began + LIMIT:
                        raise Problem("%s did not end within %d s" % (os.path.basename(runs[0][0][0]), LIMIT))
            arm.check()
        finally:
            self._end_generators()

    def _end_generators(self):
        for g in self.generators:
            if g.poll() is None:
                g.kill()
            g.wait()
        self.generators = []


def names_of(run, generators):
    """Of a run's files: 7, and 7-2, 7-3 where there are more generators."""
    return [str(run), *("%d-%d" % (run, n) for n in range(2, generators + 1))]


def ended(process, seconds=0.05):
    try:
        process.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        return False


class Different(Problem):
    """The arms do not do the same work: nothing is measured."""
