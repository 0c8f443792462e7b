"""Why a framework's step takes longer: the parts of it that Plumbline's best step has not."""

import collections

from ..ledger.parts import PARTS
from . import verdict
from .ledgers import has_ledger, ledger_of

LEAST = 0.05  # of what is beyond: a part with less is not told


def beyond(records, experiment):
    """{framework: [{part: its time beyond that of Plumbline's best, in times of the latter's step}]}, one a piece of work, of the
    framework's fastest mode."""
    found = collections.defaultdict(list)
    for by_turn in verdict.turns(records, experiment).values():
        able = [r for r in verdict.last_of(by_turn) if verdict.counts(r) and has_ledger(r)]
        for name in sorted({r["engine"]["name"] for r in able if not verdict.is_ours(r)}):
            theirs = verdict.fastest([r for r in able if r["engine"]["name"] == name])
            turn = [r for r in by_turn[verdict.turn_of(theirs)] if verdict.counts(r) and has_ledger(r)]
            ours = verdict.fastest_of_ours(turn, "best")
            if ours:
                own, other = ledger_of(ours), ledger_of(theirs)
                found[name].append({part: (other[part] - own[part]) / ours["ledger"]["whole_s"] for part in PARTS})
    return found


def sentences(records, experiment):
    """One a framework."""
    found = beyond(records, experiment)
    return [sentence(experiment, verdict.NAMES.get(name, name), found[name]) for name in verdict.in_order(found)]


def sentence(experiment, name, works):
    """Each piece of work tells as much as another, however long it takes."""
    more = {part: max(0.0, sum(w[part] for w in works)) for part in PARTS}
    whole = sum(more.values())
    if whole <= 0 or sum(sum(w.values()) for w in works) <= 0:
        return f"{experiment}: {name}'s steps take no longer than Plumbline's best."
    parts = [f"{100 * times / whole:.0f} % {part}" for part, times in sorted(more.items(), key=lambda m: -m[1]) if times >= LEAST * whole]
    seen = f"in the mean of {len(works)} steps" if len(works) > 1 else "in one step"
    return f"Why {name} takes longer in {experiment}: of what its step takes beyond Plumbline's best, {seen} taken apart: {', '.join(parts)}."
