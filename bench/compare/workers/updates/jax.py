"""JAX brings no optimizer: the formulas as its users write them, op by op, compiled a parameter at a time, and compiled for all."""

import jax
import jax.numpy as jnp
import numpy as np

from .. import device

FORMULAS = {}  # {optimizer: function of (w, g, states, step, rate, convention) that returns the new w and states}


def formula(function):
    FORMULAS[function.__name__] = function
    return function


@formula
def sgd(w, g, states, step, rate, convention):
    return w - rate * g, states


@formula
def rmsprop(w, g, states, step, rate, convention):
    if convention == "pytorch":
        v = 0.99 * states[0] + 0.01 * g * g
        return w - rate * g / (jnp.sqrt(v) + 1e-8), [v]
    v = 0.9 * states[0] + 0.1 * g * g
    return w - rate * g / jnp.sqrt(v + (1e-7 if convention == "keras" else 1e-10)), [v]


@formula
def adam(w, g, states, step, rate, convention):
    m, v = 0.9 * states[0] + 0.1 * g, 0.999 * states[1] + 0.001 * g * g
    c1, c2 = 1 - 0.9 ** step, 1 - 0.999 ** step
    if convention == "pytorch":
        return w - rate / c1 * m / (jnp.sqrt(v / c2) + 1e-8), [m, v]
    return w - rate * jnp.sqrt(c2) / c1 * m / (jnp.sqrt(v) + (1e-7 if convention == "keras" else 1e-8)), [m, v]


STATES = {"sgd": 0, "rmsprop": 1, "adam": 2}


class Update:
    def __init__(self, problem, tensors, mode):
        self.problem, self.mode, self.steps, self.result = problem, mode, jnp.zeros(()), None
        convention, name, rate = problem["nodes"][0]["attributes"]["convention"], problem["optimizer"], problem["learning_rate"]
        first = jnp.ones_like if (name, convention) == ("rmsprop", "tensorflow1") else jnp.zeros_like
        self.w = {n: jnp.asarray(tensors[n]) for n in problem["gradients"]}
        self.g = {n: jnp.asarray(tensors["d" + n]) for n in problem["gradients"]}
        self.states = {n: [first(w) for _ in range(STATES[name])] for n, w in self.w.items()}

        def of_one(w, states, g, step):
            return FORMULAS[name](w, g, states, step, rate, convention)

        def of_all(ws, states, gs, step):
            new = {n: of_one(ws[n], states[n], gs[n], step) for n in ws}
            return {n: w for n, (w, _) in new.items()}, {n: s for n, (_, s) in new.items()}
        self.of_one = of_one if mode == "chain" else jax.jit(of_one, donate_argnums=(0, 1))
        self.of_all = jax.jit(of_all, donate_argnums=(0, 1))

    def step(self):
        self.steps = self.steps + 1
        if self.mode == "fused":
            self.w, self.states = self.of_all(self.w, self.states, self.g, self.steps)
        else:
            for n in self.w:
                self.w[n], self.states[n] = self.of_one(self.w[n], self.states[n], self.g[n], self.steps)
        self.result = self.w, self.states
        if device.NAME == "cpu":
            jax.block_until_ready(self.result)

    def first(self):
        for _ in range(self.problem["nodes"][0]["attributes"]["steps"]):
            self.step()
        return {n: np.asarray(w) for n, w in self.w.items()}
