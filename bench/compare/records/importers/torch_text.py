"""torch.utils.benchmark, as print(measurement) prints it: the median and the quartiles, since the samples are not there."""

import re

from .building import engine, record, subject

NAME = "torch-text"
HEAD = re.compile(r"<[\w.]*\bMeasurement object at 0x[0-9a-f]+>")
TIME = re.compile(r"  (?:Median: )?(\d+\.\d+) (ns|us|ms|s)")
QUARTILES = re.compile(r"  IQR: +\d+\.\d+ (ns|us|ms|s) \((\d+\.\d+) to (\d+\.\d+)\)")
COUNT = re.compile(r"  (\d+) measurements?, (\d+) runs (?:per measurement)?, (\d+) threads?")
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def records(source, name=None):
    blocks = []
    for number, line in source.lines():
        if HEAD.fullmatch(line.strip()):
            blocks.append((number, []))
        elif blocks:
            blocks[-1][1].append((number, line))
    if not blocks:
        raise source.bad(1, "there is no printed measurement of torch.utils.benchmark here")
    for number, lines in blocks:
        yield record_of(source, number, lines, name)


def record_of(source, number, lines, name):
    at = next((i for i, (_, line) in enumerate(lines) if TIME.fullmatch(line)), None)
    count = next((m for _, line in lines if (m := COUNT.fullmatch(line.rstrip()))), None)
    if not at or not count:
        raise source.bad(number, "a measurement that ends before its time and the number of its runs")
    title, description, setup = head_of([line for _, line in lines[:at]])
    line, (value, unit) = lines[at][0], TIME.fullmatch(lines[at][1]).groups()
    attributes = {"num_threads": int(count[3]), **({"setup": setup} if setup else {})}
    threads = f"{count[3]} threads" if int(count[3]) > 1 else ""
    what = subject(NAME, "op", title[:100], threads, attributes=attributes)
    who = engine(name or "torch", description)
    if float(value) == 0:
        return record(source, NAME, what, who, reason=f"it is printed as {value} {unit}, which is too coarse")
    quartiles = next((m for _, text in lines if (m := QUARTILES.fullmatch(text))), None)
    return record(source, NAME, what, who, median_s=source.seconds(value, line, "the time", UNITS[unit]), calls_per_sample=int(count[2]),
                  quartiles_s=[float(q) * UNITS[quartiles[1]] for q in quartiles.groups()[1:]] if quartiles else None,
                  note=f"of {count[1]} samples, which are not printed")


def head_of(lines):
    """Title, description and setup: what stands above the time."""
    title, *rest = [line for line in lines if line.strip()] or ["a statement"]
    if title.startswith("stmt:"):
        body = rest[:next((i for i, line in enumerate(rest) if not line.startswith("  ")), len(rest))]
        title, rest = "; ".join(line.strip() for line in body), rest[len(body):]
    at = next((i for i, line in enumerate(rest) if line.startswith("setup:")), len(rest))
    return title, " ".join(rest[:at]), "\n".join(rest[at:]).removeprefix("setup:").strip()
