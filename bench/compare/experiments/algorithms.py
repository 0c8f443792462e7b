"""What a choice of algorithm costs and gives: by order, by measuring, by determinism, and each algorithm by name."""

import dataclasses
import math

from ..measuring.engines import Variant
from ..measuring.session import Plan
from ..measuring.worker import Refused
from ..problems import catalogue
from ..records import is_stale, machine_of
from ..records.of_measured import record_of
from ..report.algorithms import MANY
from ..report.algorithms import report  # noqa: F401: the page asks for it
from .layouts import without_bias

NAME = "algorithms"
SHOWS = ("Plumbline alone, convolutions, each choice in a process of its own without what earlier ones have found. heuristic is the first algorithm that "
         "fits, measured times all of them first (mode best), deterministic takes the first whose results have the same bits in every run, and "
         "the others are named, and have gradients by another algorithm where there is none of that name. The error is the largest deviation from "
         "plain loops in f64, as a share of the largest element. Plain loops as a choice are left out.")
COMPARES = False

BATCH = 8  # plain loops in f64 are the reference of all of it
PROCESSES = 20
NAMED = ("direct", "direct_chwn", "blocked", "winograd_f2x2", "winograd_f4x4", "winograd_blocked", "im2col", "implicit_gemm", "group_lanes", "output_lanes", "inner_product", "gemm",
         "packed_gemm")
QUICK = ("resnet50.res4b_branch2a", "vgg16.conv3_2", "vgg16.conv1_1", "resnet50.res3a_branch2b")
ASKED_OFTEN = QUICK[:2]
ONCE = Plan(rounds=1, samples=1, least_s=0, warm_up=0)


def forward_problems(bench):
    """The convolutions of the user's file as they are, or those of the networks."""
    table = catalogue.read_table(bench.shapes) if bench.shapes else catalogue.with_batch(catalogue.read_table(), BATCH)
    for p in catalogue.forward_problems([line for line in table if line[0] == "conv2d"]):
        if bench.full or bench.shapes or p.name in QUICK:
            yield without_bias(p)


def choices(layouts):
    return [Variant("plumbline", f"{choice} {x}") for x in layouts for choice in ("best", "heuristic", "deterministic", *(f"only:{a}" for a in NAMED))]


def ask_often(bench, problem, processes):
    """A record of each process, of which its kernels and the time of its preparation are what counts."""
    variant = Variant("plumbline", "best nhwc")
    here = machine_of({"environment": bench.environment})
    known = sum(r["experiment"] == NAME and r["subject"].get("id") == problem.id() and r["status"] == "measured" and machine_of(r) == here
                and not is_stale(r, bench.engines) for r in bench.store.records)
    if bench.foresees([0.5 * max(0, processes - known)]) or known >= processes:
        return

    def keep(found):
        bench.store.add(record_of(found, problem, NAME, bench.run, bench.environment))
    with bench.session() as session:
        try:
            files = session.make(problem)
        except Refused as refusal:
            return keep(*session.without_reference(problem, [variant], refusal))
        for _ in range(processes - known):
            found = session.prepare(problem, variant, *files)
            if found.refusal is None and found.agreement["agrees"]:
                session.run_in_turn([found], ONCE)
            keep(found)
            session.close_workers()


def run(bench, processes=PROCESSES):
    bench = dataclasses.replace(bench, engines=bench.engines.with_settings(PLUMB_CACHE="off"), reference_flops=math.inf)
    plan = Plan(rounds=7, samples=2, least_s=0.002) if bench.full else Plan(rounds=5, samples=2, least_s=0.001)
    layouts = ("nchw", "nhwc", "chwn") if bench.full else ("nhwc",)
    chosen = list(forward_problems(bench))
    problems = [q for p in chosen for q in catalogue.variants(p, ("forward", "forward_backward"), ("f32",))]
    bench.measure_all(NAME, problems, lambda problem: choices(layouts), plan, alone=True)
    for p in chosen:
        if bench.full or bench.shapes or p.name in ASKED_OFTEN:
            ask_often(bench, p.with_(name=MANY + p.name), processes)
