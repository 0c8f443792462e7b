"""The networks as lists of the catalogue's ops, with the names of their weights in PyTorch and Plumbline."""

import math

from . import Problem, Tensor

# (channels, stride, pooled after): 3x3 convolutions without padding, ReLU, a border of zeros, and perhaps a pooling
ALEXNET = ("alexnet", [(192, 2, True), (384, 1, True), (256, 1, False), (256, 1, False), (256, 1, True)], [8192, 8192], 10)
VGG16 = ("vgg16", [(64, 1, False), (64, 1, True), (128, 1, False), (128, 1, True), (256, 1, False), (256, 1, False), (256, 1, True),
                   (512, 1, False), (512, 1, False), (512, 1, True)], [512], 100)
VGG16_NAMES = ["conv1_1", "conv1_2", "conv2_1", "conv2_2", "conv3_1", "conv3_2", "conv3_3", "conv4_1", "conv4_2", "conv4_3"]


class Builder:
    """Collects nodes, the shapes of weights, and the arithmetic, as layers are called one after another."""

    def __init__(self, image):
        self.nodes, self.weights, self.flops = [], {}, 0
        self.x, self.shape = "images", image

    def call(self, op, y=None, attributes=None, **inputs):
        name = f"{op}{len(self.nodes)}"
        self.nodes.append({"op": op, "inputs": {"x": self.x, **inputs}, "output": name, "attributes": attributes or {}})
        self.x, self.shape = name, y or self.shape
        return name

    def weight(self, name, shape):
        self.weights[name] = shape
        return name

    def conv2d(self, name, channels, kernel, stride=1, padding=0, bias=True):
        c, h, w = self.shape
        y = (channels, *((n + 2 * padding - kernel) // stride + 1 for n in (h, w)))
        self.flops += 2 * math.prod(y) * c * kernel * kernel
        weights = {"w": self.weight(name + ".weight", (channels, c, kernel, kernel))}
        if bias:
            weights["b"] = self.weight(name + ".bias", (channels,))
        self.call("conv2d", y, {"stride": [stride] * 2, "padding": [padding] * 4, "dilation": [1, 1], "groups": 1}, **weights)

    def linear(self, name, out):
        self.flops += 2 * self.shape[0] * out
        self.call("linear", (out,), w=self.weight(name + ".weight", (out, self.shape[0])), b=self.weight(name + ".bias", (out,)))

    def relu(self):
        self.call("relu")

    def pad(self, n):
        c, h, w = self.shape
        self.call("pad2d", (c, h + 2 * n, w + 2 * n), {"padding": [n] * 4})

    def max_pool(self, kernel, stride=None, padding=0):
        c, *image = self.shape
        stride = stride or kernel
        y = (c, *((n + 2 * padding - kernel) // stride + 1 for n in image))
        self.call("max_pool2d", y, {"kernel": [kernel] * 2, "stride": [stride] * 2, "padding": [padding] * 4})

    def flatten(self):
        self.call("flatten", (math.prod(self.shape),), {"image": list(self.shape)})


def coursework(network, names=None):
    """AlexNet for CIFAR-10 and VGG16 for CIFAR-100 of the coursework."""
    _, convolutions, hidden, classes = network
    b = Builder((3, 32, 32))
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
    return b, classes


NETWORKS = {"alexnet": lambda: coursework(ALEXNET), "vgg16": lambda: coursework(VGG16, VGG16_NAMES)}


def network_problem(name, batch, direction="train", dtype="f32", optimizer="sgd", learning_rate=0.01):
    """A forward pass to the logits, or a training step."""
    b, classes = NETWORKS[name]()
    image = b.nodes and (3, 32, 32)
    inputs = {"images": Tensor((batch, *image), 0.0, 1.0), "labels": Tensor((batch,), classes=classes)}
    inputs.update({n: Tensor(shape) for n, shape in b.weights.items()})
    output, passes = b.x, 1
    if direction == "train":
        output, passes = "loss", 3
        b.nodes.append({"op": "cross_entropy", "inputs": {"x": b.x, "labels": "labels"}, "output": "loss", "attributes": {}})
    weights = sum(math.prod(shape) for shape in b.weights.values())
    return Problem("network", name, name, direction, tuple(b.nodes), inputs, output, tuple(b.weights), dtype=dtype, batch=batch,
                   flops=float(passes * batch * b.flops), bytes=4.0 * weights, optimizer=optimizer, learning_rate=learning_rate)
