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

MOST_PAIRS = 4096
"""Pairs of points at each lag that the test looks at."""

UNUSUAL = 0.2
"""What the normal law calls likelier than this is not ranked among random orders, which takes much longer."""

MOST_ORDERS, FEW_ORDERS, CLEARLY, ENOUGH = 499, 99, 1.4, 5
"""Random orders that the one at hand is ranked among; how many will do if its score is so many times the largest of
theirs; and scores above its own that settle that it is nothing unusual."""

NEXT = 1.3
"""How much more the first two lags count: what depends on anything depends most on what was just before it."""

SIGNIFICANT = 0.01
"""A reference of independent points is called dependent this often."""

CAUTIOUS, FEWEST_TOLD = 0.05, 200
"""Up to here it is not sure that the order means nothing, and below so many points never: most of such references do
not show a memory of 0.2, which lets alarms come twice as often."""

NEGLIGIBLE = 2.0
"""An autocovariance within so many standard errors, times sqrt(log10 N), is taken for 0 (Politis and White 2004)."""


def dependence(similarity: Similarity, edges: Int64Array, reach: int) -> float:
    """p-value of a test for serial dependence at lags 1, 2, 4, ... up to `reach`.

    Points a lag apart, within a group, are compared by the statistic's own kernel. The score is the largest
    standardised mean over a lag, or over all lags up to one, and is ranked among those of random orders: always the
    same ones, so that the answer is the reference's and nobody's luck. Scores that are nothing unusual by the normal
    law, where sums of unrelated kernels tend, are not ranked. The ranking needs no law; over orders drawn anew its
    level would be exact, but for the few that stop early. With these it is measured (benchmarks/order.py).
    """
    lags = [int(lag) for lag in 2 ** np.arange(20) if lag <= reach]
    pairs = {lag: _spread_evenly(_pairs(edges, lag), MOST_PAIRS) for lag in lags}
    pairs = {lag: places for lag, places in pairs.items() if len(places[0])}
    if not pairs:
        return 1.0
    count, rng = int(edges[-1]), np.random.default_rng(0)
    first, second = (np.concatenate(places) for places in zip(*pairs.values(), strict=True))
    scored = _Score(list(pairs), [len(places[0]) for places in pairs.values()])
    own = scored(similarity(first, second))
    by_law = scored.by_normal_law(own)
    if by_law > UNUSUAL:
        return by_law
    above, largest, made = 0, 0.0, 0
    while above < ENOUGH and made < MOST_ORDERS and not (made == FEW_ORDERS and own > CLEARLY * largest):
        order = rng.permutation(count)
        score = scored(similarity(order[first], order[second]))
        above, largest, made = above + (score >= own), max(largest, score), made + 1
    return (above + 1) / (made + 1)


class _Score:
    """How much points that come soon after each other are alike, or unlike.

    lags: that are looked at.  sizes: how many pairs of points at each; their kernels come lag by lag.
    """

    def __init__(self, lags: list[int], sizes: list[int]) -> None:
        self._sizes, self._starts = np.array(sizes), np.cumsum([0, *sizes[:-1]])
        # A lag stands for those since the one before it too.
        self._spans = np.diff([0, *lags]).astype(np.float64)
        single = np.where(np.arange(len(lags)) == 0, NEXT, 1.0)
        self._weights = np.concatenate([single, np.where(np.arange(1, len(lags)) == 1, NEXT, 1.0)])

    def __call__(self, kernels: Float64Array) -> float:
        means = np.add.reduceat(kernels, self._starts) / self._sizes
        variances = np.add.reduceat(kernels**2, self._starts) / self._sizes**2
        sums, their = np.cumsum(self._spans * means), np.cumsum(self._spans**2 * variances)
        values, spreads = np.concatenate([means, sums[1:]]), np.sqrt(np.concatenate([variances, their[1:]]))
        scores = self._weights * np.abs(values) / np.where(spreads > 0, spreads, np.inf)
        return float(scores.max())

    def by_normal_law(self, score: float) -> float:
        """The p-value of a score, were kernels many independent numbers."""
        each = [2 * NormalDist().cdf(-score / weight) for weight in self._weights.tolist()]
        return 1 - math.prod(1 - p_value for p_value in each)


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
