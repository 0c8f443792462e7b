"""The tables of docs/measured.md and README.md, and the picture, are what the committed records say; a figure that is not is found."""

import json
import pathlib
import re

import pytest

from compare.__main__ import main
from compare.report import headline
from compare.report.tables import NoPlace

from test_verdict import UNEVEN, row

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE, RESULTS = ROOT / "docs/measured.md", ROOT / "docs/results"


def folders_of(page):
    """Those that the page has tables or a headline of."""
    return [RESULTS / name for name in re.findall(r"<!-- (?:results|headline) (\S+) -->", page.read_text())]


FOLDERS = folders_of(PAGE)


def tables(*words):
    return main(["tables", *map(str, words)])


@pytest.mark.parametrize("page", [PAGE, ROOT / "README.md"], ids=lambda p: p.name)
def test_a_page_is_what_the_records_say(page):
    assert folders_of(page) and tables(page, *folders_of(page), "--check") == 0


def recorded(r):
    """A row that only the verdict reads, as a whole record."""
    run = {**r["run"], "started": "2026-01-01T00:00:00+00:00", "command": None}
    environment = {"processor": "A", "threads": 2, **r["environment"]}
    return {"schema": 1, **r, "run": run, "environment": environment, "engine": {"version": None, **r["engine"]},
            "confidence_s": [r["median_s"]] * 2, "correctness": {"agrees": True, "error": 0.0, "tolerance": 0.1, "reason": None}}


@pytest.fixture
def page(tmp_path):
    """A copy in which one ratio was changed."""
    (tmp_path / "results").symlink_to(ROOT / "docs/results")
    changed, count = re.subn(r"\*\*1\.67\*\*", "**1.68**", PAGE.read_text(), count=1)
    assert count == 1
    (tmp_path / "measured.md").write_text(changed)
    return tmp_path / "measured.md"


def test_a_changed_figure_is_found_and_put_right(page, capsys):
    folders = [page.parent / "results" / f.name for f in FOLDERS]
    before = page.read_text()
    assert tables(page, *folders, "--check") == 1
    assert capsys.readouterr().err == f"compare: {page} is not what the records say; call tables without --check\n"
    assert page.read_text() == before
    assert tables(page, *folders) == 0 and page.read_text() == PAGE.read_text()


def test_a_page_without_the_marks_is_refused(tmp_path):
    (tmp_path / "page.md").write_text("nothing\n")
    with pytest.raises(NoPlace, match="^the page has no place for the table of"):
        tables(tmp_path / "page.md", FOLDERS[0])


@pytest.fixture
def headlined(tmp_path):
    """(a page, the folder whose headline and picture it shows), neither of them written yet."""
    folder = tmp_path / "here"
    folder.mkdir()
    sides = [row("plumbline", "best auto", 1.0), row("plumbline", "vendor auto", 1.6), row("torch", "eager", 4.0), row("torch", "channels_last", 3.0),
             row("torch", "compile", 3.5, trusted=False), row("jax", "jit", 0.8)]
    (folder / "records.jsonl").write_text("".join(json.dumps(recorded(r)) + "\n" for r in sides))
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- headline here -->\nold\n<!-- end of headline -->\n![](here/headline.svg)\n")
    return page, folder


def test_the_headline_is_of_the_fastest_modes_that_count(headlined):
    page, folder = headlined
    assert tables(page, folder, "--check") == 1 and not (folder / "headline.svg").exists()
    assert tables(page, folder) == 0
    assert "| work | PyTorch | JAX |\n|---|---|---|\n| n train, f32 | **3.00** / 1.88 | **0.80** / 0.50 |\n" in page.read_text()
    assert "old" not in page.read_text() and (folder / "headline.svg").read_text().startswith("<svg")
    assert tables(page, folder, "--check") == 0


def test_the_headlines_means_say_of_how_many_rows_each_is():
    ops = [{**r, "experiment": "ops", "subject": {**r["subject"], "direction": "forward"}} for r in UNEVEN]
    assert "| ops, forward: geometric mean | **4.00** / 1.25 of 1 rows (2 rows) |\n" in headline.table(ops)
    alike = [r for r in ops if r["subject"]["id"] == "b"]
    assert "| ops, forward: geometric mean | **2.00** / 1.25 (1 rows) |\n" in headline.table(alike)


@pytest.mark.parametrize("spoil", [lambda f: f.write_text(f.read_text().replace("#e0662f", "#e0662e", 1)), lambda f: f.write_bytes(b"\xff"), lambda f: f.unlink()],
                         ids=["changed", "not text", "missing"])
def test_a_picture_that_is_not_of_the_records_is_found_and_put_right(headlined, capsys, spoil):
    page, folder = headlined
    picture = folder / "headline.svg"
    assert tables(page, folder) == 0
    right, text = picture.read_bytes(), page.read_text()
    spoil(picture)
    assert tables(page, folder, "--check") == 1
    assert capsys.readouterr().err == f"compare: {picture} is not what the records say; call tables without --check\n"
    assert tables(page, folder) == 0 and picture.read_bytes() == right and page.read_text() == text


def test_each_work_of_a_run_has_a_line_of_its_own(tmp_path):
    def of(batch, ours, theirs):
        subject = {**row("plumbline", "best auto", 1.0)["subject"], "id": f"work {batch}", "batch": batch}
        return [{**row(*side), "subject": subject, "memory": {"process": 1e6}} for side in (("plumbline", "best auto", ours), ("torch", "eager", theirs))]
    folder, page = tmp_path / "here", tmp_path / "page.md"
    folder.mkdir()
    page.write_text("<!-- results here -->\n<!-- end of results -->\n")

    def lines(records):
        (folder / "records.jsonl").write_text("".join(json.dumps(recorded(r)) + "\n" for r in records))
        assert tables(page, folder) == 0
        return [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.read_text().splitlines() if line.startswith("| [")]
    first, second = lines(of(32, 1.0, 3.0) + of(1, 0.1, 0.2))
    assert (first[0], first[4]) == ("[a](here/report.html): n train, f32, batch 32", "**3.00**")
    assert (second[0], second[4]) == ("[a](here/report.html): n train, f32, batch 1", "**2.00**")
    assert [line[0] for line in lines(of(32, 1.0, 3.0))] == ["[a](here/report.html)"]
    assert "In brackets" not in page.read_text()
    ours, theirs = of(32, 1.0, 3.0)
    (line,) = lines([{**ours, "trust": {"trusted": False, "reasons": ["the machine did other work"]}}, theirs])
    assert line[4] == "(3.00)" and "no verdict rests on them:\n\n- a: plumbline best auto: the machine did other work\n" in page.read_text()
    with pytest.raises(NoPlace, match="^the run a has no training step of Plumbline beside one of a framework in n train, f32, batch 1, which"):
        lines(of(32, 1.0, 3.0) + of(1, 0.1, 0.2)[:1])


def test_the_pages_of_the_records_are_there():
    for folder in RESULTS.iterdir():
        text = (folder / "report.html").read_text()
        runs = [json.loads(line)["run"] for line in (folder / "records.jsonl").read_text().splitlines()]
        assert runs and all(f"<code>{r['command']}</code>" in text for r in runs if r.get("command"))
