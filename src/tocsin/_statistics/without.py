"""A reference without the points that a warm run begins with.

These points belong to the reference. New observations do not, and differ from it more. So while a run is young the
reference lacks them: each of its points, those it begins with and the first W observations (W the widest window), is
compared with the other reference points. What follows is compared with all of the reference.

N - W points vary more than N, and thresholds are for N. So those that leave keep a weight of 1 - `away`, by which they
resemble the window a little: with w = W / N, a window mean less the reference's then varies as it should,
(1 - w) / (1 - away w)^2 = 1 + w times as much as the window mean alone.

A point brings its own A' and c', those of the reference that it meets: S is what the pairs of the window say, and the
mean of A' - 2 c' over its points. Live statistics have one A; so points bring `moved`, A' - A, along with their -2 c'.
Where a channel has A - mean c, that is half of what it needs, and `share` says how much of the rest is due.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array
from tocsin._statistics.neighbours import others


def met(own: Int64Array, guard: int) -> BoolArray:
    """met[i, j]: whether point i leaves what point j is compared with; own: their places in the reference, -1 for none.

    What is not there cannot leave it, and what is within the guard was never compared.
    """
    inside = own >= 0
    apart: BoolArray = (np.abs(own[:, None] - own) > guard) | ~inside
    return apart & inside[:, None]


def away(count: int, leaving: Int64Array | int) -> Float64Array:
    """By how much each of so many points leaves a reference of `count`: 1 is all of it."""
    part = np.asarray(leaving) / count
    return np.asarray((1 - np.sqrt((1 - part) / (1 + part))) / np.where(part > 0, part, 1.0))


def without(
    linear: Float64Array, kernels: Float64Array, own: Int64Array, offset: Float64Array, count: int, guard: int
) -> tuple[Float64Array, Float64Array]:
    """-2 c' of these points, (widths, W), which leave a reference of `count`; and how far A moves, (widths,).

    linear: -2 c, of all reference points that each may be compared with.  kernels: of each, the sum of its kernels with
    those of these points that it met.  offset: A.
    """
    inside = own >= 0
    weight, pairs = float(away(count, int(inside.sum()))), others(count, guard)
    before, leaving = np.where(inside, pairs[own], count), met(own, guard).sum(0)
    sums = -linear * before / 2
    total = offset * pairs.sum() - weight * (2 * sums - weight * kernels)[:, inside].sum(1)
    left = pairs.sum() - weight * (2 * before - weight * leaving)[inside].sum()
    return -2 * (sums - weight * kernels) / (before - weight * leaving), total / left - offset


def factors(count: int, leaving: Int64Array | int) -> tuple[Float64Array, Float64Array]:
    """What -2 c of new points counts for in their -2 c', and the sums of their kernels with the points that left."""
    weight = away(count, leaving)
    left = count - weight * leaving
    return np.asarray(count / left), np.asarray(2 * weight / left)


@cache
def factors_of_one(count: int, leaving: int) -> tuple[float, float]:
    """`factors` as numbers, for runs that are stepped one observation at a time: many ask for the same."""
    own, gone = factors(count, leaving)
    return float(own), float(gone)


def share(windows: Int64Array, widest: int, time: Int64Array) -> Float64Array:
    """The part of each window that met the lacking reference, after so many observations of the run; (n, windows)."""
    met_all = np.maximum(time - widest, 0)[:, None]
    return np.asarray(np.maximum(windows - met_all, 0) / windows)
