"""Training steps of the networks, from the same weights on the same batch."""

from ..measuring.engines import Variant
from ..measuring.session import Plan
from ..problems.networks import NETWORKS, network_problem
from .memory import fitting

NAME = "train"
SHOWS = ("A whole training step: forward, loss, gradients, update, and the loss read back. Each mode is a process of its own, so that its "
         "peak memory is its own. The first step's loss and every gradient agreed with Plumbline's before anything was timed.")

QUICK = ("alexnet", "vgg16", "resnet20")


def problems(full):
    """What is to be measured where memory suffices."""
    for name in NETWORKS if full else QUICK:
        for batch in (1, 32, 250) if full else (32,):
            for dtype in ("f32", "bf16") if full else ("f32",):
                yield network_problem(name, batch, dtype=dtype)
        if full:
            yield network_problem(name, 250, optimizer="adam", learning_rate=1e-4)


def run(bench):
    ours = [Variant("plumbline", mode) for mode in ("best auto", "best captured auto", "vendor auto")]
    variants = ours + bench.variants_of_frameworks()
    plan = Plan(rounds=9, samples=2, least_s=0.0, apart_s=2.0) if bench.full else Plan(rounds=5, samples=2, least_s=0.0, apart_s=1.0)
    chosen = fitting(problems(bench.full), variants, lambda problem, reason: bench.leave_out(NAME, problem, variants, reason))
    bench.measure_all(NAME, chosen, lambda problem: variants, plan, alone=True)
