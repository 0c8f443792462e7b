"""A worker's side of the protocol: one JSON object a line, a request in, a reply out, until standard input ends.

    {"do": "prepare", "job": NAME, "problem": {...}, "mode": MODE, "inputs": FILE, "results": FILE, "inject": {...}}
                              -> {"first_s": seconds of the first step}     the results are written to FILE
    {"do": "run", "job": NAME, "samples": N, "least_s": S, "least_calls": in a sample, "warm_s": how long before the samples, at least,
     "warm_calls": before that}
                              -> {"samples_s": [...], "calls": calls a sample, "fault_s": what an injected cost took in a call, ...}
    {"do": "train", "job": NAME, "calls": N, "inputs": FILE, "results": FILE}
                              -> {}     the first calls of a training as they are timed, before any run, from the weights of the inputs:
                                        the change of each, "d" + NAME, and the first call's loss go to FILE
    {"do": "losses", "job": NAME, "steps": N} -> {"losses": [...]}     of a training's first steps, before any run
    {"do": "epoch", "job": NAME, "data": FILE, "orders": FILE, "epoch": N, "scored": N}
                              -> {"loss": mean of the steps', "accuracy": on the first images, "seconds": of the steps}
    {"do": "defaults"} -> {"defaults": {CONVENTION: {ITEM: value}}}     what it does when nothing is said
    {"do": "drop", "job": NAME} -> {}

The first line out says what the worker is. A request that cannot be met is answered {"error": SENTENCE, "kind": KIND}, with
KIND "unsupported" (this framework has no such thing in this mode), "absent" (its device is not there), "memory" or "failed". What the libraries print goes to
standard error, so that it cannot be taken for a reply. Between requests a worker sleeps in a read.
"""

import ctypes
import importlib
import json
import os
import sys
import time

import numpy as np
from safetensors.numpy import load_file, save_file

from . import device
from .counters import counters, forget_peak, peak_bytes
from .refusals import Absent, Unsupported, refusal_of


