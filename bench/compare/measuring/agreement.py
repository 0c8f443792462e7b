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
"""

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

TOLERANCE = {("op", "f32"): 1e-3, ("op", "bf16"): 6e-2, ("network", "f32"): 2e-2, ("network", "bf16"): 0.4,
             ("normalised network", "f32"): 0.1, ("normalised network", "bf16"): 0.7}


PIECE = 1 << 18  # elements whose deviations stay in a cache


def error_of(ours, reference, kind):
    """In f64; NaN or infinite where one of ours is."""
    ours, reference = ours.reshape(-1), reference.reshape(-1)
    far, large = 0.0, 0.0  # of the deviation and of the reference: squared lengths, or largest elements
    for i in range(0, ours.size, PIECE):
        r = reference[i:i + PIECE].astype(np.float64)
        d = ours[i:i + PIECE].astype(np.float64) - r
        if kind == "op":
            far, large = np.maximum(far, np.abs(d).max()), np.maximum(large, np.abs(r).max())  # np.maximum keeps NaN
        else:
            far, large = far + d @ d, large + r @ r
    if kind != "op":
        far, large = np.sqrt(far), np.sqrt(large)
    return float(far / large if large > 0 else far)


def agreement(file, reference_file, kind, dtype):
    """{"agrees", "error", "tolerance", "reason"} of two files of results."""
    tolerance, worst, where = TOLERANCE[kind, dtype], 0.0, ""
    try:
        results, references = load_file(file), load_file(reference_file)
    except (OSError, SafetensorError) as e:
        return {"agrees": False, "error": None, "tolerance": tolerance, "reason": f"the results cannot be read: {e}"}
    if not any(np.any(reference) for reference in references.values()):
        return {"agrees": False, "error": None, "tolerance": tolerance, "reason": "the reference is zero everywhere: nothing can be told from it"}
    for name, reference in references.items():
        if name not in results:
            return {"agrees": False, "error": None, "tolerance": tolerance, "reason": f"{name} is missing"}
        value = results[name]
        if value.shape != reference.shape:
            reason = f"{name} has the shape {value.shape}, the reference {reference.shape}"
            return {"agrees": False, "error": None, "tolerance": tolerance, "reason": reason}
        error = error_of(value, reference, kind)
        if not np.isfinite(error):
            return {"agrees": False, "error": None, "tolerance": tolerance, "reason": f"{name} has NaN or infinity"}
        if error >= worst:
            worst, where = error, name
    agrees = worst <= tolerance
    reason = None if agrees else f"{where} differs from the reference by {worst:.2g} of its {'largest element' if kind == 'op' else 'length'}"
    return {"agrees": agrees, "error": worst, "tolerance": tolerance, "reason": reason}
