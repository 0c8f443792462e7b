"""What a worker says and hears, and how its times are summed up. Standard library only: tables.py runs with any Python 3.

A worker prints "ready {json}" when it can run. For every line "run N" on its standard input it does N training steps and
prints "steps {json}" with the milliseconds and the loss of each. It ends with its standard input. Between lines it sleeps,
so that another worker has the machine to itself.
"""

import json
import sys
import time


def percentile(values, share):
    """The value that this share of the values stands below, as 0.9 for the 90th percentile: one of them, not between two."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def peak_rss_bytes():
    """What getrusage calls ru_maxrss begins at the peak of the process that started this one."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:"))


def serve(description, step):
    """Runs step() (which returns the loss as a float) on demand, until standard input ends."""
    start = time.perf_counter()
    loss = step()
    first_ms = (time.perf_counter() - start) * 1e3
    print("ready", json.dumps({**description, "first_step_ms": first_ms, "first_loss": loss}), flush=True)
    for line in sys.stdin:
        steps, losses = [], []
        for _ in range(int(line.split()[1])):
            start = time.perf_counter()
            losses.append(step())
            steps.append((time.perf_counter() - start) * 1e3)
        print("steps", json.dumps({"ms": steps, "losses": losses, "peak_rss_bytes": peak_rss_bytes()}), flush=True)
