# SPDX-License-Identifier: MIT
"""The servers of t/perf/run.py: configuration, start, processor time, memory, stop.

Each has one event loop pinned to CPU 0 and is tuned the way its own documentation recommends for this work; the
origin (an nginx) and the load generator share CPU 1.
"""
import os
import shutil
import subprocess
import time

from harness import util

FILES = {"page.html": 687, "style.css": 21000, "image.jpg": 100018}
ORIGIN_FILES = {"100k.jpg": 100018, "1m.bin": 1 << 20}

NGINX_HEAD = """
worker_processes 1; daemon off; pid %(dir)s/nginx.pid; error_log stderr crit;
events { worker_connections 7000; }
http {
    access_log off; types { text/html html; text/css css; image/jpeg jpg; }
    client_body_temp_path %(dir)s/t1; proxy_temp_path %(dir)s/t2; fastcgi_temp_path %(dir)s/t3;
    uwsgi_temp_path %(dir)s/t4; scgi_temp_path %(dir)s/t5;
    sendfile on; keepalive_timeout 75; keepalive_requests 100000000;
    open_file_cache max=10000 inactive=60s; open_file_cache_valid 30s; open_file_cache_min_uses 1;
"""
NGINX = NGINX_HEAD + """
    upstream origin { server 127.0.0.1:%(origin)d; keepalive 128; keepalive_requests 100000000; }
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_max_temp_file_size 0;
    server { listen 127.0.0.1:%(port)d deferred backlog=4096; tcp_nopush off;
             location /static/ { root %(root)s; } location / { proxy_pass http://origin; } }
    server { listen 127.0.0.1:%(port2)d deferred backlog=4096; tcp_nopush on;
             location /static/ { root %(root)s; } }
}
"""
ORIGIN = NGINX_HEAD + """
    server { listen 127.0.0.1:%(port)d backlog=4096; root %(root)s/origin; default_type text/plain;
             location = /hello { return 200 "Hello, world!"; } }
}
"""
HAPROXY = """
global
    nbthread 1
    maxconn 7000
defaults
    mode http
    option splice-auto
    option forwardfor
    http-reuse always
    timeout connect 5s
    timeout client 75s
    timeout server 60s
frontend f
    bind 127.0.0.1:%(port)d defer-accept backlog 4096
    default_backend b
backend b
    server origin 127.0.0.1:%(origin)d
"""
WEIR = """
workers = 1;
cpu_affinity = [ 0 ];
access_log = false;
control = "control.sock";
upstreams = { origin = { keepalive = 128; servers = ( "127.0.0.1:%(origin)d" ); }; };
sites = ( { listen = { address = "127.0.0.1:%(port)d"; backlog = 4096; }; proxy = "origin";
            locations = ( { match = "/static/"; root = "%(root)s"; } ); } );
"""


def pinned(cpu, args):
    return ["taskset", "-c", str(cpu), *args]


def make_files(root):
    for folder, files in (("static", FILES), ("origin", ORIGIN_FILES)):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
        for name, size in files.items():
            with open(os.path.join(root, folder, name), "wb") as f:
                f.write((b"0123456789abcdef" * (size // 16 + 1))[:size])
            os.utime(os.path.join(root, folder, name), (1700000000, 1700000000))


class Server:
    """One running server; .port answers both /static/… and what is proxied."""

    def __init__(self, name, conf, args, cpu, work, origin=0, host="127.0.0.1"):
        self.host, self.name, self.port, self.port2 = host, name, util.free_port(), util.free_port()
        self.dir = os.path.join(work, name)
        os.makedirs(self.dir, exist_ok=True)
        path = os.path.join(self.dir, "conf")
        with open(path, "w") as f:
            f.write(conf % {"dir": self.dir, "host": host, "port": self.port, "port2": self.port2, "origin": origin, "root": work})
        self.log = os.path.join(self.dir, "log")
        with open(self.log, "wb") as log:
            self.proc = subprocess.Popen(pinned(cpu, [a.replace("CONF", path) for a in args]), stdout=log, stderr=log,
                                         stdin=subprocess.DEVNULL)
        try:
            util.wait_for("%s listens (see %s)" % (name, self.log), 10, self._up)
        except BaseException:
            self.stop()
            raise
        time.sleep(0.3)  # what it still does after its start is not what is measured

    def _up(self):
        if self.proc.poll() is not None:
            with open(self.log, errors="replace") as f:
                raise AssertionError("%s ended at once:\n%s" % (self.name, f.read()[-2000:]))
        return util.listening(self.host, self.port)

    def tree(self):
        return util.tree(self.proc.pid)

    def cpu_us(self):
        return util.cpu_us(self.tree())

    def pss_kb(self):
        return util.pss_bytes(self.tree()) / 1024

    def stop(self):
        pids = self.tree()
        if self.proc.poll() is None:
            self.proc.terminate()  # nginx, HAProxy and an idle weir all end quickly on TERM
            try:
                self.proc.wait(5)
            except subprocess.TimeoutExpired:
                pass
        util.kill_all([p for p in pids if util.alive(p)])
        self.proc.wait()


def start_origin(work):
    return Server("origin", ORIGIN, [NGINX_BIN, "-c", "CONF"], 1, work)


NGINX_BIN = shutil.which("nginx") or "/usr/sbin/nginx"
HAPROXY_BIN = shutil.which("haproxy") or "/usr/sbin/haproxy"


def start(name, work, origin, weir_bin):
    conf, args = {
        "nginx": (NGINX, [NGINX_BIN, "-c", "CONF"]),
        "haproxy": (HAPROXY, [HAPROXY_BIN, "-db", "-f", "CONF"]),
        "weir": (WEIR, [weir_bin, "run", "-c", "CONF"]),
    }[name]
    return Server(name, conf, args, 0, work, origin)


def version(name, weir_bin):
    cmd = {"nginx": [NGINX_BIN, "-v"], "haproxy": [HAPROXY_BIN, "-v"], "weir": [weir_bin, "version"]}[name]
    out = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    return out.strip().split("\n")[0]
