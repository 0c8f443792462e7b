"""The arithmetic and the bytes of a piece of work are what it must compute and move, and its id does not follow when they are put right."""

import pytest

from compare.experiments import odd_ops, synchronisation
from compare.problems import catalogue
from compare.problems.inputs import input_problem
from compare.problems.networks import built, network_problem


@pytest.mark.parametrize("name, first", [("alexnet", 2 * 192 * 15 * 15 * 27), ("vgg16", 2 * 64 * 30 * 30 * 27), ("resnet20", 2 * 16 * 32 * 32 * 27),
                                         ("resnet50", 2 * 64 * 112 * 112 * 147)])
def test_a_training_step_takes_no_gradient_of_the_images(name, first):
    forward = network_problem(name, 2, "forward").flops
    assert forward == 2 * built(name).flops and network_problem(name, 2).flops == 3 * forward - 2 * first


# Of each op on (4, 6, 5, 3) along its second dimension: numbers of the work's dtype and of i64 that it reads and writes, and those of its gradient.
X, HALF, PICKED, FLAT = 360, 180, 3, 60
MOVED = {"slice": (2 * HALF, 0, HALF + X, 0), "index_select": (2 * HALF, PICKED, HALF + X, PICKED), "argmax": (X, FLAT, None, None),
         "max": (X + FLAT, 0, X + FLAT, 0), "concat": (4 * X, 0, 4 * X, 0)}


@pytest.mark.parametrize("op", MOVED)
@pytest.mark.parametrize("dtype, size", [("f32", 4), ("bf16", 2)])
def test_what_is_not_read_does_not_count_and_a_whole_number_has_eight_bytes(op, dtype, size):
    (problem,) = [p for p in odd_ops.forward_problems({"images": (4, 6, 5, 3)}) if (p.op, p.name) == (op, "images.dim1")]
    own, whole, back, whole_back = MOVED[op]
    moved = {p.direction: p.bytes for p in catalogue.variants(problem, ("forward", "forward_backward"), (dtype,))}
    assert moved.pop("forward") == size * own + 8 * whole
    assert moved == ({} if back is None else {"forward_backward": size * (own + back) + 8 * (whole + whole_back)})


def logits(shape=(32, 10)):
    return next(p for p in catalogue.of_tensor("logits", shape) if p.op == "cross_entropy")


def test_labels_are_whole_numbers():
    one, both = catalogue.variants(logits(), ("forward", "forward_backward"), ("bf16",))
    assert one.bytes == 2 * 321 + 8 * 32 and both.bytes == 2 * one.bytes


def test_records_from_before_are_known():
    ops = {(p.op, p.name): p for p in odd_ops.forward_problems(odd_ops.SHAPES)}
    asked = [(ops["slice", "images.dim2"], "forward_backward", "f32"), (ops["index_select", "long_rows.dim1"], "forward_backward", "f32"),
             (ops["argmax", "images.dim1"], "forward", "f32"), (logits(), "forward", "f32")]
    problems = [next(catalogue.variants(p, (direction,), (dtype,))) for p, direction, dtype in asked]
    problems += [network_problem("vgg16", 32), next(synchronisation.problems(full=False))]
    assert [p.id() for p in problems] == [
        "f4ab1742a020009f", "3b2fab69deed93f6", "c904c9730280e279", "a45d59518c0379a8", "7f3cbae96574a466", "5b6a891a77c541df"]


def test_what_is_done_otherwise_since_is_other_work():
    """Each had this id when it was done in the old way."""
    both = next(p for p in catalogue.forward_problems([("conv2d", "c", [(2, 4, 7, 7), (6, 4, 3, 3)], {})]))
    for problem in (next(catalogue.variants(both, ("forward_backward",), ("f32",))), next(catalogue.variants(logits(), ("forward",), ("bf16",))),
                    input_problem("alexnet", 250)):
        old = type(problem).since
        try:
            type(problem).since = lambda self: ()
            before = problem.id()
        finally:
            type(problem).since = old
        assert problem.id() != before
