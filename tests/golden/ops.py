"""The op cases that both frameworks compute: names, parameters and inputs. Layout NCHW; weights OIHW and (out, in).

Padding is [top, left, bottom, right]; stride, dilation and kernel are [height, width].
"""

import itertools

import numpy as np

import golden

_streams = itertools.count(1000)
ELEMENTWISE_X = [-9.5, -3.0, -1.5, -1.0, -0.6, -0.25, -1e-3, 0.0, 1e-3, 0.1, 0.5, 0.75, 1.0, 2.5, 4.0, 12.0]
ELEMENTWISE = "abs cos elu erf exp gelu gelu_tanh leaky_relu neg relu sigmoid silu sin softplus square tanh".split()
POSITIVE = "log reciprocal rsqrt sqrt".split()
BINARY = "add div maximum minimum mul sub".split()


def random(*shape):
    """Fresh float64 numbers in [-1, 1), exact in float32."""
    return golden.symmetric(next(_streams), shape).astype(np.float64)


def case(op, inputs, no_gradient=(), **params):
    """One case; `no_gradient` names the floating inputs that take none."""
    return {"op": op, "params": params, "inputs": inputs, "no_gradient": list(no_gradient)}


def conv2d(x, w, bias=True, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1):
    inputs = {"x": random(*x), "w": random(*w)} | ({"b": random(w[0])} if bias else {})
    lists = {"stride": list(stride), "padding": list(padding), "dilation": list(dilation)}
    return case("conv2d", inputs, groups=groups, **lists)


def pool(op, x, kernel, stride, padding=(0, 0, 0, 0), **params):
    lists = {"kernel": list(kernel), "stride": list(stride), "padding": list(padding)}
    return case(op, {"x": random(*x)}, **lists, **params)


def batch_norm(training, *x):
    channels = x[1]
    inputs = {"x": 3 * random(*x) + 0.5, "gamma": 1 + 0.5 * random(channels), "beta": random(channels)}
    inputs |= {"running_mean": random(channels), "running_var": 1 + 0.5 * random(channels)}
    return case("batch_norm", inputs, ["running_mean", "running_var"], training=training, momentum=0.1, eps=1e-5)


def recurrent(op, gates, steps=3, batch=2, inputs=4, hidden=3):
    named = {"x": random(steps, batch, inputs), "h0": random(batch, hidden)}
    named |= {"c0": random(batch, hidden)} if op == "lstm" else {}
    named |= {"w_ih": random(gates * hidden, inputs), "w_hh": random(gates * hidden, hidden)}
    return case(op, named | {"b_ih": random(gates * hidden), "b_hh": random(gates * hidden)})


