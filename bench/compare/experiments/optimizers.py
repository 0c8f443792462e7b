"""Updates alone, by the three conventions' formulas: as a chain of ops, a kernel a tensor, and one pass over all parameters."""

from ..measuring.engines import Variant
from ..measuring.session import Plan
from ..problems.updates import ARRAYS, CONVENTIONS, OPTIMIZERS, update_problem
from ..report import verdict
from ..report.further import Further, Table

NAME = "optimizers"
SHOWS = ("An optimizer's update without the training around it, on a network's parameters. It does next to no arithmetic, so that "
         "the floor is the time in which its bytes can be copied: an update that makes n passes takes about n times as long. A chain of "
         "ops writes every intermediate result to memory; a kernel a tensor does not; one pass over all parameters also starts but once. "
         "Every side was held against Plumbline, after three steps, in the formula and with the defaults of its own framework.")

OURS = ("best fused", "best per_tensor", "best chain")
# Which ways a framework has by whose formula: TensorFlow has the kernels of tf.compat.v1, and Keras's formulas, which are ops.
WAYS = {("torch", "pytorch"): ("chain", "foreach", "fused"), ("tensorflow", "keras"): ("chain", "function", "xla"),
        ("tensorflow", "tensorflow1"): ("per_tensor",), **{("jax", c): ("chain", "per_tensor", "fused") for c in CONVENTIONS},
        ("fake", "pytorch"): ("good",)}


def variants(bench):
    """The function of a problem that gives its variants: those that have its convention."""
    def of(problem):
        convention = problem.nodes[0]["attributes"]["convention"]
        theirs = [Variant(f, way) for f in bench.frameworks for way in WAYS.get((f, convention), ())]
        return [Variant("plumbline", mode) for mode in OURS] + theirs
    return of


def run(bench):
    problems = [update_problem(network, optimizer, convention) for network in (("vgg16", "alexnet") if bench.full else ("vgg16",))
                for optimizer in OPTIMIZERS for convention in CONVENTIONS]
    plan = Plan(rounds=9, samples=3) if bench.full else Plan(rounds=5, samples=2)
    bench.measure_all(NAME, problems, variants(bench), plan)


def passes(record):
    """How many times as long as copying its bytes once."""
    return 1 / record["roof_share"]


def report(records):
    measured = [r for r in records if r["experiment"] == NAME and verdict.counts(r) and r.get("roof_share")]
    engines = list(dict.fromkeys(verdict.label(r) for r in measured))
    rows = {}
    for r in measured:
        rows.setdefault((r["subject"]["name"], r["subject"]["problem"]), {})[verdict.label(r)] = r
    table = Table("Time, in times of what copying its bytes takes", ["update", *engines],
                  [[f"{optimizer} {problem}", *(f"{passes(r[e]):.1f}" if e in r else "–" for e in engines)]
                   for (optimizer, problem), r in rows.items()],
                  f"Bytes: {', '.join(f'{ARRAYS[o]} arrays of the parameters for {o}' for o in ARRAYS)}, each moved once.")
    asked = sorted({(r["engine"]["name"], r["subject"]["attributes"]["convention"]) for r in measured})
    return Further(verdict=[s for pair in asked if (s := sentence(*pair, measured))], tables=[table] if rows else [])


def sentence(engine, convention, measured):
    """What each way of an engine takes by one convention's formulas, over the updates that have them all; None if there is no such update."""
    rows, ways = {}, {}
    for r in measured:
        if (r["engine"]["name"], r["subject"]["attributes"]["convention"]) == (engine, convention):
            way = verdict.label(r).partition(" ")[2]
            rows.setdefault(f"{r['subject']['name']} {r['subject']['problem']}", {})[way] = passes(r)
            ways[way] = None
    paired = [r for r in rows.values() if r.keys() == ways.keys()]
    if not paired:
        return None
    means = sorted((verdict.geometric_mean([r[way] for r in paired]), way) for way in ways)
    count = f"{len(paired)} update{'s' if len(paired) > 1 else ''} that all have"
    text = f"{engine}, {convention}'s formulas, {count}: " + ", ".join(f"{way} takes {mean:.1f} times the floor" for mean, way in means)
    lacking = [f"{name}, without {' and '.join(w for w in ways if w not in r)}" for name, r in rows.items() if r.keys() != ways.keys()]
    return text + (f"; left out: {'; '.join(lacking)}" if lacking else "")
