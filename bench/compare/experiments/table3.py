"""Table 3 of the coursework, trained again: accuracy by epoch, from the same initial weights on the same images in the same order."""

import dataclasses
import functools
import math

from ..measuring.engines import Variant
from ..problems import images
from ..problems.networks import network_problem
from ..published import CLASSES, accuracy
from ..records import machine_of
from ..report import verdict
from ..report.further import Further, Table

NAME = "table3"
COMPARES = False  # it is not about time
SHOWS = ("A coursework of 2019 printed training accuracies of TensorFlow and PyTorch, and left cells blank where a network \"does not train\". Here "
         "every side starts from the same weights and sees the same images in the same order; what differs is one thing at a time: whose initial "
         "weights (PyTorch's or Keras's distribution), whose formula of the optimizer, pixels up to 1 or up to 255. Accuracy is that on the "
         "first images of the training set, after each epoch.")

EPOCHS, BATCH = 5, 250
QUICK_IMAGES, SCORED = 10_000, 5_000
SIDES = [Variant("plumbline", "best captured auto pytorch"), Variant("plumbline", "best captured auto keras"), Variant("torch", "channels_last", "tcmalloc"),
         Variant("tensorflow", "function"), Variant("jax", "jit")]


@dataclasses.dataclass(frozen=True)
class Cell:
    """A training: what the document's table has, and what it does not say."""

    network: str
    optimizer: str
    rate: float
    initial: str = "pytorch"  # whose distribution the first weights have
    top: int = 1              # the brightest pixel

    def problem(self, count, epochs, batch=BATCH):
        p = network_problem(self.network, batch, optimizer=self.optimizer, learning_rate=self.rate)
        about = {"learning_rate": self.rate, "initial": self.initial, "pixels": f"0 to {self.top}", "images": count, "epochs": epochs}
        return p.with_(about=tuple(about.items()), initial=self.initial)


NAMED = [Cell("alexnet", "sgd", 0.01, top=255), Cell("alexnet", "sgd", 0.01, initial="keras", top=255), Cell("alexnet", "sgd", 0.01),
         Cell("alexnet", "sgd", 0.01, initial="keras"),  # minutes each; a framework may take an hour for one of these:
         Cell("vgg16", "adam", 1e-3), Cell("vgg16", "adam", 1e-3, initial="keras")]


def cells(all_of_them):
    """All of the document's with each side's initial weights, or the named ones."""
    if not all_of_them:
        return NAMED
    return [Cell(network, optimizer, rate, initial, top) for network in ("alexnet", "vgg16") for optimizer in ("sgd", "adam", "rmsprop")
            for rate in (0.01, 0.001, 0.0001) for initial in ("pytorch", "keras") for top in (1, 255)]


def run(bench):
    sides = [s for s in SIDES if s.engine in ("plumbline", *bench.frameworks)]
    sides = [s if bench.engines.tcmalloc else dataclasses.replace(s, allocator="") for s in sides]
    whole = bench.full and bench.engines.device == "cuda"  # on a processor that takes months
    limit, epochs = (50_000, 30) if whole else (QUICK_IMAGES, EPOCHS)
    for cell in cells(whole):
        bench.train(NAME, cell.problem(limit, epochs), sides, functools.partial(images.write, cell.network, cell.top, limit), epochs, SCORED)


def trains(values, classes):
    """Whether a training rises above guessing, and a word for the reason if it does not."""
    if any(v is None or math.isnan(v) for v in values):
        return False, "the loss is not finite"
    chance = 1 / classes
    most = chance + 5 * math.sqrt(chance * (1 - chance) / SCORED)
    return (True, "") if max(values) > most else (False, f"never above {most:.3f}, which guessing may reach")


def text_of(record, classes):
    if record["status"] != "measured":
        return f"N/A: {record['reason']}"
    good, reason = trains(record["accuracy"], classes)
    text = " ".join("nan" if v is None else f"{v:.3f}" for v in record["accuracy"])
    return text if good else (f"{text} (does not train: {reason})", "slower")


def printed(s, framework):
    table = accuracy()
    own = table[(table.network.str.lower() == s["name"]) & (table.optimizer.str.lower() == s["optimizer"]) & (table.framework == framework)
                & (table.learning_rate == s["attributes"]["learning_rate"])]
    values = own[own.epoch <= s["attributes"]["epochs"]]
    return " ".join("blank" if v != v else f"{v:.3f}" for v in values.accuracy) or "–"


def report(records):
    groups = trainings(records)
    columns = ["", "TensorFlow, 2019 (every fifth epoch)", "PyTorch, 2019", *dict.fromkeys(verdict.label(r) for g in groups for r in g)]
    lines, apart = [], []
    for members in groups:
        s, by = members[0]["subject"], {verdict.label(r): r for r in members}
        classes = next(n for name, n in CLASSES.items() if name.lower() == s["name"])
        a = s["attributes"]
        title = f"{s['name']}, {s['optimizer']} {a['learning_rate']:g}, {a['initial']}'s initial weights, pixels {a['pixels']}, {a['images']} images"
        lines.append([title, printed(s, "TensorFlow"), printed(s, "PyTorch"), *(text_of(by[c], classes) if c in by else "–" for c in columns[3:])])
        last = {r["engine"]["name"]: r["accuracy"][-1] for r in members if r["status"] == "measured" and r["accuracy"][-1] is not None}
        if {"torch", "tensorflow"} <= last.keys():
            apart.append((abs(last["torch"] - last["tensorflow"]), title, last))
    return Further(verdict=list(sentences(apart)), tables=[Table("Training accuracy after each epoch", columns, lines)])


def trainings(records):
    """[records of the same training], one a side, whichever run it is of: no time is held against another."""
    found = {}
    for r in records:
        if r["experiment"] == NAME:
            found.setdefault((machine_of(r), r["subject"]["id"]), {})[verdict.label(r)] = r
    return [list(by.values()) for by in found.values()]


def sentences(apart):
    if apart:
        most, title, last = max(apart)
        yield (f"From the same weights, images and order, PyTorch and TensorFlow end at most {most:.3f} apart in {len(apart)} trainings ({title}: "
               f"{last['torch']:.3f} and {last['tensorflow']:.3f}): what the document calls a difference of frameworks is one of their defaults "
               "as far as these trainings go." if most < 0.05 else
               f"Even from the same weights, images and order, PyTorch and TensorFlow end {most:.3f} apart: {title}, {last['torch']:.3f} and "
               f"{last['tensorflow']:.3f}.")
