"""A file that somebody else's program has written: its text, where in it something is, and sentences that say so."""

import bisect
import hashlib
import json
import json.scanner
import pathlib
import re

from .. import BadRecord, has_half_letter, refuse_device


class BadFile(BadRecord):
    """A file that cannot be imported, in a sentence that names file and line."""


class Source:
    """A file's text. `run` is what its records say of the call that imported them: they share an id with no measured record, nor
    with those of another file."""

    def __init__(self, path, run=None):
        self.path = pathlib.Path(path)
        refuse_device(self.path, BadFile)
        try:
            data = self.path.read_bytes()
        except OSError as e:
            raise BadFile(f"{path} cannot be read: {e.strerror}") from None
        self.run = {**(run or {"started": "unknown", "command": None}), "id": "import-" + hashlib.sha256(data).hexdigest()[:12]}
        try:
            self.text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise self.not_text(data) from None
        if "\0" in self.text:
            raise self.not_text(data)
        if not self.text.strip():
            raise BadFile(f"{path}, line 1: the file is empty")

    def not_text(self, data):
        pickled = data[:1] == b"\x80" or b"torch.utils.benchmark" in data[:4096]
        return BadFile(f"{self.path} cannot be read: " + (
            "it is a pickle, which could run anything; write JSON, as scripts/compare import --help says" if pickled else "it is not text"))

    def lines(self):
        """[(number, line)] of lines as editors count them."""
        return list(enumerate(re.split(r"\r\n|\n|\r", self.text), 1))

    def bad(self, line, sentence):
        return BadFile(f"{self.path}, line {line}: {sentence}")

    def json(self):
        """Its JSON, whose objects know their lines."""
        breaks = [m.start() for m in re.finditer("\n", self.text)]
        decoder = json.JSONDecoder()

        def parse_object(text_and_position, *rest):
            value, end = json.decoder.JSONObject(text_and_position, *rest)
            return Lined(value, bisect.bisect_left(breaks, text_and_position[1]) + 1), end
        decoder.parse_object = parse_object
        decoder.scan_once = json.scanner.py_make_scanner(decoder)  # the one in C calls no parse_object of ours
        try:
            said = decoder.decode(self.text)
        except (ValueError, RecursionError) as e:
            raise self.bad(getattr(e, "lineno", 1), f"this is no JSON: {getattr(e, 'msg', 'a number or a nesting without end')}") from None
        if has_half_letter(said):
            raise self.bad(1, "it has half a letter, which no page can show")
        return said

    def seconds(self, value, line, what, unit=1.0):
        """A time as a number of seconds, of a JSON number or of a text."""
        try:
            if isinstance(value, bool):
                raise ValueError
            seconds = float(value) * unit
        except (TypeError, ValueError, OverflowError):
            raise self.bad(line, f"{what} is {value!r:.40}, which is no time") from None
        if not (is_finite(seconds) and seconds > 0):
            raise self.bad(line, f"{what} is {value!r:.40}; a time is more than nothing")
        return seconds


def is_finite(value):
    return type(value) in (int, float) and abs(value) < 1e300


class Lined(dict):
    """A JSON object, and the line on which it begins."""

    def __init__(self, value, line):
        super().__init__(value)
        self.line = line
