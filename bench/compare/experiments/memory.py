"""Which workers of a problem fit into memory together: all of them hold their step while they take turns."""

from ..measuring.machine import free_bytes
from ..problems.networks import network_problem

SMALLER = (64, 32, 1)  # what is measured in the place of a batch that does not fit
PROCESS = {"plumbline": 0.05e9}  # what a worker takes without work
FRAMEWORK = 0.55e9
# Of training steps of ResNet-50 in f32 on 2 and on 12 images: copies of the weights at the peak, with their gradients and what was read
# from the file; and of all outputs the share by which a worker grows, 0.7 (TensorFlow, Plumbline) to 1.07 (PyTorch).
WEIGHTS, OUTPUTS = 4, 1.1
STATES = {"sgd": 0, "rmsprop": 1, "adam": 2}  # of an optimizer, each of the size of the weights


def needed_bytes(problem, variants):
    """As far as it can be told beforehand."""
    step = (WEIGHTS + STATES[problem.optimizer]) * problem.bytes + OUTPUTS * 4 * problem.elements
    return sum(PROCESS.get(v.engine, FRAMEWORK) + step for v in variants)


def parties(problem, pivots, others, free):
    """Lists of variants that fit into memory: all at once, or else some of the others each, beside the pivots that they are held
    against. None if there is an other that does not fit."""
    def fits(variants):
        return needed_bytes(problem, variants) <= free

    if not fits(pivots) or not all(fits([*pivots, v]) for v in others):
        return None
    found, party = [], []
    for v in others:
        if party and not fits([*pivots, *party, v]):
            found.append([*pivots, *party])
            party = []
        party.append(v)
    return [*found, [*pivots, *party]]


def of_variants(problem, variants, free):
    """The parties of variants of which the first two are the pivots, or, where memory is short, the first alone."""
    return parties(problem, variants[:2], variants[2:], free) or parties(problem, variants[:1], variants[1:], free)


def why_not(problem, variants, free):
    """Why a problem is not begun."""
    needed = max(needed_bytes(problem, [variants[0], v]) for v in variants[1:])
    return f"two workers would take about {needed / 1e9:.0f} GB together at batch {problem.batch}, and {free / 1e9:.0f} GB are free"


def fitting(problems, variants, leave_out, free=None, smaller_batches=SMALLER, device="cpu"):
    """[(problem, parties)] of those that fit; `variants` is a function of the problem. The others are handed to leave_out(problem, its
    variants, reason), and the largest smaller batch that fits comes in the place of each."""
    free, chosen = free_bytes(device) if free is None else free, {}
    for problem in problems:
        smaller = [network_problem(problem.op, batch, problem.direction, problem.dtype, problem.optimizer, problem.learning_rate)
                   for batch in smaller_batches if batch < problem.batch]
        for candidate in (problem, *smaller):
            found = of_variants(candidate, variants(candidate), free)
            if found:
                chosen.setdefault(candidate.id(), (candidate, found))
                break
            if candidate is problem:
                leave_out(problem, variants(problem), why_not(problem, variants(problem), free))
    return list(chosen.values())
