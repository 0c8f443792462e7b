"""What the vendor's libraries have logged of a step themselves, on a page beside what the ledger has sampled of them."""

from ..ledger.parts import CONVERSION, VENDOR
from . import verdict
from .further import Table
from .ledgers import has_ledger

LONGEST = 5    # rows that are named
NEAR = 0.2     # of the sampled time, or
LEAST = 0.03   # of the step: so far apart the two may be
COLUMNS = ["", "step while logged", "kernels, logged", "kernels, sampled", "conversions, logged", "conversions, sampled", "the longest, logged"]
NOTE = ("The same step in a process in which oneDNN and MKL write what they were called for (ONEDNN_VERBOSE, MKL_VERBOSE); its times are in no other "
        "table. Where calls run beside each other, a moment goes to them in equal shares, as above. Logged and sampled kernels are two ways to see "
        "the same calls; where they are more than a fifth of the sampled time and 3 % of the step apart, the row says so. What is logged beyond the "
        "sampled is what the calls' threads wait for each other, for memory and for processors: parts of their own above. Conversions logged are oneDNN's "
        "reorders; those sampled are the framework's as well. Under another allocator the same kernels run, and are not logged again.")


def shown(seconds, whole):
    return f"{verdict.microseconds(seconds)} ({seconds / whole:.0%})" if seconds else "–"


def longest(log):
    def named(row):
        what = " ".join(p for p in (row["library"], row["primitive"], row["implementation"]) if p)
        return f"{what} {row['calls']:g} × {verdict.microseconds(row['seconds'] / row['calls'])} ({row['seconds'] / log['whole_s']:.0%})"
    return "; ".join(named(row) for row in log["rows"][:LONGEST])


def kernels(log):
    return ", ".join(f"{library} {shown(s, log['whole_s'])}" for library, s in log["kernels_s"].items()) or "–"


def apart(log, ledger):
    """How far from each other the two have seen the vendor's kernels, in a sentence; "" where they are near."""
    logged, sampled = sum(log["kernels_s"].values()), ledger["parts_s"].get(VENDOR, 0.0)
    off = abs(logged - sampled)
    if off <= max(NEAR * sampled, LEAST * ledger["whole_s"]):
        return ""
    return f"apart: logged are {logged / sampled:.1f} times the sampled" if sampled else "apart: none was sampled"


def line_of(record):
    name = f"{verdict.name_of(record['subject'])}: {verdict.label(record)}"
    log, ledger = record["vendor_log"], record["ledger"] if has_ledger(record) else None
    vendor, conversions = (shown(ledger["parts_s"].get(part, 0.0), ledger["whole_s"]) if ledger else "–" for part in (VENDOR, CONVERSION))
    if "rows" not in log:
        return [name, "–", "–", vendor, "–", conversions, log["reason"]]
    note = apart(log, ledger) if ledger else ""
    return [name, verdict.microseconds(log["whole_s"]), kernels(log), (f"{vendor}; {note}", "slower") if note else vendor,
            shown(log["conversions_s"], log["whole_s"]), conversions, longest(log)]


def table(records, experiment):
    """A row a side that was asked for its log; None if no side has one, as on a GPU."""
    asked = [r for members in verdict.groups(records, experiment).values() for r in members if r.get("vendor_log")]
    if not any("rows" in r["vendor_log"] for r in asked):
        return None
    return Table("By the vendor's libraries' own logs", COLUMNS, [line_of(r) for r in asked], NOTE)
