"""TensorFlow's logits, losses and gradients of alexnet and vgg16, NHWC inside: added to networks.safetensors.

Fails unless they agree with PyTorch's to 1e-9. The features are transposed to NCHW before they are flattened, so that
both frameworks compute the same network from the same weights.
"""

import numpy as np
import tensorflow as tf

import golden
import networks

tf.config.threading.set_intra_op_parallelism_threads(2)


def forward(layers, values, x):
    """The network on NHWC images; `values` are the parameters in order, HWIO and (in, out)."""
    values = iter(values)
    for i, (kind, *rest) in enumerate(layers):
        if kind == "conv":
            x = tf.nn.relu(tf.nn.conv2d(x, next(values), rest[1], "VALID") + next(values))
        elif kind == "pad":
            x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
        elif kind == "pool":
            x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        else:
            x = tf.transpose(x, [0, 3, 1, 2]) if len(x.shape) == 4 else x
            x = tf.matmul(tf.reshape(x, [x.shape[0], -1]), next(values)) + next(values)
            x = x if i + 1 == len(layers) else tf.nn.relu(x)
    return x


def to_tf(value):
    """OIHW to HWIO, (out, in) to (in, out), float64."""
    return tf.constant(np.transpose(value, (2, 3, 1, 0) if value.ndim == 4 else None), tf.float64)


def from_tf(gradient):
    """HWIO to OIHW, (in, out) to (out, in)."""
    return np.transpose(gradient.numpy(), (3, 2, 0, 1) if len(gradient.shape) == 4 else None)


def run(layers, names, values, images, labels):
    """One forward and backward in float64, and its record."""
    x = tf.constant(np.transpose(images, (0, 2, 3, 1)), tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(values)
        logits = forward(layers, values, x)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    gradients = tape.gradient(loss, values)
    return {
        "logits": logits.numpy(),
        "loss": float(loss),
        "gradients": {n: networks.summary(p, from_tf(g)) for p, (n, g) in enumerate(zip(names, gradients))},
    }


for name, (layers, *_) in networks.NETWORKS.items():
    record = golden.load("networks.safetensors")[name]
    made = networks.parameters(name)
    names, values = [n for n, _ in made], [to_tf(v) for _, v in made]
    sizes = {n: v.size for n, v in made}
    for batch, (images, labels, _) in networks.batches(name).items():
        entry = record["batches"][batch]
        entry["tensorflow"] = run(layers, names, values, images, labels)
        error = networks.compare(f"{name}, {batch}", entry["tensorflow"], entry["torch"], sizes)
        print(f"{name}, {batch}: TensorFlow and PyTorch agree to {error:.2g}")
    golden.update("networks.safetensors", **{name: record})
