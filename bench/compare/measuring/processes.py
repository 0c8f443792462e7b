"""The workers of a session as processes: one for each engine and allocator, started when it is asked for, and the oracle."""

import collections
import contextlib
import pathlib
import shutil
import tempfile

from .engines import Variant
from .worker import Refused, Worker

MOST_HUNG = 2  # of a variant, each of which costs as long as a reply is waited for


class Processes:
    """Keeps a worker for each engine and allocator, or for each variant if they are to be told apart by memory."""

    def __init__(self, engines, folder=None, alone=False):
        self.engines, self.alone = engines, alone
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="compare-", dir=folder))
        self.workers, self.broken, self.hung = {}, {}, collections.Counter()  # hung: replies of a variant that did not come
        self.oracle = self.start("oracle", Variant("plumbline", "reference"), "cpu")

    def start(self, key, variant, device=None, **settings):
        words, environment = self.engines.with_settings(**settings).command(variant, device)
        name = "-".join(key) if isinstance(key, tuple) else key
        return Worker(words, environment, self.folder / f"{name.replace(' ', '_')}.log")

    def key_of(self, variant):
        return (variant.engine, variant.allocator) + ((variant.mode,) if self.alone else ())

    def worker(self, variant):
        """The worker of a variant, started when it is first asked for; one that has died is started once more."""
        key = self.key_of(variant)
        if not self.engines.has(variant.engine):
            raise Refused(f"{variant.engine} is not installed", "absent")
        worker = self.workers.get(key)
        if worker is None or worker.process.poll() is not None:
            if self.broken.get(key, 0) > 1:
                why = f": {worker.last_words()}" if worker else ""
                raise Refused(f"{variant.engine} cannot be started{why}", "absent")
            self.broken[key] = self.broken.get(key, 0) + 1
            self.workers[key] = worker = self.start(key, variant)
        return worker

    def start_all(self, variants):
        """Starts the workers beside each other, since a framework takes seconds. What refuses is told again when it is prepared."""
        for how in (self.worker, lambda v: self.hello_of(v, self.worker(v))):
            for v in variants:
                if not self.is_given_up(v):
                    with contextlib.suppress(Refused):
                        how(v)

    def all_workers(self):
        return [self.oracle, *self.workers.values()]

    def renew_oracle(self):
        """Starts another where it has died; if none can be started, what it is asked next says so."""
        if self.oracle.process.poll() is not None:
            self.oracle.close()
            with contextlib.suppress(Refused):
                self.oracle = self.start("oracle", Variant("plumbline", "reference"), "cpu")

    def pulse(self):
        """What the oracle's additions take now, in seconds; None where it has died, and there is another from then on."""
        try:
            return self.oracle.ask("pulse")["seconds"]
        except Refused:
            self.renew_oracle()
            return None

    def roofs(self):
        """Those of the GPU, as Plumbline measures them; the host's if there is none, or none is asked for. A run begins with them, and so
        with its first pulse."""
        self.engines.clock.is_slow(self.pulse())
        if self.engines.device == "cuda" and self.engines.missing_device() is None:
            with contextlib.suppress(Refused):
                return self.worker(Variant("plumbline", "best")).ask("roofs")
        return self.oracle.ask("roofs")

    def is_given_up(self, variant):
        """Whether it has hung too often to be waited for again."""
        return self.hung[variant] >= MOST_HUNG

    def hello_of(self, variant, worker):
        """What it says when it is ready. One that never is was not there, whatever it has died of."""
        try:
            return worker.hello
        except Refused as refusal:
            self.hung[variant] += refusal.kind == "hung"
            raise Refused(str(refusal), "absent") from None

    def close_workers(self):
        """Ends all workers but the oracle, and what memory they hold."""
        for worker in self.workers.values():
            worker.end()
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()
        self.broken.clear()

    def close(self):
        try:
            self.close_workers()
            self.oracle.close()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
