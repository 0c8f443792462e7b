"""Batches from bytes: all ways of Plumbline's loader, what numpy makes of the same bytes, and one that forgets the mean."""

import queue
import threading
import time
import types

import pytest

from compare.experiments import input_pipeline
from compare.measuring.engines import Variant
from compare.measuring.session import Plan
from compare.problems.inputs import input_problem
from compare.records.of_measured import record_of
from compare.workers import serve

ENVIRONMENT = {"threads": 1, "f32_gflops": 100.0, "bf16_gflops": 100.0, "copy_gbytes": 10.0}
RUN = {"id": "t", "started": "2026-01-01T00:00:00+00:00", "command": None}
PROBLEM = input_problem("vgg16", 2, images=5)


def measured(session, variants):
    found = session.measure(PROBLEM, variants, Plan(rounds=3, samples=1, least_s=0, warm_up=0))
    return [record_of(f, PROBLEM, input_pipeline.NAME, RUN, ENVIRONMENT) for f in found]


def test_every_way_has_the_same_first_batch_and_goes_on_over_epochs(session):
    records = measured(session, [Variant("plumbline", f"best nchw {way}") for way in input_pipeline.WAYS] + [Variant("fake", "augment")])
    for r in records:
        assert r["status"] == "measured" and r["correctness"]["error"] < 1e-6, r
        r["trust"] = {"trusted": True, "reasons": []}
    (table,) = input_pipeline.report(records).tables
    assert [row[1] for row in table.rows] == ["plumbline", "fake"] and table.rows[1][3:] == ["–"] * 3
    assert table.rows[0][2] == f"{2 / records[0]['median_s']:.0f}"


@pytest.mark.parametrize("mode, reason", [("wrong", "images differs from the reference"), ("overlapped", "fake trains no network")])
def test_what_is_wrong_or_not_there_is_a_row_that_says_so(session, mode, reason):
    (r,) = measured(session, [Variant("fake", mode)])
    assert r["status"] == "not_available" and reason in r["reason"]
    assert input_pipeline.report([r]).verdict == [f"fake: {r['reason']}"]
    assert input_pipeline.report([{**r, "experiment": "ops"}]).verdict == []  # another experiment's reasons are not its own


@pytest.mark.timed
def test_what_a_loader_made_while_others_had_their_turn_does_not_count():
    """A batch takes 10 ms, two are ready, and a step takes none: a batch is all that comes in 10 ms."""
    ready = queue.Queue(2)

    def load():
        while True:
            time.sleep(0.01)
            ready.put(None)
    threading.Thread(target=load, daemon=True).start()
    job = serve.Job(types.SimpleNamespace(wait=lambda work: None, memory=dict), types.SimpleNamespace(step=ready.get), {})
    plan = input_pipeline.PLAN
    for _ in range(2):
        time.sleep(0.05)
        reply = job.run({"samples": plan.samples, "least_s": plan.least_s, "least_calls": plan.least_calls, "warm_calls": plan.warm_calls})
    assert reply["calls"] >= input_pipeline.EPOCH and reply["samples_s"][0] > 0.0095
