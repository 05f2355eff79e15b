"""Streams of views at work, compiled: one or many, a row at a time. `numpy_view_streams` has the same to read.

Whole numbers are kept as floats, as long as sums of them are exact: so a window's sum takes in what enters and lets go
of what leaves, however long the stream, and is the one that its rows have.

A long file, since compiled functions are given all that they need one by one.
"""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float32Array, Float64Array, Int8Array, Int16Array, Int64Array
from tocsin._compute.jit import exact

LARGEST, FARTHEST, LOUDEST = 1e150, 127.0, 1e30
QUANTA, COARSE = 65536.0, 256.0


@exact
def view_watch(
    points: Float64Array,
    streams: Int64Array,
    first: Int64Array,
    last: Int64Array,
    begin: int,
    end: int,
    halt: bool,
    rows: Int16Array,
    rests: Int8Array,
    sums: Float64Array,
    position: Int64Array,
    scale: Float32Array,
    clock: Int64Array,
    loud: Float64Array,
    usual: Float64Array,
    columns: Float64Array,
    chosen: Int64Array,
    axes: Float64Array,
    lags: Float64Array,
    windows: Int64Array,
    base: int,
    gap: int,
    units: Float64Array,
    shares: Float64Array,
    pace: Float64Array,
    best: Float64Array,
    which: Int64Array,
    out: Float64Array,
) -> None:
    d, n, widest = lags.shape[1], windows.size, windows[-1]
    own, row, peaks, latest = np.empty(chosen.size), np.empty(d), np.empty(d), np.empty((5, d))
    seen, heard = np.empty((3, 2 * n + 1, d)), np.empty((2, units.shape[1]))
    for k in range(begin, end):
        s = streams[k]
        for t in range(first[k], last[k]):
            _tell(points, t, columns, chosen, axes, usual, min(s, usual.shape[0] - 1), pace[0], own, row)
            _keep(rows, rests, s, position[s], row)
            _enter(rows, rests, sums, s, position[s], lags, windows, base, gap, pace[2], latest, seen)
            position[s] += 1
            _measure(sums, s, 0, seen, windows, base, units, shares, pace[1], heard)
            if clock[s, 1] >= widest - 1:
                _measure(sums, s, 1, seen, windows, base, units, shares, pace[1], heard)
            rang = _follow(heard, s, scale, clock, loud, widest, pace, peaks, t, best, which, out)
            if rang and halt:
                last[k] = t + 1
                break


@exact
def _tell(
    points: Float64Array,
    t: int,
    columns: Float64Array,
    chosen: Int64Array,
    axes: Float64Array,
    usual: Float64Array,
    s: int,
    soft: float,
    own: Float64Array,
    row: Float64Array,
) -> None:
    """A point as a row of whole numbers."""
    m, d = chosen.size, row.size
    for j in range(m):
        own[j] = min(max((points[t, chosen[j]] - columns[0, j]) / columns[1, j], -LARGEST), LARGEST)
    if axes.size == 0:
        for j in range(d):
            row[j] = own[j]
    else:
        for k in range(d):
            row[k] = 0.0
        for j in range(m):
            for k in range(d):
                row[k] += own[j] * axes[j, k]
    for j in range(d):
        row[j] = (row[j] - usual[s, 0, j]) / usual[s, 1, j]
        size = abs(row[j]) / soft
        size = min(soft * np.log(size + np.sqrt(size * size + 1)), FARTHEST)
        row[j] = np.rint((size if row[j] >= 0 else -size) * QUANTA)


@exact
def _keep(rows: Int16Array, rests: Int8Array, s: int, p: int, row: Float64Array) -> None:
    a, b = p % rows.shape[1], p % rests.shape[1]
    for j in range(row.size):
        coarse = np.floor((row[j] + COARSE / 2) / COARSE)
        rows[s, a, j] = np.int16(coarse)
        rests[s, b, j] = np.int8(row[j] - COARSE * coarse)


@exact
def _back(place: int, rows: int, places: int) -> int:
    """The place of what came so many rows before; division would take longer than all that is done with it."""
    before = place - rows
    return before + places if before < 0 else before


@exact
def _see(
    rows: Int16Array,
    rests: Int8Array,
    s: int,
    a0: int,
    b0: int,
    lags: Float64Array,
    most: float,
    latest: Float64Array,
    seen: Float64Array,
    e: int,
) -> None:
    """Level, prediction error and change of the row at places a0 and b0, at place e of what is seen."""
    many, few = rows.shape[1], rests.shape[1]
    # In loops of few arrays: the compiler looks whether arrays overlap, and gives up where there are many.
    for k in range(4):
        a, b = _back(a0, k, many), _back(b0, k, few)
        for j in range(lags.shape[1]):
            latest[k, j] = COARSE * rows[s, a, j] + rests[s, b, j]
    for j in range(lags.shape[1]):
        foreseen = lags[0, j] + lags[1, j] * latest[1, j] + lags[2, j] * latest[2, j] + lags[3, j] * latest[3, j]
        latest[4, j] = np.rint(latest[0, j] - foreseen)
    for j in range(lags.shape[1]):
        seen[0, e, j] = latest[0, j]
        seen[1, e, j] = min(max(latest[4, j], -most), most)
        seen[2, e, j] = min(max(latest[0, j] - latest[1, j], -most), most)


