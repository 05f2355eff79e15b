"""A live stream of a kernel statistic, compiled for the CPU: points are compared with the reference, and enter windows.

One compiled function does both, so that a single observation is one call. Those that need half of it leave it nothing
to do in the other half: compiled by itself as well, each would take the time that a first fit waits for twice.
"""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import FARTHEST, Float32Array, Float64Array, Int64Array
from tocsin._compute.jit import inlined, jit
from tocsin._compute.numba_pairs import CHUNK, STRIP, all_widths, leave_out, row_total, total_of, weighted_total
from tocsin._compute.tiles import distance_strip

NO_POINTS, NO_QUERIES = np.empty((0, 0), np.float32), np.empty((0, 0))
NO_NUMBERS, NO_PLACES = np.empty(0), np.empty(0, np.int64)


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
    n, d = queries.shape
    block, linear = np.empty((d, n), np.float32), np.empty((multipliers.size, n))
    _compare_alone(points, count, centre, scale, multipliers, weights, queries, own, guard, block, linear)
    return block, linear


def gaussian_row_sums(
    points: Float32Array,
    count: int,
    queries: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
    weights: Float32Array,
) -> Float64Array:
    block, sums = np.ascontiguousarray(queries), np.empty((multipliers.size, queries.shape[1]))
    _compare_alone(points, count, NO_NUMBERS, 1.0, multipliers, weights, NO_QUERIES, own, guard, block, sums)
    return sums


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
    out = np.empty((stop - start, rows.size))
    _step(
        NO_POINTS, 0, NO_NUMBERS, 1.0, multipliers, NO_POINTS, windows, offset, typical, rows, signs,
        NO_QUERIES, NO_PLACES, 0, block, block_linear, buffer, ahead, linear, cursor, start, stop, out,
    )  # fmt: skip
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
    _step(
        points, count, centre, scale, multipliers, weights, windows, offset, typical, rows, signs,
        query, NO_PLACES, 0, NO_POINTS, NO_QUERIES, buffer, ahead, linear, cursor, 0, 1, out,
    )  # fmt: skip


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
    widths = multipliers.size
    block, sums, kernels = np.empty((query.shape[1], 1), np.float32), np.empty((widths, 1)), np.zeros((widths, 1))
    _compare_alone(points, count, centre, scale, multipliers, weights, query, NO_PLACES, 0, block, sums)
    _compare_alone(gone, size, NO_NUMBERS, 1.0, multipliers, NO_POINTS, NO_QUERIES, NO_PLACES, 0, block, kernels)
    sums = own * sums + leaving * kernels + moved[:, None]
    _step(
        NO_POINTS, 0, NO_NUMBERS, 1.0, multipliers, NO_POINTS, windows, offset, typical, rows, signs,
        NO_QUERIES, NO_PLACES, 0, block, sums, buffer, ahead, linear, cursor, 0, 1, out,
    )  # fmt: skip


def _compare_alone(
    points: Float32Array,
    count: int,
    centre: Float64Array,
    scale: float,
    multipliers: Float32Array,
    weights: Float32Array,
    queries: Float64Array,
    own: Int64Array,
    guard: int,
    block: Float32Array,
    sums: Float64Array,
) -> None:
    _step(
        points, count, centre, scale, multipliers, weights, NO_PLACES, NO_NUMBERS, -1, NO_PLACES, NO_NUMBERS,
        queries, own, guard, block, sums, NO_POINTS, NO_POINTS, NO_QUERIES, NO_PLACES, 0, 0, NO_QUERIES,
    )  # fmt: skip


