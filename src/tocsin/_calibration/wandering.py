"""Does the level of a column move on, so that what is far apart in time differs more than neighbours do?"""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array

STRETCHES, SHORTEST, FEWEST = 24, 10, 6
"""Stretches whose means are compared, at most; the rows of one; and stretches that say anything."""

ORDERS = 999
"""Random orders of the stretches that the real one is ranked among."""

SELDOM, LIKE_WORLDS = 0.01, 0.05
"""How often a column that does not wander is said to, if stretches do not depend on each other; and if the column has a
memory that is short, like that of worlds made of it."""

AT_ONCE = 64
"""Columns whose orders are looked at together."""

AS_LONG = 0.1
"""A memory of this part of the reference is as good as one without end."""


def unlikeness(rows: Float64Array) -> Float64Array:
    """Von Neumann's ratio (1941) of the means of stretches, of columns of rows (n, d) in time: small where neighbours
    are more alike than others."""
    means = _means(rows)
    if len(means) < FEWEST:
        return np.full(rows.shape[1], np.inf)
    ratio: Float64Array = _ratio(means[None])[0]
    return ratio


def wandering(rows: Float64Array, worlds: Float64Array, memory: Float64Array, rng: np.random.Generator) -> Int64Array:
    """The columns of rows (n, d) in time that wander: trends, walks, and memories as long as the reference.

    Neighbouring stretches are more alike than they would be in another order of the stretches, and than those of
    worlds are; or so much alike that worlds made of them wander too.

    worlds: `unlikeness` of worlds made of the rows, (worlds, d).  memory: of each column, in rows.
    """
    means = _means(rows)
    if len(means) < FEWEST:
        return np.empty(0, np.int64)
    own = unlikeness(rows)
    orders = np.argsort(rng.random((ORDERS, len(means))), axis=1)
    rank = (_ratio(means[orders]) <= own).sum(0) + 1
    ordered = (rank <= SELDOM * (ORDERS + 1)) & (means.std(0) > 0)
    unlike_worlds = (worlds <= own).mean(0) <= LIKE_WORLDS
    return np.flatnonzero(ordered & (unlike_worlds | (memory >= AS_LONG * len(rows))))


def moving(rows: Float64Array) -> float:
    """p-value of a test whether any column of rows (n, d) in time wanders; always the same for the same rows.

    Of rows whose order means nothing, stretches come in any order alike. Columns are compared by how far their ratio is
    from its mean over random orders, in standard deviations, and the furthest of them by that of these orders.
    """
    means = _means(rows)
    if len(means) < FEWEST:
        return 1.0
    orders = np.argsort(np.random.default_rng(0).random((ORDERS, len(means))), axis=1)
    orders = np.vstack([np.arange(len(means)), orders])
    furthest = np.full(len(orders), np.inf)
    for first in range(0, means.shape[1], AT_ONCE):
        with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond 1e154 have no squares
            ratios = _ratio(means[:, first : first + AT_ONCE][orders])
            off = (ratios - ratios.mean(0)) / np.maximum(ratios.std(0), 1e-9)
        furthest = np.fmin(furthest, np.where(np.isfinite(off), off, 0.0).min(1))
    return float((furthest <= furthest[0]).mean())


def _means(rows: Float64Array) -> Float64Array:
    """Of stretches."""
    count = max(min(STRETCHES, len(rows) // SHORTEST), 1)
    edges = np.linspace(0, len(rows), count + 1).astype(int)
    means: Float64Array = np.add.reduceat(rows, edges[:-1], axis=0) / np.diff(edges)[:, None]
    return means


def _ratio(means: Float64Array) -> Float64Array:
    """Mean squares of steps from one stretch to the next, in the variance; (orders, stretches, d) to (orders, d)."""
    ratio: Float64Array = (np.diff(means, axis=1) ** 2).mean(1) / np.maximum(means.var(1), 1e-300)
    return ratio
