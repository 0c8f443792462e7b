"""The harness measures work whose cost is known, and fails where it is off by more than five per cent.

Steps that last exactly so long tell each worker's timer, and so does the harness's own clock, which has waited for the samples of a turn;
what is counted by hand tells the catalogue's accounting, and work that is measured what becomes of it in a record; two workers in turn tell
whether one sleeps while the other runs, and weights that one side has changed tell whether agreement is looked at.
"""

import dataclasses
import itertools
import os
from unittest import mock

from safetensors.numpy import load_file, save_file

from ..measuring.engines import Variant
from ..measuring.session import Plan, Session
from ..measuring.worker import Refused
from ..problems import Problem, Tensor, catalogue
from ..records.of_measured import record_of
from . import accounting, faults

MOST_OFF = 0.05
GOOD = Variant("fake", "good")
PLUMBLINE = Variant("plumbline", "best")


@dataclasses.dataclass
class Finding:
    name: str
    passed: bool
    text: str


SPIN_S = 0.001  # shorter than a turn of the system's scheduler, so that some are not interrupted
SLEEP_S = 0.02  # a sleep ends some tens of microseconds late
ARRAY = (4, 1 << 20)
PRODUCT, SMALL = ((256, 512), (384, 512)), ((8, 16), (4, 16))
ONCE = Plan(rounds=5, samples=1, least_s=0.0, warm_s=0.0)
LONG = Plan(rounds=5, samples=3, least_s=0.1, warm_s=0.0)  # whatever a turn has beside its samples would make them too short


def spin():
    node = {"op": "spin", "inputs": {"x": "x"}, "output": "y", "attributes": {"seconds": SPIN_S}}
    return Problem("op", "spin", "spin", "forward", (node,), {"x": Tensor((1, 4))}, "y", (), batch=1, bytes=32.0)


def forward(op, *line):
    """The op of a line of the table, as the experiments take it from the catalogue."""
    return next(p for f in catalogue.forward_problems([line]) if f.op == op for p in catalogue.variants(f, ("forward",), ("f32",)))


def product(extents=PRODUCT):
    return forward("linear", "linear", "audit", extents, {})


def near(name, found, expected, unit):
    off = abs(found / expected - 1)
    return Finding(name, off <= MOST_OFF, f"{found:.6g} {unit} where it is {expected:.6g}: {off:.1%} off")


class AuditSession(Session):
    """Knows what a spin gives, which is no op of the catalogue: its input. `inject` is a known cost that is added to each step."""

    inject = None

    def make_expected(self, problem, inputs, expected):
        if problem.op == "spin":
            save_file({"y": load_file(inputs)["x"]}, expected)
        else:
            super().make_expected(problem, inputs, expected)

    def prepare(self, problem, variant, inputs, expected, inject=None):
        return super().prepare(problem, variant, inputs, expected, self.inject)

    def wait_for_sleep(self):
        """Nothing here has much to free, and who never sleeps is not waited for again and again."""
        super().wait_for_sleep(patience_s=0.1)


def of_timer(measured, variants, broken):
    _, (timed,) = measured(spin(), plan=Plan(rounds=5, samples=20, least_s=0.0))
    least = min(s for samples in timed["rounds_s"] for s in samples)  # a spin may be interrupted, never hurried
    findings = [near("timer: a spin of exact time", least * 1e3, SPIN_S * 1e3, "ms")]
    slept, _ = measured(product(SMALL), variants, ONCE, {"sleep_s": SLEEP_S})
    filled, _ = measured(product(), variants, LONG)
    return findings + [of for variant, a, b in zip(variants, slept, filled) for of in (asleep(variant, a), waited_for(variant, b))]


def unmeasured(name, found):
    """A Finding where there is no time at all, or None."""
    reason = str(found.refusal) if found.refusal else found.agreement.get("reason") or "it was not run"
    return None if found.replies and not found.refusal else Finding(name, False, reason)


def asleep(variant, found):
    name = f"timer: a step of {variant.engine} that sleeps"
    return unmeasured(name, found) or near(name, min(s for r in found.rounds for s in r) * 1e3, SLEEP_S * 1e3, "ms")


def waited_for(variant, found):
    """A turn's samples come to what the harness has waited for the reply, and never to more. A reply may be late, in all turns but one."""
    name = f"timer: {variant.engine}'s samples and the harness's clock"
    if missing := unmeasured(name, found):
        return missing
    shares = [sum(r["samples_s"]) * r["calls"] / w.length for r, w in zip(found.replies, found.watched)]
    return Finding(name, 1 - MOST_OFF <= max(shares) <= 1, f"samples of {max(shares):.1%} of the time until the reply")


