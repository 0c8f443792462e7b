"""scripts/compare import as a user calls it: what it adds, what the page then shows, and one sentence for what cannot be read."""

import copy
import json
import os
import pathlib
import pickle
import random
import sys

import pytest

from compare.__main__ import BadInput, main, program
from compare.records import BadRecord, read
from compare.records.importers import FORMATS
from compare.records.importers.source import Source
from compare.report import diff, verdict
from compare.report import imported as imported_page
from compare.report.page import page

SAMPLES = pathlib.Path(__file__).with_name("samples")
DEEPBENCH = "    m       n      k      a_t     b_t      precision        time (usec) \n"


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A file of what two calls have imported: a benchmark of a known machine, and two tables of a machine that the user named."""
    out = tmp_path_factory.mktemp("imported") / "records.jsonl"
    for words in (("google-benchmark", SAMPLES / "plumb_bench_ops.json"),
                  ("huggingface", SAMPLES / "pytorch.csv", SAMPLES / "tensorflow.csv", "--machine", "a <V100>")):
        assert program(["import", *map(str, words), "--out", str(out)]) == 0
    return out


def test_it_says_what_it_added_and_adds_nothing_twice(imported, compare):
    before = imported.read_bytes()
    assert len(read(imported)) == 3 + 12 + 12
    done = compare("import", "huggingface", SAMPLES / "pytorch.csv", "--out", imported)
    assert done.returncode == 0 and done.stdout.startswith("0 records added") and "12 were there" in done.stdout
    assert imported.read_bytes() == before


def test_a_file_that_is_named_twice_is_one(tmp_path, compare):
    done = compare("import", "google-benchmark", SAMPLES / "plumb_bench_ops.json", SAMPLES / ".." / "samples" / "plumb_bench_ops.json", "--out", tmp_path / "r")
    assert done.returncode == 0 and done.stdout.startswith("3 records added")


def test_the_page_shows_them_a_machine_each_and_forms_no_ratio(imported, tmp_path, compare):
    done = compare("report", imported, "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "27 rows were measured elsewhere: the page shows them, and no ratio is formed with them\n"
    text = (tmp_path / "page.html").read_text()
    assert text.count("<h3>") == 2 and "<h3>A processor</h3>" in text and "<h3>a &lt;V100&gt;</h3>" in text
    assert "<th>pytorch</th><th>tensorflow</th>" in text and "out of memory" in text and "plumbline measured nhwc" in text
    assert "mean of the 8 that all of these columns have" in text
    assert "times best" not in text


def test_files_of_machines_that_nobody_names_are_machines_of_their_own():
    files = {"torch": "torch.json", "torch-text": "torch.txt"}
    one, other = (list(FORMATS[form].records(Source(SAMPLES / file))) for form, file in files.items())
    assert imported_page.machines_of(one + other) == [one, other]
    for r in one + other:
        r["environment"]["processor"] = "one that the user names"
    assert imported_page.machines_of(one + other) == [one + other]


def measured(run):
    """Records as a run of this machine leaves them, of Plumbline and of a framework, and the same taken for imported ones."""
    engine = {"name": "plumbline", "version": "0.1.0", "mode": "best nhwc"}
    ours = {"schema": 1, "experiment": "ops", "run": {"id": run, "started": "2026-01-01T00:00:00+00:00", "command": "scripts/compare"},
            "subject": {"id": "s", "kind": "op", "name": "relu", "problem": "x", "direction": "forward", "dtype": "f32"}, "engine": engine,
            "status": "measured", "rounds_s": [[1.0], [1.1], [0.9]], "median_s": 1.0, "confidence_s": [0.9, 1.1], "environment": {
                "processor": "P", "processors": 2, "threads": 2, "memory_bytes": 1, "kernel": "6", "system": "S", "f32_gflops": 1.0,
                "bf16_gflops": 1.0, "copy_gbytes": 1.0}, "correctness": {"agrees": True}, "trust": {"trusted": True, "reasons": []}}
    theirs = copy.deepcopy(ours)
    theirs["engine"] = {"name": "torch", "version": "2", "mode": "eager"}
    return ours, theirs


def test_no_ratio_is_formed_across_runs_nor_with_what_was_imported():
    ours, theirs = measured("a")
    (row,) = verdict.rows([ours, theirs], "ops")
    assert row.ratios  # of one run there is one
    _, elsewhere = measured("b")
    assert not any(r.ratios for r in verdict.rows([ours, elsewhere], "ops"))  # the same work, but of another run
    # Even where it claims to be of the same run, trusted and in agreement.
    forged = {**theirs, "imported": {"format": "torch", "source": "torch.json"}}
    assert not any(r.ratios for r in verdict.rows([ours, forged], "ops"))
    assert diff.diff([ours, theirs], [ours, forged]) == diff.diff([ours], [ours])


def test_imported_records_beside_measured_ones(imported):
    records = [*measured("a"), *read(imported)]
    text = page(records)
    assert text.index("<h2>P, 2 threads</h2>") < text.index("<h2>Measured elsewhere</h2>")
    assert page(records[:2]).count("<h2>") == 1  # no heading for nothing
    lines = verdict.ten_lines(records, ["ops"])
    assert lines[0].startswith("ops: torch takes 1.00") and lines[-1].startswith("27 rows were measured elsewhere")


def test_lines_of_several_machines_name_them():
    ours, theirs = measured("a")
    other = [{**r, "environment": {**r["environment"], "processor": "Q"}, "rounds_s": [[2 * s for s in t] for t in r["rounds_s"]]} for r in measured("b")]
    lines = verdict.ten_lines([ours, theirs, *other], ["ops"])
    assert [line.partition(" times")[0] for line in lines] == [
        "machine 1, P: ops: torch takes 1.00", "machine 2, Q: ops: torch takes 1.00"]
    many = [{**r, "environment": {**r["environment"], "processor": str(n)}} for n in range(11) for r in measured("c")]
    lines = verdict.ten_lines(many, ["ops"])
    assert len(lines) == 10 and lines[-1] == "the page says 2 more"


@pytest.mark.parametrize("form, text, sentence", [
    ("google-benchmark", '{"benchmarks": [\n{"name": "a",\n', "line 3: this is no JSON: "),
    ("google-benchmark", "[1]", "line 1: this is no report in Google Benchmark's JSON"),
    ("google-benchmark", '{"benchmarks": []}', "line 1: it has no single run"),
    ("google-benchmark", '{"benchmarks": [{"name": "a_mean", "run_type": "aggregate"}]}', "without --benchmark_report_aggregates_only"),
    ("google-benchmark", '{"benchmarks": [\n{"name": "a"},\n{"name": "b"}]}', "line 2: real_time of a is None"),
    ("google-benchmark", '{"benchmarks": [\n\n{"name": "a", "real_time": -1}]}', "line 3: real_time of a is -1"),
    ("google-benchmark", '{"benchmarks": [\n{"name": "a", "real_time": 1, "time_unit": "h"}]}', "line 2: time_unit is 'h'"),
    ("google-benchmark", '{"benchmarks": [\n{"real_time": 1}]}', "line 2: a benchmark without a name"),
    ("google-benchmark", "[" * 100_000, "line 1: this is no JSON"),
    ("torch", "{}", 'line 1: this has no list "measurements"'),
    ("torch", '[\n{"times": [1]}]', "line 2: a measurement without its task_spec"),
    ("torch", '[{"times": [1],\n"task_spec": {"stmt": "x"}}]', "line 1: number_per_run is None"),
    ("torch", '[{"times": [],\n"number_per_run": 1, "task_spec": {"stmt": "x"}}]', "line 1: a measurement without times"),
    ("torch", '[{"times": [1], "number_per_run": 1,\n"task_spec": {"stmt": 1}}]', "line 2: stmt of a task_spec is 1"),
    ("torch", '[{"times": [1], "number_per_run": 1,\n"task_spec": {}}]', "line 2: a task_spec with neither label nor stmt"),
    ("torch-text", "5.73 us\n", "line 1: there is no printed measurement"),
    ("torch-text", "\n<torch.utils.benchmark.utils.common.Measurement object at 0x7f>\nadd\n", "line 2: a measurement that ends before"),
    ("huggingface", "name,1x8\n", "line 1: this is no table of the Transformer benchmark"),
    ("huggingface", "\nmodel,1x8\n", "line 1: this is no table of the Transformer benchmark"),
    ("huggingface", "model,1x8\n", "line 1: the table has no model"),
    ("huggingface", "model,1x8\ngpt2,0.1\nctrl,fast\n", "line 3: ctrl at 1x8 is 'fast', which is no time"),
    ("huggingface", "model,1x8\ngpt2,0.1\ngpt2,0.1\n", "line 3: gpt2 is there twice"),
    ("huggingface", "model,1x8\ngpt2,0.1,0.2\n", "line 2: there are 3 cells under 2 columns"),
    ("huggingface", 'model,1x8\n"gpt2,0.1\n', "this is no CSV"),
    ("deepbench", "hello\n", "line 1: there is no result of DeepBench"),
    ("deepbench", "1 2 3\n", "line 1: numbers without the line above"),
    ("deepbench", DEEPBENCH + "1 2 3\n", "line 2: there are 3 values under 7 columns"),
    ("deepbench", DEEPBENCH + "1 2 0 0 0 float 3\n", "line 2: 1 2 0 0 0 is no convolution and no product"),
    ("deepbench", DEEPBENCH + "1 2 3 0 0 float -3\n", "line 2: time is '-3'; a time is more than nothing"),
    ("deepbench", "    type    hidden   N     timesteps   precision   fwd_time (usec)   \n", "line 1: a table of type hidden N timesteps"),
    ("torch", "", "line 1: the file is empty"), ("deepbench", " \n", "line 1: the file is empty"),
])
def test_what_cannot_be_read_is_one_sentence_with_file_and_line(tmp_path, form, text, sentence):
    (tmp_path / "bad").write_text(text)
    with pytest.raises(BadRecord) as e:
        list(FORMATS[form].records(Source(tmp_path / "bad"), None))
    assert str(e.value).startswith(f"{tmp_path / 'bad'}") and sentence in str(e.value) and "\n" not in str(e.value)


@pytest.mark.parametrize("words, sentence", [
    ((), "arguments are required: FORMAT"), (("xml", "a"), "argument FORMAT: invalid choice: 'xml'"),
    (("torch",), "torch takes one file or several"),
    (("published", "a"), "published takes no file"), (("torch", "/nowhere"), "/nowhere cannot be read: No such file"),
    (("torch", "/dev/zero"), "/dev/zero cannot be read: it is a device"),
    (("torch", "/"), "/ cannot be read: Is a directory"), (("torch", sys.executable), "it is not text"),
])
def test_a_wrong_command_line_is_one_sentence(tmp_path, words, sentence):
    with pytest.raises((BadInput, BadRecord)) as e:
        main(["import", *words, "--out", str(tmp_path / "out")])
    assert sentence in str(e.value) and "\n" not in str(e.value) and not (tmp_path / "out").exists()


@pytest.mark.parametrize("data, sentence", [
    (pickle.dumps(os.getcwd), "it is a pickle, which could run anything; write JSON"),
    (b"PK\x03\x04\0torch.utils.benchmark", "it is a pickle"),  # as torch.save wraps it
    (b"model,1x8\0", "it is not text"), ("model,1x8".encode("utf-16"), "it is not text"),
], ids=("pickle", "torch.save", "zero", "utf-16"))
def test_pickles_and_what_is_not_text_are_refused_by_name(tmp_path, data, sentence):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(BadRecord, match=sentence):
        Source(tmp_path / "file")


def test_one_bad_file_leaves_the_records_as_they_were(tmp_path, compare):
    (tmp_path / "bad.csv").write_text("model,1x8\ngpt2\n")
    done = compare("import", "huggingface", SAMPLES / "pytorch.csv", tmp_path / "bad.csv", "--out", tmp_path / "out")
    assert done.returncode == 2 and done.stderr == f"compare: {tmp_path / 'bad.csv'}, line 2: there are 1 cells under 2 columns\n"
    assert not (tmp_path / "out").exists()
    (tmp_path / "no_folder").touch()
    done = compare("import", "huggingface", SAMPLES / "pytorch.csv", "--out", tmp_path / "no_folder" / "out")
    assert done.returncode == 2 and "no_folder/out cannot be written" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("file", sorted(p.name for p in SAMPLES.iterdir()))
def test_damaged_files_give_records_or_a_sentence_and_nothing_else(tmp_path, file):
    """Bytes that are struck out, doubled, exchanged, or cut off behind a place, two hundred times."""
    whole, chance = (SAMPLES / file).read_bytes(), random.Random(1)
    form = {"p": "google-benchmark", "d": "deepbench"}.get(file[0], "torch" if file.endswith("json") else "torch-text")
    form = "huggingface" if file.endswith("csv") else form
    for _ in range(200):
        at, n = chance.randrange(len(whole)), chance.randrange(1, 30)
        middle = chance.choice((b"", whole[at:at + n] * 2, chance.randbytes(1), b"9" * n, b'"', b"{", b"[1]", b"null", b"-1", b"NaN"))
        damaged = whole[:at] + middle + (b"" if chance.random() < 0.1 else whole[at + n:])
        (tmp_path / file).write_bytes(damaged)
        try:
            found = list(FORMATS[form].records(Source(tmp_path / file), None))
        except BadRecord as e:
            assert str(e).startswith(str(tmp_path / file)) and "\n" not in str(e)
        else:
            assert found and json.dumps(found, allow_nan=False)
