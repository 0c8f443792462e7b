"""TensorFlow against PyTorch on the op cases: fails above 1e-12. Sections `tensorflow_error` and `keras_batch_norm`.

TensorFlow on a CPU has no gradients of grouped or dilated convolutions, so these are composed here of plain ones; and
some of its functions round constants to float32 (leaky_relu's slope, gelu's), so these are written out.
"""

import keras
import numpy as np
import tensorflow as tf

import golden
import ops

keras.config.set_floatx("float64")
TOLERANCE = 1e-12


def nhwc(x):
    return tf.transpose(x, [0, 2, 3, 1])


def nchw(x):
    return tf.transpose(x, [0, 3, 1, 2])


def spatial(padding):
    """TensorFlow's explicit padding of an NCHW tensor."""
    top, left, bottom, right = padding
    return [[0, 0], [0, 0], [top, bottom], [left, right]]


def dilated(w, axis, dilation):
    """The weight with dilation - 1 zeros between its taps along an axis."""
    taps = tf.split(w, w.shape[axis], axis)
    gap = [tf.zeros_like(taps[0])] * (dilation - 1)
    return tf.concat([part for tap in taps for part in (tap, *gap)][: len(taps) * dilation - dilation + 1], axis)


def conv2d(x, w, b=None, *, stride, padding, dilation, groups):
    x = tf.pad(x, spatial(padding))
    w = dilated(dilated(w, 2, dilation[0]), 3, dilation[1])
    pairs = zip(tf.split(nhwc(x), groups, 3), tf.split(tf.transpose(w, [2, 3, 1, 0]), groups, 3))
    y = nchw(tf.concat([tf.nn.conv2d(xg, wg, stride, "VALID") for xg, wg in pairs], 3))
    return y if b is None else y + b[:, None, None]


def conv_transpose2d(x, w, b, *, stride, padding, output_padding):
    size = [
        (x.shape[2 + i] - 1) * stride[i] - padding[i] - padding[2 + i] + w.shape[2 + i] + output_padding[i]
        for i in (0, 1)
    ]
    (top, bottom), (left, right) = spatial(padding)[2:]
    y = tf.nn.conv2d_transpose(
        nhwc(x),
        tf.transpose(w, [2, 3, 1, 0]),
        [x.shape[0], *size, w.shape[1]],
        stride,
        [[0, 0], [top, bottom], [left, right], [0, 0]],
    )
    return nchw(y) + b[:, None, None]


def max_pool2d(x, *, kernel, stride, padding):
    low = tf.constant(-np.inf, tf.float64)
    return nchw(tf.nn.max_pool2d(nhwc(tf.pad(x, spatial(padding), constant_values=low)), kernel, stride, "VALID"))


def avg_pool2d(x, *, kernel, stride, padding, count_include_pad):
    def mean(v):
        return nchw(tf.nn.avg_pool2d(nhwc(tf.pad(v, spatial(padding))), kernel, stride, "VALID"))

    return mean(x) if count_include_pad else mean(x) / mean(tf.ones_like(x))


def batch_norm(x, gamma, beta, running_mean, running_var, *, training, momentum, eps):
    axes = [a for a in range(len(x.shape)) if a != 1]
    mean, var = tf.nn.moments(x, axes) if training else (running_mean, running_var)
    expand = [1, -1] + [1] * (len(x.shape) - 2)
    mean, var, gamma, beta = (tf.reshape(v, expand) for v in (mean, var, gamma, beta))
    return tf.nn.batch_normalization(x, mean, var, beta, gamma, tf.constant(eps, tf.float64))


def layer_norm(x, gamma, beta, *, eps):
    mean, var = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, var, beta, gamma, tf.constant(eps, tf.float64))


def attention(q, k, v, *, causal):
    scores = tf.matmul(q, k, transpose_b=True) / tf.sqrt(tf.constant(q.shape[-1], tf.float64))
    if causal:
        scores += np.triu(np.full(scores.shape[-2:], -np.inf), 1)
    return tf.matmul(tf.nn.softmax(scores), v)


def lstm(x, h, c, w_ih, w_hh, b_ih, b_hh):
    ys = []
    for xt in tf.unstack(x):
        i, f, g, o = tf.split(xt @ tf.transpose(w_ih) + b_ih + h @ tf.transpose(w_hh) + b_hh, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        ys.append(h)
    return tf.stack(ys)


def gru(x, h, w_ih, w_hh, b_ih, b_hh):
    ys = []
    for xt in tf.unstack(x):
        xr, xz, xn = tf.split(xt @ tf.transpose(w_ih) + b_ih, 3, 1)
        hr, hz, hn = tf.split(h @ tf.transpose(w_hh) + b_hh, 3, 1)
        z = tf.sigmoid(xz + hz)
        h = (1 - z) * tf.tanh(xn + tf.sigmoid(xr + hr) * hn) + z * h
        ys.append(h)
    return tf.stack(ys)


def gelu_tanh(x):
    return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)))


