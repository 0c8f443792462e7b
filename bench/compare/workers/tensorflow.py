"""TensorFlow: eager, tf.function and XLA, on NHWC images: its convolutions on a processor take no others."""

import os

from . import device

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if device.NAME != "cuda":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

from .channels_last import back, roles, statistics_of, there
from .ops.tensorflow import OPS, OPS_OF_XLA
from .refusals import Absent

NAME, MODES = "tensorflow", ("eager", "function", "xla")
DEVICES = ("cpu", "cuda")
DEVICE = "/GPU:0" if device.NAME == "cuda" else "/CPU:0"


def version():
    return tf.__version__


def start(threads):
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if device.NAME == "cuda":
        start_gpu()


def start_gpu():
    """Products in f32 without tensor cores, as Plumbline's are; memory is taken as it is needed, since others have theirs there."""
    if not tf.test.is_built_with_cuda():
        raise Absent(f"TensorFlow {version()} is built without CUDA; --python tensorflow=PATH names the Python of a build that has it")
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        raise Absent(f"TensorFlow {version()} finds no GPU: the driver or a library of CUDA that it needs is missing, as its log says")
    tf.config.set_visible_devices(gpus[:1], "GPU")
    tf.config.experimental.set_memory_growth(gpus[0], True)
    tf.config.experimental.enable_tensor_float_32_execution(False)


def wait(work):
    if device.NAME == "cuda":
        tf.test.experimental.sync_devices()


def memory():
    return {"device": tf.config.experimental.get_memory_info("GPU:0")["peak"]}


def forget_peak():
    tf.config.experimental.reset_memory_stats("GPU:0")


def check_place(y):
    """Where TensorFlow has no kernel for the device, it takes the host without a word."""
    if DEVICE not in y.device.replace("device:", ""):
        raise RuntimeError(f"TensorFlow has computed this on {y.device.rpartition('/')[2]}")


def dense(gradient):
    """That of a gather is a list of slices that nobody has added yet: every side gives a tensor."""
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient


class Work:
    def __init__(self, problem, tensors, mode):
        """Functions run where their tensors are made."""
        with tf.device(DEVICE):
            self.prepare(problem, tensors, mode)

    def prepare(self, problem, tensors, mode):
        self.problem, self.roles = problem, roles(problem)
        self.ops = OPS_OF_XLA if mode == "xla" else OPS
        self.dtype = {"f32": tf.float32, "bf16": tf.bfloat16}[problem["dtype"]]
        self.is_network = problem["direction"] == "train"
        there_ = {name: tf.constant(there(name, value, self.roles)) for name, value in tensors.items()}
        if not self.is_network:
            there_ = {n: self.cast(n, v) for n, v in there_.items()}
        self.dy = there_.pop("dy", None)
        self.wanted = problem["gradients"] if problem["direction"] != "forward" else []
        trained, written = set(self.wanted if self.is_network else ()), statistics_of(problem)
        self.values = {n: tf.Variable(v, trainable=n in trained) if n in trained | written else v for n, v in there_.items()}
        self.optimizer = self.make_optimizer()
        compiled = {} if mode == "eager" else {"jit_compile": mode == "xla"}
        wrap = (lambda f: tf.function(f, **compiled)) if compiled else (lambda f: f)
        self.run, self.run_gradients = wrap(self.work_of_a_step), wrap(self.gradients)
        self.run_logits = wrap(lambda values: self.forward(dict(values), problem["nodes"][:-1]))

    def cast(self, name, x):
        return tf.cast(x, self.dtype) if x.dtype.is_floating and name not in self.problem["f32_inputs"] else x

    def make_optimizer(self):
        if not self.is_network or self.problem["optimizer"] == "sgd":
            return None  # plain SGD by its own kernel: Keras's is several ops
        makers = {"adam": tf.keras.optimizers.Adam, "rmsprop": tf.keras.optimizers.RMSprop}
        optimizer = makers[self.problem["optimizer"]](self.problem["learning_rate"])
        optimizer.build([self.values[n] for n in self.wanted])
        return optimizer

    def forward(self, values, nodes=None):
        """The output, or that of the last of these nodes."""
        nodes = nodes or self.problem["nodes"]
        for node in nodes:
            inputs = {name: values[source] for name, source in node["inputs"].items()}
            if self.is_network and self.dtype == tf.bfloat16:
                stays = {n for n, source in node["inputs"].items() if source in self.problem["f32_inputs"]}
                inputs = {n: tf.cast(v, self.dtype) if v.dtype == tf.float32 and n not in stays else v for n, v in inputs.items()}
            values[node["output"]] = self.ops[node["op"]](inputs, node["attributes"])
        return values[nodes[-1]["output"]]

    def feed(self, **arrays):
        """Other values of inputs, of the same shapes."""
        with tf.device(DEVICE):
            self.values.update({name: tf.constant(there(name, array, self.roles)) for name, array in arrays.items()})

    def weights(self):
        """As the steps so far have left them."""
        return {n: self.out(n, self.values[n]) for n in self.wanted}

    def predicted(self):
        """The class that a network gives to each image."""
        return np.asarray(tf.argmax(self.run_logits(self.values), 1))

    def gradients(self, values):
        wanted = [values[n] for n in self.wanted]
        with tf.GradientTape() as tape:
            tape.watch(wanted)
            y = self.forward(dict(values))
        return y, [dense(g) for g in tape.gradient(y, wanted, None if self.dy is None else tf.cast(self.dy, y.dtype))]

    def work_of_a_step(self, values):
        if self.problem["direction"] == "forward":
            return self.forward(dict(values))
        y, gradients = self.gradients(values)
        if not self.is_network:
            return y, gradients
        if self.optimizer:
            self.optimizer.apply_gradients(zip(gradients, [values[n] for n in self.wanted]))
        else:
            for name, gradient in zip(self.wanted, gradients):
                tf.raw_ops.ResourceApplyGradientDescent(var=values[name].handle, alpha=self.problem["learning_rate"], delta=gradient)
        return y

    def train(self):
        """A training step, and its loss, which nobody has read."""
        return self.run(self.values)

    def step(self):
        self.y = None  # whose memory the next call may have
        self.y = self.run(self.values)
        if self.is_network:
            self.y = float(self.y)

    def first(self):
        name = self.problem["output"]
        if self.problem["direction"] == "forward":
            y = self.run(self.values)
            check_place(y)
            return {name: self.out(name, y)}
        y, gradients = (self.run_gradients if self.is_network else self.run)(self.values)
        check_place(y)
        return {name: self.out(name, y), **{"d" + n: self.out(n, g) for n, g in zip(self.wanted, gradients)}}

    def out(self, name, value):
        value = tf.convert_to_tensor(value)
        value = tf.cast(value, tf.float32) if value.dtype.is_floating else value
        return back(name, np.asarray(value), self.roles)
