#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""weir beside the other servers of files: nginx, H2O, lighttpd, Caddy, as far as they are installed.

    t/perf/files.py [--only ROW,ROW…] [--rounds N] [--seconds S] [--veth [--no-offload]] [--small SIZE,…] [--bin WEIR]

One event loop each on CPU 0, the client on CPU 1, access logs off, interleaved rounds in random order, medians, and
weir's processor time per request over each other's. Rows: 687 bytes, 21 KB, 64 KB, 100,018 bytes, 10,000 files in
rotation, and a download of 1 GiB. `--veth` puts the client into a network namespace behind a veth pair of MTU 1500 (root);
`--no-offload` lets the kernel cut every segment itself. `--small 16k,64k` adds a weir for each value of file_cache.small.
Nothing is asserted.
"""
import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "t", "e2e"), os.path.join(ROOT, "t", "suites", "common")]

import servers  # noqa: E402
from run import machine_us, wrk_figures  # noqa: E402

MANY, MANY_SIZE = 10000, 4096
BIG = 1 << 30
SIZES = {"687": ("page.html", 687), "21k": ("style.css", 21000), "64k": ("font.woff2", 65536),
         "100k": ("image.jpg", 100018)}
ROWS = [*SIZES, "rotation", "1g"]
ROTATION = """
local n = 0
request = function()
   n = n + 1
   return wrk.format("GET", string.format("/static/many/%05d.txt", n * 7919 % {many}))
end
""".replace("{many}", str(MANY))

NGINX = servers.NGINX_HEAD + """
    server { listen %(host)s:%(port)d deferred backlog=4096; root %(root)s; tcp_nopush TCP_NOPUSH; }
}
"""
WEIR = """
workers = 1; cpu_affinity = [ 0 ]; access_log = false; control = "control.sock"; SMALL
sites = ( { listen = { address = "%(host)s:%(port)d"; backlog = 4096; }; root = "%(root)s"; } );
"""
H2O = """
num-threads: 1
max-connections: 7000
http1-request-timeout: 600
hosts:
  default:
    listen:
      host: %(host)s
      port: %(port)d
    paths:
      "/":
        file.dir: %(root)s
