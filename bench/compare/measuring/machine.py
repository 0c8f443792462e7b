"""What the machine is, and whether it is doing something else."""

import collections
import os
import pathlib
import platform
import subprocess

import psutil

INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")  # that kernels are chosen by
BOUND, UNBOUND = "threads wait awake for a moment, a processor each", "threads wait awake for a moment"
# What nvidia-smi is asked, by the names of its query; drivers before 535 have another name for the last.
GPU_FIELDS = {"name": "name", "driver": "driver_version", "memory_mib": "memory.total", "free_mib": "memory.free", "clock_mhz": "clocks.current.sm",
              "most_clock_mhz": "clocks.max.sm", "memory_clock_mhz": "clocks.current.memory", "power_limit_w": "power.limit",
              "utilisation_percent": "utilization.gpu", "clock_reasons": "clocks_event_reasons.active"}
OLDER_FIELDS = {**GPU_FIELDS, "clock_reasons": "clocks_throttle_reasons.active"}
# Bits of its reasons for a clock that is not the highest. What holds a clock down beyond how the card was set up and fed:
HELD_DOWN = {0x8: "hardware slowdown", 0x20: "heat, by software", 0x40: "heat, by hardware", 0x80: "power brake"}
TICKS = os.sysconf("SC_CLK_TCK")  # a second, in which /proc counts


def environment(threads, device="cpu"):
    """What a result depends on besides the software."""
    frequency = psutil.cpu_freq()
    there = {"gpu": gpu()} if device == "cuda" else {}
    return {**there, "host": platform.node() or None, "processor": processor(), "instructions": instructions(), "cores": psutil.cpu_count(logical=False) or 0,
            "processors": os.cpu_count(), "threads": threads, "memory_bytes": psutil.virtual_memory().total, "kernel": platform.release(),
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


def free_bytes(device="cpu"):
    """Memory that programs could still have, of the host and of a GPU that they use."""
    of_gpu = (gpu() or {}).get("free_mib") if device == "cuda" else None
    return free_of_host() if of_gpu is None else min(free_of_host(), of_gpu << 20)


def free_of_host():
    """Within what this container may use; what caches files is given back to programs."""
    free, most = psutil.virtual_memory().available, text_of("/sys/fs/cgroup/memory.max") or ""
    held = dict(line.split() for line in (text_of("/sys/fs/cgroup/memory.stat") or "").splitlines())
    return min(free, int(most) - int(held["anon"])) if most.isdigit() and "anon" in held else free


def text_of(path):
    """None if there is none. The system cuts a process's long name off, in the middle of a letter too."""
    try:
        with open(path, errors="replace") as f:
            return f.read().strip()
    except OSError:
        return None


def gpu():
    """What nvidia-smi says of the GPU that programs use (GPU_FIELDS), or its name alone where there is no nvidia-smi; None without one."""
    return asked(GPU_FIELDS) or asked(OLDER_FIELDS) or named()


def asked(fields):
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0] or "0"
    words = ["nvidia-smi", f"--id={visible}", f"--query-gpu={','.join(fields.values())}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    values = [v.strip() for v in said.stdout.split(",")]
    return {f: v if f in ("name", "driver") else number_of(v) for f, v in zip(fields, values)} if said.returncode == 0 and len(values) == len(fields) else None


def number_of(text):
    """The number that a text is, the text itself, or None for what the card does not have."""
    for read in (lambda t: int(t, 0), float):
        try:
            return read(text)
        except ValueError:
            pass
    return None if text.startswith("[") else text


def has_gpu():
    """Whether a driver has one; quickly, for it is asked often."""
    return named() is not None or gpu() is not None


def named():
    for file in sorted(pathlib.Path("/proc/driver/nvidia/gpus").glob("*/information")):
        name = next((line.partition(":")[2].strip() for line in file.read_text().splitlines() if line.startswith("Model")), "a GPU")
        return {"name": name}
    return None


def held_down():
    """What holds the GPU's clock down now, in words."""
    reasons = (gpu() or {}).get("clock_reasons") or 0
    return [words for bit, words in HELD_DOWN.items() if reasons & bit]


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


def elsewhere_s(before, after):
    """Seconds of the processors: those that something else than this process and those that it has started used, and all."""
    busy, idle = after.busy - before.busy, after.idle - before.idle
    return busy - (after.of(os.getpid()) - before.of(os.getpid())), busy + idle
