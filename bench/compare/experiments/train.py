"""Training steps of the networks, from the same weights on the same batch."""

from ..measuring.engines import Variant
from ..measuring.session import Plan
from ..problems.networks import NETWORKS, network_problem
from ..report import verdict
from ..report.further import Further, Table
from .memory import fitting

NAME = "train"
SHOWS = ("A whole training step: forward, loss, gradients, update, and the loss read back. Each mode is a process of its own, so that its "
         "peak memory is its own. The first step's loss and every gradient agreed with Plumbline's before anything was timed.")

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


CLASSES = ("parameter", "gradient", "state", "activation", "workspace", "pack", "input")  # Plumbline's, of its own allocator


def report(records):
    """Peak memory of each side: of its process, of the device's, and by class where the engine counts them."""
    lines, places = [], ["process"]
    if any("device" in (r.get("memory") or {}) for r in records):
        places.append("device")
    for members in verdict.groups(records, NAME).values():
        for r in (m for m in members if m["status"] == "measured"):
            by = r.get("memory") or {}
            lines.append([f"{verdict.name_of(r['subject'])}: {verdict.label(r)}", *(megabytes(by.get(c)) for c in (*places, *CLASSES))])
    note = "The classes are what Plumbline's allocator held when its sum was largest; of a framework, the process is known, and what its allocator took of a GPU."
    return Further(tables=[Table("Peak memory, MB", ["", *places, *CLASSES], lines, note)] if lines else [])


def megabytes(count):
    return "–" if count is None else f"{count / 1e6:.0f}"


def run(bench):
    ours, often = [Variant("plumbline", mode) for mode in ("best auto", "vendor auto", "best captured auto")], bench.asked_often(problems)
    plan = (Plan(rounds=7, samples=1, least_s=0.0, most_s=8, apart_s=1.0, logged=3) if bench.full else
            Plan(rounds=5, samples=1, least_s=0.0, most_s=2, apart_s=0.5, logged=2, logs_compiled=False))
    chosen = fitting(problems(bench), lambda problem: ours + bench.variants_of_frameworks(problem.id() in often),
                     lambda problem, variants, reason: bench.leave_out(NAME, problem, variants, reason), device=bench.engines.device)
    bench.measure_parties(NAME, chosen, plan, alone=True)
