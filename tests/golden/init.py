"""What the initializer goldens share: the layers asked about, and how a sample is summed up."""

import math

import numpy as np

import golden

# (name, inputs, outputs, kernel height and width or None for Linear/Dense, groups)
LAYERS = [
    ("conv_3_64_3x3", 3, 64, (3, 3), 1),
    ("conv_64_128_3x3", 64, 128, (3, 3), 1),
    ("conv_16_48_5x1", 16, 48, (5, 1), 1),
    ("conv_32_64_3x3_groups4", 32, 64, (3, 3), 4),
    ("linear_400_120", 400, 120, None, 1),
    ("linear_8_512", 8, 512, None, 1),
]
SAMPLES = 200_000  # at least so many numbers behind each minimum, maximum and variance


def fans(inputs, outputs, kernel, groups):
    """fan_in and fan_out of a weight, as both frameworks compute them from the weight's shape."""
    area = math.prod(kernel or (1,))
    return inputs // groups * area, outputs * area


def describe(draw, distribution, **parameters):
    """Draws until the sample is big enough; records the stated distribution and the sample's facts, and checks them."""
    parts, count = [], 0
    while count < (1 if distribution == "constant" else SAMPLES):
        parts.append(np.asarray(draw(), np.float64).reshape(-1))
        count += parts[-1].size
    x = np.concatenate(parts)
    stated = f"{distribution} {golden.text(parameters)}"
    facts = {"distribution": stated, "sample": np.array([x.size, x.mean(), x.var(), x.min(), x.max()])}
    if distribution == "constant":
        low = high = parameters["value"]
        std = 0.0
    elif distribution == "uniform":
        low, high = -parameters["bound"], parameters["bound"]
        std = high / math.sqrt(3)
        golden.assert_close("uniform: the sample reaches its bounds", [x.min(), x.max()], [low, high], 1e-3, high)
    else:
        low, high = -parameters.get("bound", math.inf), parameters.get("bound", math.inf)
        std = parameters["std"]
    slack = 1e-6 * high if math.isfinite(high) else 0.0
    assert low - slack <= x.min() and x.max() <= high + slack, facts
    golden.assert_close("standard deviation", x.std(), std, 0.01, std or 1.0)
    golden.assert_close("mean", x.mean(), parameters.get("value", 0.0), 0.01, std or 1.0)
    return facts
