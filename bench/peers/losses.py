"""The losses of Plumbline's training steps beside PyTorch's and TensorFlow's, from the same weights on the same batches.

Each framework runs twice, with one thread and with more: sums in another order are all that differs, and how far that takes
the two runs apart is what "the same" can mean. Plumbline in a framework's convention may be as far from it, times a margin;
at no step is less asked than a few roundings of the loss. The exit status is 1 where it is further.

    python losses.py --plumb build/cpu/bin/plumb_bench_train --torch PYTHON --tensorflow PYTHON --model alexnet
"""

import argparse
import json
import pathlib
import sys
import tempfile

from compare import Worker, program
from networks import write_problem

MARGIN = 30       # times the distance of a framework's own two runs, at this step or before: Winograd rounds more than sums
ROUNDINGS = 2e-6  # of the loss: sixteen roundings of f32; a framework's own two runs are up to two apart (docs/measured.md)


def losses_of(name, command, threads, steps):
    print(f"running {name}, {threads} threads", file=sys.stderr, flush=True)
    worker = Worker(name, [*command, "--threads", threads], {"OMP_NUM_THREADS": str(threads)})
    worker.run(steps - 1)
    worker.close()
    return [worker.info["first_loss"], *worker.losses]


def so_far(values):
    """The largest value up to each place."""
    most, result = 0.0, []
    for v in values:
        most = max(most, v)
        result.append(most)
    return result


def distances(a, b):
    return so_far(abs(x - y) for x, y in zip(a, b))


def report(name, convention, once, again, ours, every):
    """Prints the losses of a framework and of Plumbline; returns whether they are as near as they must be."""
    allowed = [max(MARGIN * d, ROUNDINGS * loss) for d, loss in zip(distances(once, again), once)]
    apart = distances(once, ours)
    print(f"\n{name} and Plumbline with --convention {convention}\n"
          f"{'step':>6}{name:>14}{'Plumbline':>14}{'apart':>11}{'its threads':>13}{'allowed':>11}")
    own = distances(once, again)
    for i in sorted({0, len(once) - 1, *range(every - 1, len(once), every)}):
        print(f"{i + 1:>6}{once[i]:>14.6f}{ours[i]:>14.6f}{apart[i]:>11.1e}{own[i]:>13.1e}{allowed[i]:>11.1e}")
    late = next((i for i, (d, most) in enumerate(zip(apart, so_far(allowed))) if d > most), None)
    if late is not None:
        print(f"step {late + 1}: {apart[late]:.1e} apart, and {so_far(allowed)[late]:.1e} is allowed")
    return late is None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plumb", required=True, type=program, help="plumb_bench_train")
    parser.add_argument("--torch", required=True, type=program, help="a Python with the packages of requirements-torch.txt")
    parser.add_argument("--tensorflow", required=True, type=program, help="a Python with the packages of requirements-tensorflow.txt")
    parser.add_argument("--model", choices=["alexnet", "vgg16"], default="alexnet")
    parser.add_argument("--optimizer", choices=["sgd", "adam", "rmsprop"], default="sgd")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--batches", type=int, default=20, help="different batches, taken in turn")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--algorithm", default="measured", help="Plumbline's")
    parser.add_argument("--json", help="write all losses to this file")
    a = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        weights, batch_file = write_problem(pathlib.Path(folder), a.model, a.batch, batches=a.batches)
        common = ["--model", a.model, "--weights", weights, "--batch-file", batch_file, "--batch", a.batch, "--lr", a.lr,
                  "--optimizer", a.optimizer]
        plumb = [a.plumb, *common, "--algorithm", a.algorithm, "--convention"]
        runs = {
            "PyTorch": ("pytorch", [a.torch, "worker_torch.py", *common]),
            "TensorFlow": ("keras", [a.tensorflow, "worker_tensorflow.py", *common]),
        }
        found = {}
        for name, (convention, command) in runs.items():
            found[name] = (convention, losses_of(name, command, a.threads, a.steps), losses_of(name, command, 1, a.steps),
                           losses_of(f"Plumbline ({convention})", [*plumb, convention], a.threads, a.steps))

    print(f"{a.model}, {a.optimizer}, learning rate {a.lr}, {a.steps} steps of {a.batch} images")
    good = [report(name, convention, *losses, every=max(1, a.steps // 10)) for name, (convention, *losses) in found.items()]
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps({name: {"convention": c, "losses": list(rest)} for name, (c, *rest) in found.items()}))
    if not all(good):
        raise SystemExit("the losses are further apart than a change of the number of threads explains")


if __name__ == "__main__":
    main()
