"""When a change began: a posterior over the places where recent observations may turn to another law.

Every recent point is described by features of the kernel whose law under the reference is known: its place along the
principal axes of the reference in the kernel's space, and how typical it is of the reference (its mean similarity). All
are brought to normal scores by their ranks among reference points, ties broken at random. If the change began at a
place, points from there on are drawn from another law, and two models say which:

- shift: the mean along every axis is another, by a normal prior with a variance that falls as the kernel's spectrum
  does (what the MMD gives weight to); several sizes, averaged.
- typicality: mean and variance of that one score are others, by a normal-gamma prior.

Both have evidence in closed form for every place at once. Nothing is fitted to the recent points, so an interval needs
no correction for having searched; what the models have wrong (axes that are not independent) is met by tempering.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from tocsin._common.seeds import Purpose, generator
from tocsin._compute.arrays import Array, Float64Array
from tocsin._explain.kernel import TIES, some
from tocsin._statistics.base import Points, choose
from tocsin._statistics.kernels import Kernel

LEVEL = 0.9
"""Probability with which the interval holds the onset."""

LANDMARKS, HELD = 250, 600
"""Reference points that all others are compared with, and those that scores are ranks among."""

FOUND_FROM = 150
"""Landmarks that the axes are found from."""

AXES, LEAST_AXIS = 100, 1e-3
"""Axes in use, at most, and the part of the first's variance that each has, at least."""

SIZES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Mean squared shifts along an axis that are tried, in variances of the reference."""

TEMPER = 0.8
"""What a unit of log evidence of a shift counts for. Scores along many axes are not quite independent."""

LATENESS = 1.5
"""How fast longer delays get less likely beforehand: as their ratio to the window, to minus this power."""

STRETCH, LEAST_CORRELATION, LONGEST_MEMORY = 1000, 0.05, 4
"""Observations in order that show how far a memory reaches, the correlation at which it is taken to end, and the part
of the stretch, 1 in so many, that it reaches at most."""

SPREAD_STRENGTH = 2.0
"""How many observations the prior of the typicality's variance is worth, halved."""


@dataclass(frozen=True, eq=False)
class Onset:
    """Where a change began, as a place among the recent observations: that of the first from the new law.

    estimate: the median.  low, high: the ends of an interval that holds it with probability LEVEL; both belong to it.
    probabilities: of every place; (n,).
    """

    estimate: int
    low: int
    high: int
    probabilities: Float64Array


def find_onset(
    recent: Points,
    reference: Points,
    kernel: Kernel,
    window: int,
    *,
    after: int = 0,
    ordered: bool = False,
    seed: int = 0,
    axes: Axes | None = None,
) -> Onset:
    """When the change began that made a detector ring.

    Parameters
    ----------
    recent
        The observations of this run, oldest first; the latest of them, if they are many.
    reference
        Observations from before, a dozen at least.
    kernel
        How alike two observations are; that of the channel that spoke, if it has one.
    window
        Of the channel that spoke. A change that began several windows before the alarm would likely have been heard
        earlier, or by a wider window.
    after
        How many of the recent observations came after the alarm.
    ordered
        Whether observations depend on those before them, and the reference is in the order in which they came. Then
        several tell only as much as one that is independent of the others, and the evidence counts for less.
    axes
        `Axes.of` this reference and kernel, if they are known.
    """
    features = axes or Axes.of(reference, kernel, seed)
    rng = generator(seed, Purpose.EXPLAIN, TIES, len(recent))
    places, typical = features.scores(recent, rng)
    memory, memory_of_typical = np.ones(places.shape[1]), np.ones(1)
    if ordered:
        earlier, earlier_typical = features.scores(choose(reference, np.arange(min(len(reference), STRETCH))), rng)
        memory, memory_of_typical = _memory(earlier), _memory(earlier_typical[:, None])
    shifts = [_shift(places, size * features.weights, memory, features.held) for size in SIZES]
    evidence = [TEMPER * shift - np.log(len(SIZES)) for shift in shifts] + [_another_law(typical) / memory_of_typical]
    length = np.arange(len(recent), 0, -1) - after
    log = special.logsumexp(evidence, axis=0) - np.log1p((np.maximum(length, 0) / window) ** LATENESS)
    log[length < 1] = -np.inf
    probabilities = np.exp(log - special.logsumexp(log))
    low, estimate, high = np.searchsorted(np.cumsum(probabilities), [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2])
    last = len(recent) - 1
    return Onset(min(int(estimate), last), min(int(low), last), min(int(high), last), probabilities)


