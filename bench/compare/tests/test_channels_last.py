"""Tensors in the order of files and in that of frameworks whose images are NHWC: there and back is what it was."""

import numpy as np
import pytest

from compare.workers.channels_last import AXIS, back, roles, there


def reduction(dims):
    return {"nodes": [{"op": "max", "inputs": {"x": "x"}, "output": "y", "attributes": {"dims": dims}}], "output": "y"}


@pytest.mark.parametrize("dims", [[0], [1], [2], [3], [-1], [2, 3], [0, 2, 3], [0, 1, 2, 3], []])
def test_a_reduced_image_has_its_kept_axes_in_the_order_of_files(dims):
    x = np.random.default_rng(1).random((2, 3, 4, 5))
    found, physical = roles(reduction(dims)), there("x", x, {})
    y = physical.max(tuple(AXIS[d % 4] for d in dims) or None)
    expected = x.max(tuple(dims) or None)
    np.testing.assert_array_equal(back("y", np.asarray(y), found), expected)
    np.testing.assert_array_equal(there("dy", expected, found), y)


def test_a_reduced_matrix_stays_as_it_is():
    found, y = roles(reduction([1])), np.arange(3.0)
    assert back("y", y, found) is y and (there("dy", y, found) == y).all()
