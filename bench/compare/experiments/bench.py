"""What an experiment measures with: the engines, the records, and how long it may take."""

import dataclasses
import math

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ..measuring import training
from ..measuring.engines import Variant
from ..measuring.session import REFERENCE_FLOPS, Measured, Plan, Session
from ..measuring.vendor_logs import is_logged
from ..measuring.worker import Refused
from ..records.of_measured import record_of

# The modes that users of a framework have, the usual ones first.
USUAL_MODES = {"torch": ("eager", "channels_last"), "tensorflow": ("function",), "jax": ("jit",)}
USUAL_MODES_OF_OPS = {**USUAL_MODES, "tensorflow": ("eager", "function")}  # to call a function takes longer than many an op
USUAL_ALLOCATORS = (("torch", "channels_last"),)  # whose users change it, and gain much
MODES = {"torch": ("eager", "channels_last", "compile", "compile_channels_last"), "tensorflow": ("eager", "function", "xla"),
         "jax": ("jit",)}
ON_GPU = {"torch": ("reduce_overhead", "reduce_overhead_channels_last")}  # those that are others' elsewhere

BETWEEN_TURNS_S = 0.003  # to look whether anything else ran, and to sleep and wake
CHOICE_RUNS = 100        # of all ways together, where the fastest of them is chosen
CHOICE_S = 0.4           # for a choice, at most
PER_NUMBER_S = 1.8e-8    # to make one of a side's numbers, load it, write it and compare it


def modes_of(framework, device):
    return MODES.get(framework, ("good",)) + (ON_GPU.get(framework, ()) if device == "cuda" else ())


