"""Each format, on what its program really prints, or as it does, with invented times: every number finds its field, and nothing more."""

import dataclasses
import json
import pathlib

import pytest

from compare.records import check
from compare.records.importers import FORMATS
from compare.records.importers.source import BadFile, Source
from compare.report.imported import table_of

SAMPLES = pathlib.Path(__file__).with_name("samples")


def records(form, file, name=None):
    """The records of a sample or of a path, each one of the schema."""
    found = list(FORMATS[form].records(Source(SAMPLES / file), name))
    for r in found:
        check(r, "here")
    return found


def of_text(tmp_path, form, text, name=None):
    (tmp_path / "file").write_text(text)
    return records(form, tmp_path / "file", name)


ALL = [("google-benchmark", "plumb_bench_ops.json"), ("torch", "torch.json"), ("torch-text", "torch.txt"), ("huggingface", "pytorch.csv"),
       *(("deepbench", f"deepbench_{kind}.txt") for kind in ("conv_train", "conv_inference", "gemm_train", "gemm_inference"))]


@pytest.mark.parametrize("form, file", ALL)
def test_imported_records_are_records_and_not_trusted(form, file):
    for r in records(form, file):
        assert r["imported"]["format"] == form and r["imported"]["source"] == file and r["experiment"] == "imported"
        if r["status"] == "measured":
            assert r["median_s"] > 0 and not r["trust"]["trusted"] and "measured elsewhere" in r["trust"]["reasons"][0]
            assert r["correctness"]["agrees"] is None
        else:
            assert r["reason"]


def test_rows_of_plumb_bench_ops_say_what_their_paths_and_labels_say():
    rows = records("google-benchmark", "plumb_bench_ops.json")
    assert len(rows) == 3  # of 15 lines: repetitions are samples, aggregates are passed over
    measured, raw, fused = rows
    assert {k: measured["subject"][k] for k in ("name", "problem", "direction", "dtype", "layout")} == {
        "name": "conv2d", "problem": "alexnet.conv4", "direction": "forward", "dtype": "f32", "layout": "nhwc"}
    assert measured["engine"] == {"name": "plumbline", "version": "0.1.0", "mode": "measured nhwc", "device": "cpu",
                                  "libraries": ["Eigen 3.4.0", "oneDNN 2.6.3"]}
    assert measured["implementation"] == "plumbline winograd_f2x2 plumb:winograd_nhwc:f2x2_3x3:avx2"
    report = json.loads((SAMPLES / "plumb_bench_ops.json").read_text())
    lines = [r for r in report["benchmarks"] if r["run_name"].endswith("measured/alexnet.conv4") and r["run_type"] == "iteration"][:3]
    assert measured["rounds_s"] == [[pytest.approx(r["real_time"] * 1e-6)] for r in lines]
    assert measured["gflops"] == sorted(r["GFLOP/s"] for r in lines)[1]
    assert measured["median_s"] * measured["gflops"] == pytest.approx(lines[0]["real_time"] * 1e-6 * lines[0]["GFLOP/s"])  # one work
    assert measured["imported"]["rest"].keys() == {"min_us", "error_f64"}
    assert measured["subject"]["id"] == raw["subject"]["id"] != fused["subject"]["id"]
    assert (fused["subject"]["name"], fused["subject"]["direction"]) == ("conv2d_bias_relu", "forward")
    e = measured["environment"]
    assert (e["processor"], e["processors"], e["threads"], e["f32_gflops"]) == ("A processor", 2, 1, pytest.approx(67.98226))


def test_a_benchmark_of_others_and_one_that_failed(tmp_path):
    rows = [{"name": "BM_Sort/1024/threads:2", "run_type": "iteration", "iterations": 7, "real_time": 3, "cpu_time": 2, "time_unit": "ms",
             "bytes": 1e400, "swaps": 5.0},
            {"name": "BM_Sort/1024/threads:2_mean", "run_type": "aggregate", "real_time": 9, "time_unit": "ms"},
            {"name": "BM_Open", "real_time": 4.0}, {"name": "BM_Open_mean", "real_time": 5.0},
            {"name": "BM_Bad", "run_type": "iteration", "error_occurred": True, "error_message": "no such file", "real_time": 0}]
    sort, old, bad = of_text(tmp_path, "google-benchmark", json.dumps({"context": {"executable": "/a/sorting"}, "benchmarks": rows}))
    assert (sort["subject"]["name"], sort["subject"]["problem"], sort["engine"]["name"]) == ("BM_Sort", "1024/threads:2", "sorting")
    assert sort["median_s"] == 3e-3 and sort["calls_per_sample"] == 7 and sort["imported"]["rest"] == {"swaps": 5.0}
    assert sort["subject"]["dtype"] == sort["environment"]["processor"] == "unknown"
    assert old["median_s"] == 4e-9  # a report that is too old to say that nanoseconds are meant, and which rows are aggregates
    assert bad["status"] == "not_available" and bad["reason"] == "no such file"


