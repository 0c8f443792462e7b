"""The two networks as layer lists, their weights and a batch: one problem for every framework.

Weights and the batch are made once from a seed and written as safetensors; every worker reads the same files, so that the
loss of the first step is the same number everywhere.
"""

import math

import numpy as np
from safetensors.numpy import save_file

# (name, input channels, output channels, stride, pooled after)
ALEXNET = [("conv1", 3, 192, 2, True), ("conv2", 192, 384, 1, True), ("conv3", 384, 256, 1, False),
           ("conv4", 256, 256, 1, False), ("conv5", 256, 256, 1, True)]
ALEXNET_FC = [("fc1", 1024, 8192), ("fc2", 8192, 8192), ("fc3", 8192, 10)]
VGG16 = [("conv1_1", 3, 64, 1, False), ("conv1_2", 64, 64, 1, True), ("conv2_1", 64, 128, 1, False),
         ("conv2_2", 128, 128, 1, True), ("conv3_1", 128, 256, 1, False), ("conv3_2", 256, 256, 1, False),
         ("conv3_3", 256, 256, 1, True), ("conv4_1", 256, 512, 1, False), ("conv4_2", 512, 512, 1, False),
         ("conv4_3", 512, 512, 1, True)]
VGG16_FC = [("fc1", 2048, 512), ("fc2", 512, 100)]
NETWORKS = {"alexnet": (ALEXNET, ALEXNET_FC, 10), "vgg16": (VGG16, VGG16_FC, 100)}


def make_weights(model, seed):
    """PyTorch's initial distribution: U(+-1/sqrt(fan_in)) for weights and biases."""
    rng = np.random.default_rng(seed)
    convolutions, linears, _ = NETWORKS[model]
    weights = {}
    for name, inputs, outputs, _, _ in convolutions:
        bound = 1 / math.sqrt(inputs * 9)
        weights[name + ".weight"] = rng.uniform(-bound, bound, (outputs, inputs, 3, 3)).astype(np.float32)
        weights[name + ".bias"] = rng.uniform(-bound, bound, outputs).astype(np.float32)
    for name, inputs, outputs in linears:
        bound = 1 / math.sqrt(inputs)
        weights[name + ".weight"] = rng.uniform(-bound, bound, (outputs, inputs)).astype(np.float32)
        weights[name + ".bias"] = rng.uniform(-bound, bound, outputs).astype(np.float32)
    return weights


def write_problem(folder, model, batch, seed=1, batches=1):
    """Writes weights.safetensors and batch.safetensors (images NCHW in [0, 1], labels); returns their paths.

    An image is half noise and half the pattern of its class, so that there is something to learn.
    """
    rng = np.random.default_rng(seed + 1)
    classes = NETWORKS[model][2]
    weights_file, batch_file = folder / f"{model}.safetensors", folder / f"{model}-{batch}x{batches}.safetensors"
    save_file(make_weights(model, seed), weights_file)
    patterns = rng.random((classes, 3, 32, 32), dtype=np.float32)
    labels = rng.integers(0, classes, batches * batch)
    images = (rng.random((batches * batch, 3, 32, 32), dtype=np.float32) + patterns[labels]) / 2
    save_file({"images": images, "labels": labels}, batch_file)
    return weights_file, batch_file
