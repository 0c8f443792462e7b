"""Keras 3's and TensorFlow 1's initializers: sections `keras` and `tf1` of init.safetensors."""

import math

import keras
import numpy as np
import tensorflow as tf

import golden
import init
from init import describe

tf1 = tf.compat.v1
tf.config.threading.set_intra_op_parallelism_threads(2)
keras.utils.set_random_seed(1)

TRUNCATED = 0.87962566103423978  # the standard deviation of a unit normal cut at +-2, by which Keras divides


def truncated(variance):
    """The parameters of Keras' truncated normal of the given variance: cut at two of its uncut deviations."""
    return {"std": math.sqrt(variance), "bound": 2 * math.sqrt(variance) / TRUNCATED}


def layer(inputs, outputs, kernel, groups):
    """The facts of one layer: its default weight and bias, and the weight under the named initializers."""
    fan_in, fan_out = init.fans(inputs, outputs, kernel, groups)
    half = (fan_in + fan_out) / 2

    def weights(**arguments):
        made = (
            keras.layers.Conv2D(outputs, kernel, groups=groups, **arguments)
            if kernel
            else keras.layers.Dense(outputs, **arguments)
        )
        made.build((None, 8, 8, inputs) if kernel else (None, inputs))
        return [w.numpy() for w in (made.kernel, made.bias)]

    def drawn(initializer):
        return lambda: weights(kernel_initializer=initializer)[0]

    return {
        "weight_shape": np.array(weights()[0].shape),  # (KH, KW, IC / groups, OC), and (inputs, outputs)
        "groups": groups,
        "fans": np.array([fan_in, fan_out]),
        "weight": describe(lambda: weights()[0], "uniform", bound=math.sqrt(3 / half)),
        "bias": describe(lambda: weights()[1], "constant", value=0.0),
        "glorot_normal": describe(drawn("glorot_normal"), "truncated_normal", **truncated(1 / half)),
        "he_uniform": describe(drawn("he_uniform"), "uniform", bound=math.sqrt(6 / fan_in)),
        "he_normal": describe(drawn("he_normal"), "truncated_normal", **truncated(2 / fan_in)),
        "lecun_uniform": describe(drawn("lecun_uniform"), "uniform", bound=math.sqrt(3 / fan_in)),
        "lecun_normal": describe(drawn("lecun_normal"), "truncated_normal", **truncated(1 / fan_in)),
    }


def tf1_layer(inputs, outputs, kernel, groups):
    """The default of tf.get_variable, which tf.layers used for its weights (tf.layers zeroed its biases)."""
    fan_in, fan_out = init.fans(inputs, outputs, kernel, groups)
    shape = [*(kernel or ()), inputs // groups, outputs]
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.set_random_seed(1)
        variable = tf1.get_variable("w", shape)

        def draw():
            session.run(variable.initializer)
            return session.run(variable)

        weight = describe(draw, "uniform", bound=math.sqrt(6 / (fan_in + fan_out)))
    return {"weight_shape": np.array(shape), "fans": np.array([fan_in, fan_out]), "weight": weight}


def lstm_bias():
    """The bias of a fresh LSTM(64): gate order input, forget, cell, output; only the forget gate's is one."""
    made = keras.layers.LSTM(64)
    made.build((None, 5, 32))
    return made.weights[2].numpy().reshape(4, 64)


def embedding():
    made = keras.layers.Embedding(1000, 64)
    made.build()
    return made.embeddings.numpy()


batch_norm = keras.layers.BatchNormalization()
batch_norm.build((None, 64))
golden.update(
    "init.safetensors",
    keras={
        "layers": {name: layer(*spec) for name, *spec in init.LAYERS},
        "embedding": {"weight": describe(embedding, "uniform", bound=0.05)},
        "lstm_bias_by_gate": lstm_bias().mean(axis=1, dtype=np.float64),
        "batch_norm": {
            n: describe(lambda n=n: getattr(batch_norm, n).numpy(), "constant", value=v)
            for n, v in (("gamma", 1.0), ("beta", 0.0), ("moving_mean", 0.0), ("moving_variance", 1.0))
        },
    },
    tf1={"layers": {name: tf1_layer(*spec) for name, *spec in init.LAYERS}},
)
