"""The compiled hot functions and PyTorch's against the readable ones, and the exponential that they all rest on."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends import needs_torch, on_device, with_torch
from tocsin import InputError, MissingExtraError
from tocsin import _compute as compute
from tocsin._compute import numba_, numba_pairs, numpy_
from tocsin._compute.arrays import Array, Float32Array
from tocsin._compute.protocol import BackendModule

Arguments = list[Any]

NO_WEIGHTS = np.empty((0, 0), np.float32)


@dataclass(frozen=True)
class Sizes:
    """N reference points of d columns, and what is done with them (strips and chunks hold 16, 64 and 512 points)."""

    seed: int
    count: int
    columns: int
    windows: tuple[int, ...]
    multipliers: tuple[float, ...]
    tabulated: bool
    typical: int = -1
    together: int = 1
    guard: int = 0
    weighted: bool = False

    @property
    def rng(self) -> np.random.Generator:
        """The same generator each time."""
        return np.random.default_rng(self.seed)

    @property
    def points(self) -> Float32Array:
        """(N, d), the scale at which kernels are neither 0 nor 1."""
        points: Array = self.rng.normal(size=(self.count, self.columns)) / self.columns**0.5
        return points.astype(np.float32)

    @property
    def padded(self) -> Float32Array:
        """(d, N) and zeros, up to a whole number of strips."""
        columns = np.zeros((self.columns, -(-self.count // 64) * 64), np.float32)
        columns[:, : self.count] = self.points.T
        return columns

    @property
    def table(self) -> Float32Array:
        """A kernel matrix, or none."""
        if not self.tabulated:
            return np.empty((0, 0), np.float32)
        half = self.rng.normal(size=(self.count, self.count))
        return (half + half.T).astype(np.float32)

    @property
    def widths(self) -> Float32Array:
        """Multipliers per width; 0 is the fourth power of the one before."""
        return np.array((1.0,) if self.tabulated else self.multipliers, np.float32)

    @property
    def window_array(self) -> Array:
        """The windows."""
        return np.array(self.windows)

    @property
    def weights(self) -> Float32Array:
        """Of the points at every width, or none."""
        if not self.weighted:
            return NO_WEIGHTS
        weights: Array = self.rng.uniform(0, 2 / self.count, (len(self.widths), self.count))
        return weights.astype(np.float32)

    @property
    def counts(self) -> Float32Array:
        """How often each point is in each of three pseudo-references."""
        return self.rng.multinomial(self.count, np.full(self.count, 1 / self.count), 3).T.astype(np.float32)

    def streams(self, length: int) -> Array:
        """Indices with repetitions."""
        return self.rng.integers(0, self.count, (3, length), dtype=np.int32)

    @property
    def copies(self) -> Array:
        """Which of two pseudo-references each stream meets: `together` times one."""
        return self.rng.integers(0, 2, (3, self.together), dtype=np.int32)


all_sizes = st.builds(
    Sizes,
    seed=st.integers(0, 2**32),
    count=st.sampled_from([20, 63, 64, 65, 130, 600]),
    columns=st.sampled_from([1, 2, 17, 33]),
    windows=st.sampled_from([(2,), (5,), (2, 3, 9), (8, 9)]),
    multipliers=st.sampled_from([(1.0,), (1.0, 0.0, 0.0, 64.0, 0.0), (1.0, 2.3, 30.0), (1.0, 3.0, 0.0)]),
    tabulated=st.booleans(),
    typical=st.sampled_from([-1, 0]),
    together=st.sampled_from([1, 2, 5]),
    guard=st.sampled_from([0, 1, 7, 70, 1000]),
    weighted=st.booleans(),
)


# Arguments for every hot function


def _queries(s: Sizes) -> tuple[Array, Array]:
    """Some of the points themselves, the first and the last among them, and three others."""
    own = np.r_[0, s.rng.integers(0, s.count, 4), s.count - 1, [-1, -1, -1]]
    return np.concatenate([s.points[own[:6]], s.points[:3] + np.float32(0.3)]).T.copy(), own


def _row_sums(s: Sizes) -> Arguments:
    queries, own = _queries(s)
    return [s.padded, s.count, queries, own, s.guard, s.widths, s.weights]


def _products(s: Sizes) -> Arguments:
    queries, own = _queries(s)
    return [s.padded, s.count, queries, own, s.guard, s.widths, s.counts]


def _pair_terms(s: Sizes) -> Arguments:
    """Kernels of points, of which none meets itself."""
    products = s.rng.uniform(0, s.count, (len(s.widths), s.count, 3))
    return [products, s.rng.random((len(s.widths), s.count)), s.counts, s.counts.astype(np.float64)]


def _observe(s: Sizes) -> Arguments:
    queries, own = _queries(s)
    rows = queries.T.astype(np.float64)
    guard = min(s.guard, (s.count - 1) // 2)  # something must be left to compare with
    return [s.padded, s.count, 1e6 + 5 * rows, np.full(s.columns, 1e6), 0.2, own, guard, s.widths, s.weights]


def _pair_bootstrap(s: Sizes) -> Arguments:
    streams, widths = s.streams(2 * s.windows[-1] + 7), len(s.widths)
    neutral, linear = s.rng.normal(size=(widths, s.count)), s.rng.normal(size=(2, widths, s.count))
    return [
        s.points, s.table, streams, s.copies, s.window_array, s.widths,
        neutral.astype(np.float32), s.rng.normal(size=(widths, 2)), linear.astype(np.float32),
        s.typical,
    ]  # fmt: skip


def _pair_loudest(s: Sizes) -> Arguments:
    """Some rows twice, some not at all."""
    given = _pair_bootstrap(s)
    rows = (len(s.widths) + (s.typical >= 0)) * len(s.windows)
    chosen = s.rng.integers(0, rows, rows + 1)
    signs, scale = s.rng.choice([-1.0, 1.0], rows + 1), s.rng.uniform(0.5, 2, rows + 1)
    ties = s.rng.random((len(given[2]), given[2].shape[1] - s.windows[-1] + 1)) / 100
    return [*given, chosen, signs, s.rng.normal(size=rows + 1), scale, ties, 0.0, 0.0]


def _pair_passages(s: Sizes) -> Arguments:
    """Levels that some paths pass, and some do not, and floors that some are below."""
    points, table, streams, _, windows, multipliers, neutral, offset, linear, *rest, ties, _, _ = _pair_loudest(s)
    levels = s.rng.uniform(0.5, 2, ties.shape[1])
    by_point = np.ascontiguousarray(linear.transpose(2, 1, 0))
    mean = offset.mean(1, keepdims=True), linear.mean(0, keepdims=True)
    given = [points, table, streams, windows, multipliers, neutral, offset, by_point, *mean, *rest, ties]
    return [*given, levels, levels - s.rng.uniform(0, 2, len(levels))]


def _pair_split(s: Sizes) -> Arguments:
    streams = np.stack([s.rng.permutation(s.count)[: 2 * s.windows[-1] - 1] for _ in range(3)]).astype(np.int32)
    row_sums = s.rng.uniform(0, s.count, (len(s.widths), s.count))
    return [s.points, s.table, streams, s.window_array, s.widths, row_sums, s.typical]


def _channels(s: Sizes) -> tuple[Array, Array]:
    """The row and sign of every channel of a live stream: some rows twice, some not at all."""
    rows = (len(s.multipliers) + (s.typical >= 0)) * len(s.windows)
    return s.rng.integers(0, rows, rows + 1), s.rng.choice([-1.0, 1.0], rows + 1)


def _pair_advance(s: Sizes) -> Arguments:
    """Enough points to turn the buffer over twice, beginning in the middle of it: with points that are all alike."""
    widths, widest, new = len(s.multipliers), s.windows[-1], 9 * s.windows[-1] + 1
    multipliers, capacity = np.array(s.multipliers, np.float32), 4 * s.windows[-1]
    block = np.tile(s.points.T, 10)[:, : new + 3].copy()
    ahead = np.zeros((widths, capacity), np.float32)
    ahead[:, : widest // 2] = np.arange(widest // 2)[::-1]
    return [
        np.zeros((s.columns, capacity + 64), np.float32), ahead,
        np.zeros((widths, capacity)), np.array([widest // 2]), s.window_array, multipliers, s.rng.normal(size=widths),
        s.typical, *_channels(s), block, s.rng.normal(size=(widths, new + 3)), 3, new + 3,
    ]  # fmt: skip


def _pair_step(s: Sizes) -> Arguments:
    """One point, where the windows of `_pair_advance` are full, at the end of the buffer, or neither."""
    points, count, queries, centre, scale, _, _, multipliers, _ = _observe(replace(s, tabulated=False))
    weights = replace(s, tabulated=False).weights
    state, (windows, _, offset, typical, rows, signs, *_) = _pair_advance(s)[:4], _pair_advance(s)[4:]
    buffer, ahead, linear, cursor = state
    cursor[0] = s.rng.choice([0, cursor[0], ahead.shape[1]])
    return [
        points, count, centre, scale, multipliers, weights, windows, offset, typical, rows, signs, queries[-1:].copy(),
        buffer, ahead, linear, cursor, np.zeros((1, len(rows))),
    ]  # fmt: skip


def _pair_step_lacking(s: Sizes) -> Arguments:
    """One point of a young run, whose reference lacks some points, or none."""
    arguments, size = _pair_step(s), int(s.rng.integers(0, 3)) * 9
    gone = np.zeros((s.columns, 64), np.float32)
    gone[:, :size] = s.rng.normal(size=(s.columns, size)) / s.columns**0.5
    lacking = [gone, size, 1 + s.rng.random(), s.rng.random(), s.rng.normal(size=len(s.multipliers))]
    return [*arguments[:12], *lacking, *arguments[12:]]


def _pair_bank(s: Sizes) -> Arguments:
    """Seven streams, of which some or all get a point each; their windows are full, or not, or empty."""
    count, new, widths, widest = 7, 7 if s.tabulated else 4, len(s.multipliers), s.windows[-1]
    buffer = np.zeros((count, s.columns, widest + 64), np.float32)
    buffer[:, :, :widest] = s.rng.normal(size=(count, s.columns, widest)) / s.columns**0.5
    ahead, linear = s.rng.uniform(0, widest, (count, widths, widest)), s.rng.normal(size=(count, widths, widest))
    chosen = np.arange(count) if s.tabulated else s.rng.permutation(count)
    return [
        buffer, ahead.astype(np.float32), linear, s.rng.integers(0, widest, count),
        s.rng.integers(0, widest + 1, count), s.window_array, np.array(s.multipliers, np.float32),
        s.rng.normal(size=widths), s.typical, *_channels(s), chosen, 0 if s.tabulated else 2,
        new if s.tabulated else 2 + new, s.points.T[:, :count].copy(), s.rng.normal(size=(widths, count)),
    ]  # fmt: skip


def _pair_sums(s: Sizes) -> Arguments:
    """Windows of some points, or of none, and points of a block with which one of them meets: any, or all in order."""
    widest, count = s.windows[-1], 5
    windows = np.zeros((count, s.columns, 64 * (1 + (widest - 1) // 64)), np.float32)
    windows[:, :, :widest] = s.rng.normal(size=(count, s.columns, widest)) / s.columns**0.5
    columns = np.arange(s.count) if s.tabulated else s.rng.integers(0, s.count, 7)
    return [
        windows, s.rng.integers(0, widest + 1, count), np.array(s.multipliers, np.float32),
        s.rng.integers(0, count, len(columns)), columns, s.points.T.copy(),
    ]  # fmt: skip


def _pair_keys(s: Sizes) -> Arguments:
    """Five keys, of which some get points, several or none; their windows are full, or not, or empty."""
    keys, widths, widest = 5, len(s.multipliers), s.windows[-1]
    chosen = np.arange(keys) if s.tabulated else s.rng.permutation(keys)
    ends = np.sort(s.rng.integers(0, min(s.count, 2 * widest) + 1, keys))
    first = np.append(0, ends[:-1])
    return [
        (s.rng.normal(size=(keys, s.columns, widest)) / s.columns**0.5).astype(np.float32),
        s.rng.normal(size=(keys, widths, widest)).astype(np.float32), s.rng.integers(0, widest + 1, keys),
        s.window_array, np.array(s.multipliers, np.float32), s.rng.normal(size=widths), s.typical, *_channels(s),
        chosen, first, ends, 0 if s.tabulated else 1, keys if s.tabulated else 4, s.points.T.copy(),
        s.rng.normal(size=(widths, s.count)),
    ]  # fmt: skip


def _pair_keys_take(s: Sizes) -> Arguments:
    points, sums, filled, *_, chosen, first, last, _, _, block, linear = _pair_keys(s)
    return [points, sums, filled, chosen, first, last, block, linear]


def _features(s: Sizes) -> Array:
    return s.points.astype(np.float64)


def _feature_bootstrap(s: Sizes) -> Arguments:
    streams = s.streams(2 * s.windows[-1] + 7)
    linear, excess = s.rng.normal(size=(2, s.count)), s.rng.normal(size=s.count)
    offset, quadratic = s.rng.normal(size=2), float(s.tabulated)
    return [_features(s), streams, s.copies, s.window_array, excess, offset, linear, quadratic]


def _feature_split(s: Sizes) -> Arguments:
    streams = np.stack([s.rng.permutation(s.count)[: 2 * s.windows[-1] - 1] for _ in range(3)]).astype(np.int32)
    return [_features(s), streams, s.window_array, s.tabulated]


def _feature_advance(s: Sizes) -> Arguments:
    new, capacity = 9 * s.windows[-1] + 1, 4 * s.windows[-1]
    block, quadratic = np.tile(_features(s), (10, 1))[: new + 3].copy(), float(s.tabulated)
    return [
        np.zeros((capacity, s.columns)), np.zeros(capacity),
        np.zeros((len(s.windows), s.windows[-1] + 1, s.columns)), np.zeros((len(s.windows), s.columns)),
        np.zeros(len(s.windows), np.int64), np.array([0]),
        s.window_array, quadratic, block, s.rng.normal(size=new + 3), 3, new + 3, np.zeros((new, len(s.windows))),
    ]  # fmt: skip


def _records(s: Sizes) -> Arguments:
    values = s.rng.normal(size=(7, 30))
    floors = np.array([-np.inf, -0.5, 1.0, -np.inf] if s.guard else [-np.inf] * 4)
    return [values.round() if s.tabulated else values, np.array([0, 1, 2, 9, 30]), floors]


def _loudest(s: Sizes) -> Arguments:
    paths, channels = s.rng.normal(size=(len(s.multipliers), 3 * s.together, 11)), len(s.multipliers)
    paths = paths.round() if s.tabulated else paths
    return [
        paths.astype(np.float32), s.rng.normal(size=channels), s.rng.uniform(0.1, 2, channels), s.rng.random((3, 11)),
        0.25 if s.guard else 0.0, 0.1,
    ]  # fmt: skip


def _bumps(s: Sizes) -> Arguments:
    points = _features(s)
    return [points, points[:4].copy(), 1.3, s.rng.normal(size=(4, 3))]


def _mean_distances(s: Sizes) -> Arguments:
    values, others = _features(s), s.rng.normal(size=(9, s.columns))
    return [values, s.rng.integers(0, s.count, (6, 4)), others, s.rng.integers(0, 9, (6, 3))]


def _first_passages(s: Sizes) -> Arguments:
    return [s.rng.normal(size=(7, 30)), s.rng.normal(size=30) + 2, 9 if s.tabulated else 0]


def _places(s: Sizes) -> Arguments:
    """Seed, streams, runs and times of tests; those of one stream and run, or of many."""
    many = 1 if s.tabulated else 9
    streams = s.rng.integers(0, 2**64, many, np.uint64)
    return [s.rng.integers(0, 2**64, dtype=np.uint64), streams, s.rng.integers(0, 5, many), s.rng.integers(1, 40, 9)]


def _law(s: Sizes) -> Arguments:
    """Centres, scales, what coins are worth, a grid, and thresholds."""
    grid = 0.25 if s.weighted else 0.0
    return [s.rng.normal(size=s.columns), s.rng.uniform(0.5, 2, s.columns), 0.01, grid, 0.1, s.rng.normal(size=20)]


def _decide(s: Sizes) -> Arguments:
    tests = s.rng.integers(-5, 40, 1 if s.tabulated else 9)
    return [s.rng.normal(size=(9, s.columns)).round(1), s.rng.random(9), tests, *_law(s)]


def _judge(s: Sizes) -> Arguments:
    return [s.rng.normal(size=(9, s.columns)), *_places(s), 7 if s.typical else 0, *_law(s)]


def _judge_one(s: Sizes) -> Arguments:
    values, seed, _, run, time, *law = _judge(s)
    return [values[:1], seed, int(run[0]), int(time[0]), *law]


def _news_watch(s: Sizes) -> Arguments:
    """Numbers, with corners, directions and something else behind them; gaps that features tell, and new ones."""
    forms = [(0, 1, 0, -2), (1, 1, 0, 2), (3, 3, 1, -1), (6, 4, 2, -1), (10, 2, 3, 12), (13, 1, 0, -1)]
    layout, width = np.array(forms, np.int64), 15
    rows = s.rng.integers(-1, 3, (20, width)).astype(np.float64)
    rows[:, 3:6] = np.eye(3)[s.rng.integers(0, 3, 20)]
    rows[:, 14] = np.maximum(rows[:, 14], 0)
    rows[rows[:, 14] > 0, 3:14] *= s.rng.integers(0, 2, (int((rows[:, 14] > 0).sum()), 1))
    heard = np.zeros((2, len(layout), 5))
    heard[..., :3] = s.rng.integers(0, 2**32, (2, len(layout), 3))
    heard[..., 3:] = s.rng.integers(0, 3, (2, len(layout), 2))
    quiet, rates = s.rng.integers(0, 3, (len(layout), 3)), -s.rng.exponential(9, (3, 2, 33))
    rates[s.rng.random(rates.shape) < 0.7] = np.inf
    known = [np.unique(s.rng.integers(0, 9, 3)).astype(np.float64) for _ in layout]
    first, flat = np.cumsum([0, *map(len, known)]), np.concatenate(known)
    stops = np.column_stack([s.rng.integers(1, 4, len(flat)), -s.rng.exponential(9, len(flat))]).astype(np.float64)
    alone = np.column_stack([s.rng.integers(1, 4, len(layout)), -s.rng.exponential(9, len(layout))]).astype(np.float64)
    limits = np.tile([-0.5, 1.5], (len(layout), 1))
    spans = np.array([8, 32])
    tables: Arguments = [layout, limits, spans, quiet, rates, first, flat, stops, alone, s.typical < 0]
    return [rows, s.rng.integers(0, 2, 20), heard, *tables]


def _view_model(s: Sizes) -> tuple[Array, Array]:
    """What foresees each column, and the spreads of its views."""
    return s.rng.normal(size=(4, s.columns)) / 3, s.rng.uniform(0.5, 2, (4, s.columns))


def _view_rows(s: Sizes) -> Arguments:
    """Some columns, by themselves or along axes."""
    m = max(s.columns - 1, 1)
    axes = s.rng.normal(size=(m, 2)) if s.tabulated else np.empty((0, 0))
    points = 20 * s.points.astype(np.float64)
    return [points, s.rng.normal(size=m), s.rng.uniform(0.5, 2, m), np.arange(s.columns)[-m:], axes, 8.0]


def _view_channels(s: Sizes) -> Arguments:
    return [s.rng.normal(size=(min(s.count, 65), s.columns)), *_view_model(s), 5, 3, s.window_array, 0.05]


def _view_follow(s: Sizes) -> Arguments:
    squares = s.rng.standard_t(4, size=(min(s.count, 130), s.columns)).astype(np.float32) ** 2
    return [squares, s.guard, np.full(s.columns, 1.5), 2.0, 30.0, 3.0, 1.5, s.windows[-1], 0.4, 20.0]


def _view_streams(s: Sizes) -> tuple[Arguments, Arguments, int, int]:
    """What three streams keep, what foresees rows and what windows there are; and channels, and rows for places."""
    d, widest, base, gap = s.columns, s.windows[-1], 5, 3
    many, few = 2 * widest + gap + base + 1, 2 * widest + 4
    rows = s.rng.integers(-600, 600, (3, many, d)).astype(np.int16)
    rests = s.rng.integers(-128, 128, (3, few, d)).astype(np.int8)
    lags, _ = _view_model(s)
    kept = [rows, rests, many + s.rng.integers(0, many, 3)]
    return kept, [lags, s.window_array, base, gap], (4 * len(s.windows) + 2) * d, many


def _view_sums(s: Sizes) -> Arguments:
    kept, learnt, _, _ = _view_streams(s)
    return [*kept, *learnt, 1e6]


def _view_watch(s: Sizes) -> Arguments:
    """Some of the streams from the middle on, past the end of the places; some of it silent, some up to an alarm."""
    (rows, rests, position), (lags, windows, base, gap), channels, _ = _view_streams(s)
    sums = on_device("numpy").view_sums(rows, rests, position, lags, windows, base, gap, 1e6)
    clock = np.stack([s.rng.integers(-3, 4, 3), s.rng.integers(0, 2 * s.windows[-1], 3)], axis=1)
    scale = s.rng.uniform(1, 2, (3, channels)).astype(np.float32)
    n, m = 60, max(s.columns - 1, 1)
    axes = s.rng.normal(size=(m, s.columns)) if s.tabulated else np.empty((0, 0))
    chosen = np.arange(m if s.tabulated else s.columns)
    columns = np.stack([np.zeros(len(chosen)), np.ones(len(chosen))])
    units = np.stack([s.rng.uniform(1e-7, 1e-6, channels), s.rng.normal(size=channels) / 3])
    shares = s.rng.uniform(1e-7, 1e-6, (4, s.columns))
    shares[1::2] **= 2
    pace = np.array([8.0, 0.05, 1e6, 2.5, 1 / 30, 3.0, 14.0, 0.4, 20.0])
    points = 2 * s.rng.normal(size=(n, s.columns))
    out = np.empty((n, channels)) if s.guard else np.empty((0, 0))
    usual = np.stack([np.zeros((1, s.columns)), np.ones((1, s.columns))], axis=1)
    if s.together > 1:
        usual = np.stack([s.rng.normal(size=(3, s.columns)), s.rng.uniform(0.5, 2, (3, s.columns))], axis=1)
        clock[0, 1] = -70
    return [
        points, np.array([2, 0]), np.array([0, 30]), np.array([30, n]), 0, 2, s.together > 1, rows, rests, sums,
        position, scale, clock, np.zeros((3, channels)), usual, columns, chosen, axes, lags, windows, base, gap, units,
        shares, pace, np.zeros(n), np.zeros(n, np.int64), out,
    ]  # fmt: skip


ARGUMENTS: dict[str, Callable[[Sizes], Arguments]] = {
    "bumps": _bumps,
    "coins": _places,
    "concatenate": lambda s: [[s.points, s.points[:2]], 0],
    "decide": _decide,
    "distinct_streams": lambda s: [s.rng.random((5, 19)), s.count],
    "exponentials": lambda s: [-np.abs(s.points[:, 0]) * 20],
    "feature_advance": _feature_advance,
    "feature_bootstrap_paths": _feature_bootstrap,
    "feature_split_paths": _feature_split,
    "first_passages": _first_passages,
    "flat": lambda s: [s.points],
    "gaussian_observe": _observe,
    "gaussian_products": _products,
    "gaussian_row_sums": _row_sums,
    "judge": _judge,
    "judge_one": _judge_one,
    "loudest": _loudest,
    "mean_distances": _mean_distances,
    "pair_advance": _pair_advance,
    "pair_bank_step": _pair_bank,
    "pair_bootstrap_loudest": _pair_loudest,
    "pair_bootstrap_passages": _pair_passages,
    "pair_bootstrap_paths": _pair_bootstrap,
    "pair_keys_advance": _pair_keys,
    "pair_keys_take": _pair_keys_take,
    "pair_split_paths": _pair_split,
    "pair_step": _pair_step,
    "pair_step_lacking": _pair_step_lacking,
    "pair_sums": _pair_sums,
    "pair_terms": _pair_terms,
    "quantile": lambda s: [_features(s)[:, 0], s.rng.random()],
    "news_watch": _news_watch,
    "records": _records,
    "stretch_maxima": lambda s: _records(s)[:2],
    "take": lambda s: [s.points, s.rng.integers(0, s.count, (4, 3)), np.zeros((4, 1), np.int64)],
    "autoregress": lambda s: [s.rng.normal(size=(50, s.columns)), s.rng.uniform(-0.3, 0.3, (s.together, s.columns))],
    "view_channels": _view_channels,
    "view_follow": _view_follow,
    "view_rows": _view_rows,
    "view_sums": _view_sums,
    "view_watch": _view_watch,
}
hot_functions = pytest.mark.parametrize("name", ARGUMENTS)

ARRAYS = {"get", "put"}
RANDOM = {"distinct", "integers", "references", "uniforms"}
"""Alike in law only: `test_samplers` and `test_torch` have them."""
SIZES = {"BLOCK_WORK", "ROWS", "SPREAD_STREAMS"}

ON_DEVICE: dict[str, list[int]] = {
    "coins": [],
    "concatenate": [],
    "decide": [],
    "distinct_streams": [],
    "feature_advance": [],
    "feature_bootstrap_paths": [0, 1, 2, 4, 5, 6],
    "feature_split_paths": [0, 1],
    "gaussian_products": [0, 2, 6],
    "gaussian_row_sums": [0, 2],
    "judge": [],
    "judge_one": [],
    "loudest": [0, 3],
    "news_watch": [],
    "pair_advance": [10, 11],
    "pair_bank_step": [0, 1, 2, 3, 4, 14, 15],
    "pair_bootstrap_loudest": [0, 1, 2, 3, 6, 7, 8, 14],
    "pair_bootstrap_passages": [0, 1, 2, 5, 6, 7, 8, 9, 15],
    "pair_bootstrap_paths": [0, 1, 2, 3, 6, 7, 8],
    "pair_keys_advance": [],
    "pair_keys_take": [],
    "pair_split_paths": [0, 1, 2],
    "pair_step": [],
    "pair_step_lacking": [],
    "pair_sums": [0, 1, 5],
    "pair_terms": [0, 2, 3],
    **{name: [] for name in ("autoregress", "view_channels", "view_follow", "view_rows", "view_sums", "view_watch")},
}
"""Places of the arguments that are arrays of the backend's; for the others, the first one."""


