"""The ops of the catalogue in TensorFlow, on NHWC images: functions of {input: tensor} and the attributes."""

import tensorflow as tf

from ..channels_last import axis


def padded(x, a, value=0.0):
    top, bottom, left, right = a["padding"]
    return tf.pad(x, [[0, 0], [top, bottom], [left, right], [0, 0]], constant_values=value) if any(a["padding"]) else x


def explicit(a):
    top, bottom, left, right = a["padding"]
    return [[0, 0], [top, bottom], [left, right], [0, 0]] if any(a["padding"]) else "VALID"


def conv2d(t, a):
    if a["groups"] != 1 and a["groups"] == t["x"].shape[3]:  # one channel a group, with the same number of filters each
        w = tf.reshape(t["w"], [*t["w"].shape[:2], a["groups"], -1])  # TensorFlow has the filters of a channel behind each other, too
        y = tf.nn.depthwise_conv2d(padded(t["x"], a), w, [1, *a["stride"], 1], "VALID", dilations=a["dilation"])  # 2.21 dies of explicit padding
    else:
        y = tf.nn.conv2d(t["x"], t["w"], a["stride"], explicit(a), dilations=a["dilation"])
    return tf.nn.bias_add(y, t["b"]) if "b" in t else y


def max_pool2d(t, a):
    return tf.nn.max_pool2d(t["x"], a["kernel"], a["stride"], explicit(a))


def max_pool2d_by_xla(t, a):
    """XLA takes no padding of pooling."""
    return tf.nn.max_pool2d(padded(t["x"], a, t["x"].dtype.min), a["kernel"], a["stride"], "VALID")


def avg_pool2d(t, a):
    return tf.nn.avg_pool2d(padded(t["x"], a), a["kernel"], a["stride"], "VALID")


def batch_norm(t, a):
    """Running statistics are variables, and are updated in place."""
    train, statistics = a.get("train", True), {}
    if "running_mean" in t:
        statistics = {"mean": t["running_mean"], "variance": t["running_var"], "exponential_avg_factor": a["momentum"] if train else 1.0}
    y, *new = tf.compat.v1.nn.fused_batch_norm(t["x"], t["w"], t["b"], epsilon=a["epsilon"], is_training=train, **statistics)
    if statistics and train:
        t["running_mean"].assign(new[0])
        t["running_var"].assign(new[1])
    return y


def linear(t, a):
    y = tf.matmul(t["x"], t["w"])
    return tf.nn.bias_add(y, t["b"]) if "b" in t else y


def part(t, a):
    order = sorted(range(len(a["begin"])), key=lambda i: axis(i, len(a["begin"])))
    return tf.slice(t["x"], [a["begin"][i] for i in order], [a["extents"][i] for i in order])


def permute(t, a):
    if len(a["dims"]) == 4:  # what stands for the logical (N, C, H, W) is NHWC before and after
        logical = [axis(d) for d in a["dims"]]
        return tf.transpose(t["x"], [logical[i] for i in (0, 2, 3, 1)])
    return tf.transpose(t["x"], a["dims"])


def cross_entropy(t, a):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(t["labels"], tf.cast(t["x"], tf.float32)))


def dims(t, a):
    return [axis(d, len(t["x"].shape)) for d in a["dims"]] or None


OPS = {
    "conv2d": conv2d, "max_pool2d": max_pool2d, "avg_pool2d": avg_pool2d, "batch_norm": batch_norm, "linear": linear, "slice": part,
    "permute": permute, "cross_entropy": cross_entropy, "pad2d": lambda t, a: padded(t["x"], a),
    "matmul": lambda t, a: tf.matmul(t["a"], t["b"], a["transpose_a"], a["transpose_b"]),
    "relu": lambda t, a: tf.nn.relu(t["x"]), "gelu": lambda t, a: tf.nn.gelu(t["x"]), "silu": lambda t, a: tf.nn.silu(t["x"]),
    "gelu_tanh": lambda t, a: tf.nn.gelu(t["x"], approximate=True), "softplus": lambda t, a: tf.nn.softplus(t["x"]),
    "sigmoid": lambda t, a: tf.sigmoid(t["x"]), "tanh": lambda t, a: tf.tanh(t["x"]), "exp": lambda t, a: tf.exp(t["x"]),
    "log": lambda t, a: tf.math.log(t["x"]), "sqrt": lambda t, a: tf.sqrt(t["x"]), "square": lambda t, a: tf.square(t["x"]),
    "abs": lambda t, a: tf.abs(t["x"]), "add": lambda t, a: t["x"] + t["other"], "mul": lambda t, a: t["x"] * t["other"],
    "div": lambda t, a: t["x"] / t["other"], "maximum": lambda t, a: tf.maximum(t["x"], t["other"]),
    "sum": lambda t, a: tf.reduce_sum(t["x"], dims(t, a)), "mean": lambda t, a: tf.reduce_mean(t["x"], dims(t, a)),
    "max": lambda t, a: tf.reduce_max(t["x"], dims(t, a)), "argmax": lambda t, a: tf.argmax(t["x"], dims(t, a)[0]),
    "softmax": lambda t, a: tf.nn.softmax(t["x"], axis(a["dim"], len(t["x"].shape))),
    "log_softmax": lambda t, a: tf.nn.log_softmax(t["x"], axis(a["dim"], len(t["x"].shape))),
    "mse": lambda t, a: tf.reduce_mean(tf.math.squared_difference(t["x"], t["other"])),
    "concat": lambda t, a: tf.concat([t["x"], t["other"]], axis(a["dim"], len(t["x"].shape))),
    "index_select": lambda t, a: tf.gather(t["x"], t["index"], axis=axis(a["dim"], len(t["x"].shape))),
    "flatten": lambda t, a: tf.reshape(t["x"], [t["x"].shape[0], -1]),
    "subsample": lambda t, a: t["x"][:, ::a["stride"], ::a["stride"], :],
    "pad_channels": lambda t, a: tf.pad(t["x"], [[0, 0], [0, 0], [0, 0], [a["before"], a["after"]]]),
}
OPS_OF_XLA = {**OPS, "max_pool2d": max_pool2d_by_xla}
