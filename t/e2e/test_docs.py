# SPDX-License-Identifier: MIT
"""The documentation and the program agree: every configuration that is shown or shipped passes `weir check`.

An example is an indented or fenced block of README.md or docs/*.md that sets one of the top-level groups. One without
`sites` gets a site; a group with `match` (or a list of them) is taken as the locations of one.
"""
import glob
import os
import re

import pytest
from harness.server import ROOT

TOP = re.compile(r"^\s*(sites|upstreams|workers|cpu_affinity|timeouts|limits|file_cache|include|log_level|access_log"
                 r"|error_log|user|trusted)\s*[=:]\s*", re.M)
LOCATION = re.compile(r"^\s*\(?\s*\{\s*match\s*=")
SITE = 'sites = ( { listen = "127.0.0.1:8080"; respond = "ok"; } );\n'


def blocks(text):
    """(line number, text) of each indented (four blanks or more, after an empty line) or fenced block."""
    lines, i = text.split("\n"), 0
    while i < len(lines):
        if lines[i].startswith("```"):
            start = i = i + 1
            while i < len(lines) and not lines[i].startswith("```"):
                i += 1
            yield start + 1, "\n".join(lines[start:i]) + "\n"
        elif lines[i].startswith("    ") and (i == 0 or not lines[i - 1].strip()):
            start = i
            while i < len(lines) and (lines[i].startswith("    ") or
                                      (not lines[i].strip() and i + 1 < len(lines) and lines[i + 1].startswith("    "))):
                i += 1
            yield start + 1, "\n".join(ln[4:] for ln in lines[start:i]) + "\n"
        i += 1


def examples():
    for path in [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")))]:
        if not os.path.exists(path):
            continue
        with open(path) as f:
            text = f.read()
        for line, block in blocks(text):
            if LOCATION.match(block):
                block = 'sites = ( { listen = "127.0.0.1:8080"; locations = (%s); } );\n' % block.strip().strip("()")
            elif not TOP.search(block):
                continue
            elif not re.search(r"^\s*(sites|include)\s*[=:]", block, re.M):
                block += SITE
            yield pytest.param(block, id="%s:%d" % (os.path.relpath(path, ROOT), line))


def shipped():
    """conf/setups/files has what other servers read, and what the laboratory fills in first."""
    return sorted(p for d in ("conf", "conf/setups") for p in glob.glob(os.path.join(ROOT, d, "*.conf")))


@pytest.mark.parametrize("text", examples())
def test_an_example_passes_check(cli, tmp_path, text):
    (tmp_path / "proxy.conf").write_text(text)
    for folder in ("public", "sites.d", "bundle/programs/web.browser", "programs/web.browser/app", "private"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "oops.html").write_text("oops")
    (tmp_path / "bundle/programs/web.browser/program.json").write_text("{}")
    (tmp_path / "sites.d" / "a.conf").write_text(SITE)
    done = cli("check", "-c", tmp_path / "proxy.conf", cwd=tmp_path)
    assert done.returncode == 0, "%s\n%s" % (done.stderr, text)


@pytest.mark.parametrize("path", shipped(), ids=lambda p: os.path.relpath(p, ROOT))
def test_a_shipped_configuration_passes_check(cli, path, tmp_path):
    (tmp_path / "programs" / "web.browser" / "app").mkdir(parents=True)
    done = cli("check", "-c", path, env={"BUNDLE": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    # What this version does not do yet is said as a warning; anything else would be a fault of the file.
    assert [ln for ln in done.stderr.splitlines() if "has no effect in this version yet" not in ln] == []


def test_the_two_meteor_set_ups_differ_in_the_locations_alone():
    def of(name):
        with open(os.path.join(ROOT, "conf", "setups", name)) as f:
            text = "".join(ln for ln in f if not ln.startswith("#"))
        return re.sub(r"\s+", "", re.sub(r"locations = \(.*?\n\s*\);", "", text, flags=re.S))
    assert of("meteor-proxy.conf") == of("meteor-static.conf")


def test_the_parser_of_examples_finds_them():
    text = ("a\n\n    sites = ( { listen = \"8080\"; } );\n\n    workers = 2;\n\nb\n\n```conf\nworkers = 1;\n```\n"
            "    not a block: no empty line before it\n")
    assert list(blocks(text)) == [(3, 'sites = ( { listen = "8080"; } );\n\nworkers = 2;\n'), (10, "workers = 1;\n")]