def _called(functions: compute.Functions, name: str, arguments: Arguments) -> tuple[Any, ...]:
    """A function's answers, in NumPy's arrays, for arguments that are put where they belong."""
    there = list(arguments)
    for place in ON_DEVICE.get(name, [0]):
        there[place] = functions.put(arguments[place])
    answers = getattr(functions, name)(*there)
    several = answers if isinstance(answers, tuple) else () if answers is None else (answers,)
    return tuple(np.asarray(functions.get(each)) for each in several)


def _agree(name: str, one: Any, other: Any) -> None:
    if isinstance(other, list):
        for each, twin in zip(one, other, strict=True):
            _agree(name, each, twin)
    elif other is None or name in EXACT:
        np.testing.assert_array_equal(one, other)
    else:
        scale = max(1.0, float(np.abs(np.nan_to_num(other)).max())) if np.size(other) else 1.0
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6 * scale)


LEFT_ALONE = {
    "feature_advance": slice(6, -1),
    "news_watch": slice(3, None),
    "pair_advance": slice(4, None),
    "pair_bank_step": slice(5, None),
    "pair_keys_take": slice(3, None),
    "pair_step": slice(12),
    "pair_step_lacking": slice(17),
    "view_follow": slice(2),
    "view_watch": slice(14, 25),
}
"""Which arguments are left alone by those that take in new points."""

