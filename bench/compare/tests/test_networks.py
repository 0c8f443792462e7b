"""The networks as lists of ops beside Plumbline's own, and what is measured of them where memory is short."""

import dataclasses
import math
import pathlib

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from compare.experiments import memory, ops, table2, train
from compare.experiments.bench import CHOICE_S, Bench
from compare.measuring import steps
from compare.measuring.agreement import TOLERANCE, agreement
from compare.measuring.engines import Variant
from compare.measuring.session import Plan, Session
from compare.problems import catalogue
from compare.problems.networks import BRANCH, NETWORKS, built, network_problem
from compare.records import Store

ONCE = Plan(rounds=1, samples=1, least_s=0, warm_up=0)
VARIANTS = [Variant("plumbline", "best auto"), Variant("torch", "eager")]


@pytest.mark.parametrize("name, weights, products", [
    ("alexnet", 78_330_250, 108_891_200), ("vgg16", 8_735_652, 155_861_760), ("resnet20", 269_722, 40_551_040),
    ("resnet50", 25_557_032, 4_089_184_256)])
def test_a_network_has_the_weights_and_the_arithmetic_of_its_paper(name, weights, products):
    network = built(name)
    assert sum(math.prod(shape) for shape in network.weights.values()) == weights and network.flops == 2 * products


def test_every_node_reads_what_is_there():
    for name in NETWORKS:
        problem = network_problem(name, 2)
        there = set(problem.inputs)
        for node in problem.nodes:
            assert there >= set(node["inputs"].values()), node
            there.add(node["output"])
        assert problem.output in there
        assert set(problem.gradients) == set(problem.inputs) - {"images", "labels"} - set(built(name).statistics)


@pytest.mark.parametrize("name", ["resnet20", "resnet50"])
def test_weights_and_statistics_are_plumblines_own(session, name):
    problem = network_problem(name, 1)
    inputs = session.folder / "made"
    session.make_inputs(problem, inputs)
    tensors = load_file(inputs)
    assert {n: t.shape for n, t in problem.inputs.items()} == {n: v.shape for n, v in tensors.items()}
    for n, value in tensors.items():
        if "running_" in n:
            assert (value == n.endswith("running_var")).all(), n
    last = "layer1.0.bn2.weight" if name == "resnet20" else "layer1.0.bn3.weight"
    assert (tensors["bn1.weight"] == 1).all() and (tensors[last] == np.float32(BRANCH)).all()
    assert np.abs(tensors["conv1.weight"]).max() < 1


def agreements(engines, problem, *modes):
    with Session(engines) as session:
        for found in session.measure(problem, [Variant("plumbline", mode) for mode in modes], ONCE):
            assert found.refusal is None, str(found.refusal)
            yield found.agreement


@pytest.mark.parametrize("direction, dtype, modes", [
    ("train", "f32", ("vendor nhwc", "best captured nchw")), ("train", "bf16", ("best nhwc",)),
    ("forward", "f32", ("best captured nhwc", "vendor nchw")), ("forward", "bf16", ("best captured nhwc", "best nchw"))])
def test_resnet20_agrees_with_its_reference(engines, direction, dtype, modes):
    problem = network_problem("resnet20", 2, direction, dtype)
    for held in agreements(engines, problem, *modes):
        assert held["agrees"] and held["tolerance"] == TOLERANCE[problem.compared_as, dtype], held["reason"]


def with_epsilon(times, session, problem, mode):
    """The results of a side whose batch norms have an epsilon so many times as large. A batch norm of a convolution with weights `by` times
    as small is one of the convolution itself with an epsilon by * by times as large; a power of two rounds nothing."""
    by, variant = np.float32(times ** 0.5), Variant("plumbline", mode)
    inputs, expected = session.make(problem)
    tensors = load_file(inputs)
    convolutions = [n for n in problem.gradients if len(problem.inputs[n].shape) == 4]
    save_file(tensors | {n: tensors[n] / by for n in convolutions}, inputs)
    results = session.folder / "of another epsilon"
    session.worker(variant).ask("prepare", job=variant.name, problem=problem.to_worker(), mode=mode, inputs=str(inputs), results=str(results))
    found = load_file(results)
    save_file(found | {f"d{n}": found[f"d{n}"] / by for n in convolutions}, results)
    return results, expected


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("dtype, times", [("f32", 1), ("f32", 4), ("f32", 64), ("bf16", 1), ("bf16", 16), ("bf16", 64)])
def test_another_epsilon_of_batch_norms_is_found(session, dtype, times, batch):
    """64 times 1e-5 is less than the 1e-3 that TensorFlow takes where nothing is said."""
    problem = network_problem("resnet20", batch, dtype=dtype)
    held = agreement(*with_epsilon(times, session, problem, "heuristic nhwc"), problem.compared_as, dtype)
    assert held["agrees"] == (times == 1), held
    assert times == 1 or "differs from the reference" in held["reason"]


