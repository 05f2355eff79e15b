"""Hot functions of kernel statistics, compiled for the CPU. `numpy_` has the same ones in plain NumPy."""

from __future__ import annotations

import numpy as np

from tocsin.compute.arrays import FARTHEST, Float32Array, Float64Array, Int32Array, Int64Array
from tocsin.compute.jit import LANES, distance_strip, distance_tile, exact, float_of_bits, jit

STRIP = 4 * LANES
CHUNK = 8 * STRIP

SUMMED = 2048
"""Columns multiplied in float32 before the sum moves to float64."""


@exact
def exponential(x: np.float32) -> np.float32:
    """exp(x) for x <= 0 to 1e-7: powers of two by their bits, a polynomial for the rest; exp(-87) below -87."""
    if x < np.float32(-87.0):
        x = np.float32(-87.0)
    n = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
    # ln 2 in two parts, the first with few bits, so that the remainder is exact.
    r = x - n * np.float32(0.693359375)
    r = r + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + np.float32(1.0)
    scaled: np.float32 = p * float_of_bits((np.int32(n) + np.int32(127)) << np.int32(23))
    return scaled


@jit
def exponentials(x: Float32Array) -> Float32Array:
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = exponential(x[i])
    return out


# The loops below run over unsigned indices, which numba need not check for wrapping around, and take whole arrays
# with bounds instead of slices, which it would count references to: both matter more than the arithmetic.


@jit
def all_widths(squares: Float32Array, start: int, stop: int, multipliers: Float32Array, kernels: Float32Array) -> None:
    """kernels[w, start:stop] = exp(-multipliers[w] * squares[start:stop]).

    A multiplier of 0 stands for the fourth power of the width before.
    """
    for w in range(multipliers.size):
        multiplier = multipliers[w]
        if multiplier > 0:
            for j in range(np.uintp(start), np.uintp(stop)):
                kernels[w, j] = exponential(-multiplier * squares[j])
        else:
            for j in range(np.uintp(start), np.uintp(stop)):
                square = kernels[w - 1, j] * kernels[w - 1, j]
                kernels[w, j] = square * square


@jit
def total_of(values: Float32Array, row: int, start: int, stop: int) -> float:
    total = 0.0
    for j in range(np.uintp(start), np.uintp(stop)):
        total += np.float64(values[row, j])
    return total


@jit
def _weighted_total(values: Float32Array, weights: Float32Array, row: int, start: int, size: int) -> float:
    total = 0.0
    first = np.uintp(start)
    for j in range(np.uintp(size)):
        total += np.float64(values[row, j] * weights[row, first + j])
    return total


@jit
def _leave_out(kernels: Float32Array, start: int, stop: int, size: int) -> None:
    for w in range(kernels.shape[0]):
        for j in range(max(start, 0), min(stop, size)):
            kernels[w, j] = 0


@jit
def _row_sums(
    points: Float32Array,
    count: int,
    queries: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
    weights: Float32Array,
) -> Float64Array:
    n = queries.shape[1]
    sums = np.zeros((multipliers.size, n))
    squares = np.empty(CHUNK, np.float32)
    kernels = np.empty((multipliers.size, CHUNK), np.float32)
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        for q in range(n):
            for j in range(0, size, STRIP):
                distance_strip(points, start + j, queries, q, squares, 0, j)
            all_widths(squares, 0, size, multipliers, kernels)
            if own[q] >= 0:
                _leave_out(kernels, own[q] - guard - start, own[q] + guard + 1 - start, size)
            for w in range(multipliers.size):
                if weights.size:
                    sums[w, q] += _weighted_total(kernels, weights, w, start, size)
                else:
                    sums[w, q] += total_of(kernels, w, 0, size)
    return sums


@jit
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
    block = np.empty((d, n), np.float32)
    for i in range(n):
        for k in range(d):
            block[k, i] = min(max((queries[i, k] - centre[k]) * scale, -FARTHEST), FARTHEST)
    linear = _row_sums(points, count, block, own, guard, multipliers, weights)
    for i in range(n):
        met = 1 if weights.size else count
        if own[i] >= 0 and not weights.size:
            met -= min(own[i] + guard, count - 1) - max(own[i] - guard, 0) + 1
        for w in range(multipliers.size):
            linear[w, i] *= -2.0 / met
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
    return _row_sums(points, count, np.ascontiguousarray(queries), own, guard, multipliers, weights)


