"""Many channels to one path: each is measured against its own null law, and the loudest speaks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tocsin.compute import Functions
from tocsin.compute.arrays import Array, Float32Array, Float64Array, Int64Array

LEAST_TAIL = 1e-4
"""The normalising quantile only balances the channels: it need not be as rare as an alarm."""

TIE_BREAKER = 2.0**-16
"""Ties are broken by a seeded coin worth this part of the distance from a channel's mean to its quantile: far above the
rounding of float32 kernels, far below anything that a detection depends on. On data with atoms it is the coin that
rings with the right probability when a statistic sits exactly on its threshold; elsewhere it changes nothing."""

SHORTEST_TAIL, LARGEST_ATOM = 50, 0.5
"""Values that count as the upper tail, at least, and the part of it that one atom may hold and still be ignored."""

RUN_STRIDE, TEST_STRIDE, MASK = 0xD1342543DE82EF95, 0x9E3779B97F4A7C15, 2**64 - 1
MIXERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@dataclass(frozen=True)
class Normaliser:
    """u^k = (S^k - centre_k) / scale_k, the path max_k u^k + coin. A single channel keeps its own units."""

    centre: Float64Array
    scale: Float64Array
    tie: float

    @classmethod
    def learn(cls, paths: Float32Array, alpha: float) -> Normaliser:
        """From (channels, P, T) null paths: means, and quantiles at a tail of alpha / channels or LEAST_TAIL."""
        tail = max(alpha / len(paths), LEAST_TAIL)
        # Channel by channel: copies of all of them at once would cost more than the arithmetic.
        measures = [_centre_and_scale(channel.reshape(-1).astype(np.float64), tail) for channel in paths]
        if len(measures) == 1:
            return cls(np.zeros(1), np.ones(1), TIE_BREAKER * measures[0][1])
        centre, scale = (np.array(values) for values in zip(*measures, strict=True))
        return cls(centre, scale, TIE_BREAKER)

    def paths(self, channels: Float32Array, coins: Float64Array, compute: Functions) -> Float64Array:
        """(channels, P m, T) to (P m, T); streams that come m times in a row share their coins (P, T)."""
        loudest: Float64Array = compute.loudest(channels, self.centre, self.scale, self.tie * coins)
        return loudest

    def statistics(self, channels: Float64Array, coins: Float64Array) -> tuple[Float64Array, Int64Array]:
        """(n, channels) of the live stream to the path and the channel that speaks; NaN until windows are full."""
        scores = (channels - self.centre) / self.scale
        loudest: Array = scores.argmax(1)
        return scores[np.arange(len(scores)), loudest] + self.tie * coins, loudest

    def statistic(self, channels: Float64Array, coin: float) -> tuple[float, int]:
        """`statistics` of a single observation."""
        scores = (channels - self.centre) / self.scale
        loudest = int(scores.argmax())
        return float(scores[loudest]) + self.tie * coin, loudest


def _centre_and_scale(values: Float64Array, tail: float) -> tuple[float, float]:
    centre = float(values.mean())
    scale = float(np.quantile(values, 1 - tail)) - centre
    if scale > 0:
        return centre, scale
    # A channel that never moves (say, a window that sees one constant value) cannot ring: any scale will do.
    return centre, float(np.abs(values).max()) or 1.0


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


def coin(seed: int, run: int, test: int) -> float:
    """A uniform number for a test of a run: a hash of the three, so that no generator need be kept.

    A counter-based generator (Salmon et al. 2011) with the mixing of splitmix64 (Steele et al. 2014).
    """
    x = (seed + run * RUN_STRIDE + (test + 1) * TEST_STRIDE) & MASK
    x = ((x ^ (x >> 30)) * MIXERS[0]) & MASK
    x = ((x ^ (x >> 27)) * MIXERS[1]) & MASK
    return float((x ^ (x >> 31)) >> 11) * 2.0**-53


def coins(seed: int, run: int, first: int, count: int) -> Float64Array:
    """`coin` of the tests first, first + 1, ..."""
    start = (seed + run * RUN_STRIDE + (first + 1) * TEST_STRIDE) & MASK
    x = np.uint64(start) + np.arange(count, dtype=np.uint64) * np.uint64(TEST_STRIDE)  # wraps around, as it should
    x = (x ^ (x >> np.uint64(30))) * np.uint64(MIXERS[0])
    x = (x ^ (x >> np.uint64(27))) * np.uint64(MIXERS[1])
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
