"""How far the true expected run time may be from the promise: what a finite reference and a finite simulation do to it.

Let the reference z stand for the unknown law p. The live stream comes from p and meets z; the null streams came from z.

- Streams from p instead of z. To first order this moves the log rate of alarms by a sum over reference points of
  `influence` times sampling noise. A point's influence is how much more often it is in windows that ring than in all
  that are tested: the infinitesimal jackknife (Efron 2014), with the noise of the simulation taken off (Wager, Hastie
  and Efron 2014). Whatever the statistic: scale, heavy tails and gaps between the two laws are all in it.
- What is not linear in z - p: chiefly the squared gap between the means of stream and reference, which shifts every
  window's statistic for as long as the detector lives. It is the even part of what a pseudo-reference v does to the log
  rate, half the sum of that of v and of its reflection 2 - v; the odd part is the first effect again. All
  pseudo-references meet the same streams, so that their differences are seen through little noise.

A reference with few distinct values must be met as it is, or its atoms would be others than those of the live stream.
Its null streams are drawn from pseudo-references instead, and the spread of the rate over these is all of the above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tocsin._calibration.recursion import Records
from tocsin._compute import Functions
from tocsin._compute.arrays import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array

PAIRS = 32
"""Pseudo-references that are compared with their reflections."""

FEWEST_FREEDOM, MOST_FREEDOM = 3.0, 1e6
"""An error that is known worse is taken to be known this well; one that is known better, exactly."""

GROUPS = 16
"""Parts of the streams, each left out once, to see how much of a spread over pseudo-references is noise."""


@dataclass(frozen=True)
class Errors:
    """Standard errors of the log expected run time, by cause.

    simulation: finitely many null streams.
    law: the reference is a sample; streams from the true law differ from those drawn from it.
    reference: a gap between the means of law and reference, its square, that stays as long as the detector lives.
    tail: the threshold is beyond what was simulated.
    law_freedom: how well `law` itself is known, as degrees of freedom: few if a handful of points has most influence.
    """

    simulation: float
    law: float
    reference: float
    tail: float
    law_freedom: float = math.inf

    @property
    def total(self) -> float:
        """All together."""
        return math.hypot(self.simulation, self.law, self.reference, self.tail)

    def quantile(self, level: float) -> float:
        """What the error of log(expected run time) stays below with this probability.

        Student's t, with the degrees of freedom of Welch and Satterthwaite, since errors are themselves estimated.
        """
        from scipy import special  # watching needs neither this nor the time to import it

        if not math.isfinite(self.total):
            return math.copysign(math.inf, level - 0.5)
        doubt = self.law**4 / self.law_freedom + self.reference**4 / (PAIRS - 1)
        freedom = max(self.total**4 / doubt, FEWEST_FREEDOM) if doubt > 0 else math.inf
        known = special.ndtri(level) if freedom > MOST_FREEDOM else special.stdtrit(freedom, level)
        return float(known) * self.total


def with_reflections(weights: Float32Array, compute: Functions) -> Float32Array:
    """Pseudo-references (N, G), and after them the reflections of the first PAIRS; (N, G + PAIRS)."""
    return compute.concatenate([weights, 2 - weights[:, :PAIRS]], 1)


def first_alarms(records: Records, edges: Int64Array, levels: Float64Array) -> tuple[Int32Array, Int64Array]:
    """The paths that ring, if the thresholds of the stretches are `levels`, and the test at which each does."""
    rings = records.value > levels[records.stretch]
    path, first = np.unique(records.path[rings], return_index=True)
    return path, edges[records.stretch[rings][first]] + records.step[rings][first] - 1


def law_error(rang: Int32Array, tested: Int32Array, count: int, block: int) -> tuple[float, float]:
    """The error `law`, and its degrees of freedom.

    rang: points of the windows that rang, (A, W).  tested: of windows at any test that was made, (B, W).
    count: of the reference points.
    block: points are drawn in contiguous blocks of this length; 1 if they are independent. Points that came together
        were drawn once, and share the credit. Influences within a block add up, wherever blocks begin.
    """
    if len(rang) < 2:
        return math.inf, FEWEST_FREEDOM
    (mean, noise), (usual, usual_noise) = _mean_credit(rang, count, block), _mean_credit(tested, count, block)
    squares = _block_sums(mean - usual, block) ** 2 / block
    each = (noise + usual_noise) / len(squares)
    # An estimate that is lost in the noise that was taken off says only that the truth is no larger than that noise.
    unseen = 2 * len(squares) * block * each**2
    total = max(float(squares.sum()) - noise - usual_noise, math.sqrt(unseen))
    # The variance of a sum of squares, in blocks that overlap.
    fourth = block * max(float((squares**2).sum()) - 6 * each * total - 3 * len(squares) * each**2, 0.0)
    return math.sqrt(total), 2 * total**2 / (fourth + 4 * each * block * total + unseen)


def _mean_credit(windows: Int32Array, count: int, block: int) -> tuple[Float64Array, float]:
    """How often each point is in a window, on average, and what the noise of that adds to squared sums over blocks."""
    number, credit = len(windows), _credit(windows) if block > 1 else np.ones(windows.shape)
    mean = np.bincount(windows.ravel(), weights=credit.ravel(), minlength=count) / number
    order = np.argsort(windows, axis=1)
    places, credit = np.take_along_axis(windows, order, 1), np.take_along_axis(credit, order, 1)
    own = (credit**2).sum(1)
    for lag in range(1, windows.shape[1]):
        together = np.maximum(1 - (places[:, lag:] - places[:, :-lag]) / block, 0) * credit[:, lag:] * credit[:, :-lag]
        if not together.any():
            break
        own += 2 * together.sum(1)
    return mean, float(own.mean() - (_block_sums(mean, block) ** 2).sum() / block) / (number - 1)


def _credit(windows: Int32Array) -> Float64Array:
    """1 for a point that was drawn alone; points that follow each other in the reference have 1 together."""
    alone = np.ones((len(windows), 1), dtype=bool)
    begins = np.concatenate([alone, np.diff(windows, axis=1) != 1], axis=1)
    run = np.cumsum(begins.ravel()) - 1
    credit: Float64Array = (1 / np.bincount(run))[run]
    return credit.reshape(windows.shape)


def _block_sums(values: Float64Array, block: int) -> Float64Array:
    """Sums over blocks wherever they begin, those that reach over the ends too.

    The sum of their squares, divided by the length of a block, is sum_{i, j} v_i v_j (1 - |i - j| / block)_+.
    """
    padded = np.concatenate([np.zeros(block), np.cumsum(values), np.full(block - 1, values.sum())])
    return np.asarray(padded[block:] - padded[:-block])


def law_spread(alarms: Int64Array, tests: Int64Array) -> tuple[float, float]:
    """The error `law`, and its degrees of freedom, where streams were drawn from pseudo-references.

    alarms, tests: of the streams from each of them.
    """
    rates = np.log((alarms + 0.5) / np.maximum(tests, 1))
    noise = float(np.mean(1 / (alarms + 0.5)))
    unseen = noise * math.sqrt(2 / (len(rates) - 1))
    total = max(float(rates.var(ddof=1)) - noise, unseen)
    return math.sqrt(total), (len(rates) - 1) * (total / (total + noise)) ** 2


@dataclass(frozen=True)
class Spread:
    """Rates of alarms of the same streams against many pseudo-references; all (streams, 2 PAIRS).

    alarms: whether a stream rang once the transient was over.  tests: how many it then made, the alarm's included.
    """

    alarms: BoolArray
    tests: Int64Array

    def reference_error(self) -> float:
        """The error `reference`: the spread of the even part, less its noise."""
        even = self._even(np.ones(len(self.alarms), dtype=bool))
        group = np.arange(len(self.alarms)) * GROUPS // len(self.alarms)
        without = np.array([self._even(group != g) for g in range(GROUPS)])
        noise = (GROUPS - 1) * without.var(0).mean()
        return math.sqrt(max(float(even.var(ddof=1) - noise), 0.0))

    def _even(self, chosen: BoolArray) -> Float64Array:
        # Half an alarm more, and a test at least, so that none at all is no infinity.
        log_rate = np.log((self.alarms[chosen].sum(0) + 0.5) / np.maximum(self.tests[chosen].sum(0), 1))
        even: Float64Array = (log_rate[:PAIRS] + log_rate[PAIRS:]) / 2
        return np.asarray(even - even.mean())


def points_to_halve(errors: Errors, points: int) -> int | None:
    """Further reference points that would halve the interval; None if no number would.

    The error `law` falls with the square root of the number of points, the error `reference` with the number itself.
    """
    rest = errors.total**2 / 4 - errors.simulation**2 - errors.tail**2
    if rest <= 0 or not math.isfinite(errors.total):
        return None
    a, b = errors.reference**2, errors.law**2
    part = (-b + math.sqrt(b**2 + 4 * a * rest)) / (2 * a) if a > 0 else rest / b
    return math.ceil(points / part) - points
