"""The experiments of layouts and of algorithms: verdicts from made-up times, and a run on shapes that take no time."""


import pytest

from compare.experiments import ALL, algorithms, layouts
from compare.experiments.bench import Bench
from compare.records import Store
from compare.report.page import page

ENVIRONMENT = {"threads": 1, "f32_gflops": 100.0, "bf16_gflops": 100.0, "copy_gbytes": 10.0, "system": "s", "kernel": "k", "processors": 1,
               "memory_bytes": 1e9, "processor": "p"}
NOISE = (1.0, 1.001, 0.999, 1.002, 0.998)


def record(experiment, mode, ms, problem="c", batch=8, trusted=True, wide=False, implementation="plumbline direct plumb:direct", first_s=0.1):
    """`wide`: with rounds that are far apart, so that nothing can be told."""
    noise = (1.0, 0.7, 1.4, 0.8, 1.2) if wide else NOISE
    subject = {"id": f"{problem}{batch}", "kind": "op", "name": "conv2d", "problem": problem, "direction": "forward", "dtype": "f32", "batch": batch}
    return {"schema": 1, "experiment": experiment, "run": {"id": "r", "started": "2026-01-01T00:00:00+00:00", "command": "c"}, "subject": subject,
            "engine": {"name": "plumbline", "version": "1", "mode": mode}, "environment": ENVIRONMENT, "status": "measured",
            "rounds_s": [[1e-3 * ms * n] for n in noise], "median_s": 1e-3 * ms, "confidence_s": [1e-3 * ms, 1e-3 * ms],
            "implementation": implementation, "workspace_bytes": 1000, "built_s": 0.0, "first_s": first_s,
            "correctness": {"agrees": True, "error": 1e-6, "tolerance": 1e-3, "reason": None}, "trust": {"trusted": trusted, "reasons": []}}


def of_layouts(**changes):
    """nhwc saves 2 ms of 10, and converting there and back costs 5."""
    times = {"best nchw": 10, "best nhwc": 8, "best charged nhwc": 13, "best chwn": 20, "best charged chwn": 25, **changes}
    return [record("layouts", mode, ms) for mode, ms in times.items()]


def test_the_fastest_layout_with_conversions_and_without():
    further = layouts.report(of_layouts())
    assert further.verdict[0] == "Without conversions, the fastest of 1 pieces of work: nhwc in 1."
    assert further.verdict[1].endswith("the fastest of 1 pieces of work: nchw in 1.")
    (row,) = further.tables[0].rows
    assert row[1] == ("nhwc", "faster") and row[2][0].startswith("1.25 (") and row[3][0] == "8 ms" and row[5] == "N/A"


def test_how_many_ops_pay_for_converting():
    further = layouts.report(of_layouts())
    (row,) = further.tables[2].rows
    assert row[1][0].startswith("3"), "5 ms at 2 ms an op"
    assert row[2] == ("never", "slower") and row[3] == ("N/A", "")


def test_what_the_rounds_do_not_tell_is_ambiguous():
    records = [r for r in of_layouts() if r["engine"]["mode"] != "best nhwc"] + [record("layouts", "best nhwc", 9.9, wide=True)]
    further = layouts.report(records)
    assert further.tables[0].rows[0][1] == ("ambiguous: nhwc or nchw", "ambiguous") and "1 ambiguous" in further.verdict[0]
    assert further.tables[2].rows[0][1] == ("ambiguous", "ambiguous")


def test_a_row_that_is_not_trusted_decides_nothing():
    records = of_layouts() + [record("layouts", "best blocked", 1, trusted=False)]
    further = layouts.report(records)
    assert "1 ambiguous" in further.verdict[0], "blocked may be the fastest"
    assert further.tables[0].rows[0][1] == ("ambiguous: nhwc or blocked", "ambiguous") and further.tables[0].rows[0][5] == "not trusted"
    assert further.tables[2].rows[0][3] == ("N/A", "")


def test_from_which_batch_n_innermost_pays():
    records = []
    for batch, ours in ((1, 9), (8, 2), (16, 1)):
        records += [record("layouts", f"best {x}", ms, problem="by batch, c", batch=batch) for x, ms in (("nchw", 3), ("nhwc", 2), ("chwn", ours))]
    further = layouts.report(records)
    assert further.verdict[2] == ("conv2d c, by batch: chwn is as fast as the faster of nchw and nhwc, or faster, with N = 8, 16; slower with N = 1; "
                                  "other batches do not tell.")
    assert len(further.figures) == 1 and not further.tables


def test_batches_of_two_runs_are_not_held_against_each_other():
    rows = [record("layouts", f"best {x}", ms, problem="by batch, c") for x, ms in (("nchw", 3), ("nhwc", 2), ("chwn", 1))]
    rows[2]["run"] = {**rows[2]["run"], "id": "another"}
    assert layouts.report(rows).verdict[2] == "conv2d c, by batch: no batch tells."


