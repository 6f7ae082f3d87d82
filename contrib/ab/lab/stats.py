# SPDX-License-Identifier: MIT
"""Estimates, tests and verdicts. Pure functions of numbers and a seed: no files, no clock, no state.

The unit is the run, never the request. A comparison is a list of paired log-ratios, one for each round, oriented so
that a positive one says "the second arm is better". From it come

    the Hodges-Lehmann estimate    the median of all pairwise means: as robust as a median, nearly as sharp as a mean
    its interval                   by bootstrap over rounds, with the percentiles widened for few rounds
    a p-value                      Wilcoxon's signed-rank test, exact, ties and zeros included
    a verdict                      one of WORDS, see verdict()

What is imported from other tools has no rounds: two unpaired samples are compared by the shift and by Mann-Whitney.
"""
import math
from collections import namedtuple

import numpy as np  # and SciPy only where it is needed: it takes a while to import

MIN_ROUNDS = 6
ALPHA = 0.05
RESAMPLES = 2000

# A log-ratio, its 95 % interval, its p-value (adjusted ones are put in later), and its interval at the level of one look.
Effect = namedtuple("Effect", "n est lo hi p look", defaults=[None])
Verdict = namedtuple("Verdict", "word more")  # more: rounds that would about decide it; None where it is decided

FASTER, SLOWER, EQUIVALENT, INCONCLUSIVE, REFUSED = "faster", "slower", "equivalent", "inconclusive", "refused"


def log_ratios(base, other, higher_is_better=True):
    """Of pairs: positive where `other` is better."""
    d = np.log(np.asarray(other, float) / np.asarray(base, float))
    return d if higher_is_better else -d


def walsh(d):
    """The means of all pairs, each value with itself included; rows are samples if d has two dimensions."""
    d = np.atleast_2d(np.asarray(d, float))
    i, j = np.triu_indices(d.shape[1])
    return (d.take(i, axis=1) + d.take(j, axis=1)) / 2


def hodges_lehmann(d):
    return float(np.median(walsh(d)))


def midranks(values):
    """Ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def signed_rank_p(d):
    """Wilcoxon's signed-rank test, two-sided, exact for midranks: zeros are ranked, then left out (Pratt)."""
    d = np.asarray(d, float)
    ranks = midranks(np.abs(d))[d != 0]
    if len(ranks) == 0:
        return 1.0
    doubled = np.rint(2 * ranks).astype(int)  # midranks are halves
    counts = np.zeros(doubled.sum() + 1)
    counts[0] = 1
    for r in doubled:
        counts[r:] = counts[r:] + counts[:-r]
    w = int(np.rint(2 * ranks[d[d != 0] > 0].sum()))
    tail = min(counts[: w + 1].sum(), counts[w:].sum())
    return float(min(1.0, 2 * tail / counts.sum()))


def smallest_p(n):
    """The least two-sided p that n pairs can give."""
    return min(1.0, 2.0 ** (1 - n))


def rounds_needed(comparisons=1, alpha=ALPHA):
    """The fewest rounds with which all of so many comparisons can become significant after Holm's adjustment."""
    return max(MIN_ROUNDS, math.floor(1 - math.log2(alpha / max(1, comparisons))) + 1)


def wide_percentile(n, level):
    """The tail of a percentile interval that makes up for the bootstrap's narrowness with few values."""
    from scipy import special

    return float(special.ndtr(-math.sqrt(n / (n - 1)) * special.stdtrit(n - 1, (1 + level) / 2)))


def bootstrap_interval(d, seed, level=0.95, resamples=None):
    """Of the Hodges-Lehmann estimate, resampling rounds."""
    return bootstrap_intervals(d, seed, [level], resamples)[0]


def bootstrap_intervals(d, seed, levels, resamples=None):
    """One for each level, of the same resamples: a higher level holds a lower one."""
    d = np.asarray(d, float)
    n = len(d)
    if n < 2:
        return [(-math.inf, math.inf)] * len(levels)
    picks = np.random.default_rng(seed).integers(n, size=(resamples or RESAMPLES, n))
    return intervals(np.median(walsh(d[picks]), axis=1), n, levels)


def intervals(estimates, n, levels):
    tails = [wide_percentile(n, level) for level in levels]
    return [tuple(map(float, np.quantile(estimates, [tail, 1 - tail]))) for tail in tails]


def paired_effect(d, seed, alpha=ALPHA):
    if len(d) == 0:
        return Effect(0, math.nan, -math.inf, math.inf, 1.0)
    (lo, hi), look = bootstrap_intervals(d, seed, [0.95, 1 - alpha])
    return Effect(len(d), hodges_lehmann(d), lo, hi, signed_rank_p(d), look)


