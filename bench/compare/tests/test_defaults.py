"""Defaults: Plumbline's conventions are what they are said to be, and what differs is named."""

import dataclasses
import json
import sys

import pytest
from rich.console import Console

from compare.experiments import defaults
from compare.experiments.bench import Bench
from compare.measuring.engines import Engines
from compare.records import Store, check
from compare.report.page import page
from compare.report.verdict import ten_lines

RUN = {"id": "t", "started": "2026-01-01T00:00:00+00:00", "command": None}
ENVIRONMENT = {"threads": 1, "f32_gflops": 100.0, "bf16_gflops": 100.0, "copy_gbytes": 10.0, "processor": "p", "cores": 1, "processors": 1,
               "memory_bytes": 1, "kernel": "k", "system": "s", "governor": None, "clock_mhz": None, "huge_pages": None}


@pytest.fixture(scope="module")
def records(engines, tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("defaults") / "records.jsonl")
    bench = Bench(engines, ("fake", "jax"), store, RUN, ENVIRONMENT, Console())
    defaults.run(bench)
    before = len(store.records)
    defaults.run(bench)
    assert len(store.records) == before  # nothing is asked twice
    return store.records


def of(records, mode):
    return next(r for r in records if r["engine"]["mode"] == mode)


def test_every_engine_answers_or_says_why_not(records):
    assert [r["engine"]["mode"] for r in records if r["status"] == "measured"] == ["keras", "pytorch", "tensorflow1", "numpy"]
    (absent,) = [r for r in records if r["status"] != "measured"]
    assert absent["reason"] == "jax is not installed"
    for r in records:
        check(json.loads(json.dumps(r)), "here")


def test_who_was_not_there_is_asked_again_when_it_is_and_each_machine_is_asked(worker_program, tmp_path):
    engines = Engines({"plumbline": worker_program}, threads=1)
    bench = Bench(engines, ("fake",), Store(tmp_path / "records.jsonl"), RUN, ENVIRONMENT, Console())
    elsewhere = dataclasses.replace(bench, environment={**ENVIRONMENT, "processor": "another"})

    def added(bench):
        before = len(bench.store.records)
        defaults.run(bench)
        return [(r["engine"]["name"], r["status"]) for r in bench.store.records[before:]]
    of_ours = [("plumbline", "measured")] * 3
    assert added(bench) == added(elsewhere) == [*of_ours, ("fake", "not_available")]
    assert "fake did not answer: fake is not installed" in defaults.report(bench.store.records[:4]).verdict
    engines.programs["fake"] = sys.executable
    assert added(bench) == [("fake", "measured")] and added(bench) == []
    assert not any("did not answer" in sentence for sentence in defaults.report(bench.store.records).verdict)


@pytest.mark.parametrize("mode, expected", [
    ("pytorch", {"conv_weight_bound": 1, "conv_weight_deviation": 3 ** -0.5, "linear_bias_bound": 1, "adam_epsilon": 1e-8,
                 "rmsprop_decay": 0.99, "adam_epsilon_place": "beside the corrected root", "rmsprop_epsilon_place": "beside the root", "rmsprop_first": 0,
                 "batch_norm_epsilon": 1e-5, "batch_norm_momentum": 0.1, "batch_norm_running_var": "unbiased", "dropout_kept": 2}),
    ("keras", {"conv_weight_bound": (6 * 128 / 160) ** 0.5, "linear_bias_bound": 0, "adam_epsilon": 1e-7, "rmsprop_decay": 0.9,
               "adam_epsilon_place": "beside the root before its correction", "rmsprop_epsilon_place": "under the root", "rmsprop_first": 0,
               "batch_norm_epsilon": 1e-3, "batch_norm_momentum": 0.01, "batch_norm_running_var": "of the batch", "sgd_rate": 0.01}),
    ("tensorflow1", {"adam_epsilon": 1e-8, "rmsprop_epsilon": 1e-10, "rmsprop_first": 1, "rmsprop_epsilon_place": "under the root",
                     "batch_norm_running_var": "unbiased", "sgd_rate": None}),
])
def test_plumbline_does_what_its_convention_says(records, mode, expected):
    found = of(records, mode)["defaults"]
    for item, value in expected.items():
        assert found.get(item) is None if value is None else defaults.same(found[item], value), (item, found.get(item), value)
    assert found.keys() <= defaults.ITEMS.keys()


def test_what_differs_is_named(records):
    a, b = of(records, "pytorch"), of(records, "keras")
    sentence = defaults.comparable(a, b)
    assert sentence.startswith("plumbline pytorch and plumbline keras are not comparable unless")
    assert "Adam: epsilon (1e-08 and 1e-07)" in sentence and "RMSProp: decay (0.99 and 0.9)" in sentence and "threads" not in sentence
    assert "Adam: epsilon (" not in defaults.comparable(a, b, said=("adam_epsilon",))


def test_the_same_are_comparable(records):
    a = of(records, "pytorch")
    assert defaults.comparable(a, a) == "plumbline pytorch and plumbline pytorch are comparable: their defaults are the same"
    b = of(records, "numpy")
    said = defaults.differences(a, b)
    assert "only one of them brings a default for order of images" in defaults.comparable(a, b, said)


def test_the_page_has_one_table_with_what_differs_marked(records):
    (table,) = defaults.report(records).tables
    row = next(r for r in table.rows if r[0] == "RMSProp: first mean square")
    assert table.columns[1:] == ["plumbline keras", "plumbline pytorch", "plumbline tensorflow1", "fake numpy"]
    assert row[1:] == [("0", ""), ("0", ""), ("1", "slower"), ("0", "")]
    html = page(records)
    assert "RMSProp: first mean square" in html and "jax did not answer: jax is not installed" in html
    assert ten_lines(records, [defaults.NAME]) == []


def test_the_arithmetic_of_the_measurements():
    from compare.workers.defaults import fake, of_adam, of_batch_norm, of_rmsprop
    assert of_rmsprop(fake.step) == {"rmsprop_decay": pytest.approx(0.9), "rmsprop_first": 0, "rmsprop_epsilon_place": "under the root"}
    from_one = of_rmsprop(lambda g, e: g / ((0.9 + 0.1 * g * g) ** 0.5 + (1e-10 if e is None else e)))
    assert (from_one["rmsprop_first"], from_one["rmsprop_epsilon_place"]) == (1, "beside the root")
    assert of_adam(lambda g, e: g / (g + e), 0.999)["adam_epsilon_place"] == "beside the corrected root"
    assert of_adam(lambda g, e: 3.0, 0.999)["adam_epsilon_place"] == "other: a step of 3"

    def train(a, b):
        mean, variance = (a + b) / 2, (a - b) ** 2 / 4
        return [(v - mean) / (variance + 1e-5) ** 0.5 for v in (a, b)], 0.2 * mean, 0.8 + 0.2 * 2 * variance
    found = of_batch_norm(train)
    assert found["batch_norm_epsilon"] == pytest.approx(1e-5) and found["batch_norm_running_var"] == "unbiased"
    assert found["batch_norm_momentum"] == pytest.approx(0.2)
