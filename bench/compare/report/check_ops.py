"""Holds the rows of plumb_bench_ops against what stands beside them: convolutions and matrix products against oneDNN alone
(raw_same), rows that memory bounds against a plain copy (copy_floor). Prints a summary and the exceptions with their causes.

    plumb_bench_ops --benchmark_filter='/f32/.*vgg16' --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true \\
        --benchmark_out=ops.json
    python check_ops.py ops.json

Times are the fastest iteration of all repetitions and files: on a machine that others use, the one that repeats.
The exit status is 1 if an exception has no cause in the file of causes, and 2 if a file cannot be read.
"""

import argparse
import collections
import json
import pathlib
import re
import statistics
import sys

MOST_OF_RAW = 1.03     # of raw_same's time, for rows above SHORT_US
MOST_ABOVE_US = 0.3    # what shorter rows may take more
LEAST_OF_FLOOR = 0.8   # of the copy floor's speed
SHORT_US = 20

Row = collections.namedtuple("Row", "path us label")
Verdict = collections.namedtuple("Verdict", "row twin ratio good")


def read_rows(files):
    """{path: Row} with the fastest iteration of every row."""
    rows = {}
    for file in files:
        try:
            benchmarks = json.loads(pathlib.Path(file).read_text())["benchmarks"]
        except OSError as e:
            refuse(f"{file}: {e.strerror}")
        except (ValueError, KeyError, TypeError):
            refuse(f"{file} is not a whole report in Google Benchmark's JSON")
        for r in benchmarks:
            if r.get("run_type") != "iteration" or "min_us" not in r:
                continue
            path = r["run_name"]
            if path not in rows or r["min_us"] < rows[path].us:
                rows[path] = Row(path, r["min_us"], r.get("label", ""))
    if not rows:
        refuse("there are no rows of plumb_bench_ops in " + " ".join(files))
    return rows


def refuse(sentence):
    print(f"check_ops.py: {sentence}", file=sys.stderr)
    sys.exit(2)


def parts_of(path):
    op, direction, device, layout, dtype, algorithm, problem = path.split("/", 6)
    return op, direction, device, layout, dtype, algorithm, problem


def with_algorithm(path, algorithm):
    parts = list(parts_of(path))
    parts[5] = algorithm
    return "/".join(parts)


def raw_class(algorithm):
    """The CLASS of the row raw_same_CLASS beside an algorithm: raw_class of measure/onednn/raw.cpp again, to be changed with it."""
    if algorithm.startswith("winograd"):
        return "winograd"
    if algorithm.startswith("gemm"):
        return "gemm"
    if algorithm in ("direct_chwn", "reference") or algorithm.startswith(("im2col", "skinny_gemm", "via_f32")):
        return "blocked"
    return algorithm


def twins_of(algorithm):
    """The algorithms of the raw rows to hold a row against, the first that is there: in the order in which bench/raw_rows.h
    looks for the one behind raw_same."""
    if algorithm in ("measured", "eager"):
        return ["raw_same"]
    return [f"raw_same_{kind}" for kind in (raw_class(algorithm), "direct", "blocked")]


def is_reference(algorithm):
    return algorithm == "copy_floor" or algorithm.startswith("raw_")


def verdicts(rows):
    """(those against oneDNN, those against the copy floor)"""
    raw, floor = [], []
    for path, row in rows.items():
        algorithm = parts_of(path)[5]
        if is_reference(algorithm) or algorithm in ("vendor", "apart"):  # the fastest of rows that are held against theirs; several ops
            continue
        twin = next((rows[p] for a in twins_of(algorithm) if (p := with_algorithm(path, a)) in rows), None)
        if twin:
            good = row.us <= twin.us * MOST_OF_RAW if twin.us > SHORT_US else row.us <= twin.us + MOST_ABOVE_US
            raw.append(Verdict(row, twin, row.us / twin.us, good))
            continue
        twin = rows.get(with_algorithm(path, "copy_floor"))
        if twin and algorithm != "eager":
            good = row.us * LEAST_OF_FLOOR <= twin.us or (twin.us <= SHORT_US and row.us <= twin.us + MOST_ABOVE_US)
            floor.append(Verdict(row, twin, twin.us / row.us, good))
    return raw, floor


def print_groups(title, found, worst):
    print(f"\n{title}\n{'':<52}{'rows':>6}{'median':>8}{'worst':>8}{'exceptions':>12}")
    groups = collections.defaultdict(list)
    for v in found:
        op, direction, _, layout, dtype, algorithm, _ = parts_of(v.row.path)
        groups[f"{op}/{direction} {layout} {dtype} {algorithm}"].append(v)
    for name, group in groups.items():
        ratios = [v.ratio for v in group]
        print(f"{name:<52}{len(group):>6}{statistics.median(ratios):>8.3f}{worst(ratios):>8.3f}"
              f"{sum(not v.good for v in group):>12}")
    ratios = [v.ratio for v in found]
    print(f"{'all':<52}{len(found):>6}{statistics.median(ratios):>8.3f}{worst(ratios):>8.3f}{sum(not v.good for v in found):>12}")


def read_causes(file):
    """[(regular expression, cause)] from lines "expression<tab>cause"; # begins a comment."""
    try:
        lines = pathlib.Path(file).read_text().splitlines()
    except OSError as e:
        refuse(f"{file}: {e.strerror}")
    except UnicodeDecodeError:
        refuse(f"{file} is not text")
    causes = []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            pattern, tab, cause = line.partition("\t")
            if not tab:
                refuse(f"{file}, line {number}: there is no tab between an expression and its cause")
            try:
                causes.append((re.compile(pattern), cause.strip()))
            except (re.error, OverflowError) as e:
                refuse(f"{file}, line {number}: {pattern} is no regular expression: {e}")
    return causes


def print_exceptions(found, causes):
    """Returns how many have no cause."""
    unexplained = 0
    for v in found:
        cause = next((c for pattern, c in causes if pattern.search(v.row.path)), None)
        unexplained += cause is None
        print(f"{v.row.path}\n    {v.row.us:.1f} us ({v.row.label}), beside it {v.twin.us:.1f} us ({v.twin.label}): {v.ratio:.3f}"
              f"\n    {cause or 'NO CAUSE IS KNOWN'}")
    return unexplained


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="JSON files of plumb_bench_ops")
    parser.add_argument("--causes", default=pathlib.Path(__file__).with_name("causes.txt"), help="expression<tab>cause, a line each")
    args = parser.parse_args()
    causes = read_causes(args.causes)  # refused now, not after half of the report
    raw, floor = verdicts(read_rows(args.files))
    if raw:
        print_groups(f"time / raw_same, at most {MOST_OF_RAW} (below {SHORT_US} us: at most {MOST_ABOVE_US} us more)", raw, max)
    if floor:
        print_groups(f"copy floor / time, at least {LEAST_OF_FLOOR}", floor, min)
    exceptions = sorted((v for v in raw if not v.good), key=lambda v: -v.ratio)
    exceptions += sorted((v for v in floor if not v.good), key=lambda v: v.ratio)
    print(f"\n{len(exceptions)} exceptions of {len(raw) + len(floor)} rows")
    unexplained = print_exceptions(exceptions, causes)
    if unexplained:
        print(f"\n{unexplained} exceptions have no known cause")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
