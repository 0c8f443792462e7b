"""PyTorch's optimizers: an op after the other, the same op on a list of tensors, and one kernel for all of the formula."""

import inspect

import torch

from ..refusals import Unsupported
from ..torch import DEVICE

MAKERS = {"sgd": torch.optim.SGD, "rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam}
WAYS = {"chain": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


class Update:
    def __init__(self, problem, tensors, mode):
        convention, make, way = problem["nodes"][0]["attributes"]["convention"], MAKERS[problem["optimizer"]], WAYS[mode]
        if convention != "pytorch":
            raise Unsupported(f"PyTorch has no formulas of {convention}")
        if not way.keys() <= inspect.signature(make).parameters.keys():
            raise Unsupported(f"PyTorch's {make.__name__} has no {mode} update")
        self.problem = problem
        self.parameters = {n: torch.from_numpy(tensors[n]).to(DEVICE).requires_grad_() for n in problem["gradients"]}
        for name, parameter in self.parameters.items():
            parameter.grad = torch.from_numpy(tensors["d" + name]).to(DEVICE)
        self.optimizer = make(list(self.parameters.values()), lr=problem["learning_rate"], **way)

    def step(self):
        self.optimizer.step()

    def first(self):
        for _ in range(self.problem["nodes"][0]["attributes"]["steps"]):
            self.step()
        return {n: p.detach().cpu().numpy() for n, p in self.parameters.items()}
