"""When the rows of a stream came: for the axes of its figures, in as many bins as its path."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._plots.envelope import Envelope


class Clock:
    """Times of rows, in order; of no use once one is missing or goes back."""

    def __init__(self, most: int) -> None:
        self.seconds = Envelope(most)
        self._last, self._goes = -np.inf, True

    def add(self, seconds: Float64Array) -> None:
        """Those of the rows that follow."""
        if not len(seconds):
            return
        forward = np.diff(seconds, prepend=self._last) >= 0
        self._goes = self._goes and bool(np.isfinite(seconds).all() and forward.all())
        self._last = float(seconds[-1])
        if self._goes:
            self.seconds.add(seconds)

    @property
    def goes(self) -> bool:
        """Whether every row has its time, and none goes back."""
        return self._goes and self.seconds.count > 0

    def at(self, row: float) -> float | None:
        """When a row came: to the bin, and in between evenly."""
        if not self.goes:
            return None
        each, low, high = self.seconds.each, self.seconds.low, self.seconds.high
        place = min(max(int((row - 1) // each), 0), len(low) - 1)
        rows = min(each, self.seconds.count - place * each)
        part = (row - 1 - place * each) / max(rows - 1, 1)
        return float(low[place] + min(max(part, 0.0), 1.0) * (high[place] - low[place]))


def clock_of(seconds: Float64Array) -> Clock:
    """Of some rows alone."""
    clock = Clock(max(len(seconds), 2))
    clock.add(seconds)
    return clock
