"""Whether two sides have computed the same: outputs and gradients against the reference, element by element.

The error of an op's tensor is its largest deviation from the reference, as a share of the reference's largest element. A sum in
another order, Winograd included, stays far below the tolerance; a wrong padding, epsilon or weight does not.

Of a network's it is the length of the deviation, as a share of the reference's length: where two elements of a pooling's window are
equal but for the last bit, another order of summing sends a gradient elsewhere, and one element of a gradient may be off by a per
cent although all are right.

Batch norms spread such a change over a channel, and the gradients of their biases are small differences of large sums. In ResNet-50 on
one, two and eight images the worst tensor of a right side was up to 0.034 off in f32 and 0.47 in bf16 (PyTorch in three modes,
TensorFlow, JAX and Plumbline in four, and PyTorch's f32 against its f64). The worst of a wrong side was 0.25 off for an epsilon of 1e-3
in the place of 1e-5, 1.4 for strides on other convolutions, 1.6 for a pooling padded on one side. The tolerance is between.

What roundings do to tensors has no direction: it hardly changes how long all gradients together are, or the loss. A formula that is
wrong has one. So a training step is held as a whole too, much closer. The images of networks with batch norms are dark, so that their
epsilon tells (problems/networks.py). The farthest of what is right (Plumbline, PyTorch, TensorFlow and JAX, 1 to 250 images), and the
nearest of PyTorch with an epsilon of 1e-3 in the place of 1e-5, which the worst tensor tells, and in ResNet-20 the length too:

                                     right: length     loss      epsilon 1e-3: worst tensor   length
    f32    ResNet-20 and -50                  9e-6     1e-7      4.7 (ResNet-50)
    bf16   ResNet-20 and -50                0.0022   1.6e-4      1.6                          0.31 (ResNet-20)
    f32    AlexNet, VGG16                     3e-8     1e-7
    bf16   AlexNet, VGG16                   0.0030   1.2e-5
    f32    VGG16 from Keras's weights       1.6e-5             (Plumbline, whose convolutions of 3x3 are Winograd's, at 250 images)

An epsilon of 1e-4 is found in ResNet-20 in bf16 by the length alone: 0.16, where the worst tensor is 0.53 off. TensorFlow's gradient of
ResNet-20's first convolution in bf16 gets worse with the batch, 0.94 off with 250 images, and is refused. What no result depends on
cannot be found: the momentum of running statistics, say, which the experiment `defaults` asks for.

Whole numbers are places, and are right or wrong: a place is right if it is the reference's, or if the input has an equal element there,
of which each framework takes the one that it likes.
"""

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from .worker import Refused

TOLERANCE = {("op", "f32"): 1e-3, ("op", "bf16"): 6e-2, ("network", "f32"): 2e-2, ("network", "bf16"): 0.4,
             ("normalised network", "f32"): 0.1, ("normalised network", "bf16"): 0.7,
             ("network", "f32 steps"): 0.2, ("normalised network", "f32 steps"): 0.4,
             ("network", "bf16 steps"): 0.7, ("normalised network", "bf16 steps"): 0.7}

# Of a training step as a whole: by how much all gradients together may be longer or shorter, and how far the loss may be, as shares.
LENGTH = {("network", "f32"): 5e-5, ("network", "bf16"): 2e-2, ("normalised network", "f32"): 5e-5, ("normalised network", "bf16"): 2e-2}
LOSS = {("network", "f32"): 1e-6, ("network", "bf16"): 1e-3, ("normalised network", "f32"): 1e-6, ("normalised network", "bf16"): 1e-3}

# Of what several steps have changed, where roundings grow from step to step, and become signs where an optimizer divides by a gradient's size.
# The farthest of what is right in f32: 0.044 (VGG16, 4 images, RMSProp) and 0.028 (ResNet-50, 8 images); length 4e-5, and 0.0014 from images of
# 32x48 in ResNet-50. The loss is the first step's: products in bf16 move it by 3e-6 and more.
for kind in ("network", "normalised network"):
    LENGTH |= {(kind, "f32 steps"): 5e-3, (kind, "bf16 steps"): LENGTH[kind, "bf16"]}
    LOSS |= {(kind, f"{dtype} steps"): LOSS[kind, dtype] for dtype in ("f32", "bf16")}

PIECE = 1 << 18  # elements whose deviations stay in a cache


