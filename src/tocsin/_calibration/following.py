"""The threshold of a detector that follows what it hears: found by letting it follow streams of worlds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from tocsin._calibration.tail import RateCurve, Tail
from tocsin._compute import Functions
from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._execution.threads import Executor

LEAST_MEMORY, MOST_MEMORY = 20.0, 2000.0
"""Rows that running scales remember: as many as the expected run time, within these."""

ATTACK, CAP, FADE = 3.0, 1.5, 0.5
"""An alarm raises running scales until three times its square is quiet; squares count up to that of 1.5 thresholds; and
a stream's first rows are judged more strictly for half of the memory."""

FIRST_LEVEL, FIRST_SLOPE, FARTHEST_STEP, LEAST_LEVEL = 2.7, 3.5, 1.0, 0.3
"""Where to look first for the level, how fast the log rate falls there, how far to go in one step, and where to end."""

STEPS, CLOSE = 6, 0.05
"""Steps at most, and the error of the log rate at which to stop."""

FEWEST_ALARMS = 60.0
"""What is rarer than gives so many in all streams is extrapolated."""

GRID = np.array([0.45, 0.65, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1])
"""Levels whose rates are simulated, in that which is looked for."""

STEEP, LEAST_FALL = 5, 0.7
"""Levels from which the fall beyond the last is read; and that of the log rate from one level to the next whole one, at
least: where few streams ring, it may seem to be none."""

STRICTER = np.array([0.0, 0.15, 0.35, 0.7])
"""By how much more a stream's first rows may have to be loud to ring."""

LOUDER = 1.1
"""By what factor streams are made louder, and quieter, to see what that does to the rate."""

LOUD = 0.98
"""The quantile of a stream's loudness that is compared between worlds."""

TAIL_DOUBT = np.diag([0.04, 0.01])
"""Covariance of log scale and shape of a tail that is read off the last levels."""


def memory_of(ert: float) -> float:
    """Rows that running scales remember."""
    return min(max(ert, LEAST_MEMORY), MOST_MEMORY)


@dataclass(frozen=True)
class Counts:
    """Alarms of all streams; and how their running scales end, on average."""

    alarms: int
    scales: Float64Array


@dataclass(frozen=True, eq=False)
class Following:
    """Streams to follow, each after rows of the past with which running scales settle.

    squares: of how far channels are off, for each world, (born + rows, channels).
    of_each: streams that follow each other there are of the same world.
    unpromised: rows at the beginning of each stream that are not counted as watched.
    """

    squares: Sequence[Float32Array]
    born: int
    silent: int
    ert: float
    compute: Functions
    executor: Executor
    of_each: int = 1
    unpromised: int = 0

    @property
    def memory(self) -> float:
        """Rows that running scales remember: no more than streams have for each of the fewest alarms, since what an
        alarm has raised keeps the next from coming."""
        return min(memory_of(self.ert), self.rows * len(self.squares) / FEWEST_ALARMS)

    @cached_property
    def rows(self) -> int:
        """Of each stream."""
        return len(self.squares[0]) - self.born

    @cached_property
    def first(self) -> int:
        """Rows of a stream that count as its first."""
        return int(min(FADE * self.memory, (self.rows - self.unpromised) / 3)) + self.unpromised

    @cached_property
    def target(self) -> float:
        """Alarms of all streams at the level that is looked for: those promised, or as few as can be counted on."""
        return max(self.watched / self.ert, FEWEST_ALARMS)

    @property
    def watched(self) -> int:
        """Rows of all streams."""
        return (self.rows - self.unpromised) * len(self.squares)

    @cached_property
    def difference(self) -> float:
        """Standard deviation, from world to world, of the logarithm of how loud streams are in their references' units.

        What a stream's halves have in common is the reference that both are judged by. (Alarms would tell too little:
        they are few, and each makes the next rarer.)
        """
        loudest = [own[self.born :].max(1) for own in self.squares]
        worlds = [np.concatenate(loudest[k : k + self.of_each]) for k in range(0, len(loudest), self.of_each)]
        halves = (np.array_split(own, 2) for own in worlds)
        loud = np.log([[max(np.quantile(half, LOUD), 1e-6) for half in pair] for pair in halves]) / 2
        return math.sqrt(max(float(np.cov(loud.T)[0, 1]), 0.0))

    def counts(self, level: float, early: float, scale: Float64Array, louder: float = 1.0) -> Counts:
        """Of all streams, at a level. louder: by what factor they are."""
        found = list(self.executor.map(partial(self._follow, level, early, scale, louder), self.squares))
        alarms, scales = zip(*found, strict=True)
        return Counts(sum(alarms), np.exp(np.mean(np.log(scales), axis=0)))

    def _follow(
        self, level: float, early: float, scale: Float64Array, louder: float, squares: Float32Array
    ) -> tuple[int, Float64Array]:
        scale = scale.copy()
        squares = squares if louder == 1 else squares * np.float32(louder**2)
        rang = self.compute.view_follow(
            squares, self.born, scale, level, self.memory, ATTACK, CAP, self.silent, early, FADE * self.memory
        )[self.born :]
        return int(rang.sum()), scale

    def first_alarms(self, level: float, early: float, scale: Float64Array) -> int:
        """Of all streams, in their first rows."""
        begun = [own[: self.born + self.first] for own in self.squares]
        return sum(alarms for alarms, _ in self.executor.map(partial(self._follow, level, early, scale, 1.0), begun))

    def level(self, guess: float, early: float, scale: Float64Array) -> float:
        """The one that streams pass as often as they should."""
        tried: list[tuple[float, float]] = []
        slope = FIRST_SLOPE
        for _ in range(STEPS):
            found = self.counts(guess, early, scale).alarms
            off = math.log((found + 0.5) / self.target)
            tried.append((guess, off))
            if len(tried) > 1 and abs(tried[-1][0] - tried[-2][0]) > 1e-6:
                (a, b), (c, d) = tried[-2:]
                slope = float(np.clip((b - d) / (c - a), 0.5, 20.0))
            if abs(off) < CLOSE:
                break
            guess = max(guess + float(np.clip(off / slope, -FARTHEST_STEP, FARTHEST_STEP)), LEAST_LEVEL)
        return min(tried, key=lambda each: abs(each[1]))[0]


