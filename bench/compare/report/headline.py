"""The answer in a page of Markdown, between <!-- headline FOLDER'S NAME --> and <!-- end of headline -->: a picture and a table of how many
times as long each framework takes, in its fastest mode, as Plumbline's best kernels and as the vendor's alone."""

from . import pictures, verdict
from .verdict import NAMES

PICTURE = "headline.svg"


def cell(best, vendor, of_vendor=""):
    if best is None:
        return "–"
    return f"**{best:.2f}**" + (f" / {vendor:.2f}{of_vendor}" if vendor is not None else "")


def means(rows, name):
    """Of rows that count: the geometric means of both ratios as a cell, and how many rows there are."""
    best, vendor = (verdict.summary(rows, kernels, name) for kernels in ("best", "vendor"))
    values = (s["geometric"] if s["count"] else None for s in (best, vendor))
    return cell(*values, verdict.of_fewer(best, vendor)), best["count"]


def in_order(rows):
    return sorted(rows, key=lambda r: (r.subject["name"], r.subject.get("optimizer") or "", r.subject["dtype"], r.subject.get("batch") or 0))


def table(records):
    """The lines of the table."""
    train, ops = in_order(verdict.rows(records, "train")), verdict.rows(records, "ops")
    names = [n for n in NAMES if any(n in r.frameworks for r in [*train, *ops])]
    lines = ["| work | " + " | ".join(NAMES[n] for n in names) + " |", "|---|" + "---|" * len(names)]
    for row in train:
        values = [(row.ratios.get(("best", n)), row.ratios.get(("vendor", n))) for n in names]
        if any(best for best, _ in values):
            cells = [cell(best and best.value, vendor and vendor.value) for best, vendor in values]
            lines.append(f"| {verdict.name_of(row.subject)} | " + " | ".join(cells) + " |")
    for direction, text in (("forward", "ops, forward"), ("forward_backward", "ops, forward and backward")):
        own = [r for r in ops if r.subject["direction"] == direction]
        found = [means(own, n) for n in names]
        if any(count for _, count in found):
            cells = [f"{means} ({count} rows)" for means, count in found]
            lines.append(f"| {text}: geometric mean | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def picture(records):
    """A picture that stands alone, on paper of its own."""
    rows = [(verdict.name_of(r.subject), {NAMES[n]: r.ratios["best", n] for n in NAMES if ("best", n) in r.ratios})
            for r in in_order(verdict.rows(records, "train"))]
    return pictures.on_paper(pictures.ratios([r for r in rows if r[1]], "A training step", "best kernels"))