@dataclasses.dataclass
class Bench:
    engines: object
    frameworks: tuple
    store: object
    run: dict
    environment: dict
    console: object
    full: bool = False
    shapes: object = None    # a file of the user's problems
    batches: tuple = ()      # that the user asks for, in the place of those of the comparison
    networks: tuple = ()     # the same
    every_mode: bool = False  # of the frameworks, in every row
    asked_dtypes: tuple = ()  # as batches
    asked_modes: tuple = ()  # as batches; a framework that has none of them has its usual ones
    reference_flops: float = REFERENCE_FLOPS
    foreseen: list = None    # seconds, as far as they can be told; where it is a list nothing is measured

    def asked_often(self, problems):
        """The ids of the rows that the quick comparison has too; `problems` is a function of a bench."""
        return {p.id() for p in problems(dataclasses.replace(self, full=False))}

    def variants_of_frameworks(self, asked_often=False, usual=USUAL_MODES):
        """Every framework in its usual modes; in all, with tcmalloc and without, in those rows of a full comparison that are asked for
        often: compiling each of some thousand ops by itself would take days."""
        every_mode = self.every_mode or (self.full and asked_often)
        others = ("tcmalloc",) if self.engines.tcmalloc else ()
        return [Variant(f, mode, allocator) for f in self.frameworks for mode in self.modes(f, every_mode, usual)
                for allocator in ("", *(others if every_mode or (f, mode) in USUAL_ALLOCATORS else ()))]

    def modes(self, framework, every_mode, usual):
        every = modes_of(framework, self.engines.device)
        return tuple(m for m in every if m in self.asked_modes) or (every if every_mode else usual.get(framework, ("good",)))

    def dtypes(self):
        """Those of the comparison: bf16 in full, where the processor computes in it and does not only store it."""
        if self.asked_dtypes:
            return self.asked_dtypes
        has_bf16 = self.environment["bf16_gflops"] > 1.2 * self.environment["f32_gflops"]
        return ("f32", "bf16") if self.full and has_bf16 else ("f32",)

    def some_batches(self):
        """Those of the comparison, what takes longest last."""
        return self.batches or ((32, 1, 250) if self.full else (32,))

    def session(self, alone=False):
        return Session(self.engines, alone=alone, reference_flops=self.reference_flops)

    def has(self, experiment, problem, variants):
        """Whether that need not be measured again."""
        return self.store.has(experiment, problem.id(), variants, self.environment, self.engines)

    def foresees(self, seconds):
        """Whether nothing is measured now, but foreseen to take so many seconds (a list of them)."""
        if self.foreseen is None:
            return False
        self.foreseen += seconds
        return True

    def seconds_of(self, problem, variants, plan, alone):
        """What a problem may take: half of the roofs for the work itself, three times as long where a framework does it, and what it takes
        to start, compile, choose kernels, look around between turns, compare results, take apart and log."""
        roof = self.environment["bf16_gflops" if problem.dtype == "bf16" else "f32_gflops"]
        step = max(2 * problem.flops / roof, 4 * problem.bytes / self.environment["copy_gbytes"]) / 1e9 + 2e-5
        turns = (plan.rounds + plan.warm_up) * math.sqrt(plan.patience)  # of one more often restless than not
        numbers = problem.bytes / (2 if problem.dtype == "bf16" else 4)
        layers = max(1, len(problem.nodes))  # of a network many are alike: a choice each, and not for each direction
        choices = 3 if problem.kind == "op" and problem.direction != "forward" else layers
        choosing = choices * (0.02 + min(CHOICE_S, CHOICE_RUNS * step / layers))
        seconds = 0.1 + PER_NUMBER_S * numbers * len(variants)
        for v in variants:
            seconds += choosing if v.engine == "plumbline" else 0
            own = step if v.engine == "plumbline" else 3 * step
            turn = BETWEEN_TURNS_S + plan.warm_s + (plan.samples * plan.least_calls + plan.warm_calls) * max(own, plan.least_s)
            start = (4 if alone else 0.05) + (30 if v.mode.startswith(("compile", "reduce_overhead", "xla")) else 0) * (1 if problem.kind == "network" else 0.1)
            seconds += start + 2 * own + min(turns * turn, max(plan.most_s, 5 * plan.samples * own)) + (2 * max(own, plan.apart_s) + 3 if plan.apart_s else 0)
            seconds += start + (2 + plan.logged) * own if is_logged(v, plan) else 0
        return seconds

    def train(self, experiment, problem, variants, images, epochs, scored):
        """Trains each variant on the same images in the same order, and records its accuracy on the first `scored` after each epoch.
        `images` is a function that writes them to a file; it may raise problems.images.NoData."""
        todo = [v for v in variants if not self.has(experiment, problem, [v])]
        plan = Plan(rounds=epochs * dict(problem.about)["images"] // problem.batch, samples=1)
        if self.foresees(self.seconds_of(problem, [v], plan, True) for v in todo) or not todo:
            return
        with self.session(alone=True) as session:
            for variant in todo:
                self.console.print(f"{experiment}: {problem.op}, {dict(problem.about)}: {variant.name}", highlight=False)
                found, epochs_ = training.train(session, problem, variant, images, epochs, scored)
                self.store.add(training.record_of(found, epochs_, problem, experiment, self.run, self.environment))
                session.close_workers()

    def leave_out(self, experiment, problem, variants, reason):
        """A row that says why, for each variant of work that is not begun."""
        if self.foresees(()) or self.store.has(experiment, problem.id(), variants, self.environment):
            return
        for v in variants:
            found = Measured(v, refusal=Refused(reason, "memory"))
            self.store.add(record_of(found, problem, experiment, self.run, self.environment))

    def measure_all(self, experiment, problems, variants, plan=None, alone=False):
        """Measures what is not in the records yet; `variants` is a function of the problem."""
        self.measure_parties(experiment, [(p, [variants(p)]) for p in problems], plan, alone)

    def measure_parties(self, experiment, work, plan=None, alone=False):
        """The same of [(problem, [variants of a turn])], where not all sides of a problem fit into memory at once."""
        once = {(p.id(), turn): (p, turn, party) for p, parties in work for turn, party in enumerate(parties)}
        todo = [(p, turn, party) for p, turn, party in once.values() if not self.has(experiment, p, party)]
        plan = plan or Plan()
        if self.foresees(self.seconds_of(p, party, plan, alone) for p, _, party in todo) or not todo:
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with self.session(alone) as session, Progress(*columns, console=self.console, transient=True) as progress:
            task = progress.add_task(experiment, total=len(todo))
            for problem, turn, party in todo:
                progress.update(task, description=f"{experiment}: {problem.op} {problem.name} {problem.direction}")
                run = {**self.run, "turn": turn} if turn else self.run
                for found in session.measure(problem, party, plan):
                    self.store.add(record_of(found, problem, experiment, run, self.environment))
                if alone:
                    session.close_workers()
                progress.advance(task)
