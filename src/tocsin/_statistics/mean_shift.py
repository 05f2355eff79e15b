"""The difference of two means: the simplest statistic, and the paper's Figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tocsin._common.errors import InputError, Option
from tocsin._compute import Functions
from tocsin._compute.arrays import Float64Array
from tocsin._statistics.base import Live, Parts, Prepared, Setting
from tocsin._statistics.features import FeatureLive, Features, PreparedFeatures, in_units

SMALLEST, LARGEST = 1e-32, 1e32
"""Spreads along a direction that float32 can tell of."""

FAR_OUT = 1e8
"""Values that are further from the median than this, in typical distances from it, are no part of what is usual."""

NONE = float(np.finfo(np.float64).tiny)
"""Distances up to this are none: tables tell a number at its column's centre from a missing one by as much."""


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

    def check(self) -> None:
        if self.direction is not None:
            try:
                direction = np.atleast_1d(np.asarray(self.direction, dtype=np.float64))
            except (TypeError, ValueError, OverflowError):
                direction = np.zeros(1)
            if direction.ndim > 1 or not np.isfinite(direction).all() or not direction.any():
                raise InputError(
                    Option("direction", self.direction, of="MeanShift"), ": a direction has finite numbers, not all 0."
                )

    @property
    def name(self) -> str:
        return "MeanShift"

    @property
    def takes_objects(self) -> bool:
        return False

    def holds_out(self, count: int, windows: tuple[int, ...]) -> int:
        return 0

    def prepare(self, points: Float64Array, held_out: Float64Array, setting: Setting) -> Prepared:
        features = self._features(self._weights(points))
        _must_show_shifts(features.map(points), points if self.direction is None else None)
        return PreparedFeatures(points, features, setting)

    def restore(self, parts: Parts, windows: tuple[int, ...], compute: Functions) -> Live:
        return FeatureLive.restore(self._features(parts["features"]["weights"]), parts, windows, compute)

    def _weights(self, points: Float64Array) -> Float64Array:
        """What each column is multiplied by."""
        if self.direction is None:
            moderate, units = in_units(points)
            deviation = moderate.std(0) * units
            # A constant column has no scale of its own (and a deviation of 0, or of rounding): any other value in it
            # is then a change of its own size.
            constant = deviation <= np.maximum(1e-12 * np.abs(points).max(0), NONE)
            return 1 / np.where(constant, 1.0, deviation)
        direction = np.atleast_1d(np.asarray(self.direction, dtype=np.float64))
        if len(direction) != points.shape[1]:
            raise InputError(
                Option("direction", ..., of="MeanShift"),
                f" has {len(direction)} numbers for a reference of {points.shape[1]} columns; give one number per "
                "column.",
            )
        return direction

    def _features(self, weights: Float64Array) -> Features:
        signed = self.direction is not None
        return Features(self.name, Weighted(weights, summed=signed), signed, {"weights": weights})


def _must_show_shifts(values: Float64Array, points: Float64Array | None) -> None:
    """Refuse a reference in which a single value outweighs all others: no shift would be seen beside it.

    values: its features.  points: the columns that they are, if they are columns.
    """
    judged = values if points is None else points
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.abs(judged - np.median(judged, axis=0))
        typical = np.array([_median(size[size > NONE]) for size in sizes.T])
        wild = (sizes > FAR_OUT * typical) | ~np.isfinite(values)
    if wild.any():
        row, column = np.unravel_index(int(np.argmax(np.where(wild, sizes, -1.0))), values.shape)
        what = f"{judged[row, column]:.4g}" + (f" in column {column}" if points is not None else "")
        raise InputError(
            f"The reference holds {what}, more than {FAR_OUT:g} times as far from the median as half of those that "
            "differ from it: a mean and a standard deviation say nothing of the others then, and no shift of them "
            "would be heard. Drop or cap such values, or use MMD(), which they do not blind."
        )
    if points is None and np.isfinite(values).all() and np.ptp(values) > 0:
        spread = float(np.median(sizes)) or float(sizes.max())
        if not SMALLEST < spread < LARGEST:
            raise InputError(
                Option("direction", ..., of="MeanShift"),
                f" gives values about {spread:.3g} apart; that must lie between {SMALLEST:g} and {LARGEST:g}, since "
                "they are in the units of the data. Multiply it by a number, or bring the columns to another unit.",
            )


def _median(sizes: Float64Array) -> float:
    return float(np.median(sizes)) if len(sizes) else np.inf


@dataclass(frozen=True)
class Weighted:
    """Columns times their weights; summed to a single feature, or each a feature."""

    weights: Float64Array
    summed: bool

    def __call__(self, points: Float64Array) -> Float64Array:
        with np.errstate(over="ignore"):
            weighted = points * self.weights
            return weighted.sum(1, keepdims=True) if self.summed else weighted