def test_measurements_of_torch_as_json():
    rows = records("torch", "torch.json")
    eager, functional = rows[:2]
    assert (eager["subject"]["name"], eager["subject"]["problem"], eager["engine"]["mode"]) == ("linear", "64x64", "eager")
    assert eager["subject"]["id"] == functional["subject"]["id"] and functional["engine"]["mode"] == "functional"
    held = json.loads((SAMPLES / "torch.json").read_text())["measurements"][1]
    assert functional["rounds_s"] == [[pytest.approx(t / 100) for t in held["raw_times"]]] and functional["calls_per_sample"] == 100
    assert functional["engine"]["version"] == "2.13.0" and functional["environment"]["env"] == "base"
    two = rows[2]
    assert two["subject"]["problem"] == "64x64, 2 threads" and two["subject"]["id"] != eager["subject"]["id"]
    assert rows[4]["subject"]["name"] == "x.add(1); x.mul(2)" and rows[4]["subject"]["attributes"]["setup"] == "x=torch.ones(4)"


@dataclasses.dataclass
class TaskSpec:  # as torch's
    stmt: str
    label: str
    num_threads: int = 1


@pytest.mark.parametrize("key, times", [("times", [2.0, 4.0]), ("raw_times", [20.0, 40.0])])
def test_times_are_of_a_call_and_raw_times_of_all_and_a_task_measured_again_has_two_rounds(tmp_path, key, times):
    row = {"number_per_run": 10, key: times, "task_spec": dataclasses.asdict(TaskSpec("x + y", "add"))}
    (only,) = of_text(tmp_path, "torch", json.dumps([row, row]))
    assert only["rounds_s"] == [[2.0, 4.0], [2.0, 4.0]] and only["median_s"] == 3.0


def test_what_torch_tells_apart_by_row_is_no_column(tmp_path):
    """Statements without a sub_label, and environments, as in torch's Compare."""
    tasks = [{"stmt": stmt, "label": "product", "description": "d", "env": env, "num_threads": 1} for stmt, env in (("x @ w", "a"), ("x @ w", "b"), ("w @ x", "a"))]
    found = of_text(tmp_path, "torch", json.dumps([{"number_per_run": 1, "times": [1.0], "task_spec": task} for task in tasks]))
    assert [r["subject"]["problem"] for r in found] == ["x @ w, a", "x @ w, b", "w @ x, a"] and len({r["subject"]["id"] for r in found}) == 3


def test_two_files_of_one_program_are_two_columns(tmp_path):
    files = [of_text(tmp_path, "torch", json.dumps([{"number_per_run": 1, "times": [s], "task_spec": {"stmt": "x", "num_threads": 1}}])) for s in (1.0, 2.0)]
    columns, ((_, cells),) = table_of([r for rows in files for r in rows], lambda s: f"{s:g} s")
    assert len(columns) == 2 and [cells[c]["text"] for c in columns] == ["1 s", "2 s"]


def test_half_a_letter_is_no_text(tmp_path):
    with pytest.raises(BadFile, match="half a letter"):
        of_text(tmp_path, "torch", r'[{"number_per_run": 1, "times": [1], "task_spec": {"stmt": "\ud83d", "num_threads": 1}}]')


def test_measurements_of_torch_as_printed():
    add, functional, two, statement = records("torch-text", "torch.txt")
    s = add["subject"]
    assert (s["name"], add["engine"]["mode"], s["attributes"]["setup"]) == ("Broadcasting add: 4x8", "eager", "x=1")
    assert add["median_s"] == pytest.approx(5.87e-6) and add["quartiles_s"] == pytest.approx([5.18e-6, 6.20e-6])
    assert add["calls_per_sample"] == 100 and "rounds_s" not in add and add["imported"]["note"].startswith("of 6 samples")
    assert functional["quartiles_s"] is None and functional["median_s"] == pytest.approx(9.6e-6)
    assert two["median_s"] == pytest.approx(19.87e-3) and two["subject"]["problem"] == "2 threads"
    assert (statement["subject"]["name"], statement["subject"]["attributes"]["setup"]) == ("x.add(1); x.mul(2)", "x=torch.ones(4)")


