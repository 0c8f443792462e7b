"""What there is no reference for is a row that says so in every experiment, and the run goes on."""

import types

import pytest

from compare.experiments import algorithms, losses
from compare.experiments.bench import Bench
from compare.measuring import training
from compare.measuring.engines import Variant
from compare.measuring.session import Session
from compare.measuring.worker import Refused
from compare.problems.networks import network_problem
from compare.records import Store

RUN = {"id": "t", "started": "2026-01-01T00:00:00+00:00", "command": None}
ENVIRONMENT = {"processor": "p", "threads": 1, "f32_gflops": 100.0, "bf16_gflops": 100.0, "copy_gbytes": 10.0}
WHY = "x cannot be written: No space left on device"


@pytest.fixture
def bench(engines, tmp_path, monkeypatch):
    def refuse(*_):
        raise Refused(WHY, "disk")
    monkeypatch.setattr(Session, "make", refuse)
    (tmp_path / "shapes.txt").write_text("conv2d tiny 2x4x6x6 4x4x3x3 padding=1\n")
    return Bench(engines, ("fake",), Store(tmp_path / "r.jsonl"), RUN, ENVIRONMENT, None, shapes=tmp_path / "shapes.txt")


def of_each(bench):
    assert all(r["status"] == "not_available" and r["reason"].endswith(WHY) and r["refusal"] == "disk" for r in bench.store.records)
    return [r["engine"]["name"] for r in bench.store.records]


def test_algorithms_that_are_asked_often(bench):
    (problem,) = algorithms.forward_problems(bench)
    algorithms.ask_often(bench, problem, 3)
    assert of_each(bench) == ["plumbline"]


def test_losses(bench):
    losses.run(bench)
    assert of_each(bench) == ["fake", "plumbline", "plumbline"] * len(losses.RATES)


def test_a_training(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "write_orders", lambda *_: None)
    problem = network_problem("resnet20", 2)
    with Session(bench.engines, tmp_path) as session:
        found, epochs = training.train(session, problem, Variant("plumbline", "best"), lambda file: file, 1, 2)
    bench.store.add(training.record_of(found, epochs, problem, "table3", RUN, ENVIRONMENT))
    assert of_each(bench) == ["plumbline"]


def test_an_algorithm_whose_process_dies_while_it_runs(engines, tmp_path, monkeypatch):
    def die(session, found, plan):
        raise Refused("the process ended with status 3", "died")
    monkeypatch.setattr(Session, "turn", die)
    (tmp_path / "shapes.txt").write_text("conv2d tiny 2x4x6x6 4x4x3x3 padding=1\n")
    bench = Bench(engines, (), Store(tmp_path / "r.jsonl"), RUN, ENVIRONMENT, None, shapes=tmp_path / "shapes.txt")
    algorithms.ask_often(bench, next(algorithms.forward_problems(bench)), 2)
    assert [r["refusal"] for r in bench.store.records] == ["died"] * 2


def test_an_epoch_is_waited_for_by_how_long_its_first_step_took():
    def waited_for(**prepared):
        return training.patience_s(types.SimpleNamespace(prepared=prepared), 100)
    assert [waited_for(first_s=0.1), waited_for(first_s=1e3), waited_for()] == [700, 6 * 3600, 6 * 3600]