def test_shapes_of_one_name_are_not_taken_for_one():
    wide = [record("algorithms", f"{choice} nhwc", ms) for choice, ms in (("best", 80), ("heuristic", 80))]
    for r in wide:
        r["subject"] = {**r["subject"], "id": "wider"}
    narrow = [record("algorithms", f"{choice} nhwc", ms) for choice, ms in (("best", 8), ("heuristic", 10), ("only:direct", 16))]
    (every,) = algorithms.report(wide + narrow).tables
    assert len(every.rows) == 5 and max(float(row[3][0].split()[0]) for row in every.rows if row[3][0] != "fastest") == 2.0


def test_what_each_choice_costs():
    records = [record("algorithms", "best nhwc", 8, first_s=1.1), record("algorithms", "heuristic nhwc", 10), record("algorithms", "only:direct nhwc", 16)]
    further = algorithms.report(records)
    assert further.verdict[:2] == ["measured is the fastest choice, or as fast, in 1 of 1 pieces of work.",
                                   "heuristic is the fastest choice, or as fast, in 0 of 1 pieces of work, and behind in 1, by 25% in the middle and 25% at most."]
    assert "Searching takes 1 s in the middle" in further.verdict[2]
    assert [row[1] for row in further.tables[0].rows] == ["measured", "heuristic", "direct"]
    assert further.tables[0].rows[2][3][0].startswith("2.00 (")


def test_a_choice_that_does_not_count_may_be_the_fastest():
    records = [record("algorithms", "best nhwc", 8), record("algorithms", "heuristic nhwc", 10), record("algorithms", "only:direct nhwc", 7, trusted=False)]
    further = algorithms.report(records)
    assert further.verdict[0] == "measured is the fastest choice, or as fast, in 0 of 1 pieces of work, ambiguous in 1."
    assert algorithms.report(records[:1]).tables == [], "one alone is not compared"


def test_how_often_processes_choose_alike():
    other = "plumbline winograd_f2x2 plumb:winograd"
    records = [record("algorithms", "best nhwc", 8, problem="asked often, c", trusted=i > 1, **({"implementation": other} if i == 0 else {}))
               for i in range(4)]
    further = algorithms.report(records)
    assert further.verdict == ["3 of 4 processes that measured chose what most of them chose."]
    assert further.tables[0].rows == [["conv2d c, nhwc", "3 of 4", "direct 3, winograd_f2x2 1"]]


@pytest.fixture
def bench(engines, tmp_path):
    from rich.console import Console
    (tmp_path / "shapes").write_text("conv2d tiny 2x8x6x6 8x8x3x3\nconv2d one 2x8x4x4 8x8x1x1\npool2d p 2x8x4x4 kernel=2\n")
    run = {"id": "r", "started": "2026-01-01T00:00:00+00:00", "command": "c"}
    return Bench(engines, (), Store(tmp_path / "records.jsonl"), run, ENVIRONMENT, Console(quiet=True), shapes=tmp_path / "shapes")


def statuses(bench):
    return {(r["subject"]["name"], r["engine"]["mode"]): r for r in bench.store.records if r["subject"]["direction"] == "forward"}


def test_the_layouts_of_small_shapes(bench):
    layouts.run(bench)
    found = statuses(bench)
    assert {mode for op, mode in found if op == "conv2d"} == {f"best {x}" for x in ("nchw", "nhwc", "chwn", "blocked")} | {
        f"best charged {x}" for x in ("nhwc", "chwn", "blocked")}
    assert all(r["status"] == "measured" for r in bench.store.records), [r.get("reason") for r in bench.store.records]
    assert found["conv2d", "best blocked"]["implementation"].startswith("onednn:")
    assert "layouts" in page(bench.store.records)


def test_the_algorithms_of_small_shapes(bench):
    algorithms.run(bench, processes=2)
    named = {r["engine"]["mode"]: r for r in bench.store.records if r["subject"]["problem"] == "tiny"}
    assert {r.get("reason", "").split(" ")[0] for r in named.values()} <= {"", "there"}, "each name is known"
    assert named["only:direct_chwn nhwc"]["status"] == "not_available"
    assert named["best nhwc"]["status"] == named["only:winograd_f2x2 nhwc"]["status"] == "measured"
    assert "winograd_f2x2" in named["only:winograd_f2x2 nhwc"]["implementation"]
    often = [r for r in bench.store.records if r["subject"]["problem"] == "asked often, tiny"]
    assert len(often) == 2 and all(r["implementation"] for r in often)
    algorithms.run(bench, processes=2)
    assert len([r for r in bench.store.records if r["subject"]["problem"] == "asked often, tiny"]) == 2, "nothing is measured again"


def test_processes_of_another_machine_and_refused_ones_are_not_counted(bench):
    (problem,) = [p.with_(name=algorithms.MANY + p.name) for p in algorithms.forward_problems(bench) if p.name == "tiny"]
    algorithms.ask_often(bench, problem, 1)
    (here,) = bench.store.records
    assert here["status"] == "measured"
    elsewhere = {**here, "environment": {**ENVIRONMENT, "processor": "another"}}
    refused = {k: v for k, v in here.items() if k not in ("rounds_s", "median_s")} | {"status": "not_available", "reason": "died", "refusal": "died"}
    for known, asked in (([elsewhere], 2), ([refused], 2), ([elsewhere, refused, here], 1), ([here, here], 0)):
        bench.store.records[:] = known
        algorithms.ask_often(bench, problem, 2)
        assert len(bench.store.records) - len(known) == asked, known
