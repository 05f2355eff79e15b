"""Does the level of a column move on, so that what is far apart in time differs more than neighbours do?"""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array

STRETCHES, SHORTEST = 24, 10
"""Stretches whose means are compared, at most, and the rows of one."""

ORDERS = 999
"""Random orders of the stretches that the real one is ranked among."""

SELDOM = 0.01
"""How often a column that does not wander is said to, if stretches do not depend on each other."""


def wandering(rows: Float64Array, rng: np.random.Generator) -> Int64Array:
    """The columns of rows (n, d) in time that wander: trends, walks, and memories as long as the reference.

    Neighbouring stretches are more alike than they would be in any other order: von Neumann's ratio (1941) of their
    means, ranked among random orders.
    """
    count = min(STRETCHES, len(rows) // SHORTEST)
    if count < 6:
        return np.empty(0, np.int64)
    edges = np.linspace(0, len(rows), count + 1).astype(int)
    means = np.add.reduceat(rows, edges[:-1], axis=0) / np.diff(edges)[:, None]
    steps = _steps(means[None])[0]
    orders = np.argsort(rng.random((ORDERS, count)), axis=1)
    others = _steps(means[orders])
    rank = (others <= steps).sum(0) + 1
    return np.flatnonzero((rank <= SELDOM * (ORDERS + 1)) & (means.std(0) > 0))


def _steps(means: Float64Array) -> Float64Array:
    """Mean squares of the steps from one stretch to the next; (orders, stretches, d) to (orders, d)."""
    squares: Float64Array = (np.diff(means, axis=1) ** 2).mean(1)
    return squares
