# SPDX-License-Identifier: MIT
"""What /proc and the installed programs say: processor time and memory of processes, and the environment record."""
import functools
import os
import platform
import re
import shutil
import socket
import subprocess

TICK = os.sysconf("SC_CLK_TCK")


def read(path, default=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return default


def _stat(pid):
    text = read("/proc/%d/stat" % pid)
    return text.rsplit(")", 1)[1].split() if ")" in text else None


def parents():
    """{pid: parent} of everything that is no zombie."""
    out = {}
    for name in os.listdir("/proc"):
        st = _stat(int(name)) if name.isdigit() else None
        if st and st[0] not in "ZX":
            out[int(name)] = int(st[1])
    return out


def tree(pid, table=None):
    """The process and its descendants."""
    table = parents() if table is None else table
    children = {}
    for p, parent in table.items():
        children.setdefault(parent, []).append(p)
    out, todo = [], [pid] if pid in table else []
    while todo:
        p = todo.pop()
        out.append(p)
        todo += children.get(p, [])
    return out


def cpu_us(pids):
    """Processor time so far, microseconds. The scheduler's own nanoseconds of each thread where the kernel has them,
    and never less than the clock ticks that also hold threads which have ended."""
    total = 0
    for pid in pids:
        exact = 0
        try:
            for task in os.listdir("/proc/%d/task" % pid):
                words = read("/proc/%d/task/%s/schedstat" % (pid, task)).split()
                exact += int(words[0]) // 1000 if words else 0
        except OSError:
            continue
        st = _stat(pid)
        ticks = (int(st[11]) + int(st[12])) * 1000000 // TICK if st else 0
        total += exact if exact and exact + 2 * 1000000 // TICK >= ticks else ticks
    return total


def pss_kb(pids):
    """Proportional set size: pages that processes share are counted once among them."""
    total = 0
    for pid in pids:
        m = re.search(r"^Pss:\s+(\d+)", read("/proc/%d/smaps_rollup" % pid), re.M)
        total += int(m.group(1)) if m else 0
    return total


def machine_times():
    """(busy, all, stolen) microseconds of all CPUs so far."""
    v = [int(x) for x in read("/proc/stat").split("\n")[0].split()[1:]]
    busy = v[0] + v[1] + v[2] + v[5] + v[6]
    return tuple(n * 1000000 // TICK for n in (busy, busy + v[3] + v[4] + v[7], v[7]))


def loopback_bytes():
    m = re.search(r"^\s*lo:\s*(\d+)", read("/proc/net/dev"), re.M)
    return int(m.group(1)) if m else 0


@functools.cache
def cpus():
    """Those that this process was given; it may keep to fewer later."""
    return sorted(os.sched_getaffinity(0))


def port_taken(host, port):
    """Can nobody listen there now? Connections of earlier runs that wait for their end do not count."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((host, port))
        except OSError:
            return True
    return False


def first_line(args):
    try:
        p = subprocess.run(
            args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=10, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [ln for ln in p.stdout.split("\n") if ln.strip()]
    return lines[0].strip() if lines else None


VERSION = {
    "ab": ["-V"],
    "wrk": ["-v"],
    "h2load": ["--version"],
    "nginx": ["-v"],
    "haproxy": ["-v"],
    "h2o": ["-v"],
    "lighttpd": ["-v"],
    "caddy": ["version"],
    "node": ["--version"],
    "gnuplot": ["--version"],
}
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


def which(name):
    return shutil.which(name) or shutil.which(name, path=SYSTEM_PATH)


def version(name):
    path = which(name)
    if not path:
        return None
    args = VERSION.get(os.path.basename(name), ["version"] if os.path.basename(name) == "weir" else ["--version"])
    return first_line([path, *args])


SETTINGS = (
    "net/core/somaxconn",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_congestion_control",
    "kernel/randomize_va_space",
    "vm/swappiness",
)


def environment(programs):
    """What a reader needs to judge the figures, and to repeat them."""
    cpuinfo, meminfo = read("/proc/cpuinfo"), read("/proc/meminfo")
    model = re.search(r"^model name\s*:\s*(.*)$", cpuinfo, re.M)
    memory = re.search(r"^MemTotal:\s+(\d+)", meminfo, re.M)
    governors = {read("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor" % c).strip() for c in cpus()}
    return {
        "processor": model.group(1) if model else platform.machine(),
        "cpus": cpus(),
        "smt": read("/sys/devices/system/cpu/smt/active").strip(),
        "virtual": "hypervisor" in cpuinfo,
        "governor": sorted(g for g in governors if g),
        "memory_kb": int(memory.group(1)) if memory else 0,
        "kernel": platform.release(),
        "system": next(
            (
                ln.split("=", 1)[1].strip('"')
                for ln in read("/etc/os-release").split("\n")
                if ln.startswith("PRETTY_NAME=")
            ),
            "",
        ),
        "cgroup_cpu": read("/sys/fs/cgroup/cpu.max").strip(),
        "clock": read("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip(),
        "load_average": read("/proc/loadavg").split()[:3],
        "settings": {s: " ".join(read("/proc/sys/" + s).split()) for s in SETTINGS},
        "python": platform.python_version(),
        "versions": {os.path.basename(p): version(p) for p in sorted(programs)},
    }


def warnings(env, generator_cpus, server_cpus, descriptors):
    """What makes the figures worth less than they look; one sentence each."""
    out = []
    load, n = float(env["load_average"][0]), len(env["cpus"])
    if load > 0.25 * n:
        out.append("the machine is busy: load average %.1f on %d CPUs before anything was started" % (load, n))
    if env["governor"] and env["governor"] != ["performance"]:
        out.append("the CPU governor is %s: clock rates change while it measures" % ", ".join(env["governor"]))
    if env["virtual"]:
        out.append("this is a virtual machine: its neighbours are part of the noise")
    if not generator_cpus or not server_cpus or set(generator_cpus) & set(server_cpus):
        out.append("the load generator shares CPUs with what it measures")
    elif n < 2:
        out.append("there is one CPU for everything")
    if env["cgroup_cpu"] and not env["cgroup_cpu"].startswith("max"):
        out.append("the cgroup limits processor time: cpu.max is %s" % env["cgroup_cpu"])
    if descriptors < 4096:
        out.append("only %d file descriptors: many connections will fail (ulimit -n)" % descriptors)
    return out
