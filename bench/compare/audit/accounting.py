"""What ops compute and move, counted by hand: the catalogue must come to the same, of each op in each direction and dtype.

An op reads its operands and writes its result once, 4 bytes a number in f32 and 2 in bf16, 8 an index, a label or a place. Its gradients
move as much again, and of what was read in part, the whole gradient; they compute each product once more for each operand.
"""

import contextlib
from unittest import mock

from ..problems import catalogue
from ..problems.networks import network_problem

BOTH = "forward_backward"
LINES = [("conv2d", "c", [(2, 3, 5, 7), (4, 3, 3, 3)], {"padding": "1"}), ("linear", "l", [(8, 16), (4, 16)], {}),
         ("matmul", "m", [(2, 3, 5), (2, 5, 7)], {}), ("pool2d", "p", [(1, 2, 6, 6)], {"kernel": "2"}),
         ("tensor", "t", [(2, 3, 4, 5)], {}), ("tensor", "u", [(4, 10)], {})]
# {(op, its line, direction, dtype): (operations, bytes)}
BY_HAND = {
    # 210 numbers of x, 108 of w, 4 of b, 280 of y, of which each takes 27 multiply-adds
    ("conv2d", "c", "forward", "f32"): (15120, 2408), ("conv2d", "c", "forward", "bf16"): (15120, 1204), ("conv2d", "c", BOTH, "f32"): (45360, 4816),
    ("linear", "l", "forward", "f32"): (1024, 912), ("linear", "l", BOTH, "bf16"): (3072, 912),
    ("matmul", "m", "forward", "f32"): (420, 568), ("matmul", "m", BOTH, "f32"): (1260, 1136),
    ("max_pool2d", "p", "forward", "f32"): (0, 360), ("avg_pool2d", "p", BOTH, "f32"): (0, 720),
    # 120 numbers
    ("relu", "t", "forward", "f32"): (0, 960), ("relu", "t", BOTH, "bf16"): (0, 960), ("add", "t", "forward", "f32"): (0, 1440),
    ("sum", "t", "forward", "f32"): (0, 484), ("softmax", "t", BOTH, "f32"): (0, 1920), ("concat", "t", "forward", "f32"): (0, 1920),
    ("batch_norm", "t", "forward", "f32"): (0, 984), ("permute", "t", "forward", "f32"): (0, 960),
    # 252 numbers with the border
    ("pad2d", "t", "forward", "f32"): (0, 1488), ("pad2d", "t", BOTH, "f32"): (0, 2976), ("pad2d", "t", BOTH, "bf16"): (0, 1488),
    # 40 numbers are picked, by one index, and 40 places found
    ("slice", "t", "forward", "f32"): (0, 320), ("slice", "t", BOTH, "f32"): (0, 960), ("index_select", "t", "forward", "f32"): (0, 328),
    ("index_select", "t", BOTH, "f32"): (0, 976), ("argmax", "t", "forward", "f32"): (0, 800),
    ("cross_entropy", "u", "forward", "f32"): (0, 196), ("cross_entropy", "u", BOTH, "f32"): (0, 392),
}
# Of VGG16 on an image: 155,861,760 multiply-adds forward, 1,555,200 of them in the first convolution, which has no gradient of its input.
VGG16 = {"forward": 311_723_520.0, "train": 932_060_160.0}


@contextlib.contextmanager
def broken(what):
    """The catalogue counts twice the bytes, or half the operations."""
    counted, moved = catalogue.op_problem, catalogue.bytes_of
    patches = {"flops": ("op_problem", lambda *a, **k: (p := counted(*a, **k)).with_(flops=p.flops / 2)),
               "bytes": ("bytes_of", lambda *a: 2 * moved(*a))}
    with mock.patch.object(catalogue, *patches[what]) if what in patches else contextlib.nullcontext():
        yield


def in_catalogue():
    """{(op, its line, direction, dtype): its problem}."""
    return {(p.op, p.name, p.direction, p.dtype): p for f in catalogue.forward_problems(LINES)
            for p in catalogue.variants(f, ("forward", BOTH), ("f32", "bf16"))}


def differences(figure):
    """Sentences, of "flops" or "bytes": where the catalogue's count is another than that by hand."""
    problems = in_catalogue()
    pairs = [(" ".join(key), getattr(problems[key], figure), counted[figure == "bytes"]) for key, counted in BY_HAND.items()]
    if figure == "flops":
        pairs += [(f"vgg16 {direction}", network_problem("vgg16", 2, direction).flops, 2 * count) for direction, count in VGG16.items()]
    return [f"{name}: {counted:.0f} where it is {by_hand}" for name, counted, by_hand in pairs if counted != by_hand]
