"""What each column adds to a statistic, so that the columns' parts sum to it.

A Gaussian kernel is exp(-A), with A = sum_j a_j a sum over features. Let all differences between two points grow from
nothing to what they are, together: the kernel falls from 1 to exp(-A), and feature j takes part in that with

    phi_j(x, y) = (a_j / A) (exp(-A) - 1),    sum_j phi_j = k(x, y) - 1

(the Aumann-Shapley value). The MMD, and how typical a window is, are sums of mean kernels with weights that cancel, and
so does the 1: the same sums of mean phi_j are parts that add up to the statistic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tocsin._common.errors import InputError
from tocsin._compute.arrays import Array, Float64Array, Int32Array, Int64Array
from tocsin._explain.kernel import exponents, median_width, scaled, some
from tocsin._statistics.base import Channel

CENTRAL = 0.9
"""Part of the null windows whose contributions are within the range that is given."""

NULL_WINDOWS, NULL_POINTS = 100, 500
"""Null windows that ranges are taken from, and reference points that these are compared with, at most."""

PAIRED = 1000
"""Reference points whose pairs stand for all, at most."""

PIECE = 20_000
"""Reference points that are compared with at once."""

WEIGHTS = {"MMD": (1.0, 1.0, -2.0), "less typical": (1.0, 0.0, -1.0), "more typical": (-1.0, 0.0, 1.0)}
"""Of mean kernels among reference points, within the window, and between the two."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """What columns add to a statistic; arrays of one entry per column.

    measure: the statistic that they add up to; another than that which rang, if that one has no such parts.
    low, high: between these are nine in ten of the contributions in null windows that rang; NaN without such windows.
    """

    measure: Channel
    columns: Float64Array
    low: Float64Array
    high: Float64Array


def column_contributions(
    channel: Channel,
    window: Float64Array,
    reference: Float64Array,
    groups: Int64Array,
    *,
    total: float | None = None,
    weights: Float64Array | None = None,
    signed: bool = False,
    rang: Int32Array | None = None,
    seed: int = 0,
) -> Contributions:
    """What columns add to the statistic of a channel.

    Parameters
    ----------
    channel
        The one that spoke. MMD with a Gaussian kernel, the two kinds of typicality, and MeanShift have parts that add
        up; for others the MMD at the median width stands in, and `measure` says so.
    window, reference
        Rows of features, (w, d) and (N, d).
    groups
        The column that each feature belongs to, (d,), from 0 on.
    total
        The detector's own value of the channel. What the parts lack of it (the rounding of float32, pairs of reference
        points that were not looked at, a channel's null mean) is spread over the columns, so that they add up to it.
        None: what the parts add up to.
    weights, signed
        Of MeanShift: what each feature is multiplied by, and whether it has a direction.
    rang
        Null windows that rang, as places in the reference, (B, W).
    """
    window = window[-channel.window :]
    if channel.statistic == "MeanShift":
        if weights is None:
            raise InputError("Contributions to MeanShift need its weights, one per feature.")
        parts: Parts = MeanParts(reference, weights, signed)
    elif channel.statistic in WEIGHTS and channel.width is not None:
        parts = KernelParts(channel.statistic, channel.width, reference, seed)
    else:
        width = median_width(reference, seed)
        channel, total = Channel("MMD", channel.window, width), None
        parts = KernelParts("MMD", width, reference, seed)
    features, constant = parts(window), np.abs(parts.constant)
    if total is not None:
        share = constant / constant.sum() if constant.any() else np.full(len(constant), 1 / len(constant))
        features = features + (total - features.sum()) * share
    columns = _by_column(features, groups)
    low = high = np.full(len(columns), np.nan)
    if rang is not None and len(rang):
        null = _by_column(parts.null(rang[:NULL_WINDOWS, -channel.window :]), groups)
        low, high = np.quantile(null, [(1 - CENTRAL) / 2, (1 + CENTRAL) / 2], axis=0)
    return Contributions(channel, columns, low, high)


class KernelParts:
    """Parts of an MMD, or of how typical windows are.

    constant: those that the pairs of reference points have, the same for every window; (d,).
    """

    def __init__(self, statistic: str, width: float, reference: Float64Array, seed: int) -> None:
        self._weights, self._width = WEIGHTS[statistic], width
        self._centre = np.median(reference, axis=0)
        self._reference = reference - self._centre
        self._chosen = some(len(reference), PAIRED, seed)
        points = self._reference[self._chosen]
        self.constant = self._shares(points, points).sum(0) / (len(points) * (len(points) - 1))

    def __call__(self, window: Float64Array) -> Float64Array:
        """Of one window, (d,)."""
        points = window - self._centre
        pieces = [self._reference[first : first + PIECE] for first in range(0, len(self._reference), PIECE)]
        between = sum(self._shares(points, piece).sum(0) for piece in pieces) / (len(points) * len(self._reference))
        return self._together(points, np.asarray(between), len(points) * (len(points) - 1))

    def null(self, windows: Int32Array) -> Float64Array:
        """Of windows of reference points, (B, d); no point is compared with itself."""
        chosen = self._chosen[:NULL_POINTS]
        drawn, place = np.unique(windows, return_inverse=True)
        others = len(chosen) - np.isin(drawn, chosen)
        between = self._shares(self._reference[drawn], self._reference[chosen]) / others[:, None]
        found = []
        for own, points in zip(place.reshape(windows.shape), windows, strict=True):
            pairs = int((points[:, None] != points).sum())
            found.append(self._together(self._reference[points], between[own].mean(0), pairs))
        return np.array(found)

    def _together(self, points: Float64Array, between: Float64Array, pairs: int) -> Float64Array:
        among, within, across = self._weights
        parts = among * self.constant + across * between
        if within and pairs:
            parts = parts + within * self._shares(points, points).sum(0) / pairs
        return np.asarray(parts)

    def _shares(self, first: Float64Array, second: Float64Array) -> Float64Array:
        """sum_y phi_j(x, y) over the second points, for each of the first; (n, d). Points are 0 apart from themselves.

        With f = (exp(-A) - 1) / A, sum_y f (x - y)^2 is taken apart: x^2 sum f - 2 x sum f y + sum f y^2.
        """
        exponent = exponents(first, second, self._width)
        factor = np.zeros(exponent.shape)  # of equal points too: none of their features differs
        np.divide(np.expm1(-exponent), exponent, out=factor, where=exponent > 0)
        x, y = scaled(first, self._width), scaled(second, self._width)
        return np.asarray(x**2 * factor.sum(1)[:, None] - 2 * x * (factor @ y) + factor @ y**2)


class MeanParts:
    """Parts of a difference of means: squares of the features', or, signed, the features' themselves."""

    def __init__(self, reference: Float64Array, weights: Float64Array, signed: bool) -> None:
        self._values, self._signed = reference * weights, signed
        self._mean = self._values.mean(0)
        self._multipliers = weights
        self.constant: Float64Array = self._values.var(0)

    def __call__(self, window: Float64Array) -> Float64Array:
        """Of one window, (d,)."""
        return self._of(np.asarray((window * self._multipliers).mean(0)))

    def null(self, windows: Int32Array) -> Float64Array:
        """Of windows of reference points, (B, d)."""
        return self._of(np.stack([self._values[own].mean(0) for own in windows]))

    def _of(self, means: Float64Array) -> Float64Array:
        difference = means - self._mean
        return np.asarray(difference if self._signed else difference**2)


Parts = KernelParts | MeanParts


def _by_column(features: Array, groups: Int64Array) -> Float64Array:
    """Sums over the features (..., d) of each column."""
    belongs = (groups[:, None] == np.arange(int(groups.max()) + 1)).astype(np.float64)
    return np.asarray(features @ belongs)
