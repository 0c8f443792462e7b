"""The command: measures, reports, compares and audits. scripts/compare installs what it needs and calls it."""

import argparse
import contextlib
import dataclasses
import datetime
import os
import pathlib
import shlex
import sys
import time
import uuid

from rich.console import Console

from . import ending
from .audit import BREAKS, audit, ledger
from .experiments import ALL as EXPERIMENTS
from .experiments import ASIDE, QUICK, train
from .experiments.bench import Bench, modes_of
from .measuring.engines import DEVICES, FRAMEWORKS, USUAL_MODE, Engines, Variant
from .measuring.machine import environment
from .measuring.session import Session
from .measuring.worker import Refused
from .paths import seen_from_the_caller, write_whole
from .problems.catalogue import BadTable, read_table
from .problems.networks import NETWORKS
from .records import BadRecord, Store, read, whole
from .records.importers import command as importing
from .report import diff, headline, machines, tables, verdict
from .report.page import page

PROGRAM = "scripts/compare"
MOST_BATCH = 2**31 - 1  # that any side takes


class BadInput(Exception):
    """What is wrong with the command line, in a sentence."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, and takes whole words alone, as the script does."""

    def __init__(self, *words, **settings):
        super().__init__(*words, allow_abbrev=False, **settings)

    def error(self, message):
        raise BadInput(f"{message}; --help lists what there is")


def some_of(words, known, option, may_be_none=False):
    chosen = [part for word in words for part in word.split(",") if part]
    if words and not chosen and not may_be_none:
        raise BadInput(f"{option} names none; use {', '.join(known)}")
    for part in chosen:
        if part not in known:
            raise BadInput(f"{option} {part}: there is none; use {', '.join(known)}")
    return tuple(dict.fromkeys(chosen))


def modes_of_any(frameworks, device):
    return tuple(dict.fromkeys(mode for f in frameworks for mode in modes_of(f, device)))


def common(parser):
    """What the script tells the program."""
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of every side; default all processors")
    parser.add_argument("--programs", action="append", default=[], metavar="ENGINE=PATH", help=argparse.SUPPRESS)
    parser.add_argument("--tcmalloc", help=argparse.SUPPRESS)
    parser.add_argument("--judge", action="store_true", help=argparse.SUPPRESS)  # say what is wrong with the other words, and do nothing
    return parser


def engines_of(a):
    if not 1 <= a.threads <= (os.cpu_count() or 1):
        raise BadInput(f"--threads {a.threads}: use 1 to {os.cpu_count()}")
    programs = {k: v for k, v in (p.split("=", 1) for p in a.programs) if pathlib.Path(v).exists()}
    callers = []
    for word in getattr(a, "python", ()):
        framework, _, path = word.partition("=")
        path = path and str(seen_from_the_caller(path))
        if framework not in FRAMEWORKS or not os.access(path, os.X_OK):
            raise BadInput(f"--python {word}: use FRAMEWORK=PATH, of {', '.join(FRAMEWORKS)}, PATH being a Python that can be run")
        programs[framework] = path
        callers.append(framework)
    return Engines(programs, a.threads, a.tcmalloc, device=getattr(a, "device", "cpu"), callers=tuple(callers))


def check_plumbline(engines):
    if not engines.has("plumbline"):
        raise BadInput("there is no plumb_bench_worker; scripts/compare builds it")


def described(engines):
    """The environment of all records: the machine with its measured roofs."""
    with Session(engines) as session:
        return {**environment(engines.threads, engines.device), "device": engines.device, **session.roofs()}


def new_run(words):
    started = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return {"id": uuid.uuid4().hex[:12], "started": started, "command": whole(shlex.join([PROGRAM, *shown(words)]))}


def shown(words):
    """The command line as a user would type it: without what the script has added."""
    words = iter(words)
    for word in words:
        if word in ("--programs", "--tcmalloc"):
            next(words, None)
        else:
            yield word


def write(path, text):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # a device stays one
            with path.open("w") as f:
                f.write(text)
            return
        write_whole(path, text)
    except OSError as e:
        raise BadInput(f"{path} cannot be written: {e.strerror}") from None