def unpaired_effect(base, other, higher_is_better=True, seed=0, alpha=ALPHA):
    """Two samples of runs that share no rounds: the median of all pairwise log-ratios, Mann-Whitney's p."""
    from scipy.stats import mannwhitneyu

    a, b = np.log(np.asarray(base, float)), np.log(np.asarray(other, float))
    if not higher_is_better:
        a, b = -a, -b
    n = min(len(a), len(b))
    if n == 0:
        return Effect(0, math.nan, -math.inf, math.inf, 1.0)
    est = float(np.median(b[:, None] - a[None, :]))
    if n < 2:
        return Effect(n, est, -math.inf, math.inf, 1.0)
    rng = np.random.default_rng(seed)
    ra = a[rng.integers(len(a), size=(RESAMPLES, len(a)))]
    rb = b[rng.integers(len(b), size=(RESAMPLES, len(b)))]
    shifts = np.median((rb[:, :, None] - ra[:, None, :]).reshape(RESAMPLES, -1), axis=1)
    (lo, hi), look = intervals(shifts, n, [0.95, 1 - alpha])
    return Effect(n, est, lo, hi, float(mannwhitneyu(a, b).pvalue), look)


def holm(ps):
    """Adjusted p-values: each times the number of those not smaller, never below its predecessor's."""
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    out, high = [0.0] * len(ps), 0.0
    for k, i in enumerate(order):
        high = max(high, min(1.0, (len(ps) - k) * ps[i]))
        out[i] = high
    return out


def noise_floor(d):
    """What two identical arms came out as differing by here: nothing smaller is claimed. The far end of its interval
    would be too much: a verdict's own interval and p-value hold the same chance already, and on recorded noise half of
    the true differences were lost to counting it twice (docs/lab.md has the figures)."""
    return abs(hodges_lehmann(d))


def rounds_missing(effect, floor, margin, alpha=ALPHA, comparisons=1):
    """About how many more rounds would decide it, if they come out like those so far; widths shrink with sqrt(n), and
    with too few rounds none of so many comparisons can become significant."""
    if effect.n < 2:
        return None
    half, size = (effect.hi - effect.lo) / 2, abs(effect.est)
    lo, hi = effect.look or (effect.lo, effect.hi)
    ways = []
    if size > 0:
        ways.append(effect.n * (max(half, floor) / size) ** 2)
    if size < margin:
        ways.append(effect.n * ((hi - lo) / 2 / (margin - size)) ** 2)
    if not ways or not math.isfinite(min(ways)):
        return None
    return max(1, math.ceil(min(ways)) - effect.n, rounds_needed(comparisons, alpha) - effect.n)


def verdict(effect, p_adjusted, floor, margin, alpha=ALPHA, comparisons=1):
    """One of WORDS.

    equivalent     the interval lies within the margin: a difference, if there is one, is too small to matter; where there
                   are several looks it is the interval at the level of one look, or looking often would make it true
    faster/slower  significant after adjustment, the interval on one side of zero, and larger than the noise floor
    inconclusive   neither; also whenever there were fewer than MIN_ROUNDS rounds
    """
    if effect.n >= MIN_ROUNDS:
        lo, hi = effect.look or (effect.lo, effect.hi)
        if -margin < lo and hi < margin:
            return Verdict(EQUIVALENT, None)
        if p_adjusted < alpha and abs(effect.est) > floor and (effect.lo > 0 or effect.hi < 0):
            return Verdict(FASTER if effect.est > 0 else SLOWER, None)
    more = rounds_missing(effect, floor, margin, alpha, comparisons)
    if effect.n < MIN_ROUNDS:
        more = max(rounds_needed(comparisons, alpha) - effect.n, more or 0)
    return Verdict(INCONCLUSIVE, more)


def looks(most):
    """After how many rounds --until-decided may look. Each look costs its share of alpha, so there are few, and the
    first one comes when its share can be reached at all."""
    out, n = [], 8
    while n < most:
        out.append(n)
        n = math.ceil(n * 1.5)
    return out + [most]


def alpha_at_look(n_looks, alpha=ALPHA):
    return alpha / n_looks


def quantile_sorted(values, q):
    """Of sorted values, by the nearest rank: the value that a share q does not exceed."""
    if len(values) == 0:
        return math.nan
    return float(values[min(len(values) - 1, max(0, math.ceil(q * len(values)) - 1))])
