"""What watches recordings: the default detector, and Hotelling's T-squared by the textbook and rehearsed."""

from __future__ import annotations

import warnings
from copy import copy
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._detector.detector import Detector

if TYPE_CHECKING:
    from pandas import DataFrame

RIDGE = 1e-3
"""Added to the variances of columns that were scaled to variance 1, as columns may be nearly combinations of others."""

DEAD = 25
"""Rows after an alarm of T-squared in which it does not ring again: passes that close are taken for one."""

STEPS, FIRST = 8, 0.4
"""Stretches of the rehearsal, and the share of the reference that comes before the first of them."""

LEVELS = np.linspace(0.5, 0.999, 60)
ENOUGH = 8
"""Clusters that the tail is learnt from."""


class Method(Protocol):
    """Learns from a reference, then says in which rows of a stream it rings.

    fit: may raise InputError, which is a refusal.
    alarms: each call begins as if the fit had just been made.
    interval: the lowest and highest expected run time that it takes to be likely (90 %), or None.
    """

    def fit(self, reference: DataFrame, ert: float) -> None: ...

    def alarms(self, stream: DataFrame) -> Int64Array: ...

    def interval(self) -> tuple[float, float] | None: ...


class Default:
    """Tocsin as it comes."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def fit(self, reference: DataFrame, ert: float) -> None:
        self._detector = Detector(ert, seed=self._seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._detector.fit(reference, workers=1, progress=False)

    def alarms(self, stream: DataFrame) -> Int64Array:
        fresh = copy(self._detector)  # a reset would begin another run, warm with other points
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.flatnonzero(fresh.update_many(stream).alarm)

    def interval(self) -> tuple[float, float] | None:
        return self._detector.calibration_.interval()


class Hotelling:
    """T-squared of single rows; the limit is the textbook's, for independent Gaussian rows."""

    def __init__(self, _seed: int) -> None:
        pass

    def fit(self, reference: DataFrame, ert: float) -> None:
        rows = reference.to_numpy()
        self._distance = Distance(rows)
        self._limit = self._level(rows, ert)

    def alarms(self, stream: DataFrame) -> Int64Array:
        return clusters(self._distance(stream.to_numpy()), self._limit)

    def interval(self) -> tuple[float, float] | None:
        return None

    def _level(self, rows: Float64Array, ert: float) -> float:
        from scipy import stats  # slow to import

        count, columns = rows.shape
        if count <= columns:
            return float(stats.chi2.isf(1 / ert, columns))
        factor = columns * (count - 1) * (count + 1) / (count * (count - columns))
        return float(factor * stats.f.isf(1 / ert, columns, count - columns))


class RehearsedHotelling(Hotelling):
    """T-squared; the limit is what rows of the reference would have passed once in ERT rows, judged by those before."""

    def _level(self, rows: Float64Array, ert: float) -> float:
        edges = np.linspace(FIRST * len(rows), len(rows), STEPS + 1).astype(int)
        seen = [Distance(rows[:a])(rows[a:b]) for a, b in pairwise(edges)]
        return passed_once(np.concatenate(seen), ert)


class Distance:
    """Mahalanobis' squared distance from the mean of some rows."""

    def __init__(self, rows: Float64Array) -> None:
        self._mean, spread = rows.mean(0), rows.std(0, ddof=1)
        self._scale = np.where(spread > 0, spread, 1.0)  # a column may be at rest in the first rows
        scaled = (rows - self._mean) / self._scale
        covariance = scaled.T @ scaled / (len(rows) - 1) + RIDGE * np.eye(rows.shape[1])
        self._root = np.linalg.cholesky(covariance)

    def __call__(self, rows: Float64Array) -> Float64Array:
        white = np.linalg.solve(self._root, ((rows - self._mean) / self._scale).T)
        squared: Float64Array = (white * white).sum(0)
        return squared


def clusters(score: Float64Array, level: float) -> Int64Array:
    """Where a score passes a level, except soon after a pass."""
    found: list[int] = []
    for place in np.flatnonzero(score > level):
        if not found or place >= found[-1] + DEAD:
            found.append(int(place))
    return np.array(found, np.int64)


def passed_once(score: Float64Array, ert: float) -> float:
    """The level with one cluster in ERT rows: an exponential tail above the highest level that enough clusters pass."""
    levels = np.quantile(score, LEVELS)
    base = next((float(level) for level in levels[::-1] if len(clusters(score, level)) >= ENOUGH), float(levels[0]))
    starts = clusters(score, base)
    if not len(starts):
        return base
    excess = float(np.mean([score[start : start + DEAD].max() - base for start in starts]))
    return base + excess * float(np.log(max(len(starts) * ert / len(score), 1.0)))


DEFAULT = "default"
METHODS: dict[str, type[Default] | type[Hotelling]] = {
    DEFAULT: Default,
    "Hotelling": Hotelling,
    "Hotelling, rehearsed": RehearsedHotelling,
}


def make(name: str, seed: int) -> Method:
    """A method that has learnt nothing yet."""
    return METHODS[name](seed)
