"""Hot functions of views, compiled. `numpy_views` has the same ones in plain NumPy: read those first.

A long file, since compiled functions are given all that they need one by one.
"""

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


@exact
def _see(
    rows: Float64Array,
    at: int,
    lags: Float64Array,
    sizes: Float64Array,
    base: int,
    gap: int,
    views: Float64Array,
    to: int,
) -> None:
    """What the row at a place looks like in each view, given those before it."""
    d = rows.shape[1]
    for j in range(d):
        views[to, 3 * d + j] = 0.0
    for i in range(at - gap - base, at - gap):
        for j in range(d):
            views[to, 3 * d + j] += rows[i, j]
    for j in range(d):
        x, before = rows[at, j], rows[at - 1, j]
        foreseen = lags[0, j] + lags[1, j] * before + lags[2, j] * rows[at - 2, j] + lags[3, j] * rows[at - 3, j]
        views[to, j] = x / sizes[0, j]
        views[to, d + j] = (x - foreseen) / sizes[1, j]
        views[to, 2 * d + j] = (x - before) / sizes[2, j]
        views[to, 3 * d + j] = (x - views[to, 3 * d + j] / base) / sizes[3, j]


@exact
def _measure(
    views: Float64Array,
    to: int,
    windows: Int64Array,
    floor: float,
    sums: Float64Array,
    out: Float64Array,
    row: int,
) -> None:
    """Means of the views over each window, and log spreads of two of them over the widest."""
    count, width = windows.size, views.shape[1]
    d = width // 4
    for k in range(width):
        sums[0, k] = sums[1, k] = 0.0
    w = 0
    for i in range(windows[-1]):
        for k in range(width):
            x = views[to - i, k]
            sums[0, k] += x
            sums[1, k] += x * x
        if i + 1 == windows[w]:
            for a in range(4):
                for j in range(d):
                    out[row, (a * count + w) * d + j] = sums[0, a * d + j] / windows[w]
            w += 1
    size = windows[-1]
    for a in range(2):
        for j in range(d):
            k = (1 + a) * d + j
            mean = sums[0, k] / size
            variance = max(sums[1, k] / size - mean * mean, 0.0)
            out[row, (4 * count + a) * d + j] = 0.5 * np.log(variance + floor * floor)


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
    """As `_follow`, but for how loud a channel is: whether one is louder than the level needs no division."""
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


@exact
def _follow(
    deviations: Float64Array,
    t: int,
    squares: Float64Array,
    old: int,
    new: int,
    scale: Float64Array,
    clock: Int64Array,
    level: float,
    memory: float,
    attack: float,
    cap: float,
    silent: int,
    early: float,
    fade: float,
    out: Float64Array,
    row: int,
) -> bool:
    """Whether a row rings; running scales follow, and its squares are kept.

    old, new: places of the squares that scales now hear of (-1: of none), and of those of this row.
    clock: rows that stay silent (less than 0 where a stream begins), and rows of the stream so far.
    out, row: where the loudness of each channel goes, if anywhere.
    """
    count, raised, most = scale.size, 1 + early * np.exp(-clock[1] / fade), (cap * level) ** 2
    clock[1] += 1
    if old >= 0:
        for c in range(count):
            scale[c] = max(scale[c] + (min(squares[old, c], most) - scale[c]) / memory, 1.0)
    best = 0.0
    for c in range(count):
        squares[new, c] = deviations[t, c] ** 2
        best = max(best, squares[new, c] / scale[c])
    if row >= 0:
        for c in range(count):
            out[row, c] = np.nan if clock[0] else np.sqrt(squares[new, c] / scale[c]) / raised
    if clock[0] < 0:
        clock[0] += 1
        return False
    rings = bool(clock[0] == 0 and np.sqrt(best) / raised > level)
    if rings:
        clock[0] = silent
    elif clock[0] > 0:
        clock[0] -= 1
    else:
        return False
    worth = attack / (raised * level) ** 2
    for c in range(count):
        scale[c] = max(scale[c], worth * squares[new, c])
    return rings


def view_watch(
    points: Float64Array,
    start: int,
    stop: int,
    rows: Float64Array,
    views: Float64Array,
    squares: Float64Array,
    loud: Float64Array,
    scale: Float64Array,
    clock: Int64Array,
    position: Int64Array,
    centre: Float64Array,
    spread: Float64Array,
    chosen: Int64Array,
    axes: Float64Array,
    soft: float,
    lags: Float64Array,
    sizes: Float64Array,
    base: int,
    gap: int,
    windows: Int64Array,
    floor: float,
    middle: Float64Array,
    unit: Float64Array,
    level: float,
    memory: float,
    attack: float,
    cap: float,
    early: float,
    fade: float,
    out: Float64Array,
) -> None:
    _view_watch(
        points, start, stop, rows, views, squares, loud, scale, clock, position, centre, spread, chosen, axes, soft,
        lags, sizes, base, gap, windows, floor, middle, unit, level, memory, attack, cap, early, fade,
        np.empty(chosen.size), np.empty((1, rows.shape[1])), np.empty((2, views.shape[1])), np.empty((1, unit.size)),
        out,
    )  # fmt: skip


@exact
def _view_watch(
    points: Float64Array,
    start: int,
    stop: int,
    rows: Float64Array,
    views: Float64Array,
    squares: Float64Array,
    loud: Float64Array,
    scale: Float64Array,
    clock: Int64Array,
    position: Int64Array,
    centre: Float64Array,
    spread: Float64Array,
    chosen: Int64Array,
    axes: Float64Array,
    soft: float,
    lags: Float64Array,
    sizes: Float64Array,
    base: int,
    gap: int,
    windows: Int64Array,
    floor: float,
    middle: Float64Array,
    unit: Float64Array,
    level: float,
    memory: float,
    attack: float,
    cap: float,
    early: float,
    fade: float,
    own: Float64Array,
    row: Float64Array,
    sums: Float64Array,
    deviations: Float64Array,
    out: Float64Array,
) -> None:
    widest, past = windows[-1], base + gap
    room = rows.shape[0] - past
    for t in range(start, stop):
        if position[0] == room:
            _move(rows, room)
            _move(views, room)
            _move(squares, room)
            position[0] = 0
        place = position[0]
        _view_rows(points, t, t + 1, centre, spread, chosen, axes, soft, own, row)
        rows[past + place] = row[0]
        _see(rows, past + place, lags, sizes, base, gap, views, widest + place)
        _measure(views, widest + place, windows, floor, sums, deviations, 0)
        for c in range(unit.size):
            deviations[0, c] = (deviations[0, c] - middle[c]) / unit[c]
        _follow(
            deviations, 0, squares, place, widest + place, scale, clock, level, memory, attack, cap, widest, early,
            fade, out, t - start,
        )  # fmt: skip
        if not np.isnan(out[t - start, 0]):
            for c in range(unit.size):
                loud[c] = out[t - start, c]
        position[0] = place + 1


@exact
def _move(kept: Float64Array, room: int) -> None:
    """The latest rows to the front, so that there is room for more."""
    for i in range(kept.shape[0] - room):
        for j in range(kept.shape[1]):
            kept[i, j] = kept[i + room, j]


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
