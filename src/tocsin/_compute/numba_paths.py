"""Null paths of kernel statistics, compiled for the CPU. `numpy_` has the same ones in plain NumPy."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float32Array, Float64Array, Int32Array, Int64Array
from tocsin._compute.jit import exact, jit
from tocsin._compute.numba_pairs import STRIP, aligned, all_widths, total_of
from tocsin._compute.tiles import LANES, add_vectors, distance_tile, total_of_vectors

FIRST_LANES = np.repeat(np.array([[0, 1]], np.float32), LANES, axis=1)
"""From place LANES - n on, a vector whose first n entries are 0, and the others 1."""

NOWHERE = np.float32(1e30)
"""A squared distance at which kernels are 0."""

NO_KERNELS, NO_LINEAR = np.empty((0, 0), np.float32), np.empty((0, 0, 0), np.float32)
NO_SUMS = np.empty((0, 0, 0))


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
    pairs = window_pairs(points, table, streams, windows, multipliers, neutral, int(windows[-1]), NO_SUMS)
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
    pairs = window_pairs(points, table, streams, windows, multipliers, NO_KERNELS, length, within)
    offset, running = np.empty((widths, count)), np.zeros((count, widths, length + 1))
    _left_out(streams, row_sums, within, offset, running)
    each = np.arange(count, dtype=np.int32)[:, None]
    return _paths(pairs, streams, each, windows, offset, NO_LINEAR, running, typical)


def window_pairs(
    points: Float32Array,
    table: Float32Array,
    streams: Int32Array,
    windows: Int64Array,
    multipliers: Float32Array,
    neutral: Float32Array,
    reach: int,
    within: Float64Array,
) -> Float64Array:
    (count, length), widths = streams.shape, multipliers.size
    gathered = np.zeros((points.shape[1], length + STRIP), np.float32)
    kernels = aligned(widths + 1, 4 * (reach + STRIP))
    ahead = aligned(widths, length + STRIP)
    last, before = np.full(max(len(points), len(table)), -1, np.int32), np.empty(length, np.int32)
    pairs = np.empty((count, widths, windows.size, length - windows[-1] + 1))
    _window_pairs(
        points, table, streams, windows, multipliers, neutral, reach, gathered, kernels, ahead, FIRST_LANES, last,
        before, within, pairs,
    )  # fmt: skip
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
    kernels: Float32Array,
    ahead: Float32Array,
    first_lanes: Float32Array,
    last: Int32Array,
    before: Int32Array,
    within: Float64Array,
    pairs: Float64Array,
) -> None:
    """pairs[p, w, v, test] = sum of k over the pairs of each window.

    A pair enters ahead[i] once, when its later point arrives, so a window's sum is that of its points' `ahead`,
    whatever the window: all windows share one pass, and nothing is ever subtracted. Rows are taken four at a time, and
    by whole vectors whose places do not move with time: what is outside the widest window is kept 0. Where `within` is
    not empty, all pairs of a stream are computed, and each point's sum of kernels with all others is added to it.
    """
    (count, length), widest, widths = streams.shape, windows[-1], multipliers.size
    tabulated, whole = table.size > 0, within.size > 0
    for p in range(count):
        for t in range(length):
            own = streams[p, t]
            for k in range(points.shape[1]):
                gathered[k, t] = points[own, k]
            before[t], last[own] = last[own], t
        for t in range(length):
            last[streams[p, t]] = -1
        for w in range(widths):
            for t in range(ahead.shape[1]):
                ahead[w, t] = 0
        for block in range(0, length, 4):
            base = max(0, block - reach + 1) // LANES * LANES
            vectors = (block + 3 - base) // LANES + 1
            across = vectors * LANES
            if not tabulated:
                for j in range(0, across, LANES):
                    distance_tile(gathered, base + j, gathered, block, kernels, across, j)
            for row in range(4):
                t, first = block + row, row * across - base
                low = max(0, t - reach + 1)
                if tabulated:
                    for j in range(base, base + across):
                        inside = low <= j and j < t and t < length
                        kernels[1, first + j] = table[streams[p, t], streams[p, j]] if inside else np.float32(0)
                else:
                    for j in range(base, low):
                        kernels[0, first + j] = NOWHERE
                    for j in range(t, base + across):
                        kernels[0, first + j] = NOWHERE
            if not tabulated:
                all_widths(kernels, 4 * across, multipliers)
            for row in range(min(4, length - block)):
                t, first = block + row, row * across
                low = max(0, t - reach + 1)
                if not whole:
                    j = before[t]
                    while j >= low:
                        for w in range(widths):
                            kernels[w + 1, first + j - base] = neutral[w, streams[p, t]]
                        j = before[j]
                if low > 0:
                    for w in range(widths):
                        ahead[w, low - 1] = 0
                for w in range(widths):
                    everything = add_vectors(ahead, w, base, kernels, w + 1, first, vectors)
                    if t >= widest - 1:
                        for v in range(windows.size):
                            begin, total = t - windows[v] + 1, everything
                            if windows[v] < reach:
                                place = begin // LANES * LANES
                                size = (t - place) // LANES + 1
                                total = total_of_vectors(ahead, w, place, first_lanes, LANES - begin + place, size)
                            pairs[p, w, v, t - widest + 1] = 2 * total
                if whole:
                    start = np.uintp(first - base)
                    for w in range(widths):
                        within[p, w, t] += total_of(kernels, w + 1, first - base, first - base + t)
                        for j in range(np.uintp(t)):
                            within[p, w, j] += np.float64(kernels[w + 1, start + j])


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