@exact
def _enter(
    rows: Int16Array,
    rests: Int8Array,
    sums: Float64Array,
    s: int,
    p: int,
    lags: Float64Array,
    windows: Int64Array,
    base: int,
    gap: int,
    most: float,
    latest: Float64Array,
    seen: Float64Array,
) -> None:
    """Row number p enters the windows that end with it, and row p - widest those that end there."""
    d, n, widest, many, few = lags.shape[1], windows.size, windows[-1], rows.shape[1], rests.shape[1]
    a, b = p % many, p % few
    for e in range(2 * n + 1):
        lag = 0 if e == 0 else windows[e - 1] if e <= n else widest + windows[e - 1 - n]
        _see(rows, rests, s, _back(a, lag, many), _back(b, lag, few), lags, most, latest, seen, e)
    now, then = 2 * n + 1, 5 * n + 3
    for i in range(n):
        for j in range(d):
            sums[s, now + 2 * n + i, j] -= sums[s, 1 + i, j]
            sums[s, then + 2 * n + i, j] += sums[s, n, j] - sums[s, 1 + n + i, j]
    for q in range(2 * n + 1):
        lag = 0 if q == 0 else windows[q - 1] - 1 if q <= n else widest + windows[q - 1 - n] - 1
        enters, leaves = _back(a, lag + gap + 1, many), _back(a, lag + gap + base + 1, many)
        for j in range(d):
            sums[s, q, j] += rows[s, enters, j] - rows[s, leaves, j]
    for i in range(n):
        for j in range(d):
            sums[s, now + i, j] += seen[0, 0, j] - seen[0, 1 + i, j]
            sums[s, now + n + i, j] += seen[1, 0, j] - seen[1, 1 + i, j]
            sums[s, now + 2 * n + i, j] += sums[s, 0, j]
            sums[s, then + i, j] += seen[0, n, j] - seen[0, 1 + n + i, j]
            sums[s, then + n + i, j] += seen[1, n, j] - seen[1, 1 + n + i, j]
    for a in range(2):
        for j in range(d):
            newest, middle, oldest = seen[1 + a, 0, j], seen[1 + a, n, j], seen[1 + a, 2 * n, j]
            sums[s, now + 3 * n + a, j] += newest * newest - middle * middle
            sums[s, then + 3 * n + a, j] += middle * middle - oldest * oldest


@exact
def _measure(
    sums: Float64Array,
    s: int,
    block: int,
    seen: Float64Array,
    windows: Int64Array,
    base: int,
    units: Float64Array,
    shares: Float64Array,
    floor: float,
    heard: Float64Array,
) -> None:
    """How far each channel is off, in its units: with the newest row, or with that of a window before."""
    d, n = seen.shape[2], windows.size
    at, enters, leaves = 2 * n + 1 + block * (3 * n + 2), block * n, 1 + block * n
    for i in range(n):
        a, b, c, e = i * d, (n + i) * d, (2 * n + i) * d, (3 * n + i) * d
        for j in range(d):
            heard[block, a + j] = sums[s, at + i, j] * units[0, a + j] - units[1, a + j]
            heard[block, b + j] = sums[s, at + n + i, j] * units[0, b + j] - units[1, b + j]
            change = seen[0, enters, j] - seen[0, leaves + i, j]
            heard[block, c + j] = change * units[0, c + j] - units[1, c + j]
            moved = base * sums[s, at + i, j] - COARSE * sums[s, at + 2 * n + i, j]
            heard[block, e + j] = moved * units[0, e + j] - units[1, e + j]
    for j in range(d):
        a, b = 4 * n * d + j, (4 * n + 1) * d + j
        mean = sums[s, at + 2 * n - 1, j] * shares[0, j]
        error = max(sums[s, at + 3 * n, j] * shares[1, j] - mean * mean, 0.0)
        heard[block, a] = np.log(error + floor * floor) * units[0, a] - units[1, a]
        mean = (seen[0, enters, j] - seen[0, leaves + n - 1, j]) * shares[2, j]
        change = max(sums[s, at + 3 * n + 1, j] * shares[3, j] - mean * mean, 0.0)
        heard[block, b] = np.log(change + floor * floor) * units[0, b] - units[1, b]


