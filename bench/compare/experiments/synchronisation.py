"""The cost of reading the loss: the same ten training steps, with ten reads and with one."""

from ..measuring.engines import USUAL_MODE, Variant
from ..measuring.session import Plan
from ..measuring.statistics import ratio_of
from ..problems.networks import network_problem
from ..report import verdict
from ..report.further import Further, Table

NAME = "synchronisation"
SHOWS = ("Ten training steps as one call, in which the loss is read after every step or once at the end, in turn. A read waits until the "
         "step is done: where the host only queues work, it keeps the host from being ahead. On a processor, PyTorch, TensorFlow "
         "and Plumbline compute as they are called, so that there is nothing to wait for; JAX queues.")

STEPS = 10
READS = (STEPS, 1)
OURS = ("best auto", "best captured auto")


def problems(full):
    for network, batch in (("vgg16", 32), ("vgg16", 1), ("alexnet", 1)) if full else (("vgg16", 1), ("alexnet", 1)):
        one = network_problem(network, batch)
        yield one.with_(steps=STEPS, flops=STEPS * one.flops)


def run(bench):
    modes = [("plumbline", mode) for mode in OURS] + [(f, USUAL_MODE[f]) for f in bench.frameworks if f in USUAL_MODE]
    variants = [Variant(engine, f"{mode} reads={reads}") for engine, mode in modes for reads in READS]
    plan = Plan(rounds=9, samples=2, least_s=0.0) if bench.full else Plan(rounds=5, samples=1, least_s=0.0)
    bench.measure_all(NAME, list(problems(bench.full)), lambda problem: variants, plan)


def pairs(records):
    """[(work, engine and mode, Ratio)]: how many times as long ten reads take as one."""
    found = []
    for members in verdict.groups(records, NAME).values():
        by = {(r["engine"]["name"], *r["engine"]["mode"].rsplit(" reads=", 1)): r for r in members if verdict.counts(r)}
        for (engine, mode, reads), once in by.items():
            often = by.get((engine, mode, str(STEPS)))
            if reads == "1" and often:
                found.append((verdict.name_of(once["subject"]), f"{engine} {mode}", ratio_of(once["rounds_s"], often["rounds_s"])))
    return found


WORDS = {"faster": "reading in every step costs", "same": "reading costs nothing that can be seen",
         "slower": "reading in every step is faster",
         "ambiguous": "the samples do not tell"}  # of the one that reads once


def report(records):
    found = pairs(records)
    rows = [[work, engine, (verdict.times(ratio), ratio.verdict), WORDS[ratio.verdict]] for work, engine, ratio in found]
    costs = [f"{engine}: {work}: a read in every step takes {verdict.times(ratio)} times as long as one read in {STEPS}"
             for work, engine, ratio in found if ratio.verdict == "faster"]
    same = sum(ratio.verdict == "same" for _, _, ratio in found)
    if found:
        costs.append(f"in {same} of {len(found)} pairs reading the loss in every step costs nothing that can be seen")
    table = Table("Ten reads, in times of one", ["work", "engine", "ratio and its interval", "what it says"], rows)
    return Further(verdict=costs, tables=[table] if rows else [])
