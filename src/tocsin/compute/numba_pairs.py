"""Hot functions of kernel statistics, compiled for the CPU. `numpy_` has the same ones in plain NumPy."""

from __future__ import annotations

import numpy as np

from tocsin.compute.arrays import FARTHEST, Float32Array, Float64Array, Int32Array, Int64Array
from tocsin.compute.jit import LANES, distance_strip, distance_tile, exact, float_of_bits, jit

Whole = int | np.signedinteger
"""A number of places, as Python has it or as an array holds it."""

STRIP = 4 * LANES
CHUNK = 8 * STRIP

SUMMED = 2048
"""Columns multiplied in float32 before the sum moves to float64."""

NO_QUERIES, NO_CENTRE, NO_SUMS = np.empty((0, 0)), np.empty(0), np.empty((0, 0, 0))
NO_KERNELS, NO_TERMS = np.empty((0, 0), np.float32), np.empty((0, 0, 0), np.float32)


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
#
# Compiling them is what a first fit waits for. Hence answers are made outside, arrays are filled by loops (for
# assignments of arrays numba compiles what it might say about their shapes), and each function is compiled for one
# signature: an array without entries stands for one that is not needed, and no number is given as it is written, which
# would make it a type of its own.


@jit
def all_widths(kernels: Float32Array, size: Whole, multipliers: Float32Array) -> None:
    """kernels[w + 1, :size] = exp(-multipliers[w] * kernels[0, :size]); row 0 holds squared distances.

    A multiplier of 0 stands for the fourth power of the width before.
    """
    for w in range(multipliers.size):
        multiplier = multipliers[w]
        if multiplier > 0:
            for j in range(np.uintp(size)):
                kernels[w + 1, j] = exponential(-multiplier * kernels[0, j])
        else:
            for j in range(np.uintp(size)):
                square = kernels[w, j] * kernels[w, j]
                kernels[w + 1, j] = square * square


@jit
def total_of(values: Float32Array, row: Whole, start: Whole, stop: Whole) -> float:
    total = 0.0
    for j in range(np.uintp(start), np.uintp(stop)):
        total += np.float64(values[row, j])
    return total


@jit
def _row_total(kernels: Float32Array, w: int, size: int) -> float:
    total = 0.0
    for j in range(np.uintp(size)):
        total += np.float64(kernels[w + 1, j])
    return total


@jit
def _weighted_total(kernels: Float32Array, weights: Float32Array, w: int, start: int, size: int) -> float:
    total = 0.0
    first = np.uintp(start)
    for j in range(np.uintp(size)):
        total += np.float64(kernels[w + 1, j] * weights[w, first + j])
    return total


@jit
def _leave_out(kernels: Float32Array, start: int, stop: int, size: int) -> None:
    for w in range(1, kernels.shape[0]):
        for j in range(max(start, 0), min(stop, size)):
            kernels[w, j] = 0


@jit
def _observe(
    points: Float32Array,
    count: int,
    queries: Float64Array,
    centre: Float64Array,
    scale: float,
    block: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
    weights: Float32Array,
    sums: Float64Array,
) -> None:
    """Add the kernels of points and block, (d, n), to `sums`; or, where there are queries, scale them into the block,
    and make means times -2 of the sums."""
    n, kernels = block.shape[1], np.empty((multipliers.size + 1, CHUNK), np.float32)
    if queries.size:
        for i in range(n):
            for k in range(block.shape[0]):
                block[k, i] = min(max((queries[i, k] - centre[k]) * scale, -FARTHEST), FARTHEST)
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        for q in range(n):
            for j in range(0, size, STRIP):
                distance_strip(points, start + j, block, q, kernels, 0, j)
            all_widths(kernels, size, multipliers)
            if own[q] >= 0:
                _leave_out(kernels, own[q] - guard - start, own[q] + guard + 1 - start, size)
            for w in range(multipliers.size):
                if weights.size:
                    sums[w, q] += _weighted_total(kernels, weights, w, start, size)
                else:
                    sums[w, q] += _row_total(kernels, w, size)
    if queries.size:
        for i in range(n):
            met = 1 if weights.size else count
            if own[i] >= 0 and not weights.size:
                met -= min(own[i] + guard, count - 1) - max(own[i] - guard, 0) + 1
            for w in range(multipliers.size):
                sums[w, i] *= -2.0 / met


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
    block, linear = np.empty((d, n), np.float32), np.zeros((multipliers.size, n))
    _observe(points, count, queries, centre, scale, block, own, guard, multipliers, weights, linear)
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
    block, sums = np.ascontiguousarray(queries), np.zeros((multipliers.size, queries.shape[1]))
    _observe(points, count, NO_QUERIES, NO_CENTRE, 1.0, block, own, guard, multipliers, weights, sums)
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
    queries = np.ascontiguousarray(queries)
    total = np.zeros((multipliers.size, queries.shape[1], weights.shape[1]))
    for first in range(0, count, SUMMED):
        last = min(first + SUMMED, count)
        total += gaussian_block(points, first, last, queries, own, guard, multipliers) @ weights[first:last]
    return total


