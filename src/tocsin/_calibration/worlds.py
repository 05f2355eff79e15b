"""Worlds: streams that could have been, made from a reference in order, to see what a detector makes of chance.

A sieve (Buhlmann 1997): each column is a long autoregression, its order chosen by the corrected criterion of Akaike
(Hurvich and Tsai 1989), and whole rows of what it leaves unforeseen are drawn again, in blocks, so that columns keep
what they have to do with each other and bursts stay bursts. A short reference has not seen the worst: beyond the outer
two in a hundred, what is unforeseen is drawn from an exponential tail.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tocsin._compute import Functions
from tocsin._compute.arrays import Float64Array, Int64Array

LONGEST_ORDER, ROWS_PER_LAG = 30, 12
"""Of an autoregression: lags at most, and rows that a lag needs."""

BLOCKS, SHORTEST_BLOCK, LONGEST_BLOCK = 40, 2, 25
"""Blocks of unforeseen rows that fit into the reference, and the rows of one."""

OUTER, FEWEST_OUTER, FARTHEST = 50, 4, 1.5
"""One in so many is in a tail, so many at least; and how far a tail goes, in what the reference has seen of it."""

SETTLING = 100
"""Rows after which a world has forgotten how it began."""


@dataclass(frozen=True, eq=False)
class World:
    """What a reference (n, d) is like.

    mean: of the columns.  weights: (p, d) of the last p rows.  errors: (m, d) what these left unforeseen.
    low, high: where the tails of the errors begin; below, above: the mean excess there; least, most: the largest.
    """

    mean: Float64Array
    weights: Float64Array
    errors: Float64Array
    block: int
    low: Float64Array
    high: Float64Array
    below: Float64Array
    above: Float64Array
    least: Float64Array
    most: Float64Array

    @classmethod
    def of(cls, rows: Float64Array, edges: Int64Array) -> World:
        """That of rows in order, in groups between `edges`."""
        n, d = rows.shape
        mean = rows.mean(0)
        centred = rows - mean
        longest = int(min(LONGEST_ORDER, n // ROWS_PER_LAG))
        fits = [autoregression(centred[:, j], edges, longest) for j in range(d)]
        orders = np.array([len(fit) for fit in fits])
        weights = np.zeros((max(orders.max(), 1), d))
        for j, fit in enumerate(fits):
            weights[: len(fit), j] = fit
        errors = _errors(centred, edges, weights)
        errors = (errors - errors.mean(0)) * np.sqrt(n / np.maximum(n - 1 - orders, n / 2))
        ordered, outer = np.sort(errors, axis=0), max(FEWEST_OUTER, len(errors) // OUTER)
        high, low = ordered[-outer - 1], ordered[outer]
        return cls(
            mean, weights, errors, int(np.clip(n // BLOCKS, SHORTEST_BLOCK, LONGEST_BLOCK)), low, high,
            (low - ordered[:outer]).mean(0), (ordered[-outer:] - high).mean(0), FARTHEST * (low - ordered[0]),
            FARTHEST * (ordered[-1] - high),
        )  # fmt: skip

    @property
    def memory(self) -> Float64Array:
        """Rows over which what happens to a column has its effect on it."""
        forgotten: Float64Array = 1 / np.maximum(1 - self.weights.sum(0), 1e-9)
        return forgotten

    def draw(self, rng: np.random.Generator, length: int, compute: Functions) -> Float64Array:
        """A stream of so many rows."""
        whole, n = length + SETTLING, len(self.errors)
        starts = rng.integers(0, n, whole // self.block + 1)
        errors = self.errors[(starts[:, None] + np.arange(self.block)).ravel()[:whole] % n]
        excess = rng.exponential(size=errors.shape)
        above = self.high + np.minimum(self.above * excess, self.most)
        below = self.low - np.minimum(self.below * excess, self.least)
        errors = np.where(errors > self.high, above, np.where(errors < self.low, below, errors))
        return self.mean + compute.autoregress(errors, self.weights)[SETTLING:]


def autoregression(values: Float64Array, edges: Int64Array, longest: int) -> Float64Array:
    """Weights of the last values, by Yule and Walker's equations; of a centred series in groups."""
    n, covariance = len(values), np.zeros(longest + 1)
    for start, stop in pairwise(edges):
        group = values[start:stop]
        spectrum = np.fft.rfft(group, 2 * len(group))
        own = np.fft.irfft((spectrum * spectrum.conj()).real)[: longest + 1]
        covariance[: len(own)] += own / n
    if covariance[0] <= 1e-12:
        return np.zeros(0)
    weights, variance = np.zeros(0), covariance[0]
    best, chosen = n * np.log(variance), weights
    for k in range(1, longest + 1):  # Levinson and Durbin's recursion
        reflection = (covariance[k] - weights @ covariance[k - 1 : 0 : -1]) / variance
        weights = np.append(weights - reflection * weights[::-1], reflection)
        variance *= max(1 - reflection**2, 1e-12)
        criterion = n * np.log(variance) + 2 * k * n / max(n - k - 2, 1)
        if criterion < best:
            best, chosen = criterion, weights
    return chosen


def _errors(rows: Float64Array, edges: Int64Array, weights: Float64Array) -> Float64Array:
    """What the last rows did not foresee, of rows that have enough of them in their group (or else of all)."""
    p = len(weights)
    places = [np.arange(start + p, stop) for start, stop in pairwise(edges) if stop - start > p]
    later = np.concatenate(places) if places else np.arange(p, len(rows))
    errors: Float64Array = rows[later]
    for k in range(p):
        errors -= weights[k] * rows[later - 1 - k]
    return errors
