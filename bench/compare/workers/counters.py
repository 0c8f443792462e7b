"""What the operating system counts for a worker's process."""

import contextlib
import ctypes
import gc
import resource

from . import device


def counters():
    """What the operating system has counted for this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {"page_faults": usage.ru_minflt + usage.ru_majflt, "user_s": usage.ru_utime, "system_s": usage.ru_stime,
            "switches": usage.ru_nivcsw}


def forget_peak(framework):
    """What was read, made and written beside the work is given back, and the peak begins anew: whether it could."""
    gc.collect()
    with contextlib.suppress(AttributeError):  # of glibc
        ctypes.CDLL(None).malloc_trim(0)
    if device.NAME == "cuda":
        framework.forget_peak()
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        return False
    return True


def peak_bytes():
    """VmHWM: what getrusage calls ru_maxrss begins at the peak of the process that started this one."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:"))
