"""Null paths of statistics that compare pairs of points, and the channels that are made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tocsin._compute import Functions
from tocsin._compute.arrays import Array, Float32Array, Float64Array, Int32Array, Int64Array
from tocsin._samplers import Streams
from tocsin._statistics.base import Channel, Setting
from tocsin._statistics.neighbours import near, others

FAR_BELOW = 0.7
"""Of the way from the mean of paths to a level: the first guess how far pseudo-references differ at most."""


@dataclass(frozen=True)
class Family:
    """Which of the computed rows are channels.

    heard: rows (widths x windows) of the MMD.
    typical: the width at which windows are also judged by how typical their points are, each way; -1 for none.
        A - mean c is what the MMD has besides the pairs within the window. On its own it varies little, and tells soon
        that points come from where the reference has few, or from its midst alone.
    """

    windows: tuple[int, ...]
    widths: tuple[float, ...]
    heard: Int64Array
    typical: int

    @cached_property
    def rows(self) -> int:
        """Rows that are computed."""
        return (len(self.widths) + (self.typical >= 0)) * len(self.windows)

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        everything = [Channel("MMD", window, width) for width in self.widths for window in self.windows]
        channels = [everything[i] for i in self.heard]
        if self.typical >= 0:
            width = self.widths[self.typical]
            channels += [Channel("less typical", window, width) for window in self.windows]
            channels += [Channel("more typical", window, width) for window in self.windows[self._longer]]
        return tuple(channels)

    @property
    def _longer(self) -> slice:
        """All windows but the shortest, if there are several: a handful of typical points is nothing unusual."""
        return slice(len(self.windows) > 1, None)

    @cached_property
    def signs(self) -> Float64Array:
        """By which the row of every channel is multiplied."""
        signs = np.ones(len(self.channels))
        if self.typical >= 0:
            signs[len(self.heard) + len(self.windows) :] = -1
        return signs

    def due(self, moved: Float64Array) -> Float64Array:
        """What each channel needs beside -2 c' + moved of the points in its window; moved: A' - A, (widths,)."""
        due = np.zeros(len(self.channels))
        if self.typical >= 0:
            typical = slice(len(self.heard), None)
            due[typical] = self.signs[typical] * moved[self.typical] / 2
        return due

    @cached_property
    def places(self) -> Int64Array:
        """The row of every channel."""
        return np.arange(self.rows) if self._places is None else self._places

    @cached_property
    def _places(self) -> Int64Array | None:
        """The row of every channel; None where they are all rows in order."""
        if self.typical < 0:
            return None if len(self.heard) == self.rows else self.heard
        typicality = np.arange(self.rows - len(self.windows), self.rows)
        return np.concatenate([self.heard, typicality, typicality[self._longer]])

    def choose(self, rows: Array) -> Array:
        """The channels, from paths of all rows."""
        if self._places is None:
            return rows
        chosen: Array = rows[self._places if isinstance(rows, np.ndarray) else self._places.tolist()]
        if self.typical >= 0:
            chosen[len(self.heard) + len(self.windows) :] *= -1
        return chosen


@dataclass(frozen=True)
class PairTerms:
    """What a path adds to the pairs of its window: offset (widths, G), linear (G, widths, N); and the kernel that a
    point drawn twice has with itself, neutral (widths, N)."""

    offset: Float64Array
    linear: Float32Array
    neutral: Float32Array


def bootstrap_terms(
    products: Float64Array, row_sums: Float64Array, weights: Float32Array, setting: Setting
) -> PairTerms:
    """A^g = v'Kv / (N^2 - v'v) and c_j^g = (K v)_j / (N - v_j), v the counts of pseudo-reference g; products is K v.

    No point meets itself, neither in the pseudo-reference nor, drawn twice, in the window: there the pair takes the
    value whose centred kernel is 0. With a guard, K has no entries of points that are close in time, and in the
    denominators v_j is the sum of v over the points close to j.
    """
    mean = row_sums / others(len(weights), setting.guard)
    return PairTerms(*setting.compute.pair_terms(products, mean, weights, near(weights, setting.guard)))


def direct_terms(row_sums: Float64Array, diagonal: Float64Array, offset: Float64Array, setting: Setting) -> PairTerms:
    """The reference itself, and kernels as they are; diagonal is k(x_i, x_i), (widths, N); offset (widths,)."""
    linear = (-2 * (row_sums + diagonal) / row_sums.shape[1])[None]
    put = setting.compute.put
    return PairTerms(put(offset[:, None]), put(linear.astype(np.float32)), put(diagonal.astype(np.float32)))


@dataclass(frozen=True, eq=False)
class PairPaths:
    """Null paths of a kernel statistic, against pseudo-references or the reference itself.

    points (N, d) or a kernel matrix, table (N, N); family: None where all rows are channels.
    """

    points: Float32Array
    table: Float32Array
    multipliers: Float32Array
    terms: PairTerms
    windows: Int64Array
    compute: Functions
    family: Family | None = None

    def __call__(self, streams: Streams) -> Float32Array:
        terms, typical = self.terms, -1 if self.family is None else self.family.typical
        rows = self.compute.pair_bootstrap_paths(
            self.points, self.table, streams.points, streams.copies, self.windows, self.multipliers,
            terms.neutral, terms.offset, terms.linear, typical,
        )  # fmt: skip
        return rows if self.family is None else self.family.choose(rows)

    def against(self, copies: Int32Array) -> PairPassages:
        """Each stream against all of these pseudo-references."""
        everyone, put, get = copies.tolist(), self.compute.put, self.compute.get
        offset, linear = get(self.terms.offset[:, everyone]), get(self.terms.linear[everyone])
        by_point = put(np.ascontiguousarray(linear.transpose(2, 1, 0)))
        mean = put(offset.mean(1, keepdims=True)), put(linear.mean(0, keepdims=True))
        return PairPassages(replace(self, terms=replace(self.terms, offset=put(offset), linear=by_point)), *mean)

    def chosen(self, channels: int) -> tuple[int, Int64Array, Float64Array]:
        """The width of typicality, and the row and sign of every channel."""
        if self.family is None:
            return -1, np.arange(channels), np.ones(channels)
        return self.family.typical, self.family.places, self.family.signs

    def loudest(
        self,
        streams: Streams,
        centre: Float64Array,
        scale: Float64Array,
        ties: Float64Array,
        grid: float,
        origin: float,
    ) -> Float64Array:
        """What `compute.loudest` makes of the paths, in one go: paths of all channels need not be kept."""
        terms, (typical, places, signs) = self.terms, self.chosen(len(centre))
        return self.compute.pair_bootstrap_loudest(
            self.points, self.table, streams.points, streams.copies, self.windows, self.multipliers, terms.neutral,
            terms.offset, terms.linear, typical, places, signs, centre, scale, ties, grid, origin,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PairPassages:
    """First passages of null paths, each stream against all pseudo-references, whose terms are given point by point.

    mean_offset (widths, 1), mean_linear (1, widths, N): the terms of all of them on average.
    """

    paths: PairPaths
    mean_offset: Float64Array
    mean_linear: Float32Array

    def passages(
        self,
        streams: Streams,
        centre: Float64Array,
        scale: Float64Array,
        ties: Float64Array,
        levels: Float64Array,
        usual: float,
    ) -> Int64Array:
        """The test at which each exceeds its level, or their number; (streams, copies).  usual: the mean of paths.

        Pseudo-references differ little, so that none exceeds a level where their mean is far below it.
        """
        own, terms, (typical, places, signs) = self.paths, self.paths.terms, self.paths.chosen(len(centre))
        far = np.full(len(levels), np.inf if own.compute.on_gpu else FAR_BELOW) * (levels - usual)
        while True:
            last, least = own.compute.pair_bootstrap_passages(
                own.points, own.table, streams.points, own.windows, own.multipliers, terms.neutral, terms.offset,
                terms.linear, self.mean_offset, self.mean_linear, typical, places, signs, centre, scale, ties, levels,
                levels - far,
            )  # fmt: skip
            if least > far.min() / 10 or not np.isfinite(far).any():
                return last
            far = 2 * far


@dataclass(frozen=True, eq=False)
class PairSplitPaths:
    """Null paths of a kernel statistic against the points that a stream leaves out; as `PairPaths`, with row sums."""

    points: Float32Array
    table: Float32Array
    multipliers: Float32Array
    row_sums: Float64Array
    windows: Int64Array
    compute: Functions
    family: Family | None = None

    def __call__(self, streams: Streams) -> Float32Array:
        rows = self.compute.pair_split_paths(
            self.points, self.table, streams.points, self.windows, self.multipliers, self.row_sums,
            -1 if self.family is None else self.family.typical,
        )  # fmt: skip
        return rows if self.family is None else self.family.choose(rows)
