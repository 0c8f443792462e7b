"""Two runs side by side: of hundreds of rows some are apart by chance, and are not called slower; what has changed is found."""

import numpy as np
import pytest

from compare.records import FALLBACK
from compare.report import diff

from test_tables import recorded
from test_verdict import TURNS, row

ROWS = 500


def run_of(seed, factors=np.ones(ROWS), noise=0.05, rounds=5):
    """Records of a run: two samples a round, and rounds that are apart by half of what samples are."""
    rng = np.random.default_rng(seed)
    for i, factor in enumerate(factors):
        centres = factor * rng.lognormal(0, noise / 2, (rounds, 1))
        made = recorded(row("torch", "eager", factor, run=f"run {seed}"))
        subject = {**made["subject"], "id": f"work {i}", "problem": f"{i}"}
        yield {**made, "subject": subject, "rounds_s": (centres * rng.lognormal(0, noise, (rounds, 2))).tolist()}


def compared(before, after):
    return diff.diff(list(before), list(after))


def words(rows):
    return [r.word for r in rows]


@pytest.mark.parametrize("noise, rounds", [(0.05, 5), (0.1, 3)])
def test_of_many_rows_none_is_slower_by_chance(noise, rounds):
    pairs = [compared(run_of(2 * seed, noise=noise, rounds=rounds), run_of(2 * seed + 1, noise=noise, rounds=rounds)) for seed in range(3)]
    assert not any(diff.is_slower(rows) or "faster" in words(rows) for rows in pairs)


def test_most_rows_of_a_change_of_them_all_are_found():
    rows = compared(run_of(1, noise=0.02), run_of(2, np.full(ROWS, 1.1), noise=0.02))
    assert diff.is_slower(rows) and words(rows).count("slower") > 0.8 * ROWS
    rows = compared(run_of(1, np.full(ROWS, 1.1), noise=0.02), run_of(2, noise=0.02))
    assert not diff.is_slower(rows) and words(rows).count("faster") > 0.8 * ROWS


def test_one_row_that_is_much_slower_is_found():
    factors = np.ones(ROWS)
    factors[7] = 1.3
    rows = compared(run_of(1), run_of(2, factors))
    assert [r.name for r in rows if r.word == "slower"] == ["train: n 7 train, f32, torch eager"] and diff.is_slower(rows)


def test_rounds_of_two_runs_are_drawn_by_themselves():
    """That both runs began slowly says nothing: it was not the same moment."""
    slow = [[s] for s in (3, 3, 3, 1, 1, 1)]
    (only,) = compared([{**next(run_of(1)), "rounds_s": slow}], [{**next(run_of(2)), "rounds_s": [[1.2 * s] for (s,) in slow]}])
    assert only.word == "ambiguous" and only.ratio.low < 0.5 and only.ratio.high > 2


def test_what_was_not_measured_again_is_not_held_against_itself():
    """The second's records go on in the first's file: of another version, and mistrusted."""
    before = list(run_of(1, np.ones(3)))
    again = [{**r, "engine": {**r["engine"], "version": "newer"}, "trust": {"trusted": i != 1, "reasons": []}}
             for i, r in enumerate(run_of(2, np.ones(3)))]
    rows = compared(before, before + again)
    assert [r.name.split()[2] for r in rows] == ["0", "1", "2"]
    assert [r.mistrusted for r in rows] == ["", "not trusted", ""]


def mistrusted(record, reason):
    return {**record, "trust": {"trusted": False, "reasons": [reason]}}


@pytest.mark.parametrize("factor, fails", [(1.0, False), (1.3, True), (0.7, False)])
def test_what_is_mistrusted_now_is_ambiguous_and_fails_where_its_rounds_are_slower(factor, fails):
    before, after = list(run_of(1, np.ones(3), noise=0.02)), list(run_of(2, np.array([1, factor, 1]), noise=0.02))
    rows = compared(before, [after[0], mistrusted(after[1], "the machine did other work"), after[2]])
    assert rows[1].word == "ambiguous" and diff.is_slower(rows) == fails
    (line,) = [line for line in diff.lines(rows) if "mistrusted" in line]
    assert line.endswith("n 1 train, f32, torch eager: mistrusted now, as the machine did other work" + "; its rounds are slower all the same" * fails)
    assert "n 1" not in " ".join(r.name for r in compared([before[0], mistrusted(before[1], "load")], after))  # nothing counted before


