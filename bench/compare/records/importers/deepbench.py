"""DeepBench, as its conv_bench and gemm_bench print: training or inference, times in whole microseconds."""

import re

import problems_of

from ...problems import catalogue
from .building import engine, record, subject

NAME = "deepbench"
UNITS = {"usec": 1e-6, "us": 1e-6, "msec": 1e-3, "ms": 1e-3}
DTYPES = {"float": "f32", "half": "f16", "int8": "i8", "double": "f64"}
CONV = ("w", "h", "c", "n", "k", "f_w", "f_h", "pad_w", "pad_h", "stride_w", "stride_h")
GEMM = ("m", "n", "k", "a_t", "b_t")
DIRECTIONS = {"fwd_time": "forward", "bwd_inputs_time": "backward_input", "bwd_params_time": "backward_weight", "time": "forward"}
TRANSPOSED = {"t": "1", "n": "0"}


def records(source, name=None):
    columns = units = None
    rows = 0
    for line, text in source.lines():
        if re.search(r"\((?:usec|us|msec|ms)\)", text):
            columns, units = columns_of(source, line, text)
        elif re.match(r"\s*-?\d", text):
            if not columns:
                raise source.bad(line, "numbers without the line above that names the columns")
            rows += 1
            yield from records_of(source, line, text, columns, units, name or NAME)
    if not rows:
        raise source.bad(1, "there is no result of DeepBench's conv_bench or gemm_bench here")


def columns_of(source, line, text):
    """The names of the columns, and the unit of each time: "fwd_time (usec)"."""
    units = {column: UNITS[unit] for column, unit in re.findall(r"(\w+) \((usec|us|msec|ms)\)", text)}
    columns = re.sub(r"\((?:usec|us|msec|ms)\)", " ", text).split()
    columns = [{"r": "f_h", "s": "f_w"}.get(c, c) for c in columns]  # as the first versions named them, the height first
    if not any(set(columns[:len(shape)]) == set(shape) for shape in (CONV, GEMM)):
        raise source.bad(line, f"a table of {' '.join(columns)[:60]} is not read; those of conv_bench and gemm_bench are")
    times = [c for c in columns if c in DIRECTIONS]
    if not times or not units.keys() >= set(times):
        raise source.bad(line, "a table without a time, or with one whose unit is not said")
    return columns, units


def records_of(source, line, text, columns, units, name):
    cells = text.replace("Not Supported", "N/A").split()
    if len(cells) == len(columns) - 1 and "N/A" in cells and columns[-1] == "fwd_algo":
        cells.append("")  # what was not run has no algorithm
    if len(cells) != len(columns):
        raise source.bad(line, f"there are {len(cells)} values under {len(columns)} columns")
    row = dict(zip(columns, cells))
    shape = CONV if "w" in row else GEMM
    try:
        made = problems_of.of_numbers([int(TRANSPOSED.get(row[c].lower(), row[c])) for c in shape])
        (problem,) = catalogue.forward_problems([catalogue.table_line(*made.split())])
    except (ValueError, OverflowError, problems_of.Wrong):
        raise source.bad(line, f"{' '.join(row[c] for c in shape)[:80]} is no convolution and no product") from None
    dtype = DTYPES.get(row.get("precision", ""), "unknown")
    padded = "padded to what the kernels ask for; the rate counts the problem without it" if row.get("pad_kerenels") == "1" else None
    of = problem.subject()
    shapes = {k: of["shapes"][k] for k in (("a", "b") if shape is GEMM else ("x", "w"))}  # its convolutions have no bias
    for column in (c for c in DIRECTIONS if c in row):
        what = subject(NAME, "op", of["name"], of["problem"], DIRECTIONS[column], dtype, flops=of["flops"], attributes=of["attributes"],
                       shapes=shapes, batch=None if shape is GEMM else of["batch"])
        fields = {"note": padded, "implementation": row.get("fwd_algo") if column == "fwd_time" else None}
        if row[column] in ("N/A", "0"):
            reason = "not supported" if row[column] == "N/A" else "it took less than the microsecond in which its program counts"
            yield record(source, NAME, what, engine(name), reason=reason)
        else:
            yield record(source, NAME, what, engine(name), median_s=source.seconds(row[column], line, column, units[column]), **fields)
