"""Whether the step that is timed trains as the reference does: its first calls, from the given weights.

What agrees before (agreement.py) is a pass without an update, which a step that is captured, or compiled with its update, is not. So the step
itself is called as it is timed, and what it has changed of the weights is held as gradients are, which SGD's changes are, with its first loss.
"""

from typing import NamedTuple

from safetensors.numpy import load_file

from ..problems.updates import CONVENTIONS
from .agreement import agreement, length_of
from .worker import Refused

FORMULAS = {"tensorflow": "keras"}  # whose optimizers a framework has, if not PyTorch's
ROUNDING = 2.0**-22  # of a weight
CALLS, CALLS_ON_A_GPU = 2, 3  # a graph may be recorded in the second, and is replayed from the third on


def calls_of(problem, device):
    """One of several steps shows their updates; of one step the second call shows the first's by its loss."""
    return 1 if problem.steps > 1 else CALLS_ON_A_GPU if device == "cuda" else CALLS


def formulas_of(problem, variant):
    """SGD's is the same for all."""
    said = [word for word in variant.mode.split() if word in CONVENTIONS] if variant.is_ours else []
    return "pytorch" if problem.optimizer == "sgd" else said[0] if said else FORMULAS.get(variant.engine, "pytorch")


class Expected(NamedTuple):
    """Of a training: {formulas: the file of what the reference's steps have changed}, and {change: what it counts as at least}."""

    files: dict
    least: dict


def expected_of(session, problem, variants, inputs):
    """Expected, of which other work than training has nothing."""
    files, calls = {}, calls_of(problem, session.engines.device)
    for formulas in dict.fromkeys(formulas_of(problem, v) for v in variants if problem.direction == "train"):
        file = files[formulas] = session.folder / f"{problem.id()}.{formulas}"
        told = {**problem.with_(dtype="f32").to_worker(), "formulas": formulas}
        session.oracle.ask("prepare", job="reference", problem=told, mode="vendor heuristic", inputs=str(inputs), results=str(file))
        session.oracle.ask("train", job="reference", calls=calls, inputs=str(inputs), results=str(file))
        session.oracle.ask("drop", job="reference")
    return Expected(files, least_of(problem, inputs, calls) if files else {})


def least_of(problem, inputs, calls):
    """The length of each change below which it is the weight's own rounding: to f32, a few units of the last place, in each step."""
    weights = load_file(inputs)
    return {"d" + n: calls * problem.steps * ROUNDING * length_of([weights[n]]) for n in problem.gradients}


def hold(session, problem, found, inputs, expected):
    """Holds the steps of what has agreed so far; what ran is then what ran in the last of them."""
    if not expected.files or found.refusal is not None or not found.agreement["agrees"]:
        return
    results, calls = session.folder / "results", calls_of(problem, session.engines.device)
    try:
        found.prepared |= found.worker.ask("train", job=found.variant.name, calls=calls, inputs=str(inputs), results=str(results))
        right = expected.files[formulas_of(problem, found.variant)]
        held = agreement(results, right, problem.compared_as, f"{problem.dtype} steps", least=expected.least)
        if not held["agrees"]:
            found.agreement = held | {"reason": f"of what the timed step has changed after {calls} calls, {held['reason']}"}
    except Refused as refusal:
        session.refuse(found, refusal)
    results.unlink(missing_ok=True)
