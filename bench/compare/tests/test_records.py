"""What is a record and what is not, and files that were cut, damaged or written by a newer program."""

import dataclasses
import json
import pathlib

import pytest

from compare.measuring.engines import Variant
from compare.measuring.session import Measured
from compare.problems.networks import network_problem
from compare.records import BadRecord, Store, check, read
from compare.records.of_measured import head_of

RESULTS = pathlib.Path(__file__).resolve().parents[3] / "docs/results"


def record(**changes):
    return {"schema": 1, "experiment": "ops", "run": {"id": "a", "started": "2026-01-01T00:00:00+00:00", "command": None},
            "subject": {"id": "s", "kind": "op", "name": "relu", "problem": "x", "direction": "forward", "dtype": "f32"},
            "engine": {"name": "torch", "version": "2", "mode": "eager"}, "status": "not_available", "reason": "absent",
            "environment": {"processor": "A", "threads": 2}, **changes}


def measured(**changes):
    return record(status="measured", rounds_s=[[0.1]], median_s=0.1, confidence_s=[0.1, 0.1], correctness={"agrees": True},
                  trust={"trusted": True, "reasons": []}, **changes)


def test_a_record_is_one():
    check(record(), "here")
    check(measured(), "here")


@pytest.mark.parametrize("changes, words", [
    ({"schema": 2}, "version 2, this program reads up to 1"), ({"status": "fine"}, "status"), ({"unknown": 1}, "unknown"),
    ({"rounds_s": [[0.1, -1]]}, "rounds_s.0.1"), ({"engine": {"name": "torch"}}, "engine"), ({"median_s": "1"}, "median_s"),
    ({"reason": None}, "reason"), ({"environment": {}}, "environment"), ({"run": {"id": "r", "started": "now"}}, "command"),
])
def test_what_is_none_is_refused_by_name(changes, words):
    with pytest.raises(BadRecord, match=words):
        check(record(**changes), "here")


@pytest.mark.parametrize("changes, words", [
    ({"trust": None}, "trust"), ({"experiment": "losses"}, "losses"), ({"experiment": "table3", "losses": []}, "accuracy"),
    ({"environment": {"processor": "A"}}, "threads"),
])
def test_what_a_page_needs_of_a_measurement_is_there(changes, words):
    whole = measured()
    with pytest.raises(BadRecord, match=words):
        check({**whole, **changes}, "here")
    del whole["confidence_s"]
    with pytest.raises(BadRecord, match="confidence_s"):
        check(whole, "here")


def changed(whole, place, value):
    """A record with another value at a place of its fields."""
    first, *rest = place
    return {**whole, first: changed(whole.get(first, {}), rest, value) if rest else value}


LEDGER = {"whole_s": 1.0, "parts_s": {"host": 1.0}, "threads": {}, "functions": {"host": [["main", 1.0]]}, "seen": 1.0, "unexplained": 0.0}
LOG = {"steps": 2, "whole_s": 1.0, "kernels_s": {}, "conversions_s": 0.0, "rows": []}


@pytest.mark.parametrize("place, value", [
    ("environment.memory_bytes", "4 GB"), ("environment.gpu", "H100"), ("environment.gpu", {}), ("environment.instructions", 5),
    ("environment.instructions", [["avx2"]]), ("environment.processors", [2]), ("environment.threads", "two"), ("environment.threads", None),
    ("environment.device", {}), ("environment.f32_gflops", "many"), ("environment.system", 5), ("subject.attributes", {"initial": "x"}),
    ("subject.attributes", {"steps": 0}), ("subject.attributes", {"steps": "x"}), ("engine.mode", ""), ("engine.mode", " "),
    ("ledger", {"parts_s": {}}), ("ledger", {}), ("ledger", {"reason": "none", "parts_s": {}}), ("ledger.whole_s", 0), ("ledger.functions", {"host": [["main"]]}),
    ("vendor_log", {"rows": []}), ("vendor_log.whole_s", 0), ("median_s", 0), ("median_s", -1.0), ("rounds_s", []), ("rounds_s", [[]]),
], ids=str)
def test_what_a_page_cannot_show_is_refused_by_name(place, value):
    whole = measured(ledger=LEDGER, vendor_log=LOG)
    check(whole, "here")
    with pytest.raises(BadRecord, match=f"^here: {place}"):
        check(changed(whole, place.split("."), value), "here")


BESIDE = {"correctness": {"agrees": True, "error": 0.0, "tolerance": 0.1}}


