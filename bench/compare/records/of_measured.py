"""What a session has found, as records."""

import dataclasses
import statistics as st

import numpy as np

from ..ledger.parts import CONVERSION, OWN, VENDOR
from ..measuring.engines import EMULATED
from ..measuring.statistics import MOST_SPREAD, median_interval, spread
from . import FALLBACK, VERSION


def kernels_text(kernels):
    return "; ".join(dict.fromkeys(f"{k['provider']} {k['algorithm']} {k['implementation']}" for k in kernels)) or None


def functions_text(ledger):
    """What was seen running longest, where the engine itself does not say."""
    if ledger is None or isinstance(ledger, str):
        return None
    longest = sorted(((s, f[:80]) for part in (VENDOR, OWN) for f, s in ledger.functions.get(part, [])), reverse=True)[:3]
    return "; ".join(f for _, f in longest) or None


def conversions(found, kernels):
    """As the engine counts them, and the seconds in which the ledger has seen them."""
    ledger = found.ledger
    seen = {} if ledger is None or isinstance(ledger, str) else {"seconds": ledger.parts_s.get(CONVERSION, 0.0)}
    count = {"count": sum(k["conversions"] for k in kernels)} if kernels else {}
    return {**count, **seen} or None


def computing(found, environment):
    """The share of the step in which the ledger has seen the device compute; of a GPU it sees the host alone."""
    ledger = found.ledger
    if ledger is None or isinstance(ledger, str) or environment.get("device") == "cuda":
        return None
    return (ledger.parts_s.get(VENDOR, 0.0) + ledger.parts_s.get(OWN, 0.0)) / ledger.whole_s


def reasons(found, samples, environment):
    why = list(dict.fromkeys(found.disturbed))
    # One round may be bad luck; what most rounds had, the median has.
    why = [w for w in why if found.disturbed.count(w) > len(found.rounds) / 2]
    if len(samples) > 2 and spread(samples) > MOST_SPREAD:
        why.append(f"the quartiles are {spread(samples):.0%} of the median apart")
    if environment.get("device") == EMULATED:
        why.append("the device is emulated on the host, and no GPU")
    if any(k["provider"] == "reference" for k in found.prepared.get("kernels", [])):
        why.append(FALLBACK)
    return why


def ledger_of(found):
    """The ledger as a record holds it."""
    ledger = found.ledger
    if ledger is None or isinstance(ledger, str):
        return {"reason": ledger} if ledger else None
    functions = {part: [[name[:120], s] for name, s in all_] for part, all_ in ledger.functions.items()}
    return {"whole_s": ledger.whole_s, "parts_s": ledger.parts_s, "threads": ledger.threads, "functions": functions, "seen": ledger.seen,
            "unexplained": ledger.unexplained}


def vendor_log_of(found):
    """The vendor's libraries' own log as a record holds it."""
    log = found.vendor_log
    if log is None or isinstance(log, str):
        return {"reason": log} if log else None
    return {"steps": log.steps, "whole_s": log.whole_s, "kernels_s": log.kernels_s, "conversions_s": log.conversions_s,
            "rows": [dataclasses.asdict(row) for row in log.rows]}


def mean(found, key):
    values = [r[key] for r in found.replies if r.get(key) is not None]
    return float(np.mean(values)) if values else None


def head_of(found, problem, experiment, run, environment):
    """What a record says of its work and of who did it."""
    hello, variant = found.hello, found.variant
    record = {
        "schema": VERSION, "experiment": experiment, "run": run,
        "subject": {"id": problem.id(), **problem.subject(), "layout": found.prepared.get("layout"),
                    "math": "strict" if problem.dtype == "f32" else problem.dtype},
        "engine": {"name": variant.engine, "version": hello.get("version"), "mode": variant.mode,
                   "allocator": hello.get("allocator") or variant.allocator or None, "device": environment.get("device", "cpu"),
                   "denormals": (hello.get("denormals") or "as it comes") if hello else None,
                   "libraries": hello.get("environment", {}).get("libraries", [])},
        "environment": environment}
    if found.agreement:
        record["correctness"] = found.agreement
    return record


def not_available(found, problem, experiment, run, environment, reason):
    refusal = {"refusal": found.refusal.kind} if found.refusal else {}
    return {**head_of(found, problem, experiment, run, environment), "status": "not_available", "reason": reason, **refusal}


def record_of(found, problem, experiment, run, environment):
    """One record; `environment` has the roofs as "f32_gflops", "bf16_gflops" and "copy_gbytes"."""
    if found.refusal is not None or not found.rounds:
        reason = str(found.refusal) if found.refusal else found.agreement.get("reason") or "it was not run"
        return not_available(found, problem, experiment, run, environment, reason)
    record = head_of(found, problem, experiment, run, environment)
    samples = [s for r in found.rounds for s in r]
    median = st.median(samples)
    gflops = problem.flops / median / 1e9 if problem.flops else None
    roof = environment.get("bf16_gflops" if problem.dtype == "bf16" else "f32_gflops")
    rate, top = (gflops, roof) if gflops else (problem.bytes / median / 1e9, environment.get("copy_gbytes"))
    kernels = found.prepared.get("kernels", [])
    processor_s = (mean(found, "user_s") or 0) + (mean(found, "system_s") or 0)
    why = reasons(found, samples, environment)
    record.update({
        "status": "measured", "rounds_s": found.rounds, "calls_per_sample": found.replies[0]["calls"], "median_s": median,
        "confidence_s": list(median_interval(samples)), "quartiles_s": [float(q) for q in np.percentile(samples, [25, 75])],
        "first_s": found.prepared.get("first_s"), "built_s": found.prepared.get("built_s"), "gflops": gflops,
        "gbytes": problem.bytes / median / 1e9 if problem.kind == "op" else None, "roof_share": rate / top if top and rate else None,
        "implementation": kernels_text(kernels) or found.prepared.get("implementation") or functions_text(found.ledger),
        "workspace_bytes": max((k["workspace_bytes"] for k in kernels), default=None),
        "conversions": conversions(found, kernels),
        "page_faults": mean(found, "page_faults"), "allocations": mean(found, "allocations"), "system_s": mean(found, "system_s"),
        "user_s": mean(found, "user_s"),
        "memory": {"process": max((r["peak_bytes"] for r in found.replies if r["peak_bytes"]), default=None), **found.replies[-1].get("memory", {})},
        "utilisation": {"compute": computing(found, environment), "floating_point": gflops / roof if gflops and roof else None,
                        "processor": processor_s / median / environment["threads"]},
        "ledger": ledger_of(found), "vendor_log": vendor_log_of(found),
        "trust": {"trusted": not why, "reasons": why, "disturbed": [i for i, w in enumerate(found.watched) if w.reasons()]}})
    return record
