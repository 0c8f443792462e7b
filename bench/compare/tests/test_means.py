"""Means over grids with holes: a cell that one system lacks is in no system's mean, and the counts say so."""

import math
import pathlib

import numpy as np
import pandas as pd
import pytest

from compare.records.importers import huggingface
from compare.records.importers.source import Source
from compare.report import imported
from compare.report.means import means
from compare.report.verdict import microseconds

SAMPLES = pathlib.Path(__file__).with_name("samples")
GRID = pd.DataFrame({"a": [1.0, 2.0, 100.0, np.nan], "b": [2.0, 1.0, np.nan, 50.0], "c": [1.0, 4.0, 7.0, 9.0]})


def test_a_cell_that_one_lacks_is_left_out_of_all():
    table = means(GRID)
    assert list(table["cells"]) == [3, 3, 4] and set(table["paired_cells"]) == {2}
    assert table["mean"]["a"] == pytest.approx(103 / 3) and table["paired_mean"]["a"] == 1.5
    assert table["paired_mean"]["c"] == 2.5  # though c has all four


def test_large_cells_rule_the_mean_of_times_and_not_the_geometric_mean():
    """Twice as fast in nine cells and half as fast in one that is a thousand times as large: slower by times, faster by cells."""
    table = means(pd.DataFrame({"old": [1.0] * 9 + [1000.0], "new": [0.5] * 9 + [2000.0]}))
    assert table["paired_mean"]["new"] > 1.9 * table["paired_mean"]["old"]
    assert table["paired_geometric"]["new"] == pytest.approx(2 ** -0.8 * table["paired_geometric"]["old"])


def test_nothing_in_common_is_a_count_of_nothing():
    table = means(pd.DataFrame({"a": [1.0, np.nan], "b": [np.nan, 1.0]}))
    assert list(table["paired_cells"]) == [0, 0]
    assert all(map(math.isnan, [*table["paired_mean"], *table["paired_geometric"]]))


def test_means_of_what_all_columns_of_an_imported_table_have():
    records = [r for f in ("pytorch.csv", "tensorflow.csv") for r in huggingface.records(Source(SAMPLES / f))]
    found = imported.means_of(*imported.table_of(records, microseconds), microseconds)
    paired = (0.044 + 0.061 + 1.7 + 0.039 + 0.055 + 1.4 + 0.35 + 0.8) / 8
    assert found["paired"] == 8 and [c["cells"] for c in found["columns"].values()] == [8, 10]
    assert list(found["columns"].values())[1]["paired_mean"] == microseconds(paired)
    assert imported.means_of(*imported.table_of(records[:1], microseconds), microseconds) is None


def test_where_no_row_is_in_all_columns_only_their_own_means_are_said():
    rows = [("one", {"a": {"seconds": 1.0}}), ("two", {"b": {"seconds": 2.0}, "accuracy": {"seconds": None}})]
    found = imported.means_of(["a", "b", "accuracy"], rows, microseconds)
    assert found == {"paired": 0, "columns": {
        "a": {"mean": "1 s", "paired_mean": "–", "paired_geometric": "–", "cells": 1},
        "b": {"mean": "2 s", "paired_mean": "–", "paired_geometric": "–", "cells": 1}}}
