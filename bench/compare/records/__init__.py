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
        except ValueError:
            if number == len(lines):  # no line break behind it: the writer was interrupted
                break
            raise BadRecord(f"{path}, line {number}: this is no JSON") from None
        check(record, f"{path}, line {number}")
        records.append(record)
    return records


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

    def has(self, experiment, subject_id, variants, device="cpu"):
        """Whether the work was measured already, in one run, for all of these variants."""
        runs = {}
        for r in self.records:
            if r["experiment"] == experiment and r["subject"].get("id") == subject_id and (r["engine"].get("device") or "cpu") == device:
                e = r["engine"]
                runs.setdefault(r["run"]["id"], set()).add((e["name"], e["mode"], "tcmalloc" in (e.get("allocator") or "")))
        wanted = {(v.engine, v.mode, bool(v.allocator)) for v in variants}
        return any(wanted <= found for found in runs.values())
