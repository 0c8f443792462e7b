"""Records of several machines: none replaces another's rows without a word, and what they have in common stands side by side."""

import json

import pytest

from compare.experiments import ALL
from compare.records import told_apart
from compare.report.machines import in_two_files, table
from compare.report.page import page

from test_tables import recorded
from test_verdict import row


def of_host(host, torch_s, run="a"):
    environment = {"processor": "A", "threads": 2, **({"host": host} if host else {})}
    return [recorded({**row(*side, run=run), "environment": environment}) for side in (("plumbline", "best auto", 1.0), ("torch", "eager", torch_s))]


@pytest.mark.parametrize("hosts, count", [(("one", "two"), 2), (("one", "one"), 1), ((None, "one"), 1), ((None, None), 1), ((None, "one", "two"), 3)])
def test_two_machines_of_a_kind_are_one_unless_their_hosts_differ(hosts, count):
    assert len(told_apart([r for host in hosts for r in of_host(host, 2.0)])) == count


def test_two_hosts_have_a_column_each_and_neither_is_lost():
    text = page(of_host("one", 2.0) + of_host("two", 3.0, run="b"))
    assert "<h4>The machines side by side</h4>" in text and "<th>1: A, 2 threads, host one</th><th>2: A, 2 threads, host two</th>" in text
    assert "<h2>A, 2 threads, host one</h2>" in text and "<h2>A, 2 threads, host two</h2>" in text
    found = table({"1": of_host("one", 2.0), "2": of_host("two", 3.0)}, ALL)
    assert found.rows == [["train: n train, f32", "PyTorch", ("2.00 (2.00–2.00)", "faster"), ("3.00 (3.00–3.00)", "faster")]]
    assert table({"1": of_host("one", 2.0)}, ALL) is None and "side by side" not in page(of_host("one", 2.0))


def test_a_row_that_stands_in_two_files_is_said(tmp_path, compare):
    for name, records in (("a", of_host(None, 2.0)), ("b", of_host(None, 3.0, run="b")), ("c", of_host("other", 3.0)), ("d", of_host("another", 3.0))):
        (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in records))
    a, b, c, d = (tmp_path / name for name in "abcd")
    out = ("--out", tmp_path / "page.html")
    said = f"compare: 2 rows stand in {a} and {b}, of what seems to be one machine: the page shows those of the last file\n"
    assert compare("report", a, b, *out).stderr == said
    assert compare("report", c, d, *out).stderr == compare("report", a, *out).stderr == ""
    assert in_two_files({"a": of_host(None, 2.0), "b": []}) == []