def gaussian_block(
    points: Float32Array,
    start: int,
    stop: int,
    queries: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
) -> Float32Array:
    block = np.empty((multipliers.size, queries.shape[1], stop - start), np.float32)
    _fill_block(points, start, stop, queries, own, guard, multipliers, block)
    return block


@jit
def _fill_block(
    points: Float32Array,
    start: int,
    stop: int,
    queries: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
    block: Float32Array,
) -> None:
    size = stop - start
    kernels = np.empty((multipliers.size + 1, size + STRIP), np.float32)
    for q in range(queries.shape[1]):
        for j in range(0, size, STRIP):
            distance_strip(points, start + j, queries, q, kernels, 0, j)
        all_widths(kernels, size, multipliers)
        if own[q] >= 0:
            _leave_out(kernels, own[q] - guard - start, own[q] + guard + 1 - start, size)
        for w in range(multipliers.size):
            for j in range(np.uintp(size)):
                block[w, q, j] = kernels[w + 1, j]


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
    pairs = _pairs(points, table, streams, windows, multipliers, neutral, int(windows[-1]), NO_SUMS)
    return _paths(pairs, streams, copies, windows, offset, linear, NO_SUMS, typical)


def pair_split_paths(
    points: Float32Array,
    table: Float32Array,
    streams: Int32Array,
    windows: Int64Array,
    multipliers: Float32Array,
    row_sums: Float64Array,
    typical: int,
) -> Float32Array:
    (count, length), widths = streams.shape, multipliers.size
    within = np.zeros((count, widths, length))
    pairs = _pairs(points, table, streams, windows, multipliers, NO_KERNELS, length, within)
    offset, running = np.empty((widths, count)), np.zeros((count, widths, length + 1))
    _left_out(streams, row_sums, within, offset, running)
    each = np.arange(count, dtype=np.int32)[:, None]
    return _paths(pairs, streams, each, windows, offset, NO_TERMS, running, typical)


def _pairs(
    points: Float32Array,
    table: Float32Array,
    streams: Int32Array,
    windows: Int64Array,
    multipliers: Float32Array,
    neutral: Float32Array,
    reach: int,
    within: Float64Array,
) -> Float64Array:
    count, length = streams.shape
    gathered = np.zeros((points.shape[1], length + STRIP), np.float32)
    pairs = np.empty((count, multipliers.size, windows.size, length - windows[-1] + 1))
    _window_pairs(points, table, streams, windows, multipliers, neutral, reach, gathered, within, pairs)
    return pairs


def _paths(
    pairs: Float64Array,
    streams: Int32Array,
    copies: Int32Array,
    windows: Int64Array,
    offset: Float64Array,
    linear: Float32Array,
    own: Float64Array,
    typical: int,
) -> Float32Array:
    (_, length), (_, widths, sizes, tests) = streams.shape, pairs.shape
    out = np.empty(((widths + (typical >= 0)) * sizes, copies.size, tests), np.float32)
    running = np.zeros(length + 1)
    _combine(pairs, streams, copies, windows, offset, linear, own, typical, running, out)
    return out