"""
LIGHTTPD = """
server.document-root = "%(root)s"
server.bind = "%(host)s"
server.port = %(port)d
server.max-keep-alive-requests = 60000
server.max-keep-alive-idle = 75
server.max-connections = 7000
server.max-fds = 15000
server.stat-cache-engine = "simple"
mimetype.assign = ( ".html" => "text/html", ".css" => "text/css", ".jpg" => "image/jpeg", ".txt" => "text/plain" )
"""
CADDY = """
{
    admin off
    auto_https off
}
http://%(host)s:%(port)d {
    root * %(root)s
    file_server
}
"""


def arms(a):
    """{name: (configuration, command)} of what is installed."""
    weir = [a.bin, "run", "-c", "CONF"]
    found = {"weir": (WEIR.replace("SMALL", ""), weir)}
    for small in filter(None, a.small.split(",")):
        found["weir small=" + small] = (WEIR.replace("SMALL", 'file_cache = { small = "%s"; };' % small), weir)
    for name, conf, args in (
            ("nginx", NGINX.replace("TCP_NOPUSH", "off"), ["nginx", "-c", "CONF"]),
            ("nginx nopush", NGINX.replace("TCP_NOPUSH", "on"), ["nginx", "-c", "CONF"]),
            ("h2o", H2O, ["h2o", "-c", "CONF"]),
            ("lighttpd", LIGHTTPD, ["lighttpd", "-D", "-f", "CONF"]),
            ("caddy", CADDY, ["caddy", "run", "--adapter", "caddyfile", "--config", "CONF"])):
        path = shutil.which(args[0]) or shutil.which("/usr/sbin/" + args[0])
        if path and (not a.servers or args[0] in a.servers.split(",")):
            found[name] = (conf, [path, *args[1:]])
        elif not path:
            print("    %s is not installed" % name)
    return found


class Wire:
    """Where the servers listen, and how a client gets there."""

    def __init__(self, a):
        self.host, self.prefix, self.name = "127.0.0.1", [], None
        if not a.veth:
            return
        self.name, self.host = "weirperf%d" % os.getpid(), "10.203.7.1"
        v, peer = "wp%d" % os.getpid(), "wq%d" % os.getpid()
        self.prefix = ["ip", "netns", "exec", self.name]
        steps = [["ip", "netns", "add", self.name],
                 ["ip", "link", "add", v, "mtu", "1500", "type", "veth", "peer", "name", peer, "mtu", "1500"],
                 ["ip", "link", "set", peer, "netns", self.name],
                 ["ip", "addr", "add", self.host + "/30", "dev", v], ["ip", "link", "set", v, "up"],
                 [*self.prefix, "ip", "addr", "add", "10.203.7.2/30", "dev", peer],
                 [*self.prefix, "ip", "link", "set", peer, "up"]]
        if a.no_offload:
            steps += [["ethtool", "-K", v, "tso", "off", "gso", "off"],
                      [*self.prefix, "ethtool", "-K", peer, "gro", "off"]]
        for cmd in steps:
            subprocess.run(cmd, check=True, stdout=subprocess.DEVNULL)

    def close(self):
        if self.name:
            subprocess.run(["ip", "netns", "del", self.name], check=False)  # the pair goes with it


def make_files(work):
    folder = os.path.join(work, "static")
    os.makedirs(os.path.join(folder, "many"))
    for name, size in SIZES.values():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(os.urandom(size))
    for i in range(MANY):
        with open(os.path.join(folder, "many", "%05d.txt" % i), "wb") as f:
            f.write(b"%05d " % i * (MANY_SIZE // 6) + b"...." [:MANY_SIZE % 6])
    with open(os.path.join(folder, "big.bin"), "wb") as f:
        for _ in range(BIG >> 20):
            f.write(b"\0" * (1 << 20))
    with open(os.path.join(work, "rotation.lua"), "w") as f:
        f.write(ROTATION)
    for base, folders, files in os.walk(work):
        for name in folders + files:
            os.chmod(os.path.join(base, name), 0o755)


def load(row, wire, server, work, seconds):
    """(answers, answers a second, p99 in ms, failures); the 1 GiB row counts MiB."""
    url = "http://%s:%d/static/" % (wire.host, server.port)
    if row == "1g":
        begun = time.monotonic()
        got = subprocess.run([*wire.prefix, *servers.pinned(1, ["curl", "-s", "-o", "/dev/null", "-w", "%{size_download}",
                                                                url + "big.bin"])], stdout=subprocess.PIPE, text=True).stdout
        return BIG >> 20, (BIG >> 20) / (time.monotonic() - begun), float("nan"), int(got != str(BIG))
    script = ["-s", os.path.join(work, "rotation.lua")] if row == "rotation" else []
    path = "" if script else SIZES[row][0]
    out = subprocess.run([*wire.prefix, *servers.pinned(1, ["wrk", "-t1", "-c100", "-d%ds" % seconds, "--latency", *script,
                                                            url + path])], stdout=subprocess.PIPE, text=True).stdout
    return wrk_figures(out)


def measure(row, wire, running, work, a):
    got = {name: [] for name in running}
    for i in range(a.rounds + 1):
        names = list(running)
        random.shuffle(names)
        for name in names:
            server = running[name]
            cpu, machine = server.cpu_us(), machine_us()
            n, rate, p99, failures = load(row, wire, server, work, a.seconds if i else 1)
            cpu, machine = server.cpu_us() - cpu, machine_us() - machine
            if failures:
                print("    %s: %d failures" % (name, failures))
            if i:  # the first round warms up
                got[name].append((cpu / n, machine / n, rate, p99))
    return {name: [statistics.median(column) for column in zip(*runs)] for name, runs in got.items()}


def show(row, med):
    unit = "MiB" if row == "1g" else "req"
    print("\n%s\n    %-16s %14s %15s %12s %9s %12s" % (
        {"1g": "download of 1 GiB, one connection", "rotation": "10,000 files of 4 KB in rotation, 100 connections"}.get(
            row, "%s bytes, 100 connections" % "{:,}".format(SIZES.get(row, ("", 0))[1])),
        "server", "its CPU us/" + unit, "all CPUs us/" + unit, unit + "/s", "p99 ms", "weir/it CPU"))
    for name, (cpu, machine, rate, p99) in med.items():
        print("    %-16s %14.2f %15.2f %12.0f %9.2f %12s" % (
            name, cpu, machine, rate, p99, "" if name == "weir" else "%.2f" % (med["weir"][0] / cpu)), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--only", default=",".join(ROWS))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=int, default=2)
    p.add_argument("--servers", default="", help="nginx,h2o,lighttpd,caddy: all that are installed")
    p.add_argument("--small", default="", help="more weirs, with these values of file_cache.small")
    p.add_argument("--veth", action="store_true")
    p.add_argument("--no-offload", action="store_true")
    p.add_argument("--bin", default=os.environ.get("WEIR_BIN", os.path.join(ROOT, "build", "plain", "src", "weir")))
    a = p.parse_args()
    rows = a.only.split(",")
    if set(rows) - set(ROWS):
        p.error("rows are " + ", ".join(ROWS))
    os.environ["GOMAXPROCS"] = "1"
    work, running, wire = tempfile.mkdtemp(prefix="weir-perf-"), {}, None
    os.chmod(work, 0o755)
    try:
        wire = Wire(a)
        make_files(work)
        for name, (conf, args) in arms(a).items():
            running[name] = servers.Server(name.replace(" ", "-").replace("=", "-"), conf, args, 0, work, host=wire.host)
        for row in rows:
            show(row, measure(row, wire, running, work, a))
    finally:
        for s in running.values():
            s.stop()
        if wire:
            wire.close()
        shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (AssertionError, KeyboardInterrupt, subprocess.CalledProcessError) as e:
        sys.exit("perf: %s" % (e or "stopped"))
