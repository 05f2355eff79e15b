"""The streams of many that are heard by views, all of them a step at a time."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array
from tocsin._execution.threads import Threads
from tocsin._statistics.base import Parts, Points, WindowState
from tocsin._statistics.own_levels import left
from tocsin._statistics.view_streams import FOLLOWS, NO_CHANNELS, Loudest, silenced, summed, watch
from tocsin._statistics.views import ViewsLive

STREAMS = 256
"""Streams that one piece of work steps on a CPU."""


class ViewsBank:
    """What `ViewsLive` keeps of a stream, for each of many; on a GPU, if they are stepped there."""

    def __init__(self, live: ViewsLive, count: int) -> None:
        self.live, self.count = live, count
        self.compute = live.compute.nearby if live.has_baselines else live.compute.stepping
        put, self.takes_tensors = self.compute.put, self.compute.on_gpu
        self._ear = live.ear.put(self.compute)
        self._state: WindowState = {name: put(np.repeat(part, count, axis=0)) for name, part in live.begin(0).items()}
        # Of each step, what need not be put there again.
        self._first, self._last, self._nothing = put(np.arange(count)), put(np.arange(count) + 1), put(NO_CHANNELS)
        self._found = Loudest.of(count).put(self.compute)
        self._executor = Threads(1 if self.takes_tensors else None)

    def step(self, chosen: Int64Array, points: Points) -> tuple[Float64Array, Int64Array]:
        """Let one point enter each of these streams: how loud the loudest channel is, (n, 1), and which that is."""
        count, compute = len(chosen), self.compute
        size = max(count, 1) if compute.on_gpu else STREAMS
        points = compute.put(np.ascontiguousarray(points) if isinstance(points, np.ndarray) else points)
        streams = compute.put(chosen)

        def some(start: int) -> None:
            piece = slice(start, min(start + size, count))
            if self.live.has_baselines:
                self.live.watch(
                    self._state, points, streams, self._first[:count], self._last[:count], piece, self._found
                )
                return
            watch(
                compute, self._ear, self._state, points, streams, self._first, self._last, piece, self._found,
                self._nothing,
            )  # fmt: skip

        starts = range(0, count, size)
        list(self._executor.map(some, starts) if len(starts) > 1 else map(some, starts))
        best, which = self._found
        return np.array(compute.get(best[:count, None])), np.array(compute.get(which[:count]))

    def learning(self, chosen: Int64Array) -> BoolArray | None:
        if not self.live.has_baselines:
            return None
        waits: BoolArray = left(self._state, chosen) > 0
        return waits if waits.any() else None

    def clear(self, chosen: Int64Array) -> None:
        """Let these streams begin after the reference."""
        for name, part in self.live.begin(0).items():
            self._state[name][chosen] = self.compute.put(part)

    def renew(self, chosen: Int64Array) -> bool:
        """Let these streams begin new runs, and go on with what they have heard."""
        if len(chosen):
            silenced(self._state, chosen, self.live.model.spans.widest)
        return True

    def recent(self, stream: int) -> Float64Array:
        """The latest points of a stream, oldest first, as far as the digits that are kept tell."""
        (state,) = self.heard(stream)
        return self.live.points_of(state, 0)

    def heard(self, stream: int) -> list[WindowState]:
        """What a detector alone would keep of it."""
        return [{name: np.array(self.compute.get(part[stream : stream + 1])) for name, part in self._state.items()}]

    def state(self) -> Parts:
        """What steps change."""
        return {name: self.compute.get(part) for name, part in self._state.items() if name != FOLLOWS}

    def resume(self, state: Parts) -> None:
        """Go on from what `state` gave."""
        sums = summed(state, self.live.ear, self.live.model.spans, self.live.compute)
        self._state = {name: self.compute.put(part) for name, part in {**state, "sums": sums}.items()}
