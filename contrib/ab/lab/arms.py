# SPDX-License-Identifier: MIT
"""Arms: what is compared. Each is a weir configuration, the arms of a set-up file, or a URL that answers already.

An arm's processes live only while it is measured: started in the order written, each waited for until its ready URL
answers, stopped in reverse order. A process is its whole tree: workers that outlive their parent become our children
(PR_SET_CHILD_SUBREAPER) and are ended too. Even a kill -9 of the laboratory takes the processes that it started along
(PR_SET_PDEATHSIG).
"""
import ctypes
import glob
import os
import random
import re
import shlex
import signal
import subprocess
import threading
import time
import urllib.parse

from lab import answers, machine, setupfile
from lab.setupfile import SetupError

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # contrib/ab, or $(libexecdir)/weir/ab
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PORTS = range(20000, 32000)  # below the range that outgoing connections take theirs from

TOP = {
    "title": str,
    "about": str,
    "arms": list,
    "load": str,
    "rate": (int, float),
    "generators": int,
    "urls": list,
    "warmup": str,
    "cooldown": str,
    "margin": (int, float),
    "metric": str,
    "judge": list,
    "load_cpus": list,
    "vars": dict,
    "prepare": list,
    "published": list,
    "published_from": str,
    "note": str,
}
ARM = {
    "name": str,
    "title": str,
    "url": str,
    "needs": list,
    "cannot": str,
    "min_cpus": int,
    "processes": list,
    "prepare": list,
    "vars": dict,
}
PROCESS = {
    "name": str,
    "run": str,
    "env": dict,
    "cpus": list,
    "ready": str,
    "stop": str,
    "timeout": str,
    "leave": str,
    "config": str,
    "dir": str,
}


class Problem(Exception):
    """A sentence for the user: the measurement cannot go on, or cannot begin."""


class Died(Problem):
    """A process ended by itself."""


def beside(*names):
    """A folder of the source tree or of the installed laboratory."""
    for base in (HERE, os.path.dirname(HERE), os.path.dirname(os.path.dirname(HERE))):
        path = os.path.join(base, *names)
        if os.path.exists(path):
            return path
    return os.path.join(HERE, *names)


SETUPS = beside("setups") if os.path.isdir(os.path.join(HERE, "setups")) else beside("conf", "setups")


IN_TREE = os.path.basename(os.path.dirname(HERE)) == "contrib"
INSTALL = "contrib/ab/install" if IN_TREE else os.path.join(HERE, "install")


def weir_binary():
    for path in (
        os.environ.get("WEIR_BIN"),
        os.path.join(HERE, "..", "..", "build", "plain", "src", "weir"),
        os.path.join(HERE, "..", "..", "src", "weir"),
        machine.which("weir"),
    ):
        if path and os.access(path, os.X_OK):
            return os.path.abspath(path)
    return None


class Session:
    """What the arms of one measurement share: a work folder, ports, variables."""

    def __init__(self, work, seed=None):
        self.work, self.ports = work, {}
        self.rng = random.Random(seed)
        self.prepared = set()

    def port(self, name):
        while name not in self.ports:
            port = self.rng.choice(PORTS)
            if port not in self.ports.values() and not machine.port_taken("127.0.0.1", port):
                self.ports[name] = port
        return self.ports[name]

    def lookup(self, name, arm_dir, setups, variables):
        """The value of ${name}: built in, else a free port, else the user's environment, else the file's vars."""
        if name.startswith("PORT_"):
            return self.port(name)
        built_in = {
            "WEIR": weir_binary() or "weir",
            "NODE": machine.which("node") or "node",
            "APPS": os.path.join(HERE, "apps"),
            "DEMO_APP": beside("demo-app"),
            "SETUPS": setups,
            "DIR": arm_dir,
            "WORK": self.work,
            "MODULES": modules_dir(),
            "CPU_COUNT": len(machine.cpus()),
        }
        return built_in.get(name, os.environ.get(name, variables.get(name)))


def modules_dir():
    """Where `contrib/ab/install` puts npm packages."""
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "weir-ab", "node_modules")


