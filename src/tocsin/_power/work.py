"""What trials cost, and what a fit did: about as many nanoseconds, reckoned from what there is to do and never clocked,
so that the same seed gives the same card on any machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tocsin._calibration.result import Calibration
from tocsin._state import Fitted
from tocsin._statistics.features import FeatureLive
from tocsin._statistics.lsdd import Bumps
from tocsin._statistics.mmd_gaussian import GaussianLive
from tocsin._statistics.view_streams import Places
from tocsin._statistics.views import ViewsLive

STEP, SETTLE = 140.0, 2.5e6
"""Of a fit to drawn rows: a step of a null stream; and what is done once, for each row of the widest window."""

REHEARSED, BEGUN = 130.0, 4e7
"""Of a rehearsal: a number of a world or of the stream that follows it; and what is done in any case."""

LEAST = 5e7
"""What a card may cost where a fit is over at once."""

TRIED, AGAIN = 0.55, 0.15
"""What a card takes, as parts of its fit: the changes, and what would help."""

CHANGE = 3e4
"""To make a change of rows, and to begin to follow it."""

PAIR, WIDTH, HELD = 0.009, 20.0, 0.75
"""Of a row: a kernel, for each number of a point, and for each width as for so many; and each number of a window."""

BUMP, FEATURE, SOME = 200.0, 5.0, 500.0
"""The same: a bump of LSDD; any other feature; and what else there is."""

VIEW, DIRECTION, LED = 600.0, 40.0, 70.0
"""Of a row that is heard by views: one column; each of many directions; and each number of the rows before."""


@dataclass(frozen=True)
class Costs:
    """Of a trial to begin, of a change in it, and of a row with that change."""

    trial: float
    change: float
    row: float

    @classmethod
    def of(cls, fitted: Fitted[Calibration], horizon: int) -> Costs:
        """Where a trial has so many rows."""
        members: list[Any] = fitted.live.members
        if isinstance(members[0], ViewsLive):
            return cls._of_views(members[0], len(fitted.reference), horizon)
        row = SOME + sum(_row(member, fitted.widest) for member in members)
        return cls(2e5 + row * (fitted.widest + horizon), CHANGE, row)

    @classmethod
    def _of_views(cls, live: ViewsLive, count: int, horizon: int) -> Costs:
        model = live.model
        before = 2 * live.pace.memory + Places.of(model.spans).coarse
        trial = 2e5 + LED * model.width * (min(before, count) + horizon)
        return cls(trial, CHANGE, VIEW + DIRECTION * model.width * bool(model.axes.size))

    def together(self, changes: int, rows: float) -> float:
        """A trial of so many changes, each followed over so many rows."""
        return self.trial + changes * (self.change + rows * self.row)


def _row(member: Any, widest: int) -> float:
    if isinstance(member, GaussianLive):
        compared, size = len(member.points) + widest, int(member.points.shape[1])
        return PAIR * compared * (size + WIDTH * len(member.multipliers)) + HELD * widest * size
    if isinstance(member, FeatureLive):
        return (BUMP if isinstance(member.features, Bumps) else FEATURE) * len(member.centre)
    return 4 * SOME


def of_fit(fitted: Fitted[Calibration]) -> float:
    """At least."""
    calibration, first = fitted.calibration, fitted.live.members[0]
    if isinstance(first, ViewsLive):
        rows = calibration.tests + len(fitted.reference)
        return BEGUN + REHEARSED * calibration.paths * rows * first.model.width
    return STEP * calibration.paths * (calibration.tests + fitted.widest) + SETTLE * fitted.widest
