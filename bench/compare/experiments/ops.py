"""Every op of the catalogue on the networks' shapes, forward and with its gradients."""

import dataclasses

from ..measuring.engines import Variant
from ..measuring.session import Plan
from ..problems import catalogue
from .bench import USUAL_MODES_OF_OPS

NAME = "ops"
SHOWS = ("How long one op takes from Python, warm, beside the same op in Plumbline: vendor with the vendor's kernels alone, best with the "
         "fastest known. Every side has the same tensors, PyTorch has images in both orders as Plumbline does, TensorFlow and JAX in NHWC, "
         "and nothing was timed before its output and its gradients agreed. What has a gradient counts as new in each call, as in training, "
         "and a pack of it is made again; forward is as in inference, where Plumbline keeps the packs of filters. PyTorch's gradients of sum, "
         "concat and permute are views of the output's gradient, of which nothing is written, and count as they are; other sides write tensors.")

# A shape of each kind of layer, large and small, for the quick comparison.
QUICK = [("conv2d", "alexnet.conv2"), ("conv2d", "vgg16.conv1_2"), ("conv2d", "vgg16.conv3_2"), ("conv2d", "resnet50.res4b_branch2a"),
         ("linear", "alexnet.fc1"), ("linear", "vgg16.fc1"), ("matmul", "square512"), ("max_pool2d", "vgg16.pool1"),
         ("avg_pool2d", "vgg16.pool2"), ("relu", "vgg16.act1"), ("gelu", "vgg16.act2"), ("add", "vgg16.act1"), ("sum", "vgg16.act1"),
         ("softmax", "vgg16.logits"), ("batch_norm", "vgg16.act2"), ("pad2d", "vgg16.act2"), ("cross_entropy", "vgg16.logits"),
         ("concat", "alexnet.act2"), ("argmax", "vgg16.act2")]

FLAT = {"channels_last": "eager", "compile_channels_last": "compile", "reduce_overhead_channels_last": "reduce_overhead"}  # what modes come to where there are no channels


# Of 250 images of 224x224, tensors of 0.8 GB: a processor's memory does not hold those of all sides, and an op takes seconds.
LARGE, MOST_OF_LARGE = "resnet50.", 32


def table_of(bench, batch):
    """What is measured in a batch: of all networks, or those that the user asks for. Whose images are large, on a processor, only up to
    MOST_OF_LARGE unless the user asks for the batch."""
    leaves_out = bench.engines.device == "cpu" and not bench.batches and batch > MOST_OF_LARGE
    asked = tuple(f"{network}." for network in bench.networks) or ""
    return [line for line in catalogue.read_table() if line[1].startswith(asked) and not (leaves_out and line[1].startswith(LARGE))]


def forward_problems(bench):
    """The user's shapes as they are, or those of the networks in the batches of the comparison."""
    if bench.shapes:
        yield from catalogue.forward_problems(catalogue.read_table(bench.shapes))
        return
    for batch in bench.some_batches():
        for p in catalogue.forward_problems(catalogue.with_batch(table_of(bench, batch), batch)):
            if bench.full or (p.op, p.name) in QUICK:
                yield p


def problems(bench):
    for p in forward_problems(bench):
        yield from catalogue.variants(p, ("forward", "forward_backward"), bench.dtypes())


def is_image(problem):
    """Whether it has a layout: a product's matrices are no images, however many there are."""
    return problem.op != "matmul" and any(len(t.shape) == 4 for n, t in problem.inputs.items() if n != "w")


def sides(bench):
    """The function of a problem that gives its variants: images in Plumbline in both layouts."""
    often = bench.asked_often(problems)
    ours = [Variant("plumbline", mode) for mode in ("best nhwc", "best nchw", "vendor nhwc", "vendor nchw")]
    flat = [Variant("plumbline", mode) for mode in ("best", "vendor")]

    def variants(problem):
        frameworks = bench.variants_of_frameworks(problem.id() in often, USUAL_MODES_OF_OPS)
        return ours + frameworks if is_image(problem) else flat + list(dict.fromkeys(dataclasses.replace(v, mode=FLAT.get(v.mode, v.mode)) for v in frameworks))
    return variants


def run(bench):
    chosen = list(problems(bench))
    if not chosen and bench.foreseen is None:
        bench.console.print(f"ops: the quick comparison has no shape of {', '.join(bench.networks)}; --full has", highlight=False)
    plan = Plan(rounds=7, patience=2, samples=2, least_s=0.001, most_s=1) if bench.full else Plan(rounds=5, patience=3, samples=2, least_s=0.001, most_s=0.3)
    bench.measure_all(NAME, chosen, sides(bench), plan)
