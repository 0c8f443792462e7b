"""Two sets of records, row by row: which rows of the second are faster, slower, the same, or unclear."""

from ..measuring.statistics import ratio_of
from ..records import machine_of
from . import verdict


def measured(records):
    """{(experiment, subject, engine, machine): record}, the last of each: two machines have no row in common."""
    return {(r["experiment"], r["subject"].get("id") or verdict.name_of(r["subject"]), verdict.label(r), machine_of(r)): r
            for r in records if verdict.counts(r)}


def diff(before, after):
    """[(name, Ratio)] of rows that both have; a ratio above 1 means that the second takes longer."""
    first, second = measured(before), measured(after)
    return [(f"{key[0]}: {verdict.name_of(first[key]['subject'])}, {key[2]}", ratio_of(first[key]["rounds_s"], second[key]["rounds_s"]))
            for key in first if key in second]


WORDS = {"faster": "slower", "slower": "faster", "same": "same", "ambiguous": "ambiguous"}  # of the first; here of the second


def lines(rows):
    for name, ratio in sorted(rows, key=lambda row: -row[1].value):
        yield f"{WORDS[ratio.verdict]:9}  {verdict.times(ratio):>22}  {name}"


def is_slower(rows):
    return any(WORDS[ratio.verdict] == "slower" for _, ratio in rows)