def measure(words):
    parser = common(Parser(PROGRAM, description="Holds PyTorch, TensorFlow and JAX against Plumbline. Further commands: "
                                                f"{', '.join(COMMANDS)}."))
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a few minutes (the default)")
    size.add_argument("--full", action="store_true", help="every op, batch and dtype: a day; an interrupted run goes on")
    parser.add_argument("--only", nargs="+", metavar="EXPERIMENT", help=f"of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--frameworks", nargs="+", metavar="FRAMEWORK", default=list(FRAMEWORKS), help="of torch, tensorflow, jax; default all")
    parser.add_argument("--device", choices=DEVICES, default="cpu",
                        help="where all sides compute (default cpu); emulated rehearses the way of cuda on the host, and measures no GPU")
    parser.add_argument("--python", action="append", default=[], metavar="FRAMEWORK=PATH",
                        help="a Python that has a framework, in the place of the environment that scripts/compare installs")
    parser.add_argument("--batch", nargs="+", type=int, metavar="N", default=[],
                        help="of ops and networks, in ops, train and table2; default 32 (table2: 250), and with --full several")
    parser.add_argument("--networks", nargs="+", metavar="NETWORK", default=[],
                        help=f"of {', '.join(NETWORKS)}, in train, and whose shapes ops has; default {', '.join(train.QUICK)} in train (with --full all), "
                             "and all lines of bench/problems.txt in ops")
    parser.add_argument("--modes", nargs="+", metavar="MODE", default=["usual"],
                        help=f"of the frameworks: usual (the default), all, or some of {', '.join(modes_of_any(FRAMEWORKS, 'cuda'))}; "
                             "with --full all in the rows that the quick comparison has")
    parser.add_argument("--dtypes", nargs="+", metavar="DTYPE", default=[],
                        help="f32, bf16; default f32, and with --full both where the processor computes in bf16")
    parser.add_argument("--shapes", type=seen_from_the_caller, help="a file of lines like those of bench/problems.txt, for the ops")
    parser.add_argument("--out", type=seen_from_the_caller, default=pathlib.Path("build/compare"), help="where records and page go")
    a = parser.parse_args(words)
    engines = engines_of(a)
    known = dict.fromkeys((*FRAMEWORKS, *engines.programs))  # a test brings frameworks of its own
    names = some_of(a.only or (EXPERIMENTS if a.full else QUICK), EXPERIMENTS, "--only")
    frameworks = some_of(a.frameworks, known, "--frameworks", may_be_none=True)  # Plumbline alone
    networks = some_of(a.networks, NETWORKS, "--networks")
    dtypes = some_of(a.dtypes, ("f32", "bf16"), "--dtypes")
    if len(a.modes) > 1 and {"usual", "all"} & set(a.modes):
        raise BadInput(f"--modes {' '.join(a.modes)}: usual and all stand by themselves")
    modes = () if a.modes in (["usual"], ["all"]) else some_of(a.modes, modes_of_any(frameworks, a.device), "--modes")
    if any(not 1 <= batch <= MOST_BATCH for batch in a.batch):
        raise BadInput(f"--batch {' '.join(map(str, a.batch))[:80]}: use 1 to {MOST_BATCH}")
    if a.shapes:
        read_table(a.shapes)  # refused now, not after the roofs
    if a.judge:
        return 0
    check_plumbline(engines)
    console, start = Console(stderr=True), time.monotonic()
    store = Store(a.out / "records.jsonl")
    bench = Bench(engines, frameworks, store, new_run(words), described(engines), console, a.full, a.shapes, tuple(dict.fromkeys(a.batch)),
                  networks, a.modes == ["all"], dtypes, asked_modes=modes)
    console.print(f"this takes about {foreseen_minutes(bench, names):.0f} minutes; an interrupt loses nothing: the same command goes on", highlight=False)
    for name in names:
        EXPERIMENTS[name].run(bench)
    write(a.out / "report.html", page(store.records))
    console.print(f"measured in {(time.monotonic() - start) / 60:.1f} minutes; the page is {a.out / 'report.html'}", highlight=False)
    say_verdict(store.records, names)
    return 0


def say_verdict(records, names):
    print("\n".join(verdict.ten_lines(records, names, ASIDE)) or "no two sides did the same work in these records: there is no verdict, and the page has the rows")


def foreseen_minutes(bench, names):
    """What is not in the records yet, as far as it can be told beforehand."""
    estimate = dataclasses.replace(bench, foreseen=[])
    for name in names:
        others = getattr(EXPERIMENTS[name], "MEASURED_BY", None)
        if not others or not set(others) <= set(names):  # or it is foreseen already
            EXPERIMENTS[name].run(estimate)
    return sum(estimate.foreseen) / 60


def report(words):
    parser = Parser(f"{PROGRAM} report", description="The page of the records of one machine or several.")
    parser.add_argument("records", nargs="+", type=seen_from_the_caller, help="files of records, or folders with a records.jsonl")
    parser.add_argument("--out", type=seen_from_the_caller, default=pathlib.Path("build/compare/report.html"))
    a = parser.parse_args(words)
    if a.out.resolve() in {file_of(path).resolve() for path in a.records}:
        raise BadInput(f"--out {a.out} is a file of the records; name another for the page")
    files = {str(path): read(file_of(path)) for path in a.records}
    records = [r for own in files.values() for r in own]
    if not records:
        raise BadInput(f"there is no whole record in {' or '.join(str(path) for path in a.records)}")
    write(a.out, page(records))
    for sentence in machines.in_two_files(files):
        print(f"compare: {sentence}", file=sys.stderr)
    say_verdict(records, EXPERIMENTS)
    return 0


