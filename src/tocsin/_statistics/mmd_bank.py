"""The windows of many streams that are compared with one reference, all of them a step at a time."""

from __future__ import annotations

import numpy as np

from tocsin._compute import Functions
from tocsin._compute.arrays import Array, Float32Array, Float64Array, Int64Array
from tocsin._statistics.base import Parts, Points, WindowState
from tocsin._statistics.mmd_gaussian import PADDING, GaussianLive

ARRAYS = ("buffer", "ahead", "linear", "position", "filled")

STREAMS = 256
"""Streams that one piece of work steps."""

Observed = tuple[Float32Array, Float64Array]
"""Points as the statistic sees them, (d, n), and their -2 c(x), (widths, n)."""


def room_for(window: int) -> int:
    """Places in a row that holds a window: whole strips of them."""
    return -(-window // PADDING) * PADDING


class GaussianBank:
    """A ring of recent points for every stream; see `numpy_.pair_bank_step`."""

    def __init__(self, live: GaussianLive, count: int) -> None:
        self.live, self.count = live, count
        put = live.compute.put
        self._windows, self._offset = put(live.windows), put(live.offset)
        d, widest, widths = live.points.shape[1], int(live.windows[-1]), len(live.multipliers)
        self._arrays: tuple[Array, Array, Array, Array, Array] = (
            put(np.zeros((count, d, room_for(widest)), np.float32)),
            put(np.zeros((count, widths, widest), np.float32)),
            put(np.zeros((count, widths, widest))),
            put(np.zeros(count, np.int64)),
            put(np.zeros(count, np.int64)),
        )

    def step(self, chosen: Int64Array, points: Points) -> tuple[Array, None]:
        """Let one point enter the windows of each of these streams; (len(chosen), channels), NaN until one is full."""
        if not len(chosen):
            return np.empty((0, len(self.live.channels))), None
        return self.enter(chosen, self.live.observe(points, None)), None

    def enter(self, chosen: Int64Array, observed: Observed) -> Array:
        """The same with points that have been observed, and for some streams at least."""
        live, size = self.live, len(chosen) if self.live.compute.backend == "torch" else STREAMS

        def some(start: int) -> Float64Array:
            return live.compute.pair_bank_step(
                *self._arrays, self._windows, live.multipliers, self._offset, live.family.typical,
                live.family.places, live.family.signs, chosen, start, min(start + size, len(chosen)), *observed,
            )  # fmt: skip

        starts = range(0, len(chosen), size)
        return some(0) if len(starts) == 1 else live.compute.concatenate(list(live.executor.map(some, starts)))

    def fill(self, chosen: Int64Array, block: Float32Array, linear: Float64Array) -> Array:
        """Begin these streams with full windows, (d, n, W) and (widths, n, W); the channels of the last step."""
        self.clear(chosen)
        for step in range(block.shape[2]):
            rows = self.enter(
                chosen, (np.ascontiguousarray(block[:, :, step]), np.ascontiguousarray(linear[:, :, step]))
            )
        return rows

    def learning(self, chosen: Int64Array) -> None:
        """None: points are compared as they are."""

    def clear(self, chosen: Int64Array) -> None:
        """Forget all points of these streams."""
        for counter in self._arrays[3:]:
            counter[chosen] = 0

    def renew(self, chosen: Int64Array) -> bool:
        """Not so: runs begin anew."""
        return False

    @property
    def compute(self) -> Functions:
        """Where steps are made."""
        return self.live.compute

    @property
    def takes_tensors(self) -> bool:
        """Whether points that are on a GPU are compared there."""
        return self.live.takes_tensors

    def copy(self, chosen: Int64Array, other: GaussianBank, streams: Int64Array) -> None:
        """Let these streams have the windows of those of another bank."""
        for mine, its in zip(self._arrays, other._arrays, strict=True):
            mine[chosen] = its[streams]

    def recent(self, stream: int) -> Float64Array:
        """The points in a stream's window, oldest first, as far as float32 tells them."""
        get, widest = self.live.compute.get, int(self.live.windows[-1])
        buffer, position, filled = (get(self._arrays[i][stream : stream + 1])[0] for i in (0, 3, 4))
        places = (int(position) - int(filled) + np.arange(int(filled))) % widest
        return np.asarray(buffer[:, places].T / self.live.scale + self.live.scaled.centre, dtype=np.float64)

    def heard(self, stream: int) -> list[WindowState]:
        """Nothing: points are all that is asked for."""
        return []

    def filled(self) -> tuple[Float32Array, Float64Array]:
        """Points (streams, d, W) and their -2 c(x) (streams, widths, W) of windows just filled, oldest first."""
        widest = int(self.live.windows[-1])
        points, _, linear, position, filled = (self.live.compute.get(array) for array in self._arrays)
        assert not position.any()
        assert (filled == widest).all()
        return points[:, :, :widest], linear

    def state(self) -> Parts:
        """What steps change."""
        return {name: self.live.compute.get(array) for name, array in zip(ARRAYS, self._arrays, strict=True)}

    def resume(self, state: Parts) -> None:
        """Go on from what `state` gave."""
        for name, array in zip(ARRAYS, self._arrays, strict=True):
            array[...] = self.live.compute.put(state[name])
