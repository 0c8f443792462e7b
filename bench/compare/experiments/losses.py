"""Whether training goes where a framework's goes: the losses of several steps from the same weights."""

import copy
import math

from ..measuring.engines import USUAL_MODE, Variant
from ..measuring.losses import MARGIN, ROUNDINGS, distances, judged, record_of
from ..measuring.session import Measured, Plan, Session
from ..measuring.training import patience_s
from ..measuring.worker import Refused
from ..problems.networks import network_problem
from ..records.of_measured import not_available
from ..report.further import Further, Table
from ..report.verdict import label, name_of

NAME = "losses"
SHOWS = ("The losses of training steps from the same weights on the same batch. Each framework runs twice, with one thread and with more: "
         "sums in another order are all that differs, and how far that takes the two runs apart is what \"the same\" can mean. Plumbline by a "
         "framework's formulas and defaults, with its own kernels and with the vendor's alone, may be as far from it, times "
         f"{MARGIN}; at no step is less asked than {ROUNDINGS:g} of the loss, sixteen roundings of f32.")
COMPARES = False  # it times nothing

CONVENTION = {"torch": "pytorch", "tensorflow": "keras", "jax": "pytorch"}  # whose formulas Plumbline takes beside a framework
RATES = {"sgd": 0.01, "adam": 1e-4, "rmsprop": 1e-4}


def problems(full):
    for network in ("vgg16", "alexnet") if full else ("vgg16",):
        for optimizer, rate in RATES.items():
            yield network_problem(network, 50 if full else 10, optimizer=optimizer, learning_rate=rate)


def ours(framework):
    """Its own kernels where it has any, and the vendor's alone; none of them by measuring, which would find others from run to run."""
    return [Variant("plumbline", f"{kernels} nhwc {CONVENTION.get(framework, 'pytorch')}") for kernels in ("heuristic", "vendor heuristic")]


def theirs(framework):
    return Variant(framework, USUAL_MODE.get(framework, "good"))


def with_one_thread(engines):
    one = copy.copy(engines)
    one.threads = 1
    return one


def losses_of(session, problem, variant, files, steps):
    """(losses, what was found of the variant); throws Refused where there are none."""
    found = session.prepare(problem, variant, *files)
    if found.refusal:
        raise found.refusal
    if not found.agreement["agrees"]:
        raise Refused(found.agreement["reason"], "failed")
    worker = session.worker(variant)
    worker.patience_s = patience_s(found, steps)
    losses = worker.ask("losses", job=variant.name, steps=steps)["losses"]
    worker.ask("drop", job=variant.name)
    bad = next((i for i, loss in enumerate(losses) if loss is None or not math.isfinite(loss)), None)  # None: JSON has no NaN
    if bad is not None:
        raise Refused(f"the loss of step {bad + 1} is not finite", "failed")
    return losses, found


def beside(bench, sessions, problem, framework, steps):
    """Records of a framework and of Plumbline by its convention."""
    many, one = sessions
    theirs_, (best, vendor) = theirs(framework), ours(framework)
    at = Variant("plumbline", "reference")
    try:
        files = many.make(problem)
        at = theirs_
        once, their_found = losses_of(many, problem, theirs_, files, steps)
        again, _ = losses_of(one, problem, theirs_, files, steps)
        at = best
        own, own_found = losses_of(many, problem, best, files, steps)
        at = vendor
        own_again, vendor_found = losses_of(many, problem, vendor, files, steps)
    except Refused as refusal:
        reason = f"{at.name}: {refusal}"
        return [not_available(Measured(v, refusal=refusal), problem, NAME, bench.run, bench.environment, reason) for v in (theirs_, best, vendor)]
    roundings = distances(once, again)
    itself = {"agrees": True, "error": distances(once, again)[-1], "tolerance": None,
              "reason": f"its own run with one thread; this one has {bench.engines.threads}"}
    sides = [(their_found, once, itself), (own_found, own, judged(once, own, roundings, theirs_.name)),
             (vendor_found, own_again, judged(once, own_again, roundings, theirs_.name))]
    return [record_of(found, problem, NAME, bench.run, bench.environment, losses, held) for found, losses, held in sides]


def run(bench):
    steps = 200 if bench.full else 20
    todo = [(p, f) for p in problems(bench.full) for f in bench.frameworks
            if not bench.has(NAME, p, [theirs(f), *ours(f)])]
    plan = Plan(rounds=1, samples=steps, least_s=0.0, warm_up=0)
    if bench.foresees(bench.seconds_of(p, 2 * [theirs(f)] + ours(f), plan, alone=True) for p, f in todo):
        return
    for problem, framework in todo:
        with bench.session() as many, Session(with_one_thread(bench.engines)) as one:
            for record in beside(bench, (many, one), problem, framework, steps):
                bench.store.add(record)


def report(records):
    measured = [r for r in records if r["status"] == "measured"]
    rows = []
    for r in measured:
        c, losses = r["correctness"], r["losses"]
        bound = "–" if c["tolerance"] is None else f"{c['tolerance']:.1e}"
        rows.append([name_of(r["subject"]), label(r), len(losses), f"{losses[0]:.6f}", f"{losses[-1]:.6f}",
                     (f"{c['error']:.1e}", "" if c["agrees"] else "slower"), bound, c.get("reason") or ""])
    sentences = [f"{name_of(r['subject'])}, {label(r)}: {r['correctness'].get('reason')}" for r in measured if not r["correctness"]["agrees"]]
    held = [r for r in measured if r["correctness"]["tolerance"] is not None]
    if held and not sentences:
        sentences = [f"{len(held)} runs of Plumbline have the losses of the framework beside them, as far as roundings allow."]
    columns = ["training", "side", "steps", "first loss", "last loss", "apart", "allowed", "from what"]
    return Further(verdict=sentences, tables=[Table("Losses, and the largest distance at any step", columns, rows)] if rows else [])
