"""Tensors between the order in which files hold them, PyTorch's, and that of a framework whose images are NHWC.

Images (four extents, no weights) become NHWC, filters (OC, IC, KH, KW) become HWIO, matrices (out, in) become (in, out). The
matrix behind a flattening is made to read channels last as well, once, so that no step pays for a transposition. What a product
of matrices reads and gives stays as it is, however many extents it has.
"""

import numpy as np

AXIS = {0: 0, 1: 3, 2: 1, 3: 2}  # where a logical axis of an image lies in NHWC
REDUCTIONS = ("sum", "mean", "max", "argmax")


def roles(problem):
    """{tensor's name: (role, what belongs to it)} of all that is not an image or a plain array: to a matrix, the extents of the image that
    was flattened before it; to the result of a reduction and its cotangent, the dimensions that are gone."""
    found, flattened = {}, {}
    for node in problem["nodes"]:
        inputs = node["inputs"]
        if node["op"] == "flatten":
            flattened[node["output"]] = node["attributes"]["image"]
        if node["op"] == "conv2d":
            found[inputs["w"]] = ("filter", None)
        if node["op"] == "linear":
            found[inputs["w"]] = ("matrix", flattened.get(inputs["x"]))
        if node["op"] in REDUCTIONS:
            found[node["output"]] = ("reduced", node["attributes"]["dims"])
        if node["op"] == "matmul":
            found.update(dict.fromkeys([*inputs.values(), node["output"]], ("product", None)))
    if problem["output"] in found:
        found["dy"] = found[problem["output"]]
    return found


def kept(dims):
    """The axes of an image that a reduction keeps, in the order of files and in that of NHWC."""
    logical = [a for a in AXIS if a not in [d % len(AXIS) for d in dims]]
    return logical, sorted(logical, key=AXIS.get)


def statistics_of(problem):
    """The names of the running statistics, which a step of training writes."""
    return {node["inputs"][n] for node in problem["nodes"] for n in ("running_mean", "running_var") if n in node["inputs"]}


def axis(a, rank=4):
    a = a % rank
    return AXIS[a] if rank == 4 else a


def there(name, value, found):
    """A tensor of a file as the framework wants it."""
    role, what = found.get(name, (None, None))
    if role == "filter":
        value = value.transpose(2, 3, 1, 0)
    elif role == "matrix":
        if what:
            value = value.reshape(-1, *what).transpose(0, 2, 3, 1).reshape(value.shape)
        value = value.T
    elif role == "reduced" and value.ndim + len(what) == len(AXIS):
        logical, physical = kept(what)
        value = value.transpose([logical.index(a) for a in physical])
    elif value.ndim == 4 and role != "product":
        value = value.transpose(0, 2, 3, 1)
    return np.ascontiguousarray(value).reshape(value.shape)  # which else makes a vector of a number


def back(name, value, found):
    """A result, or the gradient of the tensor `name`, as files hold it."""
    role, what = found.get(name, (None, None))
    if role == "filter":
        return value.transpose(3, 2, 0, 1)
    if role == "matrix":
        value = value.T
        return value.reshape(-1, *(what[i] for i in (1, 2, 0))).transpose(0, 3, 1, 2).reshape(value.shape) if what else value
    if role == "reduced" and value.ndim + len(what) == len(AXIS):
        logical, physical = kept(what)
        return value.transpose([physical.index(a) for a in logical])
    return value.transpose(0, 3, 1, 2) if value.ndim == 4 and role != "product" else value
