"""Charts: a score for every row, and a limit that can be moved. Among them Hotelling's T-squared."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array

if TYPE_CHECKING:
    from pandas import DataFrame

RIDGE = 1e-3
"""Added to the variances of columns that were scaled to variance 1, as columns may be nearly combinations of others."""

DEAD = 25
"""Rows after an alarm of a chart in which it does not ring again: passes that close are taken for one."""

STEPS, FIRST = 8, 0.4
"""Stretches of the rehearsal, and the share of the reference that comes before the first of them."""

LEVELS = np.linspace(0.5, 0.999, 60)
ENOUGH = 8
"""Clusters that the tail is learnt from."""


class Chart:
    """Rings where a score passes a limit.

    limit: what it learnt to be passed once in ERT rows, by its own lights.
    """

    limit: float

    def fit(self, reference: DataFrame, ert: float) -> None:
        """Learn the score and its limit."""
        raise NotImplementedError

    def score(self, stream: DataFrame) -> Float64Array:
        """How unusual each row is."""
        raise NotImplementedError

    def alarms(self, stream: DataFrame) -> Int64Array:
        return clusters(self.score(stream), self.limit)

    def interval(self) -> tuple[float, float] | None:
        return None


class Hotelling(Chart):
    """T-squared of single rows; the limit is the textbook's, for independent Gaussian rows."""

    def fit(self, reference: DataFrame, ert: float) -> None:
        rows = reference.to_numpy()
        self._distance = Distance(rows)
        self.limit = self._level(rows, ert)

    def score(self, stream: DataFrame) -> Float64Array:
        return self._distance(stream.to_numpy())

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
    places, found, start = np.flatnonzero(score > level), [], 0
    while start < len(places):
        found.append(int(places[start]))
        start = int(np.searchsorted(places, found[-1] + DEAD))
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