@pytest.mark.parametrize("experiment, more, words", [
    ("losses", {"losses": [], **BESIDE}, "losses"), ("losses", {"losses": [None], **BESIDE}, "losses.0"), ("losses", {"losses": [1.0]}, "correctness"),
    ("table3", {"losses": [1.0], "accuracy": []}, "accuracy"), ("table3", {"losses": [1.0], "accuracy": [0.5]}, "attributes"),
    ("optimizers", {}, "attributes"), ("optimizers", {"subject": {**record()["subject"], "attributes": {"steps": 3}}}, "subject.attributes"),
    ("synchronisation", {}, "engine.mode"), ("synchronisation", {"engine": {**record()["engine"], "mode": "eager reads="}}, "engine.mode"),
    ("algorithms", {}, "correctness"), ("algorithms", {"correctness": {"agrees": True, "error": None}}, "correctness.error"),
    ("table2", {}, "optimizer"), ("input_pipeline", {}, "batch"),
])
def test_what_an_experiment_shows_is_there(experiment, more, words):
    with pytest.raises(BadRecord, match=words):
        check({**measured(), "experiment": experiment, **more}, "here")


@pytest.mark.parametrize("changes, sentence", [
    ({"median_s": 0.2}, "median_s is 0.2, and the median of rounds_s is 0.1"),
    ({"confidence_s": [0.2, 0.1]}, "confidence_s begins with 0.2, which is more than its end, 0.1"),
    ({"quartiles_s": [0.2, 0.1]}, "quartiles_s begins with 0.2, which is more than its end, 0.1"),
    ({"correctness": {"agrees": True, "error": 0.5, "tolerance": 0.1}}, "correctness agrees with an error of 0.5, and its tolerance is 0.1"),
    ({"trust": {"trusted": True, "reasons": ["load"]}}, "trust is trusted, and has a reason not to be: load"),
], ids=["median", "interval", "quartiles", "agrees", "trusted"])
def test_what_cannot_be_true_together_is_refused_in_a_sentence(changes, sentence):
    with pytest.raises(BadRecord, match=f"^here: {sentence}$"):
        check({**measured(), **changes}, "here")


@pytest.mark.parametrize("median, words", [
    ("NaN", "NaN is no number"), ("-Infinity", "-Infinity is no number"), ("1e999", "1e999 is no number"), ("9" * 400, r"9\.\.\. is no number"),
    ("9" * 5000, r"9\.\.\. is no number"), ('"\\ud800"', "half a letter"),
], ids=["NaN", "infinity", "exponent", "400 digits", "5000 digits", "half a letter"])
def test_what_no_file_can_hold_is_refused_with_its_line(tmp_path, median, words):
    file = tmp_path / "r.jsonl"
    file.write_text(json.dumps(measured()) + "\n" + json.dumps(measured()).replace('"median_s": 0.1', f'"median_s": {median}') + "\n")
    with pytest.raises(BadRecord, match=f"^{file}, line 2: .*{words}"):
        read(file)


def test_no_infinite_number_is_written(tmp_path):
    store = Store(tmp_path / "r.jsonl")
    with pytest.raises(BadRecord, match="has a number that is none, or infinite"):
        store.add(measured(gflops=float("inf")))
    assert not store.path.exists() and store.records == []


@pytest.mark.parametrize("dtype, math", [("f32", "strict"), ("bf16", "bf16")])
@pytest.mark.parametrize("hello, denormals", [({}, None), ({"version": "2"}, "as it comes"), ({"version": "2", "denormals": "flushed to 0"}, "flushed to 0")])
def test_a_record_says_which_arithmetic_was_asked_for(dtype, math, hello, denormals):
    made = head_of(Measured(Variant("torch", "eager"), hello=hello), network_problem("vgg16", 1, dtype=dtype), "train", record()["run"], record()["environment"])
    assert (made["subject"]["math"], made["engine"]["denormals"]) == (math, denormals)
    check({**made, "status": "not_available", "reason": "absent"}, "here")


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*/records.jsonl")), ids=lambda f: f.parent.name)
def test_all_kept_records_are_read(file):
    assert len(read(file)) == file.read_text().count("\n") > 0


@pytest.mark.parametrize("text", ["a note of mine", '{"benchmarks": [1, 2', "[1, 2", '{"schemas": {', "a\nb"])
def test_what_is_no_file_of_records_is_not_overwritten(tmp_path, text):
    file = tmp_path / "notes.txt"
    file.write_text(text)
    with pytest.raises(BadRecord, match=f"^{file}, line 1: this is no JSON"):
        Store(file)
    assert file.read_text() == text


@pytest.mark.parametrize("length", [1, 5, len('{"schema": '), 30, -1])
def test_a_record_may_be_cut_off_anywhere(tmp_path, length):
    file = tmp_path / "r.jsonl"
    file.write_text(json.dumps(record()) + "\n" + json.dumps(record())[:length])
    assert len(Store(file).records) == 1 and file.read_text().endswith("}\n")