@inlined
def _compare(
    points: Float32Array,
    count: int,
    centre: Float64Array,
    scale: float,
    multipliers: Float32Array,
    weights: Float32Array,
    queries: Float64Array,
    own: Int64Array,
    guard: int,
    block: Float32Array,
    sums: Float64Array,
) -> None:
    """The sums of kernels of points and block, (d, n); or, where there are queries, scale them into the block,
    and make means times -2 of the sums.  own: none, if the queries are strangers."""
    kernels = np.empty((multipliers.size + 1, CHUNK), np.float32)
    for i in range(queries.shape[0]):
        for k in range(block.shape[0]):
            block[k, i] = min(max((queries[i, k] - centre[k]) * scale, -FARTHEST), FARTHEST)
    for w in range(multipliers.size):
        for q in range(block.shape[1]):
            sums[w, q] = 0.0
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        for q in range(block.shape[1]):
            for j in range(0, size, STRIP):
                distance_strip(points, start + j, block, q, kernels, 0, j)
            all_widths(kernels, size, multipliers)
            if own.size and own[q] >= 0:
                leave_out(kernels, own[q] - guard - start, own[q] + guard + 1 - start, size)
            for w in range(multipliers.size):
                if weights.size:
                    sums[w, q] += weighted_total(kernels, weights, w, start, size)
                else:
                    sums[w, q] += row_total(kernels, w, size)
    for i in range(queries.shape[0]):
        met = 1 if weights.size else count
        if own.size and own[i] >= 0 and not weights.size:
            met -= min(own[i] + guard, count - 1) - max(own[i] - guard, 0) + 1
        for w in range(multipliers.size):
            sums[w, i] *= -2.0 / met


@inlined
def entered(
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
    out: Float64Array,
    origin: int,
) -> None:
    """`pair_advance`, with row i - origin of `out` for point i."""
    widths, widest, capacity = multipliers.size, windows[-1], ahead.shape[1]
    kernels = np.empty((widths + 1, widest + STRIP), np.float32)
    found = np.empty((widths + 1) * windows.size)
    position = cursor[0]
    for i in range(start, stop):
        if position == capacity:
            position = widest - 1
            kept, gone = np.uintp(position), np.uintp(capacity - position)
            for k in range(buffer.shape[0]):
                for j in range(kept):
                    buffer[k, j] = buffer[k, gone + j]
            for w in range(widths):
                for j in range(kept):
                    ahead[w, j] = ahead[w, gone + j]
                    linear[w, j] = linear[w, gone + j]
        t = position
        low = max(0, t - widest + 1)
        for k in range(buffer.shape[0]):
            buffer[k, t] = block[k, i]
        for j in range(low, t, STRIP):
            distance_strip(buffer, j, buffer, t, kernels, 0, j - low)
        all_widths(kernels, t - low, multipliers)
        for w in range(widths):
            for j in range(np.uintp(t - low)):
                ahead[w, np.uintp(low) + j] += kernels[w + 1, j]
            ahead[w, t] = 0
            linear[w, t] = block_linear[w, i]
            first, pairs, mean, end = w * windows.size, 0.0, linear[w, t], t
            for v in range(windows.size):
                begin = t - windows[v] + 1
                if begin < 0:
                    found[first + v] = np.nan
                    if w == typical:
                        found[widths * windows.size + v] = np.nan
                    continue
                pairs += total_of(ahead, w, begin, end)
                for j in range(np.uintp(begin), np.uintp(end)):
                    mean += linear[w, j]
                window = windows[v]
                found[first + v] = offset[w] + 2 * pairs / (window * (window - 1)) + mean / window
                if w == typical:
                    found[widths * windows.size + v] = offset[w] + mean / window / 2
                end = begin
        for c in range(rows.size):
            out[i - origin, c] = signs[c] * found[rows[c]]
        position += 1
    cursor[0] = position


@jit
def _step(
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
    queries: Float64Array,
    own: Int64Array,
    guard: int,
    block: Float32Array,
    sums: Float64Array,
    buffer: Float32Array,
    ahead: Float32Array,
    linear: Float64Array,
    cursor: Int64Array,
    start: int,
    stop: int,
    out: Float64Array,
) -> None:
    """`_compare` with `count` points, if there are any, and let the block's points from start to stop enter.

    block, sums: made here, where they have no entries.
    """
    if block.size == 0:
        n, d = queries.shape
        block, sums = np.empty((d, n), np.float32), np.empty((multipliers.size, n))
    if count:
        _compare(points, count, centre, scale, multipliers, weights, queries, own, guard, block, sums)
    if start < stop:
        entered(
            buffer, ahead, linear, cursor, windows, multipliers, offset, typical, rows, signs, block, sums,
            start, stop, out, start,
        )  # fmt: skip
