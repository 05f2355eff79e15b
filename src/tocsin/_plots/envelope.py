"""Long paths in few numbers: the smallest and the largest of every so many values, so that no peak is lost."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float64Array


class Envelope:
    """The least and the largest of every `each` values of a path that grows, in at most `most` bins.

    As the path grows bins become twice as long, again and again, so memory is bounded. Bins of NaN alone are NaN.
    """

    def __init__(self, most: int) -> None:
        self.count, self.each = 0, 1
        self._low, self._high = np.full((2, most + most % 2), np.nan)

    def add(self, values: Float64Array) -> None:
        """The values that follow."""
        if not len(values):
            return
        while self.count + len(values) > self.each * len(self._low):
            self._merge()
        bins = (self.count + np.arange(len(values))) // self.each
        first = np.flatnonzero(np.diff(bins, prepend=-1))
        for kept, smaller in ((self._low, np.fmin), (self._high, np.fmax)):
            kept[bins[first]] = smaller(kept[bins[first]], smaller.reduceat(values, first))
        self.count += len(values)

    def _merge(self) -> None:
        """Make one bin of every two."""
        half = len(self._low) // 2
        for kept, smaller in ((self._low, np.fmin), (self._high, np.fmax)):
            kept[:half] = smaller.reduce(kept.reshape(-1, 2), axis=1)
            kept[half:] = np.nan
        self.each *= 2

    @property
    def low(self) -> Float64Array:
        """Of every bin, the smallest value."""
        return self._low[: self._bins]

    @property
    def high(self) -> Float64Array:
        """Of every bin, the largest value."""
        return self._high[: self._bins]

    @property
    def middles(self) -> Float64Array:
        """Of every bin, the place of its middle; values are counted from 1."""
        edges = np.minimum(np.arange(self._bins + 1) * self.each, self.count)
        middles: Float64Array = (edges[1:] + edges[:-1] + 1) / 2
        return middles

    @property
    def _bins(self) -> int:
        return -(-self.count // self.each)

    def coarser(self, most: int) -> Envelope:
        """The same in at most so many bins."""
        other = Envelope(len(self._low))
        other.count, other.each = self.count, self.each
        other._low, other._high = self._low.copy(), self._high.copy()
        while other._bins > most:
            other._merge()
        return other


def envelope(values: Float64Array, most: int) -> Envelope:
    """Of a whole path."""
    whole = Envelope(most)
    whole.add(values)
    return whole
