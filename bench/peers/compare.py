"""Training steps of Plumbline, PyTorch and TensorFlow, run in turn on the same weights and batch.

Every worker is a process of its own that sleeps while another runs. After a warm-up the workers take turns, a few steps at a
time. The table shows the median and the spread (10th and 90th percentile) of each one's steps, how many times Plumbline's
median that is, and the spread of the same ratio taken round by round.

    python compare.py --plumb build/cpu/bin/plumb_bench_train --torch PYTHON --tensorflow PYTHON --model alexnet
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from networks import write_problem
from protocol import percentile

HERE = pathlib.Path(__file__).resolve().parent


class Worker:
    def __init__(self, name, command, environment=None):
        self.name = name
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})}, cwd=HERE)
        self.info = self.read("ready")
        self.ms, self.rounds, self.losses, self.peak = [], [], [], 0

    def read(self, word):
        for line in self.process.stdout:
            if line.startswith(word + " "):
                return json.loads(line[len(word):])
        raise SystemExit(f"{self.name}: the worker ended with status {self.process.wait()}")

    def run(self, steps, keep=True):
        self.process.stdin.write(f"run {steps}\n")
        self.process.stdin.flush()
        result = self.read("steps")
        self.peak = result["peak_rss_bytes"]
        self.losses += result["losses"]
        if keep:
            self.ms += result["ms"]
            self.rounds.append(statistics.median(result["ms"]))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def program(text):
    """A program by its path or by its name. Links are kept: a virtual environment's Python is one."""
    return os.path.abspath(text) if os.sep in text else text


def write_report(file, arguments, rows):
    """One line a row. Of programs, the names: where they stood on this machine means nothing on another."""
    named = {key: pathlib.Path(value).name if isinstance(value, str) and os.sep in value and "modes" not in key else value
             for key, value in arguments.items()}
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    pathlib.Path(file).write_text(f'{{"arguments": {json.dumps(named)},\n "rows": [\n{lines}\n]}}\n')


def modes(text):
    return [mode for mode in text.split(",") if mode]


def commands(a, weights, batch_file):
    common = ["--model", a.model, "--weights", weights, "--batch-file", batch_file, "--batch", a.batch, "--threads", a.threads,
              "--dtype", a.dtype, "--lr", a.lr]
    limit = {"OMP_NUM_THREADS": str(a.threads)}
    for mode in a.plumb_modes.split(","):
        algorithm, _, execution = mode.partition("/")
        kernels = ["--kernels", "vendor"] if algorithm == "vendor" else ["--algorithm", algorithm]
        yield f"plumbline {mode}", [a.plumb, *common, "--optimizer", a.optimizer, *kernels, "--mode", execution or "eager"], limit
    preloads = [("", limit)]
    if a.tcmalloc:
        preloads.append((" + tcmalloc", {**limit, "LD_PRELOAD": a.tcmalloc}))
    for suffix, environment in preloads:
        for mode in modes(a.torch_modes) if a.torch else []:
            fused = "adam-fused" if a.optimizer == "adam" else a.optimizer
            yield f"torch {mode}{suffix}", [a.torch, "worker_torch.py", *common, "--optimizer", fused, "--mode", mode], environment
        for mode in modes(a.tensorflow_modes) if a.tensorflow else []:
            yield f"tensorflow {mode}{suffix}", [a.tensorflow, "worker_tensorflow.py", *common, "--optimizer", a.optimizer, "--mode", mode], environment


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plumb", required=True, type=program, help="plumb_bench_train")
    parser.add_argument("--plumb-modes", default="measured/eager,vendor/eager", help="ALGORITHM/MODE,..., vendor being measured among the vendor's kernels")
    parser.add_argument("--torch", type=program, help="a Python with the packages of requirements-torch.txt")
    parser.add_argument("--torch-modes", default="eager,channels_last,compile,compile_channels_last")
    parser.add_argument("--tensorflow", type=program, help="a Python with the packages of requirements-tensorflow.txt")
    parser.add_argument("--tensorflow-modes", default="eager,function,xla")
    parser.add_argument("--tcmalloc", help="libtcmalloc.so to preload in a second run of every peer")
    parser.add_argument("--model", choices=["alexnet", "vgg16"], default="alexnet")
    parser.add_argument("--batch", type=int, default=250)
    parser.add_argument("--batches", type=int, default=1, help="different batches, taken in turn")
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2, help="steps a round")
    parser.add_argument("--json", help="write the raw numbers to this file")
    a = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        weights, batch_file = write_problem(pathlib.Path(folder), a.model, a.batch, batches=a.batches)
        workers = []
        for name, command, environment in commands(a, weights, batch_file):
            print(f"starting {name}", file=sys.stderr, flush=True)
            workers.append(Worker(name, command, environment))
            workers[-1].run(a.warm_up, keep=False)
        for _ in range(a.rounds):
            for worker in workers:
                worker.run(a.steps)
        for worker in workers:
            worker.close()

    ours = statistics.median(workers[0].ms)
    print(f"{a.model}, batch {a.batch}, {a.dtype}, {a.optimizer}, {a.threads} threads; {a.rounds} rounds of {a.steps} steps in turn")
    print(f"{'':38} {'median ms':>10} {'p10':>9} {'p90':>9} {'ratio':>7} {'p10':>6} {'p90':>6} {'peak MB':>8} {'first loss':>11} "
          f"{'first ms':>9}")
    for w in workers:
        median = statistics.median(w.ms)
        ratios = [theirs / own for theirs, own in zip(w.rounds, workers[0].rounds)]
        print(f"{w.name:38} {median:10.2f} {percentile(w.ms, 0.1):9.2f} {percentile(w.ms, 0.9):9.2f} {median / ours:7.2f} "
              f"{percentile(ratios, 0.1):6.2f} {percentile(ratios, 0.9):6.2f} "
              f"{w.peak / 1e6:8.0f} {w.info['first_loss']:11.6f} {w.info['first_step_ms']:9.0f}")
    spread = max(w.info["first_loss"] for w in workers) - min(w.info["first_loss"] for w in workers)
    if a.dtype == "f32" and spread > 1e-3:
        raise SystemExit(f"the first losses differ by {spread}: these are not the same problem")
    if a.json:
        rows = [{"name": w.name, "info": w.info, "ms": w.ms, "losses": w.losses, "peak_rss_bytes": w.peak} for w in workers]
        write_report(a.json, vars(a), rows)


if __name__ == "__main__":
    main()