class Process:
    """One process of an arm, as described; `proc` while it runs."""

    def __init__(self, d):
        self.name, self.run = d["name"], shlex.split(d["run"])
        self.env = {k: str(v) for k, v in d.get("env", {}).items()}
        wanted = [int(c) for word in d.get("cpus", []) for c in str(word).split(",") if c.strip()]
        self.cpus = [c for c in wanted if c in machine.cpus()]
        self.ready, self.dir = d.get("ready"), d.get("dir")
        self.stop_signal = getattr(signal, "SIG" + d.get("stop", "TERM"))
        self.timeout = setupfile.seconds(d.get("timeout", "15s"))
        self.config = d.get("config")
        self.leave = setupfile.seconds(d["leave"]) if "leave" in d else None
        self.proc = self.log = None
        self.left = False

    def go(self):
        """Ends it in the middle of a run, as the set-up says: what the arm does then is what is measured."""
        self.left = True
        self.proc.send_signal(self.stop_signal)

    def start(self, arm_dir):
        self.log = os.path.join(arm_dir, self.name + ".log")
        program = self.run[0] if "/" in self.run[0] else machine.which(self.run[0])
        if not program:
            raise Problem("%s: there is no program %s" % (self.name, self.run[0]))
        with open(self.log, "ab") as out:
            self.proc = subprocess.Popen(
                [program, *self.run[1:]],
                env={**os.environ, **self.env},
                cwd=self.dir or arm_dir,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=self._child,
            )
        if self.ready:
            self._wait_ready()

    def _child(self):
        die_with_us()
        os.sched_setaffinity(0, self.cpus or machine.cpus())

    def _wait_ready(self):
        deadline = time.monotonic() + self.timeout
        while not answers.ready(self.ready):
            self.check()
            if time.monotonic() > deadline:
                raise Problem(
                    "%s: no answer from %s within %g s%s" % (self.name, self.ready, self.timeout, self.last_words())
                )
            time.sleep(0.02)

    def check(self):
        rc = self.proc.poll() if self.proc else None
        if rc is not None and not self.left:
            how = "ended by signal %d" % -rc if rc < 0 else "ended with exit code %d" % rc
            raise Died("%s %s%s" % (self.name, how, self.last_words()))

    def last_words(self):
        lines = [ln.strip() for ln in machine.read(self.log).split("\n") if ln.strip()]
        return ": " + lines[-1][:300] if lines else ""

    def pids(self, table=None):
        return machine.tree(self.proc.pid, table) if self.proc else []


class Arm:
    """One thing compared: a name, a base URL, and the processes that answer there."""

    def __init__(self, name, title, url, processes=(), skip=None, file=None):
        self.name, self.title, self.url = name, title or name, url.rstrip("/")
        self.processes, self.skip, self.file = list(processes), skip, file
        self.started = False
        self.prepare, self.needs, self.dir, self.setups = [], [], None, None

    def start(self):
        os.makedirs(self.dir, exist_ok=True)
        self._ports_free()
        self.started = True
        try:
            for p in self.processes:
                p.start(self.dir)
        except BaseException:
            self.stop()
            raise

    def _endpoints(self):
        for url in [self.url, *(p.ready for p in self.processes if p.ready)]:
            u = urllib.parse.urlsplit(url)
            try:
                yield u.hostname, u.port or 80
            except ValueError:
                raise Problem("%s: `%s` has no port (variables have capital letters, as in ${PORT_A})"
                              % (self.name, url)) from None

    def _ports_free(self):
        if not self.processes:
            return
        for host, port in self._endpoints():
            if machine.port_taken(host, port):
                raise Problem("%s: port %d is taken by somebody else" % (self.name, port))

    def check(self):
        for p in self.processes:
            p.check()

    def stop(self):
        """Ends everything this arm started; returns only when it is gone."""
        for p in reversed(self.processes):
            if not p.proc:
                continue
            pids = p.pids()
            if p.proc.poll() is None:
                p.proc.send_signal(p.stop_signal)
                try:
                    p.proc.wait(5)
                except subprocess.TimeoutExpired:
                    pass
            kill_all({*pids, *machine.tree(p.proc.pid)}, p.proc.pid)
            p.proc.wait()
            p.proc, p.left = None, False

    def leave_later(self):
        """The timers of those processes that are to end while it is measured."""
        timers = [threading.Timer(p.leave, p.go) for p in self.processes if p.leave is not None and not p.left]
        for t in timers:
            t.daemon = True
            t.start()
        return timers

    def cpus(self):
        """The CPUs its processes may use; empty if one of them is not pinned."""
        if not self.processes or not all(p.cpus for p in self.processes):
            return []
        return sorted({c for p in self.processes for c in p.cpus})

    def snapshot(self):
        """{process name: (CPU us, PSS KB)} of all that run now."""
        table, out = machine.parents(), {}
        for p in self.processes:
            pids = p.pids(table)
            cpu, pss = out.get(p.name, (0, 0))
            out[p.name] = (cpu + machine.cpu_us(pids), pss + machine.pss_kb(pids))
        return out

    def cpu_us(self):
        table = machine.parents()
        out = {}
        for p in self.processes:
            out[p.name] = out.get(p.name, 0) + machine.cpu_us(p.pids(table))
        return out