def test_a_step_as_a_whole_is_held_closer_than_its_tensors(tmp_path):
    """Each tensor may be 70 % off, as far as roundings go; all together may not be longer, nor the loss another."""
    rng = np.random.default_rng(1)
    right = {"dw": rng.normal(size=10_000).astype(np.float32), "loss": np.array(2.0, np.float32)}
    save_file(right, tmp_path / "right")
    noise = rng.normal(size=10_000).astype(np.float32)
    noise -= right["dw"] * (noise @ right["dw"]) / (right["dw"] @ right["dw"])
    for changed, reason in (({"dw": 0.995 * right["dw"] + 0.1 * noise}, None), ({"dw": 0.97 * right["dw"]}, "the length of all gradients together"),
                            ({"loss": np.array(2.01, np.float32)}, "the loss differs from the reference's by 0.005 of it")):
        save_file(right | changed, tmp_path / "ours")
        held = agreement(tmp_path / "ours", tmp_path / "right", "normalised network", "bf16")
        assert held["agrees"] == (reason is None) and (reason is None or held["reason"].startswith(reason)), held


@pytest.mark.parametrize("name", ["alexnet", "vgg16", "resnet20", "resnet50"])
def test_the_logits_of_a_forward_pass_tell_of_the_images(session, name):
    """By far more than its tolerance, or nothing of the layers would be compared."""
    problem = network_problem(name, 2, "forward", image=(3, 64, 64) if name == "resnet50" else None)
    _, expected = session.make(problem)
    logits = load_file(expected)[problem.output]
    assert np.isfinite(logits).all() and np.abs(logits[0] - logits[1]).max() > 0.01 * np.abs(logits).max() > 0
    assert problem.compared_as == "op"


class AnotherRate(Session):
    """All of whose sides are told another learning rate than the reference."""

    def prepare(self, problem, *rest):
        return super().prepare(problem.with_(learning_rate=1.1 * problem.learning_rate), *rest)


@pytest.mark.parametrize("optimizer, rate", [("sgd", 0.01), ("adam", 1e-4), ("rmsprop", 1e-4)])
def test_the_timed_step_is_held_with_its_update(engines, optimizer, rate):
    """Its first pass agrees whatever the update is."""
    problem = network_problem("resnet20", 2, optimizer=optimizer, learning_rate=rate)
    for kind, agrees in ((Session, True), (AnotherRate, False)):
        with kind(engines) as session:
            for found in session.measure(problem, [Variant("plumbline", mode) for mode in ("best captured nhwc", "vendor nchw")], ONCE):
                assert found.refusal is None and found.agreement["agrees"] == agrees == bool(found.rounds), found.refusal or found.agreement
                assert agrees or found.agreement["reason"].startswith("of what the timed step has changed after 2 calls, "), found.agreement
                assert any(optimizer in k["op"] for k in found.prepared["kernels"]), found.prepared["kernels"]


def test_a_change_that_rounding_hides_is_none(tmp_path):
    right = {"dw": np.full(100, 1e-8, np.float32), "dv": np.ones(100, np.float32), "loss": np.array(2.0, np.float32)}
    save_file(right, tmp_path / "right")
    for name, agrees in (("dw", True), ("dv", False)):
        save_file(right | {name: 0 * right[name]}, tmp_path / "ours")
        held = agreement(tmp_path / "ours", tmp_path / "right", "network", "f32 steps", least={"dw": 1e-6})
        assert held["agrees"] == agrees, held


def test_each_side_is_held_by_its_own_formulas(session):
    problem = network_problem("resnet20", 2, optimizer="rmsprop", learning_rate=1e-4)
    theirs, ours = Variant("tensorflow", "function"), Variant("plumbline", "best nhwc")
    inputs, expected = session.make(problem)
    trained = steps.expected_of(session, problem, [theirs, ours], inputs)
    assert list(trained.files) == ["keras", "pytorch"] and [steps.formulas_of(problem.with_(optimizer="sgd"), v) for v in (theirs, ours)] == ["pytorch"] * 2
    for file, agrees in ((trained.files["pytorch"], True), (trained.files["keras"], False)):
        found = session.prepare(problem, ours, inputs, expected)
        steps.hold(session, problem, found, inputs, steps.Expected({"pytorch": file}, trained.least))
        assert found.agreement["agrees"] == agrees, found.agreement


