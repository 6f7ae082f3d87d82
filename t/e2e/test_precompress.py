# SPDX-License-Identifier: MIT
"""contrib/precompress: the siblings it makes, keeps, makes again and removes; with the tools that are installed."""
import gzip
import os
import shutil
import subprocess

import pytest
from harness.server import ROOT

TOOL = os.path.join(ROOT, "contrib", "precompress")
UNPACK = {"gz": ["gzip", "-dc"], "br": ["brotli", "-dc"], "zst": ["zstd", "-dqc"]}
OLD = 1700000000_123456789
TEXT = "".join("line %d of a text that compresses well\n" % i for i in range(400)).encode()
HERE = [k for k, tool in UNPACK.items() if shutil.which(tool[0])]


def run(*args, code=0, path=None):
    env = {**os.environ, "PATH": path or os.environ["PATH"]}
    done = subprocess.run(["/bin/bash", TOOL, *map(str, args)], env=env, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=50)
    assert done.returncode == code, done.stderr + done.stdout
    return done


def put(folder, name, content=TEXT, mtime=OLD):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(mtime, mtime))
    return path


def siblings(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.suffix[1:] in UNPACK)


def unpacked(path, kind):
    return subprocess.run([*UNPACK[kind], path], stdout=subprocess.PIPE, check=True).stdout


def test_siblings_hold_the_file_and_its_date_and_mode(tmp_path):
    names = ("a.css", "sub/b c.html", "sub/\u00fc'\"$(x).js", "-n.txt", "UPPER.SVG")
    for name in names:
        os.chmod(put(tmp_path, name), 0o640)
    run(tmp_path)
    assert siblings(tmp_path) == sorted("%s.%s" % (n, k) for n in names for k in HERE)
    for name in names:
        for kind in HERE:
            path = tmp_path / ("%s.%s" % (name, kind))
            st = path.stat()
            assert (st.st_mtime_ns, st.st_mode & 0o777) == (OLD, 0o640)
            assert unpacked(path, kind) == TEXT
    assert not list(tmp_path.rglob(".precompress*"))


def test_a_second_run_does_nothing_and_a_changed_file_is_done_again(tmp_path):
    put(tmp_path, "a.css"), put(tmp_path, "b.css")
    run(tmp_path)
    before = {s: (tmp_path / s).stat().st_ino for s in siblings(tmp_path)}
    out = run(tmp_path).stdout
    assert "2 files: 0 made, %d fresh, 0 not worth it, 0 removed, 0 failed\n" % (2 * len(HERE)) in out
    assert {s: (tmp_path / s).stat().st_ino for s in siblings(tmp_path)} == before
    put(tmp_path, "b.css", TEXT + b"new", OLD + 1)
    assert "2 files: %d made, %d fresh" % (len(HERE), len(HERE)) in run(tmp_path).stdout
    assert unpacked(tmp_path / "b.css.gz", "gz") == TEXT + b"new"
    assert (tmp_path / "b.css.gz").stat().st_mtime_ns == OLD + 1


def test_what_is_not_worth_it_is_left_alone(tmp_path):
    put(tmp_path, "small.txt", b"x" * 1023)
    put(tmp_path, "picture.png")
    put(tmp_path, "archive.gz")
    put(tmp_path, "font.woff2")
    put(tmp_path, "noise.js", os.urandom(5000))
    os.symlink(put(tmp_path.parent, "outside.css"), tmp_path / "link.css")
    out = run(tmp_path).stdout
    assert siblings(tmp_path) == ["archive.gz"]
    assert "1 files: 0 made, 0 fresh, %d not worth it" % len(HERE) in out
    put(tmp_path, "at-the-limit.txt", b"x" * 1024)
    run("--min", 0, tmp_path)
    assert "at-the-limit.txt.gz" in siblings(tmp_path) and "small.txt.gz" in siblings(tmp_path)


def test_a_sibling_that_is_no_use_any_more_goes(tmp_path):
    put(tmp_path, "a.js")
    run(tmp_path)
    put(tmp_path, "a.js", os.urandom(5000), OLD + 1)
    assert "%d removed" % len(HERE) in run(tmp_path).stdout
    assert siblings(tmp_path) == []


def test_a_dry_run_touches_nothing(tmp_path):
    put(tmp_path, "a.js")
    assert "1 files: %d to make" % len(HERE) in run("-n", tmp_path).stdout
    assert siblings(tmp_path) == []


def test_a_sibling_is_replaced_whole(tmp_path):
    """By rename: whoever has the old one open keeps it."""
    put(tmp_path, "a.js")
    run("-q", tmp_path)
    with open(tmp_path / "a.js.gz", "rb") as f:
        put(tmp_path, "a.js", TEXT[::-1], OLD + 1)
        run("-q", tmp_path)
        assert gzip.decompress(f.read()) == TEXT
    assert unpacked(tmp_path / "a.js.gz", "gz") == TEXT[::-1]


def only(tmp_path, *tools):
    """A PATH with the ordinary tools and these compressors."""
    here = tmp_path / "bin"
    here.mkdir()
    for tool in ("sed", "stat", "mktemp", "rm", "mv", "chmod", "chown", "touch", "find", "tr", "wc", "xargs", "awk",
                 "nproc", "realpath", "dirname", *tools):
        os.symlink(shutil.which(tool), here / tool)
    return str(here)


def test_with_gzip_alone(tmp_path):
    site = tmp_path / "site"
    put(site, "a.js")
    done = run("-q", site, path=only(tmp_path, "gzip"))
    assert siblings(site) == ["a.js.gz"]
    assert "no brotli here: no .br (Debian: apt-get install brotli)" in done.stderr and "no zstd here" in done.stderr


def test_a_compressor_that_fails_leaves_nothing(tmp_path):
    site = tmp_path / "site"
    put(site, "a.js")
    path = only(tmp_path)
    with open(os.path.join(path, "gzip"), "w") as f:
        f.write("#!/bin/sh\necho half; exit 1\n")
    os.chmod(os.path.join(path, "gzip"), 0o755)
    done = run(site, path=path + ":/nowhere", code=1)
    assert "1 failed" in done.stdout and "a.js.gz could not be made" in done.stderr
    assert os.listdir(site) == ["a.js"]


@pytest.mark.parametrize("args", [(), ("-x",), ("-j", "0", "/tmp"), ("-j",), ("--min", "1k", "/tmp")])
def test_misuse(args):
    done = run(*args, code=2)
    assert "contrib/precompress [-n]" in done.stderr and done.stdout == ""


def test_help_and_a_folder_that_is_not_there(tmp_path):
    assert "Makes the siblings" in run("--help").stdout
    assert "no such folder" in run(tmp_path / "nowhere", code=1).stderr
