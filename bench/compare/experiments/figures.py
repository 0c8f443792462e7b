"""The coursework's figures with this machine's lines: throughput by batch and by optimizer, accuracy by epoch."""

from ..published import accuracy, epochs
from ..report import pictures, verdict
from ..report.further import Further
from . import table2, table3

NAME = "figures"
COMPARES = False
MEASURED_BY = (table2.NAME, table3.NAME)  # it draws what these have measured
SHOWS = ("The document's four figures, drawn from its tables (dashed) and from what was measured here for table2 and table3: 1 and 2, throughput by batch "
         "with SGD; 3, AlexNet by optimizer; 4, VGG16's accuracy by epoch with RMSProp at 0.0001.")


def run(bench):
    """Measures nothing of its own."""
    table2.run(bench)
    table3.run(bench)


def throughput_lines(records, network, optimizer):
    """{name: [(batch, images a second)]}: the document's and this machine's."""
    table = epochs()
    own = table[(table.network.str.lower() == network) & (table.optimizer.str.lower() == optimizer)]
    lines = {f"{f}, 2019": list(zip(rows.batch, rows.images_per_s)) for f, rows in own.groupby("framework")}
    for row in verdict.rows(records, table2.NAME):
        s = row.subject
        if (s["name"], s["optimizer"]) == (network, optimizer):
            for name, record in {**{k: r for k, r in row.ours.items() if r}, **row.frameworks}.items():
                lines.setdefault(f"{name}, here", []).append((s["batch"], s["batch"] / record["median_s"]))
    return lines


def accuracy_lines(records, network, optimizer, rate):
    """{name: [(epoch, accuracy)]}."""
    table = accuracy()
    own = table[(table.network.str.lower() == network) & (table.optimizer.str.lower() == optimizer) & (table.learning_rate == rate)].dropna()
    lines = {f"{f}, 2019": list(zip(rows.epoch, rows.accuracy)) for f, rows in own.groupby("framework")}
    for r in records:
        s = r["subject"]
        if r["experiment"] == table3.NAME and r.get("accuracy") and (s["name"], s["optimizer"]) == (network, optimizer) and \
                s["attributes"].get("learning_rate") == rate:
            lines[f"{verdict.label(r)}, here"] = list(enumerate(r["accuracy"], 1))
    return lines


def report(records):
    figures = [pictures.lines(throughput_lines(records, network, "sgd"), "batch", "images a second", f"Figure {number}: {network}, SGD")
               for number, network in ((1, "alexnet"), (2, "vgg16"))]
    by_optimizer = {f"{name}, {optimizer}": points for optimizer in table2.RATES
                    for name, points in throughput_lines(records, "alexnet", optimizer).items() if not name.startswith(("vendor", "jax"))}
    figures.append(pictures.lines(by_optimizer, "batch", "images a second", "Figure 3: alexnet by optimizer"))
    by_epoch = accuracy_lines(records, "vgg16", "rmsprop", 1e-4)
    figures.append(pictures.lines(by_epoch, "epoch", "training accuracy", "Figure 4: vgg16, RMSProp, 0.0001", log=False))
    return Further(figures=figures)
