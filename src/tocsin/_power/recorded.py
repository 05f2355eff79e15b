"""Trials on recordings that have levels of their own: each is met as a new stream, by a detector that knows the others.

A change begins in a row of a recording after its baseline. The detector takes the recording from its first row on, so
that what a baseline is off by, and what it costs, is in the trial; and the means that channels are measured from are
those of all other recordings. Units and threshold rest on all of the reference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._power.stretches import Stretches
from tocsin._statistics.base import WindowState
from tocsin._statistics.own_levels import long_enough, sounds
from tocsin._statistics.views import ViewsLive


@dataclass(frozen=True, eq=False)
class RecordedStretches(Stretches):
    """Where changes can begin in recordings, and how the detector is there."""

    @cached_property
    def room(self) -> Int64Array:
        """Of rows that come after a baseline, how many follow in their recording; 0 of others."""
        room = np.zeros(len(self.points), np.int64)
        for start, stop in self._recordings:
            first = start + self.live.model.spans.own
            room[first:stop] = np.arange(stop - first, 0, -1)
        return room

    @cached_property
    def _recordings(self) -> list[tuple[int, int]]:
        return long_enough(self.edges, self.live.model.spans)

    @cached_property
    def _heard(self) -> dict[int, tuple[Float64Array, int]]:
        """Sums of the channels of each recording, by its beginning, and the rows in them."""
        live, found = self.live, dict[int, tuple[Float64Array, int]]()
        assert live.own is not None
        for start, stop in self._recordings:
            rows = live.model.rows(self.points[start:stop], live.compute)
            after = sounds(live.own, live.model, rows, live.compute).after[live.model.spans.widest :]
            found[start] = after.sum(0), len(after)
        return found

    def state(self, onset: int, trial: int) -> tuple[ViewsLive, WindowState]:
        """The detector, and its windows, after the rows of the recording before this one."""
        start = self.group_of(onset)
        others = [own for begins, own in self._heard.items() if begins != start]
        total = np.sum([own for own, _ in others], axis=0)
        live = replace(self.live, middle=total / sum(rows for _, rows in others))
        state = live.begin(0)
        live.advance(state, self.points[start:onset], 0, onset - start)
        state["clock"][0, 0] = 0
        return live, state

    def elsewhere(self, onset: int, rng: np.random.Generator) -> Float64Array:
        """As many rows of the same recording from another time, apart from these if that can be."""
        start = self.group_of(onset)
        stop = int(self.edges[np.searchsorted(self.edges, onset, side="right")])
        possible = np.arange(start, stop - self.horizon + 1)
        apart = possible[np.abs(possible - onset) >= self.horizon]
        first = int(rng.choice(apart if len(apart) else possible))
        return self.points[first : first + self.horizon]