OPS = {
    "conv2d": conv2d,
    "conv_transpose2d": conv_transpose2d,
    "max_pool2d": max_pool2d,
    "avg_pool2d": avg_pool2d,
    "global_avg_pool": lambda x: tf.reduce_mean(x, [2, 3], keepdims=True),
    "pad2d": lambda x, padding, value: tf.pad(x, spatial(padding), constant_values=tf.constant(value, tf.float64)),
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "softmax": lambda x, axis: tf.nn.softmax(x, axis),
    "log_softmax": lambda x, axis: tf.nn.log_softmax(x, axis),
    "cross_entropy": lambda x, labels: tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)),
    "mse_loss": lambda x, target: tf.reduce_mean(tf.math.squared_difference(x, target)),
    "linear": lambda x, w, b: tf.matmul(x, w, transpose_b=True) + b,
    "matmul": tf.matmul,
    "embedding": lambda w, indices: tf.gather(w, indices),
    "attention": attention,
    "lstm": lstm,
    "gru": gru,
    "sum": lambda x, axes: tf.reduce_sum(x, axes),
    "mean": lambda x, axes: tf.reduce_mean(x, axes),
    "max": lambda x, axes: tf.reduce_max(x, axes),
    "gelu": lambda x: 0.5 * x * (1 + tf.math.erf(x / np.sqrt(2))),
    "gelu_tanh": gelu_tanh,
    "leaky_relu": lambda x, slope: tf.where(x > 0, x, slope * x),
    "elu": lambda x, alpha: tf.nn.elu(x),
    "silu": tf.nn.silu,
    "softplus": tf.nn.softplus,
    "relu": tf.nn.relu,
    "div": tf.divide,
    "mul": tf.multiply,
    "neg": tf.negative,
    "sub": tf.subtract,
}


def check(name, entry, want):
    """Runs one case, compares it with PyTorch's and returns the largest error."""
    inputs = {n: tf.constant(v) for n, v in entry["inputs"].items()}
    op = OPS.get(entry["op"]) or getattr(tf.math, entry["op"])
    wanted = ops.differentiable(entry)
    with tf.GradientTape() as tape:
        tape.watch([inputs[n] for n in wanted])
        y = op(*inputs.values(), **entry["params"])
    dy = tf.constant(ops.cotangent(name, y.shape))
    gradients = tape.gradient(y, [inputs[n] for n in wanted], dy)
    errors = [golden.assert_close(f"{name}: y", y, want["outputs"]["y"], TOLERANCE)]
    for n, g in zip(wanted, gradients):
        g = tf.convert_to_tensor(g)
        errors.append(golden.assert_close(f"{name}: d{n}", g, want["gradients"][n], TOLERANCE))
    return max(errors)


def check_same(want):
    """TensorFlow's SAME padding at stride 2 is the asymmetric padding of the case `conv2d_same_stride2`."""
    x, w, b = (want["inputs"][n] for n in "xwb")
    y = nchw(tf.nn.conv2d(nhwc(x), tf.transpose(w, [2, 3, 1, 0]), 2, "SAME")) + b[:, None, None]
    golden.assert_close("SAME", y, want["outputs"]["y"], TOLERANCE)


def keras_batch_norm(entry, training, momentum=0.99, eps=1e-3):
    """Keras' layer on the inputs of a PyTorch case: its own epsilon, momentum and biased running variance."""
    values = entry["inputs"]
    layer = keras.layers.BatchNormalization(axis=1, momentum=momentum, epsilon=eps)
    layer.build(values["x"].shape)
    layer.set_weights([values[n] for n in ("gamma", "beta", "running_mean", "running_var")])
    x, dy = tf.constant(values["x"]), tf.constant(entry["dy"])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=training)
    gradients = tape.gradient(y, [x, *layer.trainable_variables], dy)
    outputs = {"y": y}
    if training:
        outputs |= {"running_mean": layer.moving_mean, "running_var": layer.moving_variance}
    return {
        "op": "batch_norm",
        "params": golden.text({"training": training, "momentum": momentum, "eps": eps}),
        "inputs": entry["inputs"],
        "outputs": {n: v.numpy() for n, v in outputs.items()},
        "dy": entry["dy"],
        "gradients": {n: g.numpy() for n, g in zip(("x", "gamma", "beta"), gradients)},
    }


cases = golden.load("ops.safetensors")["cases"]
check_same(cases["conv2d_same_stride2"])
golden.update(
    "ops.safetensors",
    tensorflow_error={name: check(name, entry, cases[name]) for name, entry in ops.CASES.items()},
    keras_batch_norm={
        "batch_norm_train": keras_batch_norm(cases["batch_norm_train"], True),
        "batch_norm_eval": keras_batch_norm(cases["batch_norm_eval"], False),
        "batch_norm_train_2d": keras_batch_norm(cases["batch_norm_train_2d"], True),
    },
)
