"""Batches of images from bytes, and training on them: crop, flip and normalise as for CIFAR."""

from . import Tensor
from .networks import network_problem

PADDING = 4                                                      # black pixels around an image, from which a window of its size is cut
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # by channel, of pixels in [0, 1]
IMAGES = 1000                                                   # in an epoch


def input_problem(network, batch, images=IMAGES):
    """Every side has the same bytes. What is held against the reference is the first batch, normalised but not changed at random."""
    whole = network_problem(network, batch)
    inputs = {n: t for n, t in whole.inputs.items() if n not in ("images", "labels")}
    classes = whole.inputs["labels"].classes
    inputs |= {"pixels": Tensor((images, 3, 32, 32), classes=256), "targets": Tensor((images,), classes=classes)}
    return whole.with_(direction="input", inputs=inputs, output="images", flops=0.0, bytes=0.0, miscounted=(0.0, 0.0), optimizer="sgd")
