"""Trainings by epochs: images of files, the same order for all, and what is said of accuracies."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from compare.experiments import table3
from compare.experiments.bench import Bench
from compare.measuring.engines import Variant
from compare.measuring.session import Session
from compare.problems import images
from compare.records import Store
from compare.report import verdict

ENVIRONMENT = {"processor": "p", "threads": 1, "f32_gflops": 100.0, "bf16_gflops": 100.0, "copy_gbytes": 10.0}
RUN = {"id": "t", "started": "2026-01-01T00:00:00+00:00", "command": None}


@pytest.fixture
def data(tmp_path, monkeypatch):
    """CIFAR-10 of 50 images, each as bright as its label says."""
    labels = np.arange(50) % 10
    rows = np.concatenate([labels[:, None], np.repeat(25 * labels[:, None], images.PIXELS, 1)], 1).astype(np.uint8)
    folder = tmp_path / "data" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for i, part in enumerate(np.split(rows, 5), 1):
        part.tofile(folder / f"data_batch_{i}.bin")
    monkeypatch.setenv("PLUMB_DATA", str(tmp_path / "data"))
    return folder


def test_images_are_read_as_they_are(data, tmp_path):
    pixels, labels = images.read("alexnet")
    assert pixels.shape == (50, 3, 32, 32) and (pixels[7] == 175).all() and labels[7] == 7
    assert images.write("alexnet", 255, 20, tmp_path / "i") == 20


@pytest.mark.parametrize("spoil, sentence", [
    (lambda folder: (folder / "data_batch_2.bin").unlink(), "data_batch_2.bin cannot be read: No such file"),
    (lambda folder: (folder / "data_batch_2.bin").write_bytes(b"abc"), "data_batch_2.bin is no file of CIFAR's images"),
])
def test_what_is_wrong_with_the_images_is_a_sentence(data, spoil, sentence):
    spoil(data)
    with pytest.raises(images.NoData, match=sentence):
        images.read("alexnet")


def bench(engines, path):
    class Quiet:
        def print(self, *_, **__):
            pass
    return Bench(engines, (), Store(path), RUN, ENVIRONMENT, Quiet())


def trained(engines, path, epochs=2):
    """ResNet-20, the smallest of the networks, on the images of the fixture."""
    b = bench(engines, path)
    cell = table3.Cell("resnet20", "adam", 1e-3)
    variants = [Variant("plumbline", "best nhwc pytorch"), Variant("plumbline", "best captured nhwc pytorch")]
    b.train(table3.NAME, cell.problem(50, epochs, 10), variants, lambda file: images.write("resnet20", 1, 50, file), epochs, 50)
    return b.store.records


def test_a_training_is_the_same_eager_and_captured_and_is_not_done_twice(engines, data, tmp_path):
    records = trained(engines, tmp_path / "records.jsonl")
    eager, captured = records
    assert eager["losses"] == pytest.approx(captured["losses"]) and len(eager["accuracy"]) == 2
    assert eager["losses"][1] < eager["losses"][0] and eager["correctness"]["agrees"]
    assert eager["subject"]["attributes"]["initial"] == "pytorch"
    assert len(trained(engines, tmp_path / "records.jsonl")) == 2


def test_the_first_step_is_from_the_first_weights(session, data, tmp_path):
    """What preparing does leaves the weights as they were given."""
    problem = table3.Cell("resnet20", "adam", 0.1).problem(10, 1, 10)
    inputs, expected = session.make(problem)
    count = images.write("resnet20", 1, 10, tmp_path / "images")
    images.write_orders(count, 1, 1, tmp_path / "orders")
    tensors = {**load_file(inputs), **load_file(tmp_path / "images")}
    save_file(tensors, inputs)
    session.make_expected(problem, inputs, expected)
    variant = Variant("plumbline", "best nhwc pytorch")
    session.prepare(problem, variant, inputs, expected)
    trained = session.worker(variant).ask("epoch", job=variant.name, data=str(tmp_path / "images"), orders=str(tmp_path / "orders"), epoch=0, scored=10)
    assert trained["loss"] == pytest.approx(float(load_file(expected)["loss"]), rel=1e-4)


def test_without_data_a_training_is_a_row_that_says_so(engines, tmp_path, monkeypatch):
    monkeypatch.delenv("PLUMB_DATA", raising=False)
    monkeypatch.setattr(Session, "make", lambda *_: pytest.fail("weights are made for a training without images"))
    for r in trained(engines, tmp_path / "records.jsonl"):
        assert r["status"] == "not_available" and r["reason"].startswith("PLUMB_DATA is unset")
        assert verdict.name_of(r["subject"]).endswith(", initial weights of pytorch, pixels 0 to 1")


def test_keras_first_weights_are_others(engines, data, tmp_path):
    b = bench(engines, tmp_path / "records.jsonl")
    for initial in ("pytorch", "keras"):
        cell = table3.Cell("resnet20", "sgd", 0.01, initial=initial)
        b.train(table3.NAME, cell.problem(50, 1, 10), [Variant("plumbline", "best nhwc pytorch")], lambda file: images.write("resnet20", 1, 50, file), 1, 50)
    first, second = b.store.records
    assert first["losses"] != second["losses"] and first["subject"]["id"] != second["subject"]["id"]


def test_what_does_not_train_is_told_from_what_does():
    assert table3.trains([0.1, 0.13], 10) == (True, "")
    assert table3.trains([0.1, 0.105], 10)[0] is False
    assert table3.trains([0.1, None], 10) == (False, "the loss is not finite")
