"""One file an experiment: which problems, which engines, and what the report says that it shows.

An experiment has NAME, SHOWS (a paragraph), and run(bench), which measures what is not in the records yet. It may have report(records),
which gives a report.further.Further, COMPARES = False if it holds no framework against Plumbline, and MEASURED_BY = (NAME, ...) if it
reports what others have measured.
"""

from . import (algorithms, defaults, figures, forward, input_pipeline, layouts, losses, odd_ops, ops, optimizers, synchronisation, table2, table3,
               train)

ALL = {e.NAME: e for e in (train, forward, ops, odd_ops, layouts, algorithms, optimizers, synchronisation, input_pipeline, defaults, table2, table3,
                           figures, losses)}
ASIDE = tuple(name for name, e in ALL.items() if not getattr(e, "COMPARES", True))
QUICK = ("train", "ops")  # what runs if nothing is asked for
