"""What the machine is, and whether it is doing something else."""

import collections
import os
import pathlib
import platform

import psutil

INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")  # that kernels are chosen by
BOUND, UNBOUND = "threads sleep while they wait, a processor each", "threads sleep while they wait"
TICKS = os.sysconf("SC_CLK_TCK")  # a second, in which /proc counts


def environment(threads):
    """What a result depends on besides the software."""
    frequency = psutil.cpu_freq()
    return {"processor": processor(), "cores": psutil.cpu_count(logical=False) or 0, "processors": os.cpu_count(), "instructions": instructions(),
            "threads": threads, "memory_bytes": psutil.virtual_memory().total, "kernel": platform.release(),
            "system": system(), "governor": governor(), "clock_mhz": frequency.current if frequency else None,
            "huge_pages": huge_pages(), "openmp": BOUND}


def processor():
    with open("/proc/cpuinfo") as f:
        return next((line.partition(":")[2].strip() for line in f if line.startswith("model name")), platform.machine())


def instructions():
    """Of INSTRUCTIONS, those that the processor has: virtual machines do not tell its model, so that two may have one name."""
    with open("/proc/cpuinfo") as f:
        flags = next((line.split() for line in f if line.startswith("flags")), ())
    return [name for name in INSTRUCTIONS if name in flags]


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


class Moment:
    """What the processors have done so far: altogether, and for each process with those that it has started. In one look at
    /proc, since it is taken before and after each turn."""

    def __init__(self):
        t = psutil.cpu_times()
        self.busy = t.user + t.nice + t.system + t.irq + t.softirq + getattr(t, "steal", 0)
        self.idle = t.idle + getattr(t, "iowait", 0)
        self.own, self.children = {}, collections.defaultdict(list)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            words = (text_of(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
            if words:  # else it has ended meanwhile
                self.own[int(pid)] = (int(words[11]) + int(words[12])) / TICKS
                self.children[int(words[1])].append(int(pid))

    def of(self, pid):
        """Seconds of a process and of those that it has started; 0 once it has ended."""
        return self.own.get(pid, 0.0) + sum(self.of(child) for child in self.children.get(pid, ()))


def elsewhere(before, after):
    """The share of the machine's processor time that something else than this process and those that it has started used."""
    total = after.busy - before.busy + after.idle - before.idle
    ours = after.of(os.getpid()) - before.of(os.getpid())
    return max(0.0, (after.busy - before.busy - ours) / total) if total > 0 else 0.0
