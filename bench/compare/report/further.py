"""What an experiment reports beyond sides and their ratios: sentences, pictures, tables."""

import dataclasses


@dataclasses.dataclass
class Table:
    """Cells are texts; one that is (text, verdict) is coloured by the verdict: faster, slower, ambiguous."""

    title: str
    columns: list
    rows: list
    note: str = ""

    def cells(self):
        return [[cell if isinstance(cell, tuple) else (str(cell), "") for cell in row] for row in self.rows]


@dataclasses.dataclass
class Further:
    verdict: list = dataclasses.field(default_factory=list)  # sentences, the most important first
    figures: list = dataclasses.field(default_factory=list)  # of pictures.py, or of made_by.py where they are of some of the records
    tables: list = dataclasses.field(default_factory=list)