def test_resnet50_takes_images_of_another_size(engines):
    for held in agreements(engines, network_problem("resnet50", 2, image=(3, 32, 48)), "vendor captured nhwc"):
        assert held["agrees"], held["reason"]


def test_the_quick_comparison_is_of_batch_32_and_the_full_one_has_all_networks_and_dtypes():
    def problems(full, bf16_gflops, batches=(), networks=()):
        environment = {"f32_gflops": 100.0, "bf16_gflops": bf16_gflops}
        return list(train.problems(Bench(engines=None, frameworks=(), store=None, run=None, environment=environment, console=None, full=full,
                                         batches=batches, networks=networks)))
    quick = problems(False, 200.0)
    assert [(p.op, p.batch, p.dtype) for p in quick] == [("alexnet", 32, "f32"), ("vgg16", 32, "f32"), ("resnet20", 32, "f32")]
    assert {(p.op, p.batch) for p in problems(False, 200.0, (2, 7), ("resnet50", "vgg16"))} == {(n, b) for n in ("resnet50", "vgg16") for b in (2, 7)}
    for bf16_gflops, dtypes in ((200.0, ("f32", "bf16")), (101.0, ("f32",))):  # bf16 where the processor computes in it
        full = problems(True, bf16_gflops)
        for name in NETWORKS:
            of_sgd = {(p.batch, p.dtype) for p in full if p.op == name and p.optimizer == "sgd"}
            assert of_sgd == {(batch, dtype) for batch in (1, 32, 250) for dtype in dtypes}


def test_modes_and_dtypes_may_be_asked_for_by_themselves():
    class Engines:
        tcmalloc, device = "a library", "cpu"
    bench = Bench(engines=Engines, frameworks=("torch", "jax"), store=None, run=None, environment={"f32_gflops": 100.0, "bf16_gflops": 100.0},
                  console=None)
    assert len(bench.variants_of_frameworks()) == 4 and bench.dtypes() == ("f32",)
    every = dataclasses.replace(bench, every_mode=True, asked_dtypes=("bf16",))
    assert len(every.variants_of_frameworks()) == 10 and every.dtypes() == ("bf16",)
    flat, image = catalogue.linear("flat", (8, 16), (4, 16)), catalogue.pooling("max_pool2d", "image", (1, 2, 4, 4), {"kernel": "2"})
    assert [v.name for v in ops.sides(every)(flat) if v.engine == "torch"] == ["torch eager", "torch eager + tcmalloc", "torch compile",
                                                                              "torch compile + tcmalloc"]
    assert len([v for v in ops.sides(every)(image) if v.engine == "torch"]) == 8
    some = dataclasses.replace(bench, asked_modes=("channels_last", "compile"))  # JAX has none of these, and its usual one
    assert [v.mode for v in some.variants_of_frameworks()] == ["channels_last", "channels_last", "compile", "jit"]
    full = dataclasses.replace(bench, full=True)  # every mode in the rows of the quick comparison, the usual ones elsewhere
    assert len(ops.sides(full)(flat)) == len(ops.sides(bench)(flat))
    quick = next(p for p in ops.problems(bench) if p.op == "conv2d")
    assert len([v for v in ops.sides(full)(quick) if v.engine == "torch"]) == 8


def test_what_is_foreseen_grows_with_turns_sides_and_work_until_the_most_that_a_side_may_take():
    class Engines:
        tcmalloc, device = None, "cpu"
    bench = Bench(engines=Engines, frameworks=("torch",), store=None, run=None, environment={"f32_gflops": 100.0, "copy_gbytes": 10.0}, console=None)
    def seconds(length, sides=1, engine="torch", direction="forward", **plan):
        problem = next(p for p in catalogue.variants(catalogue.linear("l", (8, length), (4, length)), (direction,), ("f32",)))
        return bench.seconds_of(problem, [Variant(engine, "eager")] * sides, Plan(**plan), alone=False)
    assert seconds(8) < seconds(8, rounds=20) < seconds(8, rounds=20, patience=4) and seconds(8) < seconds(8, sides=2)
    assert seconds(8) < seconds(1 << 20, most_s=0.2) < seconds(1 << 20)
    ours = seconds(1 << 20, engine="plumbline", most_s=0.2)  # which chooses kernels, for either direction
    assert ours < seconds(1 << 20, engine="plumbline", direction="forward_backward", most_s=0.2) - 2 * CHOICE_S


