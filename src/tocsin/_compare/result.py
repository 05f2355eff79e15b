"""What a comparison of two tables says."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import TypedDict

from tocsin._common.wording import called, counted, few, rounded
from tocsin._data.tables.table import Table

RATE = 0.05
"""Comparisons in which a column is named that does not differ, at most."""

MOST_COLUMNS, MOST_DRAWN = 8, 6
"""Columns that a text names, and that a figure shows."""


@dataclass(frozen=True)
class DifferingColumn:
    """A column of two tables.

    p_value: how often chance alone makes some column of such tables differ as much.
    differs: whether the tables differ, and that is seldom enough to say that this column does.
    how: 'higher', 'lower', 'wider' or 'narrower', of numbers; 'missing more often' or 'missing less often'; or nothing.
    before, after: its values in the reference, and in the batch, in a few words.
    """

    name: str
    p_value: float
    differs: bool
    how: str
    before: str
    after: str


class ComparisonFacts(TypedDict):
    """A comparison as numbers, strings, lists and dicts only."""

    differs: bool
    rarity: float
    ert: float
    extrapolated: bool
    reach: float
    reference_rows: int
    batch_rows: int
    reference_given: int
    batch_given: int
    block: int
    splits: int
    columns: list[dict[str, object]]
    seed: int


@dataclass(frozen=True, eq=False)
class Comparison:
    """Whether two tables differ.

    differs: the verdict. If nothing differs, it is wrong once in `ert` comparisons, on average.
    rarity: chance alone would give a difference as large once in so many comparisons; 1e9 for all that is rarer.
    ert: what was asked for. A rarity of `ert` or more makes the verdict.
    extrapolated: whether the difference is larger than in all random splits of the rows, so that rarity had to be told
        from the tail of theirs.
    reach: the rarest difference that rows like these can show, since they can be told apart in so many ways; 1e9 for
        all that is more. If it is less than `ert`, there is no verdict (`conclusive`).
    reference_rows, batch_rows: rows that were compared.  reference_given, batch_given: rows that there were.
    block: rows that changed places together, since they depend on those before them; 1 if no test finds that.
    splits: ways to tell the rows apart into two tables that were looked at, the one at hand included.
    columns: all of them, the surest first; one that does not differ is named in at most 5% of comparisons.
    seed: that of the random splits.
    tables: the rows compared, to be drawn.
    """

    differs: bool
    rarity: float
    ert: float
    extrapolated: bool
    reach: float
    reference_rows: int
    batch_rows: int
    reference_given: int
    batch_given: int
    block: int
    splits: int
    columns: tuple[DifferingColumn, ...]
    seed: int
    tables: tuple[Table, Table] = field(repr=False)

    @property
    def changed(self) -> tuple[DifferingColumn, ...]:
        """The columns that are said to differ."""
        return tuple(column for column in self.columns if column.differs)

    @property
    def conclusive(self) -> bool:
        """Whether there are enough rows for a verdict as rare as `ert` asks for."""
        return self.reach >= self.ert

    def to_dict(self) -> ComparisonFacts:
        """Numbers, strings, lists and dicts only."""
        return {
            "differs": self.differs,
            "rarity": self.rarity,
            "ert": self.ert,
            "extrapolated": self.extrapolated,
            "reach": self.reach,
            "reference_rows": self.reference_rows,
            "batch_rows": self.batch_rows,
            "reference_given": self.reference_given,
            "batch_given": self.batch_given,
            "block": self.block,
            "splits": self.splits,
            "columns": [asdict(column) for column in self.columns],
            "seed": self.seed,
        }

    def to_json(self) -> str:
        """The same as a line of JSON."""
        return json.dumps(self.to_dict())

    def plot(self, file: str | os.PathLike[str]) -> None:
        """Draw both tables, column by column, to a .png, .svg or .pdf file: those that differ, or the surest few."""
        from tocsin._plots.comparison import draw_comparison

        shown = [column.name for column in self.changed or self.columns][:MOST_DRAWN]
        draw_comparison(*self.tables, file, columns=shown, names=("reference", "batch"))

    def __str__(self) -> str:
        return "\n".join([self._verdict(), self._compared(), *self._columns()])

    def _verdict(self) -> str:
        asked = f"once in {rounded(self.ert)}"
        if not self.conclusive:
            order = " If the order of the rows means nothing, shuffle both tables." if self.block > 1 else ""
            return (
                f"No verdict: rows like these can show nothing rarer than once in {rounded(self.reach)} comparisons, "
                f"and it takes {asked}. Collect more rows, or ask for less.{order}"
            )
        if self.differs:
            more = "less than " if self.rarity >= 1e9 else ""
            return (
                f"They differ: chance alone would give a difference as large {more}once in {rounded(self.rarity)} "
                f"comparisons ({asked} is enough)."
            )
        times = few(self.rarity)
        return (
            f"No difference found: chance alone gives one as large once in {times} comparison{'s' * (times != '1')} "
            f"(it takes {asked})."
        )

    def _compared(self) -> str:
        told = f"Compared {counted(self.reference_rows, 'row')} of the reference with {counted(self.batch_rows, 'row')}"
        if (self.reference_rows, self.batch_rows) != (self.reference_given, self.batch_given):
            told += f", of {self.reference_given:,} and {self.batch_given:,}"
        if self.block > 1:
            told += f", in blocks of {self.block:,}: rows depend on those before them"
        return f"{told}."

    def _columns(self) -> list[str]:
        if not self.differs:
            return []
        if not self.changed:
            return ["No single column stands out: what differs is spread over several of them, or lies between them."]
        shown = self.changed[:MOST_COLUMNS]
        width, more = max(len(called(column.name)) for column in shown), len(self.changed) - len(shown)
        others = len(self.columns) - len(self.changed)
        return [
            f"What differs (a column that does not is named in at most {RATE:.0%} of comparisons):",
            *(
                f"  {called(column.name):<{width}}  "
                f"{f'{column.how}: ' if column.how else ''}{column.before} -> {column.after}"
                for column in shown
            ),
            *([f"  and {more} more"] if more else []),
            *([f"Of the other {others} nothing can be said."] if others > 1 else []),
        ]
