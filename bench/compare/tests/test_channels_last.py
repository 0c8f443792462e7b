"""Tensors in the order of files and in that of frameworks whose images are NHWC: there and back is what it was."""

import numpy as np
import pytest

from compare.experiments.ops import is_image
from compare.problems import catalogue
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


def problem_of(tmp_path, line):
    (tmp_path / "shapes.txt").write_text(line + "\n")
    (problem,) = catalogue.forward_problems(catalogue.read_table(tmp_path / "shapes.txt"))
    return problem


def test_the_matrices_of_a_product_are_no_images(tmp_path):
    problem = problem_of(tmp_path, "matmul m2 2x3x5x7 2x3x9x7 transpose_b=1")
    found, told = roles(problem.to_worker()), np.arange(210.0).reshape(2, 3, 5, 7)
    assert not is_image(problem)
    for name in ("a", "b", "dy", problem.output):
        np.testing.assert_array_equal(there(name, told, found), told)
        np.testing.assert_array_equal(back(name, told, found), told)
    assert is_image(problem_of(tmp_path, "conv2d c 2x3x8x8 4x3x3x3")) and not is_image(problem_of(tmp_path, "linear l 4x8 3x8"))
