"""Paths of the command line, and files that are whole."""

import os
import pathlib


def seen_from_the_caller(path):
    """The script runs the program in the repository, and its user is elsewhere."""
    folder = pathlib.Path(os.environ.get("PLUMB_CALLER", "."))
    return pathlib.Path(path) if folder.resolve() == pathlib.Path.cwd() else folder / path


def write_whole(path, text):
    """The file is the text, or what it was before where that cannot be written."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
