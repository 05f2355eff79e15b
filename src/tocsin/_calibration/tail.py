"""How often chance alone passes a level: read off the simulated paths, and beyond them off a fitted tail."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tocsin._calibration.recursion import PassageCurve
from tocsin._common.caches import Caching
from tocsin._compute.arrays import Array, Float64Array, read_only

POINTS = 256
"""Points of a curve that are kept, and of its tail that are looked up."""

DEPTH = 30.0
"""How far into the tail rarities are told apart: e^30 times as rare as what was simulated is just very rare."""

SHAPE_SPREAD = 0.2
"""Shapes of tails are taken to be of this size before the data are seen; a few hundred maxima outweigh it."""

FARTHEST_SHAPE, LEAST_SHAPE, NO_SHAPE = 0.9, -0.45, 1e-6
"""Shapes that are looked for; that from which on standard errors exist (-1/2); and what is taken for 0."""

LEAST_INSIDE = 1e-3
"""Beyond the end of a finite tail errors are those just before it."""


@dataclass(frozen=True)
class Tail:
    """Rates beyond `start`: rate(start) (1 + shape (v - start) / scale)^(-1 / shape), a generalised Pareto tail.

    errors: covariance of (log scale, shape).
    """

    start: float
    log_rate: float
    scale: float
    shape: float
    errors: Float64Array

    def log_rates(self, values: Float64Array) -> Float64Array:
        """Logarithms of the rates at which values from `start` on are passed; -inf beyond the end of a finite tail."""
        return self.log_rate - _fall((values - self.start) / self.scale, self.shape)

    def level(self, log_rate: float) -> float:
        """The value passed at a rate no larger than that at `start`."""
        depth = self.log_rate - log_rate
        reach = depth if abs(self.shape) < NO_SHAPE else math.expm1(self.shape * depth) / self.shape
        return self.start + self.scale * reach

    def error(self, value: float) -> float:
        """Standard error of the log rate at a value, besides that of the rate at `start`."""
        y = max(value - self.start, 0.0) / self.scale
        if y == 0:
            return 0.0
        if not np.isfinite(self.errors).all():
            return math.inf
        inside = max(1 + self.shape * y, LEAST_INSIDE)
        by_shape = y**2 / 2 if abs(self.shape) < NO_SHAPE else (math.log(inside) / self.shape - y / inside) / self.shape
        gradient = np.array([y / inside, by_shape])
        return float(np.sqrt(gradient @ self.errors @ gradient))


def _fall(y: Array | float, shape: float) -> Array:
    """log(rate(start) / rate), y scales beyond the start."""
    if abs(shape) < NO_SHAPE:
        return np.asarray(y, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(np.maximum(shape * np.asarray(y), -1.0)) / shape)


def fit_tail(maxima: Float64Array, start: float, rate: float, tests: float, weight: float = 1.0) -> Tail:
    """The tail of which these maxima, of paths of so many tests each, are those beyond `start`.

    weight: what each of them counts for; less than 1 if they are not independent.

    The number of tests until a level is passed is exponential, so a path's maximum has the density of a generalised
    extreme value, and those below `start` are censored (Coles 2001, chapters 3 and 7): rates need not be small against
    1 / tests.
    """
    excess = maxima - start
    hazard = rate * tests
    size = float(excess.mean()) if len(excess) else 0.0
    if not size > 0:
        # No maximum beyond the start, or all in one place: nothing says how the tail falls.
        return Tail(start, math.log(rate), max(abs(start), 1.0) * 1e-6, 0.0, np.full((2, 2), np.inf))

    def objective(parameters: Float64Array) -> float:
        scale, shape = math.exp(parameters[0]) * size, parameters[1]
        inside = 1 + shape * excess / scale
        if inside.min() <= 0 or abs(shape) > FARTHEST_SHAPE:
            return 1e12
        fall = _fall(excess / scale, shape)
        loss = len(excess) * math.log(scale) + (1 + shape) * fall.sum() + hazard * np.exp(-fall).sum()
        return float(weight * loss + shape**2 / (2 * SHAPE_SPREAD**2))

    from scipy import optimize  # slow to import, and needed by fits alone

    best = optimize.minimize(objective, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-7}).x
    shape = float(best[1])
    errors = _covariance(shape, weight * len(excess))
    if abs(shape) > 0.99 * FARTHEST_SHAPE:
        errors = np.full((2, 2), np.inf)  # no tail of this kind: atoms, or a handful of maxima
    return Tail(start, math.log(rate), math.exp(best[0]) * size, shape, errors)


def _covariance(shape: float, maxima: float) -> Float64Array:
    """Of (log scale, shape): the inverse of the expected information (Smith 1987) and of what was known before."""
    shape = max(shape, LEAST_SHAPE)
    cross = 1 / ((1 + shape) * (1 + 2 * shape))
    information = maxima * np.array([[1 / (1 + 2 * shape), cross], [cross, 2 * cross]])
    information[1, 1] += SHAPE_SPREAD**-2
    return np.asarray(np.linalg.inv(information), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class RateCurve(Caching):
    """False alarms per test, for every threshold, once the transient is over.

    values, log_rates: rising and falling, up to where the tail starts.
    """

    values: Float64Array
    log_rates: Float64Array
    tail: Tail

    @classmethod
    def of(cls, passages: PassageCurve, tail: Tail) -> RateCurve:
        """From what was simulated, thinned."""
        below = int(np.searchsorted(passages.value, tail.start))
        if not below:
            return cls(np.array([tail.start]), np.array([tail.log_rate]), tail)
        value, rate = passages.value[:below], passages.alarms[:below] / passages.tests[:below]
        rate = np.maximum(rate, math.exp(tail.log_rate))
        wanted = np.exp(np.linspace(math.log(rate[0]), tail.log_rate, POINTS)[:-1])
        places = np.unique(np.searchsorted(-rate, -wanted).clip(0, below - 1))
        return cls(np.append(value[places], tail.start), np.append(np.log(rate[places]), tail.log_rate), tail)

    def sealed(self) -> RateCurve:
        """The same, to be handed out: its numbers cannot be written to."""
        tail = replace(self.tail, errors=read_only(self.tail.errors))
        return RateCurve(read_only(self.values), read_only(self.log_rates), tail)

    def log_rarity(self, values: Float64Array) -> Float64Array:
        """log of the tests between alarms, if the threshold were each of these; NaN stays NaN."""
        log_rates = np.interp(values, self.values, self.log_rates)
        beyond = values > self.tail.start
        if beyond.any():
            log_rates[beyond] = self.tail.log_rates(values[beyond])
        return -log_rates

    def rarities(self, values: Float64Array) -> Float64Array:
        """Tests between alarms, if the threshold were each of these; NaN stays NaN."""
        x, y, slope = self._table
        values = np.minimum(np.maximum(values, x[0]), x[-1])
        i = np.searchsorted(x[1:-1], values, side="right")
        return np.asarray(y[i] + (values - x[i]) * slope[i])

    def rarity(self, value: float) -> float:
        """`rarities` of a single one, the same to the last bit."""
        x, y, slope = self._lists
        if value < x[0]:
            value = x[0]
        elif value > x[-1]:
            value = x[-1]
        i = bisect.bisect_right(x, value, 1, len(x) - 1) - 1
        return y[i] + (value - x[i]) * slope[i]

    @cached_property
    def _table(self) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Values, their rarities, and the slopes between them: far into the tail, and linear in between."""
        depths = np.linspace(0, DEPTH, POINTS)[1:]
        beyond = np.array([self.tail.level(self.tail.log_rate - depth) for depth in depths])
        x = np.concatenate([self.values, beyond])
        y = np.exp(np.concatenate([-self.log_rates, depths - self.tail.log_rate]))
        new = np.concatenate([[True], np.diff(x) > 0])
        x, y = x[new], y[new]
        if len(x) == 1:
            x, y = np.append(x, np.nextafter(x, np.inf)), np.repeat(y, 2)
        return x, y, np.append(np.diff(y) / np.diff(x), 0.0)

    @cached_property
    def _lists(self) -> tuple[list[float], list[float], list[float]]:
        x, y, slope = (part.tolist() for part in self._table)
        return x, y, slope

    def level(self, log_rate: float) -> float:
        """The threshold that is passed at this rate."""
        if log_rate < self.tail.log_rate:
            return self.tail.level(log_rate)
        return float(np.interp(-log_rate, -self.log_rates, self.values))

    def leverage(self, level: float, centre: float) -> float:
        """How much the log rate at a level changes with the scale of what is `centre` on average."""
        return max((level - centre) * self.slope(level), 1.0)

    def slope(self, value: float) -> float:
        """-d log rate / d value, over a change of the rate by a factor e."""
        here = -float(self.log_rarity(np.array([value]))[0])
        return 1 / max(self.level(here - 0.5) - self.level(here + 0.5), 1e-300)
