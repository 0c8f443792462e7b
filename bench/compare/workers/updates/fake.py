"""Updates of numpy, for tests: RMSProp by PyTorch's formula; "wrong" has its epsilon under the root."""

import numpy as np

from ..refusals import Unsupported


class Update:
    def __init__(self, problem, tensors, mode):
        if problem["optimizer"] != "rmsprop":
            raise Unsupported(f"fake has no {problem['optimizer']}")
        self.problem, self.tensors, self.mode = problem, tensors, mode
        self.squares = {n: np.zeros_like(tensors[n]) for n in problem["gradients"]}

    def step(self):
        for n in self.problem["gradients"]:
            g = self.tensors["d" + n]
            self.squares[n] = v = 0.99 * self.squares[n] + 0.01 * g * g
            self.tensors[n] -= self.problem["learning_rate"] * g / (np.sqrt(v + 1e-8) if self.mode == "wrong" else np.sqrt(v) + 1e-8)

    def first(self):
        for _ in range(self.problem["nodes"][0]["attributes"]["steps"]):
            self.step()
        return {n: self.tensors[n] for n in self.problem["gradients"]}
