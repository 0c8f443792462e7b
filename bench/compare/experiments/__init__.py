"""One file an experiment: which problems, which engines, and what the report says that it shows.

An experiment has NAME, SHOWS (a paragraph), and run(bench), which measures what is not in the records yet.
"""

from . import ops, train

ALL = {e.NAME: e for e in (train, ops)}
