"""torch.utils.benchmark, as JSON of what its Measurements hold:

    import dataclasses, json, torch
    rows = [dataclasses.asdict(m) for m in measurements]
    json.dump({"torch": torch.__version__, "measurements": rows}, open("torch.json", "w"))

Pickled measurements are refused: they need torch, and may run anything. label, env and sub_label (or stmt, as in torch's Compare) are the
row, description is the column.
"""

import collections

from .building import engine, record, subject

NAME = "torch"


def records(source, name=None):
    held = source.json()
    rows = held.get("measurements") if isinstance(held, dict) else held
    if not isinstance(rows, list) or not rows:
        raise source.bad(1, 'this has no list "measurements" of torch.utils.benchmark')
    version = held.get("torch") if isinstance(held, dict) else None
    found = {}
    for row in rows:
        task, samples = task_of(source, row), samples_of(source, row)
        # A task that was measured again has another round, as torch's Compare merges them.
        found.setdefault(repr(sorted(task.items())), []).append((task, samples, row["number_per_run"]))
    environments = collections.defaultdict(set)
    for (task, _, _), *_ in found.values():
        environments[task["label"]].add(task["env"])
    for measured in found.values():
        task = measured[0][0]
        calls = {number for _, _, number in measured}
        who = engine(name or "torch", task["description"] or "", version if isinstance(version, str) else None)
        yield record(source, NAME, subject_of(task, len(environments[task["label"]]) > 1), who,
                     rounds_s=[samples for _, samples, _ in measured], calls_per_sample=calls.pop() if len(calls) == 1 else None,
                     environment={"env": task["env"]} if task["env"] else None)


def task_of(source, row):
    if not isinstance(row, dict) or not isinstance(row.get("task_spec"), dict):
        raise source.bad(getattr(row, "line", 1), "a measurement without its task_spec")
    task = {key: row["task_spec"].get(key) for key in ("label", "sub_label", "description", "env", "stmt", "setup", "num_threads")}
    for key, value in task.items():
        if not (value is None or isinstance(value, int if key == "num_threads" else str)):
            raise source.bad(row["task_spec"].line, f"{key} of a task_spec is {value!r:.40}")
    if not (task["label"] or task["stmt"]):
        raise source.bad(row["task_spec"].line, "a task_spec with neither label nor stmt")
    return task


def samples_of(source, row):
    """Seconds a call: `times` are those, `raw_times` of number_per_run calls."""
    number = row.get("number_per_run")
    if type(number) is not int or number < 1:
        raise source.bad(row.line, f"number_per_run is {number!r:.40}; it counts calls")
    key = "times" if "times" in row else "raw_times"
    times = row.get(key)
    if not isinstance(times, list) or not times:
        raise source.bad(row.line, f"a measurement without {key}")
    return [source.seconds(t, row.line, f"one of {key}", 1 if key == "times" else 1 / number) for t in times]


def subject_of(task, env_tells):
    name = task["label"] or "; ".join(task["stmt"].splitlines())
    threads = task["num_threads"] or 1
    # Where there is a sub_label, statements differ by column: they are ways to do the row's work.
    row = task["sub_label"] or (task["label"] and "; ".join((task["stmt"] or "").splitlines())[:100])
    problem = ", ".join(part for part in (row, task["env"] if env_tells else None, f"{threads} threads" if threads > 1 else None) if part)
    code = {} if task["sub_label"] else {k: task[k] for k in ("stmt", "setup") if task[k]}
    return subject(NAME, "op", name[:100], problem, attributes={"num_threads": threads, **code})
