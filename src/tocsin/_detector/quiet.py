"""Is a promise kept on a stream known to be quiet? Alarms counted, and when they came."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import special

from tocsin._calibration.result import LEVEL, Calibration, Thresholds
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._detector.base import altered, promised
from tocsin._detector.detector import Watcher

C = TypeVar("C", bound=Thresholds)

SUSPICIOUS = 0.025
"""A kept promise is doubted this often for the number of its alarms, and as often for their times."""

FEWEST_TIMES = 5
"""Alarms from which on it is worth asking whether they came evenly."""


@dataclass(frozen=True)
class QuietRun:
    """What a detector did on a stream on which nothing changed.

    ert: the run time that its thresholds are set for.  interval: where its true run time may be; None if not known.
    tests: how many it made; where runs begin silent, observations.
    times: those at which it rang, counted from 1; a new run followed each.
    """

    ert: float
    interval: tuple[float, float] | None
    tests: int
    times: Int64Array

    @property
    def alarms(self) -> int:
        return len(self.times)

    @property
    def expected(self) -> float:
        """Alarms, if the promise is kept to the letter."""
        return self.tests / self.ert

    @property
    def run_lengths(self) -> Int64Array:
        """Tests from one alarm to the next; the last run, which has not ended, is not among them."""
        return np.diff(self.times, prepend=0)

    def observed(self, level: float = LEVEL) -> tuple[float, float]:
        """The exact interval for the run time, from the alarms alone (Clopper and Pearson 1934)."""
        tail, k, n = (1 - level) / 2, self.alarms, self.tests
        high = special.betaincinv(k + 1, n - k, 1 - tail) if k < n else 1.0
        low = special.betaincinv(k, n - k + 1, tail) if k else 0.0
        return 1 / float(high), 1 / float(low) if low > 0 else math.inf

    @property
    def p_value(self) -> float:
        """Chance of a number of alarms as far from the expected one, for the best fitting run time of the interval."""
        low, high = self.interval or (self.ert, self.ert)
        seen = self.tests / self.alarms if self.alarms else math.inf
        return self._p_value(min(max(seen, low), high))

    def _p_value(self, ert: float) -> float:
        as_few = special.bdtr(self.alarms, self.tests, 1 / ert)
        as_many = special.bdtrc(self.alarms - 1, self.tests, 1 / ert) if self.alarms else 1.0
        return float(min(2 * min(as_few, as_many), 1.0))

    @property
    def evenness(self) -> float | None:
        """p-value of alarms at a constant rate: then they are spread evenly over the tests; None if there are few.

        Kolmogorov and Smirnov's test of their times, which are uniform whatever the rate, by Stephens' approximation
        (1970).
        """
        if self.alarms < FEWEST_TIMES:
            return None
        times, n = self.times / (self.tests + 1), self.alarms
        distance = max(np.max(np.arange(1, n + 1) / n - times), np.max(times - np.arange(n) / n))
        return float(special.kolmogorov(distance * (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n))))

    @property
    def consistent(self) -> bool:
        """Whether what was seen agrees with the promise: the number of alarms, and their times."""
        return self.p_value >= SUSPICIOUS and (self.evenness is None or self.evenness >= SUSPICIOUS)

    def quantiles(self) -> tuple[Float64Array, Float64Array]:
        """Run lengths in order, and those that a geometric law with the run time `ert` would have in their place.

        The last run is cut short by the end of the stream, so with few alarms long runs are missing.
        """
        seen = np.sort(self.run_lengths).astype(np.float64)
        return seen, geometric_quantiles((np.arange(len(seen)) + 0.5) / len(seen), self.ert)


def geometric_quantiles(levels: Float64Array, ert: float) -> Float64Array:
    """Run lengths that a geometric law with this mean stays at or below with these probabilities."""
    return np.asarray(np.maximum(np.ceil(np.log1p(-levels) / math.log1p(-1 / ert)), 1.0))


def run_quietly(detector: Watcher[C], blocks: Iterable[object]) -> QuietRun:
    """Run a copy of a detector over blocks of a quiet stream, starting anew after each alarm."""
    detector = altered(detector, resets=True)
    detector.reset()
    limits, made, tests, times = detector.calibration_, 0, 0, []
    for block in blocks:
        outcomes = detector.update_many(block)
        counts = promised(limits, outcomes)
        times.append(tests + np.cumsum(counts)[outcomes.alarm])
        made, tests = made + int(np.isfinite(outcomes.statistic).sum()), tests + int(counts.sum())
    nominal, interval = limits.ert, None
    if isinstance(limits, Calibration):
        nominal, interval = limits.nominal, limits.interval()
    return QuietRun(nominal, interval, tests if made else 0, np.concatenate([np.empty(0, np.int64), *times]))
