"""What the records of the experiment algorithms say: what each choice costs against the fastest, in time, memory, search and error."""

import collections
import statistics

from ..measuring.statistics import ratio_of
from . import verdict
from .further import Further, Table

MANY = "asked often, "  # begins the names of the work for which many processes chose
WORDS = {"best": "measured"}


def choice_of(record):
    word = record["engine"]["mode"].split()[0].removeprefix("only:")
    return WORDS.get(word, word)


def layout_of(record):
    return record["engine"]["mode"].split()[-1]


def algorithms_of(record):
    """The names of the algorithms that ran, in order."""
    kernels = (record.get("implementation") or "").split("; ")
    return ", ".join(dict.fromkeys(k.split()[1] for k in kernels if len(k.split()) > 1)) or "-"


def until_first_s(record):
    return (record.get("built_s") or 0) + (record.get("first_s") or 0)


def work_of(records):
    """({(work, layout, its id): {choice: record}} of rows that count, two at least; those where a choice was measured and does not count)."""
    found, lacking = collections.defaultdict(dict), set()
    for members in verdict.groups(records, "algorithms").values():
        if not members[0]["subject"]["problem"].startswith(MANY):
            for r in members:
                key = verdict.name_of(r["subject"]), layout_of(r), r["subject"]["id"]
                if verdict.counts(r):
                    found[key][choice_of(r)] = r
                elif r["status"] == "measured":
                    lacking.add(key)
    return {key: choices for key, choices in found.items() if len(choices) > 1}, lacking


def lost(choices):
    """{choice: Ratio}: how many times as long as the fastest each takes; of the fastest itself 1."""
    best = verdict.fastest(choices.values())
    return {c: ratio_of(best["rounds_s"], r["rounds_s"]) for c, r in choices.items()}


def lost_cell(record, ratio, is_best):
    if is_best:
        return ("fastest", "faster")
    return (verdict.times(ratio), {"faster": "slower", "same": ""}.get(ratio.verdict, "ambiguous"))


def table_of(work):
    rows = []
    for (name, layout, _), choices in work.items():
        ratios, best = lost(choices), verdict.fastest(choices.values())
        for c, r in sorted(choices.items(), key=lambda item: item[1]["median_s"]):
            workspace = r.get("workspace_bytes")
            rows.append([f"{name}, {layout}", c, verdict.microseconds(r["median_s"]), lost_cell(r, ratios[c], r is best),
                         f"{workspace / 1e6:.2f} MB" if workspace is not None else "-", verdict.microseconds(until_first_s(r)),
                         f"{r['correctness']['error']:.1e}", algorithms_of(r)])
    return Table("Every choice, the fastest first", ["work", "choice", "time", "times the fastest", "workspace", "until the first result", "error", "algorithms"],
                 rows, "Until the first result: reading the tensors, preparing, searching, and the first run. Error: of the largest element, against f64. Fastest: of those that count.")


def sentence_of_choice(choice, work, lacking):
    """How often a choice is the fastest or as fast, and what it loses elsewhere. What does not count may be faster still."""
    ratios = {key: lost(choices)[choice] for key, choices in work.items() if choice in choices}
    if not ratios:
        return None
    as_fast = sum(r.verdict == "same" and key not in lacking for key, r in ratios.items())
    behind = [r.value - 1 for r in ratios.values() if r.verdict == "faster"]
    unclear = len(ratios) - as_fast - len(behind)
    text = f"{choice} is the fastest choice, or as fast, in {as_fast} of {len(ratios)} pieces of work"
    text += f", ambiguous in {unclear}" if unclear else ""
    return text + (f", and behind in {len(behind)}, by {statistics.median(behind):.0%} in the middle and {max(behind):.0%} at most." if behind else ".")


def sentence_of_search(work):
    costs = [until_first_s(c["measured"]) - until_first_s(c["heuristic"]) for c in work.values() if {"measured", "heuristic"} <= c.keys()]
    return f"Searching takes {statistics.median(costs):.2g} s in the middle, {max(costs):.2g} s at most, more than taking the first that fits." if costs else None


def sentence_of_errors(work):
    worst = collections.defaultdict(float)
    for choices in work.values():
        for c, r in choices.items():
            worst[c] = max(worst[c], r["correctness"]["error"])
    return "The largest error against f64: " + ", ".join(f"{c} {e:.1e}" for c, e in sorted(worst.items(), key=lambda x: -x[1])) + "." if worst else None


def often(records):
    """{(work, its id): Counter of the algorithms that a process chose}. How long a single run took does not matter here, so that nothing is mistrusted."""
    found = collections.defaultdict(collections.Counter)
    for r in records:
        name = r["subject"]["problem"]
        if name.startswith(MANY) and r["status"] == "measured" and r["correctness"]["agrees"]:
            found[f"{r['subject']['name']} {name.removeprefix(MANY)}, {layout_of(r)}", r["subject"]["id"]][algorithms_of(r)] += 1
    return found


def often_table(found):
    rows = [[work, f"{c.most_common(1)[0][1]} of {c.total()}", ", ".join(f"{a} {n}" for a, n in c.most_common())] for (work, _), c in found.items()]
    return Table("How often processes that measure choose alike", ["work", "alike", "algorithms chosen"], rows)


def report(records):
    (work, lacking), found = work_of(records), often(records)
    sentences = [sentence_of_choice(c, work, lacking) for c in ("measured", "heuristic", "deterministic")]
    sentences += [sentence_of_search(work), sentence_of_errors(work)]
    if found:
        alike = sum(c.most_common(1)[0][1] for c in found.values())
        sentences.append(f"{alike} of {sum(c.total() for c in found.values())} processes that measured chose what most of them chose.")
    return Further([s for s in sentences if s], [], [t for t in (table_of(work), often_table(found)) if t.rows])
