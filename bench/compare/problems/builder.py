"""Layers called one after another, collected as a list of nodes with the shapes of their weights."""

import math


class Builder:
    """`x` is what the next layer reads, and `shape` its (C, H, W) or (N)."""

    def __init__(self, image):
        self.nodes, self.flops, self.elements = [], 0, 0  # of one image: arithmetic, and all outputs together
        self.first_flops = 0  # of these, of the layer that reads the images
        self.weights, self.statistics, self.f32 = {}, {}, []  # what is trained; what is updated; of both, what is f32 in any dtype
        self.first = {}  # the weights that are to begin as one number
        self.x, self.shape = "images", image

    def call(self, op, y=None, attributes=None, **inputs):
        name = f"{op}{len(self.nodes)}"
        self.nodes.append({"op": op, "inputs": {"x": self.x, **inputs}, "output": name, "attributes": attributes or {}})
        self.x, self.shape = name, y or self.shape
        self.elements += math.prod(self.shape)

    def compute(self, flops):
        self.flops += flops
        self.first_flops += flops if self.x == "images" else 0

    def here(self):
        """A place to come back to, by `back_to`."""
        return self.x, self.shape

    def back_to(self, place):
        self.x, self.shape = place

    def weight(self, name, shape):
        self.weights[name] = shape
        return name

    def conv2d(self, name, channels, kernel, stride=1, padding=0, bias=True):
        c, *image = self.shape
        y = (channels, *((n + 2 * padding - kernel) // stride + 1 for n in image))
        self.compute(2 * math.prod(y) * c * kernel * kernel)
        weights = {"w": self.weight(name + ".weight", (channels, c, kernel, kernel))}
        if bias:
            weights["b"] = self.weight(name + ".bias", (channels,))
        self.call("conv2d", y, {"stride": [stride] * 2, "padding": [padding] * 4, "dilation": [1, 1], "groups": 1}, **weights)

    def batch_norm(self, name, train, first=None):
        """By the batch's statistics, which the running ones follow, or by the running ones; its factor begins at `first`."""
        c = self.shape[:1]
        if first is not None:
            self.first[name + ".weight"] = first
        tensors = {"w": self.weight(name + ".weight", c), "b": self.weight(name + ".bias", c)}
        for statistic in ("running_mean", "running_var"):
            tensors[statistic] = f"{name}.{statistic}"
            self.statistics[tensors[statistic]] = c
        self.f32 += tensors.values()
        self.call("batch_norm", attributes={"epsilon": 1e-5, "momentum": 0.1, "train": train}, **tensors)

    def linear(self, name, out):
        self.compute(2 * self.shape[0] * out)
        self.call("linear", (out,), w=self.weight(name + ".weight", (out, self.shape[0])), b=self.weight(name + ".bias", (out,)))

    def relu(self):
        self.call("relu")

    def add(self, other):
        self.call("add", other=other)

    def pad(self, n):
        c, h, w = self.shape
        self.call("pad2d", (c, h + 2 * n, w + 2 * n), {"padding": [n] * 4})

    def subsample(self, stride):
        """Every so many pixels."""
        c, *image = self.shape
        self.call("subsample", (c, *(-(-n // stride) for n in image)), {"stride": stride})

    def pad_channels(self, before, after):
        c, *image = self.shape
        self.call("pad_channels", (before + c + after, *image), {"before": before, "after": after})

    def max_pool(self, kernel, stride=None, padding=0):
        c, *image = self.shape
        stride = stride or kernel
        y = (c, *((n + 2 * padding - kernel) // stride + 1 for n in image))
        self.call("max_pool2d", y, {"kernel": [kernel] * 2, "stride": [stride] * 2, "padding": [padding] * 4})

    def global_average(self):
        self.call("mean", self.shape[:1], {"dims": [2, 3]})

    def flatten(self):
        self.call("flatten", (math.prod(self.shape),), {"image": list(self.shape)})
