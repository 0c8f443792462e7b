"""What the machine is, and whether it is doing something else."""

import os
import pathlib
import platform

import psutil


def environment(threads):
    """What a result depends on besides the software."""
    frequency = psutil.cpu_freq()
    return {"processor": processor(), "cores": psutil.cpu_count(logical=False) or 0, "processors": os.cpu_count(),
            "threads": threads, "memory_bytes": psutil.virtual_memory().total, "kernel": platform.release(),
            "system": system(), "governor": governor(), "clock_mhz": frequency.current if frequency else None,
            "huge_pages": huge_pages()}


def processor():
    with open("/proc/cpuinfo") as f:
        return next((line.partition(":")[2].strip() for line in f if line.startswith("model name")), platform.machine())


def system():
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()


def free_bytes():
    """Memory that programs could still have, within what this container may use; what caches files is given back to them."""
    free, most = psutil.virtual_memory().available, text_of("/sys/fs/cgroup/memory.max") or ""
    held = dict(line.split() for line in (text_of("/sys/fs/cgroup/memory.stat") or "").splitlines())
    return min(free, int(most) - int(held["anon"])) if most.isdigit() and "anon" in held else free


def text_of(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return None


def gpu():
    """The first GPU's name, or None."""
    for file in sorted(pathlib.Path("/proc/driver/nvidia/gpus").glob("*/information")):
        return next((line.partition(":")[2].strip() for line in file.read_text().splitlines() if line.startswith("Model")), "a GPU")
    return None


def governor():
    return text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def huge_pages():
    text = text_of("/sys/kernel/mm/transparent_hugepage/enabled")
    return text.partition("[")[2].partition("]")[0] if text else None


class Load:
    """The share of the machine's processor time that something else than these processes used since it was made."""

    def __init__(self, workers):
        self.workers = workers
        self.before = self.now()

    def now(self):
        t = psutil.cpu_times()
        busy = t.user + t.nice + t.system + t.irq + t.softirq + getattr(t, "steal", 0)
        return busy, t.idle + getattr(t, "iowait", 0), sum(w.cpu_s() for w in self.workers), sum(psutil.Process().cpu_times()[:2])

    def elsewhere(self):
        busy, idle, theirs, ours = (a - b for a, b in zip(self.now(), self.before))
        total = busy + idle
        return max(0.0, (busy - theirs - ours) / total) if total > 0 else 0.0
