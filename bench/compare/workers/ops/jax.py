"""The ops of the catalogue in JAX, on NHWC images: functions of {input: tensor} and the attributes."""

import jax
import jax.numpy as jnp

from ..channels_last import axis


def sides(a):
    top, bottom, left, right = a["padding"]
    return (top, bottom), (left, right)


def conv2d(t, a):
    y = jax.lax.conv_general_dilated(t["x"], t["w"], a["stride"], sides(a), rhs_dilation=a["dilation"],
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=a["groups"])
    return y + t["b"] if "b" in t else y


def pool(t, a, first, combine):
    window = jax.lax.reduce_window(t["x"], first, combine, (1, *a["kernel"], 1), (1, *a["stride"], 1), ((0, 0), *sides(a), (0, 0)))
    return window


def batch_norm(t, a):
    """Statistics are f32 in any dtype, as Flax has them; the running ones are replaced in t by the new ones."""
    x = t["x"].astype(jnp.float32)
    if a.get("train", True):
        mean, var = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
        for name, value in (("running_mean", mean), ("running_var", var)):
            if name in t:
                t[name] = (1 - a["momentum"]) * t[name] + a["momentum"] * value
    else:
        mean, var = t["running_mean"], t["running_var"]
    return ((x - mean) * (jax.lax.rsqrt(var + a["epsilon"]) * t["w"]) + t["b"]).astype(t["x"].dtype)


def linear(t, a):
    y = t["x"] @ t["w"]
    return y + t["b"] if "b" in t else y


def part(t, a):
    order = sorted(range(len(a["begin"])), key=lambda i: axis(i, len(a["begin"])))
    begin = [a["begin"][i] for i in order]
    return jax.lax.slice(t["x"], begin, [b + a["extents"][i] for b, i in zip(begin, order)])


def permute(t, a):
    if len(a["dims"]) == 4:
        logical = [axis(d) for d in a["dims"]]
        return jnp.transpose(t["x"], [logical[i] for i in (0, 2, 3, 1)])
    return jnp.transpose(t["x"], a["dims"])


def cross_entropy(t, a):
    log = jax.nn.log_softmax(t["x"].astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(log, t["labels"][:, None], 1))


def dims(t, a):
    return tuple(axis(d, t["x"].ndim) for d in a["dims"]) or None


def turned(x, yes):
    return jnp.swapaxes(x, -1, -2) if yes else x


OPS = {
    "conv2d": conv2d, "batch_norm": batch_norm, "linear": linear, "slice": part, "permute": permute, "cross_entropy": cross_entropy,
    "max_pool2d": lambda t, a: pool(t, a, -jnp.inf, jax.lax.max),
    "avg_pool2d": lambda t, a: pool(t, a, 0.0, jax.lax.add) / (a["kernel"][0] * a["kernel"][1]),
    "pad2d": lambda t, a: jnp.pad(t["x"], ((0, 0), *sides(a), (0, 0))),
    "matmul": lambda t, a: turned(t["a"], a["transpose_a"]) @ turned(t["b"], a["transpose_b"]),
    "relu": lambda t, a: jax.nn.relu(t["x"]), "gelu": lambda t, a: jax.nn.gelu(t["x"], False), "silu": lambda t, a: jax.nn.silu(t["x"]),
    "gelu_tanh": lambda t, a: jax.nn.gelu(t["x"], True), "softplus": lambda t, a: jax.nn.softplus(t["x"]),
    "sigmoid": lambda t, a: jax.nn.sigmoid(t["x"]), "tanh": lambda t, a: jnp.tanh(t["x"]), "exp": lambda t, a: jnp.exp(t["x"]),
    "log": lambda t, a: jnp.log(t["x"]), "sqrt": lambda t, a: jnp.sqrt(t["x"]), "square": lambda t, a: jnp.square(t["x"]),
    "abs": lambda t, a: jnp.abs(t["x"]), "add": lambda t, a: t["x"] + t["other"], "mul": lambda t, a: t["x"] * t["other"],
    "div": lambda t, a: t["x"] / t["other"], "maximum": lambda t, a: jnp.maximum(t["x"], t["other"]),
    "sum": lambda t, a: jnp.sum(t["x"], dims(t, a)), "mean": lambda t, a: jnp.mean(t["x"], dims(t, a)),
    "max": lambda t, a: jnp.max(t["x"], dims(t, a)), "argmax": lambda t, a: jnp.argmax(t["x"], dims(t, a)[0]),
    "softmax": lambda t, a: jax.nn.softmax(t["x"], axis(a["dim"], t["x"].ndim)),
    "log_softmax": lambda t, a: jax.nn.log_softmax(t["x"], axis(a["dim"], t["x"].ndim)),
    "mse": lambda t, a: jnp.mean(jnp.square(t["x"] - t["other"])),
    "concat": lambda t, a: jnp.concatenate((t["x"], t["other"]), axis(a["dim"], t["x"].ndim)),
    "index_select": lambda t, a: jnp.take(t["x"], t["index"], axis(a["dim"], t["x"].ndim)),
    "flatten": lambda t, a: t["x"].reshape(t["x"].shape[0], -1), "subsample": lambda t, a: t["x"][:, ::a["stride"], ::a["stride"]],
    "pad_channels": lambda t, a: jnp.pad(t["x"], ((0, 0), (0, 0), (0, 0), (a["before"], a["after"]))),
}
