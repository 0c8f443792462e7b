"""The command as a user calls it, with the framework of numpy: records, page, verdict, resuming, refusals."""

import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from compare import __main__ as program
from compare import experiments
from compare.measuring.machine import gpu, text_of
from compare.measuring.session import LEAST_ROUNDS, Plan
from compare.paths import write_whole
from compare.problems.catalogue import BadTable, read_table
from compare.report.verdict import is_ours, is_right

SHAPES = "linear small 8x16 4x16\ntensor flat 16x64\n"
FEW_SHAPES = "linear small 8x16 4x16\nlinear other 8x8 8x8\nlinear third 4x8 4x8\n"


def with_programs(worker_program, *words):
    return [*words, "--programs", f"plumbline={worker_program}", "--programs", f"fake={sys.executable}", "--threads", "1"]


def command(worker_program, *words):
    return [sys.executable, "-m", "compare", *with_programs(worker_program, *words)]


def few_rounds(patch):
    """As few as ratios have, where nothing is asked of the times."""
    patch.setattr(experiments.ops, "Plan", lambda **given: Plan(**{**given, "rounds": LEAST_ROUNDS, "patience": 1, "warm_s": 0.0}))


@pytest.fixture(scope="module")
def measured(tmp_path_factory, worker_program, described_once):
    """A folder with what one run has left, and what it said."""
    folder = tmp_path_factory.mktemp("compare")
    (folder / "shapes.txt").write_text(SHAPES)
    words = ("--only", "ops", "--frameworks", "fake", "--shapes", str(folder / "shapes.txt"), "--out", str(folder))
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(program, "described", described_once)
        few_rounds(patch)
        assert program.program(with_programs(worker_program, *words)) == 0
    return folder, said.getvalue()


