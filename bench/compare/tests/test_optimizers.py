"""Updates alone: the three conventions in all ways agree with the optimizers in f64, and one with another formula does not."""

import pytest

from compare.experiments import optimizers
from compare.measuring.agreement import agreement
from compare.measuring.engines import Variant
from compare.measuring.session import Plan
from compare.problems.updates import ARRAYS, CONVENTIONS, OPTIMIZERS, problem_of, update_problem
from compare.records.of_measured import record_of

SHAPES = {"conv.weight": (6, 4, 3, 3), "conv.bias": (6,), "fc.weight": (5, 24), "fc.bias": (5,)}
ONCE = Plan(rounds=1, samples=1, least_s=0, warm_up=0)
ENVIRONMENT = {"threads": 1, "f32_gflops": 100.0, "bf16_gflops": 100.0, "copy_gbytes": 10.0}
RUN = {"id": "t", "started": "2026-01-01T00:00:00+00:00", "command": None}


def measured(session, problem, variants, plan=ONCE):
    return [record_of(f, problem, optimizers.NAME, RUN, ENVIRONMENT) for f in session.measure(problem, variants, plan)]


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_way_agrees_with_the_reference(session, optimizer, convention):
    ours = [Variant("plumbline", mode) for mode in optimizers.OURS]
    for r in measured(session, problem_of("small", SHAPES, optimizer, convention), ours):
        assert r["status"] == "measured" and r["correctness"]["error"] < 1e-5, r


def test_each_convention_differs_from_the_others_by_more_than_the_tolerance(session):
    """What is compared can tell the formulas apart: where it cannot, they are the same."""
    for optimizer in OPTIMIZERS:
        files = {}
        for convention in CONVENTIONS:
            problem = problem_of("small", SHAPES, optimizer, convention)
            inputs, files[convention] = session.make(problem)
        for a, b in (("pytorch", "keras"), ("keras", "tensorflow1"), ("pytorch", "tensorflow1")):
            assert agreement(files[a], files[b], "op", "f32")["agrees"] == (optimizer == "sgd"), (optimizer, a, b)


def test_another_place_of_epsilon_is_found(session):
    problem = problem_of("small", SHAPES, "rmsprop", "pytorch")
    good, wrong = measured(session, problem, [Variant("fake", "good"), Variant("another", "wrong")])
    assert good["status"] == "measured" and good["correctness"]["agrees"]
    assert wrong["status"] == "not_available" and "differs from the reference" in wrong["reason"]


def test_what_a_framework_lacks_is_a_row_that_says_so(session):
    (none,) = measured(session, problem_of("small", SHAPES, "adam", "pytorch"), [Variant("fake", "good")])
    assert none["reason"] == "fake has no adam"


def test_the_floor_counts_what_must_move():
    problem = update_problem("vgg16", "adam", "keras")
    count = sum(t.count for n, t in problem.inputs.items() if n in problem.gradients)
    assert problem.bytes == 4 * count * ARRAYS["adam"] and count > 8e6


def test_the_report_is_in_passes(session):
    problem = problem_of("small", SHAPES, "rmsprop", "pytorch")
    variants = [Variant("plumbline", "best fused"), Variant("fake", "good")]
    records = measured(session, problem, variants, Plan(rounds=3, samples=2, least_s=1e-4))
    for r in records:
        r["trust"] = {"trusted": True, "reasons": []}
    (table,) = optimizers.report(records).tables
    expected = records[1]["median_s"] / (problem.bytes / 10e9)
    assert table.rows[0][0] == "rmsprop small.pytorch" and table.rows[0][2] == f"{expected:.1f}"


def found(engine, mode, passes, convention, optimizer="sgd"):
    """A record that takes so many times as long as copying its bytes."""
    subject = {"id": f"{optimizer} {convention}", "kind": "op", "name": optimizer, "problem": f"vgg16.{convention}", "attributes": {"convention": convention}}
    return {"experiment": optimizers.NAME, "run": RUN, "subject": subject, "engine": {"name": engine, "mode": mode}, "environment": ENVIRONMENT,
            "status": "measured", "median_s": 1e-3 * passes, "roof_share": 1 / passes, "correctness": {"agrees": True}, "trust": {"trusted": True, "reasons": []}}


def test_a_framework_has_a_sentence_for_each_convention_in_which_it_has_ways():
    keras = [found("tensorflow", mode, passes, "keras") for mode, passes in (("chain", 4), ("function", 3), ("xla", 2))]
    assert optimizers.report([*keras, found("tensorflow", "per_tensor", 5, "tensorflow1")]).verdict == [
        "tensorflow, keras's formulas, 1 update that all have: xla takes 2.0 times the floor, function takes 3.0 times the floor, chain takes 4.0 times the floor",
        "tensorflow, tensorflow1's formulas, 1 update that all have: per_tensor takes 5.0 times the floor"]


def test_an_update_that_lacks_a_way_is_named_as_left_out():
    adam = [found("torch", mode, passes, "pytorch", "adam") for mode, passes in (("chain", 4), ("foreach", 3), ("fused", 2))]
    (sentence,) = optimizers.report(adam + [found("torch", mode, 9, "pytorch", "rmsprop") for mode in ("chain", "foreach")]).verdict
    assert sentence.startswith("torch, pytorch's formulas, 1 update that all have: fused takes 2.0 times the floor, foreach takes 3.0 times")
    assert sentence.endswith("; left out: rmsprop vgg16.pytorch, without fused")
