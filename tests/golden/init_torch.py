"""PyTorch's initializers: section `torch` of init.safetensors."""

import math

import numpy as np
import torch
from torch import nn

import golden
import init
from init import describe

torch.manual_seed(1)
torch.set_num_threads(2)


def layer(inputs, outputs, kernel, groups):
    """The facts of one layer: its default weight and bias, and the weight under the named initializers."""
    fan_in, fan_out = init.fans(inputs, outputs, kernel, groups)

    def make():
        return nn.Conv2d(inputs, outputs, kernel, groups=groups) if kernel else nn.Linear(inputs, outputs)

    def drawn(function, **arguments):
        return lambda: function(torch.empty_like(weight), **arguments)

    weight = make().weight.detach()
    bound = 1 / math.sqrt(fan_in)
    half = (fan_in + fan_out) / 2
    return {
        "weight_shape": np.array(weight.shape),
        "groups": groups,
        "fans": np.array([fan_in, fan_out]),
        "weight": describe(lambda: make().weight.detach(), "uniform", bound=bound),
        "bias": describe(lambda: make().bias.detach(), "uniform", bound=bound),
        "xavier_uniform_": describe(drawn(nn.init.xavier_uniform_), "uniform", bound=math.sqrt(3 / half)),
        "xavier_normal_": describe(drawn(nn.init.xavier_normal_), "normal", std=math.sqrt(1 / half)),
        "kaiming_uniform_relu": describe(
            drawn(nn.init.kaiming_uniform_, nonlinearity="relu"), "uniform", bound=math.sqrt(6 / fan_in)
        ),
        "kaiming_normal_relu": describe(
            drawn(nn.init.kaiming_normal_, nonlinearity="relu"), "normal", std=math.sqrt(2 / fan_in)
        ),
        "kaiming_normal_relu_fan_out": describe(
            drawn(nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu"), "normal", std=math.sqrt(2 / fan_out)
        ),
    }


batch_norm = nn.BatchNorm2d(64)
golden.update(
    "init.safetensors",
    torch={
        "layers": {name: layer(*spec) for name, *spec in init.LAYERS},
        "embedding": {"weight": describe(lambda: nn.Embedding(1000, 64).weight.detach(), "normal", std=1.0)},
        "lstm_64_hidden": {
            n: describe(lambda n=n: getattr(nn.LSTM(32, 64), n).detach(), "uniform", bound=1 / 8)
            for n in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        },
        "batch_norm": {
            n: describe(lambda n=n: getattr(batch_norm, n).detach(), "constant", value=v)
            for n, v in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0))
        },
    },
)
