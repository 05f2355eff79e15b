"""Rows go through the windows of their keys: up to the next alarm of each, and on from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array
from tocsin._state.outcomes import Outcome
from tocsin._statistics.mmd_bank import Observed
from tocsin._streams.fleet.states import KeyStates
from tocsin._streams.fleet.windows import Windows

SHORTEST_PIECE = 32
"""Observations tested at once after an alarm; twice as many each time, since what follows an alarm is tested again."""

Rang = Callable[[int, int, Outcome], None]
"""(key, row, outcome), called when the row has just entered the key's window."""


@dataclass(eq=False)
class Batch:
    """Rows that are taken in, sorted by key.

    resets: whether a run begins with the row.  rest: observations after an alarm that are left alone; negative for all.
    """

    windows: Windows
    kept: KeyStates
    owner: Int64Array
    resets: BoolArray
    rest: int
    rang: Rang

    def run(self, points: Float64Array) -> None:
        """Take all rows in."""
        kept, observed = self.kept, self.windows.observe(points)
        keys, first, rows = np.unique(self.owner, return_index=True, return_counts=True)
        end = first + rows
        size, ahead = rows.copy(), self.resets.copy()
        resets = np.append(np.flatnonzero(self.resets), len(self.owner))
        while len(keys):
            now = ahead[first]
            ahead[first] = False
            self._begin(keys[now])
            # Up to the next reset: what follows it belongs to another run.
            stop = np.minimum(np.minimum(first + size, end), resets[np.searchsorted(resets, first, side="right")])
            awake = kept.resting[keys] == 0
            stop[~awake] = self._sleep(keys[~awake], first[~awake], stop[~awake])
            stop[awake], rang = self._watch(keys[awake], observed, first[awake], stop[awake])
            size = np.where(np.isin(keys, rang), SHORTEST_PIECE, 2 * size)
            left = stop < end
            keys, first, end, size = keys[left], stop[left], end[left], size[left]

    def _begin(self, keys: Int64Array) -> None:
        """New runs."""
        self.kept.run[keys] += 1
        self.windows.begin(self.kept, keys)

    def _sleep(self, keys: Int64Array, first: Int64Array, stop: Int64Array) -> Int64Array:
        """Leave observations alone; where that ends."""
        resting = self.kept.resting[keys]
        slept = np.where(resting < 0, stop - first, np.minimum(resting, stop - first))
        self.kept.resting[keys] = np.where(resting < 0, resting, resting - slept)
        self.kept.count[keys] += slept
        self._begin(keys[resting == slept])
        return first + slept

    def _watch(
        self, keys: Int64Array, observed: Observed, first: Int64Array, stop: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Test observations up to the first alarm of each key; where that is, and which keys rang."""
        if not len(keys):
            return stop, keys
        kept, sizes = self.kept, stop - first
        observed = self.windows.lacking(kept, keys, observed, first, stop)
        outcomes = self.windows.outcomes(kept, keys, observed, first, stop)
        begins = np.cumsum(sizes) - sizes
        loud = np.flatnonzero(outcomes.alarm)
        which, places = np.unique(np.searchsorted(begins, loud, side="right") - 1, return_index=True)
        loud = loud[places]
        stop = stop.copy()
        stop[which] = first[which] + loud - begins[which] + 1
        self.windows.take(kept, keys, observed, first, stop)
        kept.time[keys] += stop - first
        kept.count[keys] += stop - first
        for k, row, i in zip(keys[which].tolist(), (stop[which] - 1).tolist(), loud.tolist(), strict=True):
            self.rang(k, row, outcomes[i])
        if self.rest:
            kept.resting[keys[which]] = self.rest
        else:
            self._begin(keys[which])
        return stop, keys[which]
