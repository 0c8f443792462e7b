"""Prints what calls cost in Plumbline and in libtorch, and their ratios, from the rounds that overhead.sh ran."""

import glob
import json
import statistics
import sys

# The share of libtorch's cost that a row may take, and absolute limits in ns.
GOALS = {
    "add/forward/cpu/nchw/f32/eager/1": 1 / 5,
    "add/forward/cpu/nchw/f32/tape/1": 1 / 5,
    "mul/gradient/cpu/nchw/f32/tape/1": 1 / 10,
    "conv2d/forward/cpu/nchw/f32/eager/1x16x8x8": 1 / 3,
}
LIMITS_NS = {"add/forward/cpu/nchw/f32/captured/1": 20}


def read_rounds(folder):
    """{row: [ns of each round]} of both programs."""
    plumb, torch = {}, {}
    for file in sorted(glob.glob(folder + "/plumb.*.json")):
        with open(file) as f:
            for row in json.load(f)["benchmarks"]:
                plumb.setdefault(row["name"], []).append(row["ns_per_op"])
    for file in sorted(glob.glob(folder + "/torch.*.txt")):
        with open(file) as f:
            for line in f:
                name, ns = line.split()
                torch.setdefault(name, []).append(float(ns))
    return plumb, torch


def main():
    plumb, torch = read_rounds(sys.argv[1])
    missed = 0
    print(f"{'row':<46}{'plumb ns':>10}{'libtorch ns':>13}{'ratio':>8}  goal")
    for name, rounds in plumb.items():
        ours = statistics.median(rounds)
        theirs = statistics.median(torch[name]) if name in torch else None
        ratio = statistics.median(o / t for o, t in zip(rounds, torch[name])) if theirs else None
        goal = ""
        if name in GOALS:
            met = ratio <= GOALS[name]
            goal = f"<= {GOALS[name]:.3f} {'met' if met else 'MISSED'}"
            missed += not met
        if name in LIMITS_NS:
            met = ours <= LIMITS_NS[name]
            goal = f"<= {LIMITS_NS[name]} ns {'met' if met else 'MISSED'}"
            missed += not met
        print(f"{name:<46}{ours:>10.1f}{theirs or float('nan'):>13.1f}{ratio or float('nan'):>8.3f}  {goal}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
