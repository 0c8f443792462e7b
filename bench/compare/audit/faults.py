"""Costs that were added to a step on purpose, and what the ledger finds of them: in the part where it belongs, as large as it is.

The step is taken apart without the cost and with it. What a part has grown by is held against what the cost took in the very steps that
were taken apart, by the worker's clock around it, but for what the processors have done for others meanwhile.
"""

import dataclasses

from ..ledger.parts import CONVERSION, ELSEWHERE, IDLE
from ..measuring.session import Plan

MOST_OFF = 0.2
# {name: (what is injected, the part in which it must be found)}
FAULTS = {"5 ms of sleep": ({"sleep_s": 0.005}, IDLE), "a copy of 64 MB": ({"copy_bytes": 64_000_000}, CONVERSION),
          "a forced conversion of 64 MB": ({"convert_bytes": 64 << 20}, CONVERSION)}


@dataclasses.dataclass
class Found:
    """Of one fault in one engine: seconds a step by the clock, less those that went to others, and as the ledger has it."""

    engine: str
    fault: str
    part: str
    cost_s: float
    found_s: float

    @property
    def off(self):
        return abs(self.found_s / self.cost_s - 1)


class Unseen(Exception):
    """Why there is no ledger, in a sentence: perf is not there, or not allowed."""


def ledger_with(session, problem, variant, inject, plan):
    """(ledger, what the injected cost took in a step that it is of). Throws Unseen, and Refused if the worker is at fault."""
    inputs, expected = session.make(problem)
    found = session.prepare(problem, variant, inputs, expected, inject)
    if found.refusal is not None:
        raise found.refusal
    for keep in (False, True):
        session.run(found, plan, keep)
    session.take_apart([found], plan)
    if found.apart_refusal is not None:
        raise found.apart_refusal
    session.worker(variant).ask("drop", job=variant.name)
    if isinstance(found.ledger, str):
        raise Unseen(found.ledger)
    return found.ledger, found.apart.get("fault_s", 0.0)


def find(session, problem, variants, seconds=2.0):
    """[Found]. Throws what ledger_with does."""
    plan, results = Plan(samples=3, least_s=0.01, apart_s=seconds), []
    for variant in variants:
        before, _ = ledger_with(session, problem, variant, None, plan)
        for name, (inject, part) in FAULTS.items():
            after, cost = ledger_with(session, problem, variant, inject, plan)
            grown = {p: after.parts_s.get(p, 0.0) - before.parts_s.get(p, 0.0) for p in (part, ELSEWHERE)}
            results.append(Found(variant.name, name, part, max(cost - max(grown[ELSEWHERE], 0.0), 1e-9), grown[part]))
    return results
