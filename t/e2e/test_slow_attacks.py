# SPDX-License-Identifier: MIT
"""slowhttptest's four attacks, 4,000 connections each, while a good client goes on being answered; for check --long.

Uploads stream to the backend, so limits.in_flight is what keeps one client from taking all of it with slow ones."""
import shutil
import subprocess
import time

import pytest
from harness.util import scaled, wait_for

CONF = """
    workers = 1; access_log = false;
    timeouts = { header = "5s"; body = "5s"; send = "5s"; };
    sites = ( { listen = "127.0.0.1:@PORT@"; trusted = "127.0.0.1"; root = "public"; proxy = "@B@";
                locations = ( { match = "/up"; proxy = "@B@"; limits = { in_flight = 50; }; } ); } );
"""
ATTACKS = {
    "slow head": ["-H"],
    "slow body": ["-B", "-s", "8192"],
    "ranges": ["-R", "-a", "5", "-b", "3000", "-t", "HEAD"],
    "slow read": ["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3"],
}


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("slowhttptest"), reason="slowhttptest is missing")
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_good_client_is_answered_meanwhile(weir, backend, attack):
    b = backend()
    w = weir(CONF, B=b.addr, files={"public/big.bin": b"x" * (4 << 20), "public/a.txt": "hello"})
    path = {"slow body": "/up"}.get(attack, "/big.bin")
    proc = subprocess.Popen(["slowhttptest", *ATTACKS[attack], "-c", "4000", "-r", "1000", "-i", "2", "-l", "15", "-p", "3",
                             "-u", "http://127.0.0.1:%d%s" % (w.port, path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    waits = []
    try:
        while proc.poll() is None:
            for target in ("/a.txt", "/up/x"):
                t = time.monotonic()
                assert w.get(target, {"X-Forwarded-For": "192.0.2.1"}, timeout=10).status == 200
                waits.append(time.monotonic() - t)
            time.sleep(0.02)
    finally:
        if proc.poll() is None:
            proc.terminate()
        proc.wait()
    waits.sort()
    print("%d answers, half of them within %.4f s, the slowest after %.3f s" % (len(waits), waits[len(waits) // 2], waits[-1]))
    assert len(waits) > 50 and waits[len(waits) // 2] < scaled(0.1) and waits[-1] < scaled(5)
    wait_for("the attackers' connections are gone", 15, lambda: _open(w) == 0)


def _open(w):
    """Established connections of the server's port."""
    with open("/proc/net/tcp") as f:
        return sum(ln.split()[3] == "01" and ln.split()[1].endswith(":%04X" % w.port) for ln in f.readlines()[1:])
