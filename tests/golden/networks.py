"""The networks of the goldens: their layers, generated weights and images, and what is recorded of a run."""

import math
import os
import pathlib

import numpy as np

import golden

IMAGES = 4
IMAGE_STREAM = 1 << 20  # the generated images; parameters take the streams 0, 1, 2, ...
LABEL_STREAM = IMAGE_STREAM + 1
INDEX_STREAM = IMAGE_STREAM + 2  # plus the parameter's number: where its gradient is sampled
SAMPLES = 16

# Layers: ("conv", OC, stride) is 3x3 without padding and with bias, then ReLU; ("pad",) adds one zero on every side;
# ("pool",) is a 2x2 maximum, floor; ("linear", outputs) has a ReLU behind it unless it is the last.
ALEXNET = [("conv", 192, 2), ("pad",), ("pool",), ("conv", 384, 1), ("pad",), ("pool",)]
ALEXNET += [("conv", 256, 1), ("pad",)] * 3 + [("pool",), ("linear", 8192), ("linear", 8192), ("linear", 10)]
VGG16 = []
for widths in ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512)):
    VGG16 += [part for width in widths for part in (("conv", width, 1), ("pad",))] + [("pool",)]
VGG16 += [("linear", 512), ("linear", 100)]

NETWORKS = {  # name: layers, classes, features behind the last pooling, number of parameters, CIFAR test set
    "alexnet": (ALEXNET, 10, 1024, 78_330_250, ("cifar-10-batches-bin/test_batch.bin", 1)),
    "vgg16": (VGG16, 100, 2048, 8_735_652, ("cifar-100-binary/test.bin", 2)),
}


def weight(p, shape):
    """A generated weight (OIHW, or (out, in)): uniform within sqrt(6 / fan_in), so that activations keep their size."""
    return golden.symmetric(p, shape, math.sqrt(6 / math.prod(shape[1:])))


def bias(p, shape):
    """A generated bias: uniform within 0.01."""
    return golden.symmetric(p, shape, 0.01)


def scale(p, shape):
    """A generated gamma or running variance: 0.5f + u, in [0.5, 1.5]."""
    return np.float32(0.5) + golden.unit(p, shape)


def parameters(name):
    """The (name, float32 value) of every parameter of alexnet or vgg16, layer by layer, the weight before the bias."""
    layers, _, features, count, _ = NETWORKS[name]
    made, counts, channels = [], {"conv": 0, "linear": 0}, 3
    for kind, *rest in layers:
        if kind not in counts:
            continue
        counts[kind] += 1
        if kind == "linear" and counts[kind] == 1:
            channels = features
        shape = (rest[0], channels, 3, 3) if kind == "conv" else (rest[0], channels)
        made.append((f"{kind}{counts[kind]}.weight", weight(len(made), shape)))
        made.append((f"{kind}{counts[kind]}.bias", bias(len(made), shape[:1])))
        channels = rest[0]
    assert sum(v.size for _, v in made) == count, name
    return made


def fnv1a64(data):
    """The 64-bit FNV-1a hash of bytes, as hexadecimal text."""
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 % (1 << 64)
    return f"{h:016x}"


def generated_batch(classes, side=32):
    """Four generated images (4, 3, side, side) in [0, 1), float32, their labels, and the record of the batch."""
    labels = (golden.hashes(LABEL_STREAM, IMAGES) % np.uint64(classes)).astype(np.int64)
    return golden.unit(IMAGE_STREAM, (IMAGES, 3, side, side)), labels, {"labels": labels}


def cifar_batch(file, label_bytes):
    """The first four images of a CIFAR test set, float32(pixel) / 255.0f, their (fine) labels, and the batch's record.

    The record has a hash of each image's 3072 bytes, by which the images are found in a file of another order.
    """
    path = pathlib.Path(os.environ["PLUMB_DATA"]) / file
    record = label_bytes + 3 * 32 * 32
    records = np.fromfile(path, np.uint8, IMAGES * record).reshape(IMAGES, record)
    pixels, labels = records[:, label_bytes:], records[:, label_bytes - 1].astype(np.int64)
    images = (pixels.astype(np.float32) / np.float32(255)).reshape(IMAGES, 3, 32, 32)
    return images, labels, {"labels": labels, "fnv1a64": " ".join(fnv1a64(p.tobytes()) for p in pixels)}


def batches(name):
    """The batches by name: "generated" and "cifar"."""
    _, classes, _, _, test_set = NETWORKS[name]
    return {"generated": generated_batch(classes), "cifar": cifar_batch(*test_set)}


def indices(p, size):
    """The 16 flat indices at which the gradient of parameter `p` is recorded."""
    return (golden.hashes(INDEX_STREAM + p, SAMPLES) % np.uint64(size)).astype(np.int64)


def facts(values):
    """What lets a reader check its own generator: a row per tensor of its shape, first values, sum and indices."""
    return {
        "names": " ".join(name for name, _ in values),
        "shape": np.array([v.shape + (1,) * (4 - v.ndim) for _, v in values]),
        "first": np.array([v.reshape(-1)[:3] for _, v in values], np.float64),
        "sum": np.array([v.sum(dtype=np.float64) for _, v in values]),
        "indices": np.stack([indices(p, v.size) for p, (_, v) in enumerate(values)]),
    }


def summary(p, array):
    """The record of one tensor: L2 norm, sum, and the values at the sampled indices."""
    flat = np.asarray(array, np.float64).reshape(-1)
    return np.array([np.linalg.norm(flat), flat.sum(), *flat[indices(p, flat.size)]])


def compare(name, got, want, sizes, tolerance=1e-9):
    """Fails unless two runs agree, samples relative to the gradient's root mean square; returns the largest error.

    `sizes` has the number of elements of each parameter by its name.
    """
    logits = want["logits"]
    scale = float(np.abs(logits).max())
    errors = [golden.assert_close(f"{name}: logits", got["logits"], logits, tolerance, scale)]
    errors.append(golden.assert_close(f"{name}: loss", got["loss"], want["loss"], tolerance, want["loss"]))
    for parameter, b in want["gradients"].items():
        a, label, norm = got["gradients"][parameter], f"{name}: gradient of {parameter}", b[0]
        errors.append(golden.assert_close(f"{label}: norm", a[0], norm, tolerance, norm))
        errors.append(golden.assert_close(f"{label}: sum", a[1], b[1], tolerance, norm))
        rms = norm / math.sqrt(sizes[parameter])
        errors.append(golden.assert_close(f"{label}: samples", a[2:], b[2:], tolerance, rms))
    return max(errors)
