"""Trials where rows are drawn from the reference: one by one, or in blocks, as the null streams were.

A trial's rows are distinct points of the reference, and none is compared with itself, changed or not: a stream brings
new points. The windows hold quiet rows when the change begins, and thresholds are those of a run that has gone on for
long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tocsin import _compute as compute
from tocsin._calibration.result import Calibration
from tocsin._common.seeds import Purpose, generator
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._power.changes import Cells, Change, Scene, together
from tocsin._samplers import InBlocks, Singly, Source
from tocsin._state import Fitted
from tocsin._statistics.base import Points, WindowState, choose, snapshot
from tocsin._statistics.features import FeatureLive
from tocsin._statistics.landmarks import LandmarksLive

PIECE = 4
"""Rows of a stream that are tested at once at first; twice as many each time, since most trials ring soon."""

MOST_STARTS = 100
"""Windows drawn for a trial until one is quiet."""


@dataclass(frozen=True, eq=False)
class Draws:
    """Trials against a reference whose order means nothing, or is kept in blocks.

    places: where each point is among those compared with; None where points may meet themselves.
    wanted: rows of a trial, if there are as many.
    """

    fitted: Fitted[Calibration]
    places: Int64Array | None
    cells: Cells
    seed: int
    wanted: int
    ordered = False

    @property
    def horizon(self) -> int:
        """Rows of a trial."""
        return min(self.wanted, len(self.fitted.reference) - self.fitted.widest)

    @cached_property
    def _source(self) -> Source:
        calibration, edges = self.fitted.calibration, self.fitted.edges
        if calibration.block == 1 or edges is None:
            return Singly(len(self.fitted.reference))
        return InBlocks(edges, calibration.block, calibration.guard)

    def onsets(self, trials: int) -> Int64Array:
        """Of no meaning here: every trial has rows of its own."""
        return np.zeros(trials, np.int64)

    def delays(self, onset: int, trial: int, changes: Sequence[Change]) -> Float64Array:
        """Rows from the onset to the first alarm, that included: without a change, and with each; inf if none."""
        state, scene, own, last = self._scene(trial)
        found = [self._delays(state, scene.after, own, trial, 1, moved=False)]
        for some in together(changes, len(own) * self._width):
            points, places = self.cells.changed(some, scene), self._places(some, own, last)
            found.append(self._delays(state, points, places, trial, len(some), moved=True))
        return np.concatenate(found)

    def loudness(self, trial: int, changes: Sequence[Change]) -> Float64Array:
        """How loud each channel is with each change, (changes, channels), on average once it fills all windows."""
        state, scene, own, last = self._scene(trial)
        normaliser, found = self.fitted.rule.normaliser, []
        for change in changes:
            points, ahead = self.cells.changed([change], scene), [snapshot(each) for each in state]
            observed = self._observed(points, self._places([change], own, last), moved=True)
            values = compute.on_host(self.fitted.live.advance(ahead, observed, 0, len(points)))
            found.append(((values[self.fitted.widest :] - normaliser.centre) / normaliser.scale).mean(0))
        return np.array(found)

    @property
    def _width(self) -> int:
        """Numbers of a point."""
        reference = self.fitted.reference
        return reference.shape[1] if isinstance(reference, np.ndarray) else 0

    def _scene(self, trial: int) -> tuple[list[WindowState], Scene, Int64Array, int]:
        """Windows before a change, and what it meets; where these rows are, and the last row before them, among those
        compared with (nowhere: -1)."""
        rng, reference = generator(self.seed, Purpose.POWER, 1 + trial), self.fitted.reference
        drawn, state = self._begun(rng, trial)
        before, after = drawn[: self.fitted.widest], drawn[self.fitted.widest :]
        elsewhere = rng.integers(0, len(reference), len(after))
        scene = Scene(
            before=choose(reference, before),
            after=choose(reference, after),
            elsewhere=choose(reference, elsewhere),
            dice=rng.random(len(after)),
            signs=rng.choice([-1.0, 1.0], self._width),
            ordered=False,
        )
        if self.places is None:
            return state, scene, np.full(len(after), -1), -1
        return state, scene, self.places[after], int(self.places[before[-1]])

    def _places(self, changes: Sequence[Change], own: Int64Array, last: int) -> Int64Array:
        """Where rows that were changed were."""
        stuck = [change.kind == "stuck" and change.column is None for change in changes]
        return np.where(np.repeat(stuck, len(own)), last, np.tile(own, len(changes)))

    def _begun(self, rng: np.random.Generator, trial: int) -> tuple[Int64Array, list[WindowState]]:
        """Places of the points of a trial, and windows that hold the first of them, which are quiet."""
        fitted = self.fitted
        for _ in range(MOST_STARTS):
            drawn = self._source.distinct(rng, 1, fitted.widest + self.horizon, compute.load("numpy"))[0]
            drawn = drawn.astype(np.int64)
            first = drawn[: fitted.widest]
            own = None if self.places is None else self.places[first]
            state = fitted.live.begin(0)
            observed = fitted.live.observe(choose(fitted.reference, first), own)
            values = compute.on_host(fitted.live.advance(state, observed, 0, fitted.widest))
            if not self._rings(values[-1:], np.zeros(1, np.int64), trial).any():
                break
        return drawn, state

    def _delays(
        self,
        state: list[WindowState],
        points: Points,
        own: Int64Array,
        trial: int,
        count: int,
        *,
        moved: bool,
    ) -> Float64Array:
        """Rows to the first alarm of so many streams that follow from there, one after the other in `points`."""
        live, rows, ear = self.fitted.live, len(points) // count, self.fitted.ear
        heard = None if ear is None else ear.begun(count)
        ahead = [[snapshot(each) for each in state] for _ in range(count)]
        found, going, position, size = np.full(count, np.inf), np.arange(count), 0, PIECE
        while position < rows and len(going):
            size = min(size, rows - position)
            taken = (rows * going[:, None] + position + np.arange(size)).ravel()
            observed = self._observed(choose(points, taken), own[taken], moved=moved)
            values = [
                compute.on_host(live.advance(ahead[k], observed, place * size, (place + 1) * size))
                for place, k in enumerate(going.tolist())
            ]
            rang = self._rings(np.concatenate(values), position + 1 + np.arange(size), trial)
            if ear is not None and heard is not None:
                rang |= ear.watch(heard, choose(points, taken), np.repeat(going, size)).slot >= 0
            rang = rang.reshape(-1, size)
            found[going] = np.where(rang.any(1), position + 1 + rang.argmax(1), np.inf)
            going, position, size = going[~rang.any(1)], position + size, 2 * size
        return found

    def _observed(self, points: Points, own: Int64Array, *, moved: bool) -> list[Any]:
        """Points that are compared with all of the reference but those that they were made of."""
        met = None if self.places is None else own
        members = self.fitted.live.members
        return [
            member.observe(points, None if moved and isinstance(member, (FeatureLive, LandmarksLive)) else met)
            for member in members
        ]

    def _rings(self, values: Float64Array, rows: Int64Array, trial: int) -> Any:
        """Which tests ring, with the threshold of a run that has gone on for long: after so many rows, for each of some
        streams that differ in nothing else."""
        fitted = self.fitted
        time = fitted.rule.untested + len(fitted.calibration.thresholds) + np.tile(rows, len(values) // len(rows))
        return fitted.rule(values, np.array([1 + trial], np.uint64), np.zeros(1, np.int64), time).alarm
