# SPDX-License-Identifier: MIT
"""Commands for the generators, and what is read out of what they print. data/ holds what they did print."""
import os

import numpy as np
import pytest
from conftest import DATA
from lab import loads
from lab.arms import Problem


def path(name):
    return os.path.join(DATA, name)


def test_ab(data):
    text = data("ab.txt")
    got = loads.parse_ab(text, path("ab-g.tsv"))
    assert (got.requests, got.failures, got.total_failures()) == (200, {}, 0)
    assert "Requests per second:    %.2f" % got.rps in text
    assert (
        got.ab["time"] == got.seconds
        and got.ab["kbs"] > 0
        and got.ab["ms"] == pytest.approx(got.mean_ms / 10, abs=0.001)
    )
    assert got.ab["percentiles"] == sorted(got.ab["percentiles"]) and len(got.ab["percentiles"]) == 9
    assert (
        got.quantile(0.5) == pytest.approx(got.ab["percentiles"][0], abs=1)
        and got.quantile(1.0) == got.ab["percentiles"][-1]
    )
    assert got.resolution == 1.0 and len(got.grid) == len(loads.GRID)


def test_ab_g_is_put_in_time_order():
    ms, starts = loads.read_ab_g(path("ab-g.tsv"))
    assert ms == sorted(ms)  # what ab writes is sorted by duration
    got = loads.Load()
    got.take_latencies([3, 1, 2, 9], [12.0, 10.0, 11.0, 10.5])
    assert got.points[0].tolist() == [0, 0.5, 1, 2] and got.points[1].tolist() == [1, 9, 2, 3]
    assert len(ms) == len(starts) == 200


def test_failures_of_ab_by_kind(data):
    got = loads.parse_ab(data("ab-failed.txt"))
    assert got.failures == {"length": 28, "status": 20}
    assert got.total_failures() == 28  # the error pages are among those of another length


def test_ab_that_gave_up():
    got = loads.parse_ab("apr_socket_recv: Connection refused (111)\nTotal of 12 requests completed\n")
    assert got.failures == {"aborted": 1}


def test_wrk(data):
    got = loads.parse_wrk(data("wrk-failed.txt"))
    assert got.failures == {"status": 812} and got.requests == 8126
    assert (
        got.quantile(0.5) == pytest.approx(0.177) and got.quantile(0.99) == pytest.approx(23.1) and got.mean_ms == 2.31
    )
    assert np.isnan(got.quantile(0.9999))
    socket = loads.parse_wrk(
        "  Socket errors: connect 1, read 2, write 3, timeout 4\n"
        "  5 requests in 1.00s, 1.00KB read\nRequests/sec: 5.0\n"
    )
    assert socket.failures == {"connect": 1, "read": 2, "write": 3, "timeout": 4} and socket.bytes == 1024


def test_wrk_with_the_laboratorys_script(data):
    got = loads.parse_wrk(data("wrk-exact.txt"))
    assert not got.failures and len(got.grid) == len(loads.GRID) and got.grid == sorted(got.grid)
    assert got.resolution == 0.001 and got.rps == pytest.approx(got.requests / got.seconds)


def test_h2load(data):
    got = loads.parse_h2load(data("h2load-failed.txt"), path("h2load-log.tsv"))
    assert (got.requests, got.rps, got.failures) == (100, 1608.34, {"status": 10})
    assert got.bytes == 16268 and got.points[0][0] == 0 and list(got.points[0]) == sorted(got.points[0])


def test_openloop():
    got = loads.parse_openloop("requests\t100\nseconds\t2.0\nbytes\t500\nconnect\t1\nread\t0\nstatus\t2\n")
    assert (got.rps, got.failures) == (50, {"connect": 1, "status": 2})
    assert loads.parse_openloop("").failures == {"aborted": 1}


def test_generators_that_ran_at_once_are_merged():
    parts = []
    for ms, seconds in ((range(1, 101), 1.0), (range(101, 401), 2.0)):
        part = loads.Load()
        part.take_latencies(list(ms))
        part.requests, part.seconds, part.rps, part.bytes = len(ms), seconds, len(ms) / seconds, 10.0
        part.failures = {"status": 3, "length": 5}
        part.ab = {"rps": part.rps}  # ab counts an error page twice
        parts.append(part)
    got = loads.merged(parts)
    assert (got.requests, got.seconds, got.rps, got.bytes) == (400, 2.0, 250, 20)
    assert got.failures == {"status": 6, "length": 4} and got.total_failures() == 10 and not got.ab
    assert (got.min_ms, got.mean_ms, got.quantile(1.0)) == (1, 200.5, 400)
    for q in (0.1, 0.25, 0.5, 0.9, 0.99):
        assert got.quantile(q) == pytest.approx(400 * q, abs=4)
    assert loads.merged(parts[:1]) is parts[0]


def test_autocannon(data):
    got = loads.parse_autocannon(data("autocannon.json"))
    assert (
        set(got.failures) == {"status"}
        and got.rps > 0
        and got.quantile(0.5) <= got.quantile(0.99) <= got.quantile(1.0)
    )


@pytest.mark.parametrize(
    "name, kind",
    [
        ("ab.txt", "ab"),
        ("ab-g.tsv", "ab -g"),
        ("wrk-failed.txt", "wrk"),
        ("wrk-exact.txt", "wrk"),
        ("h2load-failed.txt", "h2load"),
        ("autocannon.json", "autocannon"),
    ],
)
def test_files_are_recognised(name, kind):
    assert loads.recognise(path(name))[0] == kind


def test_other_files_are_not():
    with pytest.raises(Problem, match="neither ab"):
        loads.recognise(__file__)


def words(text, **more):
    return loads.Command(text, **more)


def test_the_measured_command_keeps_what_was_asked_for():
    got = words("ab -n 20000 -c 100 -k").measured("http://x/", "/raw")
    assert got[1:] == ["-r", "-n", "20000", "-c", "100", "-k", "-g", "/raw", "http://x/"]
    got = words("wrk -t2 -c10 -d5s").measured("http://x/", "/raw")
    assert got[1:3] == ["-s", loads.WRK_SCRIPT] and got[3:] == ["-t2", "-c10", "-d5s", "http://x/"]
    assert "--h1" in words("h2load -n 10 -c 2").measured("http://x/", "/raw")
    assert "--h1" not in words("h2load -p h2c -n 10").measured("http://x/", "/raw")


def test_the_warm_up_is_the_same_load_for_a_short_time():
    assert words("ab -n 20000 -c 100").warm("http://x/", 1)[1:] == [
        "-q",
        "-r",
        "-c",
        "100",
        "-t",
        "1",
        "-n",
        "200000",
        "http://x/",
    ]
    assert words("wrk -t2 -c10 -d5s").warm("http://x/", 0.2)[1:] == ["-t2", "-c10", "-d", "1s", "http://x/"]
    assert "-n" not in words("h2load -n 10 -c 2").warm("http://x/", 1)


def test_the_two_regimes_are_not_mixed():
    for text in ("ab -n 10", "wrk -c10"):
        with pytest.raises(Problem, match="no fixed rate"):
            words(text, rate=100)
    with pytest.raises(Problem, match="--rate"):
        words("openloop -c 10")
    with pytest.raises(Problem, match="--rate R instead"):
        words("h2load --rps=10 -c 2")
    h2 = words("h2load -c 4 -D 2", rate=100)
    assert "--rps=25" in h2.measured("http://x/", "/raw") and h2.regime == "fixed rate"
    assert words("ab -n 10").regime == "saturation"
    with pytest.raises(Problem, match="none of ab, wrk"):
        words("siege -c 10")
