"""A reference without the points that a warm run begins with.

These points belong to the reference. New observations do not, and differ from it more. So while a run is young the
reference lacks them: each of its points, those it begins with and the first W observations (W the widest window), is
compared with the other reference points. Of what follows each observation is compared with all of the reference.

A point brings its own A' and c', those of the reference that it meets: S is what the pairs of the window say, and the
mean of A' - 2 c' over its points. Live statistics have one A; so points bring `moved`, A' - A, along with their -2 c'.
Where a channel has A - mean c, that is half of what it needs, and `share` says how much of the rest is due.
"""

from __future__ import annotations

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


def without(
    linear: Float64Array, kernels: Float64Array, own: Int64Array, offset: Float64Array, count: int, guard: int
) -> tuple[Float64Array, Float64Array]:
    """-2 c' of these points, (widths, W), which leave a reference of `count`; and how far A moves, (widths,).

    linear: -2 c, of all reference points that each may be compared with.  kernels: of each, the sum of its kernels with
    those of these points that it met.  offset: A.
    """
    leaving, inside = met(own, guard).sum(0), own >= 0
    pairs = others(count, guard)
    before = np.where(inside, pairs[own], count)
    sums = -linear * before / 2
    total = offset * pairs.sum() - 2 * sums[:, inside].sum(1) + kernels[:, inside].sum(1)
    left = pairs.sum() - 2 * before[inside].sum() + leaving[inside].sum()
    return -2 * (sums - kernels) / (before - leaving), total / left - offset


def lacking(
    linear: Float64Array, kernels: Float64Array, count: int, leaving: Int64Array | int, moved: Float64Array
) -> Float64Array:
    """-2 c' + moved of new points, (widths, n), from their -2 c and the sums of their kernels with those that left."""
    return (count * linear + 2 * kernels) / (count - leaving) + moved


def share(windows: Int64Array, time: Int64Array) -> Float64Array:
    """The part of each window that met the lacking reference, after so many observations of the run; (n, windows)."""
    widest = windows.max(initial=0)
    met_all = np.maximum(time - widest, 0)[:, None]
    return np.asarray(np.maximum(windows - met_all, 0) / windows)
