"""Tables in a page of Markdown, between <!-- results FOLDER'S NAME --> and <!-- end of results -->: training
steps, a line for each work of a run, with the fastest and the leanest mode of the frameworks beside Plumbline, whatever the spread of their
samples. headline.py has another kind."""

import collections
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
    return record["memory"]["process"] / 1e6


def times(theirs, ours):
    return f"{theirs['median_s'] / ours['median_s']:.2f}"


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
    return [line(run, verdict.name_of(own[0]["subject"]) if count[run] > 1 else "", own, link) for (run, _), own in works.items()]


def line(run, work, records, link):
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
    memory = f"{megabytes(own):.0f} of {megabytes(leanest):.0f}: {megabytes(own) / megabytes(leanest):.2f}"
    return (f"| [{run}]({link}){work and f': {work}'} | {spread(own)} | {verdict.label(fastest)}: {spread(fastest)} | {modes} | **{times(fastest, own)}** | "
            f"{others} | {memory} |\n")


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
