"""How much is tried: decided by counting work, so that the same seed gives the same card on any machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._power.changes import Cells, Change
from tocsin._power.draws import Draws
from tocsin._power.stretches import Stretches
from tocsin._power.work import AGAIN, LEAST, TRIED, Costs, of_fit
from tocsin._state import Fitted
from tocsin._statistics.custom import CustomLive
from tocsin._statistics.mmd_callable import CallableLive

TRIALS, FEWEST_TRIALS, FEW = 40, 16, 16
"""Trials of each change; what they fall to before fewer columns are tried; and of what is tried again."""

FEWEST_OWN, KERNELS = 8, 4
"""What trials fall to where a function of the user's judges rows; and rows of kernels for each that a fit has."""

WINDOWS, OFTEN = 8, 8
"""Rows in which a change must be found: so many widest windows, or less where the expected run time over so many is."""

FEWEST_WINDOWS, MOST_OFTEN = 2, 4
"""The same, at least: then luck finds a fifth of all changes, and does not count."""

ROUNDS, LEAST_AGAIN, MOST_AGAIN = 2, 4, 12
"""What is not found is tried again so many times; so many changes of it, at least and at most, spread out over all."""

FIRST_TRIALS, FIRST_COLUMNS = 2, 6
"""By these it is seen how soon changes are found: what is found soon costs little."""

Stage = Stretches | Draws

T = TypeVar("T")


def horizon_wanted(widest: int, ert: float) -> int:
    """Rows in which a change must be found."""
    return int(max(min(FEWEST_WINDOWS * widest, ert / MOST_OFTEN), min(WINDOWS * widest, ert / OFTEN), 1))


@dataclass(frozen=True)
class Planned:
    """What is tried, and how often.

    columns: their places.  again: how many of the changes that are not found can be tried again.
    chosen: whether the user named the columns.
    by_user: whether rows are judged by a function of the user's, which may not be made for threads.
    """

    changes: list[Change]
    columns: list[int]
    trials: int
    again: int
    chosen: bool
    by_user: bool

    @classmethod
    def of(
        cls, fitted: Fitted[Calibration], stage: Stage, cells: Cells, wanted: Sequence[int] | None, share: float = 1.0
    ) -> Planned:
        """All columns and TRIALS trials if they are cheap; then fewer trials, then fewer columns, spread out.

        share: of the work.
        """
        by_user = any(isinstance(member, CallableLive | CustomLive) for member in fitted.live.members)
        chosen = wanted is not None
        if not stage.horizon:
            return cls([], [], 0, 0, chosen, by_user)
        columns = list(range(len(cells.names))) if wanted is None else list(wanted)
        each, shared = [len(list(cells.changes(j))) for j in columns], list(cells.of_all())
        count = sum(each) + len(shared)
        # A function of the user's is called once for a row, and nobody knows what else it costs.
        costs = Costs(stage.horizon, 0.0, 1.0) if by_user else Costs.of(fitted, stage.horizon)
        most = share * (_calls(fitted) if by_user else max(TRIED * of_fit(fitted), LEAST))
        rows = float(stage.horizon)
        if not by_user and most < TRIALS * costs.together(count, rows):
            rows = _rows_needed(stage, [list(cells.changes(j)) for j in spread_out(columns, FIRST_COLUMNS)] + [shared])
        fewest = FEWEST_OWN if by_user else FEWEST_TRIALS
        trials = int(np.clip(most / costs.together(count, rows), fewest, TRIALS))
        left = (most / trials - costs.together(len(shared), rows)) / (costs.together(1, rows) - costs.trial)
        some = max(int(left / max(float(np.mean(each)), 1.0)), 1) if columns else 0
        if some < len(columns) and not chosen:
            columns = spread_out(columns, some)
        changes = [change for j in columns for change in cells.changes(j)] + shared
        once = AGAIN / TRIED * most / (ROUNDS * min(trials, FEW)) - costs.trial
        again = int(np.clip(once / (costs.together(1, stage.horizon) - costs.trial), LEAST_AGAIN, MOST_AGAIN))
        return cls(changes, columns, trials, again if share == 1 else 0, chosen, by_user)

    @property
    def few(self) -> int:
        """Trials of what is tried again."""
        return min(self.trials, FEW)

    def workers(self, wanted: int | None) -> int | None:
        """Threads."""
        return 1 if self.by_user and wanted is None else wanted


def spread_out(all_of_them: list[T], count: int) -> list[T]:
    """So many of them, or all."""
    if len(all_of_them) <= count:
        return all_of_them
    return [all_of_them[k] for k in np.unique(np.linspace(0, len(all_of_them) - 1, count).round().astype(int)).tolist()]


def _rows_needed(stage: Stage, changes: Sequence[Sequence[Change]]) -> float:
    """Rows over which a change is followed until it is found, on average."""
    tried = [change for own in changes for change in own]
    if not tried:
        return float(stage.horizon)
    onsets = stage.onsets(FIRST_TRIALS).tolist()
    delays = [stage.delays(onset, trial, tried)[1:] for trial, onset in enumerate(onsets)]
    return float(np.minimum(delays, stage.horizon).mean())


def _calls(fitted: Fitted[Calibration]) -> float:
    """Rows that a user's function can be asked about: as often as the fit called it.

    (A kernel, which the fit called for all pairs of points, a little more often.)
    """
    calibration = fitted.calibration
    if any(isinstance(member, CallableLive) for member in fitted.live.members):
        return float(KERNELS * len(fitted.reference))
    return calibration.paths * (calibration.tests + fitted.widest)
