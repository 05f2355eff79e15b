"""The alarm rule: what the channels say after an observation, and when that rings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.result import Thresholds
from tocsin._common.caches import Caching
from tocsin._compute import Functions, on_host, speaking
from tocsin._compute.arrays import Array, BoolArray, Float64Array, Int64Array, UInt64Array
from tocsin._state.outcomes import Outcome, Outcomes
from tocsin._statistics.base import Channel

ALONE = np.zeros(1, np.uint64)
"""The number of the stream that a detector watches, if it watches no other."""

FIRST_TEST = np.zeros(1, np.int64)

AS_IT_IS = np.zeros(1), np.ones(1)
"""Centre and scale of what has been measured already."""


@dataclass(frozen=True, eq=False)
class Rule(Caching):
    """The path is the loudest channel plus a coin, and a test rings when the path exceeds its threshold.

    untested: observations of a run before its first test, number 0. A warm run made that one before its first
        observation; a cold one makes it when its windows are full.
    """

    normaliser: Normaliser
    limits: Thresholds
    channels: tuple[Channel, ...]
    untested: int
    seed: int
    compute: Functions

    def __call__(
        self, values: Array, stream: UInt64Array, run: Int64Array, time: Int64Array, spoke: Int64Array | None = None
    ) -> Outcomes:
        """Outcomes of observations, from their channels (n, K), NaN where windows are not full.

        stream, run: whose they are, n numbers or one for all.  time: in their runs, from 1 on; (n,).
        spoke: which channel was the loudest, where values (n, 1) are of this one, measured already.
        """
        statistic, threshold, loudest = self._judged(values, stream, run, time, spoke)
        alarm = statistic > threshold
        return Outcomes(time, alarm, statistic, threshold, loudest, self.channels, self.limits.curve)

    def one(self, values: Float64Array, run: int, time: int, *, learning: bool = False) -> Outcome:
        """The same for one observation of a detector alone, (1, K), sooner. learning: whether a level is, from it."""
        if time < self.untested:
            return Outcome(time, False, math.nan, math.nan, math.nan, None, learning=learning)
        statistic, threshold, loudest = self.compute.judge_one(values, self._seed, run, time, self.untested, *self._law)
        if math.isnan(statistic):  # a run that goes on after its alarm is silent for a while
            return Outcome(time, False, statistic, threshold, math.nan, None, learning=learning)
        curve = self.limits.curve
        rarity = curve.rarity(statistic) if curve else math.nan
        return Outcome(
            time, statistic > threshold, statistic, threshold, rarity, self.channels[loudest], learning=learning
        )

    def quiet_at_first(self, values: Array, coins: Float64Array) -> BoolArray:
        """Which of these windows, about to begin runs, do not ring at once; coins are given, not hashed."""
        statistic, threshold, _ = self.compute.decide(on_host(values), coins, FIRST_TEST, *self._law)
        return np.asarray(statistic <= threshold)

    def coins(self, stream: UInt64Array, run: Int64Array, time: Int64Array) -> Float64Array:
        """Uniform numbers, a hash of the seed and these, so that no generator need be kept."""
        return self.compute.coins(self._seed, stream, run, time)

    def _judged(
        self, values: Array, stream: UInt64Array, run: Int64Array, time: Int64Array, spoke: Int64Array | None
    ) -> tuple[Float64Array, Float64Array, Int64Array]:
        centre, scale, tie, grid, origin, thresholds = self._law
        if spoke is not None:
            centre, scale = AS_IT_IS
        elif not isinstance(values, np.ndarray):
            # On a GPU: only the loudest channel of each observation comes here.
            best, spoke = speaking(values, centre, scale)
            values, (centre, scale) = best[:, None], AS_IT_IS
        statistic, threshold, loudest = self.compute.judge(
            values, self._seed, stream, run, time, self.untested, centre, scale, tie, grid, origin, thresholds
        )
        return statistic, threshold, loudest if spoke is None else spoke

    @cached_property
    def _law(self) -> tuple[Float64Array, Float64Array, float, float, float, Float64Array]:
        """What decides, once a coin is tossed."""
        own = self.normaliser
        return own.centre, own.scale, own.tie, own.grid, own.origin, self.limits.thresholds

    @cached_property
    def _seed(self) -> np.uint64:
        return np.uint64(self.seed % 2**64)
