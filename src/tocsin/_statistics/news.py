"""What the reference never shows, as further columns of views: first gaps, categories never seen, constants that move.

Numbers of a point that are constant in the reference teach views nothing, and say much when they move. Each becomes a
column that is 0 in the reference and counts rows of news, however large: so many of them within a window ring. How
many, the reference decides, by a bound that holds on average over references (`chance`), and news is taken to come row
by row; as many as chance would bring in a small part of the false alarms that are promised. All
other channels of such a column are silent. Nothing of this is simulated: worlds know no more news than the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._statistics.chance import log_chance
from tocsin._statistics.own_levels import OwnLevels
from tocsin._statistics.view_model import LEVEL, SILENT, SOFT, VIEWS, Model
from tocsin._statistics.views import ViewsLive

MOST_NEWS = 64
"""Numbers of a point that are watched for news; of more than these, the first."""

SHARE = 0.05
"""Of the alarms that are promised, what news may bring by chance."""

FEWEST = 2
"""Rows of news that ring: one alone does not."""

SATURATED = 1e-3
"""The size of an event from which on it counts by its logarithm, where 1 is usual: so all count about alike."""

CLEARLY = 1.15
"""How much louder than the threshold as many rows of news are as should ring."""


def with_news(live: ViewsLive, reference: Float64Array, told: Int64Array, ert: float) -> ViewsLive:
    """Views that also hear of what the reference (n, D) never shows.

    told: the places of numbers in a point that can be news.
    """
    constant = np.setdiff1d(told, live.model.chosen)[:MOST_NEWS]
    if not len(constant):
        return live
    own = live.own
    model, order = _extended(live.model, constant, reference[0])
    kinds, windows = len(live.unit) // live.model.width, model.spans.windows.tolist()
    units = np.full((kinds, len(constant)), SILENT)
    for place, window in enumerate(windows):
        rows = rows_that_ring(window, len(reference), ert, len(windows) * len(constant))
        if rows is not None:
            units[VIEWS.index(LEVEL) * len(windows) + place] = _event() * rows / window / (CLEARLY * live.level)

    def beside(own: Float64Array, more: Float64Array) -> Float64Array:
        return np.ascontiguousarray(np.column_stack([own.reshape(kinds, -1), more])[:, order].ravel())

    nothing = np.zeros_like(units)
    return replace(
        live,
        model=model,
        middle=beside(live.middle, nothing),
        unit=beside(live.unit, units),
        scale=beside(live.scale, nothing + 1),
        own=own if own is None else _with_columns(own, beside, order, units),
    )


def _with_columns(
    own: OwnLevels, beside: Callable[[Float64Array, Float64Array], Float64Array], order: Int64Array, units: Float64Array
) -> OwnLevels:
    """Columns of news stand still in a baseline: what they are there is usual for the stream, and their spread is 1."""
    count, nothing = units.shape[1], np.zeros_like(units)
    share, typical = (np.concatenate([part, np.zeros(count)])[order] for part in (own.share, own.typical))
    return OwnLevels(
        share, typical, beside(own.middle, nothing), beside(own.unit, units), beside(own.scale, nothing + 1)
    )


def rows_that_ring(window: int, count: int, ert: float, channels: int) -> int | None:
    """How many rows of news within a window ring, by a reference of so many rows; None if no number is safe.

    channels: that share what chance may bring.

    >>> rows_that_ring(5, 1000, 500, 4), rows_that_ring(25, 100, 500, 4)
    (2, 6)
    """
    allowed = math.log(SHARE / (ert * channels))
    enough = (rows for rows in range(FEWEST, window + 1) if log_chance(window, rows, 0, count) <= allowed)
    return next(enough, None)


def _event() -> float:
    """What one row of news is, in a column of it."""
    return SOFT * math.asinh(1 / SATURATED / SOFT)


def _extended(model: Model, constant: Int64Array, usual: Float64Array) -> tuple[Model, Int64Array]:
    """With constant numbers of points as columns (of directions: after them); and the order of all columns."""
    count, chosen = len(constant), np.concatenate([model.chosen, constant])
    by_place = np.argsort(chosen)
    axes, order = model.axes, by_place
    if axes.size:
        axes = np.zeros((len(chosen), model.width + count))
        axes[: len(model.chosen), : model.width] = model.axes
        axes[len(model.chosen) :, model.width :] = np.eye(count)
        axes, order = np.ascontiguousarray(axes[by_place]), np.arange(model.width + count)
    lags, sizes = (
        np.ascontiguousarray(np.column_stack([own, np.full((len(own), count), value)])[:, order])
        for own, value in ((model.lags, 0.0), (model.sizes, 1.0))
    )
    centre = np.concatenate([model.centre, usual[constant]])[by_place]
    spread = np.concatenate([model.spread, np.full(count, SATURATED)])[by_place]
    return Model(model.spans, centre, spread, chosen[by_place], axes, lags, sizes), order
