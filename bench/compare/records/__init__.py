"""Records: every measurement, ours or a framework's, is one line of one schema, checked when it is written and when it is read."""

import collections
import contextlib
import json
import math
import pathlib
import statistics

import jsonschema_rs

from ..paths import write_whole

SCHEMA = json.loads(pathlib.Path(__file__).with_name("record.schema.json").read_text())
VERSION = SCHEMA["properties"]["schema"]["const"]
CHECK = jsonschema_rs.Draft202012Validator(SCHEMA)
PASSING = ("memory", "died")  # refusals that something else may have caused, and that may be others in the next call
FALLBACK = "a fallback kernel ran, plain loops"  # why a row is mistrusted, whose kernels are all ours
BEGIN = '{"schema": '  # of every record, as it is written


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
        place = ".".join(str(part) for part in error.instance_path)
        raise BadRecord(f"{where}: {place + ': ' if place else ''}{error.message[:200]}")
    wrong = contradiction(record)
    if wrong:
        raise BadRecord(f"{where}: {wrong}")


def contradiction(record):
    """What of a record's fields cannot be true together, in a sentence, or None: each alone is of the schema."""
    samples = [s for r in record.get("rounds_s") or () for s in r]
    if record.get("median_s") and samples and not record.get("imported") and not math.isclose(record["median_s"], statistics.median(samples), rel_tol=1e-9):
        return f"median_s is {record['median_s']:g}, and the median of rounds_s is {statistics.median(samples):g}"
    for name in ("confidence_s", "quartiles_s"):
        low, high = record.get(name) or (0, 0)
        if low > high:
            return f"{name} begins with {low:g}, which is more than its end, {high:g}"
    held, trust = record.get("correctness") or {}, record.get("trust") or {}
    error, tolerance = held.get("error"), held.get("tolerance")
    if held.get("agrees") and None not in (error, tolerance) and error > tolerance:
        return f"correctness agrees with an error of {error:g}, and its tolerance is {tolerance:g}"
    if trust.get("trusted") and trust["reasons"]:
        return f"trust is trusted, and has a reason not to be: {trust['reasons'][0][:100]}"
    return None


def refuse_device(path, error=BadRecord):
    """Some have no end, and would be read until memory is full."""
    if pathlib.Path(path).is_char_device():
        raise error(f"{path} cannot be read: it is a device, not a file")


def number(text):
    """What a number of JSON, or what Python takes for one, is; one that no float holds would be infinite in a page."""
    value = float(text)
    if not math.isfinite(value):
        raise BadRecord(f"{text if len(text) <= 20 else text[:20] + '...'} is no number that a record may have")
    return value if set(text) & set(".eE") else int(text)


def parsed(line):
    """What a line of JSON says. Throws BadRecord for numbers and letters that no file can hold, and ValueError for what is no JSON."""
    said = json.loads(line, parse_int=number, parse_float=number, parse_constant=number)
    if has_half_letter(said):
        raise BadRecord("it has half a letter, which no page can show")
    return said


