"""Means over a grid of cells some of which are N/A: rows are cells (model, batch, length), columns are systems, NaN is N/A.

A mean over the cells that a system happens to have says nothing beside another system's mean: cells are left out of all systems where one
has none (paired exclusion), and the count stands beside every mean. Large cells weigh most in a mean of times; in a geometric mean all
weigh the same.
"""

import pandas as pd

from ..measuring.statistics import geometric_mean


def means(grid):
    """By system: how many cells it has, and their mean; how many all systems have, and both means over those."""
    both = grid.dropna()
    return pd.DataFrame({"cells": grid.count(), "mean": grid.mean(), "paired_cells": len(both), "paired_mean": both.mean(),
                         "paired_geometric": both.apply(geometric_mean)})
