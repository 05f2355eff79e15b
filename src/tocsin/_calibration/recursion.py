"""Null paths to thresholds: one recursion for every statistic and every mode.

Tests are grouped in *stretches* that share a threshold. Going through them in order, a stretch's threshold is the one
at which the paths still quiet would ring at the rate alpha within it,

    (paths that ring in the stretch) / (tests until they do, or to its end) = alpha,

and the paths that ring are dropped. Stretches of one test are the paper's Algorithm 3; a single one is Algorithm 2; a
long last stretch pools the steady state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin._compute.arrays import BoolArray, Float64Array, Int32Array, Int64Array


@dataclass(frozen=True)
class Records:
    """Null paths, reduced to where each reaches a new maximum within each stretch.

    That is all that a first passage of any threshold depends on, it is exact, and it is far smaller than the paths.
    Arrays of one entry per record, path by path: its path, its stretch, its test within the stretch (from 1), its
    value.

    floors: of each stretch, a value that its threshold is sure to exceed. Records below it may be missing.
    """

    paths: int
    floors: Float64Array
    path: Int32Array
    stretch: Int32Array
    step: Int32Array
    value: Float64Array

    @staticmethod
    def least(floors: Float64Array) -> Float64Array:
        """Values that records exceed. All of the last stretch are kept: they tell how rare its values are."""
        return np.append(floors[:-1], -np.inf)

    def above(self, floors: Float64Array) -> Records:
        """Without those below the floors: the records that would have been kept, had they been known."""
        kept = self.value > self.least(floors)[self.stretch]
        return Records(self.paths, floors, self.path[kept], self.stretch[kept], self.step[kept], self.value[kept])

    def first(self, paths: int) -> Records:
        """Of so many paths only."""
        kept = self.path < paths
        return Records(paths, self.floors, self.path[kept], self.stretch[kept], self.step[kept], self.value[kept])

    @classmethod
    def merge(cls, pieces: Sequence[Records]) -> Records:
        """Several sets of paths, with the same floors, as one."""
        shifts = np.cumsum([0, *(piece.paths for piece in pieces)])
        shifted = [piece.path + np.int32(shift) for piece, shift in zip(pieces, shifts[:-1], strict=True)]
        return cls(
            int(shifts[-1]),
            pieces[0].floors,
            np.concatenate(shifted),
            np.concatenate([piece.stretch for piece in pieces]),
            np.concatenate([piece.step for piece in pieces]),
            np.concatenate([piece.value for piece in pieces]),
        )


@dataclass(frozen=True)
class Stretch:
    """A threshold and what it rests on."""

    threshold: float
    alarms: float
    tests: float


def thresholds(records: Records, edges: Int64Array, alpha: float, *, falling: bool = False) -> list[Stretch]:
    """The threshold of every stretch edges[b] <= test < edges[b + 1], at a rate of alpha per test.

    falling: True thresholds fall, since paths that have been quiet for longer are less likely to ring; where noise
        would make one rise, its stretch is joined with the one before (pool adjacent violators).
    """
    done: list[tuple[_Joined, BoolArray]] = []  # stretches, and who was quiet before each
    quiet = np.ones(records.paths, dtype=bool)
    for piece in _split(records, edges):
        while True:
            stretch = piece.solve(quiet, alpha)
            if not (falling and done and stretch.threshold > done[-1][0].result.threshold):
                break
            earlier, quiet = done.pop()
            piece = earlier.join(piece)
        piece.result = stretch
        done.append((piece, quiet))
        quiet = quiet & ~piece.rang(stretch.threshold, records.paths)
    return [piece.result for piece, _ in done for _ in range(piece.pieces)]


class TooFewPathsError(Exception):
    """Every path has rung before the last threshold could be set."""


class FloorTooHighError(Exception):
    """A threshold is below the values that records were kept of."""


def floors(maxima: Float64Array, edges: Int64Array, alpha: float) -> Float64Array:
    """Values that the thresholds will exceed, for all that some of the paths tell: their `maxima` (P, stretches).

    By the end of a stretch about 1 - (1 - alpha)^tests of all paths have rung, and the others were below its threshold.
    """
    paths = len(maxima)
    found = np.full(len(edges) - 1, -np.inf)
    for b, tests in enumerate(edges[1:]):
        rang = paths * (1 - (1 - alpha) ** int(tests))
        spare = paths - int(2 * rang + 6 * np.sqrt(rang) + 10)
        if spare > paths / 2:
            found[b] = np.partition(maxima[:, b], spare)[spare]
    return found


@dataclass
class _Joined:
    """The records of one stretch, or of several that follow each other."""

    path: Int32Array
    step: Int32Array
    value: Float64Array
    length: int
    floor: float
    pieces: int = 1
    result: Stretch = Stretch(np.nan, np.nan, np.nan)

    def solve(self, quiet: BoolArray, alpha: float) -> Stretch:
        at_risk, paths = quiet[self.path], int(quiet.sum())
        if not paths:
            raise TooFewPathsError
        path, step, value = self.path[at_risk], self.step[at_risk], self.value[at_risk]
        if self.floor > -np.inf:
            if not len(value):
                raise FloorTooHighError
            curve = passage_curve(path, step, value, self.length, paths)
            # Below the floor of either of two joined stretches, records may be missing.
            known = int(np.searchsorted(curve.value, self.floor, side="right"))
            if known == len(curve.value) or curve.alarms[known] <= alpha * max(curve.tests[known] - 1, 1):
                raise FloorTooHighError
            return curve.at_rate(alpha)
        return passage_curve(path, step, value, self.length, paths, alpha * self.length * paths).at_rate(alpha)

    def rang(self, threshold: float, paths: int) -> BoolArray:
        rang = np.zeros(paths, dtype=bool)
        rang[self.path[self.value > threshold]] = True
        return rang

    def join(self, later: _Joined) -> _Joined:
        """One stretch of two: of the later records, those remain that exceed all earlier ones of their path."""
        best = np.full(max(self.path[-1:].max(initial=0), later.path[-1:].max(initial=0)) + 1, -np.inf)
        best[self.path] = self.value  # the last of each path, its largest, stays
        new = later.value > best[later.path]
        path = np.concatenate([self.path, later.path[new]])
        step = np.concatenate([self.step, later.step[new] + np.int32(self.length)])
        value = np.concatenate([self.value, later.value[new]])
        order = np.argsort(path, kind="stable")
        length, floor, pieces = self.length + later.length, max(self.floor, later.floor), self.pieces + later.pieces
        return _Joined(path[order], step[order], value[order], length, floor, pieces)


def _split(records: Records, edges: Int64Array) -> Iterator[_Joined]:
    # Of 16 bits it is a radix sort.
    key = records.stretch.astype(np.int16) if len(edges) < 2**15 else records.stretch
    order = np.argsort(key, kind="stable")
    bounds = np.searchsorted(records.stretch[order], np.arange(len(edges)))
    for b, length in enumerate(np.diff(edges)):
        here, floor = order[bounds[b] : bounds[b + 1]], float(records.floors[b])
        here = here[records.value[here] > floor]
        yield _Joined(records.path[here], records.step[here], records.value[here], int(length), floor)


@dataclass(frozen=True)
class PassageCurve:
    """For every threshold: how many paths pass it, and how many tests are made until they do.

    Arrays over the sorted values at which anything changes; entry i holds for thresholds from value[i] on.
    """

    value: Float64Array
    alarms: Float64Array
    tests: Float64Array

    def at_rate(self, alpha: float) -> Stretch:
        """The threshold at which alarms / tests = alpha, interpolated between the values seen.


        One test is taken off: for stretches of a single test this makes the threshold numpy's default quantile, as in
        the paper, and the mean run length over many calibrations right.
        """
        rate = self.alarms / np.maximum(self.tests - 1, 1)
        above = int(np.searchsorted(-rate, -alpha))  # the first entry at or below alpha
        if above == 0:
            return Stretch(float(self.value[0]), float(self.alarms[0]), float(self.tests[0]))
        weight = (rate[above - 1] - alpha) / (rate[above - 1] - rate[above])
        threshold = self.value[above - 1] + weight * (self.value[above] - self.value[above - 1])
        alarms = self.alarms[above - 1] + weight * (self.alarms[above] - self.alarms[above - 1])
        tests = self.tests[above - 1] + weight * (self.tests[above] - self.tests[above - 1])
        return Stretch(float(threshold), float(alarms), float(tests))


def passage_curve(
    path: Int32Array, step: Int32Array, value: Float64Array, length: int, paths: int, most_alarms: float = np.inf
) -> PassageCurve:
    """First passages as a function of the threshold, from records of some of `paths` paths, in path order.

    As the threshold rises past a record, its path's first passage moves on to the path's next record, or, after the
    last, the path is quiet to the end, as are those without records. Thresholds that more than `most_alarms` paths pass
    may be left out.
    """
    last = np.concatenate([path[1:] != path[:-1], [True]])
    longer = np.where(last, length, np.concatenate([step[1:], [0]])) - step
    alarms = int(last.sum())
    first = np.concatenate([[True], last[:-1]])
    tests = int(step[first].sum()) + (paths - alarms) * length
    if most_alarms + 2 < alarms:
        maxima = value[last]
        rank = alarms - int(most_alarms) - 2
        low = value < np.partition(maxima, rank)[rank]
        alarms, tests = alarms - int((last & low).sum()), tests + int(longer[low].sum())
        last, longer, value = last[~low], longer[~low], value[~low]
    order = np.argsort(value)
    return PassageCurve(
        value[order], (alarms - np.cumsum(last[order])).astype(float), (tests + np.cumsum(longer[order])).astype(float)
    )
