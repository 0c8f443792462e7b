"""The documents' tables as records, for the page: imported ones, which are in no ratio with what was measured here."""

import hashlib
import pathlib

from ..records.importers.building import engine, record, subject
from . import IMAGES, accuracy, claims, epochs, transformers

NAME = "published"
COURSEWORK = "a coursework at Moscow State University, 2019"
BENCHMARK = "HuggingFace's benchmark of Transformers, 2019"
ENGINES = {"PyTorch": "torch", "TensorFlow": "tensorflow"}
VERSIONS = {"PyTorch": "1.3.0", "TensorFlow": "2.0"}


class Printed:
    """A document in the place of a file."""

    def __init__(self, title, run):
        self.path = pathlib.PurePath(title)
        self.run = {**run, "id": "import-" + hashlib.sha256(title.encode()).hexdigest()[:12]}


def records(run):
    yield from of_epochs(Printed(f"Table 2 of {COURSEWORK}", run))
    yield from of_accuracy(Printed(f"Table 3 of {COURSEWORK}", run))
    yield from of_transformers(Printed(BENCHMARK, run))


def of_epochs(source):
    table = epochs()
    wrong = set(claims.inconsistent(table).index)
    for row in table.itertuples():
        what = subject(NAME, "network", row.network.lower(), row.network.lower(), "train", batch=row.batch, optimizer=row.optimizer.lower())
        note = f"a step of an epoch of {row.epoch_s:g} s" + (
            f"; the {row.images_per_s} images a second that stand beside it are not {IMAGES:,} in that time" if row.Index in wrong else "")
        yield record(source, NAME, what, engine(ENGINES[row.framework]), median_s=row.epoch_s * row.batch / IMAGES, note=note,
                     rest={"epoch_s": row.epoch_s, "images_per_s": float(row.images_per_s)})


def of_accuracy(source):
    for (network, framework, optimizer, rate), run in accuracy().groupby(["network", "framework", "optimizer", "learning_rate"]):
        what = subject(NAME, "network", network.lower(), network.lower(), "train", batch=250, optimizer=optimizer.lower(),
                       attributes={"learning_rate": rate})
        if run["accuracy"].isna().all():
            yield record(source, NAME, what, engine(ENGINES[framework]), reason="it does not train, says the document")
            continue
        by_epoch = dict(zip(run["epoch"], run["accuracy"]))
        yield record(source, NAME, what, engine(ENGINES[framework]), accuracy=[by_epoch.get(e + 1) for e in range(max(by_epoch))],
                     note="on the training set")


def of_transformers(source):
    for row in transformers().dropna(subset="mean_s").itertuples():
        what = subject(NAME, "network", "transformers", "mean of all models, batches and lengths", "forward")
        yield record(source, NAME, what, engine(ENGINES[row.framework], row.mode, VERSIONS[row.framework], row.device), median_s=row.mean_s,
                     note="a mean, in which large inputs weigh most", environment={"processor": row.machine})
