"""What rows of many keys bring of news, before they are taken in."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._state.news import Ear, Found


def places_of(first: Int64Array, sizes: Int64Array) -> Int64Array:
    """Numbers from each of these on, as many as there are to be, one after the other."""
    return np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())


def listened(
    ear: Ear, news: Float64Array, chosen: Int64Array, points: Float64Array, first: Int64Array, last: Int64Array
) -> tuple[Float64Array, Found]:
    """What these keys keep of news after points first..last of each, and what these ring; `news` does not change."""
    kept, sizes = news[chosen], last - first
    return kept, ear.watch(kept, points[places_of(first, sizes)], np.repeat(np.arange(len(chosen)), sizes))


def to_news(
    ear: Ear, news: Float64Array, chosen: Int64Array, points: Float64Array, first: Int64Array, stop: Int64Array
) -> Int64Array:
    """Where points first..stop of each of these keys first bring news that rings, that one included."""
    _, found = listened(ear, news, chosen, points, first, stop)
    ends, rows = np.cumsum(stop - first), np.flatnonzero(found.slot >= 0)
    which, places = np.unique(np.searchsorted(ends, rows, side="right"), return_index=True)
    last = stop.copy()
    last[which] = stop[which] - ends[which] + rows[places] + 1
    return last
