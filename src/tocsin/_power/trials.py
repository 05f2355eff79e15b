"""Trials of changes: where they take place, on all workers, and when what they tell counts as found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tocsin._calibration.result import Calibration, aimed_at
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._execution.progress import Progress
from tocsin._execution.threads import Threads
from tocsin._power.changes import Cells, Change
from tocsin._power.draws import Draws
from tocsin._power.plan import Planned, Stage, horizon_wanted
from tocsin._power.recorded import RecordedStretches
from tocsin._power.result import FOUND
from tocsin._power.stretches import Stretches
from tocsin._state import Fitted
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.views import ViewsLive


def stage_of(fitted: Fitted[Calibration], places: Int64Array | None, cells: Cells) -> Stage:
    """Where trials take place."""
    wanted = horizon_wanted(fitted.widest, fitted.calibration.ert)
    live = fitted.live.members[0]
    if isinstance(live, ViewsLive):
        edges = np.array([0, len(fitted.reference)]) if fitted.edges is None else fitted.edges
        kind = RecordedStretches if live.has_baselines else Stretches
        return kind(live, fitted.reference, edges, cells, fitted.seed, wanted, fitted.ear)
    return Draws(fitted, places, cells, fitted.seed, wanted)


@dataclass
class Trials:
    """Makes trials, on all workers, and reports how many of all changes are done."""

    stage: Stage
    plan: Planned
    workers: int | None
    progress: Progress
    total: int
    done: int = 0

    def __call__(self, changes: Sequence[Change], count: int, stage: Stage | None = None) -> Float64Array:
        """Delays without a change and with each, (trials, 1 + changes)."""
        stage = self.stage if stage is None else stage
        delays = np.empty((count, 1 + len(changes)))
        onsets = stage.onsets(count) if count else np.empty(0, np.int64)
        numbered = list(enumerate(onsets.tolist()))
        found = Threads(self.plan.workers(self.workers)).map(
            lambda each: stage.delays(each[1], each[0], changes), numbered
        )
        for trial, own in enumerate(found):
            delays[trial] = own
            self.done += 1 + len(changes)
            self.progress(self.done, max(self.total, self.done))
        return delays


def at_run_time(fitted: Fitted[Calibration], ert: float) -> Fitted[Calibration]:
    """The same detector with thresholds for another expected run time, read off its curve of rarities."""
    before = fitted.calibration
    calibration = replace(aimed_at(before, before.nominal * ert / before.ert), ert=ert)
    members = [
        replace(member, level=calibration.threshold) if isinstance(member, ViewsLive) else member
        for member in fitted.live.members
    ]
    return replace(fitted, live=LiveFamily(members), calibration=calibration)


def typical(delays: Float64Array, quiet: Float64Array) -> float:
    """When half of the trials have rung of those that would not have anyway; infinite if so many never do.

    >>> typical(np.array([3.0, 5.0, 7.0, np.inf]), np.full(4, np.inf))
    5.0
    >>> typical(np.array([3.0, 5.0, 7.0, np.inf]), np.array([4.0, np.inf, np.inf, np.inf]))
    7.0
    """
    for delay in np.sort(delays).tolist():
        luck = (quiet <= delay).mean()
        if delay < np.inf and (delays <= delay).mean() >= FOUND + (1 - FOUND) * luck:
            return float(delay)
    return math.inf
