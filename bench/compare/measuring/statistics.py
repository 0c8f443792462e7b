"""Medians and ratios, and how sure they are. Ratios are of rounds in turn, never of two machines; those of two runs are of `diff` alone,
and are told by what they are called."""

import dataclasses
from statistics import median

import numpy as np
from scipy import stats

SAME = 0.03  # ratios this close to 1 are no difference that anybody should act on
MOST_SPREAD = 0.2  # of the quartiles; beyond, a median is not trusted
RESAMPLES, CONFIDENCE = 2000, 0.95
SEED = 1  # of what is drawn: the same records give the same intervals
LEAST = 3  # rounds, that have an interval
FEW = 9  # rounds, below which those that are drawn anew cannot tell 95 %: of three, the range is an interval of 75 %, of seven what they give is one of 87 %


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


def paired(first, second):
    """The rounds that both ran, in turn: a side that is slow ends before the others, and misses none until then."""
    rounds = min(len(first), len(second))
    return first[:rounds], second[:rounds]


def paired_spread(first, second):
    """How far the quartiles of either side are apart in the rounds that both ran, where those are not all that it was trusted by; else 0."""
    parts = [[s for r in part for s in r] for part, whole in zip(paired(first, second), (first, second)) if len(part) < len(whole)]
    return max((spread(samples) for samples in parts if len(samples) > 2), default=0.0)


def ratio_of(first, second):
    """The ratio of medians of two lists of rounds (lists of samples), of those that both ran; rounds are drawn together, as they were run
    in turn. Of few rounds, the interval is at least Student's of the logarithms of their ratios, and of rounds that are not trusted none."""
    a, b = map(medians, paired(first, second))
    rounds = len(a)
    if paired_spread(first, second) > MOST_SPREAD:
        return Ratio(float(np.median(b) / np.median(a)), 0.0, float("inf"))
    drawn = np.random.default_rng(SEED).integers(0, rounds, (RESAMPLES, rounds))
    logs = np.log(b / a)
    return interval_of(a, b, drawn, drawn, logs.mean(), logs.std(ddof=1) / np.sqrt(rounds) if rounds > 1 else 0.0, rounds - 1)


def ratio_of_runs(first, second):
    """The same of rounds of two runs, which were not in turn: each run's are drawn by themselves, and of few, the interval is at least Welch's."""
    a, b = medians(first), medians(second)
    rng = np.random.default_rng(SEED)
    drawn = [rng.integers(0, len(x), (RESAMPLES, len(x))) for x in (a, b)]
    return interval_of(a, b, *drawn, *welch(a, b))


def medians(rounds):
    return np.array([median(r) for r in rounds])


def interval_of(a, b, drawn_a, drawn_b, log, error, freedom):
    """The Ratio of medians of rounds that were drawn, and of the logarithm's mean with its standard error and degrees of freedom."""
    value, rounds = float(np.median(b) / np.median(a)), min(len(a), len(b))
    if rounds < LEAST:
        return Ratio(value, 0.0, float("inf"))
    ratios = np.median(b[drawn_b], axis=1) / np.median(a[drawn_a], axis=1)
    low, high = np.percentile(ratios, [100 * (1 - CONFIDENCE) / 2, 100 * (1 + CONFIDENCE) / 2])
    if rounds < FEW:
        half = stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * error
        low, high = min(low, np.exp(log - half)), max(high, np.exp(log + half))
    return Ratio(value, float(low), float(high))


def welch(a, b):
    """(mean, standard error, degrees of freedom) of the logarithm of the ratio of two runs' rounds."""
    logs = np.log(a), np.log(b)
    log, rounds = logs[1].mean() - logs[0].mean(), min(len(a), len(b))
    if rounds < 2:
        return log, 0.0, 1
    parts = [x.var(ddof=1) / len(x) for x in logs]
    freedom = sum(parts) ** 2 / sum(p ** 2 / (len(x) - 1) for p, x in zip(parts, logs)) if sum(parts) > 0 else rounds - 1
    return log, np.sqrt(sum(parts)), freedom


def beyond(first, second):
    """How probable two runs' rounds are at the most if the second takes no longer than SAME beyond the first: Welch's test of their logarithms."""
    if min(len(first), len(second)) < LEAST:
        return 1.0
    log, error, freedom = welch(medians(first), medians(second))
    over = log - np.log(1 + SAME)
    return float(stats.t.sf(over / error, freedom)) if error > 0 else float(over <= 0)


def among_many(probabilities):
    """Which of them are too improbable for chance, however many were asked (Benjamini and Hochberg): if all are of chance, any is one time in
    forty, so that "slower" and "faster" together are one in twenty; of those that are, as many are not of what it says."""
    p, count = np.asarray(probabilities), len(probabilities)
    order = np.argsort(p)
    kept = np.flatnonzero(p[order] <= (1 - CONFIDENCE) / 2 * np.arange(1, count + 1) / count)
    found = np.zeros(count, bool)
    found[order[:kept[-1] + 1 if len(kept) else 0]] = True
    return found.tolist()


def geometric_mean(ratios):
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else float("nan")
