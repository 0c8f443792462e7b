"""Devices: the way of a GPU, gone with the emulated device; what is said where there is none; clocks that stop when the device is done."""

import json
import os
import stat
import sys

import pytest

from compare.ledger.parts import HOST, WAIT, part_of
from compare.measuring import engines as engines_file
from compare.measuring import machine
from compare.measuring.engines import Engines, Variant
from compare.measuring.session import Measured, Plan, Session
from compare.measuring.worker import Refused
from compare.problems import catalogue
from compare.problems.networks import network_problem
from compare.problems.updates import problem_of
from compare.records.of_measured import record_of
from compare.report.page import page
from compare.workers import serve

ENVIRONMENT = {"threads": 1, "processor": "p", "f32_gflops": 100.0, "bf16_gflops": 100.0, "copy_gbytes": 10.0}
RUN = {"id": "t", "started": "2026-01-01T00:00:00+00:00", "command": None}
ONCE = Plan(rounds=1, samples=1, least_s=0, warm_up=0)
SHAPES = [("conv2d", "c", [(1, 4, 7, 7), (6, 4, 3, 3)], {"padding": "1x0x2x1", "stride": "2x1"}), ("pool2d", "p", [(1, 3, 8, 8)], {"kernel": "2", "stride": "2"}),
          ("linear", "l", [(4, 8), (3, 8)], {}), ("tensor", "t2", [(4, 6)], {})]
OPS = ("conv2d", "max_pool2d", "linear", "relu", "gelu", "softmax", "cross_entropy", "argmax", "sum", "concat")


@pytest.fixture(scope="module")
def emulated_program(worker_program):
    return f"{worker_program}_emulated"


def engines_on(device, program):
    return Engines({"plumbline": program, "fake": sys.executable}, threads=1, device=device)


@pytest.fixture(scope="module")
def emulated(emulated_program):
    with Session(engines_on("emulated", emulated_program)) as session:
        yield session


def records(found, problem, device):
    return [record_of(f, problem, "ops", RUN, {**ENVIRONMENT, "device": device}) for f in found]


@pytest.mark.parametrize("problem", [p for p in catalogue.forward_problems(SHAPES) if p.op in OPS], ids=lambda p: f"{p.op}-{p.name}")
def test_an_op_goes_the_whole_way_on_an_emulated_device(emulated, problem):
    for p in catalogue.variants(problem, ("forward", "forward_backward"), ("f32",)):
        for found in emulated.measure(p, [Variant("plumbline", mode) for mode in ("best nhwc", "vendor captured nchw")], ONCE):
            assert found.refusal is None, str(found.refusal)
            assert found.agreement["agrees"] and len(found.rounds) == 1, found.agreement["reason"]
            assert found.hello["environment"]["device_name"] == "emulated"
            assert found.prepared["kernels"] and {k["provider"] for k in found.prepared["kernels"]} == {"plumbline"}
            assert found.replies[0]["memory"]["device"] > 0


def test_a_training_step_and_its_losses_on_an_emulated_device(emulated):
    problem = network_problem("resnet20", 1)
    inputs, expected = emulated.make(problem)
    variant = Variant("plumbline", "best captured nchw")
    found = emulated.prepare(problem, variant, inputs, expected)
    assert found.refusal is None and found.agreement["agrees"], found.refusal or found.agreement["reason"]
    losses = emulated.worker(variant).ask("losses", job=variant.name, steps=3)["losses"]
    on_host = emulated.oracle.ask("prepare", job="host", problem=problem.to_worker(), mode="heuristic nchw", inputs=str(inputs), results=str(expected))
    assert on_host["kernels"] and emulated.oracle.ask("losses", job="host", steps=3)["losses"] == pytest.approx(losses, rel=1e-4)


