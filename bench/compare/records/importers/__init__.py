"""Results of other programs as records of the one schema, one file a format.

A format has NAME, and records(source, name), which gives the records of a Source; `name` is what the user calls the engine, or None.
"""

from . import deepbench, google_benchmark, huggingface, torch_json, torch_text

FORMATS = {m.NAME: m for m in (google_benchmark, torch_json, torch_text, huggingface, deepbench)}
