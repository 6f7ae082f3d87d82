# SPDX-License-Identifier: MIT
"""Fixtures of the end-to-end tests.

    /usr/bin/python3 -m pytest t/e2e            the weir of build/plain, or the one named by WEIR_BIN
    WEIR_TIME_SCALE=3 WEIR_BIN=…                a slow (sanitizer) build: every deadline of the harness times three

A test says all it needs in its own body; everything it starts is stopped, by pid, when it ends:

    def test_a_file_is_served(weir, backend):
        origin = backend()
        w = weir('''
            sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; proxy = "@ORIGIN@"; } );
        ''', files={"public/a.txt": "hello"}, ORIGIN=origin.addr)
        r = w.get("/a.txt")
        assert (r.status, r.body) == (200, b"hello")
        assert origin.targets() == []

weir(conf, files={name: content}, env={}, args=(), wait=True, port=None, NAME=value…) → harness.server.Weir
    conf: @PORT@ and @PORTany@ become free ports (w.port, w.ports["PORTany"]), @DIR@ the server's directory w.dir,
    @NAME@ the keyword. Relative paths in it are relative to w.dir. A control socket of its own is added.
    It returns when every @PORT…@ accepts. stderr is w.errors(), stdout (the access log) w.access().
    w.get/head/post/request(…) → wire.Response (.status .headers .get(name) .all(name) .body .complete .trailers);
    w.connect() → wire.Conn for raw bytes: .send(b"…") .response("GET") .at_eof() .half_close() .close(reset=True).
    w.reload(conf, refused=False), w.cli("check"), w.send_signal(sig), w.stop(sig), w.wait_exit(), w.tree(), w.pid (the
    supervisor's), w.server_pid (of the process that serves), w.wait_error(regex), w.wait_access(regex). At the end the
    fixture stops it with INT and fails the test on a sanitizer report, a crash, an exit code not in w.expect_exit (0),
    a process left behind, or no end in 10 s.
cli(*args) → `weir ARGS` run to its end: .returncode .stdout .stderr.
backend(handler=None) → a recording origin (wire.Backend): .addr, .port, .targets(), .take() → requests.
raw_backend(script) → script(conn) for each connection: conn.head() .read(n) .send(b) .fin() .rst() .wait_close().
    harness.backends.serve(b"HTTP/1.1 …", then="close"|"rst"|"stall"|"again") is the usual script.
node(script) → a Node process that listens on process.env.PORT: .addr, .pid, .log().
app(NAME, port=0, VARIABLE=value…) → the same of an application in t/apps (see harness.apps).
dead → .addr of a port that refuses connections.
free_port() → a port number nobody uses. scaled(s), wait_for(what, s, probe): harness.util.

No test sleeps to synchronise: wait_for() what it waits for. A test that hangs is ended after 60 s (times the scale).
"""
import os
import signal
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "suites", "common"))
sys.path.insert(0, HERE)

import wire  # noqa: E402
from harness import apps, backends, server, util  # noqa: E402

# How long at_eof() waits where a test does not say: half a second is short for a sanitized server on a busy machine.
wire.Conn.at_eof.__defaults__ = (util.scaled(2),)

LONG = os.environ.get("WEIR_LONG") == "1"


def pytest_collection_modifyitems(config, items):
    """Long tests are left out, not skipped, unless WEIR_LONG=1; root tests are skipped for an ordinary user."""
    if not LONG:
        left_out = [i for i in items if i.get_closest_marker("long")]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [i for i in items if not i.get_closest_marker("long")]
    if os.geteuid() != 0:
        for i in items:
            if i.get_closest_marker("root"):
                i.add_marker(pytest.mark.skip(reason="needs root"))


def pytest_sessionstart(session):
    if not os.access(server.BIN, os.X_OK):
        pytest.exit("no weir to test at %s: build it, or set WEIR_BIN" % server.BIN, 3)


leak_tested = set()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """One alarm for the whole test, fixtures included. Leaks are looked for once in each test with parameters, in all of
    them with WEIR_LONG=1."""
    function = (str(item.fspath), getattr(item, "originalname", item.name))
    server.leaks = LONG or function not in leak_tested
    leak_tested.add(function)
    limit = int(util.scaled(1200 if item.get_closest_marker("long") else 60))

    def too_long(*_):
        raise TimeoutError("the test did not end within %d s" % limit)

    old = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(limit)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


def _factory(make, close):
    """A fixture body: a function that makes things, and all of them closed in reverse order, the first error kept."""
    made, error = [], None

    def new(*args, **kw):
        made.append(make(*args, **kw))
        return made[-1]

    yield new
    for thing in reversed(made):
        try:
            close(thing)
        except Exception as e:
            error = error or e
    if error:
        raise error


@pytest.fixture
def backend():
    yield from _factory(backends.Recorder, lambda b: b.stop())


@pytest.fixture
def raw_backend():
    yield from _factory(backends.RawBackend, lambda b: b.close())


@pytest.fixture
def node():
    yield from _factory(backends.Node, lambda n: n.close())


@pytest.fixture
def app():
    yield from _factory(apps.serve, lambda n: n.close())


@pytest.fixture
def dead():
    port = util.DeadPort()
    yield port
    port.close()


@pytest.fixture
def weir(backend, raw_backend, node, app):  # named so that backends outlive the server under test
    def close(w):
        print("error log of weir on %s:\n%s" % (w.ports, w.errors()[-8000:]))  # pytest shows it for a failed test
        w.close()
    yield from _factory(server.Weir, close)


@pytest.fixture
def cli():
    return server.cli


@pytest.fixture
def free_port():
    return util.free_port
