# SPDX-License-Identifier: MIT
"""weir ab import [NAME=]FILE...: files that other tools wrote. They are unpaired: files of one NAME are the runs of
one arm, and nothing is known about the order in which they were made or what else changed."""
import argparse
import gzip
import os
import shlex
import shutil
import time

from lab import loads
from lab.arms import Problem
from lab.store import Store, row_of


def parser():
    p = argparse.ArgumentParser(
        prog="weir ab import", description="Compares files of ab, ab -g, wrk, h2load and autocannon -j."
    )
    p.add_argument(
        "files",
        nargs="+",
        metavar="[NAME=]FILE",
        help="files of one NAME are runs of one arm; the first is the baseline",
    )
    p.add_argument("--metric", choices=["rps", "mean", "p50", "p90", "p99"], default="rps")
    p.add_argument("--margin", type=float, default=3.0, help="per cent (default: %(default)g)")
    p.add_argument("--out", metavar="DIR", help="default: weir-ab-DATE-TIME")
    return p


def main(argv, finish):
    a = parser().parse_args(argv)
    got = []
    for word in a.files:
        name, equals, path = word.partition("=")
        if not equals or os.path.exists(word):
            name, path = os.path.splitext(os.path.basename(word))[0], word
        got.append((name, path, *loads.recognise(path)))
    names = list(dict.fromkeys(g[0] for g in got))
    kinds = sorted({g[2] for g in got})
    meta = {
        "format": 1,
        "title": "imported: " + ", ".join(names),
        "about": "",
        "command": shlex.join(["weir", "ab", "import", *argv]),
        "note": "Written by different tools: their figures do not mean the same."
        if len({k.split()[0] for k in kinds}) > 1
        else "",
        "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "seed": 1,
        "regime": "imported",
        "load": ", ".join(kinds),
        "rate": None,
        "tool": kinds[0].split()[0],
        "urls": ["-"],
        "metric": a.metric,
        "margin": a.margin / 100,
        "warmup": 0,
        "cooldown": 0,
        "load_cpus": [],
        "published": [],
        "published_from": "",
        "paired": False,
        "problems": [],
        "warnings": [],
        "arms": [{"name": n, "title": n, "skip": None, "processes": []} for n in names],
    }
    if a.metric == "rps" and "ab -g" in kinds:
        raise Problem(
            "a file of ab -g tells whole seconds only, too coarse for requests/s: choose --metric mean, p50, p90 or p99"
        )
    store = Store.create(a.out or time.strftime("weir-ab-%Y%m%d-%H%M%S"), meta)
    numbers = {}
    for run, (name, path, kind, load) in enumerate(got, 1):
        numbers[name] = numbers.get(name, 0) + 1
        store.add(row_of(run, numbers[name], name, False, "-", "imported", os.path.getmtime(path), load), load)
        shutil.copyfile(path, store.raw(run, "out"))
        if kind == "ab -g":
            with open(path, "rb") as f, gzip.open(store.raw(run, "tsv.gz"), "wb") as g:
                shutil.copyfileobj(f, g)
    store.save_meta()
    return finish(store)
