"""Live streams of kernel statistics, compiled for the CPU: one, a block at a time, or many, a point each."""

from __future__ import annotations

import numpy as np

from tocsin.compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin.compute.jit import distance_strip, jit
from tocsin.compute.numba_pairs import STRIP, all_widths, total_of


@jit
def pair_advance(
    buffer: Float32Array,
    ahead: Float32Array,
    linear: Float64Array,
    cursor: Int64Array,
    windows: Int64Array,
    multipliers: Float32Array,
    offset: Float64Array,
    typical: int,
    block: Float32Array,
    block_linear: Float64Array,
    start: int,
    stop: int,
) -> Float64Array:
    widths, widest, capacity = multipliers.size, windows[-1], ahead.shape[1]
    out = np.empty((stop - start, (widths + (typical >= 0)) * windows.size))
    squares = np.empty(capacity + STRIP, np.float32)
    kernels = np.empty((widths, capacity), np.float32)
    position = cursor[0]
    for i in range(start, stop):
        if position == capacity:
            keep = widest - 1
            for k in range(buffer.shape[0]):
                buffer[k, :keep] = buffer[k, capacity - keep : capacity]
            for w in range(widths):
                ahead[w, :keep] = ahead[w, capacity - keep : capacity].copy()
                linear[w, :keep] = linear[w, capacity - keep : capacity].copy()
            position = keep
        t = position
        low = max(0, t - widest + 1)
        for k in range(buffer.shape[0]):
            buffer[k, t] = block[k, i]
        for j in range(low, t, STRIP):
            distance_strip(buffer, j, buffer, t, squares, 0, j)
        all_widths(squares, low, t, multipliers, kernels)
        for w in range(widths):
            for j in range(np.uintp(low), np.uintp(t)):
                ahead[w, j] += kernels[w, j]
            ahead[w, t] = 0
            linear[w, t] = block_linear[w, i]
            first, pairs, mean, end = w * windows.size, 0.0, linear[w, t], t
            for v in range(windows.size):
                begin = t - windows[v] + 1
                if begin < 0:
                    out[i - start, first + v] = np.nan
                    if w == typical:
                        out[i - start, widths * windows.size + v] = np.nan
                    continue
                pairs += total_of(ahead, w, begin, end)
                for j in range(np.uintp(begin), np.uintp(end)):
                    mean += linear[w, j]
                window = windows[v]
                out[i - start, first + v] = offset[w] + 2 * pairs / (window * (window - 1)) + mean / window
                if w == typical:
                    out[i - start, widths * windows.size + v] = offset[w] + mean / window / 2
                end = begin
        position += 1
    cursor[0] = position
    return out


@jit
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
    chosen: Int64Array,
    start: int,
    stop: int,
    block: Float32Array,
    block_linear: Float64Array,
) -> Float64Array:
    widths, widest = multipliers.size, windows[-1]
    out = np.empty((stop - start, (widths + (typical >= 0)) * windows.size))
    squares = np.empty(widest + STRIP, np.float32)
    kernels = np.empty((widths, widest), np.float32)
    for q in range(start, stop):
        s = chosen[q]
        own, place = buffer[s], position[s]
        for j in range(0, widest, STRIP):
            distance_strip(own, j, block, q, squares, 0, j)
        all_widths(squares, 0, widest, multipliers, kernels)
        count = min(filled[s] + 1, widest)
        for w in range(widths):
            for j in range(np.uintp(widest)):
                ahead[s, w, j] += kernels[w, j]
            ahead[s, w, place] = 0
            linear[s, w, place] = block_linear[w, q]
            pairs, mean, age = 0.0, 0.0, 0
            for v in range(windows.size):
                window = windows[v]
                while age < window:
                    j = place - age
                    if j < 0:
                        j += widest
                    pairs += np.float64(ahead[s, w, j])
                    mean += linear[s, w, j]
                    age += 1
                full = count >= window
                value = offset[w] + 2 * pairs / (window * (window - 1)) + mean / window
                out[q - start, w * windows.size + v] = value if full else np.nan
                if w == typical:
                    value = offset[w] + mean / window / 2
                    out[q - start, widths * windows.size + v] = value if full else np.nan
        for k in range(own.shape[0]):
            own[k, place] = block[k, q]
        position[s], filled[s] = (place + 1) % widest, count
    return out


@jit
def pair_keys_advance(
    points: Float32Array,
    sums: Float32Array,
    filled: Int64Array,
    windows: Int64Array,
    multipliers: Float32Array,
    offset: Float64Array,
    typical: int,
    chosen: Int64Array,
    first: Int64Array,
    last: Int64Array,
    start: int,
    stop: int,
    block: Float32Array,
    block_linear: Float64Array,
) -> Float64Array:
    widths, widest, rows = multipliers.size, windows[-1], 0
    for q in range(start, stop):
        rows += last[q] - first[q]
    out = np.empty((rows, (widths + (typical >= 0)) * windows.size))
    capacity = 4 * widest
    buffer = np.zeros((points.shape[1], capacity + STRIP), np.float32)
    ahead = np.zeros((widths, capacity), np.float32)
    linear = np.zeros((widths, capacity))
    kept = np.empty((widths, widest))
    cursor = np.zeros(1, np.int64)
    done = 0
    for q in range(start, stop):
        k = chosen[q]
        old, count = min(filled[k], widest - 1), last[q] - first[q]
        cursor[0] = 0
        kept[:] = sums[k]
        pair_advance(
            buffer, ahead, linear, cursor, windows, multipliers, offset, typical, points[k], kept, widest - old, widest
        )
        out[done : done + count] = pair_advance(
            buffer, ahead, linear, cursor, windows, multipliers, offset, typical, block, block_linear, first[q], last[q]
        )
        done += count
    return out


@jit
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
    widest = points.shape[2]
    for q in range(chosen.size):
        k, count = chosen[q], last[q] - first[q]
        new = min(count, widest)
        for c in range(points.shape[1]):
            points[k, c, : widest - new] = points[k, c, new:].copy()
            points[k, c, widest - new :] = block[c, last[q] - new : last[q]]
        for w in range(sums.shape[1]):
            sums[k, w, : widest - new] = sums[k, w, new:].copy()
            for j in range(new):
                sums[k, w, widest - new + j] = block_linear[w, last[q] - new + j]
        filled[k] = min(filled[k] + count, widest)
