#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What many servers and many idle clients cost: processor time per request, beside few of them.

    t/perf/scale.py [--bin WEIR] [--rounds N] [--seconds S] [--only servers|clients]

One loop of weir on CPU 0; wrk, and a second weir as the backend, on CPU 1. The servers are addresses of the loopback
network with that one backend behind all of them, so that it is choosing and keeping connections that is measured. Idle
clients have had an answer each and wait. nginx and HAProxy stand beside it with as many servers, where they are installed.
Each round runs every row once, in changing order; the table has medians, and the median over the rounds of the ratio to
the first row of its kind in the same round, for a machine changes its speed in between. The bar is 1.10; least-conn, and
a hash with hash_balance_factor, look at all servers and say so. Nothing is asserted.
"""
import argparse
import os
import random
import resource
import socket
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "t", "e2e"), os.path.join(ROOT, "t", "suites", "common")]

import servers  # noqa: E402
from locations import measure  # noqa: E402

BALANCES = {
    "round-robin": 'balance = "round-robin";',
    "random": 'balance = "random";',
    "uri-hash": 'balance = "uri-hash";',
    "least-conn": 'balance = "least-conn";',
    "uri-hash, bounded": 'balance = "uri-hash"; hash_balance_factor = 125;',
}
FRONT = """
workers = 1; cpu_affinity = 0; access_log = false; limits = { clients = 12000; }; timeouts = { keepalive = "1h"; };
upstreams = { u = { %s servers = ( %s ); }; };
sites = ( { listen = { address = "127.0.0.1:@PORT@"; backlog = 4096; }; proxy = "u";
            locations = ( { match = "/own"; respond = "ok"; } ); } );
"""
BACK = """
workers = 1; cpu_affinity = 1; access_log = false; limits = { clients = 8000; }; timeouts = { keepalive = "1h"; };
sites = ( { listen = { address = "*:@PORT@"; backlog = 4096; }; respond = "ok"; } );
"""
NGINX = servers.NGINX_HEAD + """
    upstream u { SERVERS keepalive 4000; keepalive_requests 100000000; }
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
    server { listen 127.0.0.1:%(port)d backlog=4096; location / { proxy_pass http://u; } }
}
"""
HAPROXY = servers.HAPROXY.split("\nbackend b\n")[0] + "\nbackend b\n    balance roundrobin\nSERVERS"
# wrk asks for many paths, so that a hash has many keys.
PATHS = """
local n = 0
request = function() n = n + 1; return wrk.format("GET", "/page/" .. n % 5000) end
"""


def addresses(n, port):
    return ["127.0.%d.%d:%d" % (1 + i // 250, 1 + i % 250, port) for i in range(n)]


def quoted(addrs):
    return ", ".join('"%s"' % a for a in addrs)


class Other(servers.Server):
    """nginx or HAProxy, with the interface of the harness's weir."""

    close = servers.Server.stop


def others(back, work):
    """(name, start) of what is installed."""
    def nginx(n):
        lines = " ".join("server %s;" % a for a in addresses(n, back.port))
        return Other("nginx-%d" % n, NGINX.replace("SERVERS", lines), [servers.NGINX_BIN, "-c", "CONF"], 0, work)

    def haproxy(n):
        lines = "".join("    server s%d %s\n" % (i, a) for i, a in enumerate(addresses(n, back.port)))
        return Other("haproxy-%d" % n, HAPROXY.replace("SERVERS", lines), [servers.HAPROXY_BIN, "-db", "-f", "CONF"], 0, work)

    if os.path.exists(servers.NGINX_BIN):
        yield "nginx", nginx
    if os.path.exists(servers.HAPROXY_BIN):
        yield "haproxy", haproxy


def idle(port, n):
    """n clients that have had an answer and stay."""
    clients = []
    for _ in range(n):
        c = socket.create_connection(("127.0.0.1", port), 10)
        c.sendall(b"GET /own HTTP/1.1\r\nHost: h\r\n\r\n")
        assert c.recv(1000).startswith(b"HTTP/1.1 200")
        clients.append(c)
    return clients


def rows_of_servers(weir, back, script, kept):
    starts = {kind: lambda n, b=balance: weir(FRONT % (b, quoted(addresses(n, back.port))))
              for kind, balance in BALANCES.items()}
    starts.update(others(back, os.path.dirname(script)))
    for kind, start in starts.items():
        for n in (2, 1000):
            front = start(n)
            if isinstance(front, Other):
                kept.append(front)
            yield "%s, %d servers" % (kind, n), front, "/", ("-s", script), n == 2


def rows_of_clients(weir, back, kept):
    fronts = {n: weir(FRONT % ("", quoted(addresses(2, back.port)))) for n in (10, 10000)}
    for n, w in fronts.items():
        kept += idle(w.port, n)
    for what, path in (("own answer", "/own"), ("proxied", "/page")):
        for n, w in fronts.items():
            yield "%s, %d idle clients" % (what, n), w, path, (), n == 10


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--bin", default=os.path.join(ROOT, "build", "plain", "src", "weir"))
    p.add_argument("--rounds", type=int, default=6)
    p.add_argument("--seconds", type=int, default=2)
    p.add_argument("--only", choices=("servers", "clients"))
    args = p.parse_args()
    os.environ["WEIR_BIN"] = args.bin
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < 14000 and args.only != "servers":
        sys.exit("perf: needs 14,000 descriptors for its idle clients, may have %d (ulimit -n); --only servers works" % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    subprocess.run(["taskset", "-pc", "1", str(os.getpid())], stdout=subprocess.DEVNULL, check=True)
    from harness.server import Weir
    running, kept, rows = [], [], []

    def weir(conf):
        running.append(Weir(conf))
        return running[-1]
    try:
        back = weir(BACK)
        script = back.write("paths.lua", PATHS)
        if args.only != "clients":
            rows += rows_of_servers(weir, back, script, kept)
        if args.only != "servers":
            rows += rows_of_clients(weir, back, kept)
        times = {name: [] for name, *_ in rows}
        for _ in range(args.rounds):
            for name, w, path, options, _ in random.sample(rows, len(rows)):
                measure(w, path, 1, options)  # the connections are made, and their memory is there
                times[name].append(measure(w, path, args.seconds, options))
    finally:
        for c in kept:
            c.close()
        for w in reversed(running):
            w.close()
    first = None
    for name, *_, is_first in rows:
        first = name if is_first else first
        ratio = statistics.median(here / there for here, there in zip(times[name], times[first]))
        print("%-34s %6.2f us/request   %.2f" % (name, statistics.median(times[name]), ratio))


if __name__ == "__main__":
    main()
