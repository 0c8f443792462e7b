"""A framework of numpy, for tests and the audit: work of known cost, and ways to be wrong on purpose.

Its modes: "good"; "wrong" answers with one element changed, "nan" with a NaN; "dies" ends the process, "hangs" never answers,
"memory" has none left. PLUMB_FAKE_BREAKS names what else it does: "timer" has a clock that runs 10 % fast, "sleep" works while
others run.
"""

import os
import threading
import time
import types

import numpy as np

from . import serve as protocol
from .refusals import Unsupported

NAME, MODES = "fake", ("good", "wrong", "nan", "dies", "hangs", "memory")
DEVICES = ("cpu", "emulated")  # a stand-in itself, it computes beside an emulated device as beside none


def version():
    return np.__version__


def start(threads):
    broken = os.environ.get("PLUMB_FAKE_BREAKS", "")
    if broken == "timer":
        protocol.time = types.SimpleNamespace(perf_counter=lambda: 1.1 * time.perf_counter(), sleep=time.sleep, monotonic=time.monotonic)
    if broken == "sleep":
        threading.Thread(target=never_sleeps, daemon=True).start()


def wait(work):
    """Numpy has computed what it was called for."""


def never_sleeps():
    while True:
        sum(range(1000))


def spin(t, a):
    """Exactly so long, by a clock that the harness does not use."""
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) + int(a["seconds"] * 1e9)
    while time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) < end:
        pass
    return t["x"]


def index_select_gradients(t, a, dy):
    dx = np.zeros_like(t["x"])
    np.add.at(dx, (slice(None),) * a["dim"] + (t["index"],), dy)
    return {"x": dx}


OPS = {
    "spin": spin, "copy": lambda t, a: t["x"].copy(),
    "linear": lambda t, a: t["x"] @ t["w"].T + t.get("b", 0), "relu": lambda t, a: np.maximum(t["x"], 0),
    "add": lambda t, a: t["x"] + t["other"], "sum": lambda t, a: t["x"].sum(tuple(a["dims"]) or None, keepdims=False),
    "index_select": lambda t, a: np.take(t["x"], t["index"], a["dim"]),
}
GRADIENTS = {
    "linear": lambda t, a, dy: {"x": dy @ t["w"], "w": dy.T @ t["x"], "b": dy.sum(0)},
    "relu": lambda t, a, dy: {"x": dy * (t["x"] > 0)}, "add": lambda t, a, dy: {"x": dy, "other": dy},
    "sum": lambda t, a, dy: {"x": np.broadcast_to(dy, t["x"].shape)}, "index_select": index_select_gradients,
}


class Work:
    FACTS = {"implementation": "numpy"}

    def __init__(self, problem, tensors, mode):
        if mode == "dies":
            os._exit(3)
        if mode == "hangs":
            time.sleep(1e6)
        if mode == "memory":
            raise MemoryError("out of memory")
        self.node, self.problem, self.mode = problem["nodes"][0], problem, mode
        if problem["direction"] != "forward" and self.node["op"] not in GRADIENTS:
            raise Unsupported(f"fake has no gradient of {self.node['op']}")
        self.tensors = {n: v for n, v in tensors.items() if n != "dy"}
        self.dy = tensors.get("dy")

    def step(self):
        self.y = OPS[self.node["op"]](self.tensors, self.node["attributes"])
        if self.problem["direction"] == "forward_backward":
            self.dxs = GRADIENTS[self.node["op"]](self.tensors, self.node["attributes"], self.dy)

    def first(self):
        self.step()
        results = {self.problem["output"]: np.array(self.y, np.float32)}
        if self.problem["direction"] == "forward_backward":
            results.update({"d" + n: np.array(self.dxs[n], np.float32) for n in self.problem["gradients"]})
        last = results[list(results)[-1]].reshape(-1)
        if self.mode in ("wrong", "nan"):
            last[-1] = last[-1] + 1 if self.mode == "wrong" else np.nan
        return results
