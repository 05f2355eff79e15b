"""Does the order of the reference matter? A test, and how long blocks must be if it does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array

Similarity = Callable[[Int64Array, Int64Array], Float64Array]
"""A statistic's centred kernel between reference points, given by their places: 0 on average if they are unrelated."""

PERMUTATIONS = 99
MOST_PAIRS = 1000
"""Pairs of points at each lag that the test looks at."""

UNUSUAL = 0.2
"""What the normal law calls likelier than this is not ranked among random orders, which takes much longer."""

SIGNIFICANT = 0.01
"""A reference of independent points is called dependent this often."""

NEGLIGIBLE = 2.0
"""An autocovariance within so many standard errors, times sqrt(log10 N), is taken for 0 (Politis and White 2004)."""


def dependence(similarity: Similarity, edges: Int64Array, reach: int, rng: np.random.Generator) -> float:
    """p-value of a test for serial dependence at lags 1, 2, 4, ... up to `reach`.

    Points a lag apart, within a group, are compared by the statistic's own kernel; the largest standardised mean over
    the lags is ranked among those of random orders. Means that are nothing unusual by the normal law, where sums of
    unrelated kernels tend, are not ranked. So independent points are found dependent no more often than the ranking
    would, which is exact, whatever the law.
    """
    lags = [lag for lag in 2 ** np.arange(20) if lag <= reach]
    pairs = [_spread_evenly(_pairs(edges, int(lag)), MOST_PAIRS) for lag in lags]
    pairs = [places for places in pairs if len(places[0])]
    if not pairs:
        return 1.0
    count = int(edges[-1])
    first, second = (np.concatenate(places) for places in zip(*pairs, strict=True))
    sizes = np.array([len(places[0]) for places in pairs])
    starts = np.cumsum(sizes) - sizes
    own = similarity(first, second)
    means = [np.add.reduceat(own, starts) / sizes]
    by_law = _by_normal_law(means[0], own, sizes)
    if by_law > UNUSUAL:
        return by_law
    for _ in range(PERMUTATIONS):
        order = rng.permutation(count)
        means.append(np.add.reduceat(similarity(order[first], order[second]), starts) / sizes)
    # The order at hand is measured by the same mean and spread as the others, so all are exchangeable.
    spread = np.std(means, axis=0)
    scores = np.abs(means - np.mean(means, axis=0)) / np.where(spread > 0, spread, np.inf)
    largest = scores.max(1)
    return float((largest[1:] >= largest[0]).sum() + 1) / (PERMUTATIONS + 1)


def _by_normal_law(means: Float64Array, values: Float64Array, sizes: Int64Array) -> float:
    """The p-value of the largest of these means, of so many of the values each, were they of independent numbers."""
    square = float(np.mean(values**2))
    if square == 0:
        return 1.0
    largest = float(np.max(np.abs(means) * np.sqrt(sizes / square)))
    return 1 - (1 - 2 * NormalDist().cdf(-largest)) ** len(means)


def _pairs(edges: Int64Array, lag: int) -> tuple[Int64Array, Int64Array]:
    """All places, and those a lag later in the same group."""
    place = np.arange(edges[-1] - lag)
    group = np.searchsorted(edges, place, side="right")
    first = place[place + lag < edges[np.minimum(group, len(edges) - 1)]]
    return first, first + lag


def _spread_evenly(pairs: tuple[Int64Array, Int64Array], most: int) -> tuple[Int64Array, Int64Array]:
    first, second = pairs
    if len(first) <= most:
        return pairs
    chosen = np.linspace(0, len(first) - 1, most).astype(np.int64)
    return first[chosen], second[chosen]


@dataclass(frozen=True)
class Memory:
    """How long blocks should be, and how far dependence reaches, in observations."""

    block: int
    reach: int


def memory(similarity: Similarity, edges: Int64Array, rng: np.random.Generator) -> Memory:
    """The block length that estimates the variance of the mean best, for the mean of the kernel's features.

    Politis and White (2004), corrected by Patton, Politis and White (2009), with the trace of the kernel's
    autocovariance operator for the autocovariance, and its Hilbert-Schmidt norm where the variance of the estimate
    asks for a square.
    """
    count = int(edges[-1])
    everyone = np.arange(count)
    patience = max(5, math.ceil(math.sqrt(math.log10(count))))
    longest = math.ceil(math.sqrt(count)) + patience
    variance = float(similarity(everyone, everyone).mean())
    pairs = rng.permutation(count), rng.permutation(count)
    apart = pairs[0] != pairs[1]
    square = float((similarity(pairs[0][apart], pairs[1][apart]) ** 2).mean())
    if variance <= 0 or square <= 0:
        return Memory(1, 0)
    noise = NEGLIGIBLE * math.sqrt(math.log10(count) * square / count)
    covariances = [variance]
    quiet = 0
    while quiet < patience and len(covariances) <= longest:
        first, second = _pairs(edges, len(covariances))
        covariances.append(float(similarity(first, second).mean()) if len(first) else 0.0)
        quiet = quiet + 1 if abs(covariances[-1]) < noise else 0
    lags = len(covariances) - 1 - quiet
    window = max(2 * lags, 1)
    for lag in range(len(covariances), window + 1):
        first, second = _pairs(edges, lag)
        covariances.append(float(similarity(first, second).mean()) if len(first) else 0.0)
    steps = np.arange(1, window + 1)
    flat_top = np.clip(2 * (1 - steps / window), 0, 1)
    values = flat_top * np.array(covariances)[1 : window + 1]
    weighted, total = 2 * float((steps * values).sum()), variance + 2 * float(values.sum())
    spread = 4 / 3 * max(total, variance / 10) ** 2 * square / variance**2
    block = (2 * weighted**2 / spread) ** (1 / 3) * count ** (1 / 3)
    return Memory(max(1, math.ceil(min(block, 3 * math.sqrt(count), count / 3))), window if lags else 0)
