"""From bytes to a trained batch: augmentation and training alone, one after the other, and overlapped."""

import dataclasses

from ..measuring import machine
from ..measuring.engines import Variant
from ..measuring.session import Plan
from ..problems.inputs import IMAGES, input_problem
from ..report import verdict
from ..report.further import Further, Table

NAME = "input_pipeline"
BATCH = 250
COMPARES = False
SHOWS = ("Images as bytes are cropped, flipped and normalised, and a network is trained on them, by each engine's own loader: "
         "Plumbline's has threads, PyTorch's DataLoader processes, TensorFlow's tf.data threads. One after the other takes as long as both "
         "together; what is overlapped could take as long as the slower one alone, but on a processor both want the same cores. "
         "The images are random bytes: what a picture shows does not change what its crop costs.")

WAYS = {"augment": "augmentation alone", "step": "training alone", "after": "one after the other", "overlapped": "overlapped"}


# A sample is whole epochs, and long beside what a loader has made ahead while the others had their turn, which is used up before.
EPOCH = IMAGES // BATCH
PLAN = Plan(rounds=3, samples=1, least_s=0.25, least_calls=EPOCH, warm_calls=EPOCH)


def run(bench):
    # A loader's threads and processes would have the one processor of the thread that starts them.
    bench = dataclasses.replace(bench, engines=bench.engines.with_settings(OMP_PROC_BIND="false"),
                                environment={**bench.environment, "openmp": machine.UNBOUND})
    variants = [Variant("plumbline", f"best auto {way}") for way in WAYS]
    variants += [Variant(f, way) for f in bench.frameworks for way in (WAYS if f != "jax" else ("overlapped",))]
    networks, plan = (("alexnet", "vgg16"), dataclasses.replace(PLAN, rounds=5)) if bench.full else (("alexnet",), PLAN)
    bench.measure_all(NAME, [input_problem(network, BATCH) for network in networks], lambda problem: variants, plan)


def report(records):
    rows, sentences = [], []
    for members in verdict.groups(records, NAME).values():
        by = {}
        for r in members:
            if verdict.counts(r):
                by.setdefault(r["engine"]["name"], {})[r["engine"]["mode"].split()[-1]] = r
        for engine, ways in by.items():
            subject = next(iter(ways.values()))["subject"]
            speeds = {way: subject["batch"] / r["median_s"] for way, r in ways.items()}
            cells = [f"{speeds[w]:.0f}" if w in speeds else "–" for w in WAYS]
            rows.append([f"{subject['name']}, batch {subject['batch']}", engine, *cells])
            if WAYS.keys() <= ways.keys():
                sentences.append(f"{engine}, {subject['name']}: overlapped {speeds['overlapped']:.0f} images a second, one after the other "
                                 f"{speeds['after']:.0f}; training alone {speeds['step']:.0f}")
    sentences += sorted({f"{r['engine']['name']}: {r['reason']}" for r in records if r["experiment"] == NAME and r["status"] != "measured"})
    table = Table("Images a second", ["work", "engine", *WAYS.values()], rows)
    return Further(verdict=sentences, tables=[table] if rows else [])
