"""The page: one file that needs nothing else, from records of one machine or several."""

import collections
import pathlib

import jinja2

from ..experiments import ALL
from ..ledger.parts import PARTS
from ..records import newest, told_apart
from . import imported, machines as several, pictures, roofs, vendor_logs, verdict, why
from .further import Further
from .ledgers import ledgers, median_unexplained
from .made_by import commands_of, picture

TEMPLATE = pathlib.Path(__file__).with_name("page.html.j2")
WORK = {"train": "a training step", "forward": "a forward pass", "ops": "one op", "odd_ops": "ops that are said to be slow", "optimizers": "an update alone",
        "synchronisation": "ten training steps, and reading their losses", "input_pipeline": "from bytes to a trained batch",
        "table2": "training, as in the coursework"}


def cell(record):
    low, high = record["confidence_s"]
    return {"time": verdict.microseconds(record["median_s"]), "interval": f"{verdict.microseconds(low)} – {verdict.microseconds(high)}",
            "mode": verdict.label(record)}


def table_of(rows):
    lines = []
    for row in rows:
        ratios = {f"{k} {n}": r for (k, n), r in row.ratios.items()}
        lines.append({"name": verdict.name_of(row.subject), "ours": {k: cell(r) for k, r in row.ours.items() if r},
                      "frameworks": {n: cell(r) for n, r in row.frameworks.items()},
                      "ratios": {k: {"text": verdict.times(r), "verdict": r.verdict} for k, r in ratios.items()}})
    return lines


def plain_title(s):
    """Network and dtype of training with plain SGD; None of other work."""
    is_plain = s["kind"] == "network" and s.get("batch") and s.get("optimizer") in (None, "sgd")
    return f"{s['name']}, {s['dtype']}" if is_plain else None


def throughputs(rows):
    """{network and dtype: {name: [(batch, images a second)]}} of training with plain SGD."""
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows:
        s = row.subject
        if title := plain_title(s):
            for name, record in roofs.sides(row).items():
                images = s["batch"] * s.get("attributes", {}).get("steps", 1)
                found[title][name][s["batch"]] = images / record["median_s"]
    lines = {k: {name: sorted(points.items()) for name, points in v.items()} for k, v in found.items()}
    return {k: v for k, v in lines.items() if any(len(points) > 1 for points in v.values())}


def section(experiment, records):
    """A part of the page. An experiment may say by report(records) what it has beyond sides and their ratios."""
    names = getattr(experiment, "MEASURED_BY", (experiment.NAME,))
    own = newest([r for r in records if r["experiment"] in names])
    if not own:
        return None
    rows = verdict.rows(records, experiment.NAME)
    further = experiment.report(own) if hasattr(experiment, "report") else Further()
    compares = getattr(experiment, "COMPARES", True)
    names = sorted({n for r in rows for n in r.frameworks}) if compares else []
    drawn = [(verdict.name_of(r.subject), {n: r.ratios["best", n] for n in names if ("best", n) in r.ratios}) for r in rows]
    drawn = [(name, ratios) for name, ratios in drawn if ratios]
    figures = [picture(pictures.ratios(drawn, "", "best kernels"), own)] if drawn else []
    figures += [picture(pictures.throughput(lines, f"training {title}"), [r for r in own if plain_title(r["subject"]) == title])
                for title, lines in throughputs(rows).items()] if compares else []
    reached = roofs.shares(rows) if compares else []
    figures += [picture(svg, own) for svg in roofs.figures(reached)]
    summaries = {n: {k: verdict.summary(rows, k, n) for k in ("vendor", "best")} for n in names}
    behind = [{"name": verdict.name_of(r.subject), "framework": n, "ratio": verdict.times(r.ratios["best", n])}
              for r in rows for n in names if ("best", n) in r.ratios and r.ratios["best", n].verdict == "slower"]
    missing = [{"name": verdict.name_of(m["subject"]), "engine": verdict.label(m), "reason": reason_of(m)} for r in rows for m in r.left_out]
    apart = ledgers(records, experiment.NAME)
    return {"ledgers": apart, "unexplained": median_unexplained(apart), "vendor_logs": vendor_logs.table(records, experiment.NAME),
            "name": experiment.NAME, "shows": experiment.SHOWS, "modes": verdict.modes_in_words(records, experiment.NAME, names), "names": names,
            "rows": table_of(rows) if compares else [], "figures": figures + [f if isinstance(f, dict) else picture(f, own) for f in further.figures], "tables": further.tables,
            "verdict": [*further.verdict, *roofs.sentences(experiment.NAME, reached)], "summaries": summaries, "behind": behind, "missing": missing, "work": WORK.get(experiment.NAME, experiment.NAME),
            "notes": why.sentences(records, experiment.NAME) + (verdict.behind_of(experiment.NAME, rows) if compares else []),
            "commands": commands_of(own)}


