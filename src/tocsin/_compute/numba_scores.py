"""What null paths of kernel statistics say: their loudest channel, and when it first passes a level.

`numpy_` has the same in plain NumPy.
"""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float32Array, Float64Array, Int32Array, Int64Array
from tocsin._compute.jit import jit
from tocsin._compute.numba_paths import NO_SUMS, window_pairs


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
    pairs = window_pairs(points, table, streams, windows, multipliers, neutral, int(windows[-1]), NO_SUMS)
    (count, length), together, tests = streams.shape, copies.shape[1], pairs.shape[-1]
    out, running = np.empty((count * together, tests)), np.empty((multipliers.size, length + 1))
    _score(
        pairs, streams, copies, windows, offset, linear, typical, rows, signs, centre, scale, running, ties, grid,
        origin, out,
    )  # fmt: skip
    return out


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
    pairs = window_pairs(points, table, streams, windows, multipliers, neutral, int(windows[-1]), NO_SUMS)
    (count, length), (_, widths, copies), tests = streams.shape, linear.shape, pairs.shape[-1]
    mean, running = np.empty((count, tests)), np.empty((widths, length + 1))
    _score(
        pairs, streams, np.zeros((count, 1), np.int32), windows, mean_offset, mean_linear, typical, rows, signs, centre,
        scale, running, ties, 0.0, 0.0, mean,
    )  # fmt: skip
    sums, best = np.empty((windows.size, widths * copies)), np.empty(copies)
    last = np.full((count, copies), tests, dtype=np.int64)
    least = _passages(
        pairs, streams, windows, offset, linear.reshape(-1, widths * copies), typical, rows, signs, centre, scale,
        mean - floors, sums, best, ties, levels, last,
    )  # fmt: skip
    return last, least


@jit
def _score(
    pairs: Float64Array,
    streams: Int32Array,
    copies: Int32Array,
    windows: Int64Array,
    offset: Float64Array,
    linear: Float32Array,
    typical: int,
    rows: Int64Array,
    signs: Float64Array,
    centre: Float64Array,
    scale: Float64Array,
    running: Float64Array,
    ties: Float64Array,
    grid: float,
    origin: float,
    out: Float64Array,
) -> None:
    """The largest (sign S - centre) / scale of the channels, of which each is one of the rows that `_combine` makes.

    A pseudo-reference is met by all streams before the next, so that what it says of points stays near.
    """
    (count, length), (_, widths, sizes, tests) = streams.shape, pairs.shape
    widest, together = windows[-1], copies.shape[1]
    quarter = (length + 3) // 4
    for i in range(together):
        for p in range(count):
            g, path = copies[p, i], p * together + i
            for w in range(widths):
                # Four sums at once: each addition waits for the one before it.
                a, b, c, d = 0.0, 0.0, 0.0, 0.0
                running[w, 0] = 0
                for t in range(quarter):
                    a += linear[g, w, streams[p, t]]
                    running[w, t + 1] = a
                    if t + quarter < length:
                        b += linear[g, w, streams[p, t + quarter]]
                        running[w, t + 1 + quarter] = b
                    if t + 2 * quarter < length:
                        c += linear[g, w, streams[p, t + 2 * quarter]]
                        running[w, t + 1 + 2 * quarter] = c
                    if t + 3 * quarter < length:
                        d += linear[g, w, streams[p, t + 3 * quarter]]
                        running[w, t + 1 + 3 * quarter] = d
                c += b + a
                b += a
                for t in range(quarter + 1, min(2 * quarter, length) + 1):
                    running[w, t] += a
                for t in range(2 * quarter + 1, min(3 * quarter, length) + 1):
                    running[w, t] += b
                for t in range(3 * quarter + 1, length + 1):
                    running[w, t] += c
            for test in range(np.uintp(tests)):
                out[path, test] = -np.inf
            for k in range(rows.size):
                w, v = rows[k] // sizes, rows[k] % sizes
                window, unit = windows[v], signs[k] / scale[k]
                end, start = np.uintp(widest), np.uintp(widest - window)
                if w < widths:
                    level = offset[w, g] * unit - centre[k] / scale[k]
                    each, mean = unit / (window * (window - 1)), unit / window
                    for test in range(np.uintp(tests)):
                        within = running[w, end + test] - running[w, start + test]
                        score, best = level + each * pairs[p, w, v, test] + mean * within, out[path, test]
                        out[path, test] = score if score > best else best
                else:
                    level, mean = offset[typical, g] * unit - centre[k] / scale[k], unit / (2 * window)
                    for test in range(np.uintp(tests)):
                        within, best = running[typical, end + test] - running[typical, start + test], out[path, test]
                        score = level + mean * within
                        out[path, test] = score if score > best else best
            if grid > 0:
                for test in range(np.uintp(tests)):
                    out[path, test] = np.rint((out[path, test] - origin) / grid) * grid + origin
            for test in range(np.uintp(tests)):
                out[path, test] += ties[p, test]


@jit
def _passages(
    pairs: Float64Array,
    streams: Int32Array,
    windows: Int64Array,
    offset: Float64Array,
    linear: Float32Array,
    typical: int,
    rows: Int64Array,
    signs: Float64Array,
    centre: Float64Array,
    scale: Float64Array,
    above: Float64Array,
    sums: Float64Array,
    best: Float64Array,
    ties: Float64Array,
    levels: Float64Array,
    last: Int64Array,
) -> float:
    """The tests at which levels are passed, of those where `above` is; the least of it there. linear (N, widths G)."""
    (_, widths, sizes, tests), widest, copies = pairs.shape, windows[-1], best.size
    least, all_at_once = np.inf, np.uintp(linear.shape[1])
    for p in range(streams.shape[0]):
        waiting, known = copies, -2
        for test in range(tests):
            if not above[p, test] > 0:
                continue
            end = test + widest
            for v in range(sizes):
                if known == test - 1:
                    # Float32 numbers leave a sum in float64 as they entered it.
                    new, old = streams[p, end - 1], streams[p, end - 1 - windows[v]]
                    for g in range(all_at_once):
                        sums[v, g] += np.float64(linear[new, g]) - np.float64(linear[old, g])
                    continue
                # A longer window is the one before it, and more.
                after = end - windows[v - 1] if v > 0 else end
                for g in range(all_at_once):
                    sums[v, g] = sums[v - 1, g] if v > 0 else 0.0
                for t in range(end - windows[v], after):
                    point = streams[p, t]
                    for g in range(all_at_once):
                        sums[v, g] += np.float64(linear[point, g])
            known = test
            for g in range(copies):
                best[g] = -np.inf
            for k in range(rows.size):
                w, v = rows[k] // sizes, rows[k] % sizes
                window, unit = windows[v], signs[k] / scale[k]
                own = typical if w == widths else w
                each = unit / (2 * window if w == widths else window)
                level, first = -centre[k] / scale[k], np.uintp(own * copies)
                if w < widths:
                    level += unit * pairs[p, w, v, test] / (window * (window - 1))
                for g in range(np.uintp(copies)):
                    score = level + unit * offset[own, g] + each * sums[v, first + g]
                    best[g] = score if score > best[g] else best[g]
            for g in range(copies):
                if best[g] + ties[p, test] > levels[test] and last[p, g] == tests:
                    last[p, g], least = test, min(least, above[p, test])
                    waiting -= 1
            if waiting == 0:
                break
    return least
