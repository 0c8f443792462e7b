"""Ratios are of rounds in turn: never across two turns at the same work, though its rows are shown together."""

import pytest

from compare.report import diff, verdict


def row(engine, mode, seconds, run="a", turn=0, trusted=True):
    return {"experiment": "train", "run": {"id": run, "turn": turn}, "status": "measured", "median_s": seconds, "rounds_s": [[seconds]] * 5,
            "subject": {"id": "work", "kind": "network", "name": "n", "problem": "n", "direction": "train", "dtype": "f32"}, "environment": {},
            "engine": {"name": engine, "mode": mode}, "correctness": {"agrees": True}, "trust": {"trusted": trusted, "reasons": []}}


# In the second turn the machine was twice as slow.
TURNS = [row("plumbline", "best auto", 1.0), row("plumbline", "vendor auto", 1.5), row("torch", "eager", 2.0),
         row("plumbline", "best auto", 2.0, turn=1), row("plumbline", "vendor auto", 3.0, turn=1), row("jax", "jit", 8.0, turn=1)]


RECORDED = [{**r, "environment": {"processor": "A"}} for r in TURNS]


@pytest.mark.parametrize("run", ["a", "b"])  # an interrupted run goes on as another
def test_a_ratio_is_of_one_turn(run):
    (found,) = verdict.rows([{**r, "run": {"id": run, "turn": 1}} if r["run"]["turn"] else r for r in TURNS], "train")
    values = {pair: ratio.value for pair, ratio in found.ratios.items()}
    assert values == pytest.approx({("best", "torch"): 2.0, ("vendor", "torch"): 4 / 3, ("best", "jax"): 4.0, ("vendor", "jax"): 8 / 3})


def test_a_variant_of_several_turns_is_one_row():
    ((_, members),) = verdict.groups(TURNS, "train").items()
    assert sorted((r["engine"]["name"], r["median_s"]) for r in members) == [("jax", 8.0), ("plumbline", 2.0), ("plumbline", 3.0), ("torch", 2.0)]


def test_without_plumbline_in_its_turn_a_framework_has_no_ratio():
    turns = [r if not (r["run"]["turn"] and verdict.is_ours(r)) else {**r, "trust": {"trusted": False, "reasons": ["load"]}} for r in TURNS]
    (found,) = verdict.rows(turns, "train")
    assert {n for _, n in found.ratios} == {"torch"} and set(found.frameworks) == {"torch", "jax"}


@pytest.mark.parametrize("changes, words", [
    ({"rounds_s": [[1.8], [1.0], [1.0], [1.0], [1.0]]}, "no ratio beside plumbline best auto: in the 3 rounds that both ran, the quartiles are 40% of the median apart"),
    ({"trust": {"trusted": True, "reasons": [], "disturbed": [0, 2]}}, "no ratio beside plumbline best auto: of the 3 rounds that both ran, 2 were disturbed"),
    ({"trust": {"trusted": True, "reasons": [], "disturbed": [3, 4]}}, None),
])
def test_the_rounds_that_both_ran_are_judged_by_themselves(changes, words):
    slow = {**row("torch", "eager", 4.0), "rounds_s": [[4.0]] * 3}
    (found,) = verdict.rows([{**row("plumbline", "best auto", 1.0), **changes}, row("plumbline", "vendor auto", 2.0), slow], "train")
    assert set(found.ratios) == ({("vendor", "torch")} if words else {("best", "torch"), ("vendor", "torch")})
    assert [r["trust"]["reasons"] for r in found.left_out] == ([[words]] if words else [])


def test_what_holds_no_framework_against_plumbline_has_no_verdict():
    """Its modes may be different work."""
    assert any("torch takes" in line for line in verdict.ten_lines(RECORDED, ["train"]))
    assert not any("torch takes" in line for line in verdict.ten_lines(RECORDED, ["train"], aside=("train",)))
    assert diff.verdicts(RECORDED, RECORDED).held == 2 and diff.verdicts(RECORDED, RECORDED, aside=("train",)).lines() == []


def test_rows_that_do_not_count_are_those_that_the_page_shows():
    """What was measured again is no row any more."""
    mistrusted = {**row("torch", "eager", 2.0, run="earlier"), "trust": {"trusted": False, "reasons": ["load"]}}
    assert verdict.uncounted([mistrusted, *TURNS], ["train"]) == []
    assert verdict.uncounted([*TURNS, mistrusted], ["train"]) == ["1 of 4 rows do not count: the page says why of each"]


def of_version(version, record):
    return {**record, "engine": {**record["engine"], "version": version}}