def reason_of(record):
    if record["status"] != "measured":
        return record.get("reason") or "not measured"
    return "; ".join((record.get("trust") or {}).get("reasons", [])) or (record.get("correctness") or {}).get("reason") or "not trusted"


def machines_of(records):
    """[(environment, runs, records)], a machine each: ratios are never formed across two."""
    return [(own[0]["environment"], {r["run"]["id"]: r["run"] for r in own}, own) for own in told_apart(records)]


def machine_text(e):
    """The processor with its threads, and where the work ran if not there."""
    places = {"cuda": (e.get("gpu") or {}).get("name", "no GPU"), "emulated": "an emulated device, no GPU"}
    place = places.get(e.get("device"))
    return (f"{place}, on " if place else "") + f"{e['processor']}, {e['threads']} threads" + (f", host {e['host']}" if e.get("host") else "")


def gpu_text(gpu):
    """What a record says of a GPU, as far as it is known."""
    known = {"driver": "driver {}", "memory_mib": "{} MiB", "clock_mhz": "{} MHz when it was asked", "most_clock_mhz": "at most {} MHz"}
    power = gpu.get("power_limit_w")  # a word, where the card's driver has one
    limit = [f"{power:.0f} W" if isinstance(power, (int, float)) else f"{power} W"] if power else []
    return ", ".join([gpu["name"], *(text.format(gpu[key]) for key, text in known.items() if gpu.get(key)), *limit, "products in strict f32"])


def environment_text(e):
    """Set-up and roofs, as far as they are known."""
    roofs = {"f32_gflops": "{:.0f} GFLOP/s in f32", "bf16_gflops": "{:.0f} GFLOP/s in bf16", "copy_gbytes": "{:.0f} GB/s copied"}
    known = [text.format(e[key]) for key, text in roofs.items() if e.get(key)]
    parts = [e.get("system"), e.get("kernel") and f"Linux {e['kernel']}", f"{e.get('processors')} processors",
             e.get("memory_bytes") and f"{e['memory_bytes'] / 1e9:.1f} GB", "roofs " + ", ".join(known) if known else None,
             e.get("gpu") and gpu_text(e["gpu"]), e.get("openmp") and f"OpenMP's {e['openmp']}"]
    return ", ".join(p for p in parts if p)


def page(records):
    machines = []
    all_ = machines_of(imported.without(records))
    beside = several.table({f"{i}: {machine_text(e)}": own for i, (e, _, own) in enumerate(all_, 1)}, ALL)
    for environment, runs, own in all_:
        sections = [s for s in (section(e, own) for e in ALL.values()) if s]
        versions = sorted({f"{r['engine']['name']} {r['engine']['version']}" for r in own if r["engine"]["version"]})
        machines.append({"environment": environment, "runs": list(runs.values()), "sections": sections, "versions": versions,
                         "libraries": sorted({x for r in own for x in r["engine"].get("libraries", [])}),
                         "names": verdict.in_order({n for s in sections for n in s["names"]}),
                         "notes": [n for s in sections for n in s["notes"]] + verdict.uncounted(own, ALL)})
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(TEMPLATE.read_text()).render(
        machines=machines, beside=beside, imported=imported.html(records, verdict.microseconds), part_names=PARTS, time=verdict.microseconds,
        environment_text=environment_text, machine_text=machine_text, of_fewer=verdict.of_fewer, called=lambda name: verdict.NAMES.get(name, name))