def test_a_verdict_needs_no_last_row_of_plumbline():
    """It counts in the turn of one framework, and not in the next one's."""
    mistrusted = [{**r, "trust": {"trusted": not (r["run"]["turn"] and r["engine"]["name"] == "plumbline"), "reasons": []}} for r in TURNS]
    assert diff.verdicts(mistrusted, mistrusted).held == 1


def test_what_cannot_be_measured_any_more_is_gone():
    before, after = list(run_of(1, np.ones(5))), list(run_of(2, np.ones(5)))
    refused = {**after[1], "status": "not_available", "reason": "the process ended with status 3"}
    wrong = {**after[2], "correctness": {"agrees": False, "error": 1.0, "tolerance": 0.1, "reason": "y differs"}}
    mistrusted = {**after[3], "trust": {"trusted": False, "reasons": ["the machine did other work"]}}
    fallen_back = {**after[4], "trust": {"trusted": False, "reasons": [FALLBACK]}}
    assert diff.gone(before, [after[0], refused, wrong, mistrusted, fallen_back]) == [
        "train: n 1 train, f32, torch eager: the process ended with status 3", "train: n 2 train, f32, torch eager: y differs",
        f"train: n 4 train, f32, torch eager: {FALLBACK}"]
    assert diff.gone(before, after) == diff.gone(before, after[:1]) == []  # nor is what was not asked for


def test_the_rule_is_said():
    rows = compared(run_of(1, np.ones(3)), run_of(2, np.ones(3)))
    *_, last = diff.lines(rows)
    assert "corrected for 3 rows" in last and last.startswith("slower or faster is what is more than 3 % beyond 1")


@pytest.mark.parametrize("experiment, more", [("losses", {}), ("table3", {"accuracy": [0.5]})])
def test_what_has_losses_and_no_times_is_left_out(tmp_path, experiment, more):
    without = {**next(run_of(1)), "experiment": experiment, "losses": [1.0], **more}
    for name in ("rounds_s", "median_s", "confidence_s"):
        del without[name]
    assert compared([without], [without]) == []
    assert len(compared([without, next(run_of(1))], [without, next(run_of(2))])) == 1


def beside(torch_s, noise=0.01, seed=1, work="work"):
    """A run of Plumbline's, which takes a second, and PyTorch in turn."""
    rng = np.random.default_rng(seed)
    for name, mode, seconds in (("plumbline", "best auto", 1.0), ("torch", "eager", torch_s)):
        made = recorded(row(name, mode, seconds, run=f"run {seed}"))
        yield {**made, "subject": {**made["subject"], "id": work, "problem": work}, "rounds_s": (seconds * rng.lognormal(0, noise, (7, 2))).tolist()}


def test_verdicts_of_two_runs_hold_soften_or_flip():
    first = [*beside(1.5, work="a"), *beside(1.5, work="b"), *beside(1.5, work="c"), *beside(1.5, work="d")]
    second = [*beside(1.2, seed=2, work="a"), *beside(0.7, seed=2, work="b"), *beside(1.0, seed=2, work="c"), *beside(1.5, seed=2, work="e")]
    found = diff.verdicts(first, second)
    assert (found.held, found.softened) == (1, 1)
    ((name, a, b),) = found.flipped
    assert name == "train: n b train, f32, torch" and a.verdict == "faster" and b.verdict == "slower"
    count, flip = found.lines()
    assert count.startswith("of 3 verdicts") and "and 1 went" in count and name in flip


def test_without_frameworks_there_is_no_verdict():
    only = list(run_of(1, np.ones(3)))
    assert diff.verdicts(only, only).lines() == []


def test_two_hosts_are_said():
    one, other = ([{**r, "environment": {**r["environment"], "host": host}} for r in run_of(1, np.ones(1))] for host in ("one", "other"))
    assert len(compared(one, other)) == 1
    assert diff.of_hosts(one, other) == ["the first is of the host one, the second of other: times of two machines of one kind may differ by themselves"]
    assert diff.of_hosts(one, one) == diff.of_hosts(list(run_of(1, np.ones(1))), other) == []
