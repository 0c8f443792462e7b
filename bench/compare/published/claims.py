"""What the documents say of their tables, computed from the tables; and where the tables disagree with themselves."""

from . import CLASSES, IMAGES, WORK


def inconsistent(epochs, images=IMAGES, tolerance=0.005):
    """Rows whose epoch does not have its images: time x throughput is off by more than the tolerance. `expected` is the throughput that
    the time gives."""
    expected = images / epochs["epoch_s"]
    off = epochs["images_per_s"] / expected - 1
    return epochs.assign(expected=expected, off=off)[off.abs() > tolerance]


def shrinking(epochs):
    """Pairs of batches from which the throughput falls though the batch grows: one row each, with the one before."""
    ordered = epochs.sort_values([*WORK, "batch"])
    before = ordered.groupby(WORK)[["batch", "images_per_s"]].shift()
    falls = ordered.assign(before=before["batch"], images_per_s_before=before["images_per_s"])
    return falls[falls["images_per_s"] < falls["images_per_s_before"]].astype({"before": int})


def framework_ratios(epochs, of="PyTorch", to="TensorFlow"):
    """How many times as long an epoch takes, by network: mean, min, max over optimizers and batches, and their count."""
    by = epochs.pivot(index=["network", "optimizer", "batch"], columns="framework", values="epoch_s")
    return (by[of] / by[to]).groupby("network").agg(["mean", "min", "max", "count"])


def faster_share(epochs, first, second, value="epoch_s"):
    """By how much `first` is faster than `second` (optimizers), on average over networks, frameworks and batches: 0.05 is 5 %."""
    by = epochs.pivot(index=["network", "framework", "batch"], columns="optimizer", values=value)
    ratios = by[second] / by[first] if value == "epoch_s" else by[first] / by[second]
    return float(ratios.mean() - 1)


def blank(accuracy):
    """The runs that "do not train": network, framework, optimizer, learning_rate."""
    runs = accuracy.groupby([*WORK, "learning_rate"])["accuracy"]
    return [run for run, values in runs if values.isna().all()]


def near_chance(accuracy, above=0.05):
    """Runs that are printed although they never get so far above guessing: {run: (lowest, highest)}."""
    runs = accuracy.dropna().groupby([*WORK, "learning_rate"])["accuracy"]
    return {run: (float(a.min()), float(a.max())) for run, a in runs if a.max() < 1 / CLASSES[run[0]] + above}


def only_in(accuracy, framework, other):
    """(network, optimizer, learning rate) that train in one framework and are blank in the other."""
    blanks = set(blank(accuracy))
    runs = accuracy[["network", "optimizer", "learning_rate"]].drop_duplicates().itertuples(index=False, name=None)
    return [r for r in runs if (r[0], other, *r[1:]) in blanks and (r[0], framework, *r[1:]) not in blanks]