def test_the_table_of_the_transformer_benchmark():
    rows = records("huggingface", "pytorch.csv")
    assert len(rows) == 12 and {r["engine"]["name"] for r in rows} == {"pytorch"}
    assert {r["engine"]["name"] for r in records("huggingface", "pytorch.csv", "torch")} == {"torch"}
    cells = {(r["subject"]["name"], r["subject"]["batch"], r["subject"]["attributes"]["length"]): r for r in rows}
    assert cells["gpt2", 8, 512]["median_s"] == 1.9
    assert cells["gpt2", 8, 1024]["reason"] == "out of memory"
    assert cells["bert-base-cased", 8, 1024]["reason"] == "the input is longer than the model takes"
    assert "does not say which" in cells["ctrl", 8, 512]["reason"]
    assert records("huggingface", "tensorflow.csv")[-1]["status"] == "not_available"  # an empty cell


def test_convolutions_of_deepbench():
    rows = records("deepbench", "deepbench_conv_train.txt")
    assert [r["subject"]["direction"] for r in rows] == ["forward", "backward_input", "backward_weight"] * 2
    forward, no_time, weight = rows[:3]
    s = forward["subject"]
    assert s["shapes"] == {"x": [4, 1, 161, 700], "w": [32, 1, 5, 20]} and s["attributes"]["stride"] == [2, 2] and s["dtype"] == "f16"
    assert s["flops"] == 2 * 4 * 32 * 79 * 341 * 5 * 20 and forward["median_s"] == pytest.approx(310e-6)
    assert forward["gflops"] == pytest.approx(s["flops"] / 310e-6 / 1e9) and forward["implementation"] == "IMPLICIT_PRECOMP_GEMM"
    assert "padded" in forward["imported"]["note"] and rows[3]["imported"]["note"] is None
    assert no_time["status"] == "not_available" and "microsecond" in no_time["reason"]
    assert weight["median_s"] == pytest.approx(402e-6) and weight["implementation"] is None
    refused, run = records("deepbench", "deepbench_conv_inference.txt")
    assert refused["reason"] == "not supported" and run["median_s"] == pytest.approx(41e-6) and run["subject"]["dtype"] == "f32"


def test_products_of_deepbench():
    plain, b_t, a_t = records("deepbench", "deepbench_gemm_train.txt")
    assert plain["gflops"] == pytest.approx(2608.5, rel=1e-4)  # the rate that DeepBench's own sheet gives for 38 us
    # Column-major C = A B is row-major C^T = B^T A^T.
    assert plain["subject"]["shapes"] == {"a": [16, 1760], "b": [1760, 1760]} and not plain["subject"]["attributes"]["transpose_a"]
    assert b_t["subject"]["attributes"]["transpose_a"] and a_t["subject"]["attributes"]["transpose_b"]
    exact, padded = records("deepbench", "deepbench_gemm_inference.txt")
    assert exact["subject"]["dtype"] == "i8" and padded["imported"]["note"] and not exact["imported"]["note"]


def test_the_oldest_columns_of_deepbench_and_letters_for_transposed(tmp_path):
    text = ("   w   h   c   n   k   r   s  pad_w pad_h stride_w stride_h fwd_time (usec) bwd_inputs_time (usec) total_time (usec) fwd_algo\n"
            " 700 161   1   4  32   5  20   0     0     2        2         5               6                      11                GEMM\n"
            "    m       n      k      a_t     b_t      time (msec) \n  8  4  2  t  n  0.5\n")
    forward, backward, product = of_text(tmp_path, "deepbench", text)
    assert forward["subject"]["shapes"]["w"] == [32, 1, 5, 20]  # r is the height, as cuDNN's filters have it
    assert forward["subject"]["problem"] == records("deepbench", "deepbench_conv_train.txt")[0]["subject"]["problem"]
    assert forward["subject"]["dtype"] == "unknown" and backward["median_s"] == pytest.approx(6e-6)
    assert product["median_s"] == pytest.approx(0.5e-3) and product["subject"]["attributes"]["transpose_b"]
