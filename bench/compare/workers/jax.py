"""JAX: compiled by jit, on NHWC images."""

import importlib.util
import os

from . import device

os.environ["JAX_PLATFORMS"] = "cuda" if device.NAME == "cuda" else "cpu"
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # of a GPU's memory, where others have theirs

import jax
import jax.numpy as jnp
import numpy as np

from .channels_last import back, roles, statistics_of, there
from .ops.jax import OPS
from .refusals import Absent

NAME, MODES, DEVICES = "jax", ("jit",), ("cpu", "cuda")


def version():
    return jax.__version__


def start(threads):
    """XLA's pool has a thread for each processor that the process may use."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    if device.NAME == "cuda":
        start_gpu()


def start_gpu():
    """Products in f32 without tensor cores, as Plumbline's are."""
    if not importlib.util.find_spec("jax_plugins"):
        raise Absent(f"JAX {version()} is here without its plugin for CUDA; --python jax=PATH names a Python that has it, as of jax[cuda13]")
    try:
        jax.devices()
    except RuntimeError as e:
        raise Absent(f"JAX {version()} finds no GPU: {e}") from None
    jax.config.update("jax_default_matmul_precision", "highest")


def wait(work):
    if device.NAME == "cuda":
        jax.block_until_ready(work.result)


def memory():
    return {"device": jax.devices()[0].memory_stats()["peak_bytes_in_use"]}


def forget_peak():
    """JAX keeps one, since it began."""


class Work:
    def __init__(self, problem, tensors, mode):
        self.problem, self.roles = problem, roles(problem)
        self.dtype = {"f32": jnp.float32, "bf16": jnp.bfloat16}[problem["dtype"]]
        self.is_network = problem["direction"] == "train"
        values = {name: jnp.asarray(there(name, value, self.roles)) for name, value in tensors.items()}
        if not self.is_network:
            values = {n: v if n in problem["f32_inputs"] else self.cast(v) for n, v in values.items()}
        wanted = problem["gradients"] if problem["direction"] != "forward" else []
        self.dy = values.pop("dy", None)
        self.wanted = {n: values.pop(n) for n in wanted}
        self.statistics = {n: values.pop(n) for n in statistics_of(problem)}
        self.rest = values
        self.state, self.result = self.first_state(), None
        self.run = jax.jit(self.work_of_a_step, donate_argnums=(0, 1, 2) if self.is_network else ())
        self.run_gradients = jax.jit(self.gradients)
        self.run_logits = jax.jit(lambda wanted, statistics, rest: self.forward(wanted, statistics, rest, problem["nodes"][:-1])[0])

    def cast(self, x):
        return x.astype(self.dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x

    def first_state(self):
        """The means of Adam and RMSProp."""
        count = {"sgd": 0, "rmsprop": 1, "adam": 2}[self.problem.get("optimizer", "sgd")]
        return [jax.tree.map(jnp.zeros_like, self.wanted) for _ in range(count)] + [jnp.zeros((), jnp.int32)]

    def forward(self, wanted, statistics, rest, nodes=None):
        """The output, or that of the last of these nodes, and the statistics as they are after it."""
        values, nodes = {**wanted, **statistics, **rest}, nodes or self.problem["nodes"]
        for node in nodes:
            inputs = {name: values[source] for name, source in node["inputs"].items()}
            if self.problem["kind"] == "network" and node["op"] != "cross_entropy":
                inputs = {n: v if node["inputs"][n] in self.problem["f32_inputs"] else self.cast(v) for n, v in inputs.items()}
            values[node["output"]] = OPS[node["op"]](inputs, node["attributes"])
            values.update({source: inputs[n] for n, source in node["inputs"].items() if source in statistics})
        return values[nodes[-1]["output"]], {n: values[n] for n in statistics}

    def feed(self, **arrays):
        """Other values of inputs, of the same shapes."""
        self.rest.update({name: jnp.asarray(there(name, array, self.roles)) for name, array in arrays.items()})

    def weights(self):
        """As the steps so far have left them."""
        return {n: self.out(n, w) for n, w in self.wanted.items()}

    def predicted(self):
        """The class that a network gives to each image."""
        return np.asarray(jnp.argmax(self.run_logits(self.wanted, self.statistics, self.rest), 1))

    def gradients(self, wanted, statistics, rest, dy):
        """The output, the gradients, and the statistics."""
        y, backward, new = jax.vjp(lambda w: self.forward(w, statistics, rest), wanted, has_aux=True)
        return y, backward(jnp.ones_like(y) if dy is None else dy.astype(y.dtype))[0], new

    def updated(self, wanted, state, gradients):
        rate, step = self.problem["learning_rate"], state[-1] + 1
        if self.problem["optimizer"] == "sgd":
            return jax.tree.map(lambda w, g: w - rate * g, wanted, gradients), [step]
        if self.problem["optimizer"] == "rmsprop":
            square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state[0], gradients)
            return jax.tree.map(lambda w, g, s: w - rate * g / (jnp.sqrt(s) + 1e-8), wanted, gradients, square), [square, step]
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state[0], gradients)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, state[1], gradients)
        c1, c2 = 1 - 0.9 ** step, 1 - 0.999 ** step
        new = jax.tree.map(lambda w, m, s: w - rate / c1 * m / (jnp.sqrt(s / c2) + 1e-8), wanted, mean, square)
        return new, [mean, square, step]

    def work_of_a_step(self, wanted, state, statistics, rest, dy):
        if self.problem["direction"] == "forward":
            return self.forward(wanted, statistics, rest)[0]
        y, gradients, statistics = self.gradients(wanted, statistics, rest, dy)
        return (y, *self.updated(wanted, state, gradients), statistics) if self.is_network else (y, gradients)

    def train(self):
        """A training step, and its loss, which nobody has read or waited for."""
        self.result = self.run(self.wanted, self.state, self.statistics, self.rest, self.dy)
        y, self.wanted, self.state, self.statistics = self.result
        return y

    def step(self):
        self.result = None  # whose memory the next call may have
        if self.is_network:
            y = self.train()
        else:
            self.result = self.run(self.wanted, self.state, self.statistics, self.rest, self.dy)
        if device.NAME == "cpu":  # a GPU is waited for at the end of a sample, as the other sides wait for it
            jax.block_until_ready(self.result)
            self.result = None
        if self.is_network:
            self.y = float(y)

    def first(self):
        name = self.problem["output"]
        if self.problem["direction"] == "forward":
            return {name: self.out(name, self.run(self.wanted, self.state, self.statistics, self.rest, self.dy))}
        if self.is_network:  # whose step takes the weights' memory
            y, gradients, _ = self.run_gradients(self.wanted, self.statistics, self.rest, self.dy)
        else:
            y, gradients = self.run(self.wanted, self.state, self.statistics, self.rest, self.dy)
        return {name: self.out(name, y), **{"d" + n: self.out(n, g) for n, g in gradients.items()}}

    def out(self, name, value):
        value = value.astype(jnp.float32) if jnp.issubdtype(value.dtype, jnp.floating) else value
        return back(name, np.asarray(value), self.roles)
