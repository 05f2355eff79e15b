"""Which observations of a stream were judged: a run counts these alone, and a stream counts all."""

from __future__ import annotations

from collections import deque

import numpy as np

from tocsin._compute.arrays import BoolArray


class Judged:
    """The numbers of the latest observations that were judged, of those that a run may remember.

    >>> judged = Judged(3)
    >>> judged.add(1, 4, np.array([False, True, False, False]))
    >>> list(judged.rows)
    [1, 3, 4]
    """

    def __init__(self, most: int) -> None:
        self.rows: deque[int] = deque(maxlen=most)

    def add(self, first: int, count: int, unseen: BoolArray | None) -> None:
        """Observations that follow, the number of the first, and which of them were left out."""
        places = np.arange(first, first + count)
        self.rows.extend((places if unseen is None else places[~unseen])[-(self.rows.maxlen or 0) :].tolist())
