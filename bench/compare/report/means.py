"""Means over a grid of cells some of which are N/A: rows are cells (model, batch, length), columns are systems, NaN is N/A.

A mean over the cells that a system happens to have says nothing beside another system's mean: cells are left out of all systems where one
has none (paired exclusion), and the count stands beside every mean. Large cells weigh most in a mean of times; the geometric mean of
ratios weighs all the same.
"""

import pandas as pd

from ..measuring.statistics import geometric_mean
from . import verdict


def grid_of(records, label=verdict.label):
    """The grid of records: a row a subject, a column an engine; N/A where it was not measured."""
    cells = {}
    for r in records:
        s = r["subject"]
        at = (s["name"], s["problem"], s["direction"], s.get("batch") or 0)
        cells.setdefault(label(r), {})[at] = r.get("median_s") if r["status"] == "measured" else None
    return pd.DataFrame({system: pd.Series(column, dtype=float) for system, column in cells.items()})


def paired(grid):
    """The cells that every system has."""
    return grid.dropna()


def means(grid):
    """By system: how many cells it has, and their mean; how many all systems have, and the mean over those."""
    both = paired(grid)
    return pd.DataFrame({"cells": grid.count(), "mean": grid.mean(), "paired_cells": len(both), "paired_mean": both.mean()})


def ratio_means(grid, of, to):
    """How many times as long `of` takes as `to`, over the cells that both have: their count, the ratio of sums (what two means of times
    come to), and the arithmetic and geometric mean of the cells' ratios."""
    both = paired(grid[[of, to]])
    ratios = both[of] / both[to]
    of_sums = both[of].sum() / both[to].sum() if len(both) else float("nan")
    return {"cells": len(both), "left_out": len(grid) - len(both), "of_sums": float(of_sums), "arithmetic": float(ratios.mean()),
            "geometric": geometric_mean(ratios)}
