"""The page: what it answers at its top, and pictures whose letters can be read on a phone."""

import re
import types

import pytest

from compare.experiments import ALL as EXPERIMENTS
from compare.experiments import train
from compare.ledger.parts import HOST, OWN, PARTS, VENDOR
from compare.measuring.statistics import Ratio
from compare.report import memory, pictures, roofs, verdict, why
from compare.report.further import Further
from compare.report.page import page, section, throughputs
from compare.report.verdict import Row

from test_tables import recorded
from test_verdict import UNEVEN, row

def made_by(r, command, batch):
    subject = {**r["subject"], "batch": batch, "id": f"work {batch}"}
    return recorded({**apart({**r, "subject": subject}, **{OWN: r["median_s"]}), "subject": subject}) | {
        "run": {"id": command, "started": "2026-01-01T00:00:00+00:00", "command": command}}


def test_a_picture_names_the_commands_that_make_it():
    sides = row("plumbline", "best auto", 1.0), row("torch", "eager", 3.0)
    small, large = "scripts/compare --only train --networks n --batch 1", "scripts/compare --device cuda --full"
    one = [made_by(r, small, 1) for r in sides]
    assert f"Made by <code>{small}</code>." in page(one)
    both = page([*one, *(made_by(r, large, 32) for r in sides)])
    assert f"<details><summary>Made by 2 commands</summary><ul><li><code>{small}</code></li><li><code>{large}</code></li></ul></details>" in both
    assert both.count(f"<figcaption><small>Made by <code>{small}</code></small></figcaption>") == 1  # the ledger of the first step
    assert both.count(f"<figcaption><small>Made by <code>{large}</code></small></figcaption>") == 1


def reaching(r, share, **figures):
    return {**r, "roof_share": share, "gflops": None, "gbytes": None, "confidence_s": [r["median_s"]] * 2, **figures}


def test_the_shares_of_the_roofs_are_told_and_drawn():
    computing = {"subject": {**row("", "", 1.0)["subject"], "flops": 160e9}}
    records = [reaching(row("plumbline", "best auto", 1.0), 0.8, gflops=160.0, **computing), reaching(row("torch", "eager", 2.0), 0.4, gflops=80.0, **computing)]
    found = roofs.shares(verdict.rows(records, "train"))
    assert roofs.sentences("train", found) == [
        "train: of the machine's arithmetic, the median row reaches: Plumbline's best kernels 80 % (1 row), PyTorch 40 % (1 row)."]
    assert "best: 160 of 200 GFLOP/s" in roofs.figures(found)[0] and len(roofs.figures(found * (roofs.MOST_ROWS + 1))) == 2
    copying = roofs.shares(verdict.rows([reaching(row("plumbline", "vendor auto", 1.0), 0.5, gbytes=6.0)], "train"))
    assert "vendor: 6 of 12 GB/s" in roofs.figures(copying)[0]
    assert roofs.sentences("ops", copying) == ["ops: of the machine's copying, the median row reaches: the vendor's alone 50 % (1 row)."]
    assert roofs.shares(verdict.rows([reaching(row("torch", "eager", 1.0), None)], "train")) == []


def test_peak_memory_is_told_drawn_by_class_and_tabulated():
    ours = {**row("plumbline", "best auto", 1.0), "memory": {"process": 100e6, "parameter": 30e6, "activation": 50e6}}
    theirs = {**row("torch", "eager", 2.0), "memory": {"process": 250e6}}
    found = train.report([recorded(r) for r in (ours, theirs)])
    assert found.verdict == ["Peak memory, of each in its fastest mode and beside Plumbline's best kernels, in the geometric mean: "
                             "PyTorch 2.50 times as much (1 row)."]
    assert memory.parts(ours) == dict.fromkeys(memory.CLASSES, 0) | {"parameter": 30e6, "activation": 50e6, pictures.REST: 20e6}
    (drawn,), (tabulated,) = found.figures, found.tables
    assert all(f">{name}<" in drawn["svg"] for name in ("parameter", "activation", pictures.REST)) and ">gradient<" not in drawn["svg"]
    assert [line[1] for line in tabulated.rows] == ["100", "250"]


PHONE, LEAST = 390 - 2 * 16, 11  # CSS pixels: what a page has beside its padding, and the smallest letters
ENVIRONMENT = {"processor": "p", "threads": 1, "processors": 1}


def apart(r, **seconds):
    parts = dict.fromkeys(PARTS, 0.0) | seconds
    return {**r, "subject": {**r["subject"], "batch": 8}, "confidence_s": [r["median_s"]] * 2, "ledger": {"whole_s": sum(parts.values()), "parts_s": parts, "functions": {}, "unexplained": 0.0}, "environment": ENVIRONMENT}


def steps():
    """Plumbline's takes 1 s; PyTorch's 3, of which its own kernels have 1.5 more and the host 0.5."""
    return [apart(row("plumbline", "best auto", 1.0), **{VENDOR: 1.0}), apart(row("plumbline", "vendor auto", 1.5), **{VENDOR: 1.5}),
            apart(row("torch", "eager", 3.0), **{VENDOR: 1.0, OWN: 1.5, HOST: 0.5})]