class Axes:
    """What points are described by: normal scores along the axes, and of how typical they are.

    weights: variances of the reference along the axes, 1 on average, (K,).
    held: how many reference points the scores are ranks among.
    """

    @classmethod
    def of(cls, reference: Points, kernel: Kernel, seed: int) -> Axes:
        """From some points of a reference."""
        return cls(choose(reference, some(len(reference), LANDMARKS + HELD, seed)), kernel)

    def __init__(self, reference: Points, kernel: Kernel) -> None:
        landmarks = min(LANDMARKS, len(reference) // 3)
        self._landmarks, self._kernel = choose(reference, np.arange(landmarks)), kernel
        similar = self._similar(reference)
        own = similar[: min(FOUND_FROM, landmarks), : min(FOUND_FROM, landmarks)]
        self._mean = own.mean(0)
        values, vectors = np.linalg.eigh(own - self._mean - self._mean[:, None] + self._mean.mean())
        kept = np.flatnonzero(values > LEAST_AXIS * max(values[-1], np.finfo(np.float64).tiny))[::-1][:AXES]
        self._axes = vectors[:, kept] / np.sqrt(values[kept])
        rest = similar[landmarks:]
        self._places, self._typical, self.held = self._along(rest), rest.mean(1)[:, None], len(rest)
        variances = self._places.var(0)
        self.weights: Float64Array = variances / variances.mean() if len(variances) else variances

    def scores(self, points: Points, rng: np.random.Generator) -> tuple[Float64Array, Float64Array]:
        """Along the axes (n, K), and of how typical points are (n,)."""
        similar = self._similar(points)
        typical = _normal_scores(similar.mean(1)[:, None], self._typical, rng)
        return _normal_scores(self._along(similar), self._places, rng), typical[:, 0]

    def _similar(self, points: Points) -> Float64Array:
        return np.asarray(self._kernel(points, self._landmarks), dtype=np.float64)

    def _along(self, similar: Float64Array) -> Float64Array:
        return np.asarray((similar[:, : len(self._mean)] - self._mean) @ self._axes)


def _memory(scores: Float64Array) -> Float64Array:
    """How many observations in a row tell as much of a mean as one that is alone, from scores (n, K) in order; (K,)."""
    centred = scores - scores.mean(0)
    variance = np.maximum((centred**2).sum(0), np.finfo(np.float64).tiny)
    memory, lasting = np.ones(scores.shape[1]), np.ones(scores.shape[1], dtype=bool)
    for lag in range(1, len(scores) // LONGEST_MEMORY):
        correlation = (centred[lag:] * centred[:-lag]).sum(0) / variance
        lasting &= correlation > LEAST_CORRELATION
        if not lasting.any():
            break
        memory[lasting] += 2 * correlation[lasting]
    return memory


def _normal_scores(values: Array, among: Array, rng: np.random.Generator) -> Float64Array:
    """Ranks of values (n, K) among others (m, K), as quantiles of the normal law.

    Ties are broken at random, so that the scores have that law whatever the values'.
    """
    ordered = np.sort(among, axis=0)
    ranks = np.empty(values.shape)
    for j, (column, own) in enumerate(zip(ordered.T, values.T, strict=True)):
        below, up_to = np.searchsorted(column, own, "left"), np.searchsorted(column, own, "right")
        ranks[:, j] = below + rng.random(len(own)) * (up_to - below + 1)
    scores: Float64Array = special.ndtri(np.clip(ranks, 0.5, len(among) + 0.5) / (len(among) + 1))
    return scores


def _from_here_on(values: Array) -> Float64Array:
    """Sums over each place and all that follow."""
    return np.cumsum(values[::-1], axis=0)[::-1]


def _shift(scores: Float64Array, variances: Float64Array, memory: Float64Array, held: int) -> Float64Array:
    """Log Bayes factor, for a change at every place, of means with these prior variances against means of 0.

    memory: of the scores along each axis. Sums vary by so many times more, and also since a mean of 0 is that of the
        reference points held, from which alone the law's own is known.
    """
    length = np.arange(len(scores), 0, -1)[:, None]
    noise = memory * (1 + length / held)
    squares, growth = _from_here_on(scores) ** 2, 1 + length * variances / noise
    factors = (0.5 * variances * squares / (noise**2 * growth) - 0.5 * np.log(growth)).sum(1)
    # Axes that bend together all tell of one shift. The sum of their squares is then e^I - 1, I what it really says.
    said = length[:, 0] / 2 * np.log1p(2 * np.maximum(factors, 0) / length[:, 0])
    return np.asarray(np.where(factors > 0, said, factors))


def _another_law(scores: Float64Array) -> Float64Array:
    """Log Bayes factor, for a change at every place, of a normal law with any mean and variance against N(0, 1)."""
    length = np.arange(len(scores), 0, -1)
    sums, squares = _from_here_on(scores), _from_here_on(scores**2)
    shape = SPREAD_STRENGTH + length / 2
    rate = SPREAD_STRENGTH + 0.5 * (squares - sums**2 / (length + 1))
    return np.asarray(
        special.gammaln(shape)
        - special.gammaln(SPREAD_STRENGTH)
        + SPREAD_STRENGTH * np.log(SPREAD_STRENGTH)
        - shape * np.log(rate)
        - 0.5 * np.log1p(length)
        + 0.5 * squares
    )
