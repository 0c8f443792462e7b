"""Google Benchmark's JSON: PROGRAM --benchmark_out=FILE --benchmark_repetitions=9. Of plumb_bench_ops, whose rows are paths, all that
the path says is taken too. Repetitions become samples; aggregates are passed over."""

import pathlib
import re
import statistics as st

from .building import engine, record, subject
from .source import is_finite

NAME = "google-benchmark"
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
PATH = re.compile(r"(?P<op>\w+)/(?P<direction>(?:forward|inference|backward|update)(?:_\w+)?)/(?P<device>cpu|cuda(?::\d+)?)/"
                  r"(?P<layout>nchw|nhwc|chwn)/(?P<dtype>f32|tf32|bf16|f16|f64)/(?P<algorithm>\w+)/(?P<problem>.+)")
DIRECTIONS = ("forward", "inference", "backward", "backward_input", "backward_weight", "backward_a", "backward_b", "update")
AGGREGATE = ("_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS")  # by name, in reports that are too old to say it
# What is no counter of the user's.
OWN = {"family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations", "real_time", "cpu_time"}
PLACED = {"GFLOP/s", "GB/s", "roof_share", "allocations", "conversions"}  # counters that have a field of a record


def records(source, name=None):
    report = source.json()
    rows = report.get("benchmarks") if isinstance(report, dict) else None
    if not isinstance(rows, list):
        raise source.bad(1, 'this is no report in Google Benchmark\'s JSON: it has no list "benchmarks"')
    context = report.get("context")
    context = context if isinstance(context, dict) else {}
    found = {}
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            raise source.bad(getattr(row, "line", 1), "a benchmark without a name")
        if not is_aggregate(row):
            found.setdefault(str(row.get("run_name", row["name"])), []).append(row)
    if not found:
        raise source.bad(1, "it has no single run" + ("; repeat without --benchmark_report_aggregates_only" if rows else ""))
    for path, runs in found.items():
        yield record_of(source, context, path, runs, name)


def is_aggregate(row):
    return row.get("run_type", "aggregate" if row["name"].endswith(AGGREGATE) else "iteration") != "iteration"


def record_of(source, context, path, runs, name):
    what, who = of_path(path, context, name)
    environment = environment_of(context)
    for r in runs:
        if r.get("error_occurred") or r.get("skipped"):
            reason = str(r.get("error_message") or r.get("skip_message") or "it failed, and does not say why")
            return record(source, NAME, what, who, reason=reason, environment=environment)
        if str(r.get("time_unit", "ns")) not in UNITS:
            raise source.bad(r.line, f"time_unit is {r['time_unit']!r:.40}; known are {', '.join(UNITS)}")
    samples = [[source.seconds(r.get("real_time"), r.line, f"real_time of {path}", UNITS[r.get("time_unit", "ns")])] for r in runs]
    counters = counters_of(runs)
    calls = {r.get("iterations") if type(r.get("iterations")) is int else None for r in runs}
    label = runs[0].get("label")
    return record(source, NAME, what, who, rounds_s=samples, environment=environment,
                  calls_per_sample=calls.pop() if len(calls) == 1 else None,
                  gflops=counters.get("GFLOP/s"), gbytes=counters.get("GB/s"), roof_share=counters.get("roof_share"),
                  allocations=counters.get("allocations"), implementation=label if isinstance(label, str) else None,
                  conversions={"count": counters["conversions"]} if "conversions" in counters else None,
                  rest={k: v for k, v in counters.items() if k not in PLACED})


def counters_of(runs):
    """The median of every counter over the repetitions."""
    def numbers(key):
        return [r[key] for r in runs if is_finite(r.get(key))]
    return {k: float(st.median(numbers(k))) for k in runs[0] if k not in OWN and numbers(k)}


def of_path(path, context, name):
    """Subject and engine. Rows of plumb_bench_ops that differ in algorithm and layout alone did the same work."""
    version = context.get("plumbline")
    parts = PATH.fullmatch(path) if version else None
    if not parts:
        function, _, arguments = path.partition("/")
        program = pathlib.PurePath(str(context.get("executable") or "benchmark")).stem
        return subject(NAME, "op", function, arguments), engine(name or program)
    op, direction = parts["op"], parts["direction"]
    if direction not in DIRECTIONS:  # forward_bias_relu: an op of its own
        direction, _, fused = direction.partition("_")
        op += f"_{fused}"
    libraries = [f"{k.removeprefix('library_')} {v}" for k, v in context.items() if k.startswith("library_") and k != "library_build_type"]
    return (subject(NAME, "op", op, parts["problem"], direction, parts["dtype"], parts["layout"]),
            engine(name or "plumbline", f"{parts['algorithm']} {parts['layout']}", str(version), parts["device"], libraries))


def environment_of(context):
    texts = {"processor": "processor", "host": "host_name", "date": "date"}
    numbers = {"processors": "num_cpus", "clock_mhz": "mhz_per_cpu", "threads": "plumb_threads", "f32_gflops": "roof_f32_gflops",
               "bf16_gflops": "roof_bf16_gflops", "copy_gbytes": "copy_gbytes"}
    said = {**{k: context[v] for k, v in texts.items() if isinstance(context.get(v), str)},
            **{k: number(context.get(v)) for k, v in numbers.items()}}
    return {k: v for k, v in said.items() if v is not None}


def number(text):
    """Of a JSON number, or of a text: what a program adds to the context is text."""
    try:
        value = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return (int(value) if value.is_integer() else value) if is_finite(value) else None
