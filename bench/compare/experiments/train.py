"""Training steps of the networks, from the same weights on the same batch."""

from ..measuring.engines import Variant
from ..measuring.session import Plan
from ..problems.networks import NETWORKS, network_problem

NAME = "train"
SHOWS = ("A whole training step: forward, loss, gradients, update, and the loss read back. Each mode is a process of its own, so that its "
         "peak memory is its own. The first step's loss and every gradient agreed with Plumbline's before anything was timed.")


def problems(full):
    for name in NETWORKS:
        for batch in (1, 32, 250) if full else (32,):
            for dtype in ("f32", "bf16") if full else ("f32",):
                yield network_problem(name, batch, dtype=dtype)
        if full:
            yield network_problem(name, 250, optimizer="adam", learning_rate=1e-4)


def run(bench):
    ours = [Variant("plumbline", mode) for mode in ("best auto", "best captured auto", "vendor auto")]
    plan = Plan(rounds=9, samples=2, least_s=0.0, apart_s=2.0) if bench.full else Plan(rounds=5, samples=2, least_s=0.0, apart_s=1.0)
    bench.measure_all(NAME, list(problems(bench.full)), lambda problem: ours + bench.variants_of_frameworks(), plan, alone=True)
