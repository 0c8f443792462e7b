"""Tables in a page of Markdown, between <!-- results FOLDER'S NAME --> and <!-- end of results -->: training
steps, a line for each work of a run, with the fastest and the leanest mode of the frameworks beside Plumbline. A ratio of which a side is
mistrusted stands in brackets, with the reason below the table. headline.py has another kind."""

import collections
import math
import re

from . import headline, verdict

END = "<!-- end of results -->"
HEAD = ("| run | Plumbline eager, ms (p10, p90) | fastest mode of the framework | of its modes | times | other modes of Plumbline | "
        "peak MB, of the leanest mode's |\n|---|---|---|---|---|---|---|\n")


class NoPlace(Exception):
    """A page without the marks of a folder, or records of which no table can be made, in a sentence."""


def percentile(values, share):
    """The value that this share of the values stands below: one of them, not between two."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def spread(record):
    ms = [1e3 * s for r in record["rounds_s"] for s in r]
    return f"{1e3 * record['median_s']:.4g} ({percentile(ms, 0.1):.4g}, {percentile(ms, 0.9):.4g})"


def megabytes(record):
    return (record["memory"]["process"] or math.nan) / 1e6  # where the system says none


def times(theirs, ours):
    """In brackets where no verdict rests on it."""
    text = f"{theirs['median_s'] / ours['median_s']:.2f}"
    return f"({text})" if why_not(theirs, ours) else text


def why_not(theirs, ours):
    """Why no verdict rests on the ratio of two sides, in a list."""
    mistrusted = [f"{verdict.label(r)}: {'; '.join(r['trust']['reasons']) or 'mistrusted'}" for r in (ours, theirs) if not verdict.counts(r)]
    apart = [] if mistrusted else [verdict.unpaired(ours, theirs)]
    return mistrusted + [f"{verdict.label(ours)}: {why}" for why in apart if why]


def works_of(records):
    """{(run's id, subject's id): its training steps}, in the order of the file."""
    found = {}
    for r in records:
        if r["experiment"] == "train" and r["status"] == "measured":
            found.setdefault((r["run"]["id"], r["subject"]["id"]), []).append(r)
    return found


def lines(records, link):
    """Those of the table. What a run measured is named where that is more than one work."""
    works = works_of(records)
    count = collections.Counter(run for run, _ in works)
    found = [line(run, verdict.name_of(own[0]["subject"]) if count[run] > 1 else "", own, link) for (run, _), own in works.items()]
    notes = [f"- {name}: {'; '.join(dict.fromkeys(reasons))}\n" for _, name, reasons in found if reasons]
    below = ["\nIn brackets stand ratios of which a side is mistrusted, so that no verdict rests on them:\n\n", *notes] if notes else []
    return [text for text, _, _ in found] + below


def line(run, work, records, link):
    """(the line, of what it is, why no verdict rests on some of its ratios)."""
    ours, theirs = [r for r in records if verdict.is_ours(r)], [r for r in records if not verdict.is_ours(r)]
    if not ours or not theirs:
        raise NoPlace(f"the run {run} has no training step of Plumbline beside one of a framework{work and f' in {work}'}, which a line of the table needs")
    fastest, leanest = verdict.fastest(theirs), min(theirs, key=megabytes)
    ours = [r for r in ours if verdict.turn_of(r) == verdict.turn_of(fastest)]  # a ratio is of one turn
    if not ours:
        raise NoPlace(f"the run {run} has no training step of Plumbline in the turn of {verdict.label(fastest)}, beside which a line of the table needs one")
    own = ours[0]
    modes = ", ".join(dict.fromkeys(r["engine"]["mode"] for r in theirs))
    others = "; ".join(f"{r['engine']['mode']} {times(fastest, r)}" for r in ours[1:])
    ratio, reasons = times(fastest, own), [why for r in ours for why in why_not(fastest, r)]
    bold = ratio if why_not(fastest, own) else f"**{ratio}**"
    memory = f"{megabytes(own):.0f} of {megabytes(leanest):.0f}: {megabytes(own) / megabytes(leanest):.2f}"
    return (f"| [{run}]({link}){work and f': {work}'} | {spread(own)} | {verdict.label(fastest)}: {spread(fastest)} | {modes} | {bold} | "
            f"{others} | {memory} |\n", run + (work and f", {work}"), reasons)


def filled(text, folder, records, link):
    """The page's text with what it has a place for: the table of a folder's runs, or its headline. `link` is where its names lead."""
    tables = {"results": lambda: HEAD + "".join(lines(records, link)),
              "headline": lambda: headline.table(records)}
    places = 0
    for kind, table in tables.items():
        begin, end = f"<!-- {kind} {folder} -->\n", f"<!-- end of {kind} -->"
        inside = re.compile(f"(?s){re.escape(begin)}.*?{end}")
        if inside.search(text):
            written = f"{begin}\n{table()}\n{end}"
            text, count = inside.subn(lambda _, written=written: written, text)
            places += count
    if places != 1:
        raise NoPlace(f"the page has no place for the table of {folder}: <!-- results {folder} --> and {END}, or the same of headline; "
                      f"one of them, once")
    return text
