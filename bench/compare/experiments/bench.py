"""What an experiment measures with: the engines, the records, and how long it may take."""

import dataclasses

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ..measuring.engines import Variant
from ..measuring.session import Plan, Session
from ..records.of_measured import record_of

# The modes that users of a framework have, the usual ones first: those of the quick comparison.
QUICK_MODES = {"torch": ("eager", "channels_last"), "tensorflow": ("function",), "jax": ("jit",)}
MODES = {"torch": ("eager", "channels_last", "compile", "compile_channels_last"), "tensorflow": ("eager", "function", "xla"),
         "jax": ("jit",)}


@dataclasses.dataclass
class Bench:
    engines: object
    frameworks: tuple
    store: object
    run: dict
    environment: dict
    console: object
    full: bool = False
    shapes: object = None  # a file of the user's problems

    def variants_of_frameworks(self):
        """Every framework in its modes, with tcmalloc and without."""
        modes = MODES if self.full else QUICK_MODES
        allocators = ("", "tcmalloc") if self.engines.tcmalloc else ("",)
        return [Variant(f, mode, allocator) for f in self.frameworks for mode in modes.get(f, ("good",)) for allocator in allocators]

    def session(self, alone=False):
        return Session(self.engines, alone=alone)

    def measure_all(self, experiment, problems, variants, plan=None, alone=False):
        """Measures what is not in the records yet; `variants` is a function of the problem."""
        todo = [p for p in problems if not self.store.has(experiment, p.id())]
        if not todo:
            return
        plan = plan or Plan()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with self.session(alone) as session, Progress(*columns, console=self.console, transient=True) as progress:
            task = progress.add_task(experiment, total=len(todo))
            for problem in todo:
                progress.update(task, description=f"{experiment}: {problem.op} {problem.name} {problem.direction}")
                for found in session.measure(problem, variants(problem), plan):
                    self.store.add(record_of(found, problem, experiment, self.run, self.environment))
                if alone:
                    session.close_workers()
                progress.advance(task)