class Injected:
    """A step with a known cost added to it, which the ledger must find again: a sleep, a copy, a conversion of layout."""

    def __init__(self, step, inject):
        self.step, self.seconds, self.took_s = step, inject.get("sleep_s", 0.0), 0.0
        self.source = np.ones(int(inject.get("copy_bytes", 0)) // 4, np.float32)
        self.target = np.empty_like(self.source)
        self.images = np.ones((int(inject.get("convert_bytes", 0)) // (4 * 64 * 1024), 64, 1024), np.float32)
        self.converted = np.empty((len(self.images), 1024, 64), np.float32)

    def __call__(self):
        self.step()
        start = time.perf_counter()
        self.fault()
        self.took_s += time.perf_counter() - start

    def fault(self):
        if self.seconds:
            time.sleep(self.seconds)
        if self.source.size:
            ctypes.memmove(self.target.ctypes.data, self.source.ctypes.data, self.source.nbytes)
        if self.images.size:
            np.copyto(self.converted, self.images.transpose(0, 2, 1))


MOST_WARM = 8  # times as long as asked for may a turn warm up


class Job:
    """Work that was prepared, and how many calls of it make a sample that the clock can see."""

    def __init__(self, framework, work, inject, batch=0):
        self.framework = framework
        self.step, self.calls, self.work = Injected(work.step, inject) if inject else work.step, 0, work
        self.batch, self.files = batch, None  # of a training on files
        self.least_s = 0.0  # of a step that has warmed up; 0 is none yet
        self.has_peak = False  # of its runs alone

    def wait(self):
        """Until the device has done all that it was told."""
        self.framework.wait(self.work)

    def fault_s(self):
        """What the added cost has taken so far, by the clock."""
        return self.step.took_s if isinstance(self.step, Injected) else 0.0

    def epoch(self, request):
        """Trains on the images in the order of an epoch, a batch a step, and counts the right answers to the first images."""
        if self.files != (request["data"], request["orders"]):
            self.files = request["data"], request["orders"]
            self.data, self.orders = load_file(request["data"]), load_file(request["orders"])["orders"]
        images, labels, batch = self.data["images"], self.data["labels"], self.batch
        losses, start = [], time.perf_counter()
        for batch_of in np.split(self.orders[request["epoch"]], range(batch, len(images), batch)):
            if len(batch_of) == batch:
                self.work.feed(images=images[batch_of], labels=labels[batch_of])
                self.work.step()
                losses.append(self.work.y)
        self.wait()
        seconds, right = time.perf_counter() - start, 0
        scored = min(request["scored"], len(images)) // batch * batch
        for i in range(0, scored, batch):
            self.work.feed(images=images[i:i + batch], labels=labels[i:i + batch])
            right += int((self.work.predicted() == labels[i:i + batch]).sum())
        loss = float(np.mean(losses))
        return {"loss": loss if np.isfinite(loss) else None, "accuracy": right / scored, "seconds": seconds}

    def check_first(self):
        if self.calls:
            raise ValueError("the first steps are over: what they do is asked for before any run")

    def train(self, request):
        """What the timed steps do to the weights: first() has done another pass, and updated nothing."""
        self.check_first()
        losses = []
        for _ in range(request["calls"]):
            self.step()
            losses.append(self.work.y)
        self.wait()
        given = load_file(request["inputs"])
        changes = {"d" + name: value - given[name] for name, value in self.work.weights().items()}
        save(request["results"], {"loss": np.array(losses[0], np.float32), **changes})
        return {}

    def losses(self, steps):
        """Those of the first steps: first() has updated nothing."""
        self.check_first()
        found = []
        for _ in range(steps):
            self.step()
            found.append(float(self.work.y))
        return {"losses": found}

    def run(self, request):
        if not self.calls:
            self.has_peak = forget_peak(self.framework)
        self.warm_up(request.get("warm_s", 0.0), request.get("warm_calls", 0))
        if not self.calls:
            self.calls = self.calls_for(request["least_s"], request.get("least_calls", 1))
        samples = request["samples"]
        before, times, fault_s, began = counters(), [], self.fault_s(), time.monotonic()
        for _ in range(samples):
            times.append(self.seconds_of(self.calls) / self.calls)
        after, ended = counters(), time.monotonic()
        calls = samples * self.calls
        return {"samples_s": times, "calls": self.calls, "fault_s": (self.fault_s() - fault_s) / calls, "began": began, "ended": ended,
                "peak_bytes": peak_bytes() if self.has_peak else None, "memory": self.framework.memory() if device.NAME == "cuda" else {},
                **{key: (after[key] - before[key]) / calls for key in after}}

    def warm_up(self, warm_s, warm_calls):
        """Threads wake up, and caches forget the others. Processors of a virtual machine that wake may share one of the host's for some
        milliseconds, so that threads which wait for each other take many times as long: it goes on while a step takes more than twice the
        least so far, and when there is none yet, though not for ever."""
        for _ in range(warm_calls):
            self.step()
        self.wait()
        least, seconds = self.least_s, 0.0
        start = now = time.perf_counter()
        while now - start < warm_s or (now - start < MOST_WARM * warm_s and seconds > 2 * least):
            self.step()
            self.wait()  # or a GPU would have seconds of work queued by then
            seconds = time.perf_counter() - now
            now += seconds
            self.least_s = min(self.least_s or seconds, seconds)

    def seconds_of(self, calls):
        """The clock begins when the device has nothing to do, and ends when it has done all."""
        self.wait()
        start = time.perf_counter()
        for _ in range(calls):
            self.step()
        self.wait()
        return time.perf_counter() - start

    def calls_for(self, least_s, calls):
        """Doubles the calls until they take long enough."""
        while least_s > 0:
            if self.seconds_of(calls) >= least_s or calls >= 1 << 20:
                break
            calls *= 2
        return calls


class Repeated:
    """Several training steps as one call, whose loss is read so many times: evenly, and at the end."""

    def __init__(self, work, steps, reads):
        if not 1 <= reads <= steps or steps % reads:
            raise ValueError(f"the loss cannot be read {reads} times in {steps} steps; use a divisor of {steps}")
        self.work, self.steps, self.every = work, steps, steps // reads

    def step(self):
        for i in range(1, self.steps + 1):
            loss = self.work.train()
            if i % self.every == 0:
                self.y = float(loss)

    def first(self):
        return self.work.first()

    def weights(self):
        return self.work.weights()

    @property
    def result(self):
        return self.work.result


def repeated(work, problem, mode):
    """The work, or several steps of it; the last word of a mode may say how often the loss is read."""
    steps, (_, said, reads) = problem.get("steps", 1), mode.partition(" reads=")
    return Repeated(work, steps, int(reads) if said else steps) if steps > 1 else work


def beside(folder, framework):
    """The file of the same framework in a folder beside its own: what else it is asked for than ops and networks."""
    return importlib.import_module(f".{folder}.{framework.__name__.rpartition('.')[2]}", __package__)


def save(file, tensors):
    """ascontiguousarray makes a vector of a number."""
    save_file({name: np.ascontiguousarray(value).reshape(value.shape) for name, value in tensors.items()}, file)


def prepare(framework, request):
    start = time.perf_counter()
    problem = request["problem"]
    if problem["direction"] == "update":
        work = beside("updates", framework).Update(problem, load_file(request["inputs"]), request["mode"])
    elif problem["direction"] == "input":
        work = beside("inputs", framework).Pipeline(framework, problem, load_file(request["inputs"]), request["mode"])
    else:
        missing = {node["op"] for node in problem["nodes"]} - framework.OPS.keys()
        if missing:
            raise Unsupported(f"{framework.NAME} has no {', '.join(sorted(missing))}")
        mode = request["mode"]
        work = repeated(framework.Work(problem, load_file(request["inputs"]), mode.partition(" reads=")[0]), problem, mode)
    job = Job(framework, work, request.get("inject"), problem.get("batch", 0))
    built_s = time.perf_counter() - start
    start = time.perf_counter()
    results = work.first()  # the results of the first step, before anything is updated twice
    first_s = time.perf_counter() - start
    save(request["results"], results)
    return job, {"built_s": built_s, "first_s": first_s, **getattr(work, "FACTS", {})}


def answer(framework, jobs, request):
    if request["do"] == "prepare":
        jobs[request["job"]], reply = prepare(framework, request)
        return reply
    if request["do"] == "run":
        return jobs[request["job"]].run(request)
    if request["do"] == "epoch":
        return jobs[request["job"]].epoch(request)
    if request["do"] == "train":
        return jobs[request["job"]].train(request)
    if request["do"] == "losses":
        return jobs[request["job"]].losses(request["steps"])
    if request["do"] == "defaults":
        return {"defaults": beside("defaults", framework).defaults()}
    if request["do"] == "drop":
        jobs.pop(request["job"], None)
        return {}
    raise ValueError(f"there is no request {request['do']!r}")


def missing_of(framework, threads):
    """Why nothing can run on the device, in a sentence, or None. A refusal of each job, so that there is a row for it."""
    if device.NAME not in framework.DEVICES:
        return f"{framework.NAME} has no device {device.NAME}"
    try:
        framework.start(threads)
    except Absent as reason:
        return " ".join(str(reason).split())
    return None


def serve(framework, threads):
    """Answers requests with a module that has NAME, MODES, DEVICES, OPS, version(), start(threads), which throws Absent where the device
    is not there, wait(work), which waits until the device has done all, memory(), {"device": its peak bytes}, forget_peak(), and Work(problem, tensors,
    mode), which does the work by step(), and by first(), which returns the results."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    missing = missing_of(framework, threads) if threads else None  # 0 leaves it as it is
    allocator = os.path.basename(os.environ.get("LD_PRELOAD", "")).partition(".so")[0] or "glibc"
    hello = {"engine": framework.NAME, "version": framework.version(), "modes": list(framework.MODES), "allocator": allocator,
             "threads": threads, "denormals": getattr(framework, "DENORMALS", None), "python": sys.version.split()[0],
             "device": device.NAME, "missing": missing,
             "environment": {"libraries": framework.libraries() if hasattr(framework, "libraries") else []}}
    print(json.dumps(hello), file=replies)
    jobs = {}
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if missing and request["do"] != "defaults":
                raise Absent(missing)
            reply = answer(framework, jobs, request)
        except Exception as error:  # a framework may throw anything; the process goes on
            reply = refusal_of(error)
        ctypes.CDLL(None).fflush(None)  # what the libraries have printed stands before what follows
        print(json.dumps(reply), file=replies)
