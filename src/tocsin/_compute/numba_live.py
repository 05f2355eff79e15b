"""Many live streams of kernel statistics, compiled for the CPU: a point each, or as many as each has."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._compute.jit import jit
from tocsin._compute.numba_pairs import STRIP, all_widths, row_total
from tocsin._compute.numba_stream import entered
from tocsin._compute.tiles import distance_strip


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
    out = np.empty((stop - start, rows.size))
    _bank_step(
        buffer, ahead, linear, position, filled, windows, multipliers, offset, typical, rows, signs, chosen,
        start, stop, block, block_linear, out,
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
    rows: Int64Array,
    signs: Float64Array,
    chosen: Int64Array,
    start: int,
    stop: int,
    block: Float32Array,
    block_linear: Float64Array,
    out: Float64Array,
) -> None:
    widths, widest = multipliers.size, windows[-1]
    kernels = np.empty((widths + 1, widest + STRIP), np.float32)
    found = np.empty((widths + 1) * windows.size)
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
                found[w * windows.size + v] = value if full else np.nan
                if w == typical:
                    value = offset[w] + mean / window / 2
                    found[widths * windows.size + v] = value if full else np.nan
        for c in range(rows.size):
            out[q - start, c] = signs[c] * found[rows[c]]
        for k in range(own.shape[0]):
            own[k, place] = block[k, q]
        position[s], filled[s] = (place + 1) % widest, count


def pair_sums(
    windows: Float32Array,
    sizes: Int64Array,
    multipliers: Float32Array,
    which: Int64Array,
    columns: Int64Array,
    block: Float32Array,
) -> Float64Array:
    out = np.empty((multipliers.size, which.size))
    _sums(windows, sizes, multipliers, which, columns, block, out)
    return out


@jit
def _sums(
    windows: Float32Array,
    sizes: Int64Array,
    multipliers: Float32Array,
    which: Int64Array,
    columns: Int64Array,
    block: Float32Array,
    out: Float64Array,
) -> None:
    kernels = np.empty((multipliers.size + 1, windows.shape[2]), np.float32)
    for q in range(which.size):
        own, size = windows[which[q]], sizes[which[q]]
        for j in range(0, size, STRIP):
            distance_strip(own, j, block, columns[q], kernels, 0, j)
        all_widths(kernels, size, multipliers)
        for w in range(multipliers.size):
            out[w, q] = row_total(kernels, w, size)


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
    widths, widest = multipliers.size, int(windows[-1])
    capacity = 4 * widest
    out = np.empty((int((last[start:stop] - first[start:stop]).sum()), rows.size))
    buffer, ahead = np.zeros((points.shape[1], capacity + STRIP), np.float32), np.zeros((widths, capacity), np.float32)
    linear, kept, cursor = np.zeros((widths, capacity)), np.empty((widths, widest)), np.zeros(1, np.int64)
    _keys_advance(
        points, sums, filled, windows, multipliers, offset, typical, rows, signs, chosen, first, last, start, stop,
        block, block_linear, buffer, ahead, linear, cursor, kept, np.empty((widest, rows.size)), out,
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
    rows: Int64Array,
    signs: Float64Array,
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
        new, terms, low, high, into, origin = points[k], kept, old, widest, before, old
        for _ in range(2):
            entered(
                buffer, ahead, linear, cursor, windows, multipliers, offset, typical, rows, signs, new, terms,
                low, high, into, origin,
            )  # fmt: skip
            new, terms, low, high, into, origin = block, block_linear, begin, end, out, begin - done
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
