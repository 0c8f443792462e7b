"""Several steps as one call: the loss is read as often as the mode says, and the report pairs what was run in turn."""

import pytest

from compare.experiments import synchronisation
from compare.measuring.engines import Variant
from compare.measuring.session import Plan
from compare.measuring.worker import Refused
from compare.problems.networks import network_problem
from compare.records.of_measured import record_of
from compare.report.page import section
from compare.workers.serve import Repeated, repeated

ENVIRONMENT = {"threads": 1, "f32_gflops": 100.0, "bf16_gflops": 100.0, "copy_gbytes": 10.0}
RUN = {"id": "t", "started": "2026-01-01T00:00:00+00:00", "command": None}


class Loss:
    read = 0

    def __float__(self):
        Loss.read += 1
        return 1.0


class Work:
    trained = 0

    def train(self):
        self.trained += 1
        return Loss()


@pytest.mark.parametrize("mode, reads", [("eager reads=1", 1), ("eager reads=5", 5), ("eager", 10)])
def test_the_loss_is_read_as_often_as_is_said(mode, reads):
    work, Loss.read = Work(), 0
    repeated(work, {"steps": 10}, mode).step()
    assert work.trained == 10 and Loss.read == reads


def test_a_single_step_is_left_as_it_is_and_a_wrong_number_is_refused():
    work = Work()
    assert repeated(work, {}, "eager") is work
    with pytest.raises(ValueError, match="read 3 times in 10 steps; use a divisor of 10"):
        Repeated(work, 10, 3)


def test_a_problem_of_one_step_has_the_id_that_it_had():
    one = network_problem("vgg16", 1)
    assert "steps" not in one.to_worker() and one.id() != one.with_(steps=10).id()


def test_plumbline_is_measured_and_paired(session):
    one = network_problem("vgg16", 1)
    problem = one.with_(steps=2, flops=2 * one.flops)
    variants = [Variant("plumbline", f"heuristic nchw reads={n}") for n in (2, 1)]
    found = session.measure(problem, variants, Plan(rounds=3, samples=1, least_s=0, warm_up=0))
    records = [record_of(f, problem, synchronisation.NAME, RUN, ENVIRONMENT) for f in found]
    for r in records:
        assert r["correctness"]["agrees"], r
        r["trust"] = {"trusted": True, "reasons": []}
        r["engine"]["mode"] = r["engine"]["mode"].replace("reads=2", "reads=10")
    (pair,) = synchronisation.pairs(records)
    assert pair[0] == "vgg16 train, f32, batch 1, sgd, 2 steps" and pair[1] == "plumbline heuristic nchw"
    assert 0.3 < pair[2].value < 3
    assert section(synchronisation, records)["tables"][0].rows[0][0] == pair[0]


def test_plumbline_refuses_a_number_that_is_no_divisor(session):
    problem = network_problem("vgg16", 1).with_(steps=2)
    (found,) = session.measure(problem, [Variant("plumbline", "best nchw reads=3")], Plan(rounds=1))
    assert isinstance(found.refusal, Refused) and "the loss cannot be read 3 times in 2 steps" in str(found.refusal)