def gaussian_products(
    points: Float32Array,
    count: int,
    queries: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
    weights: Float32Array,
) -> Float64Array:
    queries = np.ascontiguousarray(queries)
    total = np.zeros((multipliers.size, queries.shape[1], weights.shape[1]))
    for first in range(0, count, SUMMED):
        last = min(first + SUMMED, count)
        total += gaussian_block(points, first, last, queries, own, guard, multipliers) @ weights[first:last]
    return total


@jit
def gaussian_block(
    points: Float32Array,
    start: int,
    stop: int,
    queries: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
) -> Float32Array:
    n, size = queries.shape[1], stop - start
    block = np.empty((multipliers.size, n, size), np.float32)
    squares = np.empty(size + STRIP, np.float32)
    kernels = np.empty((multipliers.size, size), np.float32)
    for q in range(n):
        for j in range(0, size, STRIP):
            distance_strip(points, start + j, queries, q, squares, 0, j)
        all_widths(squares, 0, size, multipliers, kernels)
        if own[q] >= 0:
            _leave_out(kernels, own[q] - guard - start, own[q] + guard + 1 - start, size)
        for w in range(multipliers.size):
            block[w, q] = kernels[w]
    return block


@jit
def _add_row(kernels: Float32Array, first: int, ahead: Float32Array, w: int, low: int, t: int) -> None:
    """Add the kernels of point t with points low..t to their `ahead`."""
    start, begin = np.uintp(first), np.uintp(low)
    for i in range(np.uintp(t - low)):
        ahead[w, begin + i] += kernels[w, start + i]


@jit
def _repeats(stream: Int32Array, low: int, t: int) -> int:
    """How often point t is among points low..t."""
    own, count = stream[t], 0
    for j in range(np.uintp(low), np.uintp(t)):
        count += stream[j] == own
    return count


@jit
def _window_pairs(
    points: Float32Array,
    table: Float32Array,
    stream: Int32Array,
    windows: Int64Array,
    multipliers: Float32Array,
    neutral: Float32Array,
    reach: int,
    gathered: Float32Array,
    squares: Float32Array,
    kernels: Float32Array,
    ahead: Float32Array,
    within: Float64Array,
    pairs: Float64Array,
) -> None:
    """pairs[w, v, test] = sum of k over the pairs of each window.

    A pair enters ahead[i] once, when its later point arrives, so a window's sum is that of its points' `ahead`,
    whatever the window: all windows share one pass, and nothing is ever subtracted. Rows are taken four at a time, end
    to end, so that loops are long enough to fill vectors. Where `within` is not empty, all pairs of the stream are
    computed, and it gets each point's sum of kernels with all others.
    """
    length, widest, widths = stream.size, windows[-1], multipliers.size
    tabulated, whole = table.size > 0, within.size > 0
    for t in range(length):
        for k in range(points.shape[1]):
            gathered[k, t] = points[stream[t], k]
    ahead[:] = 0
    within[:] = 0
    for block in range(0, length, 4):
        base = max(0, block - reach + 1)
        across = (block + 3 - base + LANES - 1) // LANES * LANES
        if not tabulated:
            for j in range(0, across, LANES):
                distance_tile(gathered, base + j, gathered, block, squares, across, j)
            all_widths(squares, 0, 4 * across, multipliers, kernels)
        for row in range(min(4, length - block)):
            t = block + row
            low = max(0, t - reach + 1)
            first = row * across + low - base
            if tabulated:
                for j in range(low, t):
                    kernels[0, first + j - low] = table[stream[t], stream[j]]
            if not whole and _repeats(stream, low, t):
                for j in range(low, t):
                    if stream[j] == stream[t]:
                        kernels[:, first + j - low] = neutral[:, stream[t]]
            for w in range(widths):
                _add_row(kernels, first, ahead, w, low, t)
                if whole:
                    within[w, t] += total_of(kernels, w, first, first + t)
                    for j in range(np.uintp(t)):
                        within[w, j] += np.float64(kernels[w, np.uintp(first) + j])
                if t >= widest - 1:
                    total, end = 0.0, t
                    for v in range(windows.size):
                        begin = t - windows[v] + 1
                        total += total_of(ahead, w, begin, end)
                        pairs[w, v, t - widest + 1] = 2 * total
                        end = begin


