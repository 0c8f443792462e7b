"""What there is to compare: each engine's program, its modes, and what it may be run under."""

import dataclasses
import functools
import json
import os
import pathlib
import subprocess

from .machine import has_gpu
from .watch import Clock
from .worker import Refused

BENCH = pathlib.Path(__file__).resolve().parents[2]
FRAMEWORKS = ("torch", "tensorflow", "jax")
EMULATED = "emulated"  # rehearses the way of cuda on the host, and is no GPU
DEVICES = ("cpu", "cuda", EMULATED)
# OpenMP's threads, which are Plumbline's and PyTorch's, wait awake for some tenths of a millisecond before they sleep (with LLVM's OpenMP
# for one, its least): between the ops of a program they are as awake as its users have them, and asleep soon after a turn. To wake one
# that sleeps takes 100 us in some virtual machines, more than most ops. By themselves they wait for 5 to 10 ms, for which they would take
# processors from the side whose turn it is.
AWAKE_FOR_A_MOMENT = {"GOMP_SPINCOUNT": "20000", "KMP_BLOCKTIME": "1"}
# What a user's shell may tell the libraries by, which no record would say: a worker is told what the harness sets, and nothing else.
TOLD = ("OMP_", "GOMP_", "KMP_", "MKL_", "ONEDNN_", "DNNL_", "TF_", "XLA_", "JAX_", "TORCH", "PYTORCH_", "ATEN_", "CUBLAS_", "CUDNN_",
        "NVIDIA_TF32_OVERRIDE", "LD_PRELOAD", "MALLOC_", "GLIBC_TUNABLES", "TCMALLOC_")
DISTRIBUTIONS = {"torch": ("torch",), "tensorflow": ("tensorflow", "tensorflow_cpu"), "jax": ("jax",), "fake": ("numpy",)}  # by one of these names
USUAL_MODE = {"plumbline": "best", "torch": "eager", "tensorflow": "function", "jax": "jit"}


# Of a Python's packages that are called so, the first one's version.
ASK_VERSION = """
import importlib.metadata as m, sys
print(next(d.version for name in sys.argv[1:] for d in m.distributions(name=name)))
"""


def untold(is_callers=False):
    """The environment without what tells the libraries anything. The packages of a Python of the caller's may lie where PYTHONPATH says; those
    of the environments that are installed here come from nowhere else."""
    folders = [str(BENCH), *(f for f in os.environ.get("PYTHONPATH", "").split(os.pathsep) if is_callers and f)]
    return {k: v for k, v in os.environ.items() if not k.startswith(TOLD)} | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(folders))}


@functools.cache
def version_of(program, distributions, is_callers=False):
    """The version that a worker would say, without the seconds that a framework takes to start; None where it is not known so."""
    if not distributions:
        return (hello_of((program, "--threads", "1"), tuple(untold(is_callers).items())) or {}).get("version")
    return said_by((program, "-c", ASK_VERSION, *distributions), untold(is_callers)).strip() or None


@functools.cache
def hello_of(words, environment):
    """What a worker says of itself, to whom nothing is asked; None of one that says nothing."""
    try:
        hello = json.loads(said_by(words, dict(environment)))
    except ValueError:
        return None
    return hello if isinstance(hello, dict) else None


def said_by(words, environment):
    try:
        return subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120).stdout
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""


@dataclasses.dataclass(frozen=True)
class Variant:
    """An engine in one of its modes, under one allocator: a column of the comparison."""

    engine: str
    mode: str
    allocator: str = ""  # "" is the engine's own, otherwise "tcmalloc"

    @property
    def name(self):
        return " ".join(part for part in (self.engine, self.mode, self.allocator and f"+ {self.allocator}") if part)

    @property
    def is_ours(self):
        return self.engine == "plumbline"


class Engines:
    """Where the programs are: {"plumbline": path of plumb_bench_worker, "torch": path of a Python, ...}."""

    def __init__(self, programs, threads, tcmalloc=None, modules=None, device="cpu", settings=None, callers=(), clock=None):
        self.callers = callers  # those whose Python the caller has named
        self.programs, self.threads, self.tcmalloc, self.device = programs, threads, tcmalloc, device
        self.clock = clock or Clock()
        self.settings = settings or {}  # of the environment of every worker
        self.modules = modules or {}  # {engine: its file in workers/}, where the names differ

    def with_settings(self, **settings):
        return Engines(self.programs, self.threads, self.tcmalloc, self.modules, self.device, {**self.settings, **settings}, self.callers,
                       self.clock)

    def has(self, engine):
        return engine in self.programs

    def answers(self, engine):
        """Whether a worker of it starts, and has what it needs. It is started for that once, which a framework takes seconds for."""
        if not self.has(engine) or self.missing_device() is not None:
            return False
        words, environment = self.command(Variant(engine, USUAL_MODE.get(engine, "good")))
        hello = hello_of(tuple(words), tuple(sorted(environment.items())))
        return hello is not None and not hello.get("missing")

    def version(self, engine):
        """The version that is there, as its records would have it; None where it is not known before it starts."""
        distributions = () if engine == "plumbline" else DISTRIBUTIONS.get(self.modules.get(engine, engine))
        return version_of(str(self.programs[engine]), distributions, engine in self.callers) if self.has(engine) and distributions is not None else None

    def missing_device(self):
        """Why no engine can run on the device, in a sentence; None where each must say for itself."""
        return "there is no GPU: no NVIDIA driver is loaded" if self.device == "cuda" and not has_gpu() else None

    def check_device(self, hello):
        """Throws unless what an engine calls its device is one that was asked for: an emulated one is never taken for a GPU."""
        is_emulated = hello["environment"].get("device_name") == EMULATED
        if is_emulated and self.device != EMULATED:
            raise Refused("the device of this plumb_bench_worker is emulated on the host, and no GPU; preset cuda builds one for GPUs", "absent")

    def untouched(self, engine):
        """(words, environment) of a worker that is told nothing: neither threads, nor by the environment."""
        if engine == "plumbline":
            return [str(self.programs[engine])], untold()
        return [str(self.programs[engine]), "-m", "compare.workers", self.modules.get(engine, engine), "--threads", "0"], untold(engine in self.callers)

    def command(self, variant, device=None):
        """(words, environment) of a worker, on another device than the engines' if one is named. OpenMP's threads have a processor each:
        else the system runs two of them on one now and then, for a whole turn. oneDNN tells the profiler the names of the code that it
        makes."""
        environment = {**untold(variant.engine in self.callers), **AWAKE_FOR_A_MOMENT, "OMP_NUM_THREADS": str(self.threads), "OMP_PROC_BIND": "true",
                       "ONEDNN_JIT_PROFILE": "2", "CUDA_DEVICE_ORDER": "PCI_BUS_ID", **self.settings}
        if variant.allocator:
            environment["LD_PRELOAD"] = self.tcmalloc
        program, options, device = str(self.programs[variant.engine]), ("--threads", str(self.threads)), device or self.device
        if variant.engine == "plumbline":
            return [program, *options, "--device", "cpu" if device == "cpu" else "cuda"], environment
        return [program, "-m", "compare.workers", self.modules.get(variant.engine, variant.engine), *options, "--device", device], environment
