"""Medians and ratios, and how sure they are. Ratios are of rounds in turn, never of two runs or two machines."""

import dataclasses

import numpy as np
from scipy import stats

SAME = 0.03  # ratios this close to 1 are no difference that anybody should act on
MOST_SPREAD = 0.2  # of the quartiles; beyond, a median is not trusted
RESAMPLES, CONFIDENCE = 2000, 0.95
FEW = 6  # rounds, below which those that are drawn anew cannot tell 95 %: of three, the range is an interval of 75 %


def median_interval(samples):
    """The 95 % confidence interval of the median, by the order of the samples: distribution-free. Of fewer than six, their range, which is less."""
    x = np.sort(np.asarray(samples, float))
    n = len(x)
    low = int(stats.binom.ppf((1 - CONFIDENCE) / 2, n, 0.5))
    return float(x[max(low - 1, 0)]), float(x[min(n - low, n - 1)])


def spread(samples):
    """The distance of the quartiles, as a share of the median."""
    q1, median, q3 = np.percentile(samples, [25, 50, 75])
    return float((q3 - q1) / median)


@dataclasses.dataclass(frozen=True)
class Ratio:
    """How many times as long the second takes as the first, with its confidence interval."""

    value: float
    low: float
    high: float

    @property
    def verdict(self):
        """Of the first: "faster", "slower", "same", or "ambiguous" where the samples do not tell."""
        if self.low > 1 + SAME:
            return "faster"
        if self.high < 1 - SAME:
            return "slower"
        return "same" if self.low >= 1 - 2 * SAME and self.high <= 1 + 2 * SAME else "ambiguous"


def ratio_of(first, second, seed=1):
    """The ratio of medians of two lists of rounds (lists of samples); rounds are drawn together, as they were run in turn. Of few
    rounds, the interval is at least Student's of the logarithms of their ratios."""
    rounds = min(len(first), len(second))
    a, b = np.array([np.median(r) for r in first[:rounds]]), np.array([np.median(r) for r in second[:rounds]])
    value = float(np.median(b) / np.median(a))
    if rounds < 3:
        return Ratio(value, 0.0, float("inf"))
    drawn = np.random.default_rng(seed).integers(0, rounds, (RESAMPLES, rounds))
    ratios = np.median(b[drawn], axis=1) / np.median(a[drawn], axis=1)
    low, high = np.percentile(ratios, [100 * (1 - CONFIDENCE) / 2, 100 * (1 + CONFIDENCE) / 2])
    if rounds < FEW:
        logs = np.log(b / a)
        half = stats.t.ppf((1 + CONFIDENCE) / 2, rounds - 1) * logs.std(ddof=1) / np.sqrt(rounds)
        low, high = min(low, np.exp(logs.mean() - half)), max(high, np.exp(logs.mean() + half))
    return Ratio(value, float(low), float(high))


def geometric_mean(ratios):
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else float("nan")
