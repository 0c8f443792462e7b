"""What is a record and what is not, and files that were cut, damaged or written by a newer program."""

import json

import pytest

from compare.measuring.engines import Variant
from compare.records import BadRecord, Store, check, read


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


@pytest.mark.parametrize("refusal, is_there, counts", [("absent", False, True), ("absent", True, False), ("unsupported", True, True), ("died", True, True)])
def test_what_was_absent_is_asked_again_when_it_is_there(tmp_path, refusal, is_there, counts):
    store = Store(tmp_path / "r.jsonl")
    store.add(record(refusal=refusal))
    assert store.has("ops", "s", [Variant("torch", "eager")], {"processor": "A", "threads": 2}, lambda engine: is_there) == counts


def test_nesting_without_end_is_no_json(tmp_path):
    file = tmp_path / "r.jsonl"
    file.write_text("[" * 100_000 + "\n" + json.dumps(record()) + "\n")
    with pytest.raises(BadRecord, match="line 1: this is no JSON"):
        read(file)
