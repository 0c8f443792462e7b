"""What two documents of 2019 have printed: a coursework's tables and a benchmark's means, as tables, with what can be computed from them.

The numbers stand in CSV files beside this one, as printed, misprints included; `claims` finds those by computing.
"""

import pathlib

import pandas as pd

FOLDER = pathlib.Path(__file__).parent
IMAGES = 50_000  # of an epoch, in CIFAR-10 and in CIFAR-100
CLASSES = {"AlexNet": 10, "VGG16": 100}
WORK = ["network", "framework", "optimizer"]


def table(name):
    return pd.read_csv(FOLDER / f"{name}.csv", comment="#")


def epochs():
    """Table 2 of the coursework: network, framework, optimizer, batch, epoch_s, images_per_s."""
    return table("coursework_epochs")


def accuracy():
    """Table 3: network, framework, optimizer, learning_rate, epoch, accuracy on the training set; NaN where it "does not train"."""
    wide = table("coursework_accuracy")
    long = wide.melt([*WORK, "learning_rate"], var_name="epoch", value_name="accuracy")
    return long.astype({"epoch": int}).sort_values([*WORK, "learning_rate", "epoch"], ignore_index=True)


def transformers():
    """The Transformer benchmark's means: framework, mode, device, machine, mean_s, said."""
    return table("transformer_means")