@pytest.mark.parametrize("mode", ["fused", "per_tensor", "chain"])
def test_an_update_on_an_emulated_device(emulated, mode):
    problem = problem_of("small", {"a": (5, 3), "b": (70,), "c": (9,)}, "adam", "pytorch")
    (found,) = emulated.measure(problem, [Variant("plumbline", f"best {mode}")], ONCE)
    assert found.refusal is None and found.agreement["agrees"], found.refusal or found.agreement["reason"]


def test_no_verdict_rests_on_an_emulated_device(emulated, emulated_program):
    problem = catalogue.linear("small", (8, 16), (4, 16))
    found = emulated.measure(problem, [Variant("plumbline", "best"), Variant("fake", "good")], ONCE)
    rows = records(found, problem, "emulated")
    for r in rows:
        assert r["status"] == "measured" and r["engine"]["device"] == "emulated"
        assert not r["trust"]["trusted"] and r["trust"]["reasons"][-1] == "the device is emulated on the host, and no GPU"  # after what the machine did
    assert "an emulated device, no GPU, on p" in page(rows) and "NVIDIA" not in page(rows)


def test_a_blocked_convolution_is_for_a_processor(emulated):
    (found,) = emulated.measure(next(p for p in catalogue.forward_problems(SHAPES) if p.op == "conv2d"), [Variant("plumbline", "best blocked")], ONCE)
    assert "the mode blocked is oneDNN's" in str(found.refusal)


def test_an_emulated_device_is_never_taken_for_a_gpu(monkeypatch, emulated_program):
    monkeypatch.setattr(engines_file, "has_gpu", lambda: True)
    problem = catalogue.linear("small", (8, 16), (4, 16))
    with Session(engines_on("cuda", emulated_program)) as session:
        (found,) = session.measure(problem, [Variant("plumbline", "best")], ONCE)
    assert "is emulated on the host, and no GPU" in str(found.refusal)


def test_builds_without_cuda_are_rows_that_say_so(monkeypatch, worker_program):
    monkeypatch.setattr(engines_file, "has_gpu", lambda: True)
    problem = catalogue.linear("small", (8, 16), (4, 16))
    with Session(engines_on("cuda", worker_program)) as session:
        assert session.roofs()["f32_gflops"] > 0
        found = session.measure(problem, [Variant("plumbline", "best"), Variant("fake", "good")], ONCE)
    ours, theirs = records(found, problem, "cuda")
    assert ours["status"] == "not_available" and "this build has no CUDA kernels" in ours["reason"]
    assert theirs["status"] == "not_available" and theirs["reason"] == "fake has no device cuda"


def test_the_command_rehearses_on_an_emulated_device(emulated_program, tmp_path, compare):
    (tmp_path / "shapes.txt").write_text("linear small 8x16 4x16\n")
    words = ("--only", "ops", "--frameworks", "fake", "--device", "emulated", "--shapes", tmp_path / "shapes.txt", "--out", tmp_path, "--threads", "1")
    done = compare(*words, "--programs", f"plumbline={emulated_program}", "--programs", f"fake={sys.executable}")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert {r["environment"]["device"] for r in rows} == {"emulated"} and {r["engine"]["name"] for r in rows if r["status"] == "measured"} == {"plumbline", "fake"}
    assert f"{len(rows)} of {len(rows)} rows do not count" in done.stdout


@pytest.mark.parametrize("word", ["caffe=/bin/sh", "torch=/nowhere", "torch"])
def test_a_python_that_is_none_is_one_sentence(word, compare):
    done = compare("--python", word)
    assert done.returncode == 2 and done.stderr.startswith(f"compare: --python {word}: use FRAMEWORK=PATH"), done.stderr


