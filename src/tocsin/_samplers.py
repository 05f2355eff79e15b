"""Where null streams come from: every random number of a calibration is drawn here, seeded block by block of paths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from tocsin._compute import Functions
from tocsin._compute.arrays import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array


@dataclass(frozen=True)
class Independent:
    """Null streams of independent points: for observations that do not depend on each other."""


@dataclass(frozen=True)
class Blocks:
    """Null streams made of contiguous blocks of the reference: for observations that depend on those before them.

    The reference must be in the order in which it was observed.

    Parameters
    ----------
    length
        Observations in a block: many times the reach of the stream's memory. Default: chosen from the reference.
    guard
        Reference points no further apart in time than this are not compared with each other (but by functions of your
        own). Default: the reach of the memory, as far as it can be seen.
    """

    length: int | None = None
    guard: int | None = None


Sampler = Independent | Blocks

SHARING = 16
"""Streams in a row that meet the same pseudo-reference: what it says of points then stays in a core's cache."""

MOST_REDRAWS = 20
"""Times that a block is drawn again because it overlaps the one before it in the stream."""


@dataclass(frozen=True)
class Streams:
    """A block of null streams, in arrays of the backend that drew them.

    points: (P, L) indices into the reference, in the order in which the points arrive.
    copies: (P, m) which pseudo-references each stream is tested against; none (m = 0) where it is tested against the
        reference points that it leaves out.
    coins: (P, L) uniform numbers that break ties.
    laws: (P,) which pseudo-reference each stream was drawn from; None if from the reference.
    """

    points: Int32Array
    copies: Int32Array
    coins: Float64Array
    laws: Int64Array | None = None


class Source(Protocol):
    """How points are drawn from a reference of `count` points."""

    @property
    def count(self) -> int: ...

    @property
    def length(self) -> int:
        """Points that are drawn together."""

    @property
    def guard(self) -> int:
        """How far apart in time points must be to be compared."""

    def streams(self, rng: np.random.Generator, paths: int, length: int, compute: Functions) -> Int32Array:
        """Streams drawn with replacement; (paths, length)."""

    def distinct(self, rng: np.random.Generator, paths: int, length: int, compute: Functions) -> Int32Array:
        """Streams in which no point comes twice; (paths, length)."""

    def references(self, rng: np.random.Generator, copies: int, compute: Functions) -> Float32Array:
        """How often each point is in each pseudo-reference; (N, copies), columns sum to N."""


@dataclass(frozen=True)
class Singly:
    """One point at a time, each as likely as the others."""

    count: int
    length = 1
    guard = 0

    def streams(self, rng: np.random.Generator, paths: int, length: int, compute: Functions) -> Int32Array:
        return compute.integers(rng, self.count, (paths, length))

    def distinct(self, rng: np.random.Generator, paths: int, length: int, compute: Functions) -> Int32Array:
        return compute.distinct(rng, self.count, (paths, length))

    def references(self, rng: np.random.Generator, copies: int, compute: Functions) -> Float32Array:
        return compute.references(rng, self.count, copies)


