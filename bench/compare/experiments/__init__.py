"""One file an experiment: which problems, which engines, and what the report says that it shows.

An experiment has NAME, SHOWS (a paragraph), and run(bench), which measures what is not in the records yet. It may have report(records),
which gives a report.further.Further, and COMPARES = False if it holds no framework against Plumbline.
"""

from . import odd_ops, ops, train

ALL = {e.NAME: e for e in (train, ops, odd_ops)}
QUICK = ("train", "ops")  # what runs if nothing is asked for