LIBC = ctypes.CDLL(None)


def die_with_us():
    """In a child, before it becomes another program."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans():
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)


def kill_all(pids, group):
    """KILLs what is left of them, and of the group; waits until all are gone and collects those that are ours."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    deadline = time.monotonic() + 5
    left = {p for p in pids if p != group}
    while left and time.monotonic() < deadline:
        for pid in list(left):
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
            except (ProcessLookupError, ChildProcessError, PermissionError):
                pass
        left &= set(machine.parents())
        if left:
            time.sleep(0.01)


# --- from files ---------------------------------------------------------------------------------------------------

LISTEN = re.compile(r"^(?:\*:|0\.0\.0\.0:|\[::\]:)?(\d+)$")


def url_of_conf(path):
    """The base URL of the first site of a weir configuration."""
    conf = setupfile.read(path)
    sites = conf.get("sites") or []
    listen = sites[0].get("listen") if sites and isinstance(sites[0], dict) else None
    while isinstance(listen, list) and listen:
        listen = listen[0]
    if isinstance(listen, dict):
        listen = listen.get("address")
    listen = setupfile.expand(str(listen or ""), os.environ.get)
    m = LISTEN.match(listen)
    if m:
        return "http://127.0.0.1:%s" % m.group(1)
    if re.fullmatch(r"[\w.\[\]:-]+:\d+", listen):
        return "http://" + listen
    raise Problem("%s: cannot tell where it listens (`%s`); describe it in a set-up file" % (path, listen))


def from_conf(path, server_cpus):
    weir = weir_binary()
    name = os.path.splitext(os.path.basename(path))[0]
    url = url_of_conf(path)
    if not weir:
        return Arm(name, name, url, skip="there is no weir to run it (build it, or set WEIR_BIN)", file=path)
    process = Process(
        {
            "name": "weir",
            "run": shlex.join([weir, "run", "-c", os.path.abspath(path)]),
            "ready": url + "/",
            "stop": "INT",
            "cpus": server_cpus,
        }
    )
    return Arm(name, name, url, [process], file=path)


def find(word):
    """A file as named, or the shipped set-up of that name."""
    if os.path.exists(word):
        return word
    for path in (os.path.join(SETUPS, word + ".setup"), os.path.join(SETUPS, word)):
        if os.path.exists(path):
            return path
    raise Problem("no file %s, and no set-up of that name (weir ab --list shows them)" % word)


def available():
    """{name: path} of the shipped set-ups."""
    names = sorted(os.listdir(SETUPS)) if os.path.isdir(SETUPS) else []
    return {n[:-6]: os.path.join(SETUPS, n) for n in names if n.endswith(".setup")}


def lacking(need):
    """Why `need` is not met, or None. needs = ( "nginx", "npm:loadbalancer", "gem:sinatra", "file:/path" )."""
    kind, _, rest = need.partition(":")
    if kind == "npm" and rest:
        if not machine.which("node"):
            return "node is not installed"
        return (
            None if os.path.isdir(os.path.join(modules_dir(), rest)) else "the npm package %s is not installed" % rest
        )
    if kind == "gem" and rest:
        found = glob.glob("/usr/share/rubygems-integration/*/specifications/%s-[0-9]*.gemspec" % rest) or glob.glob(
            "/var/lib/gems/*/specifications/%s-[0-9]*.gemspec" % rest
        )
        return None if found else "the Ruby gem %s is not installed" % rest
    if kind == "file" and rest:
        return None if os.path.exists(rest) else "%s is not there" % rest
    if need == "weir":
        return None if weir_binary() else "weir is not built"
    return None if machine.which(need) else "%s is not installed" % need


def why_not(d, crowded):
    """The sentence for an arm that cannot run here, or None."""
    if d.get("cannot"):
        return d["cannot"]
    for need in d.get("needs", []):
        why = lacking(need)
        if why:
            return "%s (%s %s)" % (why, INSTALL, need.partition(":")[2] or need)
    if d.get("min_cpus", 1) > len(machine.cpus()) and not crowded:
        return "needs %d CPUs, one for each busy process; there are %d (--crowded tries all the same)" % (
            d["min_cpus"],
            len(machine.cpus()),
        )
    return None


