"""The harness measures work whose cost is known, and fails where it is off by more than five per cent.

A spin of exact time tells the timer, a copy of exact bytes and a product of exact operations tell the accounting, two workers in
turn tell whether one sleeps while the other runs, and weights that one side has changed tell whether agreement is looked at.
"""

import dataclasses
import itertools
import os
from unittest import mock

from safetensors.numpy import load_file, save_file

from ..measuring.engines import Variant
from ..measuring.session import Plan, Session
from ..measuring.worker import Refused
from ..problems import Problem, Tensor
from ..problems.catalogue import linear
from ..records.of_measured import record_of
from . import faults

MOST_OFF = 0.05
GOOD = Variant("fake", "good")


@dataclasses.dataclass
class Finding:
    name: str
    passed: bool
    text: str


def known(op, inputs, **figures):
    node = {"op": op, "inputs": {n: n for n in inputs}, "output": "y", "attributes": figures.pop("attributes", {})}
    return Problem("op", op, op, "forward", (node,), inputs, "y", (), batch=1, **figures)


SPIN_S = 0.001  # shorter than a turn of the system's scheduler, so that some are not interrupted
COPY = Tensor((1, 1 << 22))
PRODUCT = (256, 512), (384, 512)


def spin():
    return known("spin", {"x": Tensor((1, 4))}, attributes={"seconds": SPIN_S}, bytes=32.0)


def copy(broken):
    return known("copy", {"x": COPY}, bytes=(4.0 if broken == "bytes" else 8.0) * COPY.count)


def product(broken):
    counted = linear("audit", *PRODUCT)
    return counted.with_(flops=counted.flops / 2) if broken == "flops" else counted


def near(name, found, expected, unit):
    off = abs(found / expected - 1)
    return Finding(name, off <= MOST_OFF, f"{found:.6g} {unit} where it is {expected:.6g}: {off:.1%} off")


class AuditSession(Session):
    """Knows what a spin and a copy give, which are no ops of the catalogue: their input."""

    def make_expected(self, problem, inputs, expected):
        if problem.op in ("spin", "copy"):
            save_file({"y": load_file(inputs)["x"]}, expected)
        else:
            super().make_expected(problem, inputs, expected)

    def wait_for_sleep(self):
        """Nothing here has much to free, and who never sleeps is not waited for again and again."""
        super().wait_for_sleep(patience_s=0.1)


def of_timer(measured, broken):
    _, (timed,) = measured(spin(), plan=Plan(rounds=5, samples=20, least_s=0.0))
    least = min(s for samples in timed["rounds_s"] for s in samples)  # a spin may be interrupted, never hurried
    return [near("timer: a spin of exact time", least * 1e3, SPIN_S * 1e3, "ms")]


def of_bytes(measured, broken):
    _, (copied,) = measured(copy(broken))
    return [near("bytes: a copy of exact size", copied["gbytes"] * copied["median_s"] * 1e9, 8.0 * COPY.count, "bytes")]


def of_flops(measured, broken):
    _, (multiplied,) = measured(product(broken))
    (m, k), (n, _) = PRODUCT
    exact = 2.0 * m * n * k
    return [near("flops: a product of exact size", multiplied["gflops"] * multiplied["median_s"] * 1e9, exact, "operations")]


def of_sleep(measured, broken):
    both, _ = measured(spin(), (GOOD, Variant("another", "good")), Plan(rounds=4, samples=2, least_s=0.1))
    restless = [w for f in both for w in f.disturbed if "sleep" in w]
    return [Finding("sleep: one runs while the other sleeps", not restless,
                    f"another worker worked in {len(restless)} of {sum(len(f.rounds) for f in both)} turns"), interleaved(both)]


def of_weights(measured, broken):
    problem = linear("audit", (8, 16), (4, 16)).with_(direction="forward_backward")
    (weighed,), _ = measured(problem, (Variant("fake", "wrong" if broken == "weights" else "good"),))
    return [Finding("weights: both sides have the same", bool(weighed.agreement.get("agrees")),
                    weighed.agreement.get("reason") or f"error {weighed.agreement.get('error') or 0:.1g}")]


PARTS = {"timer": of_timer, "bytes": of_bytes, "flops": of_flops, "sleep": of_sleep, "weights": of_weights}
BREAKS = tuple(PARTS)


def audit(engines, environment, broken=None, parts=BREAKS):
    """[Finding] of the parts, of which all must have passed."""
    environment_of_worker = {"PLUMB_FAKE_BREAKS": broken or ""}
    run = {"id": "audit", "started": "now", "command": None}
    with mock.patch.dict(os.environ, environment_of_worker), AuditSession(engines) as session:
        def measured(problem, variants=(GOOD,), plan=Plan(rounds=5, samples=2, least_s=0.005)):
            found = session.measure(problem, list(variants), plan)
            return found, [record_of(f, problem, "audit", run, environment) for f in found]
        return [finding for part in parts for finding in PARTS[part](measured, broken)]


def ledger(engines, variants):
    """[Finding] of costs that were added to a product's step on purpose, of each variant."""
    problem = linear("product", (256, 1024), (1024, 1024)).with_(direction="forward")
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
