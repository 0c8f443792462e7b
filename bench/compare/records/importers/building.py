"""Imported results as records: of this schema, but never trusted, and never in a ratio with what was measured here."""

import hashlib
import json
import statistics as st

import numpy as np

from ...measuring.statistics import median_interval
from .. import VERSION, whole

EXPERIMENT = "imported"
ELSEWHERE = "it was measured elsewhere, and was not held against a reference"
LEAST_FOR_INTERVAL = 6  # fewer samples lie on one side of the median more often than one time in twenty
UNKNOWN = "unknown"


def subject(form, kind, name, problem, direction=UNKNOWN, dtype=UNKNOWN, layout=None, **more):
    """What was done. The id is the format's own: that a file's row did the same work as one measured here, nobody has checked."""
    work = {"kind": kind, "name": name, "problem": problem, "direction": direction, "dtype": dtype, **more}
    digest = hashlib.sha256(json.dumps([form, work], sort_keys=True).encode()).hexdigest()[:16]
    return {"id": f"{form}-{digest}", **work, "layout": layout}


def engine(name, mode="", version=None, device=None, libraries=()):
    return {"name": name, "version": version, "mode": mode, "device": device, "libraries": list(libraries)}


def record(source, form, what, who, *, rounds_s=(), median_s=None, reason=None, note=None, environment=None, rest=None, **fields):
    """One record: of samples by round, of a median where a file has no more, or of a reason why there is none."""
    made = {"schema": VERSION, "experiment": EXPERIMENT, "run": source.run, "subject": what, "engine": who,
            "environment": {"processor": UNKNOWN, **(environment or {})},
            "imported": {"format": form, "source": whole(source.path.name), "note": note, "rest": rest or {}}}
    if reason is not None:
        return {**made, "status": "not_available", "reason": reason}
    samples = [s for r in rounds_s for s in r]
    if samples:
        median_s = st.median(samples)
        made["rounds_s"] = [list(r) for r in rounds_s]
        if len(samples) >= LEAST_FOR_INTERVAL:
            made["confidence_s"] = list(median_interval(samples))
        if len(samples) > 3:
            made["quartiles_s"] = [float(q) for q in np.percentile(samples, [25, 75])]
    if what.get("flops") and not fields.get("gflops"):
        fields["gflops"] = what["flops"] / median_s / 1e9
    return {**made, "status": "measured", "median_s": median_s, **fields, "correctness": {"agrees": None, "reason": ELSEWHERE},
            "trust": {"trusted": False, "reasons": [ELSEWHERE]}}