def test_a_foreign_file_is_refused(tmp_path):
    file = tmp_path / "other.jsonl"
    file.write_text('{"benchmarks": []}\n')
    with pytest.raises(BadRecord, match="line 1: this is no record"):
        read(file)


def test_damage_in_the_middle_is_named(tmp_path):
    file = tmp_path / "r.jsonl"
    file.write_text(json.dumps(record()) + '\n{"schema": 1, \n' + json.dumps(record()) + "\n")
    with pytest.raises(BadRecord, match="line 2: this is no JSON"):
        read(file)


def test_a_line_that_an_interrupt_cut_off_is_passed_over_and_written_anew(tmp_path):
    file = tmp_path / "r.jsonl"
    file.write_text(json.dumps(record()) + "\n" + json.dumps(record())[:50])
    store = Store(file)
    assert len(store.records) == 1
    store.add(record(reason="second"))
    assert [r["reason"] for r in read(file)] == ["absent", "second"]


def test_a_missing_and_a_binary_file(tmp_path):
    with pytest.raises(BadRecord, match="cannot be read: No such file"):
        read(tmp_path / "none")
    with pytest.raises(BadRecord, match="it is a device"):
        Store("/dev/full")  # which may be read without end
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadRecord, match="not text"):
        read(tmp_path / "b")


@pytest.mark.parametrize("changes, counts", [({}, True), ({"threads": 1}, False), ({"processor": "B"}, False), ({"memory_bytes": 8.3e9}, True)])
def test_what_was_measured_on_another_machine_or_by_other_threads_is_measured_again(tmp_path, changes, counts):
    environment = {"processor": "A", "threads": 2, "memory_bytes": 8.1e9}
    store = Store(tmp_path / "r.jsonl")
    store.add(record(environment=environment))
    assert store.has("ops", "s", [Variant("torch", "eager")], {**environment, **changes}) == counts


@dataclasses.dataclass
class There:
    """Engines of one version; None is one that is not there."""

    known: str | None

    def has(self, engine):
        return self.known is not None

    def answers(self, engine):
        return self.known is not None

    def version(self, engine):
        return self.known


@pytest.mark.parametrize("refusal, is_there, counts", [("absent", False, True), ("absent", True, False), ("unsupported", True, True), ("died", True, True)])
def test_what_was_absent_is_asked_again_when_it_is_there(tmp_path, refusal, is_there, counts):
    store = Store(tmp_path / "r.jsonl")
    store.add(record(refusal=refusal))
    assert store.has("ops", "s", [Variant("torch", "eager")], {"processor": "A", "threads": 2}, There("2" if is_there else None)) == counts


@pytest.mark.parametrize("name, before, now, counts", [
    ("torch", "2", "2", True), ("torch", "2", "3", False), ("torch", "2+cu130", "2", True), ("torch", "2+cu130", "3", False),
    ("torch", None, "2", True), ("torch", "2", None, True),
    ("plumbline", "2+kernels.a", "2+kernels.a", True), ("plumbline", "2+kernels.a", "2+kernels.b", False)])
def test_another_version_is_measured_again(tmp_path, name, before, now, counts):
    store = Store(tmp_path / "r.jsonl")
    store.add(record(engine={"name": name, "version": before, "mode": "eager"}))
    assert store.has("ops", "s", [Variant(name, "eager")], {"processor": "A", "threads": 2}, There(now)) == counts


def test_a_version_that_came_back_is_measured_again(tmp_path):
    """Reports show what was measured last."""
    store = Store(tmp_path / "r.jsonl")
    for version in ("1", "2"):
        store.add(record(engine={"name": "torch", "mode": "eager", "version": version}))
    assert not store.has("ops", "s", [Variant("torch", "eager")], {"processor": "A", "threads": 2}, There("1"))
    assert store.has("ops", "s", [Variant("torch", "eager")], {"processor": "A", "threads": 2}, There("2"))


@pytest.mark.parametrize("refusal", ["memory", "failed", "died"])  # the last two of the reference, say
@pytest.mark.parametrize("version, counts", [(None, False), ("2", True)])
def test_what_was_not_begun_is_asked_again(tmp_path, refusal, version, counts):
    store = Store(tmp_path / "r.jsonl")
    store.add(record(refusal=refusal, engine={"name": "torch", "version": version, "mode": "eager"}))
    assert store.has("ops", "s", [Variant("torch", "eager")], {"processor": "A", "threads": 2}, There("2")) == counts


def test_nesting_without_end_is_no_json(tmp_path):
    file = tmp_path / "r.jsonl"
    file.write_text("[" * 100_000 + "\n" + json.dumps(record()) + "\n")
    with pytest.raises(BadRecord, match="line 1: this is no JSON"):
        read(file)
