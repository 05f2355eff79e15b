"""What a stream of independent rows brings that its reference never shows: counted row by row. In plain NumPy.

C columns are heard, each with what is kept of it:

    marks       the latest 32 rows as bits, the newest lowest: in which the column is missing; is below all numbers of
                the reference, or a category that it has not; is above all of them
    ties        rows in succession that were equal to the row before
    last        its latest value; infinite where it is missing
"""

from __future__ import annotations

from math import frexp

import numpy as np

from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array

NUMBER, CORNER, DIRECTION, OTHER = 0, 1, 2, 3
"""Forms that columns have in a point: a number; a corner for each category; signs, by a hash of its name; else."""

NEWLY, NEVER = -1, -2
"""Where a column is missing: the last feature says so, and its own are 0; or it never is."""

MARKS, TIES, LAST, KEPT = 3, 3, 4, 5
"""Places in what is kept of a column."""

ROWS = 32
"""That marks remember."""

SLOTS = 2 * MARKS + 1
"""Channels of a column: each mark over each window, and ties."""

MOST_TIES = 2**31 - 1


def news_watch(
    points: Float64Array,
    owner: Int64Array,
    heard: Float64Array,
    layout: Int64Array,
    limits: Float64Array,
    spans: Int64Array,
    quiet: Int64Array,
    rates: Float64Array,
    first: Int64Array,
    known: Float64Array,
    stops: Float64Array,
    alone: Float64Array,
    lasting: bool,
) -> tuple[Int64Array, Float64Array]:
    """Which channel rings with each row (n, D), the rarest of them, and the log of its chance; -1 and inf if none.

    owner: the stream of each row.  heard: what is kept of each stream, (S, C, KEPT); it is changed.
    layout: where the features of a column begin, how many they are, its form, and the feature that says it is missing.
    limits: the smallest and largest number of each column.  spans: two windows.
    quiet, rates: the row of `rates` for each mark of a column; the log of the chance of so many marked rows within a
        window, (kinds, 2, ROWS + 1), infinite where that does not ring.
    known, stops, alone: values of the reference, rising within columns first[c] to first[c + 1]; ties with which each
        rings and the log of their chance; the same for other values of each column.
    lasting: whether what is kept outlives alarms: ties then ring once, and again whenever they have doubled.
    """
    found, rare = np.full(len(points), -1), np.full(len(points), np.inf)
    for i, row in enumerate(points):
        for c, (start, width, form, gap) in enumerate(layout.tolist()):
            own, kept = row[start : start + width], heard[owner[i], c]
            gone = bool(row[gap] > 0) if gap >= 0 else gap == NEWLY and bool(row[-1] > 0 and not own.any())
            value = _value(own, form)
            values = known[first[c] : first[c + 1]]
            place = int(np.searchsorted(values, value))
            is_known = place < len(values) and values[place] == value
            if form == NUMBER:
                marked = [gone, not gone and value < limits[c, 0], not gone and value > limits[c, 1]]
            else:
                marked = [gone, not gone and form != OTHER and not is_known, False]
            for j in range(MARKS):
                bits = (int(kept[j]) << 1 | bool(marked[j])) & 0xFFFFFFFF
                kept[j] = bits
                for w, span in enumerate(spans.tolist()):
                    rate = rates[quiet[c, j], w, (bits & ((1 << span) - 1)).bit_count()]
                    if marked[j] and rate < rare[i]:
                        found[i], rare[i] = c * SLOTS + 2 * j + w, rate
            equal = not gone and form != OTHER and value == kept[LAST]
            kept[TIES] = min(kept[TIES] + 1, MOST_TIES) if equal else 0
            kept[LAST] = np.inf if gone else value
            needed, rate = stops[first[c] + place] if is_known else alone[c]
            if kept[TIES] >= needed and rate < rare[i] and (not lasting or frexp(kept[TIES] / needed)[0] == 0.5):
                found[i], rare[i] = c * SLOTS + 2 * MARKS, rate
    return found, rare


def _value(own: Float64Array, form: int) -> float:
    """What a column holds, as one number."""
    if form == NUMBER:
        return float(own[0])
    if form == CORNER:
        return float(own.argmax())
    return float(sum(1 << k for k in np.flatnonzero(own > 0).tolist())) if form == DIRECTION else 0.0


def news_values(points: Float64Array, layout: Int64Array) -> tuple[Float64Array, BoolArray]:
    """What each column of these rows holds, as one number, and where it is missing; (n, C) both."""
    values, missing = np.zeros((len(points), len(layout))), np.zeros((len(points), len(layout)), dtype=bool)
    for c, (start, width, form, gap) in enumerate(layout.tolist()):
        own = points[:, start : start + width]
        if form == NUMBER:
            values[:, c] = own[:, 0]
        elif form == CORNER:
            values[:, c] = own.argmax(1)
        elif form == DIRECTION:
            values[:, c] = (own > 0) @ (2.0 ** np.arange(width))
        if gap >= 0:
            missing[:, c] = points[:, gap] > 0
        elif gap == NEWLY:
            missing[:, c] = (points[:, -1] > 0) & ~own.any(1)
    return values, missing
