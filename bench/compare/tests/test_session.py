"""Sessions with frameworks that are right, wrong, dead, silent and full: each has its row, and the others go on."""

import collections
import dataclasses
import os
import sys

import pytest

from compare.experiments.layouts import without_bias
from compare.measuring.engines import Engines, Variant
from compare.measuring.session import Measured, Plan, Session
from compare.measuring.watch import Watch
from compare.problems import catalogue
from compare.records.of_measured import record_of

ONCE = Plan(rounds=1, samples=1, least_s=0, warm_up=0)
PLAN = Plan(rounds=3, samples=2, least_s=0.0005)
ENVIRONMENT = {"threads": 1, "f32_gflops": 100.0, "bf16_gflops": 100.0, "copy_gbytes": 10.0}
RUN = {"id": "t", "started": "2026-01-01T00:00:00+00:00", "command": None}


def linear(direction="forward_backward"):
    return catalogue.linear("small", (8, 16), (4, 16)).with_(direction=direction)


@pytest.fixture(scope="module")
def lasting(engines):
    """One session for all that leave nothing behind in it."""
    with Session(engines) as s:
        yield s


def records(session, problem, variants):
    found = session.measure(problem, variants, PLAN)
    return [record_of(f, problem, "ops", RUN, ENVIRONMENT) for f in found]


def test_both_sides_agree_and_are_measured(session):
    ours, theirs = records(session, linear(), [Variant("plumbline", "best"), Variant("fake", "good")])
    for r in (ours, theirs):
        assert r["status"] == "measured" and r["correctness"]["agrees"] and r["correctness"]["error"] < 1e-5
        assert len(r["rounds_s"]) == 3 and all(len(s) == 2 for s in r["rounds_s"])
        assert r["confidence_s"][0] <= r["median_s"] <= r["confidence_s"][1]
        assert r["gflops"] == pytest.approx(linear().flops / r["median_s"] / 1e9)
    assert "linear" in ours["implementation"] or "plumbline" in ours["implementation"] or "onednn" in ours["implementation"]


@pytest.mark.parametrize("mode, reason", [
    ("wrong", "db differs from the reference by"), ("nan", "db has NaN"), ("dies", "ended with status 3"), ("memory", "out of memory"),
])
def test_what_goes_wrong_is_a_row_that_says_so(session, mode, reason):
    bad, good = records(session, linear(), [Variant("another", mode), Variant("fake", "good")])
    assert bad["status"] == "not_available" and reason in bad["reason"]
    assert "rounds_s" not in bad
    assert good["status"] == "measured"


def test_what_no_short_turn_tells_all_of_them_tell(session):
    """Turns of 20 ms, in each of which others use 8 of 40 ms of two processors, where clocks tick in hundredths of a second."""
    def found(length):
        return Measured(None, rounds=[[length]] * 5, watched=[Watch(length, 0.0, 0.2 * 2 * length, 2 * length)] * 5)

    for short, long, disturbed in ((4, 0, 5), (1, 0, 0), (4, 1, 5)):
        able = [found(0.02) for _ in range(short)] + [found(0.4) for _ in range(long)]
        session.watch_short_turns(able)
        assert [f.disturbed for f in able[:short]] == [["the machine did other work"] * disturbed] * short
        assert not any(f.disturbed for f in able[short:])  # of each of which it was asked by itself
    assert Watch(0.4, 0.02, 0.02, 0.8).reasons() == []
    assert Watch(0.4, 0.2, 0.2, 0.8).reasons() == ["another worker did not sleep", "the machine did other work"]
    assert Watch(0.4, 0.0, 0.3, 6.4).reasons() == ["the machine did other work"] and Watch(0.4, 0.0, 0.1, 6.4).reasons() == []  # of one of sixteen


