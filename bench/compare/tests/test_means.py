"""Means over grids with holes: a cell that one system lacks is in no system's mean, and the counts say so."""

import math
import pathlib

import numpy as np
import pandas as pd
import pytest

from compare.records.importers import huggingface
from compare.records.importers.source import Source
from compare.report import means

SAMPLES = pathlib.Path(__file__).with_name("samples")
GRID = pd.DataFrame({"a": [1.0, 2.0, 100.0, np.nan], "b": [2.0, 1.0, np.nan, 50.0], "c": [1.0, 4.0, 7.0, 9.0]})


def test_a_cell_that_one_lacks_is_left_out_of_all():
    table = means.means(GRID)
    assert list(table["cells"]) == [3, 3, 4] and set(table["paired_cells"]) == {2}
    assert table["mean"]["a"] == pytest.approx(103 / 3) and table["paired_mean"]["a"] == 1.5
    assert table["paired_mean"]["c"] == 2.5  # though c has all four


def test_the_pair_alone_decides_of_a_ratio():
    assert means.ratio_means(GRID, "c", "a") == {
        "cells": 3, "left_out": 1, "of_sums": pytest.approx(12 / 103), "arithmetic": pytest.approx((1 + 2 + 0.07) / 3),
        "geometric": pytest.approx(0.14 ** (1 / 3))}


def test_large_cells_rule_the_mean_of_times_and_not_the_geometric_mean():
    """Twice as fast in nine cells and half as fast in one that is a thousand times as large: slower by times, faster by cells."""
    grid = pd.DataFrame({"old": [1.0] * 9 + [1000.0], "new": [0.5] * 9 + [2000.0]})
    found = means.ratio_means(grid, "new", "old")
    assert found["of_sums"] > 1.9 and found["geometric"] == pytest.approx(2 ** -0.8) and found["arithmetic"] == pytest.approx(0.65)
    inverse = means.ratio_means(grid, "old", "new")
    assert found["geometric"] * inverse["geometric"] == pytest.approx(1) != found["arithmetic"] * inverse["arithmetic"]


def test_nothing_in_common_is_a_count_of_nothing():
    grid = pd.DataFrame({"a": [1.0, np.nan], "b": [np.nan, 1.0]})
    assert list(means.means(grid)["paired_cells"]) == [0, 0]
    found = means.ratio_means(grid, "a", "b")
    assert found["cells"] == 0 and found["left_out"] == 2 and all(math.isnan(found[k]) for k in ("of_sums", "arithmetic", "geometric"))


def test_the_grid_of_two_imported_tables():
    records = [r for f in ("pytorch.csv", "tensorflow.csv") for r in huggingface.records(Source(SAMPLES / f))]
    grid = means.grid_of(records)
    assert grid.shape == (12, 2) and list(grid.count()) == [8, 10]
    table = means.means(grid)
    assert set(table["paired_cells"]) == {8}
    assert table["paired_mean"]["tensorflow"] == pytest.approx((0.044 + 0.061 + 1.7 + 0.039 + 0.055 + 1.4 + 0.35 + 0.8) / 8)
    assert means.ratio_means(grid, "pytorch", "tensorflow")["cells"] == 8
