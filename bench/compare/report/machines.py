"""Several machines on one page: what each says of the work that they have in common, a column each, and rows that stand in two files."""

from ..records import told_apart
from . import verdict
from .further import Table


def ratios_of(own, experiments):
    """{(work, framework): the Ratio of its fastest mode and our best kernels} on one machine."""
    return {(f"{name}: {verdict.name_of(row.subject)}", framework): ratio for name, experiment in experiments.items()
            if getattr(experiment, "COMPARES", True) for row in verdict.rows(own, name)
            for (kernels, framework), ratio in row.ratios.items() if kernels == "best"}


def table(machines, experiments):
    """The Table of what two of {name: its records} have at least, or None."""
    if len(machines) < 2:
        return None
    found = [ratios_of(own, experiments) for own in machines.values()]
    common = [key for key in dict.fromkeys(k for ratios in found for k in ratios) if sum(key in ratios for ratios in found) > 1]
    rows = [[work, verdict.NAMES.get(framework, framework), *(cell(ratios.get((work, framework))) for ratios in found)] for work, framework in common]
    columns = ["work", "framework", *machines]
    note = "How many times as long a framework takes as Plumbline's best kernels, on each machine by itself."
    return Table("The machines side by side", columns, rows, note) if rows else None


def cell(ratio):
    return (verdict.times(ratio), ratio.verdict) if ratio else "–"


def in_two_files(files):
    """The sentence of how many rows more than one of {name: records} has, in a list: the page shows one of each, the last file's."""
    of = {id(r): name for name, records in files.items() for r in records if not r.get("imported")}
    places = {}
    for number, own in enumerate(told_apart([r for records in files.values() for r in records if id(r) in of])):
        for r in own:
            places.setdefault((number, r["experiment"], r["subject"]["id"], verdict.variant_of(r)), set()).add(of[id(r)])
    twice = [names for names in places.values() if len(names) > 1]
    which = " and ".join(name for name in files if any(name in names for names in twice))
    return [f"{len(twice)} rows stand in {which}, of what seems to be one machine: the page shows those of the last file"] if twice else []
