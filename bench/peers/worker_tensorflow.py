"""Training steps in TensorFlow: eager, tf.function, or XLA, with a hand-written step and NHWC tensors."""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

from networks import NETWORKS
from protocol import serve


class Network:
    def __init__(self, model, weights):
        self.convolutions, self.linears, _ = NETWORKS[model]
        self.w = {}
        for name, value in weights.items():
            if name.endswith("weight"):  # OIHW -> HWIO, (out, in) -> (in, out)
                value = value.transpose(2, 3, 1, 0) if value.ndim == 4 else value.T
            self.w[name] = tf.Variable(np.ascontiguousarray(value))
        self.variables = list(self.w.values())

    def __call__(self, x, dtype):
        cast = lambda name: tf.cast(self.w[name], dtype)
        x = tf.cast(x, dtype)
        for name, _, _, stride, pooled in self.convolutions:
            x = tf.nn.conv2d(x, cast(name + ".weight"), stride, "VALID")
            x = tf.nn.relu(tf.nn.bias_add(x, cast(name + ".bias")))
            x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
            if pooled:
                x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.reshape(tf.transpose(x, [0, 3, 1, 2]), [x.shape[0], -1])  # PyTorch's order, so that weights mean the same
        for i, (name, _, _) in enumerate(self.linears):
            x = tf.nn.bias_add(tf.matmul(x, cast(name + ".weight")), cast(name + ".bias"))
            if i + 1 < len(self.linears):
                x = tf.nn.relu(x)
        return tf.cast(x, tf.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--batch-file", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--optimizer", default="sgd")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--mode", choices=["eager", "function", "xla"], default="function")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()

    tf.config.threading.set_intra_op_parallelism_threads(a.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    network = Network(a.model, load_file(a.weights))
    data = load_file(a.batch_file)
    batches = len(data["labels"]) // a.batch
    images = [tf.constant(x.transpose(0, 2, 3, 1).copy()) for x in np.split(data["images"], batches)]
    labels = [tf.constant(y) for y in np.split(data["labels"], batches)]
    dtype = tf.bfloat16 if a.dtype == "bf16" else tf.float32
    # Plain SGD by hand: Keras's own is slower.
    makers = {"adam": tf.keras.optimizers.Adam, "rmsprop": tf.keras.optimizers.RMSprop}
    optimizer = makers[a.optimizer](a.lr) if a.optimizer != "sgd" else None
    if optimizer:
        optimizer.build(network.variables)

    def train(x, y):
        with tf.GradientTape() as tape:
            logits = network(x, dtype)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        gradients = tape.gradient(loss, network.variables)
        if optimizer:
            optimizer.apply_gradients(zip(gradients, network.variables))
        else:
            for variable, gradient in zip(network.variables, gradients):
                variable.assign_sub(a.lr * gradient)
        return loss

    if a.mode != "eager":
        train = tf.function(train, jit_compile=a.mode == "xla")
    count = 0

    def step():
        nonlocal count
        i = count % batches
        count += 1
        return float(train(images[i], labels[i]))

    allocator = os.path.basename(os.environ.get("LD_PRELOAD", "")) or "glibc"
    serve({"framework": f"TensorFlow {tf.__version__}", "mode": a.mode, "allocator": allocator}, step)


if __name__ == "__main__":
    main()
