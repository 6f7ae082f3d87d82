# SPDX-License-Identifier: MIT
"""The command line: verbs, exit codes, where the configuration comes from, and how errors read."""
import os
import re
import signal
import subprocess

import pytest
from harness import server, util
from wire import Conn

GOOD = 'sites = ( { listen = "127.0.0.1:8080"; respond = "ok"; } );\n'


@pytest.fixture
def check(tmp_path, cli):
    """check(text) → the result of `weir check` on a proxy.conf with that text."""
    def run(text, *args):
        (tmp_path / "proxy.conf").write_bytes(text if isinstance(text, bytes) else text.encode())
        return cli("check", "-c", tmp_path / "proxy.conf", *args, cwd=tmp_path)
    return run


# --- help, version, misuse ---

@pytest.mark.parametrize("word", ["version", "-v", "--version"])
def test_version_goes_to_stdout(cli, word):
    done = cli(word)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("weir 0.1.0")


@pytest.mark.parametrize("words", [["help"], ["--help"], ["-h"]])
def test_help_goes_to_stdout_and_names_the_verbs(cli, words):
    done = cli(*words)
    assert (done.returncode, done.stderr) == (0, "")
    for verb in ("run", "check", "explain", "proxy", "version"):
        assert re.search(r"^ +%s +\w" % verb, done.stdout, re.M), done.stdout


@pytest.mark.parametrize("words", [["help", "check"], ["check", "--help"], ["help", "proxy"], ["proxy", "--help"]])
def test_each_verb_has_help_of_its_own(cli, words):
    done = cli(*words)
    assert (done.returncode, done.stderr) == (0, "")
    verb = words[1] if words[0] == "help" else words[0]
    assert "weir " + verb in done.stdout


