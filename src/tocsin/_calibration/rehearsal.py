"""Rehearsal: walking through the reference in time, what did the past fail to foresee of the rows that came next?

Channels are told in units of what they were off by in stretches that followed those from which their mean was learnt.
What varies between few stretches is known from few, so units are larger by what Student's law asks for. They are
measured on the reference and, alike, on worlds made of it (`worlds`), which say how much of a unit is chance: units are
drawn towards the worlds' by empirical Bayes, and what exceeds them in all of the reference is evidence that it wanders
as no world of short memory does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tocsin._common.wording import called, counted, few, listed
from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array

START, MOST_STRETCHES, FEWEST_STRETCHES, SHORTEST = 0.4, 8, 2, 3
"""The part of the reference that the first stretch is judged by; stretches, and rows of one."""

DOUBT = 5e-4
"""The tail at which Student's law and the Gaussian are compared."""

USUAL, SELDOM, LARGEST = 0.98, 2.33, 4.0
"""A unit is no smaller than this quantile of the misses over the Gaussian's, nor than their largest over the last."""

LEAST_UNIT, LEAST_NOISE = 2e-2, 1e-3
"""Units of channels that are in spreads of their view; and what logarithms of units differ by from world to world."""

KEPT = 0.6
"""What lies above the worlds stays, to this part: streams wander more often than not."""


