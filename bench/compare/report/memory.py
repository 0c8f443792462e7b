"""Peak memory of each side: of its process, of the device's, and by class where the engine counts them."""

import collections

from ..measuring.statistics import geometric_mean
from . import pictures, verdict
from .further import Further, Table
from .made_by import picture

CLASSES = ("parameter", "gradient", "state", "activation", "workspace", "pack", "input")  # Plumbline's, of its own allocator
NOTE = "Peaks are those of the timed runs. The classes are what Plumbline's allocator held when its sum was largest; of a framework, the process is known, and what its allocator took of a GPU."


def whole(record):
    """Bytes of the device's allocator where there is one, of the process otherwise."""
    by = record.get("memory") or {}
    return by.get("device") or by.get("process")


def parts(record):
    """{class, or the rest: bytes}, which come to the whole."""
    by = {c: record["memory"].get(c) or 0 for c in CLASSES}
    return {**by, pictures.REST: max(0, whole(record) - sum(by.values()))}


def fastest_sides(members):
    """{name: record} of what has agreed: the fastest mode of Plumbline's kernels and of each framework, whatever disturbed its time."""
    found = collections.defaultdict(list)
    for r in members:
        if verdict.is_right(r) and whole(r):
            found[verdict.kernels_of(r) if verdict.is_ours(r) else r["engine"]["name"]].append(r)
    return {n: verdict.fastest(found[n]) for n in ("best", "vendor", *verdict.in_order(found.keys() - {"best", "vendor"})) if n in found}


def sentence(work):
    """How many times Plumbline's peak each framework has, in a list; none where they have no work in common."""
    factors = {n: [whole(s[n]) / whole(s["best"]) for _, s in work if n in s and "best" in s] for n in verdict.NAMES}
    told = [f"{verdict.NAMES[n]} {geometric_mean(f):.2f} times as much ({len(f)} row{'s' if len(f) > 1 else ''})" for n, f in factors.items() if f]
    return [f"Peak memory, of each in its fastest mode and beside Plumbline's best kernels, in the geometric mean: {', '.join(told)}."] if told else []


def figures(work):
    """A picture of each network and dtype."""
    by_title = collections.defaultdict(list)
    for s, found in sorted(work, key=lambda w: w[0].get("batch") or 0):
        title, _, more = verdict.name_of(s).partition(", batch ")
        by_title[title] += [(f"batch {more}: {n}" if more else n, r) for n, r in found.items()]
    return [picture(pictures.memory([(name, parts(r)) for name, r in bars], f"peak memory, {title}"), [r for _, r in bars])
            for title, bars in by_title.items()]


def table(groups):
    places = ["process"] + (["device"] if any("device" in (r.get("memory") or {}) for members in groups for r in members) else [])
    lines = [[f"{verdict.name_of(r['subject'])}: {verdict.label(r)}", *(megabytes((r.get("memory") or {}).get(c)) for c in (*places, *CLASSES))]
             for members in groups for r in members if r["status"] == "measured"]
    return [Table("Peak memory, MB", ["", *places, *CLASSES], lines, NOTE)] if lines else []


def megabytes(count):
    return "–" if count is None else f"{count / 1e6:.0f}"


def report(records, experiment):
    groups = list(verdict.groups(records, experiment).values())
    work = [(members[0]["subject"], sides) for members in groups if (sides := fastest_sides(members))]
    return Further(sentence(work), figures(work), table(groups))