@pytest.mark.parametrize("words, names", [
    (["chekc"], "check"), (["check", "--nonsense"], "weir check"), (["check", "-c"], "-c"),
    (["proxy", "--listen"], "--listen"), (["proxy"], "--to"),
])
def test_misuse_is_exit_2_and_names_what_was_wrong(cli, words, names):
    done = cli(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert names in done.stderr


# --- where the configuration comes from ---

@pytest.mark.skipif(os.path.exists("/etc/weir/proxy.conf"), reason="this machine has an /etc/weir/proxy.conf")
@pytest.mark.parametrize("verb", ["check", "run"])
def test_without_any_configuration_the_shortest_way_is_named(cli, tmp_path, verb):
    done = cli(verb, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert ("no proxy.conf in . or /etc/weir; try: weir proxy --listen 8080 --to 127.0.0.1:3000") in done.stderr


def test_a_named_file_that_is_missing_is_named(cli, tmp_path):
    done = cli("check", "-c", tmp_path / "none.conf")
    assert done.returncode == 1
    assert str(tmp_path / "none.conf") in done.stderr


def test_weir_conf_names_the_file_and_c_goes_before_it(cli, tmp_path):
    (tmp_path / "good.conf").write_text(GOOD)
    (tmp_path / "bad.conf").write_text("sites = 1.5;\n")
    env = {"WEIR_CONF": str(tmp_path / "bad.conf")}
    assert cli("check", env=env).returncode == 1
    assert cli("check", "-c", tmp_path / "good.conf", env=env).returncode == 0


def test_the_first_log_line_names_the_configuration(weir):
    w = weir('sites = ( { listen = "127.0.0.1:@PORT@"; respond = "ok"; } );')
    w.wait_error("configuration")
    assert w.conf_path in w.errors().split("\n")[0]


# --- check ---

def test_a_good_file_passes(check):
    done = check(GOOD)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("args", [["-t", "-c"], ["check", "-c"]])
def test_t_is_check(cli, tmp_path, args):
    (tmp_path / "proxy.conf").write_text(GOOD)
    assert cli(*args, tmp_path / "proxy.conf").returncode == 0
    (tmp_path / "proxy.conf").write_text("sites = 1.5;\n")
    assert cli(*args, tmp_path / "proxy.conf").returncode == 1


def test_every_problem_is_reported_at_once_each_with_its_line(check):
    done = check('workres = 2;\n'
                 'timeouts = { header = 30; };\n'
                 'sites = ( { listen = "8080"; gzip = "perhaps"; respond = "ok"; } );\n')
    assert (done.returncode, done.stdout) == (1, "")
    for n in (1, 2, 3):
        assert "proxy.conf:%d: " % n in done.stderr
    assert '"workers"' in done.stderr or "workers" in done.stderr.split("workres", 1)[1]
    assert '"30s"' in done.stderr


@pytest.mark.parametrize("text, line, says", [
    ('sites = ( { listen = "8080"; respond = "ok"; }, );\n', 1, "comma"),
    ('sites = ( { listen = "8080"; respond = "ok"; }\n          { listen = "8081"; respond = "ok"; } );\n', 1, "comma"),
    ('sites = ( { listen = "8080"; respond = ok; } );\n', 1, "quot"),
])
def test_a_syntax_error_shows_its_line_and_the_likely_cause(check, text, line, says):
    done = check(text)
    assert done.returncode == 1
    assert "proxy.conf:%d: " % line in done.stderr
    assert text.split("\n")[line - 1].strip() in done.stderr  # the line itself
    assert "^" in done.stderr
    assert says in done.stderr.lower()


@pytest.mark.parametrize("text, says", [
    (b"\xef\xbb\xbf" + GOOD.encode(), "BOM|byte order mark"),
    (GOOD.replace('"ok"', '"o" "k"'), "two strings|side by side"),
    ("workers = 4294967297;\n" + GOOD, "4294967297"),
    ("workers = 2;\nworkers = 3;\n" + GOOD, "workers"),
    (GOOD.replace('"127.0.0.1:8080"', '"${NOT_SET_ANYWHERE}"'), "NOT_SET_ANYWHERE"),
    (GOOD.replace('respond = "ok"', 'redirect = "https://${host}/"'), r"\$host"),
    (GOOD.replace('respond = "ok"', 'proxy = "https://127.0.0.1"'), "TLS|https"),
    (GOOD.replace('respond = "ok"', 'proxy = "no_such_pool"'), "no_such_pool"),
    ("timeouts = { connect = 30; };\n" + GOOD, '"30s"'),
])
def test_what_would_be_misread_is_an_error(check, text, says):
    done = check(text)
    assert done.returncode == 1, "accepted"
    assert re.search(says, done.stderr), done.stderr


@pytest.mark.parametrize("text", [
    GOOD.replace('"127.0.0.1:8080"', '"${NOT_SET_ANYWHERE:-127.0.0.1:8080}"'),
    GOOD.replace("( {", "{").replace("} )", "}"),  # one value stands for a list of one
    'upstreams = { a = { balance = "LEAST-conn"; servers = "127.0.0.1:1"; }; };\n' + GOOD.replace(
        'respond = "ok"', 'proxy = "a"'),
    GOOD.replace('respond = "ok"', 'redirect = "https://$host$request_uri"'),
])
def test_what_is_promised_to_be_accepted_is(check, text):
    done = check(text)
    assert done.returncode == 0, done.stderr


def test_there_are_no_colours_where_there_is_no_terminal(check, cli, tmp_path):
    done = check("sites = 1.5;\n")
    assert "\x1b" not in done.stderr + done.stdout
    assert "\x1b" not in cli("help").stdout


# --- proxy ---

def test_proxy_print_shows_a_configuration_that_passes_check(cli, check, tmp_path):
    (tmp_path / "public").mkdir()
    done = cli("proxy", "--listen", "8080", "--to", "127.0.0.1:3000", "--to", "127.0.0.1:3001", "--root", "public",
               "--print", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("8080", "127.0.0.1:3000", "127.0.0.1:3001", "public"):
        assert word in done.stdout
    again = check(done.stdout)
    assert again.returncode == 0, again.stderr


def test_proxy_needs_no_configuration_file(backend, tmp_path, free_port):
    origin, port = backend(), free_port()
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "a.txt").write_text("from disk\n")
    proc = subprocess.Popen([server.BIN, "proxy", "--listen", "127.0.0.1:%d" % port, "--to", origin.addr, "--root",
                             "public"], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=server.environment({"XDG_RUNTIME_DIR": str(tmp_path)}))
    try:
        util.wait_for("weir proxy listens", 10, lambda: util.listening("127.0.0.1", port))
        c = Conn("127.0.0.1", port, util.scaled(5))
        c.send(b"GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n")
        assert c.response().body == b"from disk\n"
        c.send(b"GET /b HTTP/1.1\r\nHost: h\r\n\r\n")
        assert c.response().body == b"GET /b 0"
        c.close()
        proc.send_signal(signal.SIGINT)
        _, err = proc.communicate(timeout=util.scaled(10))
        assert proc.returncode == 0, err
        assert not server.COMPLAINTS.search(err.decode()), err
    finally:
        if proc.poll() is None:
            proc.kill()
        proc.communicate()


# --- explain ---

EXPLAIN = """
upstreams = { app = { servers = "127.0.0.1:3000"; }; };
sites = ( { listen = "127.0.0.1:8080"; names = "example.org"; proxy = "app";
            locations = (
              { match = "~ \\.(png|jpg)$"; root = "public"; },
              { match = "/old/"; redirect = "https://$host/new/"; }
            ); } );
"""


@pytest.mark.parametrize("url, says", [
    ("/img/a.png", [r"~ \.(png|jpg)$", "public/img/a.png"]),
    ("/old/x", ["/old/", "301", "https://example.org/new/"]),
    ("/", ["app"]),
])
def test_explain_says_what_would_answer(cli, tmp_path, url, says):
    (tmp_path / "proxy.conf").write_text(EXPLAIN)
    (tmp_path / "public" / "img").mkdir(parents=True)
    (tmp_path / "public" / "img" / "a.png").write_bytes(b"png")
    done = cli("explain", "-c", tmp_path / "proxy.conf", "GET", url, "-H", "Host: example.org")
    assert done.returncode == 0, done.stderr
    for s in says:
        assert s in done.stdout, done.stdout
