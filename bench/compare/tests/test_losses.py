"""Losses of Plumbline's training steps, held against its own: other kernels and captured steps have the same, other formulas have not."""

import functools

import pytest

from compare.experiments import losses as experiment
from compare.experiments.losses import losses_of
from compare.measuring.engines import Variant
from compare.measuring.losses import MARGIN, ROUNDINGS, distances, judged, record_of
from compare.measuring.session import Session
from compare.measuring.worker import Refused
from compare.problems import catalogue
from compare.problems.networks import network_problem
from compare.records import check
from compare.report import verdict

STEPS = 4
RUN = {"id": "t", "started": "2026-01-01T00:00:00+00:00", "command": None}
ENVIRONMENT = {"processor": "p", "threads": 1, "f32_gflops": 100.0, "bf16_gflops": None, "copy_gbytes": 10.0}


@pytest.fixture(scope="module")
def trained(engines):
    """The function of an optimizer and a mode that gives (losses, what was found)."""
    with Session(engines) as session:
        @functools.cache
        def made(optimizer):
            problem = network_problem("vgg16", 2, optimizer=optimizer, learning_rate=experiment.RATES[optimizer])
            return problem, session.make(problem)

        def losses(optimizer, mode):
            problem, files = made(optimizer)
            return losses_of(session, problem, Variant("plumbline", mode), files, STEPS)
        yield losses


def test_kernels_and_captured_steps_change_roundings_alone(trained):
    best, found = trained("sgd", "heuristic nhwc pytorch")
    vendor, _ = trained("sgd", "vendor nchw pytorch")
    captured, _ = trained("sgd", "heuristic captured nhwc pytorch")
    assert best == captured and len(set(best)) == STEPS  # each step has moved the weights
    held = judged(best, vendor, [0.0] * STEPS, "its own")
    assert held["agrees"], held
    record = record_of(found, network_problem("vgg16", 2), "losses", RUN, ENVIRONMENT, best, held)
    check(record, "a record")
    assert verdict.rows([record], "losses") == [] and verdict.counts(record)  # it has no time, and is in no ratio of times
    further = experiment.report([record])
    assert further.verdict and further.tables[0].rows[0][1].startswith("plumbline heuristic")


@pytest.mark.parametrize("optimizer", ["rmsprop", "adam"])
def test_a_step_by_another_formula_is_found(trained, optimizer):
    """Keras's RMSProp forgets faster, its Adam has another epsilon."""
    best, _ = trained(optimizer, "heuristic nhwc pytorch")
    again, _ = trained(optimizer, "vendor nhwc pytorch")
    keras, _ = trained(optimizer, "heuristic nhwc keras")
    roundings = distances(best, again)
    assert judged(best, again, roundings, "its own")["agrees"]
    held = judged(best, keras, roundings, "Keras's")
    if optimizer == "rmsprop":
        assert not held["agrees"] and held["reason"].startswith("at step 2 the loss is"), held
    assert best[0] == keras[0] and best[1:] != keras[1:]


def test_the_bound_follows_roundings_and_the_loss():
    once = [2.0, 2.0, 2.0]
    assert judged(once, [2.0, 2.0 + 1e-6, 2.0], [0.0, 0.0, 0.0], "its own") == {
        "agrees": True, "error": pytest.approx(1e-6), "tolerance": 2 * ROUNDINGS, "reason": "the losses of its own"}
    late = judged(once, [2.0, 2.0, 2.1], [0.0, 1e-4, 1e-3], "X")
    assert not late["agrees"] and late["tolerance"] == pytest.approx(MARGIN * 1e-3) and late["reason"].startswith("at step 3 the loss is 1.0e-01 from X's")
    assert not judged(once, [2.1, 2.0, 2.0], [0.0, 0.0, 1.0], "X")["agrees"]  # late roundings excuse no early distance


def test_what_is_no_training_has_no_losses(session):
    problem = catalogue.linear("small", (8, 16), (4, 16))
    with pytest.raises(Refused, match="there are losses of a network's training alone"):
        losses_of(session, problem, Variant("plumbline", "best"), session.make(problem), 2)
