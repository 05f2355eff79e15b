"""The hot functions in plain NumPy: what `numba_` computes, to be read, and to check it against.

Shapes: N reference points of d coordinates, P null streams of L points, T tests of each (T = L - max(windows) + 1),
G pseudo-references, m features. Channels are ordered width by width, then window by window.

A long file, since it has all of them, each beside those that it calls.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from tocsin._compute import host
from tocsin._compute.arrays import (
    FARTHEST,
    Array,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    UInt64Array,
)
from tocsin._compute.host import *  # noqa: F403  (arrays and random numbers, as all CPU backends have them)
from tocsin._compute.numpy_news import news_watch as news_watch
from tocsin._compute.numpy_view_streams import view_sums as view_sums
from tocsin._compute.numpy_view_streams import view_watch as view_watch
from tocsin._compute.numpy_views import autoregress as autoregress
from tocsin._compute.numpy_views import view_channels as view_channels
from tocsin._compute.numpy_views import view_follow as view_follow
from tocsin._compute.numpy_views import view_rows as view_rows


def exponentials(x: Float32Array) -> Float32Array:
    return np.exp(x)


def _gaussian(a: Array, b: Array, multipliers: Float32Array) -> Float64Array:
    """k_w(a_i, b_j) for points as rows; (widths, len(a), len(b))."""
    squares = np.sum((a[:, None, :].astype(np.float64) - b[None, :, :]) ** 2, axis=-1)
    return np.stack([np.exp(-m * squares) for m in _expanded(multipliers)])


def _expanded(multipliers: Float32Array) -> list[float]:
    """A multiplier of 0 stands for the fourth power of the width before it."""
    out: list[float] = []
    for multiplier in multipliers:
        out.append(float(multiplier) if multiplier > 0 else 4 * out[-1])
    return out


def gaussian_row_sums(
    points: Float32Array,
    count: int,
    queries: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
    weights: Float32Array,
) -> Float64Array:
    """sum of k_w(x_i, queries[:, q]) over the first `count` columns of points, as `gaussian_block`; (widths, n).

    weights: of the points, (widths, count); all 1 if it is empty.
    """
    sums = np.empty((len(multipliers), queries.shape[1]))
    for q in range(queries.shape[1]):
        one = slice(q, q + 1)
        row = gaussian_block(points, 0, count, queries[:, one], own[one], guard, multipliers)[:, 0]
        sums[:, q] = (row * weights).sum(-1) if weights.size else row.sum(-1)
    return sums


def gaussian_products(
    points: Float32Array,
    count: int,
    queries: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
    weights: Float32Array,
) -> Float64Array:
    """The kernel matrix of `gaussian_block` times weights (count, G) of the points; (widths, n, G)."""
    block = gaussian_block(points, 0, count, queries, own, guard, multipliers)
    return block.astype(np.float64) @ weights


def gaussian_observe(
    points: Float32Array,
    count: int,
    queries: Float64Array,
    centre: Float64Array,
    scale: float,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
    weights: Float32Array,
) -> tuple[Float32Array, Float64Array]:
    """New points (n, d), centred and scaled to (d, n), and -2 c of each: minus twice its mean kernel; (widths, n).

    weights: as in `gaussian_row_sums`; with them c is the weighted sum.
    """
    with np.errstate(over="ignore"):
        scaled = np.clip((queries - centre) * scale, -FARTHEST, FARTHEST)
    block = np.ascontiguousarray(scaled.T.astype(np.float32))
    sums = gaussian_row_sums(points, count, block, own, guard, multipliers, weights)
    if weights.size:
        return block, -2 * sums
    left_out = np.minimum(own + guard, count - 1) - np.maximum(own - guard, 0) + 1
    return block, -2 * sums / np.where(own >= 0, count - left_out, count)


def gaussian_block(
    points: Float32Array,
    start: int,
    stop: int,
    queries: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
) -> Array:
    """k_w(x_i, queries[:, q]) for start <= i < stop; (widths, n, stop - start).

    0 where query q is itself a point, own[q] >= 0, and i is no further from it than `guard`.
    """
    block: Float64Array = _gaussian(queries.T, points[:, start:stop].T, multipliers)
    near = np.abs(np.arange(start, stop) - own[:, None]) <= guard
    block[:, near & (own >= 0)[:, None]] = 0
    return block


def _stream_kernels(points: Array, table: Array, stream: Array, multipliers: Float32Array) -> Float64Array:
    """The kernel matrix of one stream, zero on its diagonal; (widths, L, L)."""
    if table.size:
        kernels = table[np.ix_(stream, stream)][None].astype(np.float64)
    else:
        kernels = _gaussian(points[stream], points[stream], multipliers)
    kernels[:, np.arange(stream.size), np.arange(stream.size)] = 0
    return np.asarray(kernels)


def _pair_path(kernels: Array, offset: Array, linear: Array, windows: Int64Array, typical: int) -> Array:
    """offset + sum_{i != j} k / (W (W - 1)) + mean linear over each window, from (widths, L, L) and (widths, L).

    For the width `typical` also offset + mean linear / 2, which is A - mean c; none if it is -1.
    """
    widest = int(windows[-1])
    tests = kernels.shape[1] - widest + 1
    out = np.empty((len(kernels) + (typical >= 0), len(windows), tests))
    for v, window in enumerate(windows):
        for test in range(tests):
            inside = slice(test + widest - window, test + widest)
            pairs = kernels[:, inside, inside].sum((1, 2)) / (window * (window - 1))
            mean = linear[:, inside].mean(1)
            out[: len(kernels), v, test] = offset + pairs + mean
            if typical >= 0:
                out[-1, v, test] = (offset + mean / 2)[typical]
    return out.reshape(-1, tests)


def pair_bootstrap_paths(
    points: Float32Array,
    table: Float32Array,
    streams: Int32Array,
    copies: Int32Array,
    windows: Int64Array,
    multipliers: Float32Array,
    neutral: Float32Array,
    offset: Float64Array,
    linear: Float32Array,
    typical: int,
) -> Array:
    """MMD paths of streams, each against the pseudo-references `copies[p]`, (P, m); (channels, P m, T).

    The last channels, one per window, are A - mean c at the width `typical` (none if it is -1).

    points (N, d), or the kernel matrix `table` (N, N) if it is not empty; neutral (widths, N) replaces the kernel of a
    point with itself; offset (widths, G) and linear (G, widths, N) are A^g and -2 c_j^g.
    """
    paths: list[Array] = []
    for stream, own in zip(streams, copies, strict=True):
        kernels = _stream_kernels(points, table, stream, multipliers)
        same = stream[:, None] == stream[None, :]
        np.fill_diagonal(same, False)
        kernels = np.where(same, neutral[:, stream][:, :, None], kernels)
        paths.extend(_pair_path(kernels, offset[:, g], linear[g][:, stream], windows, typical) for g in own)
    return np.stack(paths, axis=1).astype(np.float32)


def pair_bootstrap_loudest(
    points: Float32Array,
    table: Float32Array,
    streams: Int32Array,
    copies: Int32Array,
    windows: Int64Array,
    multipliers: Float32Array,
    neutral: Float32Array,
    offset: Float64Array,
    linear: Float32Array,
    typical: int,
    rows: Int64Array,
    signs: Float64Array,
    centre: Float64Array,
    scale: Float64Array,
    ties: Float64Array,
    grid: float,
    origin: float,
) -> Float64Array:
    """`loudest` of the channels signs[k] times row rows[k] of `pair_bootstrap_paths`; (P m, T)."""
    paths = pair_bootstrap_paths(
        points, table, streams, copies, windows, multipliers, neutral, offset, linear, typical
    )  # fmt: skip
    chosen = paths[rows] * signs[:, None, None].astype(np.float32)
    return loudest(chosen, centre, scale, ties, grid, origin)


def pair_bootstrap_passages(
    points: Float32Array,
    table: Float32Array,
    streams: Int32Array,
    windows: Int64Array,
    multipliers: Float32Array,
    neutral: Float32Array,
    offset: Float64Array,
    linear: Float32Array,
    mean_offset: Float64Array,
    mean_linear: Float32Array,
    typical: int,
    rows: Int64Array,
    signs: Float64Array,
    centre: Float64Array,
    scale: Float64Array,
    ties: Float64Array,
    levels: Float64Array,
    floors: Float64Array,
) -> tuple[Int64Array, float]:
    """The test at which each stream first exceeds its level against each pseudo-reference, T if it never does; (P, G).

    Paths are those of `pair_bootstrap_loudest`, with linear (N, widths, G) and its mean (1, widths, N). Only tests are
    looked at in which the path against that mean exceeds its floor; by how much it did at passages, at least.
    """

    def paths(offset: Float64Array, linear: Float32Array) -> Float64Array:
        copies = np.tile(np.arange(len(linear), dtype=np.int32), (len(streams), 1))
        found = pair_bootstrap_loudest(
            points, table, streams, copies, windows, multipliers, neutral, offset, linear, typical,
            rows, signs, centre, scale, ties, 0.0, 0.0,
        )  # fmt: skip
        return found.reshape(len(streams), -1, len(levels))

    above = paths(mean_offset, mean_linear) - floors
    passed = (paths(offset, linear.transpose(2, 1, 0)) > levels) & (above > 0)
    last = np.where(passed.any(2), passed.argmax(2), len(levels))
    found = np.take_along_axis(above[:, 0], np.minimum(last, len(levels) - 1), 1)[last < len(levels)]
    return last, float(found.min(initial=np.inf))


def pair_split_paths(
    points: Float32Array,
    table: Float32Array,
    streams: Int32Array,
    windows: Int64Array,
    multipliers: Float32Array,
    row_sums: Float64Array,
    typical: int,
) -> Array:
    """MMD paths of streams, each against the M = N - L reference points that are not in it; (channels, P, T)."""
    kept = row_sums.shape[1] - streams.shape[1]
    paths = []
    for stream in streams:
        kernels = _stream_kernels(points, table, stream, multipliers)
        across = row_sums[:, stream] - kernels.sum(2)
        among_kept = row_sums.sum(1) - 2 * across.sum(1) - kernels.sum((1, 2))
        paths.append(_pair_path(kernels, among_kept / (kept * (kept - 1)), -2 * across / kept, windows, typical))
    return np.stack(paths, axis=1).astype(np.float32)


def pair_advance(
    buffer: Float32Array,
    ahead: Float32Array,
    linear: Float64Array,
    cursor: Int64Array,
    windows: Int64Array,
    multipliers: Float32Array,
    offset: Float64Array,
    typical: int,
    rows: Int64Array,
    signs: Float64Array,
    block: Float32Array,
    block_linear: Float64Array,
    start: int,
    stop: int,
) -> Float64Array:
    """Append the columns start..stop of `block` to the recent points; each one's channels, (stop - start, channels).

    rows, signs: of each channel, as in `pair_bootstrap_loudest`.

    buffer (d, capacity + padding) holds recent points up to column `cursor[0]`; ahead[w, i] is the sum of k_w between
    point i and those after it; linear[w, i] is -2 c(x_i). When the buffer is full its tail moves to the front.
    """
    widest, capacity = int(windows[-1]), ahead.shape[1]
    out = np.empty((stop - start, len(rows)))
    found = np.empty((len(multipliers) + (typical >= 0)) * len(windows))
    position = cursor[0]
    for i in range(start, stop):
        if position == capacity:
            for array in (buffer, ahead, linear):
                array[:, : widest - 1] = array[:, capacity - widest + 1 : capacity].copy()
            position = widest - 1
        recent = slice(max(0, position - widest + 1), position)
        buffer[:, position] = block[:, i]
        ahead[:, recent] += _gaussian(buffer[:, recent].T, block[:, i : i + 1].T, multipliers)[:, :, 0]
        ahead[:, position] = 0
        linear[:, position] = block_linear[:, i]
        position += 1
        for v, window in enumerate(windows):
            inside = slice(max(0, position - window), position)
            pairs = 2 * ahead[:, inside].sum(1, dtype=np.float64) / (window * (window - 1))
            mean = linear[:, inside].mean(1)
            value = offset + pairs + mean
            if typical >= 0:
                value = np.append(value, (offset + mean / 2)[typical])
            found[v :: len(windows)] = value if position >= window else np.nan
        out[i - start] = signs * found[rows]
    cursor[0] = position
    return out


def pair_step(
    points: Float32Array,
    count: int,
    centre: Float64Array,
    scale: float,
    multipliers: Float32Array,
    weights: Float32Array,
    windows: Int64Array,
    offset: Float64Array,
    typical: int,
    rows: Int64Array,
    signs: Float64Array,
    query: Float64Array,
    buffer: Float32Array,
    ahead: Float32Array,
    linear: Float64Array,
    cursor: Int64Array,
    out: Float64Array,
) -> None:
    """`gaussian_observe` and `pair_advance` of one new point, (1, d); its channels are left in `out`, (1, channels)."""
    stranger = np.array([-1])
    observed = gaussian_observe(points, count, query, centre, scale, stranger, 0, multipliers, weights)
    state = buffer, ahead, linear, cursor
    out[...] = pair_advance(*state, windows, multipliers, offset, typical, rows, signs, *observed, 0, 1)


def pair_step_lacking(
    points: Float32Array,
    count: int,
    centre: Float64Array,
    scale: float,
    multipliers: Float32Array,
    weights: Float32Array,
    windows: Int64Array,
    offset: Float64Array,
    typical: int,
    rows: Int64Array,
    signs: Float64Array,
    query: Float64Array,
    gone: Float32Array,
    size: int,
    own: float,
    leaving: float,
    moved: Float64Array,
    buffer: Float32Array,
    ahead: Float32Array,
    linear: Float64Array,
    cursor: Int64Array,
    out: Float64Array,
) -> None:
    """`pair_step` of a young run, whose reference lacks points; see `_statistics.without`.

    gone: those points, (d, size + padding).  own, leaving, moved: what -2 c of the new point counts for, and the sums
    of its kernels with `gone`; and what is added, at each width.
    """
    stranger = np.array([-1])
    block, means = gaussian_observe(points, count, query, centre, scale, stranger, 0, multipliers, weights)
    none = np.empty((0, 0), np.float32)
    kernels = gaussian_row_sums(gone, size, block, stranger, 0, multipliers, none)
    means = own * means + leaving * kernels + moved[:, None]
    state = buffer, ahead, linear, cursor
    out[...] = pair_advance(*state, windows, multipliers, offset, typical, rows, signs, block, means, 0, 1)


def pair_bank_step(
    buffer: Float32Array,
    ahead: Float32Array,
    linear: Float64Array,
    position: Int64Array,
    filled: Int64Array,
    windows: Int64Array,
    multipliers: Float32Array,
    offset: Float64Array,
    typical: int,
    rows: Int64Array,
    signs: Float64Array,
    chosen: Int64Array,
    start: int,
    stop: int,
    block: Float32Array,
    block_linear: Float64Array,
) -> Float64Array:
    """`pair_advance` of many streams by one point each: column q of `block` enters the windows of stream chosen[q].

    Every stream has a ring of W = max(windows) places: buffer (S, d, W + padding), ahead and linear (S, widths, W);
    position (S,): the place of the oldest point, which the new one takes; filled (S,): points that are there.
    Returns the channels of the streams chosen[start:stop]; (stop - start, channels).
    """
    widest = int(windows[-1])
    out = np.empty((stop - start, len(rows)))
    for q in range(start, stop):
        s, found = chosen[q], np.full((len(multipliers) + (typical >= 0)) * len(windows), np.nan)
        place, points = position[s], buffer[s, :, :widest]
        ahead[s] += _gaussian(points.T, block[:, q : q + 1].T, multipliers)[:, :, 0]
        ahead[s, :, place], linear[s, :, place], points[:, place] = 0, block_linear[:, q], block[:, q]
        position[s], filled[s] = (place + 1) % widest, min(filled[s] + 1, widest)
        for v, window in enumerate(windows):
            if filled[s] >= window:
                inside = (place - np.arange(window)) % widest
                pairs = 2 * ahead[s][:, inside].sum(1, dtype=np.float64) / (window * (window - 1))
                mean = linear[s][:, inside].mean(1)
                value = offset + pairs + mean
                if typical >= 0:
                    value = np.append(value, (offset + mean / 2)[typical])
                found[v :: len(windows)] = value
        out[q - start] = signs * found[rows]
    return out


def pair_sums(
    windows: Float32Array,
    sizes: Int64Array,
    multipliers: Float32Array,
    which: Int64Array,
    columns: Int64Array,
    block: Float32Array,
) -> Float64Array:
    """Sums of kernels of columns[q] of `block` and the first sizes[which[q]] points of windows[which[q]]; (widths, n).

    windows (S, d, W + padding), sizes (S,).
    """
    out = np.empty((len(multipliers), len(which)))
    for q, (s, column) in enumerate(zip(which, columns, strict=True)):
        points = windows[s, :, : sizes[s]]
        out[:, q] = _gaussian(points.T, block[:, column : column + 1].T, multipliers)[:, :, 0].sum(1)
    return out


def pair_keys_advance(
    points: Float32Array,
    sums: Float32Array,
    filled: Int64Array,
    windows: Int64Array,
    multipliers: Float32Array,
    offset: Float64Array,
    typical: int,
    rows: Int64Array,
    signs: Float64Array,
    chosen: Int64Array,
    first: Int64Array,
    last: Int64Array,
    start: int,
    stop: int,
    block: Float32Array,
    block_linear: Float64Array,
) -> Float64Array:
    """`pair_advance` of many keys, each by its own columns of `block`: first[q] to last[q] for the key chosen[q].

    What is kept of a key is its last W = max(windows) points, the newest in the last place: points (K, d, W), their
    -2 c(x) as sums (K, widths, W), and filled (K,): how many are there. Nothing is written: see `pair_keys_take`.
    Returns the channels of the keys chosen[start:stop], one key after the other.
    """
    widest, widths = int(windows[-1]), len(multipliers)
    pieces = [np.empty((0, len(rows)))]
    for q in range(start, stop):
        k, capacity = chosen[q], 4 * widest
        old = min(int(filled[k]), widest - 1)
        buffer, ahead = (np.zeros((size, capacity), np.float32) for size in (points.shape[1], widths))
        linear, cursor, kept = np.zeros((widths, capacity)), np.zeros(1, np.int64), sums[k].astype(np.float64)
        live = partial(pair_advance, buffer, ahead, linear, cursor, windows, multipliers, offset, typical, rows, signs)
        live(points[k], kept, widest - old, widest)
        pieces.append(live(block, block_linear, int(first[q]), int(last[q])))
    return np.concatenate(pieces)


def pair_keys_take(
    points: Float32Array,
    sums: Float32Array,
    filled: Int64Array,
    chosen: Int64Array,
    first: Int64Array,
    last: Int64Array,
    block: Float32Array,
    block_linear: Float64Array,
) -> None:
    """Let the columns first[q] to last[q] of `block` enter what is kept of the key chosen[q]."""
    widest = points.shape[2]
    for k, begin, end in zip(chosen, first, last, strict=True):
        points[k] = np.concatenate([points[k], block[:, begin:end]], axis=1)[:, -widest:]
        sums[k] = np.concatenate([sums[k], block_linear[:, begin:end]], axis=1)[:, -widest:]
        filled[k] = min(filled[k] + end - begin, widest)


def bumps(points: Float64Array, centres: Float64Array, width: float, factor: Float64Array) -> Float64Array:
    """exp(-|x - c_j|^2 / (2 width^2)) for every centre, times the factor; (n, m). Rows do not depend on each other."""
    out = np.empty((len(points), factor.shape[1]))
    for i, point in enumerate(points):
        with np.errstate(over="ignore"):
            squares = ((point - centres) ** 2).sum(1)
        out[i] = np.exp(-squares / (2 * width**2)) @ factor
    return out


def mean_distances(
    values: Float64Array, places: Int64Array, others: Float64Array, other_places: Int64Array
) -> Float64Array:
    """|mean of values[places[i]] - mean of others[other_places[i]]|^2 for every row i; (n,)."""
    pairs = zip(places, other_places, strict=True)
    return np.array([((values[here].mean(0) - others[there].mean(0)) ** 2).sum() for here, there in pairs])


def feature_bootstrap_paths(
    features: Float64Array,
    streams: Int32Array,
    copies: Int32Array,
    windows: Int64Array,
    excess: Float64Array,
    offset: Float64Array,
    linear: Float64Array,
    quadratic: float,
) -> Array:
    """offset[g] + quadratic |mean feature of the window|^2 + mean linear[g], a point drawn twice never meeting itself.

    excess (N,): what to add to the product of a point's feature with itself to make it neutral.
    copies (P, m): the pseudo-references g that each stream meets. (windows, P m, T).
    """
    widest, tests = int(windows[-1]), streams.shape[1] - int(windows[-1]) + 1
    out = np.empty((len(windows), *copies.shape, tests))
    for p, (stream, own) in enumerate(zip(streams, copies, strict=True)):
        for v, window in enumerate(windows):
            for test in range(tests):
                inside = stream[test + widest - window : test + widest]
                same = inside[:, None] == inside[None, :]
                np.fill_diagonal(same, False)
                repeats = (same * excess[inside]).sum()
                square = (features[inside].mean(0) ** 2).sum() + repeats / window**2
                out[v, p, :, test] = offset[own] + quadratic * square + linear[own][:, inside].mean(1)
    return out.reshape(len(windows), -1, tests).astype(np.float32)


def feature_split_paths(features: Float64Array, streams: Int32Array, windows: Int64Array, signed: bool) -> Array:
    """|window's mean - mean of the points outside the stream|^2, or the difference itself (signed); (windows, P, T)."""
    widest, tests = int(windows[-1]), streams.shape[1] - int(windows[-1]) + 1
    out = np.empty((len(windows), len(streams), tests))
    for p, stream in enumerate(streams):
        kept = np.delete(features, stream, axis=0).mean(0)
        for v, window in enumerate(windows):
            for test in range(tests):
                difference = features[stream[test + widest - window : test + widest]].mean(0) - kept
                out[v, p, test] = difference.sum() if signed else (difference**2).sum()
    return out.astype(np.float32)