def file_of(path):
    return path / "records.jsonl" if path.is_dir() else path


def compare(words):
    parser = Parser(f"{PROGRAM} diff", description="Whether the rows of B are slower than those of A; the exit status is 1 if one is, "
                                                   "or cannot be measured any more.")
    parser.add_argument("a", type=seen_from_the_caller)
    parser.add_argument("b", type=seen_from_the_caller)
    a = parser.parse_args(words)
    before, after = read(file_of(a.a)), read(file_of(a.b))
    rows, gone = diff.diff(before, after), diff.gone(before, after)
    if not rows and not gone:
        raise BadInput(f"{a.a} and {a.b} have no row in common that counts, of the same work on the same machine")
    print("\n".join([*diff.lines(rows), *diff.verdicts(before, after, ASIDE).lines(), *diff.of_hosts(before, after), *(f"gone       {sentence}" for sentence in gone)]))
    return 1 if diff.is_slower(rows) or gone else 0


def tabulate(words):
    parser = Parser(f"{PROGRAM} tables", description="Writes the tables of records into a page of Markdown, between its marks, and the picture that "
                                                     "the page shows of them.")
    parser.add_argument("page", type=seen_from_the_caller, help="with <!-- results FOLDER --> and <!-- end of results --> for each folder, or the same of headline")
    parser.add_argument("folders", type=seen_from_the_caller, nargs="+", help="with a records.jsonl each")
    parser.add_argument("--check", action="store_true", help="change nothing; the exit status is 1 if something would change")
    a = parser.parse_args(words)
    try:
        wanted = {a.page: a.page.read_text()}  # and the pictures that it shows
    except (OSError, UnicodeDecodeError) as e:
        raise BadInput(f"{a.page} cannot be read: {getattr(e, 'strerror', None) or 'it is not text'}") from None
    for folder in a.folders:
        link = os.path.relpath(folder / "report.html", a.page.parent)
        records = read(file_of(folder))
        wanted[a.page] = tables.filled(wanted[a.page], folder.resolve().name, records, link)
        if os.path.relpath(folder / headline.PICTURE, a.page.parent) in wanted[a.page]:
            wanted[folder / headline.PICTURE] = headline.picture(records)
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_bytes() != text.encode()]
    for path in stale:
        if a.check:
            print(f"compare: {path} is not what the records say; call tables without --check", file=sys.stderr)
        else:
            write(path, wanted[path])
    return 1 if stale and a.check else 0


def check(words):
    parser = common(Parser(f"{PROGRAM} audit", description="Measures work of known cost; the exit status is 1 if the harness is off."))
    parser.add_argument("--break", dest="broken", choices=BREAKS, help="break one part on purpose, which must be found")
    parser.add_argument("--frameworks", nargs="+", metavar="FRAMEWORK", default=[], help="whose timer and ledger are audited as well as Plumbline's")
    a = parser.parse_args(words)
    engines = engines_of(a)
    names = some_of(a.frameworks, FRAMEWORKS, "--frameworks")
    if a.judge:
        return 0
    check_plumbline(engines)
    variants = [Variant(n, USUAL_MODE[n]) for n in ("plumbline", *names)]
    for name in ("fake", "another"):
        engines.programs[name], engines.modules[name] = sys.executable, "fake"
    findings = audit(engines, described(engines), a.broken, variants=variants)
    if not a.broken:
        findings += ledger(engines, variants)
    for f in findings:
        print(f"{'good' if f.passed else 'OFF '}  {f.name}: {f.text}")
    return 0 if all(f.passed for f in findings) else 1


def bring(words):
    return importing.run(Parser(f"{PROGRAM} import"), words, new_run)


COMMANDS = {"report": report, "diff": compare, "import": bring, "tables": tabulate, "audit": check}


def main(words):
    if words and words[0] in COMMANDS:
        return COMMANDS[words[0]](words[1:])
    return measure(words)


def program(words):
    """The exit status; what is wrong is one sentence."""
    try:
        return main(words)
    except (BadInput, BadRecord, BadTable, tables.NoPlace, Refused) as e:
        print(f"compare: {e}", file=sys.stderr)
        return 2
    except OSError as e:  # a full disk, where no other sentence says so
        print(f"compare: {e.filename or 'a file'} cannot be read or written: {e.strerror or e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as e:
        with contextlib.suppress(OSError):  # the terminal may be gone
            print("compare: interrupted; what was measured is kept, and the same command goes on", file=sys.stderr)
        return ending.status_of(e)


if __name__ == "__main__":
    ending.as_interrupts()
    sys.exit(program(sys.argv[1:]))