def test_what_a_step_takes_longer_is_told_by_its_parts():
    assert why.sentences(steps(), "train") == [
        "Why PyTorch takes longer in train: of what its step takes beyond Plumbline's best, in one step taken apart: 75 % own kernels, 25 % host."]


def test_a_side_that_is_not_slower_is_not_explained():
    fast = [*steps()[:2], apart(row("jax", "jit", 0.9), **{OWN: 0.9})]
    assert why.sentences(fast, "train") == ["train: JAX's steps take no longer than Plumbline's best."]


def test_a_row_that_does_not_count_explains_nothing():
    assert why.sentences([*steps()[:2], apart(row("torch", "eager", 3.0, trusted=False), **{OWN: 3.0})], "train") == []


def test_the_answer_stands_above_everything_else():
    text = page([recorded(r) for r in steps()])
    answer = text[:text.index('<h3 id="train-1">')]
    assert '<a href="#train-1">a training step</a>' in answer and "<b>3.00</b><small>vendor 2.00; slower in 1 of 1</small>" in answer
    assert "Why PyTorch takes longer" in answer


def test_the_answer_says_of_which_rows_its_figures_are():
    text = page([recorded({**r, "environment": ENVIRONMENT}) for r in UNEVEN])
    assert "<b>4.00</b><small>vendor 1.25 of 1 rows; slower in 2 of 2</small>" in text and "of different rows" not in text
    text = page([recorded(r) for r in [*steps(), apart(row("jax", "jit", 2.0), **{OWN: 2.0})]])
    assert "</table></div>\n<p>Each column is of the rows in which that framework counts: two columns are of different rows.</p>" in text


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_an_experiment_reports_what_an_experiment_has_measured(experiment):
    assert set(getattr(experiment, "MEASURED_BY", (experiment.NAME,))) <= set(EXPERIMENTS)


def test_an_experiment_reports_the_version_that_was_last():
    experiment = types.SimpleNamespace(NAME="train", SHOWS="", COMPARES=False, report=lambda own: Further([r["engine"]["version"] for r in own]))
    rows = [recorded({**r, "engine": {**r["engine"], "version": version}}) for r, version in
            ((row("plumbline", "best auto", 1.0), "1+a"), (row("plumbline", "best auto", 1.0, run="b"), "1+b"), (row("torch", "eager", 1.0), "2"))]
    assert section(experiment, rows)["verdict"] == ["1+b", "2"]


def test_steps_that_are_one_call_are_counted_one_by_one():
    def of(attributes):
        record = {"median_s": 2.0}
        subject = {"kind": "network", "name": "vgg16", "dtype": "f32", "optimizer": "sgd", "attributes": attributes}
        return throughputs([Row({**subject, "batch": n}, {"best": record}, {}, {}, []) for n in (1, 32)])
    assert of({}) == {"vgg16, f32": {"best": [(1, 0.5), (32, 16.0)]}}
    assert of({"steps": 10}) == {"vgg16, f32": {"best": [(1, 5.0), (32, 160.0)]}}


def smallest_letters(svg):
    """In CSS pixels, where the picture is as wide as a phone's page."""
    width = float(re.search(r'viewBox="0 0 (\S+)', svg).group(1))
    sizes = [float(s) for s in re.findall(r"font(?:-size)?: (?:\d+ )?([\d.]+)px", svg)]
    assert sizes
    return min(sizes) * PHONE / width


RATIO = Ratio(2.0, 1.9, 2.1)


@pytest.mark.parametrize("svg", [
    pictures.ratios([("conv2d resnet50.res4b_branch2a forward_backward, f32, batch 32", {"tensorflow": RATIO, "torch": RATIO, "jax": RATIO})], "", "best kernels"),
    pictures.throughput({n: [(1, 2.0), (250, 3e4)] for n in ("best", "vendor", "tensorflow", "torch", "jax")}, "training resnet20, f32"),
    pictures.stacked([("tensorflow function", {VENDOR: 1.0, OWN: 2.0, HOST: 3.0})], 1.0, "resnet20 train, bf16, batch 250, sgd"),
    pictures.by_batch({"conv2d c": {"nchw": [(1, 1e-3)], "nhwc": [(1, 2e-3)]}}),
    pictures.roofs([("conv2d resnet50.res4b_branch2a forward_backward, f32, batch 32\ntensorflow: 1042 of 2304 GFLOP/s",
                     {n: Ratio(0.3, 0.2, 0.4) for n in ("best", "vendor", "torch", "tensorflow", "jax")})], (0.1, 2)),
    pictures.memory([("batch 250, rmsprop: tensorflow", dict.fromkeys(pictures.CLASS_COLOURS, 1e9))], "peak memory, resnet50 train, bf16"),
], ids=["ratios", "throughput", "stacked", "by batch", "roofs", "memory"])
def test_letters_can_be_read_on_a_phone(svg):
    assert smallest_letters(svg) >= LEAST
