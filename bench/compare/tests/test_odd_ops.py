"""The ops of odd_ops on small shapes: Plumbline in each layout, and a framework of numpy, agree with the reference."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from compare.experiments.odd_ops import forward_problems
from compare.measuring.agreement import agreement
from compare.measuring.engines import Variant
from compare.measuring.session import Plan
from compare.problems import catalogue

ONCE = Plan(rounds=1, samples=1, least_s=0, warm_up=0)
SMALL = {"long_rows": (3, 200), "short_rows": (90, 5), "images": (4, 6, 5, 3)}
PROBLEMS = list(forward_problems(SMALL))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: f"{p.op}-{p.name}")
def test_every_odd_op_agrees_with_its_reference(session, problem):
    variants = [Variant("plumbline", mode) for mode in ("best captured nchw", "best nhwc")]
    if problem.op == "index_select":
        variants.append(Variant("fake", "good"))
    for p in catalogue.variants(problem, ("forward", "forward_backward"), ("f32",)):
        for found in session.measure(p, variants, ONCE):
            assert found.refusal is None, str(found.refusal)
            assert found.agreement["agrees"], found.agreement["reason"]


def test_half_of_each_dimension_is_picked_and_the_gradient_is_that_of_x_alone():
    picked = [p for p in PROBLEMS if p.op == "index_select"]
    assert [(p.name, p.inputs["index"].shape, p.inputs["index"].classes) for p in picked] == [
        ("long_rows.dim0", (1,), 3), ("long_rows.dim1", (100,), 200), ("short_rows.dim0", (45,), 90), ("short_rows.dim1", (2,), 5),
        ("images.dim0", (2,), 4), ("images.dim1", (3,), 6), ("images.dim2", (2,), 5), ("images.dim3", (1,), 3)]
    assert all(p.gradients == ("x",) for p in picked)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_a_place_is_right_where_the_largest_element_is_and_nowhere_else(tmp_path, dim):
    (problem,) = [p for p in forward_problems({"t": (30, 40, 50)}) if p.op == "argmax" and p.name == f"t.dim{dim}"]
    x = np.random.default_rng(1).uniform(size=(30, 40, 50)).astype(np.float32)
    at = x.argmax(dim)
    one = tuple(np.argwhere(at > 0)[0])  # of a slice whose first element is another
    first = (*one[:dim], 0, *one[dim:])
    tied = x.copy()
    tied[first] = x.max(dim)[one]
    neighbour, elsewhere, past, before = (at.copy() for _ in range(4))
    neighbour[one], elsewhere[one], past[one], before[one] = at[one] - 1, 0, x.shape[dim], at[one] - x.shape[dim]

    def held(places, read):
        for name, tensors in (("ours", {"y": places}), ("right", {"y": at}), ("inputs", {"x": read})):
            save_file({n: np.ascontiguousarray(t) for n, t in tensors.items()}, tmp_path / name)
        return agreement(tmp_path / "ours", tmp_path / "right", "op", "f32", tmp_path / "inputs", problem.nodes)
    assert held(at, x)["agrees"] and held(at.astype(np.int32), x)["agrees"] and held(elsewhere, tied)["agrees"]
    for wrong in (neighbour, elsewhere, past, before, at + 1, at.astype(np.float32)):
        found = held(wrong, x)
        assert not found["agrees"] and found["error"] > 0 and "of its elements at wrong places" in found["reason"], found
