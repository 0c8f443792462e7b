"""The audit passes as it stands, and fails whichever part is broken."""

import pytest

from compare.audit import BREAKS, audit, faults, ledger
from compare.measuring.engines import Variant
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


@pytest.mark.parametrize("why, passed", [(faults.Unseen("perf is not installed"), True), (Refused("its process died", "died"), False)])
def test_a_ledger_that_nobody_may_see_is_no_failure_and_a_worker_that_dies_is(engines, monkeypatch, why, passed):
    def refuse(*_):
        raise why
    monkeypatch.setattr(faults, "ledger_with", refuse)
    (only,) = ledger(engines, [Variant("plumbline", "best")])
    assert only.passed == passed and str(why) in only.text