@pytest.mark.parametrize("used, disturbed", [(0.01, 20), (0.002, 20), (0.0005, 0)])
def test_one_that_never_sleeps_is_seen_in_short_turns(session, used, disturbed):
    """Of 10 ms each, in which no turn tells by itself: by all of it, a fifth, and what threads that wait awake for a moment use."""
    found = Measured(None, rounds=[[0.01]] * 20, watched=[Watch(0.01, used, 0.0, 0.02)] * 20)
    assert found.watched[0].reasons() == []
    session.watch_short_turns([found])
    assert found.disturbed == ["another worker did not sleep"] * disturbed


def test_one_that_hangs_is_ended(session):
    worker = session.worker(Variant("another", "hangs"))
    assert worker.hello  # that it takes long to start is no hanging
    worker.patience_s = 1
    bad, good = records(session, linear(), [Variant("another", "hangs"), Variant("fake", "good")])
    assert bad["status"] == "not_available" and bad["reason"] == "no reply within 1 s"
    assert good["status"] == "measured"


def test_one_that_hangs_twice_is_not_asked_a_third_time(session):
    for direction in ("forward", "forward_backward"):
        for mode in ("hangs", "good"):  # the first ends the process of both
            session.worker(Variant("another", mode)).patience_s = 1
        hung, good = session.measure(linear(direction), [Variant("another", mode) for mode in ("hangs", "good")], PLAN)
        assert (str(hung.refusal), hung.refusal.kind) == ("no reply within 1 s", "hung") and good.refusal is None
    hung, good = session.measure(linear(), [Variant("another", mode) for mode in ("hangs", "good")], PLAN)
    assert (str(hung.refusal), hung.refusal.kind) == ("another hangs is not asked any more: it did not reply 2 times", "hung")
    assert not hung.hello and good.refusal is None  # without a version it is asked again in the next call


def test_what_is_thrown_away_takes_no_time_from_the_rounds(session):
    found = session.prepare(linear(), Variant("fake", "good"), *session.make(linear()))
    session.run(found, PLAN, keep=False)
    assert found.ran_s == 0
    session.run(found, PLAN, keep=True)
    assert found.ran_s > 0


@pytest.mark.parametrize("when", ["before", "after"])
def test_rounds_outlive_the_oracle(session, monkeypatch, when):
    in_turn = Session.run_in_turn

    def run_in_turn(self, able, plan):
        in_turn(self, able, plan)
        self.oracle.kill()
    prepare = Session.prepare

    def prepare_and_kill(self, *words):
        found = prepare(self, *words)
        self.oracle.kill()
        return found
    with monkeypatch.context() as patch:
        patch.setattr(Session, *(("prepare", prepare_and_kill) if when == "before" else ("run_in_turn", run_in_turn)))
        (kept,) = records(session, linear(), [Variant("fake", "good")])
    (again,) = records(session, linear(), [Variant("fake", "good")])
    assert kept["status"] == again["status"] == "measured"
    assert "the processor's clock was slow" not in kept["trust"]["reasons"]


def test_a_clock_that_is_slow_from_the_first_problem_on_is_told_by_the_runs_first_pulse(engines):
    run = Engines(engines.programs, 1, modules=engines.modules)
    with Session(run) as first:
        first.roofs()
    assert run.with_settings(X="1").clock is run.clock and 0 < run.clock.least_s < 1
    run.clock.least_s /= 2
    with Session(run) as later:
        (found,) = later.measure(linear(), [Variant("fake", "good")], PLAN)
    assert found.disturbed.count("the processor's clock was slow") == 3


def test_an_op_that_a_framework_lacks_and_a_framework_that_is_not_there(session):
    problem = dataclasses.replace(linear("forward"), op="matmul")
    gelu = next(p for p in catalogue.of_tensor("small", (4, 8)) if p.op == "gelu")
    lacks, absent, ours = records(session, gelu, [Variant("fake", "good"), Variant("jax", "jit"), Variant("plumbline", "best")])
    assert lacks["reason"] == "fake has no gelu" and absent["reason"] == "jax is not installed"
    assert ours["status"] == "measured" and problem.op == "matmul"


