"""A session: workers that are alive, and problems that they do in turn, round by round."""

import concurrent.futures
import contextlib
import math
import statistics
import time

from ..ledger import ledger_of
from ..ledger.sampler import Sampler, Unavailable
from . import machine, steps, vendor_logs
from .agreement import agreement
from .engines import Variant
from .found import Measured, Plan  # noqa: F401: a session is asked with a plan
from .machine import Moment, elsewhere_s
from .processes import MOST_HUNG, Processes
from .statistics import MOST_SPREAD, spread
from .watch import LONG, Watch
from .worker import Refused

REFERENCE_FLOPS = 6e8  # up to here the reference is plain loops in f64; beyond, the vendor's kernels in f32
LEAST_ROUNDS = 3       # from which a ratio has an interval


class Session(Processes):
    """Makes problems, prepares them on every side, and lets the sides run in turn."""

    def __init__(self, engines, folder=None, alone=False, reference_flops=REFERENCE_FLOPS):
        super().__init__(engines, folder, alone)
        self.reference_flops, self.last_turn_s = reference_flops, 0.0

    def make(self, problem):
        """Files with the inputs and with the reference's results."""
        inputs, expected = self.folder / f"{problem.id()}.inputs", self.folder / f"{problem.id()}.expected"
        self.make_inputs(problem, inputs)
        self.make_expected(problem, inputs, expected)
        return inputs, expected

    def make_inputs(self, problem, inputs):
        # Every side of an op in bf16 rounds what it is given: the reference has the rounded numbers too, or the largest were another one.
        rounded = {n for n, t in problem.inputs.items() if t.classes == 0} if problem.kind == "op" and problem.dtype == "bf16" else set()
        tensors = {n: {"shape": list(t.shape), "low": t.low, "high": t.high, "classes": t.classes, "rounded": n in rounded - set(problem.f32_inputs)}
                   for n, t in problem.inputs.items()}
        request = {"file": str(inputs), "seed": 1, "inputs": tensors}
        if problem.kind == "network":
            request["network"], request["initial"] = problem.op, problem.initial
        self.oracle.ask("make", **request)

    def make_expected(self, problem, inputs, expected):
        told = problem.with_(dtype="f32").to_worker()
        # It runs once: no kernel is chosen for it by measuring.
        mode = "reference" if problem.kind == "op" and problem.flops <= self.reference_flops else "vendor heuristic"
        self.oracle.ask("prepare", job="reference", problem=told, mode=mode, inputs=str(inputs), results=str(expected))
        self.oracle.ask("drop", job="reference")

    def prepare(self, problem, variant, inputs, expected, inject=None):
        """Prepares the variant's job, and holds its results against the reference."""
        found = Measured(variant, (problem, inputs, expected, inject or {}))
        try:
            self.prepare_job(found)
        except Refused as refusal:
            self.refuse(found, refusal)
        return found

    def refuse(self, found, refusal):
        found.refusal = refusal
        self.hung[found.variant] += refusal.kind == "hung"

    def prepare_job(self, found):
        """The same of what is found already. Throws Refused."""
        (problem, inputs, expected, inject), variant, results = found.work, found.variant, self.folder / "results"
        try:
            if self.is_given_up(variant):
                raise Refused(f"{variant.name} is not asked any more: it did not reply {MOST_HUNG} times", "hung")
            missing = self.engines.missing_device()
            if missing:
                raise Refused(missing, "absent")
            found.worker = worker = self.worker(variant)
            found.hello = self.hello_of(variant, worker)
            self.broken.pop(self.key_of(variant), None)  # it can be started, whatever it may die of
            self.engines.check_device(worker.hello)
            found.prepared = worker.ask("prepare", job=variant.name, problem=problem.to_worker(), mode=variant.mode, inputs=str(inputs),
                                        results=str(results), inject=inject)
            found.agreement = agreement(results, expected, problem.compared_as, problem.dtype, inputs, problem.nodes)
        finally:
            results.unlink(missing_ok=True)

    def ready(self, found, plan):
        """Its worker, with the job in it: where another mode has ended the process, the job is prepared again in a new one, and its first turn
        thrown away. Throws Refused."""
        if found.worker.process.poll() is not None:
            self.prepare_job(found)
            if not found.agreement["agrees"]:
                raise Refused(found.agreement["reason"], "failed")
            self.turn(found, plan)
        return found.worker

    def turn(self, found, plan):
        """The reply. As many calls a sample as in the first turn that is kept, in whichever process."""
        samples = 1 if plan.samples * found.sample_s > plan.most_s / 10 else plan.samples
        least_s, least_calls = (0.0, found.replies[0]["calls"]) if found.replies else (plan.least_s, plan.least_calls)
        warm_s = plan.warm_s if found.sample_s < 10 * plan.warm_s else 0.0
        return found.worker.ask("run", job=found.variant.name, samples=samples, least_s=least_s, least_calls=least_calls, warm_s=warm_s,
                                warm_calls=plan.warm_calls)

    def run(self, found, plan, keep):
        """One turn of a variant: the others sleep meanwhile, or what it gives is not trusted."""
        worker = self.ready(found, plan)
        others = [w.process.pid for w in self.all_workers() if w is not worker]
        if self.last_turn_s > LONG:
            self.wait_for_sleep()
        before, start = Moment(), time.perf_counter()
        reply = self.turn(found, plan)
        seconds, after = time.perf_counter() - start, Moment()
        self.last_turn_s = seconds
        found.sample_s = reply["calls"] * reply["samples_s"][-1]
        if not keep:
            return
        found.ran_s += seconds
        found.rounds.append(reply["samples_s"])
        found.replies.append(reply)
        watch = Watch(seconds, sum(after.of(pid) - before.of(pid) for pid in others), *elsewhere_s(before, after))
        found.watched.append(watch)
        found.disturbed += watch.reasons()

    def wait_for_sleep(self, patience_s=2.0):
        """What a side frees behind its reply, after a long turn, must not meet the next one's."""
        pids, end = [w.process.pid for w in self.all_workers()], time.perf_counter() + patience_s
        used = None
        while time.perf_counter() < end:
            moment = Moment()
            now = sum(moment.of(pid) for pid in pids)
            if now == used:
                return
            used = now
            time.sleep(0.02)

    def run_in_turn(self, able, plan):
        """Rounds, and further ones while anything is spread too far: a burst of other work then is no quartile any more."""
        def goes_on(found):
            return found.refusal is None and (len(found.rounds) < LEAST_ROUNDS or found.ran_s < plan.most_s)

        def is_restless(found):
            return goes_on(found) and spread([s for r in found.rounds for s in r]) > MOST_SPREAD

        number = -plan.warm_up
        while number < plan.rounds or (number < plan.rounds * plan.patience and any(is_restless(f) for f in able)):
            turn = number % max(1, len(able))
            for found in able[turn:] + able[:turn]:
                if goes_on(found):
                    try:
                        self.run(found, plan, number >= 0)
                    except Refused as refusal:
                        self.refuse(found, refusal)
            number += 1

    def measure(self, problem, variants, plan):
        """[Measured], in the order of the variants: prepared one by one, then run in turn."""
        self.start_all(variants)
        try:
            inputs, expected = self.make(problem)
            trained = steps.expected_of(self, problem, variants, inputs)
        except Refused as refusal:
            return self.without_reference(problem, variants, refusal)
        all_found = []
        for v in variants:
            all_found.append(self.prepare(problem, v, inputs, expected))
            steps.hold(self, problem, all_found[-1], inputs, trained)
        able = [f for f in all_found if f.refusal is None and f.agreement["agrees"]]
        before = self.pulse()
        self.run_in_turn(able, plan)
        after = self.pulse()
        self.watch_short_turns(able)
        if self.engines.clock.is_slow(before, after):
            for found in able:
                found.disturbed += ["the processor's clock was slow"] * len(found.rounds)
        held_down = machine.held_down() if self.engines.device == "cuda" and able else []
        for found in able if held_down else ():
            found.disturbed += [f"the GPU's clock was held down: {', '.join(held_down)}"] * len(found.rounds)
        if plan.apart_s > 0:
            self.take_apart([f for f in able if f.refusal is None], plan)
        for found in all_found:
            if found.worker and found.worker.process.poll() is None:
                with contextlib.suppress(Refused):
                    found.worker.ask("drop", job=found.variant.name)
        if plan.logged:
            self.close_workers()  # a step more beside them might not fit into memory
            vendor_logs.keep(self, problem, [f for f in able if f.refusal is None], plan, inputs)
        for file in (inputs, expected, *trained.files.values()):
            file.unlink(missing_ok=True)
        return all_found

    def without_reference(self, problem, variants, refusal):
        """[Measured] of what there is no reference for: it may be too large for that alone. The next problem has one again."""
        for file in self.folder.glob(f"{problem.id()}.*"):
            file.unlink(missing_ok=True)
        self.renew_oracle()
        return [Measured(v, refusal=Refused(f"the reference cannot be computed: {refusal}", refusal.kind)) for v in variants]

    @staticmethod
    def watch_short_turns(able):
        """What no short turn tells by itself, all of a problem's may tell together: it disturbs each of them."""
        short = [w for found in able for w in found.watched if w.length <= LONG]
        for reason in sum(short, Watch()).reasons_together():
            for found in able:
                found.disturbed += [reason] * sum(w.length <= LONG for w in found.watched)

    def take_apart(self, able, plan):
        """Looks at each one's steps for a while, by itself, and reads what was seen when none is measured any more."""
        seen = []
        for number, found in enumerate(able):
            file = self.folder / f"{number}.seen"
            seconds = found.replies[0]["calls"] * statistics.median(s for r in found.rounds for s in r)
            try:
                worker = self.ready(found, plan)
                with Sampler(worker.process.pid, file):
                    samples = max(2, math.ceil(plan.apart_s / seconds))
                    reply = worker.ask("run", job=found.variant.name, samples=samples, least_s=plan.least_s)
                found.apart = reply
                seen.append((found, file, reply))
            except Unavailable as reason:
                found.ledger = str(reason)
            except Refused as refusal:
                found.ledger, found.apart_refusal = str(refusal), refusal
        pool = concurrent.futures.ThreadPoolExecutor(2)
        try:
            for (found, file, _), ledger in zip(seen, pool.map(lambda s: ledger_of(s[1], s[2]), seen)):
                found.ledger = ledger
                file.unlink(missing_ok=True)
        finally:
            pool.shutdown(cancel_futures=True)  # an interrupt waits for those that are being read, and for no others
