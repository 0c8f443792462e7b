"""The table of the Transformer benchmark of 2019: a CSV with the columns model, 1x8, ..., 8x1024 (batch x length), its cells seconds of
one forward pass or N/A, N/A(length), N/A(oom). Which framework it is of, the file does not say: --engine does, or else its name."""

import csv
import io
import re

from .building import engine, record, subject

NAME = "huggingface"
WHY = {"length": "the input is longer than the model takes", "oom": "out of memory",
       None: "N/A, which means that the input was too long or memory ran out; the file does not say which"}


def records(source, name=None):
    reader = csv.reader(io.StringIO(source.text, newline=""), strict=True)
    try:
        head = [cell.strip() for cell in next(reader)] or [""]
        sizes = [re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", cell) for cell in head[1:]]
        if head[0] != "model" or not sizes or not all(sizes) or len(set(head)) < len(head):
            raise source.bad(1, "this is no table of the Transformer benchmark; its columns are model, 1x8, ..., 8x1024")
        seen = set()
        for row in reader:
            if row:
                yield from records_of(source, reader.line_num, head, row, seen, name or source.path.stem)
    except csv.Error as e:
        raise source.bad(reader.line_num, f"this is no CSV: {e}") from None
    if not seen:
        raise source.bad(reader.line_num, "the table has no model")


def records_of(source, line, head, row, seen, name):
    model, *cells = (cell.strip() for cell in row)
    if len(row) != len(head):
        raise source.bad(line, f"there are {len(row)} cells under {len(head)} columns")
    if not model or model in seen:
        raise source.bad(line, f"{model} is there twice" if model else "a row without a model")
    seen.add(model)
    for size, cell in zip(head[1:], cells):
        batch, length = (int(n) for n in size.split("x"))
        what = subject(NAME, "network", model, f"length {length}", "forward", batch=batch, attributes={"length": length})
        absent = re.fullmatch(r"(?:N/A(?:\((.+)\))?)?", cell)
        if absent:
            yield record(source, NAME, what, engine(name), reason=WHY.get(absent[1], absent[1]))
        else:
            yield record(source, NAME, what, engine(name), median_s=source.seconds(cell, line, f"{model} at {size}"),
                         note="a mean of its repetitions, which are not in the file")
