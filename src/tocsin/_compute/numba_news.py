"""What a stream of independent rows brings that its reference never shows, compiled. `numpy_news` has it to read."""

from __future__ import annotations

from math import frexp

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._compute.jit import literal
from tocsin._compute.numpy_news import (
    CORNER,
    DIRECTION,
    LAST,
    MARKS,
    MOST_TIES,
    NEWLY,
    NUMBER,
    OTHER,
    SLOTS,
    TIES,
)

_ALL = 0xFFFFFFFF


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
    found, rare = np.empty(len(points), np.int64), np.empty(len(points))
    _watch(points, owner, heard, layout, limits, spans, quiet, rates, first, known, stops, alone, lasting, found, rare)
    return found, rare


@literal
def _watch(
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
    found: Int64Array,
    rare: Float64Array,
) -> None:
    n, last = points.shape
    for i in range(n):
        found[i], rare[i] = -1, np.inf
        s = owner[i]
        for c in range(layout.shape[0]):
            start, width, form, gap = layout[c, 0], layout[c, 1], layout[c, 2], layout[c, 3]
            gone = False
            if gap >= 0:
                gone = points[i, gap] > 0
            elif gap == NEWLY and points[i, last - 1] > 0:
                gone = True
                for k in range(start, start + width):
                    gone = gone and points[i, k] == 0
            value = 0.0
            if form == NUMBER:
                value = points[i, start]
            elif form == CORNER:
                best = start
                for k in range(start + 1, start + width):
                    if points[i, k] > points[i, best]:
                        best = k
                value = float(best - start)
            elif form == DIRECTION:
                for k in range(width):
                    if points[i, start + k] > 0:
                        value += 2.0**k
            equal = not gone and form != OTHER and value == heard[s, c, LAST]
            is_known, place = False, first[c]
            if not gone and (equal or (form != NUMBER and form != OTHER)):
                low, high = first[c], first[c + 1]
                while low < high:
                    middle = (low + high) // 2
                    if known[middle] < value:
                        low = middle + 1
                    else:
                        high = middle
                place = low
                is_known = place < first[c + 1] and known[place] == value
            for j in range(MARKS):
                marked = gone
                if j == 1:
                    marked = not gone and (value < limits[c, 0] if form == NUMBER else form != OTHER and not is_known)
                elif j == 2:
                    marked = not gone and form == NUMBER and value > limits[c, 1]
                if not marked:
                    if heard[s, c, j] > 0:
                        heard[s, c, j] = float((int(heard[s, c, j]) << 1) & _ALL)
                    continue
                bits = ((int(heard[s, c, j]) << 1) | 1) & _ALL
                heard[s, c, j] = float(bits)
                for w in range(spans.shape[0]):
                    rest, count = bits & ((1 << spans[w]) - 1), 0
                    while rest:
                        rest &= rest - 1
                        count += 1
                    rate = rates[quiet[c, j], w, count]
                    if rate < rare[i]:
                        found[i], rare[i] = c * SLOTS + 2 * j + w, rate
            ties = min(heard[s, c, TIES] + 1.0, float(MOST_TIES)) if equal else 0.0
            heard[s, c, TIES] = ties
            heard[s, c, LAST] = np.inf if gone else value
            if equal:
                needed = stops[place, 0] if is_known else alone[c, 0]
                rate = stops[place, 1] if is_known else alone[c, 1]
                if ties >= needed and rate < rare[i] and (not lasting or frexp(ties / needed)[0] == 0.5):
                    found[i], rare[i] = c * SLOTS + 2 * MARKS, rate
