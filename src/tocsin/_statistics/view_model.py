"""What views learn of a reference, column by column: spreads, and what foresees each from its own last rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tocsin._common.errors import InputError
from tocsin._compute import Functions
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._statistics.base import Channel

LEVEL, ERROR, CHANGE, MOVING = "level", "prediction error", "change", "moving level"
VIEWS = (LEVEL, ERROR, CHANGE, MOVING)
MEAN, SPREAD, NEWS = "mean", "spread", "news"

SILENT = 1e30
"""The unit of a channel that is not to be heard, in columns that tell news alone (`news`)."""

SOFT = 8.0
"""Spreads up to which a number counts in full; what is further out counts as its logarithm."""

FLOOR, LEAST_SIZE = 0.05, 0.02
"""What the spread of a window is, at least, in that of its view; and what that of a view is, in that of its column."""

MOST_COLUMNS = 64
"""Columns that are watched one by one. Where there are more, this many of their principal directions are."""

FOLDS = 4
"""Parts of a reference that are kept out in turn, to see how directions fit rows that they were not made of."""

MOSTLY = 0.5
"""Part of a direction from which on it is called by a column's name."""

SHORTEST_BASE, LONGEST_BASE, SHORTEST_GAP, LONGEST_GAP = 8, 100, 3, 20
"""Rows of the moving baseline, and between it and the row that is compared with it."""

RIDGE, LAGS = 2.0, 3
"""Rows that speak for foreseeing nothing; and by how many last rows the next is foreseen."""

INTERQUARTILE, LEAST_QUARTILES = 1.349, 1e-3
"""Of the Gaussian law, in standard deviations; and what the spread between quartiles must be, in those, to count."""

LEAST_WITHIN = 1e-6
"""Of what recordings differ by, what the spread of a column within them is at least."""

SMALLEST = 5e-324
"""Number above 0: what a spread is at least, of columns that hardly differ from 0."""

NEWLY_MISSING = "(newly missing)"
"""What values belong to that are missing where the reference lacks none."""

NO_AXES = np.empty((0, 0))


