"""Whether the workers of a problem fit into memory together: all of them hold their step while they take turns."""

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


def why_not(problem, variants, free):
    """Why a problem is not begun, or None."""
    needed = needed_bytes(problem, variants)
    if needed <= free:
        return None
    together = f"the {len(variants)} workers would take about {needed / 1e9:.0f} GB together at batch {problem.batch}"
    return f"{together}, and {free / 1e9:.0f} GB are free"


def fitting(problems, variants, leave_out, free=None):
    """The problems that fit. The others are handed to leave_out(problem, reason), and the largest smaller batch that fits comes in the
    place of each."""
    free, chosen = free_bytes() if free is None else free, {}
    for problem in problems:
        smaller = [network_problem(problem.op, batch, problem.direction, problem.dtype, problem.optimizer, problem.learning_rate)
                   for batch in SMALLER if batch < problem.batch]
        for candidate in (problem, *smaller):
            reason = why_not(candidate, variants, free)
            if reason is None:
                chosen.setdefault(candidate.id(), candidate)
                break
            if candidate is problem:
                leave_out(problem, reason)
    return list(chosen.values())
