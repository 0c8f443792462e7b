"""Steps of which the vendor's libraries keep their own logs, in workers that do nothing else: the libraries read what turns logging on
when they are first used, and writing the log takes time."""

import contextlib
import statistics

from ..ledger.vendor_log import SETTINGS, is_kept, vendor_log_of
from .worker import Refused

COMPILED = ("compile", "compile_channels_last", "reduce_overhead", "reduce_overhead_channels_last", "xla", "jit")  # modes
LEFT_OUT = "it would be compiled once more for its log, as --full does"


def is_logged(variant, plan):
    """Under another allocator a mode calls the same kernels, and is not logged again."""
    return plan.logged > 0 and not variant.allocator and (plan.logs_compiled or variant.mode not in COMPILED)


def keep(session, problem, able, plan, inputs):
    """Gives each Measured its vendor_log. The modes of an engine follow each other in one worker, a job at a time."""
    chosen, workers = [f for f in able if is_logged(f.variant, plan)], {}
    for found in able:
        if found.variant.mode in COMPILED and not plan.logs_compiled:
            found.vendor_log = LEFT_OUT
    with contextlib.ExitStack() as stack:
        for engine, variant in {f.variant.engine: f.variant for f in chosen}.items():  # they start beside each other
            with contextlib.suppress(Refused):
                workers[engine] = stack.enter_context(session.start(("log", engine), variant, **SETTINGS))
        for found in chosen:
            engine = found.variant.engine
            try:
                if engine not in workers:
                    raise Refused(f"{engine} cannot be started", "absent")
                found.vendor_log = log_of(workers[engine], problem, found.variant, plan.logged, inputs, session.folder / "results")
            except Refused as reason:
                found.vendor_log = str(reason)


def log_of(worker, problem, variant, steps, inputs, results):
    """The log of some steps after a warm one; a sentence where there is none."""
    try:
        worker.ask("prepare", job=variant.name, problem=problem.to_worker(), mode=variant.mode, inputs=str(inputs), results=str(results))
        worker.ask("run", job=variant.name, samples=1, least_s=0.0)
        start = worker.log.stat().st_size  # a worker writes out what its libraries have printed before it replies
        reply = worker.ask("run", job=variant.name, samples=steps, least_s=0.0)
        text = worker.log.read_bytes()
    finally:
        results.unlink(missing_ok=True)
        with contextlib.suppress(Refused):
            worker.ask("drop", job=variant.name)
    log = vendor_log_of(text[start:].decode(errors="replace"), steps, statistics.mean(reply["samples_s"]))
    if log.rows:
        return log
    return "neither oneDNN nor MKL was called" if is_kept(text.decode(errors="replace")) else "its libraries keep no log, as oneDNN and MKL would"
