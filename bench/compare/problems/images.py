"""The data sets that networks are trained on, as every side reads them: one file of safetensors, images as f32 in [0, top]."""

import errno
import os
import pathlib

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

# {network: (folder, files, bytes before the label that counts, bytes of labels)}
SETS = {"alexnet": ("cifar-10-batches-bin", [f"data_batch_{i}.bin" for i in range(1, 6)], 0, 1),
        "resnet20": ("cifar-10-batches-bin", [f"data_batch_{i}.bin" for i in range(1, 6)], 0, 1),
        "vgg16": ("cifar-100-binary", ["train.bin"], 1, 2)}
PIXELS = 3 * 32 * 32


class NoData(Exception):
    """Why there are no images, in a sentence."""


def read(network):
    """(images as bytes, labels) of the training set."""
    folder, files, place, labels = SETS[network]
    root = os.environ.get("PLUMB_DATA")
    if not root:
        raise NoData(f"PLUMB_DATA is unset, which names the folder of {folder}")
    parts = []
    for file in files:
        path = pathlib.Path(root) / folder / file
        try:
            parts.append(np.fromfile(path, np.uint8).reshape(-1, labels + PIXELS))
        except OSError as e:
            raise NoData(f"{path} cannot be read: {e.strerror}") from None
        except ValueError:
            raise NoData(f"{path} is no file of CIFAR's images") from None
    rows = np.concatenate(parts)
    return rows[:, labels:].reshape(-1, 3, 32, 32), rows[:, place].astype(np.int64)


def write(network, top, limit, path):
    """Writes the first `limit` images, and returns how many there are."""
    images, labels = read(network)
    images = images[:limit].astype(np.float32) * np.float32(top / 255)
    save({"images": images, "labels": labels[:limit]}, path)
    return len(images)


def save(tensors, path):
    try:
        save_file(tensors, path)
    except SafetensorError as e:  # which says of a full disk
        raise OSError(errno.EIO, str(e), str(path)) from None


def write_orders(count, epochs, seed, path):
    """The order of the images in each epoch, the same for all sides."""
    generator = np.random.default_rng(seed)
    save({"orders": np.stack([generator.permutation(count) for _ in range(epochs)]).astype(np.int64)}, path)
