"""Intervals and verdicts, on samples whose answer is known."""

import numpy as np
import pytest

from compare.measuring.statistics import MOST_SPREAD, Ratio, geometric_mean, median_interval, paired_spread, ratio_of, spread


def rounds(median, noise, seed, count=9):
    rng = np.random.default_rng(seed)
    return [list(median * rng.lognormal(0, noise, 3)) for _ in range(count)]


def test_the_interval_of_a_median_covers_it():
    rng = np.random.default_rng(1)
    hits = sum(low <= 1 <= high for low, high in (median_interval(rng.lognormal(0, 0.2, 15)) for _ in range(1000)))
    assert hits >= 940


def test_an_interval_of_few_samples_is_their_range():
    assert median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)


@pytest.mark.parametrize("factor, verdict", [(1.5, "faster"), (0.7, "slower"), (1.0, "same")])
def test_a_clear_ratio_has_its_verdict(factor, verdict):
    ratio = ratio_of(rounds(1, 0.01, 1), rounds(factor, 0.01, 2))
    assert ratio.verdict == verdict
    assert ratio.low <= factor * 1.02 and ratio.high >= factor * 0.98


def test_noise_is_no_verdict():
    assert ratio_of(rounds(1, 0.6, 1), rounds(1.05, 0.6, 2)).verdict == "ambiguous"


def test_two_rounds_are_too_few():
    assert ratio_of(rounds(1, 0, 1, 2), rounds(3, 0, 1, 2)).verdict == "ambiguous"


@pytest.mark.parametrize("count", [3, 4, 5, 6, 7, 8, 9])
def test_the_interval_of_a_ratio_covers_it_however_few_the_rounds(count):
    ratios = [ratio_of(rounds(1, 0.05, 2 * seed, count), rounds(1.2, 0.05, 2 * seed + 1, count)) for seed in range(300)]
    assert sum(r.low <= 1.2 <= r.high for r in ratios) >= 0.92 * len(ratios)


@pytest.mark.parametrize("count", [6, 7, 8, 9])
def test_so_it_does_where_one_side_has_all_the_noise(count):
    steady = [[1.0]] * count
    ratios = [ratio_of(steady, [[s] for s in 1.2 * np.random.default_rng(seed).lognormal(0, 0.05, count)]) for seed in range(400)]
    assert sum(r.low <= 1.2 <= r.high for r in ratios) >= 0.92 * len(ratios)


def test_a_disturbance_of_both_sides_cancels():
    """Rounds are drawn together: where both sides were slow, the ratio is not."""
    slow = np.array([1, 1, 1, 3, 1, 1, 3, 1, 1])
    first = [[s] for s in slow]
    assert ratio_of(first, [[1.2 * s] for s in slow]) == Ratio(pytest.approx(1.2), pytest.approx(1.2), pytest.approx(1.2))


def test_a_ratio_of_fewer_rounds_than_were_trusted_is_none_if_those_are_too_far_apart():
    """A slow side has three rounds; the other's first three are not what all of its rounds are."""
    ours, theirs = [[0.304], [0.172], [0.162], [0.160], [0.168]], [[0.65], [0.66], [0.64]]
    ratio = ratio_of(ours, theirs)
    assert spread([s for r in ours for s in r]) < MOST_SPREAD < paired_spread(ours, theirs)
    assert ratio.verdict == "ambiguous" and (ratio.low, ratio.high) == (0.0, float("inf"))
    assert ratio_of(theirs, ours).verdict == "ambiguous" and ratio_of([[0.17], *ours[1:]], theirs).verdict == "faster"


def test_means():
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4)
    assert spread([1.0, 1.0, 1.0, 1.0]) == 0
