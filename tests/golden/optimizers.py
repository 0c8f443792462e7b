"""The inputs of the optimizer goldens: initial parameters, gradients, and the run of one case."""

import inspect

import numpy as np

import golden

SHAPES = {"a": (3, 4), "b": (5,)}
STEPS = 10
LR_CHANGE_STEP = 5  # steps count from 0: the sixth step is the first with the new learning rate
LR_CHANGE_FACTOR = 0.1


def initial():
    """The parameters before the first step, float64."""
    return [golden.symmetric(p, shape).astype(np.float64) for p, shape in enumerate(SHAPES.values())]


def gradients():
    """The gradients of every step, float64: magnitudes from 1 to 1e-3, and a last element that starts as exact zero."""
    steps = []
    for t in range(STEPS):
        step = [golden.symmetric(100 + 2 * t + p, shape).astype(np.float64) for p, shape in enumerate(SHAPES.values())]
        for g in step:
            g.reshape(-1)[:] *= 10.0 ** -(np.arange(g.size) % 4)
            if t < 3:
                g.reshape(-1)[-1] = 0.0
        steps.append(step)
    return steps


def defaults(classes):
    """The default of every argument of every optimizer class; those without a default are left out."""

    def arguments(cls):
        parameters = inspect.signature(cls.__init__).parameters
        return {n: p.default for n, p in parameters.items() if p.default is not inspect.Parameter.empty}

    return {cls.__name__: arguments(cls) for cls in classes}


def default_texts(classes):
    """The same as the golden file has them."""
    return {name: golden.text(arguments) for name, arguments in defaults(classes).items()}


def by_step(values):
    """The tensors of every step, stacked along a new first dimension, by the names of the parameters."""
    return dict(zip(SHAPES, map(np.stack, zip(*values))))


def run_case(optimizer, arguments, lr, lr_change, step, state):
    """Drives `step(gradients, lr) -> parameters` through all steps and returns the record of the case."""
    rates = [lr * (LR_CHANGE_FACTOR if lr_change and t >= LR_CHANGE_STEP else 1) for t in range(STEPS)]
    values = [[np.array(v) for v in step(g, r)] for g, r in zip(gradients(), rates)]
    return {
        "optimizer": optimizer,
        "arguments": golden.text(arguments),
        "lr": np.array(rates, np.float64),
        "steps": by_step(values),
        "state": {n: dict(zip(SHAPES, [np.array(v, np.float64) for v in vs])) for n, vs in state().items()},
    }
