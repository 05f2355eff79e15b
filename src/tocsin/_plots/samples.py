"""Two samples of a column in few numbers, ready to be drawn: a histogram, or the shares of categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tocsin._compute.arrays import Array, Float64Array
from tocsin._data.intake import Intake, Tabular
from tocsin._data.tables import Columns, Values
from tocsin._data.tables.column import DAY, NUMERIC
from tocsin._statistics.base import Points

BINS, FEWEST_BINS = 24, 8
"""Of a histogram; no more than twice the root of the smaller sample's size, and no fewer than these."""

OUTER = 0.5
"""Percent of either sample that may lie beyond each end of a histogram, and is counted at that end."""

MOST_WHOLE = 30
"""Whole numbers that have a bin each."""

MOST_CATEGORIES = 6
"""Categories that are shown; the others share a bar."""

MOST_POINTS = 60
"""Points of the second sample that are shown one by one."""


@dataclass(frozen=True, eq=False)
class Histogram:
    """Shares of two samples between edges, what part of each is missing, and some values of the second sample."""

    edges: Float64Array
    before: Float64Array
    after: Float64Array
    missing: tuple[float, float]
    points: Float64Array
    of_day: bool = False


@dataclass(frozen=True, eq=False)
class Bars:
    """Shares of categories in two samples, the commonest first; 'missing' is one of them, if there is any."""

    names: tuple[str, ...]
    before: Float64Array
    after: Float64Array


Edges = Callable[[Float64Array, Float64Array], Float64Array]
"""Of a histogram, from the values of two samples."""


def compared(before: Values, after: Values) -> Histogram | Bars:
    """Two samples of the same column."""
    holds = before.holds if before.holds != "nothing" else after.holds
    if holds == "numbers":
        return _histogram(before.data, after.data, _edges)
    if holds == "times":
        return _histogram(before.data % DAY / 3600, after.data % DAY / 3600, None)
    return _bars(before.as_strings().tolist(), after.as_strings().tolist())


def _histogram(before: Array, after: Array, edges_of: Edges | None) -> Histogram:
    there = [values[~np.isnan(values)] for values in (before, after)]
    edges = np.linspace(0, 24, BINS + 1) if edges_of is None else edges_of(*there)
    shares = [np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / max(len(values), 1) for values in there]
    missing = [1 - len(values) / max(len(own), 1) for values, own in zip(there, (before, after), strict=True)]
    points = np.clip(there[1][:: -(-len(there[1]) // MOST_POINTS) or 1], edges[0], edges[-1])
    return Histogram(edges, shares[0], shares[1], (missing[0], missing[1]), points, edges_of is None)


def _edges(before: Float64Array, after: Float64Array) -> Float64Array:
    ends = [np.percentile(values, [OUTER, 100 - OUTER]) for values in (before, after) if len(values)]
    if not ends:
        return np.array([-0.5, 0.5])
    low, high = float(min(end[0] for end in ends)), float(max(end[1] for end in ends))
    whole = all(np.all(values == np.round(values)) for values in (before, after))
    if whole and high - low < MOST_WHOLE:
        return np.arange(np.floor(low), np.ceil(high) + 2) - 0.5
    if not high > low:
        room = abs(low) * 0.05 or 0.5
        return np.linspace(low - room, high + room, FEWEST_BINS + 2)
    smaller = min(len(values) for values in (before, after) if len(values))
    return np.linspace(low, high, int(np.clip(2 * smaller**0.5, FEWEST_BINS, BINS)) + 1)


def _bars(before: list[str | None], after: list[str | None]) -> Bars:
    counts = [Counter("missing" if word is None else word for word in words) for words in (before, after)]
    shares = [
        {name: count / len(words) for name, count in own.items()}
        for own, words in zip(counts, (before, after), strict=True)
    ]
    names = sorted({*counts[0], *counts[1]}, key=lambda name: (-max(share.get(name, 0) for share in shares), name))
    shown = names if len(names) <= MOST_CATEGORIES else names[: MOST_CATEGORIES - 1]
    rows = np.array([[share.get(name, 0.0) for name in shown] for share in shares]).reshape(2, -1)
    if len(shown) < len(names):
        rows = np.column_stack([rows, 1 - rows.sum(1)])
        shown = [*shown, f"{len(names) - len(shown)} others"]
    return Bars(tuple(shown), rows[0], rows[1])


def values_in(intake: Intake, points: Points, name: str) -> Values | None:
    """A column's values in points that a detector took in; None where that cannot be told, as of texts."""
    if name not in intake.names:
        return None
    place = intake.names.index(name)
    own = np.flatnonzero(intake.owners == place)
    rows = np.asarray(points, dtype=np.float64).reshape(len(points), -1)
    if not isinstance(intake, Tabular):
        return Values.of_numbers(rows[:, own[0]]) if len(own) == 1 else None
    column = intake.columns.columns[place]
    if column.kind == "text":
        return None
    found = [record[name] for record in Columns((column,)).decode(rows[:, [*own.tolist(), -1]])]
    if column.kind in (*NUMERIC, "time"):
        numbers = np.array([np.nan if value is None else value for value in found])
        return Values("numbers" if column.kind in NUMERIC else "times", numbers)
    words = np.empty(len(found), dtype=object)
    words[:] = found
    return Values("strings", words)


def cut(text: str, most: int) -> str:
    """At most so many characters of a name, on one line.

    >>> cut("temperature", 8)
    'tempera…'
    """
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