def stretches(count: int) -> Float64Array:
    """Edges of the stretches that are rehearsed, of so many rows."""
    first = max(int(START * count), 1)
    number = int(np.clip((count - first) // SHORTEST, FEWEST_STRETCHES, MOST_STRETCHES))
    return np.linspace(first, count, number + 1).astype(np.int64)


def misses(channels: Float64Array) -> list[Float64Array]:
    """Of each stretch of rows (n, channels), how far they are from the mean of all that came before it."""
    total = np.cumsum(channels, axis=0)
    return [channels[a:b] - total[a - 1] / a for a, b in pairwise(stretches(len(channels)))]


def units(missed: list[Float64Array], rows: int, window: int, freedom: int | None = None) -> Float64Array:
    """What a channel is off by, from the stretches that were rehearsed; of so many rows, by windows of so many.

    freedom: degrees of freedom with which is known what differs between stretches, if not as many as there are; of
        stretches that are whole recordings, all rows are judged.
    """
    from scipy import special  # slow to import, and needed by fits alone

    length, number = float(np.mean([len(stretch) for stretch in missed])), len(missed)
    within = np.mean([stretch.var(0) for stretch in missed], axis=0)
    between = np.mean([stretch.mean(0) ** 2 for stretch in missed], axis=0)
    total = between + within + 1e-9
    share = np.maximum(between - within * min(1.0, window / length), 0) / total
    judged = rows * (1 - START) if freedom is None else rows
    known = 1 / (share**2 / (freedom or number) + (1 - share) ** 2 / max(judged / window, 2))
    doubt = special.stdtrit(np.maximum(known, 2), 1 - DOUBT) / special.ndtri(1 - DOUBT)
    size = np.abs(np.concatenate(missed))
    often, largest = np.quantile(size, USUAL, axis=0) / SELDOM, size.max(0) / LARGEST
    found: Float64Array = np.maximum.reduce([np.sqrt(total) * doubt, often, largest, np.full(len(total), LEAST_UNIT)])
    return found


ONCE_IN, JUDGED = 50, 100
"""Rows in which a level is passed once that the reference is told to have passed; and one that it is judged by."""

AGREEMENT, EVIDENCE = 0.1, 0.5
"""What logarithms of thresholds should differ by between rehearsal and worlds, before the data are seen; and what a
reference that is less quiet than its worlds raises the threshold by, of what it was off."""

POSITIVE, LEAST_LEVEL = 0.4, 0.1
"""The mean of the positive part of a Gaussian number, and a level that anything passes."""

TYPICAL, FEW, WORTH_TELLING, MOST_NAMES = 2.0, 3.0, 0.01, 8
"""Spreads within which rehearsal is said to agree with simulation, and alarms below which nothing is said of that; what
a part must be to be told; and names told."""


@dataclass(frozen=True)
class Rehearsal:
    """What a detector did when it rehearsed on its own reference.

    rows: that were judged by those before them, in time.
    once_in: a level that worlds pass once in so many rows.  passed, expected: how often the reference passed it, and
        how often worlds did on average.  spread: what that number differs by from world to world.
    wandering: columns whose level moves on: stretches far apart in time differ more than neighbours do.
    unforeseen: by how much more the reference was off than worlds are, on average over channels, as a logarithm.
    recordings: of the reference, each judged by all others; None if rows were judged by those before them.
    recordings_to_halve: how many there should be for half the interval; None if no number would do, or there are none.
    """

    rows: int
    once_in: float
    passed: int
    expected: float
    spread: float
    wandering: tuple[str, ...]
    unforeseen: float
    recordings: int | None = None
    recordings_to_halve: int | None = None

    def __str__(self) -> str:
        chance = f"{few(self.expected)} (give or take {few(self.spread)}) were expected"
        rang = {1: "once", 2: "twice"}.get(self.passed, f"{self.passed:,} times")
        on = f"its last {self.rows:,} rows, each judged by those before it"
        if self.recordings is not None:
            on = f"{self.rows:,} rows of {self.recordings:,} recordings, each judged by the others"
        return (
            f"rehearsed on {on}: at a level for once in "
            f"{self.once_in:.0f} rows it would have rung {rang} where {chance}, {self.agreement}"
        )

    @property
    def in_short(self) -> str:
        """The same for those in a hurry."""
        on = "" if self.recordings is None else f" on {self.recordings:,} recordings"
        rang = f"rehearsed{on}: {counted(self.passed, 'alarm')} where {few(self.expected)} were expected"
        return f"{rang}; {self._names} {self._go} on" if self.wandering else rang

    @property
    def agreement(self) -> str:
        """What the numbers say of the simulation, which is that of streams with a short memory."""
        if abs(self.passed - self.expected) <= TYPICAL * max(self.spread, 1.0):
            return "which agrees with simulation" if self.expected >= FEW else "too few to say much"
        return f"which is {'more' if self.passed > self.expected else 'less'} than simulation explains"

    @property
    def allowance(self) -> str:
        """What the thresholds were raised for; nothing if that is too little to speak of."""
        more = math.expm1(self.unforeseen)
        if more < WORTH_TELLING:
            return ""
        if self.recordings is not None:
            return f"recordings differed from the others by {more:.0%} more than simulation and chance explain"
        return (
            f"rows differed from those before them by {more:.0%} more than simulation and chance explain, and the "
            "threshold is higher for that"
        )

    @property
    def wanders(self) -> str:
        """What cannot be promised of columns whose level moves on; nothing if there is none."""
        if not self.wandering:
            return ""
        one = len(self.wandering) == 1
        levels, they, do = ("level", "it", "does") if one else ("levels", "they", "do")
        return (
            f"the {levels} of {self._names} {self._go} on over the whole reference, as far as that tells: how far "
            f"{they} will go cannot be promised. What {they} {do} from row to row, and in the short run, is watched "
            "and promised as that of other columns"
        )

    @property
    def _names(self) -> str:
        names = [called(name) for name in self.wandering]
        more = len(names) - MOST_NAMES
        return listed([*names[:MOST_NAMES], f"{more:,} more"] if more > 0 else names)

    @property
    def _go(self) -> str:
        return "moves" if len(self.wandering) == 1 else "move"


@dataclass(frozen=True, eq=False)
class Heard:
    """Channels of a reference, or of a world's, and what they were off by in rehearsal.

    centre: their means.  missed: of all rows that were rehearsed.  logarithms: of the units in which that is told.
    lengths: of recordings, if these were.
    """

    centre: Float64Array
    missed: Float64Array
    logarithms: Float64Array
    lengths: Int64Array | None = None

    @classmethod
    def of(cls, channels: Float64Array, window: int) -> Heard:
        """From rows of channels in time."""
        missed = misses(channels)
        return cls(channels.mean(0), np.concatenate(missed), np.log(units(missed, len(channels), window)))

    @classmethod
    def of_recordings(cls, channels: list[Float64Array], window: int) -> Heard:
        """From rows of channels of recordings, each judged by the mean of all others."""
        total, count = np.sum([own.sum(0) for own in channels], axis=0), sum(map(len, channels))
        missed = [own - (total - own.sum(0)) / (count - len(own)) for own in channels]
        found = units(missed, count, window, freedom=len(channels) - 1)
        return cls(total / count, np.concatenate(missed), np.log(found), np.array([len(own) for own in missed]))

    def passed_by(self, share: float, score: Float64Array) -> float:
        """The level that is passed in so many of the recordings, by how loud each row was."""
        assert self.lengths is not None
        loudest = np.maximum.reduceat(score, np.cumsum(self.lengths) - self.lengths)
        return float(np.quantile(loudest, 1 - share))

    def score(self, logarithms: Float64Array) -> Float64Array:
        """How loud each rehearsed row was, in these units."""
        loudest: Float64Array = (np.abs(self.missed) / np.exp(logarithms)).max(1)
        return loudest


@dataclass(frozen=True)
class Pool:
    """Logarithms of units as worlds have them: their mean, and what they differ by from world to world."""

    centre: Float64Array
    noise: Float64Array

    @classmethod
    def of(cls, logarithms: Float64Array) -> Pool:
        """From those of (worlds, channels)."""
        return cls(logarithms.mean(0), np.maximum(logarithms.std(0, ddof=1), LEAST_NOISE))

    def shrunk(self, logarithms: Float64Array) -> Float64Array:
        """Drawn towards the worlds', as far as they differ no more than worlds do."""
        off = logarithms - self.centre
        excess = off**2 - self.noise**2
        real = np.maximum(0.5 * excess.mean() + 0.5 * excess, 0)
        weight = real / (real + self.noise**2)
        drawn: Float64Array = self.centre + np.where(off > 0, np.maximum(weight, KEPT), weight) * off
        return drawn

    def unforeseen(self, logarithms: Float64Array) -> float:
        """By how much they exceed what a world might have, on average."""
        return float(np.maximum(logarithms - self.centre - self.noise, 0).mean())


def clusters(above: BoolArray, apart: int) -> int:
    """Rows above a level; those within `apart` of the one before count as one."""
    found, end = 0, 0
    for place in np.flatnonzero(above).tolist():
        if place >= end:
            found, end = found + 1, place + apart
    return found


def level_passed(score: Float64Array, count: int, apart: int) -> float:
    """The level passed by so many clusters."""
    low, high = 0.0, float(score.max()) * 1.01 + 1e-9
    for _ in range(18):
        middle = (low + high) / 2
        low, high = (middle, high) if clusters(score > middle, apart) >= count else (low, middle)
    return low


@dataclass(frozen=True)
class Evidence:
    """What rehearsal says of worlds, and of the level that they found.

    raised: what is to be added to its logarithm.  unforeseen: the part of that for which worlds have no explanation.
    told: what a person may want to know of it.
    """

    raised: float
    unforeseen: float
    told: Rehearsal

    @classmethod
    def of(
        cls,
        own: Heard,
        unit: Float64Array,
        worlds: Sequence[Heard],
        units: Sequence[Float64Array],
        apart: int,
        share: float | None = None,
    ) -> Evidence:
        """From what was heard of the reference and of worlds, and the logarithms of their units.

        share: of recordings, how many are to ring; None where rows were judged by those before them. The next recording
        is no further from these than they are from each other: the level that so many of them passed says how high it
        should be, be that higher than in worlds or lower, and what is unforeseen is in the units.
        """
        pool, rows = Pool.of(np.array([world.logarithms for world in worlds])), len(own.missed)
        scores = [world.score(logarithms) for world, logarithms in zip(worlds, units, strict=True)]
        score = own.score(unit)
        few = max(2, rows // JUDGED)

        def level_of(heard: Heard, loud: Float64Array) -> float:
            level = level_passed(loud, few, apart) if share is None else heard.passed_by(share, loud)
            return math.log(max(level, LEAST_LEVEL))

        levels = np.array([level_of(*each) for each in zip(worlds, scores, strict=True)])
        tail = level_of(own, score) - levels.mean()
        noise = levels.std()
        known = AGREEMENT**2 / (AGREEMENT**2 + noise**2)
        beyond = np.array([pool.unforeseen(world.logarithms) for world in worlds])
        unforeseen = max(pool.unforeseen(own.logarithms) - beyond.mean() - beyond.std(), 0.0)
        # The worlds' tails differ from each other: the positive part of a difference is not 0 on average.
        raised = known * (max(tail, 0.0) - POSITIVE * noise) + EVIDENCE * unforeseen if share is None else known * tail
        often = float(np.median([level_passed(each, max(1, rows // ONCE_IN), apart) for each in scores]))
        passed = np.array([clusters(each > often, apart) for each in scores])
        told = Rehearsal(
            rows, rows / max(1, rows // ONCE_IN), clusters(score > often, apart), float(passed.mean()),
            float(passed.std()), (), float(unforeseen),
        )  # fmt: skip
        return cls(float(raised), float(unforeseen), told)
