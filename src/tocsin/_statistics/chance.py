"""How rare a handful of rows is, of a kind that the reference has seldom or never.

An event of unknown probability p was seen in m of N rows of the reference. That it comes in k further rows has,
whatever p is, a probability of at most

    (m + 1) (m + 2) ... (m + k) / ((N + 1) (N + 2) ... (N + k))

on average over references, in this sense: an alarm for which k is chosen by m so that this is at most a has a
probability of at most a. For the sum over m of P(m | p) p^k over this is that of P(Bin(N + k, p) = m + k), and m + k
grows with m. (Laplace's rule of succession is k = 1, m = 0.) That k rows are all above the largest of N has the
probability of m = 0, exactly, if no two numbers are equal, whatever their law.
"""

from __future__ import annotations

import math

import numpy as np

from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array

MOST_ROWS = 100_000
"""Rows in succession that are looked for, at most."""

LEAST_TIMES = 3
"""The longest run of equal values that the reference has, so often at least, is one that says something."""


def log_chance(window: int, rows: int, seen: int, count: int) -> float:
    """Of a row that is the last of so many of a kind within a window, if `seen` of `count` reference rows are of it.

    >>> round(math.exp(log_chance(1, 1, 0, 999)), 9)
    0.001
    """
    return math.log(math.comb(window - 1, rows - 1)) + log_succession(rows, seen, count)


def log_succession(rows: int, seen: int, count: int) -> float:
    """Of so many further rows that are all of a kind."""
    return math.lgamma(seen + 1 + rows) - math.lgamma(seen + 1) + math.lgamma(count + 1) - math.lgamma(count + 1 + rows)


def stopping(seen: Int64Array, count: int, log_allowed: float) -> Float64Array:
    """Of values that so many rows of the reference have: how often each may come again at once, and the log of the
    chance of that, (n, 2); infinite where the reference makes no number of times implausible."""
    kinds, places = np.unique(seen, return_inverse=True)
    found = np.tile([math.inf, 0.0], (len(kinds), 1))
    for k, own in enumerate(kinds.tolist()):
        if rows := _needed(own, count, log_allowed):
            found[k] = rows, log_succession(rows, own, count)
    return found[places]


def standing(runs: Int64Array, count: int, log_allowed: float) -> tuple[float, float]:
    """How often a value may come again at once where rows are not independent, and the log of the chance of that for
    each row; infinite where the reference makes no number of times implausible.

    runs: the lengths of the reference's own runs of equal values, in rows.  That a further run is longer than k times
    the longest of R has a probability of (1 ... k) / ((R + 1) ... (R + k)) at most if their lengths are geometric,
    whatever the mean. Long runs may be of another sort than most: so the same is asked of what those more than half as
    long as the longest have beyond that.

    >>> standing(np.ones(200, np.int64), 200, math.log(1e-5))[0], standing(np.full(20, 10), 200, math.log(1e-5))[0]
    (3.0, 40.0)
    """
    longest, needed, rate = int(runs.max(initial=0)), 0, -math.inf
    for floor in (0, longest // 2):
        over = int((runs > floor).sum())
        each = math.log(over / count) if over else 0.0
        times = max(_needed(0, over, log_allowed - each), LEAST_TIMES) if over else 0
        if not times or log_succession(times, 0, over) + each > log_allowed:
            return math.inf, 0.0
        needed = max(needed, floor + times * (longest - floor))
        rate = max(rate, log_succession(times, 0, over) + each)
    return (float(needed), rate) if needed <= MOST_ROWS else (math.inf, 0.0)


def runs_of(values: Float64Array, there: BoolArray, edges: Int64Array) -> Int64Array:
    """Lengths of runs of equal values, which neither gaps nor edges of groups belong to.

    >>> runs_of(np.array([1.0, 1, 1, 2, 2, 2]), np.array([True] * 5 + [False]), np.array([0, 2, 6]))
    array([2, 1, 2])
    """
    begins = np.ones(len(values), dtype=bool)
    begins[1:] = (values[1:] != values[:-1]) | ~there[:-1]
    begins[edges[:-1]] = True
    number = np.cumsum(begins)[there]
    return np.unique(number, return_counts=True)[1].astype(np.int64)


def _needed(seen: int, count: int, log_allowed: float) -> int:
    """The fewest further rows whose chance is as little as this; 0 if there is no such number."""
    low, high = 0, 1
    while log_succession(high, seen, count) > log_allowed:
        low, high = high, 2 * high
        if high > MOST_ROWS:
            return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log_succession(middle, seen, count) > log_allowed else (low, middle)
    return high