def feature_advance(
    buffer: Float64Array,
    linear: Float64Array,
    tails: Float64Array,
    fresh: Float64Array,
    age: Int64Array,
    cursor: Int64Array,
    windows: Int64Array,
    quadratic: float,
    block: Float64Array,
    block_linear: Float64Array,
    start: int,
    stop: int,
    out: Float64Array,
) -> None:
    """As `pair_advance`, for features: buffer (capacity, m), linear (capacity,).

    The sum over window v is tails[v, age[v]] + fresh[v]: fresh[v] is the sum of the newest age[v] points, and
    tails[v, a] that of the window - a points before them, summed anew when all of them have left. Nothing is ever
    subtracted, so neither time nor an outlier leaves a trace.
    """
    capacity, widest = len(buffer), int(windows[-1])
    position = cursor[0]
    for i in range(start, stop):
        if position == capacity:
            buffer[: widest - 1] = buffer[capacity - widest + 1 :].copy()
            linear[: widest - 1] = linear[capacity - widest + 1 :].copy()
            position = widest - 1
        buffer[position], linear[position] = block[i], block_linear[i]
        position += 1
        for v, window in enumerate(windows):
            age[v] += 1
            fresh[v] += block[i]
            inside = slice(max(0, position - window), position)
            if age[v] == window:
                age[v], fresh[v], tails[v, window] = 0, 0, 0
                tails[v, :window] = np.cumsum(buffer[inside][::-1], axis=0)[::-1]
            total = tails[v, age[v]] + fresh[v]
            value = quadratic * (total**2).sum() / window**2 + linear[inside].mean()
            out[i - start, v] = value if position >= window else np.nan
    cursor[0] = position