def test_a_worker_that_died_serves_the_next_problem(session):
    records(session, linear(), [Variant("another", "dies")])
    (again,) = records(session, linear("forward"), [Variant("another", "good")])
    assert again["status"] == "measured"


def test_one_that_dies_of_two_problems_serves_the_third(session):
    for _ in range(2):
        records(session, linear(), [Variant("another", "dies"), Variant("another", "wrong")])
        records(session, linear(), [Variant("another", "dies"), Variant("another", "dies")])
    (again,) = records(session, linear("forward"), [Variant("another", "good")])
    assert again["status"] == "measured"


def test_one_that_cannot_be_started_says_why(session, monkeypatch):
    monkeypatch.setattr(type(session.engines), "command", lambda *_: ([sys.executable, "-c", "import no_such_library"], dict(os.environ)))
    for _ in range(3):
        (bad,) = records(session, linear(), [Variant("fake", "good")])
        assert bad["status"] == "not_available" and "No module named 'no_such_library'" in bad["reason"], bad["reason"]
    assert bad["reason"].startswith("fake cannot be started: ") and bad["refusal"] == "absent"


def test_one_that_dies_before_it_says_anything_was_not_there(engines):
    other = engines.with_settings()
    other.programs = {**engines.programs, "jax": sys.executable}  # which has no JAX
    with Session(other, alone=True) as session:
        for _ in range(2):  # each problem starts it anew
            (refused,) = session.measure(linear(), [Variant("jax", "jit")], PLAN)
            assert refused.refusal.kind == "absent" and "No module named 'jax'" in str(refused.refusal)
            session.close_workers()


def test_without_a_reference_the_row_says_so_and_the_next_problem_has_one(session):
    huge = catalogue.linear("huge", (1 << 46, 16), (4, 16)).with_(direction="forward")
    for r in records(session, huge, [Variant("plumbline", "best"), Variant("fake", "good")]):
        assert r["status"] == "not_available" and r["reason"].startswith("the reference cannot be computed: ")
    session.oracle.kill()
    (lost,) = records(session, linear(), [Variant("fake", "good")])
    assert lost["reason"].startswith("the reference cannot be computed: ")
    (good,) = records(session, linear(), [Variant("fake", "good")])
    assert good["status"] == "measured"


def test_a_mode_that_ends_its_process_takes_no_other_with_it(session):
    good, dead, also = records(session, linear(), [Variant("another", mode) for mode in ("good", "dies", "also good")])
    assert (dead["status"], dead["refusal"]) == ("not_available", "died")
    assert [(r["status"], len(r["rounds_s"])) for r in (good, also)] == [("measured", 3)] * 2


@pytest.mark.parametrize("last", [1, 3])  # turns of it: the first is thrown away
def test_a_mode_that_ends_its_process_in_a_round_takes_no_other_with_it(session, monkeypatch, last):
    turn, turns = Session.turn, collections.Counter()

    def dying(self, found, plan):
        turns[found.variant.mode] += 1
        if found.variant.mode == "bad" and turns["bad"] == last:
            found.worker.process.kill()
        return turn(self, found, plan)
    monkeypatch.setattr(Session, "turn", dying)
    good, dead, also = session.measure(linear(), [Variant("another", mode) for mode in ("good", "bad", "also good")], PLAN)
    assert dead.refusal.kind == "died" and turns["bad"] == last
    for found in (good, also):
        assert found.refusal is None and len(found.rounds) == 3 and len({r["calls"] for r in found.replies}) == 1
        assert turns[found.variant.mode] == 5  # the first is thrown away, and the first of the second process


SMALL = [("conv2d", "c", [(2, 4, 7, 7), (6, 4, 3, 3)], {"padding": "1x0x2x1", "stride": "2x1"}),
         ("conv2d", "g", [(2, 4, 7, 7), (4, 1, 3, 3)], {"groups": "4"}), ("pool2d", "p", [(2, 3, 8, 8)], {"kernel": "2", "stride": "2"}),
         ("linear", "l", [(4, 8), (3, 8)], {}), ("matmul", "m", [(2, 5, 3), (2, 5, 4)], {"transpose_a": "1"}), ("tensor", "t4", [(2, 6, 5, 4)], {}),
         ("tensor", "t2", [(4, 6)], {})]


