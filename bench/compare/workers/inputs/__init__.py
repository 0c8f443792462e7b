"""One file a framework: images from bytes by its own loader, alone and with training, as Pipeline(framework, problem, tensors, mode)
with step() and first(). The ways: "augment" and "step" alone, "after" each other, and "overlapped" where the loader works ahead."""

import numpy as np

from ...problems.inputs import DEVIATION, MEAN

SCALE = 1 / (255 * np.array(DEVIATION, np.float32))  # normalised = byte * SCALE - SHIFT, by channel
SHIFT = np.array(MEAN, np.float32) / np.array(DEVIATION, np.float32)


def normalised(pixels):
    """(N, C, H, W) of bytes, not changed at random."""
    return pixels.astype(np.float32) * SCALE[:, None, None] - SHIFT[:, None, None]


def split(problem, tensors):
    """The bytes, their labels, and the problem and the tensors of a training step on the first batch."""
    weights = {n: t for n, t in tensors.items() if n not in ("pixels", "targets")}
    pixels, labels, n = tensors["pixels"].astype(np.uint8), tensors["targets"], problem["batch"]
    step = {**problem, "direction": "train", "output": "loss"}
    return pixels, labels, step, {**weights, "images": normalised(pixels[:n]), "labels": labels[:n]}


class Pipeline:
    """What all have in common: a work that trains, and an endless iterator of batches that it trains on."""

    def __init__(self, work, batches, mode, first):
        self.work, self.batches, self.mode, self.results = work, batches, mode, {"images": first}

    def step(self):
        if self.mode == "step":
            self.work.step()
            return
        self.images, labels = next(self.batches)
        if self.mode != "augment":
            self.work.values["images"], self.work.values["labels"] = self.images, labels
            self.work.step()

    def first(self):
        return self.results
