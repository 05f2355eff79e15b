"""What a detector can see: which changes are tried, on how many trials, and what comes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._common.errors import InputError, Option
from tocsin._common.wording import counted
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._execution.progress import Progress
from tocsin._power.changes import Cells, Change
from tocsin._power.help import Help
from tocsin._power.plan import Planned, Stage, spread_out
from tocsin._power.result import Power, SimulatedChange
from tocsin._power.trials import Trials, stage_of, typical
from tocsin._state import Fitted

LEVEL = 0.9
"""Of the interval for a delay."""


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
    plan = Planned.of(fitted, stage, cells, _places_of(cells, columns), share)
    trials = Trials(stage, plan, workers, progress, plan.trials * (1 + len(plan.changes)))
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
    missed = [change for change, told in zip(plan.changes, changes, strict=True) if not told.found]
    if not missed or not plan.again:
        return power
    helped = Help(fitted, places, cells, trials)
    remedies = helped.remedies(spread_out(missed, plan.again))
    return replace(power, would_help=remedies, advice=tuple(helped.advice(remedies, len(missed))))


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
