"""What was measured elsewhere, as tables of its own: a machine each, a column an engine. No ratio is formed."""

import itertools
import pathlib

import jinja2
import pandas as pd

from . import verdict
from .means import means

TEMPLATE = pathlib.Path(__file__).with_name("imported.html.j2")
UNKNOWN = "unknown"


def is_imported(record):
    return bool(record.get("imported"))


def without(records):
    return [r for r in records if not is_imported(r)]


def machines_of(records):
    """[records], a machine each, or a file each where the machine is unknown."""
    found = {}
    for r in filter(is_imported, records):
        e = r["environment"]
        known = e.get("host") or e.get("processor", UNKNOWN) != UNKNOWN
        key = (e.get("processor"), e.get("host"), e.get("processors"), e.get("threads")) if known else r["run"]["id"]
        found.setdefault(key, []).append(r)
    return list(found.values())


def row_of(subject):
    parts = [subject["name"], subject["problem"], *(subject[k] for k in ("direction", "dtype") if subject[k] != UNKNOWN),
             f"batch {subject['batch']}" if subject.get("batch") else "", subject.get("optimizer") or "",
             f"learning rate {subject['attributes']['learning_rate']:g}" if "learning_rate" in subject.get("attributes", {}) else ""]
    return " ".join(p for p in dict.fromkeys(parts) if p)


def cell(record, microseconds):
    if record["status"] != "measured":
        return {"text": "N/A", "small": record["reason"], "seconds": None}
    rate = f"{record['gflops']:.4g} GFLOP/s" if record.get("gflops") else f"{record['gbytes']:.3g} GB/s" if record.get("gbytes") else None
    samples = sum(len(r) for r in record.get("rounds_s", []))
    accuracy = [a for a in record.get("accuracy") or [] if a is not None]
    small = [rate, f"{samples} samples" if samples > 1 else None, f"accuracy at last {accuracy[-1]:g}" if accuracy else None,
             (record["imported"] or {}).get("note")]
    seconds = record.get("median_s")
    return {"text": microseconds(seconds) if seconds else "–", "small": "; ".join(s for s in small if s), "seconds": seconds or None}


def table_of(records, microseconds):
    """(columns, [(row, {column: cell})]). An engine has a column more where a row has another of its figures already: from another file, say."""
    rows, columns = {}, {}
    for r in records:
        e = r["engine"]
        name = " ".join(p for p in (verdict.label(r), e["version"], f"on {e['device']}" if e.get("device") not in (None, "cpu") else "") if p)
        _, cells = rows.setdefault((r["experiment"], r["subject"]["id"]), (row_of(r["subject"]), {}))
        again = (f"{name}, {r['imported']['source']}" + (f" ({number})" if number > 1 else "") for number in itertools.count(1))
        column = next(c for c in itertools.chain([name], again) if c not in cells)
        columns[column] = None
        cells[column] = cell(r, microseconds)
    return list(columns), list(rows.values())


def means_of(columns, rows, microseconds):
    """How many rows all columns have, and by column how many it has and the means of its times, or nothing where there is nothing beside."""
    grid = pd.DataFrame({c: [cells[c]["seconds"] if c in cells else None for _, cells in rows] for c in columns}, dtype=float)
    grid = grid.dropna(axis="columns", how="all")  # accuracies have no time
    if len(grid.columns) < 2:
        return None
    table = means(grid)
    paired = int(table["paired_cells"].iloc[0])
    texts = {c: {k: microseconds(t[k]) if k == "mean" or paired else "–" for k in ("mean", "paired_mean", "paired_geometric")} | {"cells": int(t["cells"])}
             for c, t in table.to_dict("index").items()}
    return {"paired": paired, "columns": texts}


def html(records, microseconds):
    """The section of the page, or nothing."""
    machines = []
    for own in machines_of(records):
        e = own[0]["environment"]
        columns, rows = table_of(own, microseconds)
        title = e["processor"] if e.get("processor", UNKNOWN) != UNKNOWN else "A machine that the file does not name"
        details = [f"{e[k]} {k}" for k in ("processors", "threads") if e.get(k)] + ([f"host {e['host']}"] if e.get("host") else [])
        machines.append({"title": title, "details": ", ".join(details), "columns": columns, "rows": rows,
                         "means": means_of(columns, rows, microseconds),
                         "sources": sorted({f"{r['imported']['source']} ({r['imported']['format']})" for r in own}),
                         "commands": sorted({(r["run"].get("command") or "", r["run"]["started"]) for r in own})})
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(TEMPLATE.read_text()).render(machines=machines)
