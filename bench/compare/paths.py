"""Paths of the command line."""

import os
import pathlib


def seen_from_the_caller(path):
    """The script runs the program in the repository, and its user is elsewhere."""
    folder = pathlib.Path(os.environ.get("PLUMB_CALLER", "."))
    return pathlib.Path(path) if folder.resolve() == pathlib.Path.cwd() else folder / path
