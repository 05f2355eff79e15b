"""Hot functions of views, compiled. `numpy_views` has the same ones in plain NumPy: read those first."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import BoolArray, Float32Array, Float64Array, Int64Array
from tocsin._compute.jit import exact

LARGEST = 1e150
"""Of a number in units of its spread: its square is finite."""


def view_rows(
    points: Float64Array,
    centre: Float64Array,
    spread: Float64Array,
    chosen: Int64Array,
    axes: Float64Array,
    soft: float,
) -> Float64Array:
    out = np.empty((len(points), axes.shape[1] if axes.size else chosen.size))
    _view_rows(points, 0, len(points), centre, spread, chosen, axes, soft, np.empty(chosen.size), out)
    return out


@exact
def _view_rows(
    points: Float64Array,
    start: int,
    stop: int,
    centre: Float64Array,
    spread: Float64Array,
    chosen: Int64Array,
    axes: Float64Array,
    soft: float,
    own: Float64Array,
    out: Float64Array,
) -> None:
    m, d = chosen.size, out.shape[1]
    for t in range(start, stop):
        for j in range(m):
            own[j] = min(max((points[t, chosen[j]] - centre[j]) / spread[j], -LARGEST), LARGEST)
        if axes.size == 0:
            for j in range(m):
                out[t - start, j] = soft * np.arcsinh(own[j] / soft)
        else:
            for k in range(d):
                out[t - start, k] = 0.0
            for j in range(m):
                for k in range(d):
                    out[t - start, k] += own[j] * axes[j, k]
            for k in range(d):
                out[t - start, k] = soft * np.arcsinh(out[t - start, k] / soft)


def view_channels(
    rows: Float64Array, lags: Float64Array, sizes: Float64Array, base: int, gap: int, windows: Int64Array, floor: float
) -> Float64Array:
    (n, d), widest = rows.shape, int(windows[-1])
    out = np.empty((max(n - base - gap - widest + 1, 0), (4 * len(windows) + 2) * d))
    if len(out):
        _view_channels(np.ascontiguousarray(rows.T), lags, sizes, base, gap, windows, floor, np.empty((3, n + 1)), out)
    return out


@exact
def _view_channels(
    columns: Float64Array,
    lags: Float64Array,
    sizes: Float64Array,
    base: int,
    gap: int,
    windows: Int64Array,
    floor: float,
    work: Float64Array,
    out: Float64Array,
) -> None:
    """Column by column, with sums over windows as differences of running sums, which a live stream may not have."""
    (rows, width), (d, n) = out.shape, columns.shape
    first, widest, count = base + gap, windows[-1], windows.size
    view, sums, squares = work[0], work[1], work[2]
    sums[0] = squares[0] = 0.0
    for j in range(d):
        for a in range(4):
            _see_all(columns[j], a, lags[:, j], sizes[a, j], base, gap, sums, view)
            for t in range(n - first):
                sums[t + 1] = sums[t] + view[t]
            for w in range(count):
                for t in range(rows):
                    mean = (sums[t + widest] - sums[t + widest - windows[w]]) / windows[w]
                    out[t, (a * count + w) * d + j] = mean
            if a == 1 or a == 2:
                for t in range(n - first):
                    squares[t + 1] = squares[t] + view[t] * view[t]
                for t in range(rows):
                    mean = (sums[t + widest] - sums[t]) / widest
                    variance = max((squares[t + widest] - squares[t]) / widest - mean * mean, 0.0)
                    out[t, width - (3 - a) * d + j] = 0.5 * np.log(variance + floor * floor)


@exact
def _see_all(
    x: Float64Array,
    a: int,
    lags: Float64Array,
    size: float,
    base: int,
    gap: int,
    sums: Float64Array,
    view: Float64Array,
) -> None:
    """Those rows of a column that have enough before them, in one of its views."""
    first, n = base + gap, x.size
    if a == 3:
        for t in range(n):
            sums[t + 1] = sums[t] + x[t]
    for t in range(n - first):
        i = first + t
        if a == 0:
            view[t] = x[i] / size
        elif a == 1:
            view[t] = (x[i] - (lags[0] + lags[1] * x[i - 1] + lags[2] * x[i - 2] + lags[3] * x[i - 3])) / size
        elif a == 2:
            view[t] = (x[i] - x[i - 1]) / size
        else:
            view[t] = (x[i] - (sums[t + base] - sums[t]) / base) / size


def view_follow(
    squares: Float32Array,
    born: int,
    scale: Float64Array,
    level: float,
    memory: float,
    attack: float,
    cap: float,
    silent: int,
    early: float,
    fade: float,
) -> BoolArray:
    rang, clock = np.zeros(len(squares), np.bool_), np.zeros(2, np.int64)
    _view_follow(squares, born, scale, clock, level, memory, attack, cap, silent, early, fade, rang)
    return rang


@exact
def _view_follow(
    squares: Float32Array,
    born: int,
    scale: Float64Array,
    clock: Int64Array,
    level: float,
    memory: float,
    attack: float,
    cap: float,
    silent: int,
    early: float,
    fade: float,
    rang: BoolArray,
) -> None:
    """Whether a channel is louder than the level needs no division."""
    count, most = scale.size, (cap * level) ** 2
    for t in range(squares.shape[0]):
        if t == born:
            clock[0], clock[1] = -silent, 0
        bound = (level * (1 + early * np.exp(-clock[1] / fade)) if t >= born else level) ** 2
        clock[1] += 1
        loud = 0
        if t >= silent:
            for c in range(count):
                scale[c] = max(scale[c] + (min(squares[t - silent, c], most) - scale[c]) / memory, 1.0)
        if clock[0] < 0:
            clock[0] += 1
            continue
        if clock[0] == 0:
            for c in range(count):
                loud += squares[t, c] > bound * scale[c]
            if not loud:
                continue
            rang[t] = True
            clock[0] = silent
        else:
            clock[0] -= 1
        worth = attack / bound
        for c in range(count):
            scale[c] = max(scale[c], worth * squares[t, c])


def autoregress(errors: Float64Array, weights: Float64Array) -> Float64Array:
    out = errors.copy()
    _autoregress(weights, out)
    return out


@exact
def _autoregress(weights: Float64Array, rows: Float64Array) -> None:
    for t in range(rows.shape[0]):
        for k in range(min(weights.shape[0], t)):
            for j in range(rows.shape[1]):
                rows[t, j] += weights[k, j] * rows[t - 1 - k, j]
