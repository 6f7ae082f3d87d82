# SPDX-License-Identifier: MIT
"""Estimates and tests against values worked out by hand, by enumeration, or by SciPy."""
import itertools
import math

import numpy as np
import pytest
from lab import stats
from scipy import stats as sp

DIFFERENCES = [0.10, 0.20, -0.05, 0.30, 0.15, 0.22, 0.01]


def test_hodges_lehmann_is_the_median_of_all_pairwise_means():
    assert stats.hodges_lehmann([1, 5]) == 3
    assert stats.hodges_lehmann([1, 2, 9]) == pytest.approx(3.5)  # 1 1.5 2 5 5.5 9
    means = [(x + y) / 2 for i, x in enumerate(DIFFERENCES) for y in DIFFERENCES[i:]]
    assert stats.hodges_lehmann(DIFFERENCES) == pytest.approx(np.median(means))


def test_one_wild_round_hardly_moves_the_estimate():
    calm = stats.hodges_lehmann([0.01] * 9)
    assert stats.hodges_lehmann([0.01] * 8 + [5.0]) == pytest.approx(calm)


@pytest.mark.parametrize("n", [6, 7, 12, 25])
def test_signed_rank_p_is_scipys_exact_one(n):
    d = np.random.default_rng(n).normal(0.3, 1, n)
    assert stats.signed_rank_p(d) == pytest.approx(sp.wilcoxon(d, method="exact").pvalue)


def test_signed_rank_p_of_ties_and_zeros_by_enumeration():
    d = np.array([1, 1, 2, -1, 0, 3, 2, -2])
    ranks = sp.rankdata(np.abs(d))[d != 0]
    seen = ranks[d[d != 0] > 0].sum()
    sums = [sum(r for r, s in zip(ranks, signs) if s) for signs in itertools.product((0, 1), repeat=len(ranks))]
    tail = min(np.mean([s <= seen for s in sums]), np.mean([s >= seen for s in sums]))
    assert stats.signed_rank_p(d) == pytest.approx(min(1, 2 * tail))
    assert stats.signed_rank_p([0, 0, 0]) == 1


def test_six_rounds_of_one_sign_are_the_fewest_that_are_significant():
    assert stats.signed_rank_p([1, 2, 3, 4, 5, 6]) == stats.smallest_p(6) == 0.03125
    assert stats.smallest_p(5) > stats.ALPHA
    assert [stats.rounds_needed(m) for m in (1, 2, 3, 4, 6, 10)] == [6, 7, 7, 8, 8, 9]
    for m in (1, 2, 3, 4, 6, 10):
        assert m * stats.smallest_p(stats.rounds_needed(m)) < stats.ALPHA


def test_holm():
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert stats.holm([0.5, 0.6]) == [1.0, 1.0]
    assert stats.holm([]) == []


def test_the_interval_is_the_same_for_the_same_seed_and_holds_the_estimate():
    a, b = stats.bootstrap_interval(DIFFERENCES, 7), stats.bootstrap_interval(DIFFERENCES, 7)
    assert a == b != stats.bootstrap_interval(DIFFERENCES, 8)
    assert a[0] < stats.hodges_lehmann(DIFFERENCES) < a[1]
    assert stats.bootstrap_interval([0.1], 1) == (-math.inf, math.inf)


@pytest.mark.parametrize("n", [6, 10])
def test_the_interval_covers_the_truth_about_as_often_as_it_says(n):
    rng, hits = np.random.default_rng(n), 0
    for i in range(200):
        lo, hi = stats.bootstrap_interval(rng.normal(0.05, 0.03, n), i, resamples=800)
        hits += lo <= 0.05 <= hi
    assert hits >= 180  # 95 % of 200 is 190; the plain percentile interval has about 170 with six rounds


def test_log_ratios_point_to_the_better_one():
    assert stats.log_ratios([100], [200])[0] == pytest.approx(math.log(2))
    assert stats.log_ratios([10], [5], higher_is_better=False)[0] == pytest.approx(math.log(2))


def test_the_noise_floor_is_what_the_same_came_out_as_differing_by():
    assert stats.noise_floor([-0.05, -0.05, -0.06, 0.4]) == pytest.approx(0.05, abs=0.01)


def effect(n, est, half, p=0.01):
    return stats.Effect(n, est, est - half, est + half, p)


@pytest.mark.parametrize(
    "e, p, floor, word",
    [
        (effect(8, 0.10, 0.02), 0.01, 0.03, "faster"),
        (effect(8, -0.10, 0.02), 0.01, 0.03, "slower"),
        (effect(8, 0.10, 0.02), 0.06, 0.03, "inconclusive"),  # not significant after adjustment
        (effect(8, 0.10, 0.02), 0.01, 0.12, "inconclusive"),  # smaller than the noise floor
        (effect(8, 0.10, 0.12), 0.01, 0.03, "inconclusive"),  # the interval holds zero
        (effect(5, 0.10, 0.02), 0.01, 0.03, "inconclusive"),  # too few rounds
        (effect(8, 0.005, 0.01), 0.50, 0.01, "equivalent"),
        (effect(8, 0.015, 0.01), 0.01, 0.001, "equivalent"),  # a real difference that does not matter
        (effect(8, 0.025, 0.01), 0.50, 0.01, "inconclusive"),  # the interval leaves the margin
    ],
)
def test_verdicts(e, p, floor, word):
    assert stats.verdict(e, p, floor, 0.03).word == word


def test_inconclusive_says_about_how_many_rounds_are_missing():
    v = stats.verdict(effect(8, 0.10, 0.20, 0.3), 0.3, 0.0, 0.03)
    assert v.more == 24  # four times the rounds halve the interval
    assert stats.verdict(effect(8, 0.0, 0.06, 0.9), 0.9, 0.0, 0.03).more == 24
    assert stats.verdict(effect(6, 0.5, 0.1, 0.03), 0.125, 0.0, 0.03, comparisons=4).more == 2
    assert stats.verdict(effect(2, 0.5, 0.1, 0.5), 0.5, 0.0, 0.03).more == 4
    assert stats.verdict(effect(1, 0.5, math.inf, 1), 1, 0.0, 0.03, comparisons=4).more == 7
    assert stats.verdict(effect(8, 0.1, 0.01), 0.001, 0.0, 0.03).more is None


def test_each_look_of_until_decided_costs_its_share():
    at = stats.looks(40)
    assert at == [8, 12, 18, 27, 40]
    assert stats.alpha_at_look(len(at)) * len(at) == pytest.approx(stats.ALPHA)
    assert stats.smallest_p(at[0]) < stats.alpha_at_look(len(at))  # the first look is not in vain


def test_unpaired_samples():
    e = stats.unpaired_effect([100, 101, 99, 100, 102, 98], [200, 202, 199, 198, 201, 203])
    assert e.est == pytest.approx(math.log(2), abs=0.02) and e.lo > 0.6 and e.p < 0.01
    assert stats.unpaired_effect([100], [200])[2:5] == (-math.inf, math.inf, 1.0)


def test_quantiles_by_nearest_rank():
    v = [1, 2, 3, 4]
    assert [stats.quantile_sorted(v, q) for q in (0, 0.25, 0.5, 0.51, 1)] == [1, 1, 2, 3, 4]
