"""How much of the machine's roofs each side reaches: of its arithmetic where work has any, otherwise of its copying."""

import statistics

from ..measuring.statistics import Ratio
from . import pictures, verdict

OURS = {"best": "Plumbline's best kernels", "vendor": "the vendor's alone"}
MOST_ROWS = 6  # of a picture


def sides(row):
    """{name: record} of Plumbline's kernels and of the frameworks."""
    return {**{k: r for k, r in row.ours.items() if r}, **row.frameworks}


def share_of(record):
    """As a Ratio, which has the interval of its median."""
    share, median, (low, high) = record["roof_share"], record["median_s"], record["confidence_s"]
    return Ratio(share, share * median / high, share * median / low)


def shares(rows):
    """[(row, {name: Ratio})] of those that have any."""
    found = [(row, {n: share_of(r) for n, r in sides(row).items() if r.get("roof_share")}) for row in rows]
    return [(row, by) for row, by in found if by]


def reached(row, by):
    """The row's name, and below it the most that is reached, by whom, and the roof."""
    name = max(by, key=lambda n: by[n].value)
    record = sides(row)[name]
    rate, unit = (record["gflops"], "GFLOP/s") if record.get("gflops") else (record["gbytes"], "GB/s")
    return f"{verdict.name_of(row.subject)}\n{name}: {number(rate)} of {number(rate / by[name].value)} {unit}"


def number(rate):
    return f"{rate:.3g}" if rate < 1000 else f"{rate:.0f}"


def sentences(experiment, found):
    """What the median row of each side reaches, one of the rows that compute and one of those that move; none without shares."""
    computing = [by for row, by in found if row.subject.get("flops")]
    moving = [by for row, by in found if not row.subject.get("flops")]
    return [f"{experiment}: of the machine's {roof}, the median row reaches: {medians(shares_)}."
            for roof, shares_ in (("arithmetic", computing), ("copying", moving)) if shares_]


def medians(all_shares):
    names = {n for by in all_shares for n in by}
    by_name = {n: [by[n].value for by in all_shares if n in by] for n in (*(n for n in OURS if n in names), *verdict.in_order(names - OURS.keys()))}
    return ", ".join(f"{OURS.get(n) or verdict.NAMES.get(n, n)} {100 * statistics.median(v):.0f} % ({len(v)} row{'s' if len(v) > 1 else ''})"
                     for n, v in by_name.items())


def figures(found):
    """Pictures of some rows each, with one axis: what a printed page has room for."""
    values = [share.value for _, by in found for share in by.values()]
    limits = (0.7 * min(values), 1.4 * max(1, *values)) if found else None
    drawn = [(reached(row, by), by) for row, by in found]
    return [pictures.roofs(drawn[i:i + MOST_ROWS], limits) for i in range(0, len(drawn), MOST_ROWS)]
