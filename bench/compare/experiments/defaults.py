"""What differs when nothing is said: every engine is asked what its layers, optimizers and arithmetic do by default."""

import math
import tempfile

from ..measuring.worker import Refused, Worker
from ..records import VERSION
from ..report.further import Further, Table

NAME = "defaults"
COMPARES = False
SHOWS = ("Two trainings that leave something unsaid are compared with whatever the frameworks do then. Each engine was started as it "
         "comes, and its layers and optimizers, made with nothing but their sizes, were measured: nothing here is from a manual. "
         "Plumbline answers for each of its conventions, as its programs are started. Where an engine brings nothing of the kind "
         "there is a dash.")

# {item: what it is}; bounds and deviations are in units of 1 / sqrt(inputs of an output)
ITEMS = {
    "images": "order of images", "conv_weight_bound": "convolution: first weights, bound",
    "conv_weight_deviation": "convolution: first weights, deviation",
    "conv_bias_bound": "convolution: first bias, bound", "linear_weight_bound": "linear: first weights, bound",
    "linear_weight_deviation": "linear: first weights, deviation", "linear_bias_bound": "linear: first bias, bound",
    "sgd_rate": "SGD: learning rate", "adam_rate": "Adam: learning rate", "adam_beta1": "Adam: beta 1", "adam_beta2": "Adam: beta 2",
    "adam_epsilon": "Adam: epsilon", "adam_epsilon_place": "Adam: epsilon stands", "rmsprop_rate": "RMSProp: learning rate",
    "rmsprop_decay": "RMSProp: decay", "rmsprop_epsilon": "RMSProp: epsilon", "rmsprop_epsilon_place": "RMSProp: epsilon stands",
    "rmsprop_first": "RMSProp: first mean square", "batch_norm_epsilon": "batch norm: epsilon",
    "batch_norm_momentum": "batch norm: weight of the batch in the running statistics",
    "batch_norm_running_var": "batch norm: running variance",
    "dropout_kept": "dropout of one half: 1 becomes, in training", "dropout_in_use": "dropout of one half: 1 becomes, in use",
    "denormals": "denormal results", "product": "f32 products on the processor", "gpu_product": "f32 products on a GPU",
    "gpu_convolution": "f32 convolutions on a GPU", "threads": "threads",
}
SAME = 0.01  # numbers this close are the same: some are the largest of many random ones


def asked(engines, engine, version_of):
    """{convention: {item: value}} of an engine that nobody has told anything."""
    words, environment = engines.untouched(engine)
    with tempfile.TemporaryDirectory() as folder, Worker(words, environment, f"{folder}/log") as worker:
        version_of.append(worker.hello.get("version"))
        return worker.ask("defaults")["defaults"]


def record(bench, engine, convention, version, **rest):
    subject = {"id": f"{NAME}.{engine}", "kind": NAME, "name": NAME, "problem": NAME, "direction": None, "dtype": "f32"}
    return {"schema": VERSION, "experiment": NAME, "run": bench.run, "subject": subject, "environment": bench.environment,
            "engine": {"name": engine, "version": version, "mode": convention, "device": "cpu"}, **rest}


def run(bench):
    for engine in ("plumbline", *bench.frameworks):
        if bench.store.has(NAME, f"{NAME}.{engine}", (), bench.environment, bench.engines):  # whatever conventions it answered for
            continue
        if bench.foresees([10.0]):  # it starts, and answers
            continue
        version = []
        try:
            if not bench.engines.has(engine):
                raise Refused(f"{engine} is not installed", "absent")
            for convention, found in asked(bench.engines, engine, version).items():
                bench.store.add(record(bench, engine, convention, version[0], status="measured", defaults=found))
        except Refused as refusal:
            bench.store.add(record(bench, engine, "defaults", (version or [None])[0], status="not_available", reason=str(refusal), refusal=refusal.kind))


def name_of(r):
    return f"{r['engine']['name']} {r['engine']['mode']}"


def same(a, b):
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return math.isclose(a, b, rel_tol=SAME, abs_tol=1e-12)


def text_of(value):
    return "–" if value is None else value if isinstance(value, str) else f"{value:.3g}"


def differences(a, b, said=()):
    """[item] in which two records of defaults differ, but for what was said, and what one of them brings nothing of."""
    first, second = a["defaults"], b["defaults"]
    both = [i for i in ITEMS if first.get(i) is not None and second.get(i) is not None and i not in said]
    return [i for i in both if not same(first[i], second[i])]


def comparable(a, b, said=()):
    """Whether trainings of two engines may be compared, by their records of defaults, in a sentence; `said` are the items that were
    set alike and so are no defaults."""
    differing, names = differences(a, b, said), f"{name_of(a)} and {name_of(b)}"
    lacking = [ITEMS[i] for i in ITEMS if i not in said and (a["defaults"].get(i) is None) != (b["defaults"].get(i) is None)]
    without = f"; only one of them brings a default for {', '.join(lacking)}" if lacking else ""
    if not differing:
        return f"{names} are comparable: their defaults are the same" + without
    listed = ", ".join(f"{ITEMS[i]} ({text_of(a['defaults'][i])} and {text_of(b['defaults'][i])})" for i in differing)
    return f"{names} are not comparable unless it is said what they differ in by default: {listed}" + without


def report(records):
    answered = [r for r in records if r["status"] == "measured"]
    rows = []
    for item, words in ITEMS.items():
        values = [r["defaults"].get(item) for r in answered]
        there = [v for v in values if v is not None]
        differs = any(not same(there[0], v) for v in there)
        rows.append([words, *((text_of(v), "slower" if differs and v is not None and not same(v, there[0]) else "") for v in values)])
    pairs = [(a, b) for a in answered for b in answered if a["engine"]["name"] == "plumbline" != b["engine"]["name"]]
    nearest = {}
    for a, b in pairs:  # each framework beside the convention of ours that differs least
        key = name_of(b)
        if key not in nearest or len(differences(a, b)) < len(differences(nearest[key][0], b)):
            nearest[key] = (a, b)
    sentences = [comparable(a, b) for a, b in nearest.values()]
    silent = {r["engine"]["name"]: r["reason"] for r in records if r["status"] != "measured"}  # an engine that is asked again may answer then
    sentences += [f"{name} did not answer: {reason}" for name, reason in silent.items() if all(r["engine"]["name"] != name for r in answered)]
    table = Table("Defaults", ["item", *(name_of(r) for r in answered)], rows, "Marked: what differs from the first that has one. Bounds "
                  "and deviations of weights are in units of 1 / sqrt(n), n being the inputs of an output.")
    return Further(verdict=sentences, tables=[table] if answered else [])
