"""What Plumbline's worker makes of requests that are wrong: a refusal of each, and it lives on."""

import copy
import json
import pathlib
import re
import subprocess

import pytest

from compare.measuring.engines import Variant
from compare.measuring.worker import Refused
from compare.problems import catalogue


@pytest.fixture
def worker(session):
    return session.worker(Variant("plumbline", "best"))


def request_of(session, problem):
    inputs, _ = session.make(problem)
    return {"job": "j", "problem": problem.to_worker(), "mode": "heuristic", "inputs": str(inputs), "results": str(session.folder / "results")}


def without_each(value, path=()):
    """Of nested dicts and lists: a copy without each key, and with each list emptied."""
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            rest = copy.deepcopy(value)
            del rest[key]
            yield (*path, key), rest
            for deeper, changed in without_each(value[key], (*path, key)):
                whole = copy.deepcopy(value)
                whole[key] = changed
                yield deeper, whole


def test_a_request_without_one_of_its_words_is_refused_or_done(session, worker):
    request = request_of(session, catalogue.conv2d("small", (2, 4, 5, 5), (4, 4, 3, 3), {}))
    for path, changed in without_each(request):
        try:
            worker.ask("prepare", **changed)
        except Refused as refusal:
            assert refusal.kind != "died", path
    assert worker.ask("pulse")["seconds"] > 0


@pytest.mark.parametrize("numbers", [{"samples": 0}, {"samples": -1}, {"least_calls": 0}, {"least_calls": -5}])
def test_numbers_that_are_no_plan_are_refused(session, worker, numbers):
    worker.ask("prepare", **request_of(session, catalogue.linear("small", (8, 16), (4, 16))))
    with pytest.raises(Refused, match="use numbers from 1 on"):
        worker.ask("run", **{"job": "j", "samples": 1, "least_s": 0.001, "least_calls": 1, **numbers})


@pytest.mark.parametrize("variant", [Variant("plumbline", "best"), Variant("fake", "good")], ids=lambda v: v.engine)
def test_the_peak_is_that_of_the_runs_and_not_of_what_was_read_and_compared(session, variant):
    def held():
        status = pathlib.Path(f"/proc/{session.worker(variant).process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024

    ops = {p.op: p for p in catalogue.of_tensor("large", (4096, 4096))}
    problem = ops["relu"].with_(dtype="bf16") if variant.is_ours else ops["sum"].with_(direction="forward_backward")
    count = problem.inputs["x"].count  # four bytes of each are read or written beside the work alone
    session.worker(variant).ask("prepare", **request_of(session, problem))
    before = held()
    first, second = (session.worker(variant).ask("run", job="j", samples=1, least_s=0.0) for _ in range(2))
    assert first["peak_bytes"] <= second["peak_bytes"] == held() < before - 4 * count
    if variant.is_ours:
        assert sum(first["memory"].values()) < 8 * count  # of x, dy and y, each of two bytes


def test_what_is_unknown_is_named(worker):
    with pytest.raises(Refused, match='there is no request "nope"'):
        worker.ask("nope")
    with pytest.raises(Refused, match='there is no job "gone"; prepare it'):
        worker.ask("run", job="gone", samples=1, least_s=0)


def test_a_line_that_is_no_text_is_refused(worker_program):
    lines = b'{"do":"\xff\xfe"}\n{"do":"pulse"}\n'
    done = subprocess.run([worker_program, "--threads", "1"], input=lines, capture_output=True, timeout=60)
    hello, refusal, pulse = map(json.loads, done.stdout.splitlines())
    assert (refusal["kind"], done.returncode) == ("failed", 0) and pulse["seconds"] > 0


@pytest.mark.parametrize("place, words", [(">&-", "the standard output is closed"), (">/dev/full", "a reply cannot be written")])
def test_replies_that_nobody_gets_end_it_with_a_sentence(worker_program, place, words):
    line = f"""echo '{{"do":"pulse"}}' | '{worker_program}' --threads 1 {place}"""
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and words in done.stderr
