"""The ops of the catalogue in PyTorch: functions of {input: tensor} and the attributes."""

import torch
import torch.nn.functional as F


def outputs(extent, before, after, window, stride):
    return (extent + before + after - window) // stride + 1


def half(window):
    """The most that poolings pad."""
    return [n // 2 for n in window]


def symmetric(x, a, window, most, value=0.0):
    """x and the padding that the op takes by itself: as much behind as before, and up to `most`. More behind than asked for does no harm where
    no window comes to see it. Other padding is added to x beforehand."""
    padding = a.get("padding", (0, 0, 0, 0))
    sides = [(*padding[2 * i:2 * i + 2], x.shape[2 + i], window[i], a["stride"][i], most[i]) for i in (0, 1)]
    if all(after <= before <= m and outputs(n, before, after, w, s) == outputs(n, before, before, w, s) for before, after, n, w, s, m in sides):
        return x, (padding[0], padding[2])
    top, bottom, left, right = padding
    return F.pad(x, (left, right, top, bottom), value=value), (0, 0)


def conv2d(t, a):
    window = [d * (k - 1) + 1 for d, k in zip(a["dilation"], t["w"].shape[2:])]
    x, padding = symmetric(t["x"], a, window, window)
    return F.conv2d(x, t["w"], t.get("b"), a["stride"], padding, a["dilation"], a["groups"])


def max_pool2d(t, a):
    x, padding = symmetric(t["x"], a, a["kernel"], half(a["kernel"]), -torch.inf)
    return F.max_pool2d(x, a["kernel"], a["stride"], padding)


def avg_pool2d(t, a):
    x, padding = symmetric(t["x"], a, a["kernel"], half(a["kernel"]))
    return F.avg_pool2d(x, a["kernel"], a["stride"], padding)


def pad2d(t, a):
    top, bottom, left, right = a["padding"]
    return F.pad(t["x"], (left, right, top, bottom))


def batch_norm(t, a):
    """Running statistics are updated in place."""
    train = a.get("train", True)
    return F.batch_norm(t["x"], t.get("running_mean"), t.get("running_var"), t["w"], t["b"], train, a["momentum"], a["epsilon"])


def part(t, a):
    return t["x"][tuple(slice(b, b + n) for b, n in zip(a["begin"], a["extents"]))].clone(memory_format=torch.preserve_format)


OPS = {
    "conv2d": conv2d, "max_pool2d": max_pool2d, "avg_pool2d": avg_pool2d, "pad2d": pad2d, "batch_norm": batch_norm, "slice": part,
    "linear": lambda t, a: F.linear(t["x"], t["w"], t.get("b")),
    "matmul": lambda t, a: torch.matmul(t["a"].mT if a["transpose_a"] else t["a"], t["b"].mT if a["transpose_b"] else t["b"]),
    "relu": lambda t, a: F.relu(t["x"]), "gelu": lambda t, a: F.gelu(t["x"]), "silu": lambda t, a: F.silu(t["x"]),
    "gelu_tanh": lambda t, a: F.gelu(t["x"], approximate="tanh"), "softplus": lambda t, a: F.softplus(t["x"]),
    "sigmoid": lambda t, a: torch.sigmoid(t["x"]), "tanh": lambda t, a: torch.tanh(t["x"]), "exp": lambda t, a: torch.exp(t["x"]),
    "log": lambda t, a: torch.log(t["x"]), "sqrt": lambda t, a: torch.sqrt(t["x"]), "square": lambda t, a: torch.square(t["x"]),
    "abs": lambda t, a: torch.abs(t["x"]), "add": lambda t, a: t["x"] + t["other"], "mul": lambda t, a: t["x"] * t["other"],
    "div": lambda t, a: t["x"] / t["other"], "maximum": lambda t, a: torch.maximum(t["x"], t["other"]),
    "sum": lambda t, a: t["x"].sum(a["dims"] or None), "mean": lambda t, a: t["x"].mean(a["dims"] or None),
    "max": lambda t, a: t["x"].amax(a["dims"]), "argmax": lambda t, a: t["x"].argmax(a["dims"][0]),
    "softmax": lambda t, a: F.softmax(t["x"], a["dim"]), "log_softmax": lambda t, a: F.log_softmax(t["x"], a["dim"]),
    "cross_entropy": lambda t, a: F.cross_entropy(t["x"].float(), t["labels"]), "mse": lambda t, a: F.mse_loss(t["x"], t["other"]),
    "permute": lambda t, a: t["x"].permute(a["dims"]).contiguous(), "concat": lambda t, a: torch.cat((t["x"], t["other"]), a["dim"]),
    "index_select": lambda t, a: t["x"].index_select(a["dim"], t["index"]),
    "flatten": lambda t, a: torch.flatten(t["x"], 1), "subsample": lambda t, a: t["x"][:, :, ::a["stride"], ::a["stride"]],
    "pad_channels": lambda t, a: F.pad(t["x"], (0, 0, 0, 0, a["before"], a["after"])),
}