def counted(figure, problem, by_hand, unit, measured):
    """What the catalogue counts, and what a record makes of it."""
    different = accounting.differences(figure)
    _, (record,) = measured(problem)
    rate = record["gbytes" if figure == "bytes" else "gflops"]
    text = f"{len(different)} rows are others: {'; '.join(different[:3])}" if different else f"the same in {len(accounting.BY_HAND)} rows"
    return [Finding(f"{figure}: the catalogue's, counted by hand", not different, text),
            near(f"{figure}: a record's rate times its seconds", rate * record["median_s"] * 1e9, by_hand, unit)]


def of_bytes(measured, variants, broken):
    return counted("bytes", forward("relu", "tensor", "audit", [ARRAY], {}), 33554432, "bytes", measured)  # 4 x 2^20 numbers read, and written


def of_flops(measured, variants, broken):
    return counted("flops", product(), 100663296, "operations", measured)  # 256 x 384 sums of 512 multiply-adds


def of_sleep(measured, variants, broken):
    """In long turns, each of which tells by itself, and in short ones, which tell together."""
    findings = []
    for kind, plan in (("long", Plan(rounds=4, samples=2, least_s=0.1)), ("short", Plan(rounds=20, samples=1, least_s=0.01, warm_s=0.0))):
        both, records = measured(spin(), (GOOD, Variant("another", "good")), plan)
        restless = any("sleep" in why for f in both for why in f.disturbed)
        mistrusted = [r for r in records if any("sleep" in why for why in r["trust"]["reasons"])]
        findings += [Finding(f"sleep: one runs while the other sleeps, in {kind} turns", not restless,
                             f"{len(mistrusted)} of {len(records)} records say that another worker did not sleep"), interleaved(both)]
    return findings


def of_weights(measured, variants, broken):
    problem = catalogue.linear("audit", *SMALL).with_(direction="forward_backward")
    (weighed,), _ = measured(problem, (Variant("fake", "wrong" if broken == "weights" else "good"),))
    return [Finding("weights: both sides have the same", bool(weighed.agreement.get("agrees")),
                    weighed.agreement.get("reason") or f"error {weighed.agreement.get('error') or 0:.1g}")]


PARTS = {"timer": of_timer, "bytes": of_bytes, "flops": of_flops, "sleep": of_sleep, "weights": of_weights}
BREAKS = tuple(PARTS)


def audit(engines, environment, broken=None, parts=BREAKS, variants=(PLUMBLINE,)):
    """[Finding] of the parts, of which all must have passed. The timer's is of these variants too."""
    environment_of_worker = {"PLUMB_FAKE_BREAKS": broken or ""}
    run = {"id": "audit", "started": "now", "command": None}
    with mock.patch.dict(os.environ, environment_of_worker), accounting.broken(broken), AuditSession(engines) as session:
        def measured(problem, variants=(GOOD,), plan=Plan(rounds=5, samples=2, least_s=0.005), inject=None):
            session.inject = inject
            found = session.measure(problem, list(variants), plan)
            return found, [record_of(f, problem, "audit", run, environment) for f in found]
        return [finding for part in parts for finding in PARTS[part](measured, variants, broken)]


def ledger(engines, variants):
    """[Finding] of costs that were added to a product's step on purpose, of each variant."""
    problem = catalogue.linear("product", (256, 1024), (1024, 1024)).with_(direction="forward")
    try:
        with Session(engines) as session:
            found = faults.find(session, problem, variants)
    except faults.Unseen as why:
        return [Finding("ledger", True, f"not looked at: {why}")]
    except Refused as why:
        if why.kind == "absent":
            raise
        return [Finding("ledger", False, str(why))]
    return [Finding(f"ledger: {f.fault} in {f.engine}", f.off <= faults.MOST_OFF,
                    f"{f.found_s * 1e3:.2f} ms found as {f.part} where it takes {f.cost_s * 1e3:.2f}: {f.off:.0%} off") for f in found]


def interleaved(all_found):
    """No two turns overlap, and the workers alternate."""
    turns = sorted((r["began"], r["ended"], i) for i, f in enumerate(all_found) for r in f.replies)
    overlap = sum(b[0] < a[1] for a, b in zip(turns, turns[1:]))
    longest = max((len(list(run)) for _, run in itertools.groupby(i for _, _, i in turns)), default=0)
    good = overlap == 0 and longest <= 2
    return Finding("turns: A B A B, one at a time", good, f"{overlap} overlap, and at most {longest} of one follow each other")