@dataclass(frozen=True, eq=False)
class InBlocks:
    """Contiguous blocks, none across the boundary of a group; so streams keep the reference's memory.

    A block begins anywhere up to `length - 1` points before its group and is cut off at the group's ends: so every
    point is as likely as the others, whatever the groups.

    edges: group b is the points edges[b] to edges[b + 1] - 1.  length: of a block.
    guard: blocks that follow each other in a stream are at least this far apart in the reference, if they can be.
    """

    edges: Int64Array
    length: int
    guard: int

    @property
    def count(self) -> int:
        return int(self.edges[-1])

    @cached_property
    def _places(self) -> Int64Array:
        """Where blocks of each group begin, counted through: running totals."""
        return np.concatenate([[0], np.cumsum(np.diff(self.edges) + self.length - 1)])

    def draw(self, rng: np.random.Generator, blocks: int) -> tuple[Int64Array, Int64Array]:
        """First points of blocks, and the ones after their last."""
        place = rng.integers(0, self._places[-1], blocks)
        group = np.searchsorted(self._places, place, side="right") - 1
        start = self.edges[group] + place - self._places[group] - self.length + 1
        first, last = np.maximum(start, self.edges[group]), np.minimum(start + self.length, self.edges[group + 1])
        return first, last

    def streams(self, rng: np.random.Generator, paths: int, length: int, compute: Functions) -> Int32Array:
        out = np.empty((paths, length), np.int32)
        first, last = self._begin(rng, paths)
        filled, rows = np.zeros(paths, np.int64), np.arange(paths)
        while len(rows):
            size = np.minimum(last - first, length - filled[rows])
            row = np.repeat(np.arange(len(rows)), size)
            step = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
            out[rows[row], filled[rows][row] + step] = first[row] + step
            filled[rows] += size
            unfinished = filled[rows] < length
            rows = rows[unfinished]
            first, last = self._next(rng, first[unfinished], last[unfinished])
        return out

    def _begin(self, rng: np.random.Generator, paths: int) -> tuple[Int64Array, Int64Array]:
        """First blocks, each from any of its points on, so that joints fall on every test alike."""
        first = rng.integers(0, self.count, paths)
        group = np.searchsorted(self.edges, first, side="right") - 1
        return first, np.minimum(first + rng.integers(1, self.length + 1, paths), self.edges[group + 1])

    def _next(self, rng: np.random.Generator, first: Int64Array, last: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Blocks to follow these: a stream that repeats itself within a window would ring, and the truth does not."""
        new_first, new_last = self.draw(rng, len(first))
        for _ in range(MOST_REDRAWS):
            close: BoolArray = (new_first - self.guard < last) & (new_last + self.guard > first)
            if not close.any():
                break
            new_first[close], new_last[close] = self.draw(rng, int(close.sum()))
        return new_first, new_last

    def distinct(self, rng: np.random.Generator, paths: int, length: int, compute: Functions) -> Int32Array:
        out = np.empty((paths, length), np.int32)
        for row, first, last in zip(out, *self._begin(rng, paths), strict=True):
            used, filled = np.zeros(self.count, dtype=bool), 0
            while filled < length:
                block = first + np.flatnonzero(~used[first:last])[: length - filled]
                used[block] = True
                row[filled : filled + len(block)] = block
                filled += len(block)
                first, last = (int(end[0]) for end in self.draw(rng, 1))
        return out

    def references(self, rng: np.random.Generator, copies: int, compute: Functions) -> Float32Array:
        weights = np.zeros((self.count + 1, copies), np.float32)
        for g in range(copies):
            total = 0
            while total < self.count:
                first, last = self.draw(rng, -(-(self.count - total) // self.length))
                ends = np.cumsum(last - first) + total
                last = np.where(ends > self.count, np.maximum(last - (ends - self.count), first), last)
                np.add.at(weights[:, g], first, 1)
                np.add.at(weights[:, g], last, -1)
                total = min(int(ends[-1]), self.count)
        return np.ascontiguousarray(np.cumsum(weights, axis=0)[:-1])


@dataclass(frozen=True)
class DrawnStreams:
    """Points drawn with replacement, each stream tested against one of `copies` pseudo-references.

    The truth is one reference drawn from the unknown law, then an endless stream from the law. Its mirror is one
    pseudo-reference drawn from the reference with replacement, then a stream drawn from the reference.

    laws: the mirror the other way round, for references with few distinct values, which must be met as they are: the
        points of pseudo-references, (G, N), one of which each stream is drawn from.
    """

    source: Source
    length: int
    copies: int
    laws: Int32Array | None = None

    def points(self, rng: np.random.Generator, paths: int, compute: Functions) -> Int32Array:
        """Those of `draw`, alone."""
        if self.laws is not None:
            return self.draw(rng, paths, compute).points
        return self.source.streams(rng, paths, self.length, compute)

    def draw(self, rng: np.random.Generator, paths: int, compute: Functions) -> Streams:
        points = self.source.streams(rng, paths, self.length, compute)
        copies = compute.integers(rng, self.copies, (-(-paths // SHARING), 1))[np.arange(paths) // SHARING]
        coins = compute.uniforms(rng, (paths, self.length))
        if self.laws is None:
            return Streams(points, copies, coins)
        law = rng.integers(0, len(self.laws), paths)
        return Streams(self.laws[law[:, None], compute.get(points)], copies, coins, law)


@dataclass(frozen=True)
class SplitStreams:
    """Distinct points, each stream tested against all the reference points that it leaves out (Algorithms 2 and 3)."""

    source: Source
    length: int

    def points(self, rng: np.random.Generator, paths: int, compute: Functions) -> Int32Array:
        """Those of `draw`, alone."""
        return self.source.distinct(rng, paths, self.length, compute)

    def draw(self, rng: np.random.Generator, paths: int, compute: Functions) -> Streams:
        points = self.points(rng, paths, compute)
        nothing = compute.put(np.empty((paths, 0), np.int32))
        return Streams(points, nothing, compute.uniforms(rng, (paths, self.length)))


StreamSampler = DrawnStreams | SplitStreams
