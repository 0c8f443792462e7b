"""Table 2: what it says of the two frameworks beside each other is of one turn."""

from compare.experiments import table2

from test_verdict import row


def cell(engine, mode, seconds, **changes):
    r = row(engine, mode, seconds, **changes)
    subject = {**r["subject"], "name": "alexnet", "problem": "alexnet", "optimizer": "sgd", "batch": 250}
    return {**r, "experiment": table2.NAME, "subject": subject}


def said(records):
    """The sentence of AlexNet."""
    return next(s for s in table2.report(records).verdict if s.startswith("AlexNet"))


def test_the_frameworks_are_held_against_each_other_within_a_turn_alone():
    first = [cell("plumbline", "best auto", 1.0), cell("torch", "eager", 3.0)]
    # In the second run the machine was twice as slow, for both sides of it.
    second = [cell("plumbline", "best auto", 2.0, run="b"), cell("tensorflow", "function", 4.0, run="b")]
    assert "here" not in said(first + second)
    assert "here" not in said(first + [{**r, "run": {"id": "a", "turn": 1}} for r in second])
    assert "; here, each in its fastest mode, 0.67 (0.67–0.67), in 1 cells" in said([*second, cell("tensorflow", "function", 4.5), *first])