@exact
def _follow(
    heard: Float64Array,
    s: int,
    scale: Float32Array,
    clock: Int64Array,
    loud: Float64Array,
    widest: int,
    pace: Float64Array,
    peaks: Float64Array,
    t: int,
    best: Float64Array,
    which: Int64Array,
    out: Float64Array,
) -> bool:
    """Whether a row rings; running scales follow."""
    count, d, level = scale.shape[1], peaks.size, pace[3]
    remembered, attack, most = pace[4], pace[5], pace[6]
    raised = 1 + pace[7] * np.exp(-max(clock[s, 1], 0) / pace[8])
    if clock[s, 1] >= widest - 1:
        for c in range(count):
            square, old = min(heard[1, c] * heard[1, c], most), np.float64(scale[s, c])
            scale[s, c] = max(old + (square - old) * remembered, 1.0)
    clock[s, 1] += 1
    for j in range(d):
        peaks[j] = 0.0
    for a in range(0, count, d):
        for j in range(d):
            square = min(heard[0, a + j] * heard[0, a + j], LOUDEST)
            heard[0, a + j] = square
            ratio = square / scale[s, a + j]
            peaks[j] = ratio if ratio > peaks[j] else peaks[j]
    highest = peaks.max()
    loudness, silent = np.sqrt(highest) / raised, clock[s, 0]
    best[t], which[t] = np.nan, 0
    if not silent:
        best[t] = loudness
        which[t] = count
        for j in range(d):
            # Equally loud, once rounded: the first of them.
            if peaks[j] >= highest * (1 - 1e-15):
                for c in range(j, which[t], d):
                    if np.sqrt(heard[0, c] / scale[s, c]) / raised == loudness:
                        which[t] = c
                        break
    if out.size:
        for c in range(count):
            out[t, c] = np.nan if silent else np.sqrt(heard[0, c] / scale[s, c]) / raised
    if silent < 0:
        clock[s, 0] += 1
        return False
    rings = bool(silent == 0 and loudness > level)
    if rings:
        clock[s, 0] = widest
        for c in range(count):
            loud[s, c] = np.sqrt(heard[0, c] / scale[s, c]) / raised
    elif silent > 0:
        clock[s, 0] -= 1
    else:
        return False
    worth = attack / (raised * level) ** 2
    for c in range(count):
        scale[s, c] = min(max(np.float64(scale[s, c]), worth * heard[0, c]), LOUDEST)
    return rings


def view_sums(
    rows: Int16Array,
    rests: Int8Array,
    position: Int64Array,
    lags: Float64Array,
    windows: Int64Array,
    base: int,
    gap: int,
    most: float,
) -> Float64Array:
    sums = np.zeros((len(rows), 8 * len(windows) + 5, rows.shape[2]))
    _view_sums(rows, rests, position, lags, windows, base, gap, most, sums)
    return sums


@exact
def _view_sums(
    rows: Int16Array,
    rests: Int8Array,
    position: Int64Array,
    lags: Float64Array,
    windows: Int64Array,
    base: int,
    gap: int,
    most: float,
    sums: Float64Array,
) -> None:
    (streams, many, d), n, widest = rows.shape, windows.size, windows[-1]
    seen, before, latest = np.empty((3, 1, d)), np.empty(d), np.empty((5, d))
    for s in range(streams):
        for lag in range(2 * widest - 1, -1, -1):
            p = position[s] - 1 - lag
            if lag == 2 * widest - 1:
                for j in range(d):
                    before[j] = 0.0
                for r in range(p - gap - base, p - gap):
                    for j in range(d):
                        before[j] += rows[s, r % many, j]
            else:
                enters, leaves = (p - gap - 1) % many, (p - gap - base - 1) % many
                for j in range(d):
                    before[j] += rows[s, enters, j] - rows[s, leaves, j]
            _see(rows, rests, s, p % many, p % rests.shape[1], lags, most, latest, seen, 0)
            block = lag // widest
            at = 2 * n + 1 + block * (3 * n + 2)
            for i in range(n):
                if lag - block * widest == windows[i] - 1:
                    for j in range(d):
                        sums[s, 1 + block * n + i, j] = before[j]
                if lag - block * widest < windows[i]:
                    for j in range(d):
                        sums[s, at + i, j] += seen[0, 0, j]
                        sums[s, at + n + i, j] += seen[1, 0, j]
                        sums[s, at + 2 * n + i, j] += before[j]
            for j in range(d):
                sums[s, at + 3 * n, j] += seen[1, 0, j] * seen[1, 0, j]
                sums[s, at + 3 * n + 1, j] += seen[2, 0, j] * seen[2, 0, j]
        for j in range(d):
            sums[s, 0, j] = before[j]
