"""Table 2 of the coursework, measured again: an epoch's time and images a second by network, optimizer and batch."""

from ..measuring.engines import Variant
from ..measuring.session import Plan
from ..measuring.statistics import ratio_of
from ..problems.networks import network_problem
from ..published import IMAGES, claims, epochs
from ..report import verdict
from ..report.further import Further, Table
from .memory import fitting

NAME = "table2"
SHOWS = (f"A coursework of 2019 timed epochs of {IMAGES:,} images in TensorFlow and PyTorch on a GPU. Here are its numbers beside those of this machine: "
         "an epoch is as many measured steps as it has batches (on a processor of 250 and 500 images; --batch measures others). The absolute times are "
         "of other hardware; what can be held against the document is who is ahead, and by how much.")

PLAN = Plan(rounds=3, samples=1, least_s=0.0)
RATES = {"sgd": 0.01, "adam": 1e-4, "rmsprop": 1e-4}  # at which the networks train; they do not change the time
BATCHES = (250, 500, 1000, 2000, 5000)
BATCHES_ON_A_PROCESSOR = (250, 500)  # where a step of 5000 images takes a minute, and the cells beyond these nearly a day


def problems(bench):
    """The 30 cells of each side; on a processor the smaller ones, those of batch 250 in the quick comparison, or what the user asks for."""
    whole = BATCHES_ON_A_PROCESSOR if bench.engines.device == "cpu" else BATCHES
    for network in ("alexnet", "vgg16"):
        for optimizer, rate in RATES.items():
            for batch in bench.batches or (whole if bench.full else BATCHES[:1]):
                yield network_problem(network, batch, optimizer=optimizer, learning_rate=rate)


def run(bench):
    variants = [Variant("plumbline", mode) for mode in ("best auto", "vendor auto")] + bench.variants_of_frameworks()
    chosen = fitting(problems(bench), lambda problem: variants, lambda problem, _, reason: bench.leave_out(NAME, problem, variants, reason),
                     smaller_batches=(), device=bench.engines.device)
    bench.measure_parties(NAME, chosen, PLAN, alone=True)


def epoch_s(record):
    return record["median_s"] * IMAGES / record["subject"]["batch"]


def printed(network, optimizer, batch):
    """{framework: (epoch's seconds, images a second, whether these agree)} of the document."""
    table = epochs()
    wrong = set(claims.inconsistent(table).index)
    rows = table[(table.network.str.lower() == network) & (table.optimizer.str.lower() == optimizer) & (table.batch == batch)]
    return {r.framework: (r.epoch_s, r.images_per_s, r.Index not in wrong) for r in rows.itertuples()}


def cell(seconds, rate, agrees=True):
    text = f"{seconds:.4g} s, {rate:.0f}/s"
    return text if agrees else (text + " (misprint: they do not fit)", "slower")


def report(records):
    rows = sorted(verdict.rows(records, NAME), key=lambda r: (r.subject["name"], r.subject["optimizer"], r.subject["batch"]))
    names = sorted({n for r in rows for n in r.frameworks})
    lines = []
    for row in rows:
        s = row.subject
        paper = printed(s["name"], s["optimizer"], s["batch"])
        line = [f"{s['name']}, {s['optimizer']}, batch {s['batch']}"]
        line += [cell(*paper[f]) if f in paper else "–" for f in ("TensorFlow", "PyTorch")]
        for record in [row.ours.get("vendor"), row.ours.get("best"), *(row.frameworks.get(n) for n in names)]:
            line.append(cell(epoch_s(record), s["batch"] / record["median_s"]) if record else "N/A")
        lines.append(line)
    columns = ["", "TensorFlow, 2019", "PyTorch, 2019", "vendor, here", "best, here", *(f"{n}, here" for n in names)]
    return Further(verdict=sentences(rows), tables=[Table("An epoch's time, and images a second", columns, lines)])


def sentences(rows):
    """What the document says of its two frameworks, beside what they do here."""
    for network, title in (("alexnet", "AlexNet"), ("vgg16", "VGG16")):
        both = [r.frameworks for r in rows if r.subject["name"] == network and {"torch", "tensorflow"} <= r.frameworks.keys()]
        both = [f for f in both if verdict.turn_of(f["torch"]) == verdict.turn_of(f["tensorflow"])]
        said = claims.framework_ratios(epochs()).loc[title]
        text = f"{title}: the document's PyTorch takes {said['mean']:.2f} ({said['min']:.2f}–{said['max']:.2f}) times as long as its TensorFlow"
        if both:
            ratios = [ratio_of(f["tensorflow"]["rounds_s"], f["torch"]["rounds_s"]).value for f in both]
            text += f"; here, each in its fastest mode, {sum(ratios) / len(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}), in {len(ratios)} cells"
        yield text + "."
