"""Rows that a detector compares, in words that its user knows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._data.intake import Intake, Tabular
from tocsin._data.tables import summary
from tocsin._data.tables.column import NUMERIC
from tocsin._explain.columns import How
from tocsin._statistics.base import Points

NEWLY_MISSING = "(newly missing)"
"""What values are called that are missing where the reference lacks none."""


class Words(NamedTuple):
    """A column: its name, what it was like before a change and after it, and whether it holds numbers."""

    name: str
    before: str
    after: str
    numeric: bool = True


def compare(intake: Intake, before: Float64Array, after: Float64Array) -> list[Words]:
    """Every column, in the order of `Intake.owners`."""
    if not isinstance(intake, Tabular):
        columns = zip(intake.names, before.T, after.T, strict=True)
        return [Words(name, summary.numbers(first), summary.numbers(second)) for name, first, second in columns]
    first, second = (intake.columns.decode(rows) for rows in (before, after))
    words = []
    for i, column in enumerate(intake.columns.columns):
        then, now = ([row[column.name] for row in rows] for rows in (first, second))
        own = np.flatnonzero(intake.owners == i)[: column.width]
        said = summary.compare(column, then, now, (before[:, own], after[:, own]))
        words.append(Words(column.name, *said, numeric=column.kind in NUMERIC))
    fewer, more = (f"{np.mean(rows[:, -1] > 0):.0%} of rows" for rows in (before, after))
    return [*words, Words(NEWLY_MISSING, fewer, more, numeric=False)]


def did(intake: Intake, words: Words, feature: int, how: How) -> str:
    """What a column did, told by what its clearest feature did; nothing where that has no direction."""
    if isinstance(intake, Tabular) and feature in intake.columns.gaps:
        return "missing more often" if how == "higher" else "missing less often"
    return how if words.numeric else ""


def show(intake: Intake, points: Points) -> list[dict[str, str]]:
    """The values of points, by column; none for objects, and none of texts, which are lost in their features."""
    if isinstance(intake, Tabular):
        columns = [column for column in intake.columns.columns if column.kind != "text"]
        return [
            {column.name: summary.shown(column, row[column.name]) for column in columns}
            for row in intake.columns.decode(points)
        ]
    if not intake.names:
        return [{} for _ in points]
    return [{name: f"{value:.4g}" for name, value in zip(intake.names, row, strict=True)} for row in points]
