"""What a detector can see: which changes are tried, on how many trials, and what comes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tocsin._calibration.result import Calibration, aimed_at
from tocsin._common.errors import InputError, Option
from tocsin._common.wording import counted, rounded
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._execution.progress import Progress
from tocsin._execution.threads import Threads
from tocsin._power.changes import Cells, Change
from tocsin._power.draws import Draws
from tocsin._power.plan import FEWEST_WINDOWS, Planned, horizon_wanted
from tocsin._power.recorded import RecordedStretches
from tocsin._power.result import FOUND, Power, SimulatedChange
from tocsin._power.stretches import Stretches
from tocsin._state import Fitted
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.views import ViewsLive

LEVEL = 0.9
"""Of the interval for a delay."""

LESS, MOST_AGAIN = 5.0, 12
"""What is not found is tried again with so much less between false alarms; and so many changes, spread out over all."""

Stage = Stretches | Draws


def measure(
    fitted: Fitted[Calibration],
    places: Int64Array | None,
    workers: int | None,
    progress: Progress,
    columns: Sequence[str] | None = None,
    *,
    share: float = 1.0,
) -> Power:
    """The card of a detector.

    places: where each point of the reference is among those compared with; None where points may meet themselves.
    share: of the work that is usual; with less than all of it nothing is tried again to see what would help.
    """
    recorded = fitted.live.has_baselines
    cells = Cells(fitted.intake, fitted.reference, fitted.edges if recorded else None)
    stage = stage_of(fitted, places, cells)
    plan = Planned.of(fitted, stage.horizon, cells, _places_of(cells, columns), share)
    again = min(len(plan.changes), MOST_AGAIN) if share == 1 else 0
    trials = Trials(stage, plan, workers, progress, plan.trials * (1 + len(plan.changes)), again * plan.few)
    delays = trials(plan.changes, plan.trials)
    changes = tuple(
        summary(cells, change, own, delays[:, 0]) for change, own in zip(plan.changes, delays.T[1:], strict=True)
    )
    power = Power(
        changes=changes,
        ert=fitted.calibration.ert,
        horizon=stage.horizon,
        trials=plan.trials,
        chance=float(np.isfinite(delays[:, 0]).mean()) if plan.trials else 0.0,
        rows="recordings" if recorded else "stretches" if stage.ordered else "draws",
        columns=len(fitted.intake.names),
        tried=tuple(cells.names[j] for j in plan.columns),
        not_simulated=tuple(_not_simulated(fitted, stage, cells, plan)),
    )
    if not again:
        return power
    return replace(power, advice=tuple(_advice(fitted, places, cells, plan, changes, trials)))


def stage_of(fitted: Fitted[Calibration], places: Int64Array | None, cells: Cells) -> Stage:
    """Where trials take place."""
    wanted = horizon_wanted(fitted.widest, fitted.calibration.ert)
    live = fitted.live.members[0]
    if isinstance(live, ViewsLive):
        edges = np.array([0, len(fitted.reference)]) if fitted.edges is None else fitted.edges
        kind = RecordedStretches if live.has_baselines else Stretches
        return kind(live, fitted.reference, edges, cells, fitted.seed, wanted)
    return Draws(fitted, places, cells, fitted.seed, wanted)


def _places_of(cells: Cells, columns: Sequence[str] | None) -> list[int] | None:
    """Where columns are, by name."""
    if columns is None:
        return None
    given = [columns] if isinstance(columns, str) else list(columns)
    for name in given:
        if name not in cells.names:
            raise InputError(
                Option("columns", given), f" names {name!r}, and the reference has no such column to change."
            )
    return sorted({cells.names.index(name) for name in given})


@dataclass
class Trials:
    """Makes trials, on all workers, and reports how many of all changes are done."""

    stage: Stage
    plan: Planned
    workers: int | None
    progress: Progress
    total: int
    further: int
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
            self.progress(self.done, max(self.total + self.further, self.done))
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


def summary(cells: Cells, change: Change, delays: Float64Array, quiet: Float64Array) -> SimulatedChange:
    """What trials of a change say. quiet: when the same trials rang without it."""
    ordered = np.sort(delays)
    low, high = median_ranks(len(delays))
    return SimulatedChange(
        kind=change.kind,
        column=None if change.column is None else cells.names[change.column],
        size=change.size,
        amount=cells.amount(change),
        share=float(np.isfinite(delays).mean()),
        delay=typical(delays, quiet),
        low=float(ordered[low]),
        high=float(ordered[high]),
    )


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


def median_ranks(count: int) -> tuple[int, int]:
    """Places, in order, of the ends of an interval for the median that holds it with a probability of LEVEL or more.

    (With fewer than six it is all of them, and holds it less often.)

    >>> median_ranks(40)
    (14, 25)
    """
    tail, low = 0.0, 0
    while 2 * low < count:
        tail += math.comb(count, low) / 2**count
        if tail > (1 - LEVEL) / 2:
            break
        low += 1
    low = max(low - 1, 0)
    return low, count - 1 - low


def _not_simulated(fitted: Fitted[Calibration], stage: Stage, cells: Cells, plan: Planned) -> Iterator[str]:
    if not stage.horizon:
        yield (
            f"the reference has {counted(len(fitted.reference), 'row')} in order, and after those that the first "
            "trial would be judged by none are left"
        )
        return
    yield from cells.left_out()
    left = len(cells.names) - len(plan.columns)
    if left and not plan.chosen:
        yield f"changes of {counted(left, 'further column')}: those tried are spread out over all, and stand for them"


def _advice(
    fitted: Fitted[Calibration],
    places: Int64Array | None,
    cells: Cells,
    plan: Planned,
    changes: Sequence[SimulatedChange],
    trials: Trials,
) -> Iterator[str]:
    """What would find more, as far as that can be tried."""
    missed = [change for change, told in zip(plan.changes, changes, strict=True) if not told.found]
    shorter = fitted.calibration.ert / LESS
    if not missed or fitted.calibration.curve is None or shorter < FEWEST_WINDOWS * fitted.widest:
        return
    if len(missed) > MOST_AGAIN:
        missed = [missed[k] for k in np.linspace(0, len(missed) - 1, MOST_AGAIN).round().astype(int)]
    trials.further = (1 + len(missed)) * plan.few
    delays = trials(missed, plan.few, stage_of(at_run_time(fitted, shorter), places, cells))
    more = sum(math.isfinite(typical(own, delays[:, 0])) for own in delays.T[1:])
    if more:
        yield (
            f"an expected run time of {rounded(shorter)}, with {LESS:g} times as many false alarms, finds {more:,} of "
            f"{len(missed):,} changes tried that are not found now"
        )
