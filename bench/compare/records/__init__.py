"""Records: every measurement, ours or a framework's, is one line of one schema, checked when it is written and when it is read."""

import contextlib
import json
import pathlib

import jsonschema

SCHEMA = json.loads(pathlib.Path(__file__).with_name("record.schema.json").read_text())
VERSION = SCHEMA["properties"]["schema"]["const"]
CHECK = jsonschema.Draft202012Validator(SCHEMA)


class BadRecord(Exception):
    """A line that is no record, in a sentence that names file and line."""


def check(record, where):
    """Throws BadRecord unless it is a record of this version."""
    if not isinstance(record, dict) or "schema" not in record:
        raise BadRecord(f"{where}: this is no record of scripts/compare")
    if isinstance(record["schema"], int) and record["schema"] > VERSION:
        raise BadRecord(f"{where}: the record has version {record['schema']}, this program reads up to {VERSION}; use a newer one")
    error = next(iter(CHECK.iter_errors(record)), None)
    if error:
        place = ".".join(str(part) for part in error.absolute_path)
        raise BadRecord(f"{where}: {place + ': ' if place else ''}{error.message[:200]}")


def refuse_device(path, error=BadRecord):
    """Some have no end, and would be read until memory is full."""
    if pathlib.Path(path).is_char_device():
        raise error(f"{path} cannot be read: it is a device, not a file")


def read(path):
    """All records of a file. Throws BadRecord for the first line that is none; a last line that was cut off by an
    interrupt is passed over."""
    refuse_device(path)
    records = []
    try:
        text = pathlib.Path(path).read_text()
    except (OSError, UnicodeDecodeError) as e:
        raise BadRecord(f"{path} cannot be read: {getattr(e, 'strerror', None) or 'it is not text'}") from None
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            if number == len(lines):  # no line break behind it: the writer was interrupted
                break
            raise BadRecord(f"{path}, line {number}: this is no JSON") from None
        check(record, f"{path}, line {number}")
        records.append(record)
    return records


def machine_of(record):
    """What tells machines, and set-ups of one, apart: ratios are never formed across two. The system's share of the memory differs from
    start to start."""
    e = record["environment"]
    memory, gpu = e.get("memory_bytes"), (e.get("gpu") or {}).get("name")
    return (e.get("processor"), " ".join(e.get("instructions") or ()), e.get("processors"), e.get("threads"), memory and round(memory / 1e9),
            e.get("device") or "cpu", gpu)


class Store:
    """A file of records that grows line by line; what is in it already need not be measured again."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        with self.written():
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self.records = read(self.path) if self.path.exists() else []
        if self.path.exists() and not self.path.read_bytes().endswith(b"\n") and self.path.stat().st_size:
            self.rewrite()

    @contextlib.contextmanager
    def written(self):
        try:
            yield
        except OSError as e:
            raise BadRecord(f"{self.path} cannot be written: {e.strerror}") from None

    def rewrite(self):
        part = self.path.with_suffix(".part")
        with self.written():
            part.write_text("".join(json.dumps(r) + "\n" for r in self.records))
            part.replace(self.path)

    def add(self, record):
        check(record, "a record of this run")
        with self.written(), self.path.open("a") as f:
            f.write(json.dumps(record) + "\n")
        self.records.append(record)

    def has(self, experiment, subject_id, variants, environment, is_there=lambda engine: False):
        """Whether the work was measured already on this machine as it is set up, in one run, for all of these variants. An engine, or data,
        that was not there is asked again where `is_there` says that the engine is."""
        runs = {}
        for r in self.records:
            e = r["engine"]
            if (r["experiment"] == experiment and r["subject"].get("id") == subject_id and machine_of(r) == machine_of({"environment": environment})
                    and not (r.get("refusal") == "absent" and is_there(e["name"]))):
                runs.setdefault(r["run"]["id"], set()).add((e["name"], e["mode"], "tcmalloc" in (e.get("allocator") or "")))
        wanted = {(v.engine, v.mode, bool(v.allocator)) for v in variants}
        return any(wanted <= found for found in runs.values())