class Spans(NamedTuple):
    """Rows of which a channel is made: of the windows, of the moving baseline, and between it and the row.

    own: rows from which a stream's own level is learnt, before it is watched relative to that; 0 if it is not.
    """

    windows: Int64Array
    base: int
    gap: int
    own: int = 0

    @classmethod
    def of(cls, windows: tuple[int, ...], count: int, own: int = 0) -> Spans:
        """For a reference of so many rows in order."""
        base = int(np.clip(count // 5, SHORTEST_BASE, LONGEST_BASE))
        gap = int(np.clip(count // 10, SHORTEST_GAP, min(LONGEST_GAP, max(windows[-1], SHORTEST_GAP))))
        return cls(np.array(windows, np.int64), base, gap, own)

    @property
    def widest(self) -> int:
        return int(self.windows[-1])

    @property
    def history(self) -> int:
        """Rows before the first that has channels."""
        return self.base + self.gap + self.widest - 1


@dataclass(frozen=True, eq=False)
class Model:
    """How points become rows in units of their spread, and rows views: what is learnt of the columns one by one.

    centre, spread: of the chosen columns.  axes: (m, d) directions of these that are watched, in their place; empty for
        the columns themselves.
    lags: (4, d) constant and coefficients of the last rows.  sizes: (4, d) spread of each view.
    """

    spans: Spans
    centre: Float64Array
    spread: Float64Array
    chosen: Int64Array
    axes: Float64Array
    lags: Float64Array
    sizes: Float64Array

    @classmethod
    def learn(cls, points: Float64Array, edges: Int64Array, spans: Spans, compute: Functions) -> Model:
        """From a reference in order, of one group or more."""
        chosen = _varying(points)
        varying = points[:, chosen]
        centre, spread = _locations(varying)
        axes = NO_AXES
        if len(chosen) > MOST_COLUMNS:
            axes = _directions(compute.view_rows(points, centre, spread, chosen, NO_AXES, SOFT))
        rows = compute.view_rows(points, centre, spread, chosen, axes, SOFT)
        lags, sizes = _foresight(rows, edges)
        return cls(spans, centre, spread, chosen, axes, lags, sizes)

    @classmethod
    def learn_recordings(
        cls, points: Float64Array, edges: list[tuple[int, int]], spans: Spans, compute: Functions
    ) -> Model:
        """What columns are like within recordings between these edges, relative to a level of each. What foresees
        their rows is learnt by `foreseeing`."""
        recordings = [points[a:b] for a, b in edges]
        together = np.concatenate(recordings)
        chosen = _varying(together)
        centre, spread = _locations(together[:, chosen])
        apart = [(own[:, chosen] - centre) / spread for own in recordings]
        within = np.concatenate([own - np.median(own, axis=0) for own in apart])
        moves, smaller = within.max(0) > within.min(0), np.ones(len(chosen))
        smaller[moves] = np.maximum(_locations(within[:, moves])[1], LEAST_WITHIN)
        spread, axes = np.maximum(spread * smaller, SMALLEST), NO_AXES
        if len(chosen) > MOST_COLUMNS:
            axes = _directions(SOFT * np.arcsinh(within / smaller / SOFT))
        width = axes.shape[1] if axes.size else len(chosen)
        return cls(spans, centre, spread, chosen, axes, np.zeros((1 + LAGS, width)), np.ones((4, width)))

    def foreseeing(self, rows: Float64Array, edges: Int64Array) -> Model:
        """The same, with what foresees rows like these of groups, and the spreads of their views."""
        lags, sizes = _foresight(rows, edges)
        return replace(self, lags=lags, sizes=sizes)

    def rows(self, points: Float64Array, compute: Functions) -> Float64Array:
        """Points in units of their columns' spread."""
        return compute.view_rows(points, self.centre, self.spread, self.chosen, self.axes, SOFT)

    def channels(self, rows: Float64Array, compute: Functions) -> Float64Array:
        """Of all rows of one group that have enough before them."""
        spans = self.spans
        return compute.view_channels(rows, self.lags, self.sizes, spans.base, spans.gap, spans.windows, FLOOR)

    def for_new_rows(self, points: Float64Array, compute: Functions) -> Model:
        """With directions as rows meet them that were not learnt from: they vary more along those in which the
        reference happens to vary least."""
        if not self.axes.size:
            return self
        apart = compute.view_rows(points, self.centre, self.spread, self.chosen, NO_AXES, SOFT)
        return replace(self, axes=self.axes / _excess(apart, self.width))

    @property
    def width(self) -> int:
        """Columns, or directions, that are watched."""
        return int(self.lags.shape[1])

    def column_names(self, columns: tuple[str, ...], owners: Int64Array) -> list[str]:
        """Of what is watched, by the names of the columns that numbers of a point belong to."""
        own = [columns[owner] if owner < len(columns) else NEWLY_MISSING for owner in owners[self.chosen]]
        if not self.axes.size:
            return own
        names = list(dict.fromkeys(own))
        share = np.zeros((len(names), self.width))
        np.add.at(share, [names.index(name) for name in own], self.axes**2 / (self.axes**2).sum(0))
        return [_direction_name(k, names[part.argmax()], part.max()) for k, part in enumerate(share.T)]

    def channel_names(self, columns: tuple[str, ...], owners: Int64Array) -> tuple[Channel, ...]:
        """The channels, in their order."""
        own, windows = self.column_names(columns, owners), self.spans.windows.tolist()
        means = [Channel(MEAN, window, view=view, column=name) for view in VIEWS for window in windows for name in own]
        spreads = [Channel(SPREAD, windows[-1], view=view, column=name) for view in (ERROR, CHANGE) for name in own]
        return (*means, *spreads)


def _direction_name(number: int, name: str, part: float) -> str:
    """Of the direction with this number, which is some column in this part."""
    if part == 1:
        return name
    return f"direction {number + 1} (mostly {name})" if part > MOSTLY else f"direction {number + 1}"


def _varying(points: Float64Array) -> Int64Array:
    """Which columns do."""
    chosen = np.flatnonzero(points.max(0) > points.min(0)).astype(np.int64)
    if not chosen.size:
        raise InputError(
            "No column of the reference varies: there is nothing to learn what is usual from. Give observations "
            "from a time in which they did, or leave constant columns out."
        )
    return chosen


def _locations(columns: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Medians and spreads of columns that vary, whatever their scale."""
    exponents = np.frexp(np.abs(columns).max(0))[1]
    moderate = np.ldexp(columns, -exponents)  # exact, and squares are then numbers
    quartiles, deviation = np.percentile(moderate, [25, 75], axis=0), moderate.std(0)
    spread = (quartiles[1] - quartiles[0]) / INTERQUARTILE
    spread = np.where(spread > LEAST_QUARTILES * deviation, spread, deviation)
    centre, spread = (np.ldexp(own, exponents) for own in (np.median(moderate, axis=0), spread))
    return centre, np.maximum(spread, SMALLEST)


def _directions(rows: Float64Array) -> Float64Array:
    """The principal directions of many columns, each in units of the spread along it; (m, MOST_COLUMNS)."""
    centred = rows - rows.mean(0)
    _, lengths, along = np.linalg.svd(centred, full_matrices=False)
    kept = np.flatnonzero(lengths[:MOST_COLUMNS] > 1e-6 * lengths[0])
    return np.ascontiguousarray((along[kept] / (lengths[kept, None] / np.sqrt(len(rows)))).T)


def _excess(rows: Float64Array, width: int) -> Float64Array:
    """By how much more rows vary along directions of the others than those do, on average over parts in time; (d,)."""
    folds, logarithms = np.array_split(rows, FOLDS), np.zeros(width)
    for k, out in enumerate(folds):
        others = [fold for place, fold in enumerate(folds) if place != k]
        axes = _directions(np.concatenate(others))[:, :width]
        inside = np.mean([(fold @ axes).var(0) for fold in others], axis=0)
        logarithms[: len(axes.T)] += np.log(np.maximum((out @ axes).var(0), 1e-12) / np.maximum(inside, 1e-12)) / 2
    excess: Float64Array = np.exp(logarithms / FOLDS)
    return excess


def _foresight(rows: Float64Array, edges: Int64Array) -> tuple[Float64Array, Float64Array]:
    """What foresees each column from its own last rows, and the spreads of its views."""
    d = rows.shape[1]
    later = np.concatenate([np.arange(start + LAGS, stop) for start, stop in pairwise(edges)])
    lags, sizes = np.empty((1 + LAGS, d)), np.empty((4, d))
    penalty = np.diag([0.0] + [RIDGE] * LAGS)
    for j in range(d):
        before = np.stack([np.ones(len(later)), *(rows[later - k, j] for k in range(1, LAGS + 1))], 1)
        lags[:, j] = np.linalg.solve(before.T @ before + penalty, before.T @ rows[later, j])
        error = rows[later, j] - before @ lags[:, j]
        level = rows[:, j].std()
        sizes[:, j] = level, error.std(), (rows[later, j] - rows[later - 1, j]).std(), level
    return lags, np.maximum(sizes, LEAST_SIZE)
