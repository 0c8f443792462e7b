"""Whether two sides have computed the same: outputs and gradients against the reference, element by element.

The error of an op's tensor is its largest deviation from the reference, as a share of the reference's largest element. A sum in
another order, Winograd included, stays far below the tolerance; a wrong padding, epsilon or weight does not.

Of a network's it is the length of the deviation, as a share of the reference's length: where two elements of a pooling's window are
equal but for the last bit, another order of summing sends a gradient elsewhere, and one element of a gradient may be off by a per
cent although all are right.
"""

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

TOLERANCE = {("op", "f32"): 1e-3, ("op", "bf16"): 6e-2, ("network", "f32"): 2e-2, ("network", "bf16"): 0.4}


def error_of(ours, reference, kind):
    if kind == "network":
        length = np.linalg.norm(reference)
        return float(np.linalg.norm(ours - reference) / length) if length > 0 else float(np.linalg.norm(ours))
    scale = np.abs(reference).max(initial=0.0)
    return float(np.abs(ours - reference).max(initial=0.0) / scale) if scale > 0 else float(np.abs(ours).max(initial=0.0))


def agreement(file, reference_file, kind, dtype):
    """{"agrees", "error", "tolerance", "reason"} of two files of results."""
    tolerance, worst, where = TOLERANCE[kind, dtype], 0.0, ""
    try:
        results, references = load_file(file), load_file(reference_file)
    except (OSError, SafetensorError) as e:
        return {"agrees": False, "error": None, "tolerance": tolerance, "reason": f"the results cannot be read: {e}"}
    for name, reference in references.items():
        if name not in results:
            return {"agrees": False, "error": None, "tolerance": tolerance, "reason": f"{name} is missing"}
        value = results[name]
        if value.shape != reference.shape:
            reason = f"{name} has the shape {value.shape}, the reference {reference.shape}"
            return {"agrees": False, "error": None, "tolerance": tolerance, "reason": reason}
        if not np.isfinite(value).all():
            return {"agrees": False, "error": None, "tolerance": tolerance, "reason": f"{name} has NaN or infinity"}
        error = error_of(value.astype(np.float64), reference.astype(np.float64), kind)
        if error >= worst:
            worst, where = error, name
    agrees = worst <= tolerance
    reason = None if agrees else f"{where} differs from the reference by {worst:.2g} of its {'length' if kind == 'network' else 'largest element'}"
    return {"agrees": agrees, "error": worst, "tolerance": tolerance, "reason": reason}
