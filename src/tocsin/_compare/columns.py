"""Which columns differ, each on its own, judged by the same splits as the tables.

Values become normal scores by their ranks among all rows. A feature's mean score in the batch tells that it moved, the
mean of its squares that it spread; each is measured against its own mean and spread over all splits, a column by the
largest of its features, and that again against its own. Westfall and Young (1993): the p-value of a column is how often
the largest of any column is as large in a split.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special, stats

from tocsin._compare.pooling import Pooled
from tocsin._compare.result import DifferingColumn
from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._explain.columns import RATE, How
from tocsin._explain.words import compare, did

ROUNDING = 1e-6
"""Scores this close are equal."""

FEATURES = 128
"""Features that are looked at at once."""

UP: tuple[How, How] = ("higher", "wider")
DOWN: tuple[How, How] = ("lower", "narrower")
"""What the two parts of a feature say if they are more in the batch, or less."""

DESCRIBED = 1000
"""Rows of each table that are described, at most."""


class ColumnScores:
    """How much each column differs between the two tables of every split.

    largest: of all columns, for every split.
    """

    def __init__(self, pooled: Pooled, splits: Float32Array) -> None:
        self._pooled, columns = pooled, len(pooled.intake.names)
        best = np.zeros((columns, splits.shape[1]))
        self._clearest = [_Clearest(-1.0, 0, "higher")] * columns
        # The last feature of a table is for values that are newly missing, and pooled none are.
        own = np.flatnonzero(pooled.intake.owners < columns)
        for start in range(0, len(own), FEATURES):
            features = own[start : start + FEATURES]
            owners = pooled.intake.owners[features]
            for parts, up, down in zip(_parts(pooled.points[:, features]), UP, DOWN, strict=True):
                scores = _standard((parts.T @ splits).astype(np.float64))
                np.maximum.at(best, owners, np.abs(scores))
                for score, feature, owner in zip(
                    scores[:, 0].tolist(), features.tolist(), owners.tolist(), strict=True
                ):
                    if abs(score) > self._clearest[owner].strength:
                        self._clearest[owner] = _Clearest(abs(score), feature, up if score > 0 else down)
        self._scores = _standard(best)
        self.largest: Float64Array = self._scores.max(0)

    def told(self, *, differ: bool) -> tuple[DifferingColumn, ...]:
        """All columns, the surest first; some are said to differ only if the tables do."""
        pooled, names = self._pooled, self._pooled.intake.names
        p_values = (self.largest >= self._scores[:, :1] - ROUNDING).mean(1)
        words = compare(pooled.intake, *(_some(part) for part in np.split(pooled.points, [pooled.count])))
        return tuple(
            DifferingColumn(
                name=names[i],
                p_value=float(p_values[i]),
                differs=differ and bool(p_values[i] <= RATE),
                how=did(pooled.intake, words[i], self._clearest[i].feature, self._clearest[i].how),
                before=words[i].before,
                after=words[i].after,
            )
            for i in np.lexsort([-self._scores[:, 0], p_values])
        )


class _Clearest(NamedTuple):
    """The feature of a column that says most of the tables, and what it did."""

    strength: float
    feature: int
    how: How


def _parts(features: Float64Array) -> tuple[Float32Array, Float32Array]:
    """Normal scores, and how far their squares are from 1."""
    ranks = stats.rankdata(features, axis=0)
    scores = _standard(special.ndtri((ranks - 0.5) / len(ranks)).T).T
    # A feature of two values has no spread apart from its mean.
    two_values = ((scores == scores.min(0)) | (scores == scores.max(0))).all(0)
    return scores.astype(np.float32), np.where(two_values, 0.0, scores**2 - 1).astype(np.float32)


def _standard(rows: Float64Array) -> Float64Array:
    """Each row in units of its own spread; 0 if it has none."""
    spread = rows.std(1, keepdims=True)
    known = spread > 1e-6 * (1 + np.abs(rows).max(1, keepdims=True))
    return np.asarray((rows - rows.mean(1, keepdims=True)) / np.where(known, spread, np.inf))


def _some(rows: Float64Array) -> Float64Array:
    places: Int64Array = np.linspace(0, len(rows) - 1, min(len(rows), DESCRIBED)).astype(np.int64)
    return rows[places]
