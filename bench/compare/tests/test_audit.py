"""The audit passes as it stands, and fails whichever part is broken."""

import sys

import pytest

from compare.audit import BREAKS, accounting, audit, faults, ledger
from compare.measuring.engines import Engines, Variant
from compare.measuring.worker import Refused

pytestmark = pytest.mark.timed
ENVIRONMENT = {"threads": 1, "f32_gflops": 100.0, "bf16_gflops": 100.0, "copy_gbytes": 10.0}


def test_the_harness_passes_its_audit(engines):
    findings = audit(engines, ENVIRONMENT)
    assert all(f.passed for f in findings), [f"{f.name}: {f.text}" for f in findings if not f.passed]


@pytest.mark.parametrize("broken", BREAKS)
def test_what_is_broken_on_purpose_is_found_by_name(engines, broken):
    failed = [f.name for f in audit(engines, ENVIRONMENT, broken, (broken,)) if not f.passed]
    assert any(name.startswith(broken) for name in failed), failed


def test_a_worker_that_never_sleeps_is_found_in_long_turns_and_in_short_ones(engines):
    failed = [(f.name, f.text) for f in audit(engines, ENVIRONMENT, "sleep", ("sleep",)) if not f.passed]
    assert failed == [(f"sleep: one runs while the other sleeps, in {kind} turns", "2 of 2 records say that another worker did not sleep")
                      for kind in ("long", "short")]


# A worker that lies about what its samples took.
LYING = """#!{python}
import json, subprocess, sys
worker = subprocess.Popen(["{worker}", *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
print(worker.stdout.readline(), end="", flush=True)
for line in sys.stdin:
    worker.stdin.write(line)
    reply = json.loads(worker.stdout.readline())
    if "samples_s" in reply:
        reply["samples_s"] = [{factor} * s for s in reply["samples_s"]]
    print(json.dumps(reply), flush=True)
"""


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_worker_of_plumblines_whose_samples_are_off_is_found(factor, engines, worker_program, tmp_path):
    lying = tmp_path / "worker"
    lying.write_text(LYING.format(python=sys.executable, worker=worker_program, factor=factor))
    lying.chmod(0o755)
    engines = Engines({**engines.programs, "plumbline": lying}, engines.threads, modules=engines.modules)
    failed = [f.name for f in audit(engines, ENVIRONMENT, parts=("timer",)) if not f.passed]
    assert "timer: plumbline's samples and the harness's clock" in failed
    assert factor < 1 or "timer: a step of plumbline that sleeps" in failed  # on a busy machine a sleep may be as late as these samples are short


@pytest.mark.parametrize("op, function, figure", [("pad2d", "op_problem", "bytes"), ("conv2d", "op_problem", "flops"), ("slice", "bytes_of", "bytes")])
def test_an_op_that_the_catalogue_counts_twice_is_found_by_name(op, function, figure, monkeypatch):
    counted = getattr(accounting.catalogue, function)

    def twice(first, *rest, **others):
        found = counted(first, *rest, **others)
        if function == "bytes_of":
            return found * (2 if first.op == op else 1)
        return found.with_(**{figure: 2 * getattr(found, figure)}) if first == op else found
    monkeypatch.setattr(accounting.catalogue, function, twice)
    found = accounting.differences(figure)
    assert found and all(sentence.startswith(op) for sentence in found)


@pytest.mark.parametrize("why, passed", [(faults.Unseen("perf is not installed"), True), (Refused("its process died", "died"), False)])
def test_a_ledger_that_nobody_may_see_is_no_failure_and_a_worker_that_dies_is(engines, monkeypatch, why, passed):
    def refuse(*_):
        raise why
    monkeypatch.setattr(faults, "ledger_with", refuse)
    (only,) = ledger(engines, [Variant("plumbline", "best")])
    assert only.passed == passed and str(why) in only.text