@jit
def _combine(
    pairs: Float64Array,
    windows: Int64Array,
    offset: float,
    linear: Float64Array,
    w: int,
    typical: int,
    out: Float32Array,
) -> None:
    """Rows of width w: offset + pairs / (W (W - 1)) + the window's mean of `linear`, which holds running sums from 0.

    For the width `typical` also offset + mean / 2, in the rows after those of all widths.
    """
    widest = windows[-1]
    for v in range(windows.size):
        window = windows[v]
        for test in range(out.shape[1]):
            end = test + widest
            mean = (linear[end] - linear[end - window]) / window
            out[w * windows.size + v, test] = offset + pairs[w, v, test] / (window * (window - 1)) + mean
            if w == typical:
                out[pairs.shape[0] * windows.size + v, test] = offset + mean / 2


@jit
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
) -> Float32Array:
    (count, length), widths, widest = streams.shape, multipliers.size, windows[-1]
    gathered = np.zeros((points.shape[1], length + STRIP), np.float32)
    squares = np.empty(4 * (widest + STRIP), np.float32)
    kernels = np.empty((widths, squares.size), np.float32)
    ahead = np.empty((widths, length), np.float32)
    within, running = np.empty((widths, 0)), np.zeros(length + 1)
    pairs = np.empty((widths, windows.size, length - widest + 1))
    against = copies.shape[1]
    out = np.empty(((widths + (typical >= 0)) * windows.size, count * against, length - widest + 1), np.float32)
    for p in range(count):
        stream = streams[p]
        _window_pairs(
            points, table, stream, windows, multipliers, neutral, widest,
            gathered, squares, kernels, ahead, within, pairs,
        )  # fmt: skip
        for i in range(against):
            g = copies[p, i]
            for w in range(widths):
                terms = linear[g, w]
                for t in range(length):
                    running[t + 1] = running[t] + terms[stream[t]]
                _combine(pairs, windows, offset[w, g], running, w, typical, out[:, p * against + i])
    return out


@jit
def pair_split_paths(
    points: Float32Array,
    table: Float32Array,
    streams: Int32Array,
    windows: Int64Array,
    multipliers: Float32Array,
    row_sums: Float64Array,
    typical: int,
) -> Float32Array:
    (count, length), widths, widest = streams.shape, multipliers.size, windows[-1]
    kept = row_sums.shape[1] - length
    gathered = np.zeros((points.shape[1], length + STRIP), np.float32)
    squares = np.empty(4 * (length + STRIP), np.float32)
    kernels = np.empty((widths, squares.size), np.float32)
    ahead = np.empty((widths, length), np.float32)
    within, running = np.empty((widths, length)), np.zeros(length + 1)
    pairs = np.empty((widths, windows.size, length - widest + 1))
    out = np.empty(((widths + (typical >= 0)) * windows.size, count, length - widest + 1), np.float32)
    neutral = np.zeros((widths, row_sums.shape[1]), np.float32)
    for p in range(count):
        stream = streams[p]
        _window_pairs(
            points, table, stream, windows, multipliers, neutral, length,
            gathered, squares, kernels, ahead, within, pairs,
        )  # fmt: skip
        for w in range(widths):
            among_kept = np.sum(row_sums[w])
            for t in range(length):
                across = row_sums[w, stream[t]] - within[w, t]
                running[t + 1] = running[t] - 2 * across / kept
                among_kept -= 2 * across + within[w, t]
            offset = among_kept / (kept * (kept - 1.0))
            _combine(pairs, windows, offset, running, w, typical, out[:, p])
    return out
