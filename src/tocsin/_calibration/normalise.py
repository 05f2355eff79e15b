"""Many channels to one path: each is measured against its own null law, and the loudest speaks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from tocsin._compute import Functions
from tocsin._compute.arrays import Float32Array, Float64Array

LEAST_TAIL = 1e-4
"""The normalising quantile only balances the channels: it need not be as rare as an alarm."""

TIE_BREAKER = 2.0**-16
"""Ties are broken by a seeded coin worth this part of the distance from a channel's mean to its quantile: far below
anything that a detection depends on."""

GRID = 2.0**-8
"""On data with atoms it is the coin that rings with the right probability when a statistic sits on its threshold. So
that rounding has no part in it, statistics are put on a grid of this width (in the same units), and the coin is worth
one step of it."""

GRID_PLACES = 32
"""Places at which the grid may begin; the one is taken that has fewest values near the middle between two of its lines,
where rounding would decide."""

LARGE_ATOM = 2.0
"""A channel that reaches its quantile so many times as often as it should has an atom there."""

SHORTEST_TAIL, LARGEST_ATOM = 50, 0.5
"""Values that count as the upper tail, at least, and the part of it that one atom may hold and still be ignored."""


@dataclass(frozen=True)
class Normaliser:
    """u^k = (S^k - centre_k) / scale_k, the path max_k u^k + coin. A single channel keeps its own units.

    tie: what the coin is worth.
    grid, origin: width and one line of the grid that max_k u^k is put on; a width of 0 for none.
    """

    centre: Float64Array
    scale: Float64Array
    tie: float
    grid: float = 0.0
    origin: float = 0.0

    @classmethod
    def learn(cls, paths: Float32Array, alpha: float, compute: Functions, *, discrete: bool) -> Normaliser:
        """From (channels, P, T) null paths: means, and quantiles at a tail of alpha / channels or LEAST_TAIL."""
        tail = max(alpha / len(paths), LEAST_TAIL)
        # Channel by channel: copies of all of them at once would cost more than the arithmetic.
        measures = [_centre_and_scale(compute.flat(channel), tail, compute) for channel in paths]
        if len(measures) == 1:
            unit, normaliser = measures[0][1], cls(np.zeros(1), np.ones(1), TIE_BREAKER * measures[0][1])
        else:
            centre, scale = (np.array(values) for values in zip(*measures, strict=True))
            unit, normaliser = 1.0, cls(centre, scale, TIE_BREAKER)
        if not discrete:
            return normaliser
        grid = GRID * unit
        values = compute.get(normaliser.paths(paths, np.zeros(paths.shape[1:]), compute))
        return replace(normaliser, tie=grid, grid=grid, origin=_origin(values[values > np.median(values)], grid))

    def paths(self, channels: Float32Array, coins: Float64Array, compute: Functions) -> Float64Array:
        """(channels, P m, T) to (P m, T); streams that come m times in a row share their coins (P, T)."""
        return compute.loudest(channels, self.centre, self.scale, self.tie * coins, self.grid, self.origin)


def _origin(values: Float64Array, grid: float) -> float:
    """Where to begin a grid so that values are not near the middle between two lines."""
    if not len(values):
        return 0.0
    origins = np.arange(GRID_PLACES) / GRID_PLACES
    away = [np.mean(np.abs((values / grid - origin) % 1 - 0.5) < 1 / GRID_PLACES) for origin in origins]
    return float(origins[int(np.argmin(away))] * grid)


def _centre_and_scale(values: Float64Array, tail: float, compute: Functions) -> tuple[float, float]:
    centre = float(values.mean())
    quantile = compute.quantile(values, 1 - tail)
    scale = quantile - centre
    if scale > 0:
        reached = float((values >= quantile - TIE_BREAKER * scale).sum()) / len(values)
        if reached > LARGE_ATOM * tail:
            # It cannot tell more than how rare its atom is: what is reached by chance often must not speak loudest.
            scale *= _deviations(tail) / max(_deviations(reached), LEAST_DEVIATIONS)
        return centre, scale
    # A channel that never moves (say, a window that sees one constant value) cannot ring: any scale will do.
    return centre, float(abs(values).max()) or 1.0


LEAST_DEVIATIONS = 0.01
"""An atom that holds half of the law or more never speaks."""


def _deviations(tail: float) -> float:
    """How many standard deviations a normal law is above its mean with this probability."""
    return NormalDist().inv_cdf(1 - tail)


def atom_in_tail(channels: Float32Array, alpha: float) -> bool:
    """Whether one value holds most of a channel's upper tail, so that its ties decide alarms; from (channels, n).

    Channels whose atoms are finer can be calibrated as if they had none: which side of the threshold an atom falls on
    then matters little.
    """
    size = max(int(alpha * channels.shape[1]), SHORTEST_TAIL)
    for values in channels.astype(np.float64):
        tail = np.sort(values)[-size:]
        rounding = TIE_BREAKER * max(float(tail[-1] - np.median(values)), np.finfo(np.float64).tiny)
        starts = np.concatenate([[0], np.flatnonzero(np.diff(tail) > rounding) + 1, [size]])
        # The tail is cut inside an atom; all of that one counts.
        longest = max(int(np.diff(starts).max()), int((np.abs(values - tail[0]) <= rounding).sum()))
        if longest > LARGEST_ATOM * size:
            return True
    return False