class Clock:
    """In the place of the worker's, going on only where work says that it takes time: a machine with other work measures the same."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(serve, "time", self)

    def perf_counter(self):
        return self.now

    monotonic = perf_counter


class Queue:
    """A framework that only notes what it is to do, and does it when it is waited for."""

    def __init__(self, clock, seconds):
        self.clock, self.seconds, self.queued = clock, seconds, 0

    def step(self):
        self.queued += 1
        assert self.queued < 3, "what warms up waits too"

    def wait(self, work):
        self.clock.now += self.queued * self.seconds
        self.queued = 0


def test_a_sample_ends_when_the_device_is_done(monkeypatch):
    queue = Queue(Clock(monkeypatch), 2.0**-9)  # sums of powers of two are exact
    job = serve.Job(queue, queue, None)
    reply = job.run({"samples": 3, "least_s": 2.0**-8, "warm_s": 2.0**-10})
    assert queue.queued == 0 and reply["calls"] == 2 and reply["samples_s"] == [2.0**-9] * 3


class Waking:
    """Work that takes long while processors wake up."""

    def __init__(self, clock):
        self.clock, self.slow = clock, 0

    def step(self):
        self.clock.now += 0.003 if self.slow > 0 else 0.0001
        self.slow -= 1

    def wait(self, work):
        pass


def test_a_turn_begins_when_the_processors_are_awake(monkeypatch):
    waking = Waking(Clock(monkeypatch))
    job = serve.Job(waking, waking, None)
    for slow in (0, 4):
        waking.slow = slow
        reply = job.run({"samples": 2, "least_s": 0.0, "warm_s": 0.003})
    assert reply["samples_s"] == pytest.approx([0.0001] * 2)


def nvidia_smi(folder, known, answer):
    """A program of that name, which knows some fields."""
    program = folder / "nvidia-smi"
    program.write_text(f"#!{sys.executable}\nimport sys\nasked = next(a for a in sys.argv if a.startswith('--query-gpu=')).partition('=')[2].split(',')\n"
                       f"known = {known!r}\nif set(asked) - set(known):\n    sys.exit(2)\nprint({answer!r})\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize("fields", [machine.GPU_FIELDS, machine.OLDER_FIELDS], ids=["new", "old"])
def test_what_a_gpu_is_and_what_holds_it_down(monkeypatch, tmp_path, fields):
    nvidia_smi(tmp_path, list(fields.values()), "NVIDIA H200, 570.86, 143771, 143000, 1980, 1980, 3201, [N/A], 3, 0x0000000000000044")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    gpu = machine.gpu()
    assert (gpu["name"], gpu["free_mib"], gpu["clock_mhz"], gpu["power_limit_w"]) == ("NVIDIA H200", 143000, 1980, None)
    assert machine.held_down() == ["heat, by hardware"]  # and a limit of power, which is how a card is set up
    assert machine.free_bytes("cuda") <= 143000 << 20
    assert machine.environment(1, "cuda")["gpu"] == gpu and "gpu" not in machine.environment(1)


def test_a_gpu_makes_a_machine_of_its_own():
    gpu = {"name": "NVIDIA H200", "driver": "570.86", "memory_mib": 143771}
    problem = catalogue.linear("small", (8, 16), (4, 16))
    rows = []
    for environment in ({**ENVIRONMENT, "device": "cuda", "gpu": gpu}, {**ENVIRONMENT, "device": "cuda", "gpu": {"name": "NVIDIA A100"}}):
        rows.append(record_of(Measured(Variant("torch", "eager"), refusal=Refused("there is none", "absent")), problem, "ops", RUN, environment))
    text = page(rows)
    assert "<h2>NVIDIA H200, on p, 1 threads</h2>" in text and "<h2>NVIDIA A100, on p, 1 threads</h2>" in text
    assert "driver 570.86" in text and "strict f32" in text


@pytest.mark.parametrize("function, part", [("cuStreamSynchronize", WAIT), ("cuLaunchKernel", HOST)])
def test_who_is_in_the_driver_waits_or_launches(function, part):
    frames = [("[unknown]", "libcuda.so.1"), (function, "libcuda.so.1"), ("at::native::called", "libtorch_cuda.so")]
    assert part_of(frames)[0] == part