EXACT = {
    "coins", "concatenate", "decide", "distinct_streams", "first_passages", "flat", "judge", "judge_one",
    "news_watch", "records", "stretch_maxima", "take",
}  # fmt: skip


# Pair by pair


@hot_functions
@given(sizes=all_sizes)
def test_compiled_equals_readable(name: str, sizes: Sizes) -> None:
    """The same answer, and the same left behind in arrays that are written to."""
    for_numba = ARGUMENTS[name](sizes)
    for_numpy = copy.deepcopy(for_numba)
    got, expected = _called(on_device("numba"), name, for_numba), _called(on_device("numpy"), name, for_numpy)
    for one, other in [*zip(got, expected, strict=True), *zip(for_numba, for_numpy, strict=True)]:
        _agree(name, one, other)


@needs_torch
@pytest.mark.parametrize("name", [name for name in ARGUMENTS if name != "distinct_streams"])
@given(sizes=all_sizes)
def test_torch_equals_readable(name: str, sizes: Sizes) -> None:
    """The same answers, of the same types. (What it keeps of a live stream has another order: see `test_torch`.)"""
    arguments = ARGUMENTS[name](sizes)
    twins = copy.deepcopy(arguments)
    got, expected = _called(on_device("torch"), name, arguments), _called(on_device("numpy"), name, twins)
    if name in ("feature_advance", "pair_bank_step", "pair_step"):
        got, expected = (*got, *arguments), (*expected, *twins)
    for one, other in zip(got, expected, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        _agree(name, one, other)


@given(sizes=all_sizes)
def test_compiled_blocks_of_kernels_equal_readable_ones(sizes: Sizes) -> None:
    """From any strip on: what `gaussian_products` multiplies."""
    queries, own = _queries(sizes)
    first = 64 if sizes.count > 64 else 0
    arguments: Arguments = [sizes.padded, first, sizes.count, queries, own, sizes.guard, sizes.widths]
    _agree("", numba_pairs.gaussian_block(*arguments), numpy_.gaussian_block(*arguments))


DECLARED = [name for name in dir(BackendModule) if not name.startswith("_")]


def test_every_hot_function_is_compared() -> None:
    """The list above is all that the compiled module offers; but for `distinct_streams`, every backend must."""
    assert sorted({*ARGUMENTS, *ARRAYS, *RANDOM, *SIZES}) == sorted(numba_.__all__)
    assert sorted({*ARGUMENTS, *ARRAYS, *RANDOM}) == sorted([*DECLARED, "distinct_streams"])


@pytest.mark.parametrize("backend", with_torch)
@pytest.mark.parametrize("name", DECLARED)
def test_parameters_have_the_same_names(name: str, backend: compute.Backend) -> None:
    """One signature, several implementations: mypy compares all of it but the names."""
    function = getattr(importlib.import_module(f"tocsin._compute.{backend}_"), name)
    function = getattr(function, "py_func", function)
    declared = list(inspect.signature(getattr(BackendModule, name)).parameters)
    assert ["self", *inspect.signature(function).parameters] == declared


@hot_functions
@pytest.mark.parametrize("seed", [0, 1])
def test_inputs_are_left_alone(functions: compute.Functions, name: str, seed: int) -> None:
    """Only those that take in new points write to their arguments."""
    if (name, functions.backend) == ("distinct_streams", "torch"):
        pytest.skip("PyTorch has `distinct` alone")
    arguments = ARGUMENTS[name](Sizes(seed, 65, 2, (2, 5), (1.0, 0.0), tabulated=False))
    before = copy.deepcopy(arguments)
    _called(functions, name, arguments)
    left = LEFT_ALONE.get(name, slice(None))
    for one, other in zip(arguments[left], before[left], strict=True):
        _agree("flat", one, other)


# The exponential


def test_exponential_over_its_range() -> None:
    """To 1.2e-7 (an ulp of float32) of exp(x) down to -87, and not more than 1e-37 below."""
    x = np.linspace(0, -200, 400_001).astype(np.float32)
    got, expected = numba_.exponentials(x).astype(np.float64), np.exp(x.astype(np.float64))
    inside = x >= -87
    assert np.abs(got[inside] / expected[inside] - 1).max() < 1.2e-7
    assert (np.abs(got - expected)[~inside] < 1e-37).all()
    assert (got >= 0).all()
    assert (got <= 1).all()


@pytest.mark.parametrize("x", [0.0, -0.0, -1e-45, -1e-40, -1.2e-38, -1e-20, -2e-8])
def test_exponential_is_exactly_one_at_nothing(functions: compute.Functions, x: float) -> None:
    """Points that coincide, or nearly, have a kernel of exactly 1."""
    assert _called(functions, "exponentials", [np.array([x], np.float32)])[0][0] == 1.0


@pytest.mark.parametrize("x", [-np.inf, -3.4e38, -1e20, -1000.0])
def test_exponential_far_away(functions: compute.Functions, x: float) -> None:
    """Points too far apart for float32 have a kernel of 0, for all purposes."""
    assert 0 <= _called(functions, "exponentials", [np.array([x], np.float32)])[0][0] < 1e-37


def test_exponential_never_rises() -> None:
    """Farther points are never more alike, up to rounding."""
    x = -np.sort(np.random.default_rng(0).exponential(5, 100_000)).astype(np.float32)
    y = numba_.exponentials(x).astype(np.float64)
    assert (y[1:] <= y[:-1] * (1 + 2e-7)).all()


# What the pair tests cannot show


@pytest.mark.parametrize("name", ["pair_bootstrap_paths", "feature_bootstrap_paths"])
@pytest.mark.parametrize("backend", with_torch)
@given(sizes=all_sizes)
def test_copies_together_are_copies_one_by_one(name: str, backend: compute.Backend, sizes: Sizes) -> None:
    """A stream that meets m pseudo-references has m paths in a row, each as if it met that one alone."""
    place, functions = 3 if name == "pair_bootstrap_paths" else 2, on_device(backend)
    arguments = ARGUMENTS[name](sizes)
    copies, (together,) = arguments[place], _called(functions, name, arguments)
    for i in range(sizes.together):
        arguments[place] = copies[:, i : i + 1].copy()
        np.testing.assert_array_equal(together[:, i :: sizes.together], _called(functions, name, arguments)[0])


@pytest.mark.parametrize("guard", [0, 1, 3, 64, 70, 200])
def test_a_guard_leaves_out_what_is_close_in_time(functions: compute.Functions, guard: int) -> None:
    """Sums, single kernels and means, by a loop over the points that are further away than the guard."""
    s = Sizes(0, 500, 2, (5,), (1.0,), tabulated=False)
    points, own = s.points.astype(np.float64), np.array([0, 1, 64, 130, 300, 499, -1])
    queries = s.points[own].T.copy()
    met = [[i for i in range(s.count) if j < 0 or abs(i - j) > guard] for j in own]
    kernel = np.exp(-((points[own][:, None] - points[None]) ** 2).sum(-1))
    expected = np.array([row[places].sum() for row, places in zip(kernel, met, strict=True)])
    (sums,) = _called(functions, "gaussian_row_sums", [s.padded, s.count, queries, own, guard, s.widths, NO_WEIGHTS])
    np.testing.assert_allclose(sums[0], expected, rtol=1e-5)
    apart = np.eye(s.count, dtype=np.float32)[:, 64:]
    (block,) = _called(functions, "gaussian_products", [s.padded, s.count, queries, own, guard, s.widths, apart])
    np.testing.assert_allclose(
        block[0].sum(1),
        [row[[i for i in places if i >= 64]].sum() for row, places in zip(kernel, met, strict=True)],
        rtol=1e-5,
    )
    _, linear = _called(
        functions,
        "gaussian_observe",
        [s.padded, s.count, points[own], np.zeros(2), 1.0, own, guard, s.widths, NO_WEIGHTS],
    )
    np.testing.assert_allclose(linear[0], -2 * expected / [len(places) for places in met], rtol=1e-5)


def test_the_loudest_channel_speaks(functions: compute.Functions) -> None:
    """By hand: two channels, one stream against two pseudo-references that share its coins."""
    channels = np.array([[[1.0, 5.0], [3.0, 2.0]], [[2.0, 0.0], [0.0, 9.0]]], np.float32)
    centre, scale, ties = np.array([1.0, 0.0]), np.array([2.0, 1.0]), np.array([[0.25, 0.5]])
    (got,) = _called(functions, "loudest", [channels, centre, scale, ties, 0.0, 0.0])
    assert got.tolist() == [[2.25, 2.5], [1.25, 9.5]]
    (on_grid,) = _called(functions, "loudest", [channels, centre, scale, ties, 4.0, 1.0])
    assert on_grid.tolist() == [[1.25, 1.5], [1.25, 9.5]]


@given(sizes=all_sizes)
def test_distinct_streams_are_distinct(sizes: Sizes) -> None:
    """No stream holds a point twice, and all points are there to be drawn."""
    count = sizes.count
    streams = numba_.distinct_streams(sizes.rng.random((40, count)), count)
    assert all(sorted(stream) == list(range(count)) for stream in streams.tolist())


def test_distinct_streams_at_the_edge() -> None:
    """The largest number below 1 draws the last card of the deck and not the one after it."""
    almost_one = np.full((2, 5), np.nextafter(1.0, 0.0))
    for module in (numba_, numpy_):
        streams = module.distinct_streams(almost_one, 5)
        assert streams.max() == 4
        assert all(len(set(stream)) == 5 for stream in streams.tolist())


@needs_torch
@given(seed=st.integers(0, 2**32), count=st.integers(0, 9), channels=st.integers(1, 5))
def test_the_channel_that_speaks_live(seed: int, count: int, channels: int) -> None:
    """Of rows of tensors: the first of the largest; where windows are not full, there is no number."""
    rng = np.random.default_rng(seed)
    values, centre, scale = rng.normal(size=(count, channels)).round(), np.zeros(channels), np.ones(channels)
    values[: count // 3] = np.nan
    best, loudest = compute.speaking(on_device("torch").put(values), centre, scale)
    np.testing.assert_array_equal(best, values.max(1))
    np.testing.assert_array_equal(loudest, values.argmax(1))


# Which backend, and where


def test_backends_by_name() -> None:
    """'numba' is compiled, 'numpy' is readable, anything else is refused."""
    for name in ARGUMENTS:
        assert getattr(compute.load("numba"), name) is getattr(numba_, name)
        assert getattr(compute.load("numpy"), name) is getattr(numpy_, name)
    unknown: Any = "jax"
    with pytest.raises(InputError, match=r"'jax' is unknown; choose one of 'auto', 'numba', 'torch', 'numpy'"):
        compute.load(unknown)


def test_auto_without_a_gpu_is_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is with one, if the CPU is asked for; else PyTorch takes it."""
    for there in (False, True):
        monkeypatch.setattr(compute, "_gpu_ready", lambda there=there: there)
        assert str(compute.load("auto", "cpu")) == "numba"
        assert str(compute.load("auto")) == ("torch on cuda" if there else "numba")


def test_a_gpu_is_ready_only_with_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """And PyTorch, slow to import, is asked only if a driver is there."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not compute._gpu_ready()
    monkeypatch.undo()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(compute, "DRIVERS", ("no-such-library.so",))
    monkeypatch.setattr("importlib.import_module", lambda name: pytest.fail(f"{name} was imported"))
    assert not compute._gpu_ready()


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cuda:-1", "CPU", "", "mps", "cpu:0"])
@pytest.mark.parametrize("backend", ["auto", "numba", "torch", "numpy"])
def test_unknown_devices(backend: compute.Backend, device: str) -> None:
    """With what there is to choose from."""
    with pytest.raises(InputError, match=rf"device='{device}' is unknown; choose 'cpu', 'cuda', or 'cuda:0', 'cuda:1'"):
        compute.load(backend, device)


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_cpu_backends_have_no_gpu(backend: compute.Backend, device: str) -> None:
    """But one that has is named."""
    with pytest.raises(InputError, match=rf"backend='{backend}' runs on the CPU, not on '{device}'.*backend='torch'"):
        compute.load(backend, device)
    assert compute.load(backend, "cpu").device == "cpu"


@needs_torch
@pytest.mark.parametrize(("device", "count"), [("cuda:7", 0), ("cuda:7", 7), ("cuda", 0), ("cuda:0", 0)])
@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_a_gpu_that_is_not_there(
    backend: compute.Backend, device: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many PyTorch sees, and what to do."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: count)
    with pytest.raises(
        InputError, match=rf"device='{device}' is not there: PyTorch .* sees {count} GPUs.*device='cpu'"
    ):
        compute.load(backend, device)


@needs_torch
@pytest.mark.parametrize("device", ["cuda:7", "cuda:0", "cuda"])
@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_a_gpu_that_is_there(backend: compute.Backend, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is where PyTorch computes; what is little stays with numba."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 8)
    functions = compute.load(backend, device)
    assert (functions.backend, functions.device, str(functions)) == ("torch", device, f"torch on {device}")
    assert functions.on_gpu
    assert functions.nearby.backend == "numba"


@pytest.mark.parametrize(
    ("backend", "device", "asked"),
    [("torch", None, "backend='torch'"), ("torch", "cpu", "backend='torch'"), ("auto", "cuda", "device='cuda'")],
)
def test_pytorch_is_missing(
    backend: compute.Backend, device: str | None, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for, and how to install it; 'auto' does without."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=rf"^{asked} needs the package 'torch': pip install 'tocsin\[torch\]'"):
        compute.load(backend, device)
    assert str(compute.load("auto")) == "numba"


def test_functions_can_be_pickled_and_copied(functions: compute.Functions) -> None:
    """With backend and device, whether they were called or not; and a device that is not there is not asked for."""
    _called(functions, "exponentials", [np.zeros(1, np.float32)])
    for one in (functions, compute.LazyFunctions("torch", "cuda:3")):
        for other in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one)):
            assert (other.backend, other.device, str(other)) == (one.backend, one.device, str(one))
            assert other.on_gpu == one.on_gpu


def test_functions_have_no_others(functions: compute.Functions) -> None:
    """An attribute that is not a hot function is missing, as in any object."""
    assert not hasattr(functions, "no_such_function")
    assert not hasattr(functions, "__array__")


def test_the_environment_may_say_what_auto_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compute.BACKEND_VARIABLE, "numpy")
    assert compute.load("auto").backend == "numpy"
    assert compute.load("numba").backend == "numba"
    monkeypatch.setenv(compute.BACKEND_VARIABLE, "abacus")
    with pytest.raises(
        InputError, match=r"The environment variable TOCSIN_BACKEND='abacus' is unknown; choose one of 'auto'"
    ):
        compute.load("auto")


@needs_torch
def test_devices_may_be_pytorchs_own() -> None:
    import torch

    assert str(compute.load("torch", torch.device("cpu"))) == "torch on cpu"
    with pytest.raises(InputError, match="device='7' is unknown"):
        compute.load("torch", 7)  # type: ignore[arg-type]
