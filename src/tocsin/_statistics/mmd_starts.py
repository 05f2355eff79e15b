"""Full windows of reference points that many runs begin with, and what their reference lacks while they are young."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tocsin._compute import load, on_host
from tocsin._compute.arrays import Array, Float32Array, Float64Array, Int64Array
from tocsin._statistics.base import Points, choose
from tocsin._statistics.mmd_bank import GaussianBank, Observed, room_for
from tocsin._statistics.mmd_gaussian import GaussianLive
from tocsin._statistics.without import factors, share


class Starts:
    """So many windows, to be filled. Each knows which of its points have left the reference; see `without`.

    bank: the windows themselves.
    """

    def __init__(self, live: GaussianLive, count: int) -> None:
        self.live, self.count, self.bank = live, count, GaussianBank(live, count)
        self.widest, channels = int(live.windows[-1]), live.family.channels
        self._points = np.zeros((count, live.points.shape[1], room_for(self.widest)), np.float32)
        self._sizes, self._moved = np.zeros(count, np.int64), np.zeros((len(live.multipliers), count))
        self._due, self._windows = np.zeros((count, len(channels))), np.array([channel.window for channel in channels])

    def fill(
        self, chosen: Int64Array, reference: Points, windows: Int64Array, places: Int64Array | None
    ) -> Float64Array:
        """Begin these with windows of reference points, (len(chosen), W); the channels of their last test.

        places: where each reference point is among those compared with; they leave it. None: they do not.
        """
        points, inverse = np.unique(windows, return_inverse=True)
        inverse = inverse.reshape(windows.shape)
        own = None if places is None else places[points]
        observed = self.live.observe(choose(reference, points), own)
        block: Float32Array = self.live.compute.get(observed[0])[:, inverse]
        linear: Float64Array = self.live.compute.get(observed[1])[:, inverse]
        if own is not None:
            for i, start in enumerate(chosen.tolist()):
                begun = block[:, i], linear[:, i]
                (_, linear[:, i]), left = self.live.leave_out(begun, own[inverse[i]], self.widest)
                self._points[start, :, : left["points"].shape[1]] = left["points"]
                self._sizes[start], self._moved[:, start] = left["count"], left["moved"]
                self._due[start] = self.live.due(left)
        return on_host(self.bank.fill(chosen, block, linear)) + self.due(chosen, np.zeros(len(chosen), np.int64))

    def lacking(self, observed: Observed, columns: Int64Array, which: Int64Array) -> Observed:
        """Observed points, of which these columns meet the reference as these starts have left it."""
        block, linear = observed
        if not len(columns) or not self._sizes.any():
            return observed
        compute, parts = self.live.compute, self._parts_there
        if isinstance(block, np.ndarray):
            compute, parts = (load("numba") if compute.backend == "torch" else compute), self._parts
        points, sizes, own, leaving, moved = parts
        sums = compute.pair_sums(points, sizes, self.live.multipliers, which, columns, block)
        changed = linear.copy() if isinstance(linear, np.ndarray) else linear.clone()
        changed[:, columns] = own[which] * linear[:, columns] + leaving[which] * sums + moved[:, which]
        return block, changed

    @cached_property
    def _parts(self) -> tuple[Array, ...]:
        return self._points, self._sizes, *factors(self.live.compared, self._sizes), self._moved

    @cached_property
    def _parts_there(self) -> tuple[Array, ...]:
        """Where the live statistic compares points."""
        return tuple(self.live.compute.put(part) for part in self._parts)

    def due(self, which: Int64Array, time: Int64Array) -> Float64Array:
        """What is to be added to the channels of runs that began so, after so many observations; (n, channels)."""
        return self._due[which] * share(self._windows, self.widest, time)

    @cached_property
    def filled(self) -> tuple[Float32Array, Float64Array]:
        """Points (count, d, W) and their -2 c'(x) + moved, (count, widths, W), oldest first."""
        return self.bank.filled()
