"""In which layout an op is fastest, with conversions and without, and how many ops in a row pay for converting."""

from ..measuring.engines import Variant
from ..measuring.session import Plan
from ..problems import catalogue
from ..report.layouts import BLOCKED, LAYOUTS, SWEEP
from ..report.layouts import report  # noqa: F401: the page asks for it

NAME = "layouts"
SHOWS = ("Plumbline alone: the same op on images in row-major nchw, in nhwc, in chwn and, for convolutions, in formats of oneDNN's own choice "
         "(blocked). Not charged, the images lie in the layout already; charged, they are nchw before and after the op, and each step converts. "
         "Filters stay packed in both, since nobody writes to them. With formats of its own, oneDNN chooses for forward and each gradient by "
         "itself: what two of them read has one format only where both chose the same, and the gradient of the filter stays in its format unless charged.")
COMPARES = False

BATCH = 32
# Beside the depthwise convolutions of bench/problems.txt one of small images.
DEPTHWISE = ("conv2d", "mobilenet.depthwise8", [(BATCH, 512, 14, 14), (512, 1, 3, 3)], {"padding": "1", "groups": "512"})
QUICK = [("conv2d", "resnet50.res4b_branch2a"), ("conv2d", "vgg16.conv3_2"), ("conv2d", "vgg16.conv1_1"), ("conv2d", DEPTHWISE[1]),
         ("max_pool2d", "vgg16.pool2"), ("batch_norm", "vgg16.act2"), ("relu", "vgg16.act2")]
OPS = ("conv2d", "max_pool2d", "avg_pool2d", "batch_norm", "relu")
BATCHES = (1, 2, 3, 4, 8, 16, 32, 64, 128)
SWEPT = [("conv2d", "vgg16.conv3_2"), ("max_pool2d", "vgg16.pool2")]


def without_bias(problem):
    """The convolution alone: oneDNN's own formats are of x, w and y."""
    inputs = {n: t for n, t in problem.inputs.items() if n != "b"}
    node = {**problem.nodes[0], "inputs": {n: n for n in problem.nodes[0]["inputs"] if n != "b"}}
    return problem.with_(nodes=(node,), inputs=inputs, gradients=tuple(g for g in problem.gradients if g != "b"))


def of_images(table):
    for p in catalogue.forward_problems(table):
        if p.op in OPS and len(p.inputs["x"].shape) == 4:
            yield without_bias(p) if p.op == "conv2d" else p


def problems(bench):
    """The ops on images of the user's file as they are, or of the networks."""
    directions, dtypes = ("forward", "forward_backward"), bench.dtypes()
    table = catalogue.read_table(bench.shapes) if bench.shapes else catalogue.with_batch([*catalogue.read_table(), DEPTHWISE], BATCH)
    for p in of_images(table):
        if bench.full or bench.shapes or (p.op, p.name) in QUICK:
            yield from catalogue.variants(p, directions, dtypes)


def swept():
    """The same work in growing batches, under names of its own, so that no table takes it for another shape."""
    for batch in BATCHES:
        yield from (p.with_(name=SWEEP + p.name) for p in of_images(catalogue.with_batch(catalogue.read_table(), batch)) if (p.op, p.name) in SWEPT)


def ways(problem):
    """Every layout; with conversions where it is not the one that images have before and after."""
    layouts = [x for x in LAYOUTS if x != BLOCKED or problem.op == "conv2d"]
    return [Variant("plumbline", f"best {x}") for x in layouts] + [Variant("plumbline", f"best charged {x}") for x in layouts if x != "nchw"]


def run(bench):
    plan = Plan(rounds=7, samples=2, least_s=0.002) if bench.full else Plan(rounds=5, samples=2, least_s=0.001)
    bench.measure_all(NAME, list(problems(bench)), ways, plan)
    if not bench.shapes:
        bench.measure_all(NAME, list(swept()), lambda problem: [Variant("plumbline", f"best {x}") for x in ("nchw", "nhwc", "chwn")], plan)
