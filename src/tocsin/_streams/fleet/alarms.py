"""What a fleet tells of its alarms, and what it remembers of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tocsin._compute.arrays import Int64Array
from tocsin._explain.result import Explanation
from tocsin._state.outcomes import Outcome
from tocsin._statistics.base import Channel
from tocsin._streams.fleet.kinds import Windows
from tocsin._streams.fleet.states import ALARM, KeyStates

Record = tuple[int, int, int, int, float, float, int]
"""An alarm as a state holds it: the fields of `ALARM`."""


@dataclass(frozen=True, slots=True)
class FleetAlarm:
    """A key rang.

    order: of the observation that rang.  count: observations of this key so far, that one included: (key, count) names
        an alarm, however often it is told.
    run, time, statistic, threshold, rarity, channel: as in `Outcome`; run counts from 0.
    explanation: if it was asked for. An alarm that is told again has none.
    """

    key: str
    order: int
    count: int
    run: int
    time: int
    statistic: float
    threshold: float
    rarity: float
    channel: Channel
    explanation: Explanation | None = None


class Alarms:
    """Alarms of a batch, as they come, and as they are remembered.

    taken: places in the batch of the rows that are taken in.
    """

    def __init__(
        self,
        windows: Windows,
        kept: KeyStates,
        keys: Sequence[str],
        owner: Int64Array,
        order: Int64Array,
        taken: Int64Array,
        *,
        explain: bool,
    ) -> None:
        self._windows, self._kept, self._keys, self._explain = windows, kept, keys, explain
        self._owner, self._order, self._taken = owner, order, taken
        self.alarms: list[FleetAlarm] = []
        self._own: dict[int, list[Record]] = {}

    def tell_again(self, rows: Int64Array) -> None:
        """Those that rows have raised before, as far as they are remembered: in the key's last batch."""
        for k in np.unique(self._owner[rows]).tolist():
            told = self._kept.alarms.get(k, np.empty(0, ALARM))
            again = told[np.isin(told["order"], self._order[rows[self._owner[rows] == k]])]
            self._own[k] = again.tolist()
            self.alarms += [self._alarm(k, record, explain=False) for record in self._own[k]]

    def rang(self, k: int, row: int, outcome: Outcome) -> None:
        """A key rings with a row, the last in its window; `row` counts those that are taken in."""
        kept, order, spoke = self._kept, int(self._order[self._taken[row]]), outcome.channel
        assert spoke is not None
        place = order, int(kept.count[k]), int(kept.run[k]), outcome.time
        record = *place, outcome.statistic, outcome.threshold, self._windows.fitted.channels.index(spoke)
        self._own.setdefault(k, []).append(record)
        self.alarms.append(self._alarm(k, record, explain=self._explain))

    def _alarm(self, k: int, record: Record, *, explain: bool) -> FleetAlarm:
        order, count, run, time, statistic, threshold, channel = record
        curve = self._windows.fitted.calibration.curve
        rarity = curve.rarity(statistic) if curve else math.nan
        spoke = self._windows.fitted.channels[channel]
        outcome = Outcome(time, True, statistic, threshold, rarity, spoke)
        explanation = self._windows.explain(self._kept, k, outcome) if explain else None
        return FleetAlarm(self._keys[k], order, count, run, time, statistic, threshold, rarity, spoke, explanation)

    def remember(self) -> None:
        """In the states of keys that have taken rows in."""
        for k in np.unique(self._owner[self._taken]).tolist():
            self._kept.alarms.pop(k, None)
            if self._own.get(k):
                self._kept.alarms[k] = np.array(self._own[k], ALARM)
