"""TensorFlow's optimizers: Keras's formulas, which are ops, called one by one ("chain"), in a function and by XLA; and those of
tf.compat.v1, which have a kernel a parameter."""

import tensorflow as tf

from ..refusals import Unsupported
from ..tensorflow import DEVICE

KERAS = {"sgd": tf.keras.optimizers.SGD, "rmsprop": tf.keras.optimizers.RMSprop, "adam": tf.keras.optimizers.Adam}
VERSION1 = {"sgd": tf.compat.v1.train.GradientDescentOptimizer, "rmsprop": tf.compat.v1.train.RMSPropOptimizer,
            "adam": tf.compat.v1.train.AdamOptimizer}


class Update:
    def __init__(self, problem, tensors, mode):
        with tf.device(DEVICE):
            self.prepare(problem, tensors, mode)

    def prepare(self, problem, tensors, mode):
        convention, optimizer, rate = problem["nodes"][0]["attributes"]["convention"], problem["optimizer"], problem["learning_rate"]
        if (convention, mode == "per_tensor") not in (("keras", False), ("tensorflow1", True)):
            raise Unsupported(f"TensorFlow has no {mode} update by the formulas of {convention}")
        self.problem, names = problem, problem["gradients"]
        self.parameters = [tf.Variable(tensors[n]) for n in names]
        gradients = [tf.constant(tensors["d" + n]) for n in names]
        if convention == "keras":
            made = KERAS[optimizer](rate)
            made.build(self.parameters)
            self.update = lambda: made.apply(gradients)
        else:
            made = VERSION1[optimizer](rate)

            def update():  # a function returns no operation
                made.apply_gradients(zip(gradients, self.parameters))
            self.update = update
        if mode != "chain":
            self.update = tf.function(self.update, jit_compile=mode == "xla")

    def step(self):
        self.update()

    def first(self):
        for _ in range(self.problem["nodes"][0]["attributes"]["steps"]):
            self.step()
        return {n: p.numpy() for n, p in zip(self.problem["gradients"], self.parameters)}
