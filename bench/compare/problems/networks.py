"""The networks as lists of ops: the catalogue's, and what layers need beside them. Weights have their names in PyTorch and Plumbline."""

import dataclasses
import math
from collections.abc import Callable

from . import Problem, Tensor
from .builder import Builder

# (channels, stride, pooled after): 3x3 convolutions without padding, ReLU, a border of zeros, and perhaps a pooling
ALEXNET = [(192, 2, True), (384, 1, True), (256, 1, False), (256, 1, False), (256, 1, True)]
VGG16 = [(64, 1, False), (64, 1, True), (128, 1, False), (128, 1, True), (256, 1, False), (256, 1, False), (256, 1, True),
         (512, 1, False), (512, 1, False), (512, 1, True)]
VGG16_NAMES = ["conv1_1", "conv1_2", "conv2_1", "conv2_2", "conv3_1", "conv3_2", "conv3_3", "conv4_1", "conv4_2", "conv4_3"]


def plain(b, convolutions, hidden, classes, names=None):
    for i, (channels, stride, pooled) in enumerate(convolutions):
        b.conv2d(names[i] if names else f"conv{i + 1}", channels, 3, stride)
        b.relu()
        b.pad(1)
        if pooled:
            b.max_pool(2)
    b.flatten()
    for i, out in enumerate(hidden):
        b.linear(f"fc{i + 1}", out)
        b.relu()
    b.linear(f"fc{len(hidden) + 1}", classes)


def alexnet(b, classes, train):
    plain(b, ALEXNET, [8192, 8192], classes)


def vgg16(b, classes, train):
    plain(b, VGG16, [512], classes, VGG16_NAMES)


# What the last batch norm of a residual branch begins to multiply by, where PyTorch has 1 and Goyal et al. (2017) have 0. From 1,
# gradients say little of who is right: the median gradient of ResNet-50 is 1.3 of its length away from that of a side that differs in
# rounding alone (bf16; in f32 0.02), whatever the batch; from 0.05 it is 0.25 (in f32 0.004). How long a step takes is the same.
BRANCH = 0.05


# How bright the images of a network with batch norms are at most, where others' are up to 1: its first convolution's variance is some
# 1e-4 then, which an epsilon of 1e-3 in the place of 1e-5 drowns. From images up to 1 it has 0.03, and another epsilon looks like the
# roundings of bf16. What a convolution rounds does not depend on it, nor does how long a step takes.
DARK = 0.05


def normalised(b, convolution, norm, train, *sizes):
    """A convolution without bias, batch norm, ReLU."""
    b.conv2d(convolution, *sizes, bias=False)
    b.batch_norm(norm, train)
    b.relu()


def added(b, convolution, norm, train, shortcut, *sizes):
    """The end of a residual branch: a convolution, batch norm, the sum with the shortcut, ReLU."""
    b.conv2d(convolution, *sizes, bias=False)
    b.batch_norm(norm, train, BRANCH)
    b.add(shortcut)
    b.relu()


def resnet20(b, classes, train):
    """For CIFAR-10: where the shape changes, the shortcut takes every second pixel, and zeros for the new channels."""
    normalised(b, "conv1", "bn1", train, 16, 3, 1, 1)
    for stage, channels in enumerate((16, 32, 64), 1):
        for i in range(3):
            name, stride, start = f"layer{stage}.{i}", 2 if stage > 1 and i == 0 else 1, b.here()
            if stride != 1:
                new = channels - b.shape[0]
                b.subsample(stride)
                b.pad_channels(new // 2, new - new // 2)
            shortcut, _ = b.here()
            b.back_to(start)
            normalised(b, f"{name}.conv1", f"{name}.bn1", train, channels, 3, stride, 1)
            added(b, f"{name}.conv2", f"{name}.bn2", train, shortcut, channels, 3, 1, 1)
    b.global_average()
    b.linear("linear", classes)


def resnet50(b, classes, train):
    """As torchvision has it: bottlenecks with the stride on the 3x3, and a convolution as shortcut where the shape changes."""
    normalised(b, "conv1", "bn1", train, 64, 7, 2, 3)
    b.max_pool(3, 2, 1)
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), 1):
        for i in range(blocks):
            name, stride, start = f"layer{stage}.{i}", 2 if stage > 1 and i == 0 else 1, b.here()
            if i == 0:
                b.conv2d(f"{name}.downsample.0", 4 * width, 1, stride, bias=False)
                b.batch_norm(f"{name}.downsample.1", train)
            shortcut, _ = b.here()
            b.back_to(start)
            normalised(b, f"{name}.conv1", f"{name}.bn1", train, width, 1)
            normalised(b, f"{name}.conv2", f"{name}.bn2", train, width, 3, stride, 1)
            added(b, f"{name}.conv3", f"{name}.bn3", train, shortcut, 4 * width, 1)
    b.global_average()
    b.linear("fc", classes)


@dataclasses.dataclass(frozen=True)
class Network:
    layers: Callable  # of a builder, the classes, and whether it is trained
    classes: int
    image: tuple = (3, 32, 32)


NETWORKS = {"alexnet": Network(alexnet, 10), "vgg16": Network(vgg16, 100), "resnet20": Network(resnet20, 10),
            "resnet50": Network(resnet50, 1000, (3, 224, 224))}


def built(name, train=True, image=None):
    """A network's layers, on images of its own size or of another that it admits."""
    network = NETWORKS[name]
    b = Builder(image or network.image)
    network.layers(b, network.classes, train)
    return b


def network_problem(name, batch, direction="train", dtype="f32", optimizer="sgd", learning_rate=0.01, image=None):
    """A forward pass to the logits, or a training step."""
    network, train = NETWORKS[name], direction == "train"
    b = built(name, train, image)
    inputs = {"images": Tensor((batch, *(image or network.image)), 0.0, DARK if b.statistics and train else 1.0),
              "labels": Tensor((batch,), classes=network.classes)}
    first = b.first if train else {}
    inputs.update({n: Tensor(shape, first[n], first[n]) if n in first else Tensor(shape)
                   for n, shape in (b.weights | b.statistics).items()})
    output, flops, miscounted = b.x, b.flops, 0
    if train:  # each product thrice, but that nobody asks for the gradient with respect to the images
        output, flops, miscounted = "loss", 3 * b.flops - b.first_flops, b.first_flops
        b.nodes.append({"op": "cross_entropy", "inputs": {"x": b.x, "labels": "labels"}, "output": "loss", "attributes": {}})
    weights = sum(math.prod(shape) for shape in b.weights.values())
    # From PyTorch's weights, without batch norms, logits are biases but for a millionth: of the layers they would tell nothing.
    initial = "pytorch" if train or b.statistics else "keras"
    return Problem("network", name, name, direction, tuple(b.nodes), inputs, output, tuple(b.weights), tuple(b.f32), dtype=dtype,
                   batch=batch, flops=float(batch * flops), bytes=4.0 * weights, elements=float(batch * b.elements),
                   optimizer=optimizer, learning_rate=learning_rate, initial=initial, miscounted=(float(batch * miscounted), 0.0))
