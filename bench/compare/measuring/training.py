"""Trainings of several epochs: the same images in the same order for every side, and what accuracy they come to."""

from ..problems.images import NoData, write_orders
from ..records.of_measured import not_available
from . import losses
from .session import Measured
from .worker import Refused

PATIENCE_S = 600, 6 * 3600  # at least, and at most: an epoch may take long
SLOWER = 10                 # times as long as the first step may the others take
SEED = 1                    # of the order


def patience_s(found, steps):
    """How long a reply to so many steps is waited for, by how long the first took."""
    least, most = PATIENCE_S
    return min(most, least + SLOWER * steps * found.prepared.get("first_s", most))


def train(session, problem, variant, images, epochs, scored):
    """(Measured, [{"loss", "accuracy", "seconds"}]); the first weights' output and gradients agree with the reference, or nothing is
    trained."""
    data, orders = session.folder / "images", session.folder / "orders"
    try:
        if not data.exists():
            write_orders(images(data), epochs, SEED, orders)
    except NoData as reason:
        return Measured(variant, refusal=Refused(str(reason), "absent")), []
    try:
        files = session.make(problem)
    except Refused as refusal:
        return session.without_reference(problem, [variant], refusal)[0], []
    found, done = session.prepare(problem, variant, *files), []
    if found.refusal is None and found.agreement["agrees"]:
        try:
            worker = session.worker(variant)
            worker.patience_s = patience_s(found, dict(problem.about)["images"] // problem.batch)
            for epoch in range(epochs):
                done.append(worker.ask("epoch", job=variant.name, data=str(data), orders=str(orders), epoch=epoch, scored=scored))
                if done[-1]["loss"] is None:  # no number comes back from infinity
                    break
        except Refused as refusal:
            found.refusal = refusal
    return found, done


def record_of(found, epochs, problem, experiment, run, environment):
    """A record of accuracies and losses by epoch, without times."""
    if found.refusal is not None or not epochs:
        reason = str(found.refusal) if found.refusal else found.agreement["reason"]
        return not_available(found, problem, experiment, run, environment, reason)
    record = losses.record_of(found, problem, experiment, run, environment, [e["loss"] for e in epochs], found.agreement)
    return {**record, "accuracy": [e["accuracy"] if e["loss"] is not None else None for e in epochs]}
