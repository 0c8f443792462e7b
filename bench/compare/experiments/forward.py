"""Forward passes of the networks, as in inference: nothing is recorded, and batch norms take the running statistics."""

from ..measuring.engines import Variant
from ..measuring.session import Plan
from ..problems.networks import NETWORKS, network_problem
from .memory import fitting

NAME = "forward"
SHOWS = ("A network's forward pass from images to logits, without gradients or what they would need, and with the running statistics in batch norms. "
         "In bf16 images and weights are in bf16 before anything is timed. The logits agreed with Plumbline's.")

OURS = [Variant("plumbline", mode) for mode in ("best nhwc", "vendor nhwc", "best captured nhwc", "best nchw", "vendor nchw")]


def problems(bench):
    for batch in bench.some_batches():
        for dtype in bench.dtypes():
            for name in bench.networks or NETWORKS:
                yield network_problem(name, batch, "forward", dtype)


def run(bench):
    often = bench.asked_often(problems)
    plan = Plan(rounds=7, samples=2, least_s=0.001, most_s=4) if bench.full else Plan(rounds=5, samples=2, least_s=0.001, most_s=2)
    chosen = fitting(problems(bench), lambda problem: OURS + bench.variants_of_frameworks(problem.id() in often),
                     lambda problem, variants, reason: bench.leave_out(NAME, problem, variants, reason), device=bench.engines.device)
    bench.measure_parties(NAME, chosen, plan, alone=True)
