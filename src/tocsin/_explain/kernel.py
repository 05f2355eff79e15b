"""The kernel by which an explanation compares observations, and a choice of reference points to compare with."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.spatial.distance import cdist

from tocsin._common.seeds import Purpose, generator
from tocsin._compute.arrays import FARTHEST, Array, Float64Array, Int64Array
from tocsin._statistics.kernels import Kernel, median_distance

WIDTH, CHOICE, TIES = 1, 2, 3
"""Parts of an explanation that draw at random."""

LARGEST_SQUARE = 1e6
"""Squared distances are differences of larger squares, up to these: beyond, too many digits would cancel."""


def gaussian(width: float) -> Kernel:
    """k(x, y) = exp(-|x - y|^2 / (2 width^2)) between rows of numbers."""
    return partial(_kernel, width)


def median_width(reference: Float64Array, seed: int) -> float:
    """A width for what has none of its own: the median distance between reference points."""
    return median_distance(reference, generator(seed, Purpose.EXPLAIN, WIDTH))


def _kernel(width: float, first: Float64Array, second: Float64Array) -> Array:
    return np.exp(-exponents(first, second, width))


def exponents(first: Float64Array, second: Float64Array, width: float) -> Float64Array:
    """|x - y|^2 / (2 width^2) between rows."""
    x, y = scaled(first, width), scaled(second, width)
    centre = y.mean(0)
    x, y = x - centre, y - centre
    squares, others = (x**2).sum(1), (y**2).sum(1)
    if max(squares.max(initial=0), others.max(initial=0)) > LARGEST_SQUARE:
        differences: Float64Array = cdist(x, y, "sqeuclidean")
        return differences
    return np.asarray(np.maximum(squares[:, None] + others - 2 * (x @ y.T), 0))


def scaled(rows: Float64Array, width: float) -> Float64Array:
    """Rows in units in which the kernel is exp(-|x - y|^2), absurd values cut off as the detector does."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(rows * (np.sqrt(0.5) / width), -FARTHEST, FARTHEST))


def some(count: int, most: int, seed: int) -> Int64Array:
    """At most so many of `count` places, in random order: a seeded choice, the same each time."""
    return generator(seed, Purpose.EXPLAIN, CHOICE, count).permutation(count)[:most]