def test_what_another_version_took_is_left_out_once_there_is_a_newer_one():
    """The fastest mode was beside a Plumbline that there is no more."""
    monday = [of_version("1+kernels.a", row("plumbline", "best auto", 0.7)), row("torch", "compile", 0.8), row("torch", "eager", 1.2)]
    tuesday = [of_version("1+kernels.b", row("plumbline", "best auto", 1.0, run="b")), row("torch", "eager", 1.3, run="b")]
    (found,) = verdict.rows(monday + tuesday, "train")
    assert found.ours["best"]["median_s"] == 1.0 and found.ratios == {}  # compile was not beside it
    (found,) = verdict.rows(monday + tuesday + [row("torch", "compile", 0.9, run="b")], "train")
    assert found.ratios["best", "torch"].value == pytest.approx(0.9)
    frameworks = [row("plumbline", "best auto", 1.0), of_version("2.8", row("torch", "compile", 0.8)), of_version("2.9", row("torch", "eager", 1.2))]
    (found,) = verdict.rows(frameworks, "train")
    assert found.ratios["best", "torch"].value == pytest.approx(1.2)


def test_the_verdict_names_the_modes_and_versions_of_its_rows():
    """Not those that a newer version has replaced."""
    old = [of_version("1+kernels.a", row("plumbline", "best auto", 0.7)), of_version("2.8", row("torch", "compile", 0.8))]
    new = [of_version("1+kernels.b", row("plumbline", "best auto", 1.0, run="b")), of_version("2.9", row("torch", "eager", 1.3, run="b")),
           of_version("2.9", row("torch", "channels_last", 1.2, run="b"))]
    (line, *more) = verdict.lines_of(old + new, ["train"])
    assert "in the fastest of its modes eager, channels_last (1 rows" in line and more == []
    assert verdict.modes_in_words(old + new, "train", ["torch"]) == "Measured modes, of which the fastest counts: PyTorch: eager, channels_last."
    other = [{**r, "subject": {**r["subject"], "id": "other"}} for r in old]
    assert verdict.of_versions(other + new, ["train"]) == ["the rows are of 2 versions of Plumbline: the page's end names them"]


def test_a_framework_that_was_absent_is_no_row_of_its_own_once_it_is_there():
    absent = {**row("torch", "eager", 2.0), "status": "not_available", "reason": "torch is not installed"}
    there = {**row("torch", "eager", 2.0, run="b"), "engine": {"name": "torch", "mode": "eager", "allocator": "glibc"}}
    ((_, members),) = verdict.groups([absent, there], "train").items()
    assert [r["status"] for r in members] == ["measured"]


def several(rows):
    """Records of several works, of sides {work: [row, ...]}."""
    return [{**r, "subject": {**r["subject"], "id": work}} for work, sides in rows.items() for r in sides]


# In the first work the vendor's kernels are mistrusted, in the last the best ones.
UNEVEN = several({"a": [row("plumbline", "best auto", 1.0), row("plumbline", "vendor auto", 1.0, trusted=False), row("torch", "eager", 8.0)],
                  "b": [row("plumbline", "best auto", 1.0), row("plumbline", "vendor auto", 1.6), row("torch", "eager", 2.0)],
                  "c": [row("plumbline", "best auto", 9.0, trusted=False), row("plumbline", "vendor auto", 1.0), row("torch", "eager", 5.0)]})


def test_the_vendors_mean_is_of_rows_that_the_best_have_and_says_of_how_many():
    rows = verdict.rows(UNEVEN, "train")
    best, vendor = (verdict.summary(rows, k, "torch") for k in ("best", "vendor"))
    assert (best["count"], best["geometric"]) == (2, pytest.approx(4.0)) and (vendor["count"], vendor["geometric"]) == (1, pytest.approx(1.25))
    (line, *_) = verdict.lines_of(UNEVEN, ["train"])
    assert "4.00 times as long as the best kernels, 1.25 times the vendor's alone of 1 rows, in its mode eager (2 rows" in line
    (line, *_) = verdict.lines_of([r for r in UNEVEN if r["subject"]["id"] == "b"], ["train"])
    assert "2.00 times as long as the best kernels, 1.25 times the vendor's alone, in its mode eager (1 rows" in line


def test_a_second_mode_does_not_stand_for_a_faster_one_that_is_mistrusted():
    def of(*theirs):
        (found,) = verdict.rows([row("plumbline", "best auto", 1.0), *theirs], "train")
        return {n: r["engine"]["mode"] for n, r in found.frameworks.items()}
    slow = row("torch", "eager", 2.0)
    assert of(slow, row("torch", "channels_last", 1.5, trusted=False)) == {}
    assert of(slow, row("torch", "channels_last", 1.99, trusted=False)) == of(slow, row("torch", "channels_last", 3.0, trusted=False)) == {"torch": "eager"}
    (found,) = verdict.rows([row("plumbline", "best captured auto", 0.5, trusted=False), row("plumbline", "best auto", 1.0), slow], "train")
    assert found.ratios == {} and found.ours == {"best": None, "vendor": None}
