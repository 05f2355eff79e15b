"""Do rows that are far from the middle come together, though their levels tell nothing of each other?"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from tocsin._compute.arrays import Float64Array

LAGS = 4
"""Rows apart that count as together, at most."""

MOST_ROWS = 2000
"""In references that are longer, pairs of rows show bursts too (`dependence`)."""

UNUSUAL = 0.1
"""What the normal law calls likelier than this is not ranked among random orders."""

ORDERS, ENOUGH = 499, 5
"""Random orders that the real one is ranked among; and how many that are as unusual settle that it is not."""


def bursting(rows: Float64Array) -> float:
    """p-value of a test whether rows (n, d) that are far from the middle of some column come in bursts; always the same
    for the same rows.

    The score is the largest of the columns' serial correlations of ranks of distances from the median, added up over a
    few lags. Scores that are nothing unusual by the normal law (Wald and Wolfowitz 1943) are not ranked.
    """
    n = len(rows)
    if not LAGS < n <= MOST_ROWS:
        return 1.0
    with np.errstate(over="ignore"):  # what is infinitely far has the last rank
        far = np.column_stack([_ranks(column) for column in np.abs(rows - np.median(rows, axis=0)).T])
    far = (far - far.mean(0)) / np.maximum(far.std(0), 1e-300)
    own = _score(far)
    by_law = min(1.0, len(rows.T) * NormalDist().cdf(-own))
    if by_law > UNUSUAL:
        return by_law
    rng, above, made = np.random.default_rng(0), 0, 0
    while above < ENOUGH and made < ORDERS:
        above, made = above + (_score(far[rng.permutation(n)]) >= own), made + 1
    return (above + 1) / (made + 1)


def _ranks(values: Float64Array) -> Float64Array:
    """Of each of these numbers; equal ones share the mean of theirs."""
    ordered = np.sort(values)
    ranks: Float64Array = (ordered.searchsorted(values) + ordered.searchsorted(values, side="right") + 1) / 2
    return ranks


def _score(far: Float64Array) -> float:
    """In standard deviations over random orders."""
    together = np.zeros(far.shape[1])
    for lag in range(1, LAGS + 1):
        together += (far[lag:] * far[:-lag]).sum(0)
    return (float(together.max()) + LAGS) / math.sqrt(LAGS * len(far))