def error_of(ours, reference, kind, least=0.0):
    """In f64, and the squared lengths of both but of an op's; NaN or infinite where one of ours is. A reference counts as no shorter than `least`."""
    ours, reference = ours.reshape(-1), reference.reshape(-1)
    far, large = 0.0, 0.0  # of the deviation and of the reference: squared lengths, or largest elements
    squared = 0.0
    for i in range(0, ours.size, PIECE):
        r, o = (t[i:i + PIECE].astype(np.float64) for t in (reference, ours))
        d = o - r
        if kind == "op":
            far, large = np.maximum(far, np.abs(d).max()), np.maximum(large, np.abs(r).max())  # np.maximum keeps NaN
        else:
            far, large, squared = far + d @ d, large + r @ r, squared + o @ o
    lengths = (squared, large)
    if kind != "op":
        far, large = np.sqrt(far), np.sqrt(large)
    large = max(large, least)
    return float(far / large if large > 0 else far), lengths


def length_of(tensors):
    """Of all of them together, in f64."""
    pieces = (t.reshape(-1)[i:i + PIECE].astype(np.float64) for t in tensors for i in range(0, t.size, PIECE))
    return float(np.sqrt(sum(p @ p for p in pieces)))


def as_a_whole(results, references, squared, kind, dtype):
    """[(what differs, by how much, its tolerance)] of a training step; `squared` has both lengths of each result."""
    ours, theirs = np.sqrt(np.sum([lengths for name, lengths in squared.items() if name != "loss"], axis=0))
    loss, right = float(results["loss"]), float(references["loss"])
    return [("the length of all gradients together", float(abs(ours / theirs - 1)), LENGTH[kind, dtype]),
            ("the loss", abs(loss / right - 1), LOSS[kind, dtype])]


def wrong_places(ours, reference, x, dim):
    """The share of places along a dimension of x where x has not what it has at the reference's."""
    if ours.dtype.kind not in "iu" or not np.all((ours >= 0) & (ours < x.shape[dim])):
        return 1.0

    def at(places):
        return np.take_along_axis(x, np.expand_dims(places, dim), dim)
    return float(np.mean(at(ours) != at(reference)))


def whole_numbers(name, ours, reference, inputs, nodes):
    """The share of them that is wrong; `inputs` is a file of what the nodes have read."""
    picking = [node for node in nodes if node["op"] == "argmax" and node["output"] == name]
    if not picking:
        return float(np.mean(ours != reference))
    return wrong_places(ours, reference, load_file(inputs)[picking[0]["inputs"]["x"]], picking[0]["attributes"]["dims"][0])


def agreement(file, reference_file, kind, dtype, inputs=None, nodes=(), least=None):
    """{"agrees", "error", "tolerance", "reason"} of two files of results, of nodes that have read a file of inputs; `least` has by name what a
    reference counts as at least. Throws Refused where a file cannot be read."""
    tolerance, worst, where, squared = TOLERANCE[kind, dtype], 0.0, "", {}
    try:
        results, references = load_file(file), load_file(reference_file)
    except (OSError, SafetensorError) as e:
        raise Refused(f"the results cannot be read: {e}", "disk") from None
    if not any(np.any(reference) for reference in references.values()):
        return {"agrees": False, "error": None, "tolerance": tolerance, "reason": "the reference is zero everywhere: nothing can be told from it"}
    for name, reference in references.items():
        if name not in results:
            return {"agrees": False, "error": None, "tolerance": tolerance, "reason": f"{name} is missing"}
        value = results[name]
        if value.shape != reference.shape:
            reason = f"{name} has the shape {value.shape}, the reference {reference.shape}"
            return {"agrees": False, "error": None, "tolerance": tolerance, "reason": reason}
        if reference.dtype.kind in "iu":
            wrong = whole_numbers(name, value, reference, inputs, nodes)
            if wrong > 0:
                return {"agrees": False, "error": wrong, "tolerance": 0.0, "reason": f"{name} has {wrong:.2g} of its elements at wrong places"}
            continue
        error, squared[name] = error_of(value, reference, kind, (least or {}).get(name, 0.0))
        if not np.isfinite(error):
            return {"agrees": False, "error": None, "tolerance": tolerance, "reason": f"{name} has NaN or infinity"}
        if error >= worst:
            worst, where = error, name
    if worst <= tolerance and "loss" in references:
        for what, error, most in as_a_whole(results, references, squared, kind, dtype):
            if not error <= most:
                reason = f"{what} differs from the reference's by {error:.2g} of it, and {most:g} is allowed"
                return {"agrees": False, "error": error if np.isfinite(error) else None, "tolerance": most, "reason": reason}
    agrees = worst <= tolerance
    reason = None if agrees else f"{where} differs from the reference by {worst:.2g} of its {'largest element' if kind == 'op' else 'length'}"
    return {"agrees": agrees, "error": worst, "tolerance": tolerance, "reason": reason}
