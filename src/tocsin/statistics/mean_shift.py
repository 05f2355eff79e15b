"""The difference of two means: the simplest statistic, and the paper's Figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from tocsin.compute.arrays import Float64Array
from tocsin.errors import InputError
from tocsin.statistics.base import Live, Parts, Prepared, Setting
from tocsin.statistics.features import FeatureLive, Features, PreparedFeatures


@dataclass(frozen=True)
class MeanShift:
    """How far the window's mean lies from the reference's, in standard deviations of each column.

    Parameters
    ----------
    direction
        None: the squared length of the difference, D = |mean(Y) - mean(X)|^2, which sees a shift to any side.
        A vector: the signed difference along it in the units of the data, D = direction . (mean(Y) - mean(X)), which
        sees a shift to that side only; `MeanShift(direction=[1.0])` on one column is the paper's Figure 1.
    """

    direction: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.direction is not None:
            direction = tuple(float(value) for value in np.atleast_1d(np.asarray(self.direction, dtype=np.float64)))
            if not all(np.isfinite(direction)) or not any(direction):
                raise InputError(f"MeanShift(direction={self.direction!r}): a direction has finite numbers, not all 0.")
            object.__setattr__(self, "direction", direction)

    @property
    def name(self) -> str:
        return "MeanShift"

    @property
    def takes_objects(self) -> bool:
        return False

    def holds_out(self, count: int, windows: tuple[int, ...]) -> int:
        return 0

    def prepare(self, points: Float64Array, held_out: Float64Array, setting: Setting) -> Prepared:
        return PreparedFeatures(points, self._features(self._matrix(points)), setting)

    def restore(self, parts: Parts, windows: tuple[int, ...], compute: ModuleType) -> Live:
        features = self._features(parts["features"]["matrix"])
        return FeatureLive(features, parts["centre"], parts["count"], windows, compute)

    def _matrix(self, points: Float64Array) -> Float64Array:
        if self.direction is None:
            deviation = points.std(0)
            # A constant column has no scale of its own; any value but the constant is then a change of its own size.
            return np.diag(1 / np.where(deviation > 0, deviation, 1.0))
        if len(self.direction) != points.shape[1]:
            raise InputError(
                f"MeanShift(direction=...) has {len(self.direction)} numbers for a reference of {points.shape[1]} "
                "columns; give one number per column."
            )
        return np.array(self.direction)[:, None]

    def _features(self, matrix: Float64Array) -> Features:
        return Features(self.name, lambda points: points @ matrix, self.direction is not None, {"matrix": matrix})
