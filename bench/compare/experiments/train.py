"""Training steps of the networks, from the same weights on the same batch."""

from ..measuring.engines import Variant
from ..measuring.session import Plan
from ..problems.networks import NETWORKS, network_problem
from ..report import memory
from .memory import fitting

NAME = "train"
SHOWS = ("A whole training step: forward, loss, gradients, update, and the loss read back. Each mode is a process of its own, so that its "
         "peak memory is its own. The first step's loss and every gradient, and what the timed step changes of the weights, agreed with Plumbline's before "
         "anything was timed.")

QUICK = ("alexnet", "vgg16", "resnet20")


def problems(bench):
    """What is to be measured where memory suffices; what takes longest comes last."""
    names = bench.networks or (NETWORKS if bench.full else QUICK)
    for batch in bench.some_batches():
        for dtype in bench.dtypes():
            for name in names:
                yield network_problem(name, batch, dtype=dtype)
    for name in names if bench.full and not bench.batches else ():
        yield network_problem(name, 250, optimizer="adam", learning_rate=1e-4)


def report(records):
    return memory.report(records, NAME)


def run(bench):
    ours, often = [Variant("plumbline", mode) for mode in ("best auto", "vendor auto", "best captured auto")], bench.asked_often(problems)
    plan = (Plan(rounds=7, samples=1, least_s=0.0, most_s=8, apart_s=1.0, logged=3) if bench.full else
            Plan(rounds=5, samples=1, least_s=0.0, most_s=2, apart_s=0.5, logged=2, logs_compiled=False))
    chosen = fitting(problems(bench), lambda problem: ours + bench.variants_of_frameworks(problem.id() in often),
                     lambda problem, variants, reason: bench.leave_out(NAME, problem, variants, reason), device=bench.engines.device)
    bench.measure_parties(NAME, chosen, plan, alone=True)