class Setup:
    """A set-up file: its arms and what it says about load, URLs and the rest (`plan`)."""

    def __init__(self, path, session, crowded=False, seen=()):
        self.path, self.session, self.crowded = path, session, crowded
        top = setupfile.check(setupfile.read(path), TOP, "a set-up file")
        self.vars = {k: str(v) for k, v in top.get("vars", {}).items()}
        self.plan = top
        self.arms = []
        for item in top.get("arms", []):
            if isinstance(item, str):
                self._borrow(item, seen)
            else:
                self.arms.append(self._arm(item))
        if not self.arms:
            raise SetupError("%s: it has no arms" % path)

    def _borrow(self, name, seen):
        """All arms of another set-up, beside this one or shipped, or one of them: "other" or "other:arm"."""
        file, _, arm = name.partition(":")
        path = os.path.join(os.path.dirname(self.path), file + ".setup")
        path = path if os.path.exists(path) else find(file)
        if file in seen:
            raise SetupError("%s: set-ups that borrow from each other in a ring: %s" % (self.path, file))
        other = Setup(path, self.session, self.crowded, (*seen, os.path.basename(self.path)[:-6]))
        got = [a for a in other.arms if arm in ("", a.name)]
        if not got:
            raise SetupError("%s: %s has no arm `%s`" % (self.path, file, arm))
        self.arms += got

    def _arm(self, item):
        setupfile.check(item, ARM, "an arm")
        name = item.get("name") or os.path.basename(self.path)[:-6]
        if not re.fullmatch(r"[\w.+-]+", name):
            raise SetupError("%s: `%s` is no name for an arm: letters, digits and . _ + - only" % (self.path, name))
        arm_dir = os.path.join(self.session.work, name)
        setups = os.path.dirname(os.path.abspath(self.path))
        variables = {**self.vars, **{k: str(v) for k, v in item.get("vars", {}).items()}}

        def lookup(key):
            got = self.session.lookup(key, arm_dir, setups, variables)
            return setupfile.expand(got, lookup) if got is variables.get(key) else got

        item = setupfile.expand(item, lookup)
        skip = why_not(item, self.crowded)
        arm = Arm(name, item.get("title"), item.get("url", ""), skip=skip, file=self.path)
        arm.dir, arm.setups, arm.lookup, arm.needs = arm_dir, setups, lookup, item.get("needs", [])
        arm.prepare = [*setupfile.expand(list(self.plan.get("prepare", [])), lookup), *item.get("prepare", [])]
        if not skip:
            arm.processes = [self._process(p, arm) for p in item.get("processes", [])]
        if not arm.url and not skip:
            raise SetupError("%s:%d: the arm `%s` has no url" % (self.path, item.line, name))
        return arm

    @staticmethod
    def _process(item, arm):
        setupfile.check(item, PROCESS, "a process")
        for key in ("name", "run"):
            if key not in item:
                raise SetupError("%s:%d: a process has no `%s`" % (item.path, item.line, key))
        return Process(item)


def prepare(arm, session):
    """Once for each arm: its folder, the configurations it is started with, and the commands that make its files."""
    arm.dir = arm.dir or os.path.join(session.work, arm.name)
    os.makedirs(arm.dir, exist_ok=True)
    for p in arm.processes:
        if p.config:
            source = os.path.join(arm.setups, p.config)
            text = setupfile.expand(machine.read(source), arm.lookup)
            if not text:
                raise Problem("%s: cannot read %s" % (arm.name, source))
            with open(os.path.join(arm.dir, os.path.basename(p.config)), "w", encoding="utf-8") as f:
                f.write(text)
    for command in arm.prepare:
        if command in session.prepared:
            continue
        session.prepared.add(command)
        done = subprocess.run(
            shlex.split(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=session.work,
        )
        if done.returncode:
            raise Problem("%s: `%s` failed: %s" % (arm.name, command, done.stdout.strip()[-300:]))


def load(words, session, server_cpus=(), crowded=False):
    """The arms of a command line, and the plan of the first set-up file among them. Equal names get a number."""
    arms, plan = [], {}
    for word in words:
        if re.match(r"https?://", word):
            arms.append(Arm(urllib.parse.urlsplit(word).netloc, word, word))
            continue
        path = find(word)
        if path.endswith(".setup"):
            setup = Setup(path, session, crowded)
            arms += setup.arms
            plan = plan or setup.plan
        else:
            arms.append(from_conf(path, list(server_cpus)))
    seen = {}
    for arm in arms:
        seen[arm.name] = seen.get(arm.name, 0) + 1
        if seen[arm.name] > 1:
            arm.name = "%s-%d" % (arm.name, seen[arm.name])
    return arms, plan
