"""Forward rehearsal in its first form: a chart of short means and log spreads, whose units and limit are rehearsed.

The reference is walked through in time. At each step everything is learnt from the rows so far and tried on the next
stretch. A channel is the mean or the log spread of one column in one view over one window, in units of what the past
failed to foresee of it: its rehearsed deviations, and more where these differ from stretch to stretch, as there are few
stretches to learn that from (Student's quantiles, with Satterthwaite's degrees of freedom). The score is the largest
channel; the limit is read off the tail of the rehearsed score. Views in the library grew out of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tocsin._common.errors import InputError
from tocsin._compute.arrays import Float64Array
from tocsin._experiments.charts import FIRST, STEPS, Chart, passed_once

if TYPE_CHECKING:
    from pandas import DataFrame

SHORT, WIDE, HISTORY = 5, 25, 150
"""Windows, and rows before a row that its channels may look back on."""

LEAST, FEWEST = 30, 3
"""Rows beyond the history that the first stretch is judged by, and rows of a stretch."""

LAGS, RIDGE = 3, 5.0
NEAR, FAR = 20, 120
"""A moving level is told relative to the rows so far back."""

FURTHEST = 30.0
"""Spreads; what lies further away is taken to be there."""

INTERQUARTILE = 1.35
OFTEN, USUAL, DOUBT = 0.98, 2.0, 5e-4
LEAST_UNIT, LEAST_VARIANCE = 1e-3, 1e-3


class ForwardRehearsal(Chart):
    """Largest rehearsed channel. Refuses references that leave nothing to rehearse on."""

    def fit(self, reference: DataFrame, ert: float) -> None:
        rows = reference.to_numpy(np.float64)
        fewest = HISTORY + LEAST + STEPS * FEWEST
        if len(rows) < fewest:
            raise InputError(
                f"A reference of {len(rows)} rows leaves too few to rehearse on. The prototype needs {fewest} rows."
            )
        self._learnt = _learnt(rows.shape[1], rows.tobytes())
        self.limit = passed_once(self._learnt.rehearsed, ert)

    def score(self, stream: DataFrame) -> Float64Array:
        return self._learnt.score(stream.to_numpy(np.float64))


class Model:
    """Scales, and predictors by a column's own lags, learnt from rows in order."""

    def __init__(self, rows: Float64Array) -> None:
        quarters, deviation = np.percentile(rows, [25, 75], axis=0), rows.std(0)
        spread = (quarters[1] - quarters[0]) / INTERQUARTILE
        self._centre = np.median(rows, axis=0)
        at_rest = spread <= 1e-9 * np.maximum(deviation, 1e-12)
        self._scale = np.where(at_rest, np.where(deviation > 0, deviation, 1.0), spread)
        scaled = self._scaled(rows)
        penalty = np.diag([0.0] + [RIDGE] * LAGS)
        columns = [(_lagged(column, LAGS), column[LAGS:]) for column in scaled.T]
        self._weights = [np.linalg.solve(past.T @ past + penalty, past.T @ now) for past, now in columns]

    def channels(self, rows: Float64Array) -> Float64Array:
        """Of each row after the first HISTORY, from which windows are filled: (rows, channels)."""
        scaled, first = self._scaled(rows), HISTORY - WIDE + 1
        sums = _sums(scaled)
        after = np.arange(first, len(rows))
        moving = (sums[after - NEAR] - sums[after - FAR]) / (FAR - NEAR)
        foreseen = [_lagged(column, first) @ weights for column, weights in zip(scaled.T, self._weights, strict=True)]
        level = scaled[first:]
        views = (level, level - np.stack(foreseen, axis=1), np.diff(scaled, axis=0)[first - 1 :], level - moving)
        return np.concatenate([form for view in views for form in _forms(view)], axis=1)

    def _scaled(self, rows: Float64Array) -> Float64Array:
        scaled: Float64Array = np.clip((rows - self._centre) / self._scale, -FURTHEST, FURTHEST)
        return scaled


def _forms(view: Float64Array) -> Iterator[Float64Array]:
    """Means over both windows, and the log spread over the wide one."""
    mean = _means(view, WIDE)
    yield _means(view[WIDE - SHORT :], SHORT)
    yield mean
    yield 0.5 * np.log(np.maximum(_means(view * view, WIDE) - mean * mean, LEAST_VARIANCE))


def _lagged(column: Float64Array, first: int) -> Float64Array:
    """A one, and the LAGS values before each from the first on."""
    count = len(column)
    past = [column[first - lag : count - lag] for lag in range(1, LAGS + 1)]
    return np.stack([np.ones(count - first), *past], axis=1)


def _sums(rows: Float64Array) -> Float64Array:
    return np.cumsum(np.concatenate([np.zeros((1, rows.shape[1])), rows]), axis=0)


def _means(rows: Float64Array, window: int) -> Float64Array:
    sums = _sums(rows)
    means: Float64Array = (sums[window:] - sums[:-window]) / window
    return means


class Learnt:
    """What rehearsing on a reference taught.

    rehearsed: the scores of the rows that were judged by those before them.
    """

    def __init__(self, rows: Float64Array) -> None:
        edges = np.linspace(max(FIRST * len(rows), HISTORY + LEAST), len(rows), STEPS + 1).astype(int)
        missed = [_missed(rows, start, end) for start, end in pairwise(edges)]
        self._model, self._history = Model(rows), rows[-HISTORY:]
        self._centre = np.median(self._model.channels(rows), axis=0)
        self._unit = _unit(missed, len(rows))
        self.rehearsed: Float64Array = (np.abs(np.concatenate(missed)) / self._unit).max(1)

    def score(self, rows: Float64Array) -> Float64Array:
        """Of rows that come after the reference."""
        channels = self._model.channels(np.concatenate([self._history, rows]))
        largest: Float64Array = (np.abs(channels - self._centre) / self._unit).max(1)
        return largest


def _missed(rows: Float64Array, start: int, end: int) -> Float64Array:
    """How far channels of a stretch are from what was usual before it."""
    past = Model(rows[:start])
    return past.channels(rows[start - HISTORY : end]) - np.median(past.channels(rows[:start]), axis=0)


def _unit(missed: list[Float64Array], count: int) -> Float64Array:
    """What a channel is off by, from the stretches that were rehearsed."""
    from scipy import special  # slow to import

    within = np.mean([stretch.var(0) for stretch in missed], axis=0)
    between = np.mean([stretch.mean(0) ** 2 for stretch in missed], axis=0)
    total = between + within + 1e-9
    length = np.mean([len(stretch) for stretch in missed])
    share = np.maximum(between - within * WIDE / length, 0) / total  # what stretches add to chance
    freedom = 1 / (share**2 / STEPS + (1 - share) ** 2 / max(count * (1 - FIRST) / WIDE, 2))
    doubt = special.stdtrit(np.maximum(freedom, 2), 1 - DOUBT) / special.ndtri(1 - DOUBT)
    often = np.quantile(np.abs(np.concatenate(missed)), OFTEN, axis=0)
    unit: Float64Array = np.maximum(np.maximum(often, USUAL * np.sqrt(total)) * doubt, LEAST_UNIT)
    return unit


@lru_cache(maxsize=4)
def _learnt(columns: int, rows: bytes) -> Learnt:
    """The same for every ERT."""
    return Learnt(np.frombuffer(rows).reshape(-1, columns))
