"""The streams of many that are heard by views, all of them a step at a time."""

from __future__ import annotations

import numpy as np

from tocsin._compute import Functions
from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array
from tocsin._execution.threads import Threads
from tocsin._statistics.base import Parts, WindowState
from tocsin._statistics.own_levels import left
from tocsin._statistics.view_streams import FOLLOWS, Loudest, silenced, summed
from tocsin._statistics.views import ViewsLive

STREAMS = 256
"""Streams that one piece of work steps."""


class ViewsBank:
    """What `ViewsLive` keeps of a stream, for each of many."""

    def __init__(self, live: ViewsLive, count: int) -> None:
        self.live, self.count = live, count
        self._state: WindowState = {name: np.repeat(part, count, axis=0) for name, part in live.begin(0).items()}
        self._executor = Threads()

    def step(self, chosen: Int64Array, points: Float64Array) -> tuple[Float64Array, Int64Array]:
        """Let one point enter each of these streams: how loud the loudest channel is, (n, 1), and which that is."""
        count, points = len(chosen), np.ascontiguousarray(points)
        found, first = Loudest.of(count), np.arange(count)
        last = first + 1

        def some(start: int) -> None:
            piece = slice(start, min(start + STREAMS, count))
            self.live.watch(self._state, points, chosen, first, last, piece, found)

        starts = range(0, count, STREAMS)
        list(self._executor.map(some, starts) if len(starts) > 1 else map(some, starts))
        return found.best[:, None], found.which

    def learning(self, chosen: Int64Array) -> BoolArray | None:
        if not self.live.has_baselines:
            return None
        waits: BoolArray = left(self._state, chosen) > 0
        return waits if waits.any() else None

    def clear(self, chosen: Int64Array) -> None:
        """Let these streams begin after the reference."""
        for name, part in self.live.begin(0).items():
            self._state[name][chosen] = part

    def renew(self, chosen: Int64Array) -> bool:
        """Let these streams begin new runs, and go on with what they have heard."""
        silenced(self._state, chosen, self.live.model.spans.widest)
        return True

    @property
    def compute(self) -> Functions:
        """Where steps are made: never on a GPU."""
        return self.live.compute.nearby

    def recent(self, stream: int) -> Float64Array:
        """The latest points of a stream, oldest first, as far as the digits that are kept tell."""
        return self.live.points_of(self._state, stream)

    def heard(self, stream: int) -> list[WindowState]:
        """What a detector alone would keep of it."""
        return [{name: part[stream : stream + 1].copy() for name, part in self._state.items()}]

    def state(self) -> Parts:
        """What steps change."""
        return {name: part for name, part in self._state.items() if name != FOLLOWS}

    def resume(self, state: Parts) -> None:
        """Go on from what `state` gave."""
        self._state = dict(state)
        self._state["sums"] = summed(self._state, self.live.ear, self.live.model.spans, self.live.compute)