@jit
def _window_pairs(
    points: Float32Array,
    table: Float32Array,
    streams: Int32Array,
    windows: Int64Array,
    multipliers: Float32Array,
    neutral: Float32Array,
    reach: int,
    gathered: Float32Array,
    within: Float64Array,
    pairs: Float64Array,
) -> None:
    """pairs[p, w, v, test] = sum of k over the pairs of each window.

    A pair enters ahead[i] once, when its later point arrives, so a window's sum is that of its points' `ahead`,
    whatever the window: all windows share one pass, and nothing is ever subtracted. Rows are taken four at a time, end
    to end, so that loops are long enough to fill vectors. Where `within` is not empty, all pairs of a stream are
    computed, and each point's sum of kernels with all others is added to it.
    """
    (count, length), widest, widths = streams.shape, windows[-1], multipliers.size
    tabulated, whole = table.size > 0, within.size > 0
    kernels = np.empty((widths + 1, 4 * (reach + STRIP)), np.float32)
    ahead = np.empty((widths, length), np.float32)
    for p in range(count):
        for t in range(length):
            for k in range(points.shape[1]):
                gathered[k, t] = points[streams[p, t], k]
            for w in range(widths):
                ahead[w, t] = 0
        for block in range(0, length, 4):
            base = max(0, block - reach + 1)
            across = (block + 3 - base + LANES - 1) // LANES * LANES
            if not tabulated:
                for j in range(0, across, LANES):
                    distance_tile(gathered, base + j, gathered, block, kernels, across, j)
                all_widths(kernels, 4 * across, multipliers)
            for row in range(min(4, length - block)):
                t = block + row
                low, own = max(0, t - reach + 1), streams[p, t]
                first = row * across + low - base
                if tabulated:
                    for j in range(low, t):
                        kernels[1, first + j - low] = table[own, streams[p, j]]
                if not whole and _repeats(streams, p, low, t):
                    for j in range(low, t):
                        if streams[p, j] == own:
                            for w in range(widths):
                                kernels[w + 1, first + j - low] = neutral[w, own]
                start, begin = np.uintp(first), np.uintp(low)
                for w in range(widths):
                    for i in range(np.uintp(t - low)):
                        ahead[w, begin + i] += kernels[w + 1, start + i]
                if whole:
                    for w in range(widths):
                        within[p, w, t] += total_of(kernels, w + 1, first, first + t)
                        for j in range(np.uintp(t)):
                            within[p, w, j] += np.float64(kernels[w + 1, start + j])
                if t >= widest - 1:
                    # In a loop of its own, by which time what was added has reached the cache.
                    for w in range(widths):
                        total, end = 0.0, t
                        for v in range(windows.size):
                            begin = t - windows[v] + 1
                            total += total_of(ahead, w, begin, end)
                            pairs[p, w, v, t - widest + 1] = 2 * total
                            end = begin


@jit
def _repeats(streams: Int32Array, p: int, low: int, t: int) -> int:
    """How often point t is among points low..t."""
    own, count = streams[p, t], 0
    for j in range(np.uintp(low), np.uintp(t)):
        count += streams[p, j] == own
    return count


@jit
def _left_out(
    streams: Int32Array, row_sums: Float64Array, within: Float64Array, offset: Float64Array, running: Float64Array
) -> None:
    """Of the points that a stream leaves out: their mean kernel, into `offset`; and running sums of -2 times the mean
    kernel that each point of the stream has with them, into running[:, :, 1:]."""
    (count, length), (widths, n) = streams.shape, row_sums.shape
    kept = n - length
    for p in range(count):
        for w in range(widths):
            among_kept = np.sum(row_sums[w])
            for t in range(length):
                across = row_sums[w, streams[p, t]] - within[p, w, t]
                running[p, w, t + 1] = running[p, w, t] - 2 * across / kept
                among_kept -= 2 * across + within[p, w, t]
            offset[w, p] = among_kept / (kept * (kept - 1.0))


@exact
def _combine(
    pairs: Float64Array,
    streams: Int32Array,
    copies: Int32Array,
    windows: Int64Array,
    offset: Float64Array,
    linear: Float32Array,
    own: Float64Array,
    typical: int,
    running: Float64Array,
    out: Float32Array,
) -> None:
    """offset + pairs / (W (W - 1)) + the window's mean of `linear`; for the width `typical` also offset + mean / 2, in
    the rows after those of all widths.

    offset (widths, G); linear (G, widths, N), or its running sums from 0 along the streams, own (P, widths, L + 1).
    running (L + 1,), which begins with 0, is to work with; `pairs` is divided.
    """
    (count, length), (_, widths, _, tests) = streams.shape, pairs.shape
    widest, against = windows[-1], copies.shape[1]
    for p in range(count):
        for w in range(widths):
            for v in range(windows.size):
                size = windows[v] * (windows[v] - 1)
                for test in range(np.uintp(tests)):
                    pairs[p, w, v, test] /= size
        for i in range(against):
            g, path = copies[p, i], p * against + i
            for w in range(widths):
                total, level = 0.0, offset[w, g]
                for t in range(length):
                    total = own[g, w, t + 1] if own.size else total + linear[g, w, streams[p, t]]
                    running[t + 1] = total
                for v in range(windows.size):
                    window, row = windows[v], w * windows.size + v
                    last, before = np.uintp(widest), np.uintp(widest - window)
                    for test in range(np.uintp(tests)):
                        mean = (running[last + test] - running[before + test]) / window
                        out[row, path, test] = level + pairs[p, w, v, test] + mean
                    if w == typical:
                        row = widths * windows.size + v
                        for test in range(np.uintp(tests)):
                            mean = (running[last + test] - running[before + test]) / window
                            out[row, path, test] = level + mean / 2
