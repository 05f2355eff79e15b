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
from tocsin._power.changes import Cells, Change, Scene
from tocsin._samplers import InBlocks, Singly, Source
from tocsin._state import Fitted
from tocsin._statistics.base import Points, WindowState, choose, snapshot
from tocsin._statistics.features import FeatureLive
from tocsin._statistics.landmarks import LandmarksLive

PIECE = 16
"""Rows of a trial that are tested at once at first; twice as many each time, since most trials ring soon."""

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
        rng = generator(self.seed, Purpose.POWER, 1 + trial)
        drawn, state = self._begun(rng, trial)
        after = drawn[self.fitted.widest :]
        reference = self.fitted.reference
        elsewhere = rng.integers(0, len(reference), len(after))
        width = reference.shape[1] if isinstance(reference, np.ndarray) else 0
        scene = Scene(
            before=choose(reference, drawn[: self.fitted.widest]),
            after=choose(reference, after),
            elsewhere=choose(reference, elsewhere),
            dice=rng.random(len(after)),
            signs=rng.choice([-1.0, 1.0], width),
            ordered=False,
        )
        own = None if self.places is None else self.places[after]
        found = [self._delay(state, scene.after, own, trial, moved=False)]
        for change in changes:
            places = own
            if self.places is not None and change.kind == "stuck" and change.column is None:
                places = np.repeat(self.places[drawn[self.fitted.widest - 1]], len(after))
            found.append(self._delay(state, self.cells.changed(change, scene), places, trial, moved=True))
        return np.array(found)

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
            if not self._rings(values[-1:], 0, trial).any():
                break
        return drawn, state

    def _delay(
        self, state: list[WindowState], points: Points, own: Int64Array | None, trial: int, *, moved: bool
    ) -> float:
        fitted, position, size, ear = self.fitted, 0, PIECE, self.fitted.ear
        ahead, heard = [snapshot(each) for each in state], None if ear is None else ear.begun()
        while position < len(points):
            piece = points[position : position + size]
            places = None if own is None else own[position : position + size]
            observed = self._observed(piece, places, moved=moved)
            values = fitted.live.advance(ahead, observed, 0, len(piece))
            rang = self._rings(compute.on_host(values), position + 1, trial)
            if ear is not None and heard is not None:
                rang |= ear.watch(heard, piece).slot >= 0
            if rang.any():
                return float(position + rang.argmax() + 1)
            position, size = position + len(piece), 2 * size
        return np.inf

    def _observed(self, points: Points, own: Int64Array | None, *, moved: bool) -> list[Any]:
        """Points that are compared with all of the reference but those that they were made of."""
        members = self.fitted.live.members
        return [
            member.observe(points, None if moved and isinstance(member, (FeatureLive, LandmarksLive)) else own)
            for member in members
        ]

    def _rings(self, values: Float64Array, since: int, trial: int) -> Any:
        """Which tests ring, with the threshold of a run that has gone on for long."""
        fitted = self.fitted
        time = fitted.rule.untested + len(fitted.calibration.thresholds) + since + np.arange(len(values))
        return fitted.rule(values, np.array([1 + trial], np.uint64), np.zeros(1, np.int64), time).alarm
