# SPDX-License-Identifier: MIT
"""The reader of set-up files, and every set-up that is shipped."""
import os
import re

import pytest
from conftest import ROOT
from lab import arms, setupfile, store
from lab.setupfile import SetupError, parse


def test_what_libconfig_has():
    got = parse(
        'a = "x" "y\\n";  # comment\nb: { c = [ 1, 0x10, ]; d = 1e3, e = ( true, "q", { f = -2.5; } ) } '
        '// c\n/* c */ g = FALSE',
        "f",
    )
    assert got == {"a": "xy\n", "b": {"c": [1, 16], "d": 1000.0, "e": [True, "q", {"f": -2.5}]}, "g": False}


@pytest.mark.parametrize(
    "text, message",
    [
        ("a = ;", "f:1: expected a value, found `;`"),
        ("a = 1;\na = 2;", "f:2: `a` stands here twice; first in line 1"),
        ("a = { b = 1;", "f:1: expected a name or `}`"),
        ("\n\n?", "f:3: `?` is not understood"),
        ("a 1", "f:1: expected `=` or `:`, found `1`"),
        ('@include "gone.inc"', "f:1: cannot include gone.inc"),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(SetupError) as e:
        parse(text, "f")
    assert str(e.value).startswith(message)


def test_include_is_relative_to_the_file(tmp_path):
    (tmp_path / "a.inc").write_text("b = 2;")
    (tmp_path / "a.setup").write_text('a = 1;\n@include "a.inc"\nc = 3;')
    assert setupfile.read(str(tmp_path / "a.setup")) == {"a": 1, "b": 2, "c": 3}


def test_an_include_that_includes_itself_ends(tmp_path):
    (tmp_path / "a.inc").write_text('@include "a.inc"')
    with pytest.raises(SetupError, match="too deep"):
        setupfile.read(str(tmp_path / "a.inc"))


def test_variables():
    look = {"A": "1", "E": ""}.get
    assert setupfile.expand("${A} ${B:-two} ${E:-three} $$x $host ${A}", look) == "1 two three $x $host 1"
    assert setupfile.expand({"k": ["${A}", 2]}, look) == {"k": ["1", 2]}
    with pytest.raises(SetupError, match="NOPE"):
        setupfile.expand("${NOPE}", look)


def test_a_wrong_name_gets_the_nearest():
    with pytest.raises(SetupError, match="f:1: a process has no setting `redy`; did you mean `ready`?"):
        setupfile.check(parse('redy = "x";', "f"), arms.PROCESS, "a process")
    with pytest.raises(SetupError, match="`run` takes a string"):
        setupfile.check(parse("run = 1;", "f"), arms.PROCESS, "a process")
    assert setupfile.check(parse("cpus = 1;", "f"), arms.PROCESS, "a process") == {"cpus": [1]}


@pytest.mark.parametrize("text, value", [("500ms", 0.5), ("2s", 2), ("1.5m", 90)])
def test_durations(text, value):
    assert setupfile.seconds(text) == value
    with pytest.raises(SetupError):
        setupfile.seconds(text.rstrip("ms"))


SHIPPED = arms.available()


def test_the_set_ups_that_must_be_there_are():
    assert {
        "meteor-1cpu",
        "meteor-2cpu",
        "node-alone",
        "node-cluster",
        "npm-loadbalancer",
        "haproxy-redispatch",
        "weir-redispatch",
        "pinned-empty",
        "pinned-busy",
        "files",
        "proxy",
    } <= set(SHIPPED)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_shipped_set_ups_are_sound(name, tmp_path):
    setup = arms.Setup(SHIPPED[name], arms.Session(str(tmp_path)), crowded=True)
    assert setup.plan.get("title") and setup.arms
    names = [a.name for a in setup.arms]
    assert len(set(names)) == len(names)
    for p in setup.plan.get("published", []):
        assert p["arm"] in names and p["url"] in setup.plan.get("urls", ["/"]) and p["rps"] > 0
    for arm in setup.arms:
        for process in arm.processes:
            assert process.ready or len(arm.processes) > 1, "%s: %s is never known to be ready" % (
                arm.name,
                process.name,
            )
            if process.config:
                assert os.path.exists(os.path.join(arm.setups, process.config))


def test_the_first_listen_of_a_configuration_is_its_url(tmp_path, monkeypatch):
    conf = tmp_path / "p.conf"
    for listen, url in (
        ('"8080"', "http://127.0.0.1:8080"),
        ('( "127.0.0.1:81", "82" )', "http://127.0.0.1:81"),
        ('{ address = "[::1]:80"; }', "http://[::1]:80"),
        ('"${LISTEN:-*:90}"', "http://127.0.0.1:90"),
    ):
        conf.write_text('sites = ( { listen = %s; respond = "x"; } );' % listen)
        monkeypatch.delenv("LISTEN", raising=False)
        assert arms.url_of_conf(str(conf)) == url
    monkeypatch.setenv("LISTEN", "127.0.0.1:91")
    assert arms.url_of_conf(str(conf)) == "http://127.0.0.1:91"
    conf.write_text('sites = ( { listen = "unix:/x"; } );')
    with pytest.raises(arms.Problem, match="cannot tell where it listens"):
        arms.url_of_conf(str(conf))


def guide():
    with open(os.path.join(ROOT, "docs", "lab.md"), encoding="utf-8") as f:
        return f.read()


def test_the_guide_names_every_setting_and_column():
    text = guide()
    rows = "\n".join(line for line in text.split("\n") if line.startswith("| "))
    words = set(re.findall(r"\w+", rows))
    for name in [*arms.TOP, *arms.ARM, *arms.PROCESS]:
        assert name in words or name == "arms", name
    for column in store.COLUMNS:
        by_kind = column.startswith("f_") and column[2:] in words
        assert column in words or by_kind or column in ("p90_ms", "p99_ms", "p999_ms", "regime")


def test_the_guides_example_is_sound(tmp_path):
    block = re.search(r"^(    title = .*?)\n\n(?=\S)", guide(), re.M | re.S).group(1)
    path = os.path.join(str(tmp_path), "example.setup")
    os.symlink(SHIPPED["node-alone"], os.path.join(str(tmp_path), "node-alone.setup"))
    with open(path, "w") as f:
        f.write(re.sub(r"^    ", "", block, flags=re.M))
    setup = arms.Setup(path, arms.Session(str(tmp_path)), crowded=True)
    assert [a.name for a in setup.arms] == ["nginx", "node"]
    assert [p.name for p in setup.arms[0].processes] == ["nodes", "front"] and setup.arms[0].processes[1].cpus == [0]
