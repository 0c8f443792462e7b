"""What is computed: single ops and networks, as lists of calls of the catalogue's ops on named tensors."""

import dataclasses
import hashlib
import json


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor that every side reads from one file: uniform in [low, high), or whole numbers below `classes`. A network's weight is in
    the network's first distribution, whatever the range, unless it is one number: low = high."""

    shape: tuple
    low: float = -1.0
    high: float = 1.0
    classes: int = 0

    @property
    def count(self):
        n = 1
        for extent in self.shape:
            n *= extent
        return n


@dataclasses.dataclass(frozen=True)
class Problem:
    """One piece of work. `inputs` are made by Plumbline; of a network, it also makes the weights."""

    kind: str            # "op" or "network"
    op: str              # the op's name, or the network's
    name: str            # "vgg16.conv1_2"; of a network, its name again
    direction: str       # "forward", "forward_backward", "train", "update" of parameters alone, or "input" from bytes
    nodes: tuple         # of {"op", "inputs", "output", "attributes"}
    inputs: dict         # {name: Tensor}
    output: str
    gradients: tuple     # the inputs whose gradients are taken
    f32_inputs: tuple = ()  # those that stay f32 whatever the dtype
    dtype: str = "f32"
    batch: int = 0
    flops: float = 0.0   # by definition; 0 for work that memory bounds
    bytes: float = 0.0   # inputs read and outputs written once
    elements: float = 0.0  # of all outputs of a network's layers
    optimizer: str = "sgd"
    learning_rate: float = 0.01
    initial: str = "pytorch"  # whose distribution a network's first weights have: pytorch, keras or tensorflow1
    about: tuple = ()    # further (name, value) that tell this work from other
    miscounted: tuple = (0.0, 0.0)  # flops of a step, and bytes, that were counted beside when records were first kept: the id has them still
    steps: int = 1       # of a call; how often it reads the loss is the engine's mode ("reads=1"), otherwise in every step

    def with_(self, **changes):
        return dataclasses.replace(self, **changes)

    def to_worker(self):
        """What a worker is told."""
        told = ("kind", "op", "direction", "nodes", "output", "gradients", "f32_inputs", "dtype", "batch", "optimizer", "learning_rate")
        steps = {"steps": self.steps} if self.steps > 1 else {}
        return {**{key: getattr(self, key) for key in told}, **steps}

    def subject(self):
        """What a record says of it."""
        attributes = self.nodes[0]["attributes"] if self.kind == "op" else {**dict(self.about), **({"steps": self.steps} if self.steps > 1 else {})}
        shapes = {name: list(t.shape) for name, t in self.inputs.items()}
        return {"kind": self.kind, "name": self.op, "problem": self.name, "direction": self.direction, "dtype": self.dtype,
                "batch": self.batch, "shapes": shapes, "attributes": attributes, "flops": self.flops, "bytes": self.bytes,
                "optimizer": self.optimizer if self.direction == "train" else None}

    @property
    def compared_as(self):
        """The kind of results that measuring/agreement.py has a tolerance for."""
        if self.direction == "forward":
            return "op"  # no batch's statistics spread what roundings do
        normalised = self.kind == "network" and any(node["op"] == "batch_norm" for node in self.nodes)
        return "normalised network" if normalised else self.kind

    def since(self):
        """What is done otherwise since the first records of such a problem: those are not of the same work."""
        if self.direction == "input":
            yield "a sample is whole epochs"
        if self.kind == "op" and self.dtype == "bf16":
            yield "inputs are rounded for the reference, too"
        if self.kind == "op" and self.direction == "forward_backward" and "w" in self.gradients:
            yield "weights are packed in each call"

    def id(self):
        """Sixteen digits that two problems share only if they are the same."""
        subject = self.subject()
        subject["flops"] += self.steps * self.miscounted[0]
        subject["bytes"] += self.miscounted[1]
        text = json.dumps([self.to_worker(), subject, *self.since()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
