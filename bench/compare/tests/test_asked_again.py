"""What an earlier call could not measure, and may be otherwise now: it is asked again, once a call."""

import dataclasses
import sys

import pytest
from safetensors import SafetensorError

from compare.measuring import agreement
from compare.measuring.engines import Variant
from compare.measuring.worker import Refused, Worker
from compare.problems import catalogue
from compare.records import VERSION, Store

ENVIRONMENT = {"processor": "A", "threads": 2}
LINEAR = catalogue.linear("small", (8, 16), (4, 16))


@dataclasses.dataclass
class There:
    """Engines that are there, in one version."""

    known: str = "2"

    def has(self, engine):
        return True

    def answers(self, engine):
        return True

    def version(self, engine):
        return self.known


def record(refusal, run="1"):
    return {"schema": VERSION, "experiment": "ops", "run": {"id": run, "started": "2026-01-01T00:00:00+00:00", "command": None},
            "subject": {"id": "s", "kind": "op", "name": "linear", "problem": "s", "direction": "forward", "dtype": "f32"},
            "engine": {"name": "torch", "version": "2", "mode": "eager"}, "environment": ENVIRONMENT, "status": "not_available",
            "reason": "why", "refusal": refusal}


def counts(store):
    return store.has("ops", "s", [Variant("torch", "eager")], ENVIRONMENT, There())


@pytest.mark.parametrize("refusal, now, later", [("unsupported", True, True), ("failed", True, True), ("hung", True, True), ("memory", True, False),
                                                 ("died", True, False), ("disk", False, False)])
def test_what_may_pass_is_asked_once_more_in_the_next_call(tmp_path, refusal, now, later):
    store = Store(tmp_path / "r.jsonl")
    store.add(record(refusal))
    assert counts(store) == now
    next_call = Store(tmp_path / "r.jsonl")
    assert counts(next_call) == later
    next_call.add(record(refusal, run="2"))
    assert counts(next_call) == now


@pytest.mark.parametrize("sentence, kind", [("while serializing: I/O error: No space left on device (os error 28)", "disk"), ("x is 0", "failed")])
def test_results_that_cannot_be_written_are_of_the_disk(tmp_path, sentence, kind):
    hello, reply = {"version": "1"}, {"error": sentence, "kind": "failed"}
    says = f"import json; print(json.dumps({hello}), flush=True); input(); print(json.dumps({reply}))"
    with Worker([sys.executable, "-c", says], None, tmp_path / "log") as worker:
        with pytest.raises(Refused) as refused:
            worker.ask("prepare")
    assert (str(refused.value), refused.value.kind) == (sentence, kind)


def test_results_that_are_cut_off_are_of_the_disk(session, monkeypatch):
    def cut_off(file):
        raise SafetensorError("incomplete metadata")
    monkeypatch.setattr(agreement, "load_file", cut_off)
    found = session.prepare(LINEAR, Variant("fake", "good"), *session.make(LINEAR))
    assert found.refusal.kind == "disk" and "the results cannot be read: " in str(found.refusal)