@pytest.mark.parametrize("problem", list(catalogue.forward_problems(SMALL)), ids=lambda p: f"{p.op}-{p.name}")
def test_every_op_of_the_catalogue_agrees_with_its_reference(lasting, problem):
    modes = ["vendor nchw", "best captured nchw"]
    if problem.op != "permute":  # Plumbline permutes row-major tensors alone
        modes.append("best nhwc")
    for p in catalogue.variants(problem, ("forward", "forward_backward"), ("f32", "bf16")):
        for found in lasting.measure(p, [Variant("plumbline", mode) for mode in modes], ONCE):
            assert found.refusal is None, str(found.refusal)
            assert found.agreement["agrees"], found.agreement["reason"]


LARGEST = [("pool2d", "p", [(8, 64, 32, 32)], {"kernel": "2", "stride": "2"}), ("tensor", "t2", [(512, 256)], {})]


@pytest.mark.parametrize("problem", [p for p in catalogue.forward_problems(LARGEST) if p.op in ("max_pool2d", "argmax")], ids=lambda p: p.op)
def test_the_largest_of_bf16_is_the_same_for_all(lasting, problem):
    """Of numbers that are alike when they are rounded, and of many."""
    for p in catalogue.variants(problem, ("forward", "forward_backward"), ("bf16",)):
        (found,) = lasting.measure(p, [Variant("plumbline", "best nhwc" if p.op == "max_pool2d" else "best")], ONCE)
        assert found.refusal is None and found.agreement["agrees"], found.agreement


CONVOLUTIONS = [("conv2d", "3x3", [(2, 16, 7, 9), (8, 16, 3, 3)], {"padding": "1x0x2x1"}), ("conv2d", "first", [(2, 3, 9, 9), (8, 3, 3, 3)], {"stride": "2"}),
                ("conv2d", "1x1", [(2, 16, 7, 7), (32, 16, 1, 1)], {}), ("conv2d", "depthwise", [(2, 16, 7, 7), (16, 1, 3, 3)], {"groups": "16"})]


@pytest.mark.parametrize("mode", ["best charged nhwc", "best charged chwn", "best blocked", "best charged blocked", "heuristic nhwc", "deterministic nchw"])
@pytest.mark.parametrize("problem", [without_bias(p) for p in catalogue.forward_problems(CONVOLUTIONS)], ids=lambda p: p.name)
def test_every_way_of_a_convolution_agrees_with_its_reference(lasting, problem, mode):
    for p in catalogue.variants(problem, ("forward", "forward_backward"), ("f32",)):
        (found,) = lasting.measure(p, [Variant("plumbline", mode)], ONCE)
        assert found.refusal is None, str(found.refusal)
        assert found.agreement["agrees"], found.agreement["reason"]
        assert found.prepared["layout"] == mode.split()[-1]
        converts = any(k["op"] == "permute" for k in found.prepared["kernels"])
        assert converts == ("charged" in mode and "blocked" not in mode)


@pytest.mark.parametrize("mode, problem, sentence", [
    ("only:direct_chwn nhwc", CONVOLUTIONS[0], "there is no algorithm direct_chwn for this work"),
    ("best blocked", ("linear", "l", [(4, 8), (3, 8)], {}), "for convolutions without a bias, not for linear"),
    ("fastest", CONVOLUTIONS[0], "the mode fastest is unknown; use best"),
])
def test_a_way_that_there_is_not_is_a_sentence(lasting, mode, problem, sentence):
    (found,) = lasting.measure(next(catalogue.forward_problems([problem])), [Variant("plumbline", mode)], ONCE)
    assert sentence in str(found.refusal)
