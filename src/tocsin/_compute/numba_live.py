"""Live streams of kernel statistics, compiled for the CPU: one, a block at a time, or many, a point each."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._compute.jit import jit
from tocsin._compute.numba_pairs import STRIP, all_widths, total_of
from tocsin._compute.tiles import distance_strip


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
    out: Float64Array | None = None,
) -> Float64Array:
    if out is None:
        out = np.empty((stop - start, (len(ahead) + (typical >= 0)) * windows.size))
    _advance(
        buffer,
        ahead,
        linear,
        cursor,
        windows,
        multipliers,
        offset,
        typical,
        block,
        block_linear,
        start,
        stop,
        out,
        start,
    )
    return out


@jit
def _advance(
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
    out: Float64Array,
    origin: int,
) -> None:
    """`pair_advance`, with row i - origin of `out` for point i."""
    widths, widest, capacity = multipliers.size, windows[-1], ahead.shape[1]
    kernels = np.empty((widths + 1, widest + STRIP), np.float32)
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
        low, row = max(0, t - widest + 1), i - origin
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
                    out[row, first + v] = np.nan
                    if w == typical:
                        out[row, widths * windows.size + v] = np.nan
                    continue
                pairs += total_of(ahead, w, begin, end)
                for j in range(np.uintp(begin), np.uintp(end)):
                    mean += linear[w, j]
                window = windows[v]
                out[row, first + v] = offset[w] + 2 * pairs / (window * (window - 1)) + mean / window
                if w == typical:
                    out[row, widths * windows.size + v] = offset[w] + mean / window / 2
                end = begin
        position += 1
    cursor[0] = position


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
    out = np.empty((stop - start, (multipliers.size + (typical >= 0)) * windows.size))
    _bank_step(
        buffer, ahead, linear, position, filled, windows, multipliers, offset, typical, chosen, start, stop,
        block, block_linear, out,
    )  # fmt: skip
    return out


@jit
def _bank_step(
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
    out: Float64Array,
) -> None:
    widths, widest = multipliers.size, windows[-1]
    kernels = np.empty((widths + 1, widest + STRIP), np.float32)
    for q in range(start, stop):
        s = chosen[q]
        own, place = buffer[s], position[s]
        for j in range(0, widest, STRIP):
            distance_strip(own, j, block, q, kernels, 0, j)
        all_widths(kernels, widest, multipliers)
        count = min(filled[s] + 1, widest)
        for w in range(widths):
            for j in range(np.uintp(widest)):
                ahead[s, w, j] += kernels[w + 1, j]
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
    widths, widest = multipliers.size, int(windows[-1])
    capacity, columns = 4 * widest, (widths + (typical >= 0)) * windows.size
    out = np.empty((int((last[start:stop] - first[start:stop]).sum()), columns))
    buffer, ahead = np.zeros((points.shape[1], capacity + STRIP), np.float32), np.zeros((widths, capacity), np.float32)
    linear, kept, cursor = np.zeros((widths, capacity)), np.empty((widths, widest)), np.zeros(1, np.int64)
    _keys_advance(
        points, sums, filled, windows, multipliers, offset, typical, chosen, first, last, start, stop,
        block, block_linear, buffer, ahead, linear, cursor, kept, np.empty((widest, columns)), out,
    )  # fmt: skip
    return out


@jit
def _keys_advance(
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
    buffer: Float32Array,
    ahead: Float32Array,
    linear: Float64Array,
    cursor: Int64Array,
    kept: Float64Array,
    before: Float64Array,
    out: Float64Array,
) -> None:
    """Every key's window, which is let in anew, and then its new points."""
    widest, done = windows[-1], 0
    for q in range(start, stop):
        k, begin, end = chosen[q], first[q], last[q]
        old = widest - min(filled[k], widest - 1)
        cursor[0] = 0
        for w in range(multipliers.size):
            for j in range(widest):
                kept[w, j] = sums[k, w, j]
        _advance(
            buffer, ahead, linear, cursor, windows, multipliers, offset, typical, points[k], kept, old, widest,
            before, old,
        )  # fmt: skip
        _advance(
            buffer, ahead, linear, cursor, windows, multipliers, offset, typical, block, block_linear, begin, end,
            out, begin - done,
        )  # fmt: skip
        done += end - begin


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
        kept = widest - new
        for c in range(points.shape[1]):
            for j in range(kept):
                points[k, c, j] = points[k, c, new + j]
            for j in range(new):
                points[k, c, kept + j] = block[c, last[q] - new + j]
        for w in range(sums.shape[1]):
            for j in range(kept):
                sums[k, w, j] = sums[k, w, new + j]
            for j in range(new):
                sums[k, w, kept + j] = block_linear[w, last[q] - new + j]
        filled[k] = min(filled[k] + count, widest)
