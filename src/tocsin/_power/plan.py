"""How much is tried: decided by counting work, so that the same seed gives the same card on any machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._power.changes import Cells, Change
from tocsin._state import Fitted
from tocsin._statistics.custom import CustomLive
from tocsin._statistics.mmd_callable import CallableLive
from tocsin._statistics.mmd_gaussian import GaussianLive
from tocsin._statistics.views import ViewsLive

TRIALS, FEWEST_TRIALS, FEW = 40, 16, 12
"""Trials of each change; what they fall to before fewer columns are tried; and of what is tried again."""

FEWEST_OWN, KERNELS = 8, 4
"""What trials fall to where a function of the user's judges rows; and rows of kernels for each that a fit has."""

WINDOWS, OFTEN = 8, 8
"""Rows in which a change must be found: so many widest windows, or less where the expected run time over so many is."""

FEWEST_WINDOWS, MOST_OFTEN = 2, 4
"""The same, at least: then luck finds a fifth of all changes, and does not count."""

WORK = 0.9e9
"""Numbers that are looked at, about: a second or less."""

SHORT, MOST_LONGER = 1000.0, 4.0
"""The expected run time from which on fits to drawn rows take longer, and how much longer a card may take then."""

PAIR, ROW, OVERHEAD = 160.0, 100.0, 600.0
"""Work of a row, by what compiled code does at once: of kernels, so many for one; of each feature; and beside both."""


def horizon_wanted(widest: int, ert: float) -> int:
    """Rows in which a change must be found."""
    return int(max(min(FEWEST_WINDOWS * widest, ert / MOST_OFTEN), min(WINDOWS * widest, ert / OFTEN), 1))


@dataclass(frozen=True)
class Planned:
    """What is tried, and how often.

    columns: their places.  chosen: whether the user named them.  by_user: whether rows are judged by a function of the
    user's, which may not be made for threads.
    """

    changes: list[Change]
    columns: list[int]
    trials: int
    chosen: bool
    by_user: bool

    @classmethod
    def of(
        cls, fitted: Fitted[Calibration], horizon: int, cells: Cells, wanted: Sequence[int] | None, share: float = 1.0
    ) -> Planned:
        """All columns and TRIALS trials if they are cheap; then fewer trials, then fewer columns, spread out.

        share: of the work.
        """
        by_user = any(isinstance(member, CallableLive | CustomLive) for member in fitted.live.members)
        chosen = wanted is not None
        if not horizon:
            return cls([], [], 0, chosen, by_user)
        columns = list(range(len(cells.names))) if wanted is None else list(wanted)
        rows, shared = share * _affordable(fitted, by_user) / horizon, len(list(cells.of_all()))
        each = [len(list(cells.changes(j))) for j in columns]
        fewest = FEWEST_OWN if by_user else FEWEST_TRIALS
        trials = int(np.clip(rows / (sum(each) + shared + 1), fewest, TRIALS))
        some = max(int((rows / trials - shared - 1) / max(float(np.mean(each)), 1.0)), 1) if columns else 0
        if some < len(columns) and not chosen:
            columns = np.unique(np.linspace(0, len(columns) - 1, some).round().astype(int)).tolist()
        changes = [change for j in columns for change in cells.changes(j)]
        return cls([*changes, *cells.of_all()], columns, trials, chosen, by_user)

    @property
    def few(self) -> int:
        """Trials of what is tried again."""
        return min(self.trials, FEW)

    def workers(self, wanted: int | None) -> int | None:
        """Threads."""
        return 1 if self.by_user and wanted is None else wanted


def _affordable(fitted: Fitted[Calibration], by_user: bool) -> float:
    """Rows that can be tested in about the time of a fit; by a user's function, as often as the fit called it.

    (Of a kernel, which the fit called for all pairs of points, a little more often.)
    """
    calibration = fitted.calibration
    if any(isinstance(member, CallableLive) for member in fitted.live.members):
        return float(KERNELS * len(fitted.reference))
    if by_user:
        return calibration.paths * (calibration.tests + fitted.widest)
    longer = 1.0 if calibration.rehearsal is not None else float(np.clip(calibration.ert / SHORT, 1.0, MOST_LONGER))
    return WORK * longer / _cost_of_row(fitted)


def _cost_of_row(fitted: Fitted[Calibration]) -> float:
    cost = OVERHEAD
    for member in fitted.live.members:
        if isinstance(member, ViewsLive):
            spans, width = member.model.spans, member.model.width
            cost += 1500 + 2 * (spans.base + 10 * spans.widest) * (width if member.model.axes.size else 1)
        elif isinstance(member, GaussianLive):
            compared, widths = len(member.points) + fitted.widest, len(member.multipliers)
            cost += compared * (member.points.shape[1] + 20 * widths) / PAIR
        else:
            cost += ROW * (len(member.channels) + fitted.reference.shape[1])
    return cost
