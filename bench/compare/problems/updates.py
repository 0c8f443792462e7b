"""An optimizer's update alone: a network's parameters, and gradients that stay the same from step to step."""

import math

from . import Problem, Tensor
from .networks import built

CONVENTIONS = ("pytorch", "keras", "tensorflow1")  # whose formula, and whose defaults for all but the learning rate
OPTIMIZERS = {"sgd": 0.01, "rmsprop": 1e-3, "adam": 1e-3}  # and their learning rates
# What must move of each parameter, in arrays of its size: it and its states are read and written, its gradient is read.
ARRAYS = {"sgd": 3, "rmsprop": 5, "adam": 7}
STEPS = 3  # after so many steps the parameters are held against the reference

# Gradients of some parameters are so small that where an epsilon stands decides, those of others so large that the decay does. The first
# parameters are smaller than any update, so that what is compared afterwards is the updates.
SCALES = (1.0, 1e-3, 1e-6)
FIRST = 1e-8


def problem_of(network, shapes, optimizer, convention):
    """The update of these parameters: {name: shape}."""
    inputs = {name: Tensor(shape, -FIRST, FIRST) for name, shape in shapes.items()}
    for i, (name, shape) in enumerate(shapes.items()):
        scale = SCALES[i % len(SCALES)]
        inputs["d" + name] = Tensor(shape, -scale, scale)
    count = sum(math.prod(shape) for shape in shapes.values())
    node = {"op": "update", "inputs": {}, "output": "", "attributes": {"convention": convention, "steps": STEPS}}
    return Problem("op", optimizer, f"{network}.{convention}", "update", (node,), inputs, "", tuple(shapes),
                   bytes=4.0 * count * ARRAYS[optimizer], optimizer=optimizer, learning_rate=OPTIMIZERS[optimizer])


def update_problem(network, optimizer, convention):
    return problem_of(network, built(network).weights, optimizer, convention)
