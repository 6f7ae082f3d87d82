# SPDX-License-Identifier: MIT
"""Is the laboratory honest? Its verdicts on recorded noise, of which the truth is known.

data/noise-*.tsv holds runs of one arm against itself (record_noise.py made them, and its head says how): whatever is
said about a difference among them is false. Whole rounds are drawn from a file, and in each of them chance says which run
is the baseline's, its second instance's and the other arm's; differences are planted by factors. The rounds, looks and
verdicts are those of the command line. Run as a program it prints the counts of all verdicts for docs/lab.md.
"""
import argparse
import glob
import os
from collections import Counter

import numpy as np
import pytest
from conftest import DATA
from lab import analysis, cli, loads, stats, store

EXPERIMENTS = 100
FALSE = 10  # claims in so many experiments that may be false
MARGIN = 0.03
NOISES = sorted(os.path.basename(p)[6:-4] for p in glob.glob(os.path.join(DATA, "noise-*.tsv")))
FIXED, UNTIL = dict(rounds=8, until_decided=False), dict(rounds=None, until_decided=True)
PATIENT = dict(rounds=120, until_decided=True)
# The noise, how, the other arm's factor, and in how many of the experiments it must come out as slower.
PLANTED = [("busy", UNTIL, 0.8, 70), ("quiet", UNTIL, 0.8, 95), ("quiet", PATIENT, 0.95, 80)]


def recorded(name):
    """Requests/s, a row for each round."""
    rounds = {}
    with open(os.path.join(DATA, "noise-%s.tsv" % name), encoding="utf-8") as f:
        lines = [ln.rstrip("\n").split("\t") for ln in f if not ln.startswith("#")]
    for row in lines[1:]:
        rounds.setdefault(row[0], []).append(float(row[lines[0].index("rps")]))
    return np.array(list(rounds.values()))


class Drawn:
    """Stands for the runner: a round is drawn from the recorded ones, and the other arm's run is multiplied."""

    def __init__(self, noise, factor, seed):
        self.noise, self.factor, self.rng = noise, factor, np.random.default_rng(seed)
        self.arms, self.urls = [argparse.Namespace(name="a"), argparse.Namespace(name="b")], ["/"]
        self.store = store.Store(None)
        self.store.save_meta = lambda: None
        self.store.meta = {
            "arms": [{"name": "a"}, {"name": "b"}],
            "urls": self.urls,
            "metric": "rps",
            "margin": MARGIN,
            "seed": seed,
            "regime": "saturation",
        }

    def plan_rounds(self, _rounds):
        pass

    def round(self, number):
        a, again, b = self.rng.permutation(self.noise[self.rng.integers(len(self.noise))])[:3]
        for arm, twin, rps in (("a", 0, a), ("a", 1, again), ("b", 0, b * self.factor)):
            load = loads.Load()
            load.requests, load.seconds, load.rps = 2000, 2000 / rps, rps
            self.store.rows.append(store.row_of(0, number, arm, twin, "/", "saturation", float(number), load))


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    monkeypatch.setattr(stats, "RESAMPLES", 200)  # enough for intervals that are judged by the hundred


def words(noise, how, factor=1.0):
    """How often each verdict was given in EXPERIMENTS."""
    seen = Counter()
    for seed in range(EXPERIMENTS):
        drawn = Drawn(noise, factor, seed)
        cli.run_rounds(argparse.Namespace(**how), drawn, drawn.store)
        seen[analysis.Analysis(drawn.store).main[0].word] += 1
    return seen


@pytest.mark.parametrize("name, how", [("busy", FIXED), ("busy", UNTIL), ("quiet", FIXED), ("quiet", PATIENT)])
def test_the_same_is_not_called_faster_or_slower(name, how):
    seen = words(recorded(name), how)
    assert seen[stats.FASTER] + seen[stats.SLOWER] <= FALSE, seen


# 40 rounds of the busy noise are far from an interval of 3 %: looking often can do no harm there.
@pytest.mark.parametrize("name, how", [(n, FIXED) for n in NOISES] + [(n, UNTIL) for n in NOISES if n != "busy"])
def test_a_difference_as_large_as_the_margin_is_not_called_equivalent(name, how):
    seen = words(recorded(name), how, 0.9999 / (1 + MARGIN))
    assert seen[stats.EQUIVALENT] + seen[stats.FASTER] <= FALSE, seen


@pytest.mark.parametrize("name, how, factor, found", PLANTED)
def test_a_planted_slowdown_is_found_until_decided(name, how, factor, found):
    seen = words(recorded(name), how, factor)
    assert seen[stats.SLOWER] >= found and seen[stats.FASTER] + seen[stats.EQUIVALENT] <= FALSE, seen


if __name__ == "__main__":
    for noise in NOISES:
        for rounds in (FIXED, UNTIL, PATIENT):
            for planted in (1.0, 1 / (1 + MARGIN), 0.95, 0.8):
                print(noise, rounds, "times %.3f:" % planted, dict(words(recorded(noise), rounds, planted)), flush=True)
