"""scripts/compare import: files of other programs as records, all of them or none."""

import argparse
import collections
import inspect
import pathlib
import textwrap

from ...paths import seen_from_the_caller
from .. import Store
from . import FORMATS
from .source import Source

PUBLISHED = "published"
DESCRIPTION = """Results of others as records, which scripts/compare report shows beside those measured here. They were not held against
a reference, so that no ratio is formed with them.

FORMAT is one of

"""


def describe():
    texts = {name: inspect.cleandoc(module.__doc__) for name, module in FORMATS.items()}
    texts[PUBLISHED] = "What a coursework and a benchmark of 2019 have printed, which is part of this package: no file is given."
    return DESCRIPTION + "\n\n".join(f"{name}\n{textwrap.indent(text, '  ')}" for name, text in texts.items())


def add_arguments(parser):
    parser.description, parser.formatter_class = describe(), argparse.RawDescriptionHelpFormatter
    parser.add_argument("format", metavar="FORMAT", choices=[*FORMATS, PUBLISHED], help=f"{', '.join(FORMATS)} or {PUBLISHED}")
    parser.add_argument("files", nargs="*", metavar="FILE", type=seen_from_the_caller)
    parser.add_argument("--out", type=seen_from_the_caller, metavar="RECORDS", default=pathlib.Path("build/compare/imported.jsonl"),
                        help="the file of records to add to; default %(default)s. What it has already, it gets no second time")
    parser.add_argument("--engine", metavar="NAME", help="what was measured, where the file does not say it")
    parser.add_argument("--machine", metavar="TEXT", help="the processor or device it was measured on, where the file does not say it")


def run(parser, words, new_run):
    add_arguments(parser)
    a = parser.parse_args(words)
    if bool(a.files) == (a.format == PUBLISHED):
        parser.error(f"{a.format} takes " + ("no file" if a.files else "one file or several"))
    made = new_run(["import", *words])
    records = list(read_all(a, made))
    store = Store(a.out)
    there = set(keys_of(store.records))
    added = [r for key, r in zip(keys_of(records), records) if key not in there]
    for r in added:
        store.add(r)
    print(f"{len(added)} records added to {a.out}" + (f"; {len(records) - len(added)} were there" if len(added) < len(records) else ""))
    return 0


def keys_of(records):
    """Of each record, what tells it from all others: a file may have a row twice, and be imported again after an interrupt."""
    count = collections.Counter()
    for r in records:
        e = r["engine"]
        key = r["run"]["id"], r["subject"].get("id"), e["name"], e["mode"], e.get("device")
        count[key] += 1
        yield *key, count[key]


def read_all(a, made):
    if a.format == PUBLISHED:
        from ...published import records  # pandas is slow to load
        yield from records.records(made)
    for path in {file.resolve(): file for file in a.files}.values():  # one that is named twice is one
        for r in FORMATS[a.format].records(Source(path, made), a.engine):
            if a.machine and r["environment"]["processor"] == "unknown":
                r["environment"]["processor"] = a.machine
            yield r
