"""beside_test.py PLUMB_BENCH_OPS: every row of a convolution or a product has rows against oneDNN alone beside it, every other
one a copy floor."""

import collections
import subprocess
import sys

BESIDE = {"conv2d": {"raw_same", "raw_best"}, "linear": {"raw_same", "raw_best"}, "matmul": {"raw_same", "raw_best"}}
BESIDE_OTHERS = {"copy_floor"}


def main():
    listed = subprocess.run([sys.argv[1], "--dtypes", "f32", "--batch", "1", "--benchmark_list_tests"], capture_output=True, text=True, check=True)
    algorithms = collections.defaultdict(set)  # of a row's op, direction, device, layout, dtype and problem
    for path in listed.stdout.split():
        parts = path.split("/", 6)
        algorithms[(*parts[:5], parts[6])].add(parts[5])
    if not any(row[0] == op for op in BESIDE for row in algorithms):
        sys.exit("there are no rows of convolutions and products")
    missing = [f"{'/'.join(row)}: {', '.join(sorted(wanted - there))}" for row, there in sorted(algorithms.items())
               if (wanted := BESIDE.get(row[0], BESIDE_OTHERS)) - there]
    if missing:
        sys.exit("rows without what must stand beside them:\n" + "\n".join(missing))


if __name__ == "__main__":
    main()
