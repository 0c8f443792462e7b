"""What the records of the experiment layouts say: the fastest layout, what converting costs, and from which batch N innermost pays."""

import collections
import math

from ..measuring.statistics import ratio_of
from . import pictures, verdict
from .further import Further, Table

LAYOUTS = ("nchw", "nhwc", "chwn", "blocked")
BLOCKED = "blocked"
SWEEP = "by batch, "  # begins the names of the work whose batch grows


def ways_of(members):
    """({layout: record}, {layout: record}), not charged and charged. Images that are nchw already need no conversion."""
    plain, charged = {}, {}
    for r in members:
        words = r["engine"]["mode"].split()
        (charged if "charged" in words else plain)[words[-1]] = r
    if "nchw" in plain:
        charged["nchw"] = plain["nchw"]
    return plain, charged


def countable(ways):
    return {layout: r for layout, r in ways.items() if verdict.counts(r)}


def verdict_of(ways):
    """(the fastest layout of those that count, which others may be, {layout: Ratio to it}): those that the rounds do not tell from it, and
    those that were measured and do not count. None unless two count."""
    able = countable(ways)
    if len(able) < 2:
        return None
    best = min(able, key=lambda x: able[x]["median_s"])
    ratios = {x: ratio_of(able[best]["rounds_s"], r["rounds_s"]) for x, r in able.items() if x != best}
    may_be = [x for x, r in ways.items() if (x in ratios and ratios[x].verdict != "faster") or (x not in able and r["status"] == "measured")]
    return best, may_be, ratios


def cell(layout, ways, best, ratios):
    if layout == best:
        return (verdict.microseconds(ways[layout]["median_s"]), "faster")
    if layout in ratios:
        return (verdict.times(ratios[layout]), "slower" if ratios[layout].verdict == "faster" else "ambiguous")
    return "not trusted" if layout in ways and ways[layout]["status"] == "measured" else "N/A"


def table_of(work, which, title, note):
    rows = []
    for name, ways in ((n, w[which]) for n, w in work):
        found = verdict_of(ways)
        if found:
            best, may_be, ratios = found
            rows.append([name, (f"ambiguous: {' or '.join([best, *may_be])}", "ambiguous") if may_be else (best, "faster"),
                         *(cell(x, ways, best, ratios) for x in LAYOUTS)])
    return Table(title, ["work", "fastest", *LAYOUTS], rows, note)


def break_even(plain, charged):
    """How many ops in a row pay for converting there and back: (least, estimate, most), "never", "ambiguous", or "" without records."""
    def of(base, there, there_and_back):
        gain = ratio_of(there["rounds_s"], base["rounds_s"])
        if gain.verdict == "ambiguous":
            return "ambiguous"
        if gain.verdict != "faster":
            return "never"
        price = ratio_of(there["rounds_s"], there_and_back["rounds_s"])
        return tuple(max(1, math.ceil(max(0, p - 1) / (g - 1))) for p, g in
                     ((price.low, gain.high), (price.value, gain.value), (price.high, gain.low)))
    plain, charged = countable(plain), countable(charged)
    return {x: of(plain["nchw"], plain[x], charged[x]) if {x, "nchw"} <= plain.keys() and x in charged else "" for x in LAYOUTS if x != "nchw"}


def break_even_cell(found):
    if isinstance(found, tuple):
        least, estimate, most = found
        return (str(estimate) if least == most else f"{estimate} ({least}–{most})", "faster")
    return (found or "N/A", {"never": "slower", "ambiguous": "ambiguous"}.get(found, ""))


def break_even_table(work):
    rows = []
    for name, (plain, charged) in work:
        found = break_even(plain, charged)
        if any(found.values()):
            rows.append([name, *(break_even_cell(found[x]) for x in found)])
    return Table("How many ops in a row pay for converting there and back", ["work", *LAYOUTS[1:]], rows,
                 "Ops like this one, of images that are nchw before the first and after the last. never: the op itself is not faster there.")


def sentence(work, which, words):
    """In how many of the pieces of work each layout is the fastest."""
    clear, unclear = collections.Counter(), 0
    for _, ways in work:
        found = verdict_of(ways[which])
        if found:
            best, may_be, _ = found
            clear[best] += not may_be
            unclear += bool(may_be)
    total = sum(clear.values()) + unclear
    if not total:
        return f"{words}, no two layouts have rows that count."
    parts = [f"{x} in {n}" for x, n in clear.most_common() if n] + ([f"{unclear} ambiguous"] if unclear else [])
    return f"{words}, the fastest of {total} pieces of work: {', '.join(parts)}."


def sweeps(records):
    """{work: {layout: {batch: record}}} of the work whose batch grows."""
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for r in records:
        s = r["subject"]
        if s["problem"].startswith(SWEEP) and verdict.counts(r):
            found[f"{s['name']} {s['problem'].removeprefix(SWEEP)}"][r["engine"]["mode"].split()[-1]][s["batch"]] = r
    return found


def sweep_sentence(work, layouts):
    """Whether chwn, which has N innermost, needs a large batch."""
    won, lost = [], []
    for batch, ours in sorted(layouts.get("chwn", {}).items()):
        others = [layouts[x][batch] for x in ("nchw", "nhwc") if batch in layouts.get(x, {})]
        others = [r for r in others if verdict.turn_of(r) == verdict.turn_of(ours)]
        if len(others) == 2:
            ratio = ratio_of(ours["rounds_s"], verdict.fastest(others)["rounds_s"])
            (won if ratio.verdict in ("faster", "same") else lost if ratio.verdict == "slower" else []).append(batch)
    if not won and not lost:
        return f"{work}, by batch: no batch tells."
    told = [f"as fast as the faster of nchw and nhwc, or faster, with N = {', '.join(map(str, won))}" if won else "",
            f"slower with N = {', '.join(map(str, lost))}" if lost else ""]
    return f"{work}, by batch: chwn is {'; '.join(t for t in told if t)}; other batches do not tell."


def report(records):
    work = [(verdict.name_of(m[0]["subject"]), ways_of(m)) for m in verdict.groups(records, "layouts").values()
            if not m[0]["subject"]["problem"].startswith(SWEEP)]
    by_batch = sweeps(records)
    sentences = [sentence(work, 0, "Without conversions"), sentence(work, 1, "With conversions from and to nchw around each op")]
    sentences += [sweep_sentence(name, layouts) for name, layouts in by_batch.items()]
    lines = {name: {x: [(b, r["median_s"] / b) for b, r in points.items()] for x, points in layouts.items()} for name, layouts in by_batch.items()}
    note = "The time of the fastest; of the others, how many times as long, with the 95 % interval. ambiguous: the rounds do not tell which is, or a layout's do not count."
    tables = [table_of(work, 0, "Without conversions", note),
              table_of(work, 1, "With conversions from and to nchw around each op", note), break_even_table(work)]
    return Further(sentences, [pictures.by_batch(lines)] if lines else [], [t for t in tables if t.rows])