@dataclass(frozen=True, eq=False)
class Found:
    """What streams of worlds say.

    level: passed as often as promised.  early: by how much more their first rows must be loud.
    scale: running scales with which the past begins.  settled: the same for a channel of each kind.
    curve: how often each level is passed, once the first rows are over.
    alarms: of all streams, at a level that could be simulated.
    leverage: how much the log rate of alarms changes with the logarithm of how loud streams are, which running scales
        follow in the long run.
    """

    level: float
    early: float
    scale: Float64Array
    curve: RateCurve
    alarms: int
    leverage: float


def find(following: Following, columns: int) -> Found:
    """Level and strictness at which all rows, and the first of them, ring as often as promised.

    columns: whose channels are alike: running scales begin with the mean over them.
    """
    cold = np.ones(following.squares[0].shape[1])
    level = following.level(FIRST_LEVEL, 0.0, cold)
    kinds = np.log(following.counts(level, 0.0, cold).scales).reshape(-1, columns).mean(1)
    scale = np.repeat(np.exp(kinds), columns)
    level = following.level(level, 0.0, scale)
    early = 0.0
    for _ in range(2):
        early = _strictness(following, level, scale)
        level = following.level(level, early, scale)
    counts = np.array([following.counts(level * part, early, scale).alarms for part in GRID])
    curve, alarms = _curve(level * GRID, counts, following), int(counts[GRID == 1][0])
    promised = max(curve.level(-math.log(following.ert)), LEAST_LEVEL)
    leverage = _leverage(following, level, early, scale) * promised / level
    return Found(promised, early, scale, curve, alarms, leverage)


def _leverage(following: Following, level: float, early: float, scale: Float64Array) -> float:
    quieter, louder = (following.counts(level, early, scale, factor).alarms + 0.5 for factor in (1 / LOUDER, LOUDER))
    return math.log(louder / quieter) / (2 * math.log(LOUDER))


def _strictness(following: Following, level: float, scale: Float64Array) -> float:
    """How much louder the first rows must be, to ring as often as all."""
    unpromised = following.unpromised
    wanted = following.target * (following.first - unpromised) / (following.rows - unpromised)
    found = np.array([following.first_alarms(level, early, scale) for early in STRICTER])
    log = np.minimum.accumulate(np.log(found + 0.5))
    return float(np.interp(-math.log(wanted + 0.5), -log, STRICTER))


def _curve(levels: Float64Array, counts: Int64Array, following: Following) -> RateCurve:
    """Rates at levels that were simulated, and beyond them as they fall at the last."""
    log = np.minimum.accumulate(np.log(np.maximum(counts, 0.5) / following.watched))
    fall = max(-float(np.polyfit(levels[-STEEP:], log[-STEEP:], 1)[0]), LEAST_FALL)
    tail = Tail(float(levels[-1]), float(log[-1]), 1 / fall, 0.0, TAIL_DOUBT)
    return RateCurve(levels, log, tail)
