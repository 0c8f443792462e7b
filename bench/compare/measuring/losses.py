"""How far two runs of the same training may be apart: a multiple of what other roundings do to it, step by step."""

from ..records.of_measured import head_of

MARGIN = 30       # times what roundings do at this step or before: Winograd rounds more than sums in another order
ROUNDINGS = 2e-6  # of the loss: sixteen roundings of f32; a framework's own two runs are up to two apart


def distances(a, b):
    """The largest distance of two runs up to each step."""
    most, result = 0.0, []
    for x, y in zip(a, b):
        most = max(most, abs(x - y))
        result.append(most)
    return result


def judged(theirs, ours, roundings, whose):
    """Correctness, as a record holds it: error and tolerance at the first step that is too far, or else at the last.
    `roundings` is what other roundings do up to each step."""
    apart, allowed = distances(theirs, ours), []
    for d, loss in zip(roundings, theirs):
        allowed.append(max(MARGIN * d, ROUNDINGS * abs(loss), allowed[-1] if allowed else 0.0))
    late = next((i for i, (d, most) in enumerate(zip(apart, allowed)) if d > most), None)
    at = len(apart) - 1 if late is None else late
    far = f"at step {at + 1} the loss is {apart[at]:.1e} from {whose}'s, and {allowed[at]:.1e} is allowed"
    reason = f"the losses of {whose}" if late is None else far
    return {"agrees": late is None, "error": apart[at], "tolerance": allowed[at], "reason": reason}


def record_of(found, problem, experiment, run, environment, losses, correctness):
    """A record without times: of losses alone."""
    head = head_of(found, problem, experiment, run, environment)
    return {**head, "status": "measured", "losses": losses, "correctness": correctness, "trust": {"trusted": True, "reasons": []}}
