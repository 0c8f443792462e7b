"""What a process is doing, a thousand times a second and thread, by the system's own profiler: perf."""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

PERIOD_S = 1e-3
MOST_S = 30  # for perf to write what it has seen
FRAME = re.compile(r"^\s+[0-9a-f]+ (.*) \(([^()]*|\[.*\])\)$")


class Unavailable(Exception):
    """Why there is nothing to see, in a sentence."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """A thread that was running: when, by the clock that all processes share, and where, the innermost function first."""

    thread: int
    time_s: float
    frames: list  # of (function, library)


@dataclasses.dataclass(frozen=True)
class Switch:
    """A thread that was given a processor, or had to leave it: by its own will, or preempted."""

    thread: int
    time_s: float
    runs: bool
    preempted: bool


class Sampler:
    """Samples a process until its scope ends."""

    def __init__(self, pid, file):
        if not shutil.which("perf"):
            raise Unavailable("perf is not installed; scripts/setup --compare installs it")
        if not shutil.which("c++filt"):  # the rules know functions by their written names
            raise Unavailable("c++filt is not installed; it comes with a compiler, in the package binutils")
        self.pid, self.file = pid, pathlib.Path(file)
        words = ["perf", "record", "-q", "-B", "-N", "--switch-events", "-e", "cpu-clock" if os.geteuid() == 0 else "cpu-clock:u", "-c", str(int(PERIOD_S * 1e9)), "-k",
                 "CLOCK_MONOTONIC", "--call-graph", "fp", "-m", "512", "-o", str(self.file), "-p", str(pid), "--control", "fd:0,1"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.ask("enable")

    def ask(self, what):
        """Perf answers when it has done so: that it samples is known, not waited for."""
        try:
            self.process.stdin.write(what.encode() + b"\n")
            self.process.stdin.flush()
            answered = b"ack" in self.process.stdout.readline()
        except OSError:
            answered = False
        if not answered:
            raise Unavailable(self.refusal())

    def refusal(self):
        self.process.kill()
        text = " ".join(self.process.communicate()[1].decode(errors="replace").split())
        if "perf_event_paranoid" in text or "ermission" in text or "not permitted" in text:
            return "the system does not allow perf; kernel.perf_event_paranoid must be 2 or less"
        return f"perf cannot sample: {text[:200] or 'it ended'}"

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """Ends sampling, also where what was sampled has died; read() may come much later. An interrupt, which perf had too, stays one."""
        with contextlib.suppress(*(() if kind is None else (Unavailable,))):
            if self.process.poll() is None:
                self.ask("stop")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.communicate(timeout=MOST_S)
        self.process.kill()
        self.process.communicate()


def written(names):
    """{name: as C++ writes it} of names that compilers made. Perf would do so with all names of a library, which takes ten times as long."""
    names = sorted(names)
    done = subprocess.run(["c++filt", "-p"], input="\n".join(names), stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(zip(names, done.split("\n")))


def read(file):
    """([Sample], [Switch]), each in order of time."""
    words = ["perf", "script", "-i", str(file), "-F", "tid,time,ip,sym,dso", "--no-inline", "--no-demangle", "--show-switch-events"]
    text = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout.decode(errors="replace")
    lines = text.split("\n")
    matches = {line: FRAME.match(line) for line in set(lines)}
    name = written({m[1] for m in matches.values() if m})
    frame_of = {line: (name[m[1]], m[2].rpartition("/")[2]) for line, m in matches.items() if m}
    samples, switches, frames = [], [], []
    for line in lines:
        frame = frame_of.get(line)
        if frame:
            frames.append(frame)
            continue
        words = line.split()
        if len(words) < 2 or not words[0].isdigit():
            continue
        thread, time_s = int(words[0]), float(words[1].rstrip(":"))
        if len(words) > 2 and words[2] == "PERF_RECORD_SWITCH":
            switches.append(Switch(thread, time_s, words[3] == "IN", words[-1] == "preempt"))
        else:
            frames = []  # of this sample, in the lines that follow
            samples.append(Sample(thread, time_s, frames))
    return sorted(samples, key=lambda s: s.time_s), sorted(switches, key=lambda s: s.time_s)
