"""TensorFlow's defaults: Keras's layers and optimizers, and the optimizers of tf.compat.v1."""

import numpy as np
import tensorflow as tf

from . import CONVOLUTION, FANS, KERNEL, LINEAR, of_adam, of_arithmetic, of_batch_norm, of_dropout, of_layers, of_rmsprop


def keras_step(make):
    def step(g, epsilon):
        w = tf.Variable([0.0])
        optimizer = make(learning_rate=1.0, **({} if epsilon is None else {"epsilon": epsilon}))
        optimizer.build([w])
        optimizer.apply([tf.constant([g])])
        return abs(float(w[0]))
    return step


def version1_step(make):
    def step(g, epsilon):
        w = tf.Variable([0.0])
        make(learning_rate=1.0, **({} if epsilon is None else {"epsilon": epsilon})).apply_gradients([(tf.constant([g]), w)])
        return abs(float(w[0]))
    return step


def train(a, b):
    layer = tf.keras.layers.BatchNormalization()
    y = layer(tf.reshape(tf.constant([a, b]), (2, 1, 1, 1)), training=True)
    return np.asarray(y).reshape(-1).tolist(), float(layer.moving_mean[0]), float(layer.moving_variance[0])


def dropout(training):
    return lambda x: np.asarray(tf.keras.layers.Dropout(0.5)(x, training=training))


def of_machine():
    """What does not depend on whose layers and optimizers are used."""
    mode = "tf32" if tf.config.experimental.tensor_float_32_execution_enabled() else "f32"
    return {**of_arithmetic(lambda a, b: tf.multiply(a, b), lambda a, b: tf.matmul(a, b)), "gpu_product": mode, "gpu_convolution": mode}


def keras():
    sgd, adam, rmsprop = tf.keras.optimizers.SGD(), tf.keras.optimizers.Adam(), tf.keras.optimizers.RMSprop()

    def numbers(layer, shape):
        layer.build(shape)
        return np.asarray(layer.kernel), np.asarray(layer.bias)
    return {
        "images": "N H W C" if tf.keras.layers.Conv2D(1, 1).data_format == "channels_last" else "N C H W",
        **of_layers("conv", lambda: numbers(tf.keras.layers.Conv2D(CONVOLUTION[1], KERNEL), (None, 4, 5, CONVOLUTION[0])), FANS[0]),
        **of_layers("linear", lambda: numbers(tf.keras.layers.Dense(LINEAR[1]), (None, LINEAR[0])), FANS[1]),
        "sgd_rate": float(sgd.learning_rate), "adam_rate": float(adam.learning_rate),
        "rmsprop_rate": float(rmsprop.learning_rate), "adam_beta1": adam.beta_1, "adam_beta2": adam.beta_2, "adam_epsilon": adam.epsilon,
        **of_adam(keras_step(tf.keras.optimizers.Adam), adam.beta_2), "rmsprop_epsilon": rmsprop.epsilon,
        **of_rmsprop(keras_step(tf.keras.optimizers.RMSprop)), **of_batch_norm(train), **of_dropout(dropout(True), dropout(False))}


def version1():
    """Its layers are gone: what is left is a variable without an initializer, the fused batch norm, and the optimizers."""
    def weight(shape):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            w = tf.compat.v1.get_variable("w", shape)
            session.run(tf.compat.v1.global_variables_initializer())
            return session.run(w), None
    maker = tf.compat.v1.train.AdamOptimizer
    adam, rmsprop = maker(), tf.compat.v1.train.RMSPropOptimizer(1.0)
    d = 1e-4
    fused = tf.compat.v1.nn.fused_batch_norm(tf.reshape(tf.constant([-d, d]), (2, 1, 1, 1)), tf.ones(1), tf.zeros(1))[0]
    y = abs(float(tf.reshape(fused, [-1])[1]))
    return {
        **of_layers("conv", lambda: weight((KERNEL, KERNEL, *CONVOLUTION)), FANS[0]),
        **of_layers("linear", lambda: weight(LINEAR), FANS[1]), "adam_rate": adam._lr,
        "adam_beta1": adam._beta1, "adam_beta2": adam._beta2, "adam_epsilon": adam._epsilon, **of_adam(version1_step(maker), adam._beta2),
        "rmsprop_epsilon": rmsprop._epsilon, **of_rmsprop(version1_step(tf.compat.v1.train.RMSPropOptimizer)),
        "batch_norm_epsilon": (d / y) ** 2 - d * d}


def defaults():
    machine = of_machine()
    return {"keras": {**keras(), **machine}, "tensorflow1": {**version1(), **machine}}
