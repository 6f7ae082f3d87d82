# SPDX-License-Identifier: MIT
"""The applications of t/apps: their Node processes, their client programs, and a browser that opens their pages.

WEIR_APPS names the folder in which `npm ci` has put what t/apps/package.json asks for (contrib/check's stage `npm`).
"""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

from . import backends, util

HERE = os.path.dirname(os.path.abspath(__file__))
APPS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "apps")
MODULES = os.path.join(os.environ.get("WEIR_APPS", os.path.join(os.path.dirname(os.path.dirname(APPS)), "build", "apps")),
                       "node_modules")
CHROMIUM = shutil.which("chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-breakpad", "--remote-debugging-port=0"]


def installed():
    return os.path.isdir(os.path.join(MODULES, "express"))


def _env(env):
    return {"NODE_PATH": MODULES, "NODE_ENV": "production", "NO_PROXY": "127.0.0.1", **{k: str(v) for k, v in env.items()}}


def serve(name, port=0, **env):
    """The app t/apps/NAME as a backends.Node."""
    return backends.Node("require(%s);" % json.dumps(os.path.join(APPS, name, "server.js")), port=port, env=_env(env))


class Client:
    """t/apps/NAME/client.js at work against a port."""

    def __init__(self, name, port, **env):
        self.proc = subprocess.Popen(["node", os.path.join(APPS, name, "client.js"), "http://127.0.0.1:%d" % port],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     env={**os.environ, **_env(env)})

    def line(self):
        """The next line that it prints."""
        return self.proc.stdout.readline().strip()

    def result(self, timeout=40):
        try:
            out, err = self.proc.communicate(timeout=util.scaled(timeout))
        except subprocess.TimeoutExpired:
            self.close()
            raise AssertionError("the client did not come to an end")
        assert self.proc.returncode == 0 and out.strip(), err
        return json.loads(out.strip().split("\n")[-1])

    def close(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.communicate()


def run(name, port, **env):
    """The whole of a client; what it found out."""
    return Client(name, port, **env).result()


def seen(app, port, path="/"):
    """Opens a page of the app by way of a port in Chromium; returns what its script reports to POST /seen."""
    with tempfile.TemporaryDirectory(prefix="weir-chromium-") as folder, open(os.path.join(folder, "log"), "w") as log:
        browser = subprocess.Popen([CHROMIUM, *FLAGS, "--user-data-dir=" + folder, "http://127.0.0.1:%d%s" % (port, path)],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            m = util.wait_for("the page has reported", 30, lambda: re.search(r"^SEEN (.*)$", app.log(), re.M), every=0.05)
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()
            util.wait_for("the browser has gone", 10, lambda: not holders(folder))
    return json.loads(m.group(1))


def holders(folder):
    """Processes with this folder on their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if folder.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found
