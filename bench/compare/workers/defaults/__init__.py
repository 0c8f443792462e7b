"""What a framework does when nothing is said: one file a framework, whose defaults() makes layers and optimizers with nothing but their
sizes, and measures what they do. Here is how that is measured; experiments/defaults.py says what each item means."""

import pathlib
import time

import numpy as np

# More inputs than outputs, so that schemes that look at both differ from those that look at one.
CONVOLUTION, KERNEL, LINEAR = (128, 32), 3, (512, 128)
LAYERS = 64  # so that the largest of their biases is near the bound
FANS = CONVOLUTION[0] * KERNEL * KERNEL, LINEAR[0]


def of_layers(name, make, fan_in):
    """Of layers, each (weight, bias or None): bounds and deviation in units of 1 / sqrt(fan_in). Where the bound is sqrt(3) deviations,
    the distribution is uniform."""
    unit, layers = float(np.sqrt(fan_in)), [make() for _ in range(LAYERS)]
    weights, biases = np.array([w for w, _ in layers]), np.array([b for _, b in layers if b is not None])
    found = {f"{name}_weight_bound": float(np.abs(weights).max()) * unit, f"{name}_weight_deviation": float(weights.std()) * unit}
    return {**found, f"{name}_bias_bound": float(np.abs(biases).max()) * unit} if biases.size else found


def nearest(step, expected):
    """The name of the expected number that a step comes to."""
    return next((name for name, value in expected.items() if abs(step - value) <= 0.01 * value), f"other: a step of {step:.3g}")


def of_adam(step, beta2):
    """`step(g, epsilon)` is how far a first step goes at a learning rate of 1; with both at 1 the place of epsilon decides."""
    root = float(np.sqrt(1 - beta2))
    expected = {"beside the corrected root": 0.5, "beside the root before its correction": root / (1 + root)}
    return {"adam_epsilon_place": nearest(step(1.0, 1.0), expected)}


def of_rmsprop(step):
    """The decay from a gradient beside which epsilon and the first mean square are nothing, the rest from one that they outweigh."""
    decay = 1 - 1 / step(1e6, None) ** 2
    expected = {}
    for first in (0, 1):
        v = decay * first + 1 - decay
        expected[first, "beside the root"], expected[first, "under the root"] = 1 / (np.sqrt(v) + 1), 1 / np.sqrt(v + 1)
    found = nearest(step(1.0, 1.0), expected)
    first, place = found if isinstance(found, tuple) else (None, found)
    return {"rmsprop_decay": decay, "rmsprop_first": first, "rmsprop_epsilon_place": place}


def of_batch_norm(train):
    """`train(a, b)` is what a new layer does to a channel of two images: ([y of a, y of b], running mean, running variance)."""
    _, mean, variance = train(0.0, 2.0)  # of mean 1, of variance 1 by 2 elements and 2 by 1
    of_batch = (variance - (1 - mean)) / mean
    d = 1e-4
    y = abs(train(-d, d)[0][1])
    return {"batch_norm_epsilon": (d / y) ** 2 - d * d, "batch_norm_momentum": mean,
            "batch_norm_running_var": nearest(of_batch, {"of the batch": 1.0, "unbiased": 2.0})}


def of_dropout(train, use):
    """Dropout of one half, of ones: what an element is that is kept."""
    ones = np.ones(1000, np.float32)
    return {"dropout_kept": float(np.max(train(ones))), "dropout_in_use": float(np.max(use(ones)))}


def of_arithmetic(multiply, matmul):
    """Denormal results in arrays that are large enough for all threads, and products whose factors need more digits than TF32 has."""
    small = np.full(1 << 22, 1e-20, np.float32)
    zeros = np.count_nonzero(np.asarray(multiply(small, small)) == 0) / small.size
    a, b = np.full((64, 64), 1 + 2.0 ** -12, np.float32), np.ones((64, 64), np.float32)
    exact = np.asarray(matmul(a, b)).flat[0] == 64 * (1 + 2.0 ** -12)
    return {"denormals": {0.0: "kept", 1.0: "flushed to 0"}.get(zeros, "flushed by some threads"), "product": "f32" if exact else "rounded",
            "threads": working_threads(matmul)}


def times_of_threads():
    """{thread: nanoseconds on a processor} of this process."""
    found = {}
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            found[task.name] = int((task / "schedstat").read_text().split()[0])
        except OSError:  # it has just ended
            pass
    return found


def working_threads(matmul, seconds=0.5):
    """How many threads share in a large product: those that did a quarter of what the busiest did."""
    a = np.ones((2048, 2048), np.float32)  # bringing them there is little beside the product
    np.asarray(matmul(a, a))
    before, end = times_of_threads(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        np.asarray(matmul(a, a))
    did = [t - before.get(name, 0) for name, t in times_of_threads().items()]
    return sum(t > max(did) / 4 for t in did)