CASES = {
    "conv2d": conv2d((2, 3, 6, 5), (4, 3, 3, 3), padding=(1, 1, 1, 1)),
    "conv2d_valid": conv2d((2, 3, 6, 5), (4, 3, 3, 3)),
    "conv2d_stride": conv2d((2, 3, 9, 8), (4, 3, 3, 2), stride=(2, 3)),
    "conv2d_1x1_stride2": conv2d((2, 3, 5, 6), (4, 3, 1, 1), stride=(2, 2)),
    "conv2d_dilation": conv2d((2, 3, 9, 8), (4, 3, 3, 2), dilation=(2, 3), padding=(1, 1, 1, 1)),
    "conv2d_groups": conv2d((2, 4, 5, 5), (6, 2, 3, 3), groups=2, padding=(1, 1, 1, 1)),
    "conv2d_depthwise": conv2d((2, 4, 5, 6), (8, 1, 3, 3), groups=4, padding=(1, 1, 1, 1)),
    "conv2d_asymmetric_padding": conv2d((2, 3, 4, 5), (4, 3, 3, 3), padding=(0, 1, 2, 3)),
    "conv2d_same_stride2": conv2d((2, 3, 8, 6), (4, 3, 3, 3), stride=(2, 2), padding=(0, 0, 1, 1)),
    "conv2d_no_bias": conv2d((2, 3, 5, 5), (4, 3, 3, 3), bias=False),
    "conv2d_everything": conv2d(
        (2, 4, 9, 10), (6, 2, 3, 2), stride=(2, 1), padding=(1, 0, 2, 1), dilation=(2, 3), groups=2
    ),
    "conv_transpose2d": case(
        "conv_transpose2d",
        {"x": random(2, 4, 3, 4), "w": random(4, 3, 3, 3), "b": random(3)},
        stride=[2, 2],
        padding=[1, 1, 1, 1],
        output_padding=[1, 1],
    ),
    "max_pool2d": pool("max_pool2d", (2, 3, 5, 6), (2, 2), (2, 2)),
    "max_pool2d_padding": pool("max_pool2d", (2, 3, 6, 7), (3, 3), (2, 2), (1, 1, 1, 1)),
    "max_pool2d_overlap": pool("max_pool2d", (2, 3, 6, 7), (3, 2), (1, 1)),
    "avg_pool2d": pool("avg_pool2d", (2, 3, 5, 6), (2, 2), (2, 2), count_include_pad=True),
    "avg_pool2d_include_pad": pool("avg_pool2d", (2, 3, 6, 7), (3, 3), (2, 2), (1, 1, 1, 1), count_include_pad=True),
    "avg_pool2d_exclude_pad": pool("avg_pool2d", (2, 3, 6, 7), (3, 3), (2, 2), (1, 1, 1, 1), count_include_pad=False),
    "global_avg_pool": case("global_avg_pool", {"x": random(2, 3, 4, 5)}),
    "pad2d": case("pad2d", {"x": random(2, 3, 3, 4)}, padding=[1, 2, 0, 3], value=0.0),
    "pad2d_value": case("pad2d", {"x": random(2, 3, 3, 4)}, padding=[0, 1, 2, 1], value=1.5),
    "batch_norm_train": batch_norm(True, 3, 4, 2, 3),
    "batch_norm_eval": batch_norm(False, 3, 4, 2, 3),
    "batch_norm_train_2d": batch_norm(True, 6, 4),
    "layer_norm": case("layer_norm", {"x": 3 * random(2, 3, 8), "gamma": random(8), "beta": random(8)}, eps=1e-5),
    "softmax": case("softmax", {"x": 4 * random(3, 7)}, axis=1),
    "softmax_channels": case("softmax", {"x": 4 * random(2, 5, 2, 3)}, axis=1),
    "softmax_large": case("softmax", {"x": 1000 * random(3, 5)}, axis=1),
    "log_softmax": case("log_softmax", {"x": 4 * random(3, 7)}, axis=1),
    "log_softmax_large": case("log_softmax", {"x": 1000 * random(3, 5)}, axis=1),
    "cross_entropy": case("cross_entropy", {"x": 4 * random(4, 5), "labels": np.array([3, 0, 4, 3])}),
    "cross_entropy_large": case("cross_entropy", {"x": 1000 * random(4, 5), "labels": np.array([1, 2, 0, 4])}),
    "mse_loss": case("mse_loss", {"x": random(3, 4), "target": random(3, 4)}),
    "linear": case("linear", {"x": random(3, 5), "w": random(4, 5), "b": random(4)}),
    "matmul": case("matmul", {"x": random(3, 5), "w": random(5, 4)}),
    "matmul_batched": case("matmul", {"x": random(2, 3, 5), "w": random(2, 5, 4)}),
    "embedding": case("embedding", {"w": random(6, 3), "indices": np.array([[1, 5, 1], [0, 1, 4]])}),
    "attention": case(
        "attention", {"q": random(2, 2, 4, 3), "k": random(2, 2, 4, 3), "v": random(2, 2, 4, 3)}, causal=False
    ),
    "attention_causal": case(
        "attention", {"q": random(2, 2, 4, 3), "k": random(2, 2, 4, 3), "v": random(2, 2, 4, 3)}, causal=True
    ),
    "lstm": recurrent("lstm", 4),
    "gru": recurrent("gru", 3),
    "sum_axes": case("sum", {"x": random(2, 3, 4)}, axes=[0, 2]),
    "mean_axes": case("mean", {"x": random(2, 3, 4)}, axes=[1]),
    "max_axis": case("max", {"x": random(2, 3, 4)}, axes=[1]),
}
CASES |= {op: case(op, {"x": np.array(ELEMENTWISE_X)}) for op in ELEMENTWISE}
CASES |= {op: case(op, {"x": np.array([1e-3, 0.1, 0.5, 1.0, 2.5, 7.0])}) for op in POSITIVE}
CASES |= {f"{op}_broadcast": case(op, {"x": random(2, 3, 4), "w": 2 + random(3, 1)}) for op in BINARY}
CASES["leaky_relu"]["params"]["slope"] = 0.01
CASES["elu"]["params"]["alpha"] = 1.0


def cotangent(name, shape):
    """The gradient that comes in from above: fixed by the case's place in the list."""
    return golden.symmetric(2000 + list(CASES).index(name), shape).astype(np.float64)


def differentiable(entry):
    """The names of the inputs of a case that take a gradient."""
    return [n for n, v in entry["inputs"].items() if v.dtype == np.float64 and n not in entry["no_gradient"]]