def loudest(
    channels: Float32Array, centre: Float64Array, scale: Float64Array, ties: Float64Array, grid: float, origin: float
) -> Float64Array:
    """max_k (S^k - centre_k) / scale_k, from (K, P m, T), plus `ties` (P, T) of each m paths in a row; (P m, T).

    grid, origin: the maximum is first put on a grid of this width that has a line at `origin`; 0 for none.
    """
    scores = ((channels - centre[:, None, None]) / scale[:, None, None]).max(0)
    if grid:
        scores = np.round((scores - origin) / grid) * grid + origin
    return np.asarray(scores + np.repeat(ties, channels.shape[1] // len(ties), axis=0))


def decide(
    values: Float64Array,
    coins: Float64Array,
    tests: Int64Array,
    centre: Float64Array,
    scale: Float64Array,
    tie: float,
    grid: float,
    origin: float,
    thresholds: Float64Array,
) -> tuple[Float64Array, Float64Array, Int64Array]:
    """The alarm rule: statistic, threshold and loudest channel of tests, from channels (n, K); each (n,).

    The statistic is max_k (S^k - centre_k) / scale_k, put on the grid as in `loudest`, plus what the coin adds; a
    channel that is NaN speaks before all others.
    tests: numbers of the tests, (n,) or one for all. Those below 0 are not made: NaN.  thresholds: of the first,
    second, ... test; the last one holds from then on.
    """
    scores = (values - centre) / scale
    loudest = scores.argmax(1)
    best = scores[np.arange(len(scores)), loudest]
    if grid:
        best = np.round((best - origin) / grid) * grid + origin
    made = np.broadcast_to(tests >= 0, len(scores))
    limits = thresholds[np.clip(tests, 0, len(thresholds) - 1)]
    return np.where(made, best + tie * coins, np.nan), np.where(made, limits, np.nan), loudest


def judge(
    values: Float64Array,
    seed: np.uint64,
    stream: UInt64Array,
    run: Int64Array,
    time: Int64Array,
    untested: int,
    centre: Float64Array,
    scale: Float64Array,
    tie: float,
    grid: float,
    origin: float,
    thresholds: Float64Array,
) -> tuple[Float64Array, Float64Array, Int64Array]:
    """`decide` of observations at these times of their runs, with `coins`; the first `untested` of a run come before
    its test 0."""
    drawn = host.coins(seed, stream, run, time)
    return decide(values, drawn, time - untested, centre, scale, tie, grid, origin, thresholds)


def judge_one(
    values: Float64Array,
    seed: np.uint64,
    run: int,
    time: int,
    untested: int,
    centre: Float64Array,
    scale: Float64Array,
    tie: float,
    grid: float,
    origin: float,
    thresholds: Float64Array,
) -> tuple[float, float, int]:
    """`judge` of one observation, (1, K), of the stream that a detector watches alone, number 0."""
    alone, law = np.zeros(1, np.uint64), (centre, scale, tie, grid, origin, thresholds)
    statistic, threshold, loudest = judge(values, seed, alone, np.array([run]), np.array([time]), untested, *law)
    return float(statistic[0]), float(threshold[0]), int(loudest[0])


def records(paths: Float64Array, edges: Int64Array, floors: Float64Array) -> tuple[Array, Array, Array, Array]:
    """Where each path reaches a new maximum within each stretch edges[b] <= test < edges[b + 1] that exceeds floors[b].

    Returns path, stretch, step (1 for the stretch's first test) and value of every record, path by path.
    """
    found: list[tuple[int, int, int, float]] = []
    for p, path in enumerate(paths):
        for b, (start, stop) in enumerate(pairwise(edges)):
            best = np.maximum.accumulate(path[start:stop])
            new = np.flatnonzero(np.concatenate([[True], best[1:] > best[:-1]]) & (best > floors[b]))
            found.extend((p, b, int(i) + 1, float(best[i])) for i in new)
    path, stretch, step, value = np.array(found, dtype=np.float64).reshape(-1, 4).T
    return path.astype(np.int32), stretch.astype(np.int32), step.astype(np.int32), value


def distinct_streams(uniforms: Float64Array, n: int) -> Int32Array:
    """Streams of distinct indices below n: the first cards of a deck shuffled by `uniforms`; (P, L)."""
    streams = np.empty(uniforms.shape, np.int32)
    deck = np.arange(n, dtype=np.int32)
    for p, row in enumerate(uniforms):
        for t, u in enumerate(row):
            other = t + int(u * (n - t))
            deck[t], deck[other] = deck[other], deck[t]
        streams[p] = deck[: len(row)]
    return streams


def distinct(device: str, rng: np.random.Generator, count: int, shape: tuple[int, int]) -> Int32Array:
    """Streams of distinct whole numbers below `count`, in random order."""
    return distinct_streams(rng.random(shape), count)