@pytest.fixture(scope="module")
def trusted(measured, tmp_path_factory):
    """A folder with the same records, none of which was disturbed."""
    folder = tmp_path_factory.mktemp("trusted")
    records = [json.loads(line) for line in (measured[0] / "records.jsonl").read_text().splitlines()]
    for r in records:
        r.get("trust", {}).update(trusted=True, reasons=[])
    (folder / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    return folder


def test_it_says_who_is_faster_in_ten_lines(measured, trusted, tmp_path, compare):
    """Where the machine did other work, it says that no row counts; with the same rows trusted, it says who is faster."""
    _, said = measured
    assert 1 <= len(said.splitlines()) <= 10 and ("fake takes" in said or "do not count" in said)
    again = compare("report", trusted, "--out", tmp_path / "page.html")
    lines = again.stdout.splitlines()
    assert 1 <= len(lines) <= 10 and "fake takes" in lines[0] and "times as long as the best kernels" in lines[0], again


def test_every_row_is_a_record_measured_or_with_a_reason(measured):
    folder, _ = measured
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    assert {r["engine"]["name"] for r in records} == {"plumbline", "fake"}
    assert all(r["status"] == "measured" or r["reason"] for r in records)
    assert {r["subject"]["name"] for r in records if r["engine"]["name"] == "fake" and r["status"] == "measured"} >= {"linear", "relu", "add", "sum"}


def test_the_page_needs_no_network_and_shows_every_row(measured):
    folder, _ = measured
    page = (folder / "report.html").read_text()
    assert "<script" not in page and "http-equiv" not in page
    assert not [w for w in page.split('"') if w.startswith(("http:", "https:")) and "w3.org" not in w and "purl.org" not in w and "creativecommons" not in w and "matplotlib.org" not in w]
    assert "linear small forward" in page and "fake has no gelu" in page


def test_a_second_call_measures_nothing_again(measured, worker_program, compare):
    folder, _ = measured
    before = (folder / "records.jsonl").read_bytes()
    words = ("--only", "ops", "--frameworks", "fake", "--shapes", folder / "shapes.txt", "--out", folder)
    done = compare(*with_programs(worker_program, *words))
    assert done.returncode == 0 and (folder / "records.jsonl").read_bytes() == before


@pytest.mark.parametrize("sent, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_keeps_what_was_measured_and_no_tensors(sent, status, tmp_path, worker_program, compare, monkeypatch):
    (tmp_path / "shapes.txt").write_text(FEW_SHAPES)
    words = ("--only", "ops", "--frameworks", "fake", "--shapes", str(tmp_path / "shapes.txt"), "--out", str(tmp_path))
    (tmp_path / "tensors").mkdir()
    process = subprocess.Popen(command(worker_program, *words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "TMPDIR": str(tmp_path / "tensors")},
                               preexec_fn=lambda: signal.signal(sent, signal.SIG_DFL))  # a shell's background jobs ignore some
    records = tmp_path / "records.jsonl"
    while not (records.exists() and records.read_text().count("\n") >= 2):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    assert list((tmp_path / "tensors").iterdir())
    process.send_signal(sent)
    assert process.wait(60) == status and "the same command goes on" in process.stderr.read()
    assert list((tmp_path / "tensors").iterdir()) == []
    kept = records.read_text().count("\n")
    few_rounds(monkeypatch)
    done = compare(*with_programs(worker_program, *words))
    assert done.returncode == 0 and records.read_text().count("\n") > kept


def test_a_terminal_that_is_closed_interrupts_once_unless_that_is_ignored():
    def status_of_two(sent, ignored):
        closed = f"from compare import ending; import os; ending.as_interrupts()\ntry: os.kill(os.getpid(), {sent})\n" \
                 f"except KeyboardInterrupt as e: os.kill(os.getpid(), {sent}); os._exit(ending.status_of(e))"
        return subprocess.run([sys.executable, "-c", closed], preexec_fn=lambda: signal.signal(sent, ignored)).returncode
    assert status_of_two(signal.SIGHUP, signal.SIG_DFL) == 129 and status_of_two(signal.SIGHUP, signal.SIG_IGN) == 0
    assert status_of_two(signal.SIGINT, signal.SIG_DFL) == 130


def test_a_process_whose_name_is_cut_off_in_a_letter_is_read(tmp_path):
    (tmp_path / "stat").write_bytes("1 (сортировка".encode()[:-1] + b") R")
    assert text_of(tmp_path / "stat").endswith(") R")


def test_a_report_of_no_whole_record_is_a_sentence(tmp_path, compare):
    (tmp_path / "records.jsonl").write_text('{"schema": 1, "experiment": "tr')
    done = compare("report", tmp_path, "--out", tmp_path / "page.html")
    assert done.returncode == 2 and f"there is no whole record in {tmp_path}" in done.stderr and not (tmp_path / "page.html").exists()


def test_report_and_diff_of_the_records(trusted, tmp_path, compare):
    folder = trusted
    done = compare("report", folder, folder / "records.jsonl", "--out", tmp_path / "page.html")
    assert done.returncode == 0 and (tmp_path / "page.html").exists(), done.stderr
    done = compare("diff", folder, folder)
    assert done.returncode == 0 and "1.00" in done.stdout, done.stderr


def test_a_page_is_not_written_over_the_records_it_is_of(measured, compare):
    folder, _ = measured
    before = (folder / "records.jsonl").read_bytes()
    done = compare("report", folder, "--out", folder / "records.jsonl")
    assert done.returncode == 2 and "is a file of the records" in done.stderr and (folder / "records.jsonl").read_bytes() == before


def test_a_table_that_is_none_is_one_sentence_and_status_2(tmp_path, compare):
    (tmp_path / "shapes").write_text("# a comment\nconv2d a 2x3x8x8 4x5x3x3\n")
    done = compare("--shapes", tmp_path / "shapes")
    assert done.returncode == 2 and "line 2:" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("line", ["conv2d a 2x3x8x8 4x5x3x3", "conv2d a 0x3x8x8 4x3x3x3", "conv2d a 2x3x2x2 4x3x3x3", "linear l 4x8 3x9",
                                  "matmul m 4x8 9x3", "pool2d p 2x3x4x4", "tensor", "fft f 4x4", "tensor t 4xq",
                                  "conv2d a 1x4x8x8 4x4x3x3 strides=2", "conv2d a 1x4x8x8 4x4x3x3 stride=2 stride=1", "conv2d a 1x4x8x8 4x4x3x3 stride=1x1x1",
                                  "conv2d a 1x4x8x8 4x4x3x3 dilation=0", "matmul m 4x8 8x3 transpose_a=true", "tensor t 4x4 kernel=2"])
def test_a_line_that_is_no_problem_is_named(tmp_path, line):
    (tmp_path / "shapes").write_text(f"# a comment\n{line}\n")
    with pytest.raises(BadTable, match="line 2:"):
        read_table(tmp_path / "shapes")


def test_two_problems_of_one_name_are_refused(tmp_path):
    (tmp_path / "shapes").write_text("tensor a 4x4\nlinear a 4x8 3x8\nconv2d a 2x3x8x8 4x3x3x3\n")
    with pytest.raises(BadTable, match="line 3: there is another layer a; give"):
        read_table(tmp_path / "shapes")


def test_without_a_gpu_every_row_says_so(worker_program, tmp_path, compare):
    if gpu():
        pytest.skip("there is a GPU")
    (tmp_path / "shapes.txt").write_text("linear small 8x16 4x16\n")
    words = ("--only", "ops", "--frameworks", "fake", "--device", "cuda", "--shapes", tmp_path / "shapes.txt", "--out", tmp_path)
    done = compare(*with_programs(worker_program, *words))
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert {r["engine"]["name"] for r in records} == {"plumbline", "fake"} and {r["engine"]["device"] for r in records} == {"cuda"}
    assert {r["reason"] for r in records} == {"there is no GPU: no NVIDIA driver is loaded"}
    assert "there is no GPU" in (tmp_path / "report.html").read_text()


def test_another_framework_in_the_same_folder_is_measured(worker_program, tmp_path, compare, monkeypatch):
    (tmp_path / "shapes.txt").write_text("linear small 8x16 4x16\n")
    words = ("--only", "ops", "--shapes", str(tmp_path / "shapes.txt"), "--out", str(tmp_path))
    few_rounds(monkeypatch)
    for frameworks in (("fake",), ("fake", "jax")):
        assert compare(*with_programs(worker_program, *words, "--frameworks", *frameworks)).returncode == 0
    records = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert {"jax is not installed"} == {r["reason"] for r in records if r["engine"]["name"] == "jax"} and len({r["run"]["id"] for r in records}) == 2


def test_a_page_on_a_full_disk_is_a_sentence_and_a_device_stays_one(measured, compare):
    folder, _ = measured
    done = compare("report", folder, "--out", "/dev/full")
    assert done.returncode == 2 and done.stderr == "compare: /dev/full cannot be written: No space left on device\n"
    assert pathlib.Path("/dev/full").is_char_device()


def test_what_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch):
    file = tmp_path / "page.html"
    write_whole(file, "before")

    def full(path, text):
        path.touch()
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(pathlib.Path, "write_text", full)
    with pytest.raises(OSError):
        write_whole(file, "after")
    assert file.read_text() == "before" and list(tmp_path.iterdir()) == [file]


def test_two_machines_have_no_row_in_common(trusted, tmp_path, compare):
    folder = trusted
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    for r in records:
        r["environment"]["processor"] = "another"
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    done = compare("diff", folder, tmp_path)
    assert done.returncode == 2 and "no row in common that counts, of the same work on the same machine" in done.stderr


def test_a_full_disk_is_a_sentence(worker_program, compare):
    done = compare(*with_programs(worker_program, "--only", "ops", "--frameworks", "fake", "--out", "/dev/full"))
    assert done.returncode == 2 and "records.jsonl cannot be written" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_the_guide_has_a_question_of_every_experiment():
    guide = (pathlib.Path(experiments.__file__).parents[1] / "README.md").read_text()
    rows = [line.split("|")[1] for line in guide.splitlines() if line.startswith("| `")]
    assert [name for name in experiments.ALL if not any(f"`{name}`" in row for row in rows)] == []


@pytest.mark.parametrize("words, sentence", [
    ((), "there is no plumb_bench_worker"), (("--only", "everything"), "--only everything: there is none; use train, forward, ops"),
    (("--frameworks", "caffe"), "--frameworks caffe: there is none"), (("--threads", "0"), "--threads 0: use 1 to"),
    (("--batch", "0"), "--batch 0: use 1 to 2147483647"), (("--batch", "9" * 400), "use 1 to 2147483647"), (("--batch", "x"), "invalid int value: 'x'"),
    (("--networks", ""), "--networks names none; use alexnet"), (("--only", ","), "--only names none; use train, forward, ops"),
    (("--networks", "inception"), "--networks inception: there is none; use "),
    (("--turbo",), "unrecognized arguments: --turbo; --help"), (("--shapes", "/nowhere"), "/nowhere cannot be read: No such file"),
    (("tables", "/nowhere", "/nowhere"), "/nowhere cannot be read"),
    (("report", "/nowhere"), "/nowhere cannot be read"), (("diff", "/nowhere", "/nowhere"), "/nowhere cannot be read"),
    (("audit", "--break", "everything"), "invalid choice: 'everything'"),
])
def test_bad_input_is_one_sentence_and_status_2(words, sentence, compare):
    done = compare(*words)
    assert done.returncode == 2 and done.stderr.startswith("compare: ") and sentence in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_paths_of_the_command_line_are_seen_from_where_the_user_is(compare, monkeypatch, tmp_path):
    monkeypatch.setenv("PLUMB_CALLER", str(tmp_path))
    said = compare("report", "there", "--out", "page.html").stderr
    assert str(tmp_path / "there") in said
    assert str(tmp_path / "r.csv") in compare("import", "huggingface", "r.csv").stderr
    shapes = tmp_path / "shapes.txt"
    shapes.write_text("no shape\n")
    assert str(shapes) in compare("--only", "ops", "--shapes", "shapes.txt", "--judge").stderr


def test_words_are_judged_without_anything_to_run(compare):
    assert compare("--dtypes", "f16", "--judge").returncode == 2
    assert compare("--framework", "torch", "--judge").returncode == 2  # the script takes whole words alone
    for words in ([], ["--only", "ops", "--dtypes", "f32"], ["audit", "--frameworks", "torch"]):
        done = compare(*words, "--judge")
        assert done.returncode == 0 and not done.stdout + done.stderr


@pytest.fixture
def script(tmp_path):
    """A function that calls scripts/compare in a copy of the repository that has nothing else, with a python3 that reaches no network."""
    root = pathlib.Path(__file__).resolve().parents[3]
    files = {"scripts/setup": "#!/bin/sh\n", "bench/compare/environments/tools.in": "# 9 MB\n", "bench/compare/environments/tools.txt": "pytest==0.1\n",
             "bin/python3": '#!/bin/sh\nmkdir -p $3/bin\nprintf \'#!/bin/sh\\necho no route; exit 1\' >$3/bin/pip; chmod +x $3/bin/pip\n',
             **{name: (root / name).read_text() for name in ("scripts/compare", "scripts/common.sh", "bench/compare/environments/unlocked.py")}}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def call(*words):
        environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        return subprocess.run([tmp_path / "scripts/compare", *words], capture_output=True, text=True, env=environment)
    return tmp_path, call


def test_without_a_network_one_sentence_names_the_log(script):
    root, call = script
    done = call("report", "x")
    assert done.returncode == 1
    assert done.stderr == "compare: the tools cannot be installed (is there a network?); build/compare/environments/tools.log has what pip said\n"
    assert (root / "build/compare/environments/tools.log").read_text() == "no route\n" and "no route" not in done.stdout


@pytest.mark.parametrize("lock, other", [("pytest==0.1\n", f"pytest {pytest.__version__} where the lock has 0.1"), ("nobodys==1 \\\n", "no nobodys")])
def test_a_package_that_was_changed_since_is_one_sentence(script, lock, other):
    root, call = script
    tools = root / "build/compare/environments/tools"
    (tools / "bin").mkdir(parents=True)
    (tools / "bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tools / "bin/python").chmod(0o755)
    for file in (tools / "lock", root / "bench/compare/environments/tools.txt"):
        file.write_text(lock)
    done = call("report", "x")
    assert done.returncode == 1 and done.stderr == (f"compare: build/compare/environments/tools has {other}; remove it (rm -r build/compare/environments/tools), "
                                                    "and the same command installs it anew\n")


def test_records_of_one_side_have_no_verdict_and_say_so(measured, tmp_path, compare):
    one = next(r for r in map(json.loads, (measured[0] / "records.jsonl").read_text().splitlines()) if is_right(r) and is_ours(r))
    one["trust"].update(trusted=True, reasons=[])
    line = json.dumps(one)
    (tmp_path / "one.jsonl").write_text(line + "\n" + line[:100])  # and one that an interrupt has cut off
    done = compare("report", tmp_path / "one.jsonl", "--out", tmp_path / "page.html")
    assert done.returncode == 0 and done.stdout.startswith("no two sides did the same work in these records")
