"""The ledgers of a page: where each side's step goes, beside what the vendor's kernels take alone."""

from ..ledger.parts import PARTS, UNEXPLAINED, VENDOR
from . import pictures, verdict
from .made_by import picture


def has_ledger(record):
    return record["status"] == "measured" and "parts_s" in (record.get("ledger") or {})


def floor_of(members):
    """What the vendor's kernels take in Plumbline with the vendor's kernels: nothing that calls them can take less."""
    alone = [r for r in members if verdict.is_ours(r) and verdict.kernels_of(r) == "vendor"]
    return min((r["ledger"]["parts_s"].get(VENDOR, 0.0) for r in alone), default=None)


def ledger_of(record):
    """{part: seconds} in the order of PARTS; unexplained is what the sum lacks, if it lacks anything."""
    ledger = record["ledger"]
    parts = {part: ledger["parts_s"].get(part, 0.0) for part in PARTS if part != UNEXPLAINED}
    parts[UNEXPLAINED] = max(0.0, ledger["whole_s"] - sum(parts.values()))
    return parts


def line_of(record):
    ledger = record["ledger"]
    longest = sorted(((s, part, f) for part, fs in ledger["functions"].items() for f, s in fs), reverse=True)[:3]
    return {"name": verdict.label(record), "whole": ledger["whole_s"], "parts": ledger_of(record), "unexplained": ledger["unexplained"],
            "page_faults": record.get("page_faults"), "allocations": record.get("allocations"),
            "longest": [f"{short(f)} {s / ledger['whole_s']:.0%}" for s, part, f in longest]}


def short(function):
    """A function's name without what its templates were given."""
    name, depth, kept = function, 0, []
    for c in name:
        depth += (c in "<(") - (c in ">)")
        if depth == 0 and c not in ">)":
            kept.append(c)
    return "".join(kept).replace("::", "::\u200b")[:60] or function[:60]


def ledgers(records, experiment):
    """[{"title", "figure", "lines", "parts"}] of the work that was taken apart."""
    found = []
    for members in verdict.groups(records, experiment).values():
        members = [r for r in members if has_ledger(r)]
        if members:
            lines = [line_of(r) for r in members]
            title = verdict.name_of(members[0]["subject"])
            found.append({"title": title, "lines": lines, "parts": [p for p in PARTS if any(x["parts"][p] > 0.002 * x["whole"] for x in lines)],
                          "figure": picture(pictures.stacked([(x["name"], x["parts"]) for x in lines], floor_of(members), title), members)})
    return found


def median_unexplained(all_ledgers):
    """Of all lines, as a share without its sign."""
    shares = sorted(abs(line["unexplained"]) for entry in all_ledgers for line in entry["lines"])
    return shares[len(shares) // 2] if shares else None
