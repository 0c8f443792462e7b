"""The ops of odd_ops on small shapes: Plumbline in each layout, and a framework of numpy, agree with the reference."""

import pytest

from compare.experiments.odd_ops import forward_problems
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
