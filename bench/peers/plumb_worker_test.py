"""Runs plumb_bench_train on a tiny problem: it says what protocol.py asks for, and captured steps have the losses of eager ones.

    python plumb_worker_test.py build/cpu/bin/plumb_bench_train
"""

import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

LENET = {"conv1": (6, 1, 5, 5), "conv2": (16, 6, 5, 5), "fc1": (120, 400), "fc2": (84, 120), "fc3": (10, 84)}


def scattered(low, high, *shape):
    values = [low + (high - low) * (i * 37 % 101) / 100 for i in range(math.prod(shape))]
    return "F32", shape, struct.pack(f"<{len(values)}f", *values)


def write_safetensors(file, tensors):
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def losses_of(program, folder, mode):
    command = [program, "--model", "lenet", "--weights", folder / "weights", "--batch-file", folder / "batches", "--batch", "4",
               "--algorithm", "heuristic", "--layout", "nhwc", "--mode", mode]  # heuristic: the same kernels in every run
    done = subprocess.run(command, input="run 1\nrun 2\n", stdout=subprocess.PIPE, text=True, check=True)
    words, said = zip(*(line.split(" ", 1) for line in done.stdout.splitlines()))
    ready, *steps = map(json.loads, said)
    assert words == ("ready", "steps", "steps") and [len(s["ms"]) for s in steps] == [1, 2], done.stdout
    assert all(s["peak_rss_bytes"] > 0 for s in steps), done.stdout
    return [ready["first_loss"]] + [loss for s in steps for loss in s["losses"]]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        weights = {f"{layer}.weight": scattered(-0.1, 0.1, *shape) for layer, shape in LENET.items()}
        biases = {f"{layer}.bias": scattered(-0.1, 0.1, shape[0]) for layer, shape in LENET.items()}
        write_safetensors(folder / "weights", weights | biases)
        labels = "I64", (8,), struct.pack("<8q", *range(8))
        write_safetensors(folder / "batches", {"images": scattered(0, 1, 8, 1, 28, 28), "labels": labels})
        eager, captured = (losses_of(sys.argv[1], folder, mode) for mode in ("eager", "captured"))
    assert eager == captured and len(set(eager)) == 4 and all(map(math.isfinite, eager)), f"eager {eager}, captured {captured}"


if __name__ == "__main__":
    main()