def test_what_would_take_a_processor_days_is_for_a_gpu_or_for_who_asks():
    def bench(device, **asked):
        class Engines:
            tcmalloc = None
        Engines.device = device
        return Bench(engines=Engines, frameworks=(), store=None, run=None, environment={"f32_gflops": 100.0, "bf16_gflops": 100.0}, console=None,
                     full=True, **asked)
    batches = {"a processor": (bench("cpu"), {250, 500}, {1, 32}), "a GPU": (bench("cuda"), {250, 500, 1000, 2000, 5000}, {1, 32, 250}),
               "asked for": (bench("cpu", batches=(250,)), {250}, {250})}
    for asked, of_table2, of_large_images in batches.values():
        assert {p.batch for p in table2.problems(asked)} == of_table2
        assert {p.batch for p in ops.problems(asked) if p.name.startswith("resnet50.")} == of_large_images
        assert {p.batch for p in ops.problems(asked) if p.name.startswith("vgg16.")} == (of_large_images | {250})


def test_ops_have_the_shapes_of_the_networks_that_are_asked_for():
    class Engines:
        device, tcmalloc = "cpu", None
    def of(networks):
        bench = Bench(engines=Engines, frameworks=(), store=None, run=None, environment={"f32_gflops": 100.0, "bf16_gflops": 100.0}, console=None,
                      full=True, networks=networks)
        return {p.name.partition(".")[0] for p in ops.problems(bench)}
    assert of(("vgg16", "resnet20")) == {"vgg16", "resnet20"}
    assert of(()) > set(NETWORKS) | {"bert", "mobilenet"}


def test_a_batch_that_does_not_fit_leaves_a_reason_and_a_smaller_one():
    asked = [network_problem("resnet50", batch) for batch in (1, 250)] + [network_problem("resnet20", 250)]
    free, left_out = memory.needed_bytes(network_problem("resnet50", 64), VARIANTS), []
    chosen = memory.fitting(asked, lambda problem: VARIANTS, lambda problem, variants, reason: left_out.append((problem.batch, reason)), free)
    assert [(p.op, p.batch, parties) for p, parties in chosen] == [("resnet50", 1, [VARIANTS]), ("resnet50", 64, [VARIANTS]), ("resnet20", 250, [VARIANTS])]
    ((batch, reason),) = left_out
    assert batch == 250 and reason.startswith("two workers would take about") and "together at batch 250, and" in reason


def test_sides_that_do_not_fit_together_take_turns_beside_plumblines():
    problem = network_problem("vgg16", 250)
    ours = [Variant("plumbline", mode) for mode in ("best auto", "vendor auto", "best captured auto")]
    theirs = [Variant("torch", mode) for mode in ("eager", "channels_last", "compile")]

    def parties(*largest):
        return memory.of_variants(problem, [*ours, *theirs], memory.needed_bytes(problem, largest))
    assert parties(*ours, *theirs) == [[*ours, *theirs]]
    assert parties(*ours[:2], *theirs[:2]) == [[*ours, theirs[0]], [*ours[:2], *theirs[1:]]]
    assert parties(ours[0], theirs[0]) == [[ours[0], ours[1]], [ours[0], ours[2]], *([ours[0], v] for v in theirs)]
    assert parties(theirs[0]) is None


def test_what_is_left_out_is_a_row_for_every_variant_written_once(engines, tmp_path):
    environment = {"threads": 1, "f32_gflops": 1.0, "bf16_gflops": 1.0, "copy_gbytes": 1.0, "system": "s", "kernel": "k", "processors": 1,
                   "memory_bytes": 1e9, "processor": "p", "device": "cpu"}
    run = {"id": "r", "started": "2026-01-01T00:00:00+00:00", "command": "c"}
    bench = Bench(engines, ("torch",), Store(tmp_path / "records.jsonl"), run, environment, None)
    variants = [*VARIANTS, Variant("torch", "eager", "tcmalloc")]
    for _ in range(2):
        bench.leave_out("train", network_problem("resnet20", 250), variants, "there is no room")
    rows = bench.store.records
    assert len(rows) == 3 and {r["status"] for r in rows} == {"not_available"} and {r["reason"] for r in rows} == {"there is no room"}
    assert [r["engine"]["allocator"] for r in rows] == [None, None, "tcmalloc"] and rows[0]["subject"]["batch"] == 250


def test_where_memory_is_short_a_worker_goes_first(session):
    def score(process):
        return int(pathlib.Path(f"/proc/{process}/oom_score_adj").read_text())
    assert score(session.oracle.process.pid) == max(800, score("self"))  # only root may lower one that a container has set