def has_half_letter(said):
    """Whether a text of JSON has one half of a pair alone, as in "\\ud83d"."""
    try:
        json.dumps(said, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def read(path):
    """All records of a file. Throws BadRecord for the first line that is none; a last line that was cut off by an
    interrupt is passed over, if it begins as records do."""
    refuse_device(path)
    records = []
    try:
        text = pathlib.Path(path).read_text()
    except (OSError, UnicodeDecodeError) as e:
        raise BadRecord(f"{path} cannot be read: {getattr(e, 'strerror', None) or 'it is not text'}") from None
    lines = text.split("\n")
    for place, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {place}"
        try:
            record = parsed(line)
        except BadRecord as e:
            raise BadRecord(f"{where}: {e}") from None
        except (ValueError, RecursionError):
            if place == len(lines) and (line.startswith(BEGIN) or BEGIN.startswith(line)):  # no line break behind it: the writer was interrupted
                break
            raise BadRecord(f"{where}: this is no JSON") from None
        check(record, where)
        records.append(record)
    return records


def whole(text):
    """Without the half letters that stand in Python for bytes which are no text, as in a file's name."""
    return text.encode(errors="replace").decode()


def line_of(record):
    try:
        return json.dumps(record, allow_nan=False) + "\n"
    except ValueError:
        raise BadRecord("a record of this run has a number that is none, or infinite") from None


def machine_of(record):
    """What tells kinds of machines, and set-ups of one, apart: ratios are never formed across two. The system's share of the memory differs from
    start to start, and a container's name does: told_apart() asks that too."""
    e = record["environment"]
    memory, gpu = e.get("memory_bytes"), (e.get("gpu") or {}).get("name")
    return (e.get("processor"), " ".join(e.get("instructions") or ()), e.get("processors"), e.get("threads"), memory and round(memory / 1e9),
            e.get("device") or "cpu", gpu)


def told_apart(records):
    """[[record]], a machine each. Where records of one kind of machine name several hosts, each is one, and those that name none are another."""
    hosts, found = collections.defaultdict(set), {}
    for r in records:
        hosts[machine_of(r)].add(r["environment"].get("host"))
    for r in records:
        kind = machine_of(r)
        host = r["environment"].get("host") if len(hosts[kind] - {None}) > 1 else None
        found.setdefault((kind, host), []).append(r)
    return list(found.values())


def is_stale(record, engines):
    """Whether the engine as it is now would answer otherwise. What stands behind the + of a version is which kernels Plumbline has, and how
    a framework was built, which its package may not say."""
    e = record["engine"]
    refusal = record.get("refusal")
    if refusal == "absent" and engines.answers(e["name"]):
        return True
    if refusal == "disk" or (refusal in ("memory", "failed", "died", "hung") and not e["version"]):  # it was not begun, for want of memory, of a disk's room, or of a reference
        return True
    known = [v for v in (e["version"], engines.version(e["name"])) if v]
    return len({v if e["name"] == "plumbline" else v.partition("+")[0] for v in known}) > 1


def newest(records):
    """Of each engine's records of the same work, those of the version that it had last."""
    last = {version_key(r): r["engine"]["version"] for r in records if r["engine"].get("version")}
    return [r for r in records if r["engine"].get("version") in (None, last.get(version_key(r)))]


def version_key(record):
    return machine_of(record), record["experiment"], record["subject"].get("id"), record["engine"]["name"]


class Store:
    """A file of records that grows line by line; what is in it already need not be measured again, but for what may pass (PASSING), which each
    call asks for once more."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        with self.written():
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self.records = read(self.path) if self.path.exists() else []
        self.earlier = {r["run"]["id"] for r in self.records}
        if self.path.exists() and not self.path.read_bytes().endswith(b"\n") and self.path.stat().st_size:
            self.rewrite()

    @contextlib.contextmanager
    def written(self):
        try:
            yield
        except OSError as e:
            raise BadRecord(f"{self.path} cannot be written: {e.strerror}") from None

    def rewrite(self):
        with self.written():
            write_whole(self.path, "".join(map(line_of, self.records)))

    def add(self, record):
        line = line_of(record)
        check(record, "a record of this run")
        with self.written(), self.path.open("a") as f:
            f.write(line)
        self.records.append(record)

    def has(self, experiment, subject_id, variants, environment, engines=None):
        """Whether the work was measured already on this machine as it is set up, in one run, for all of these variants. Of measuring.engines'
        Engines, one that is of another version is asked again, and one that was not there, or had no data, where it is now. Of two versions
        the one that was measured last is what reports show."""
        runs, machine = {}, machine_of({"environment": environment})
        of_work = [r for r in self.records if r["experiment"] == experiment and r["subject"].get("id") == subject_id and machine_of(r) == machine]
        for r in newest(of_work):
            e, may_pass = r["engine"], r.get("refusal") in PASSING and r["run"]["id"] in self.earlier
            if engines is None or not (may_pass or is_stale(r, engines)):
                runs.setdefault(r["run"]["id"], set()).add((e["name"], e["mode"], "tcmalloc" in (e.get("allocator") or "")))
        wanted = {(v.engine, v.mode, bool(v.allocator)) for v in variants}
        return any(wanted <= found for found in runs.values())
