"""Hot functions of views in plain NumPy, to read.

A row of numbers in order is seen in four ways, column by column: its level, by how much it is off what the three rows
before foresaw, by how much it differs from the row before, and by how much from a mean of earlier rows. Channels are
means of these over every window, and log spreads of the second and the third over the widest; ordered view by view,
then window by window, then column by column, and the spreads after all means.
"""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import BoolArray, Float32Array, Float64Array, Int64Array

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
    """Points (n, D) as rows (n, d): some columns in units of their spread, or these along axes (m, d).

    What is far from the centre, by more than `soft`, moves closer, as its logarithm.
    """
    with np.errstate(over="ignore"):
        own = np.clip((points[:, chosen] - centre) / spread, -LARGEST, LARGEST)
    along = own if not axes.size else (own[:, :, None] * axes).sum(1)
    rows: Float64Array = soft * np.arcsinh(along / soft)
    return rows


def view_channels(
    rows: Float64Array, lags: Float64Array, sizes: Float64Array, base: int, gap: int, windows: Int64Array, floor: float
) -> Float64Array:
    """Channels of all rows (n, d) that have enough before them; (n - base - gap - widest + 1, channels).

    lags: (4, d) constant and coefficients of what foresees a row.  sizes: (4, d) spread of each view.
    base, gap: how many rows earlier ones are, and how many lie between them and the row.
    floor: what a spread is, at least.
    """
    n, first, widest = len(rows), base + gap, int(windows[-1])
    if n < first + widest:
        return np.empty((0, (4 * len(windows) + 2) * rows.shape[1]))
    views = np.stack([_seen(rows[t - first : t + 1], lags, sizes, base) for t in range(first, n)])
    ends = np.arange(widest, n - first + 1)
    return np.stack([_measured(views[end - widest : end], windows, floor) for end in ends])


def _seen(rows: Float64Array, lags: Float64Array, sizes: Float64Array, base: int) -> Float64Array:
    """The last of these rows in each view; (4, d)."""
    x, before = rows[-1], rows[-2]
    foreseen = lags[0] + lags[1] * before + lags[2] * rows[-3] + lags[3] * rows[-4]
    return np.stack([x, x - foreseen, x - before, x - rows[:base].sum(0) / base]) / sizes


def _measured(views: Float64Array, windows: Int64Array, floor: float) -> Float64Array:
    """Channels of the latest row, from the views of as many rows as the widest window has."""
    latest = views[::-1]
    means = np.stack([latest[:window].sum(0) / window for window in windows], 1)  # (4, windows, d)
    noisy = latest[:, 1:3]
    variance = np.maximum((noisy**2).sum(0) / len(views) - means[1:3, -1] ** 2, 0)
    return np.concatenate([means.ravel(), 0.5 * np.log(variance + floor**2).ravel()])


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
    """Which of these rows (n, channels) ring; the running scales (channels,) are changed.

    squares: of how far channels are off, in their units.  born: the row with which the stream begins, after others of
        the past.
    level: passed by what rings.  memory: rows over which a running scale forgets.
    attack: an alarm, and the rows after it, raise scales until so many times as much is quiet.
    cap: squares count up to that of so many levels.  silent: rows that do not ring, at first and after an alarm.
    early, fade: by how much more a stream must be loud to ring at first, and how soon that passes.
    """
    rang, clock = np.zeros(len(squares), np.bool_), np.zeros(2, np.int64)
    for t, row in enumerate(squares):
        if t == born:
            clock[:] = -silent, 0
        heard = squares[t - silent] if t >= silent else None
        own_early = early if t >= born else 0.0
        _, rang[t] = _followed(row, heard, scale, clock, level, memory, attack, cap, silent, own_early, fade)
    return rang


def _followed(
    squares: Float64Array,
    heard: Float64Array | None,
    scale: Float64Array,
    clock: Int64Array,
    level: float,
    memory: float,
    attack: float,
    cap: float,
    silent: int,
    early: float,
    fade: float,
) -> tuple[Float64Array, bool]:
    """How loud each channel of a row is, and whether it rings; running scales and the clock are changed.

    squares: of the row.  heard: those of the row that the scales now hear of.
    clock: rows that stay silent (less than 0 where a stream begins), and rows of the stream so far.
    """
    raised = 1 + early * np.exp(-clock[1] / fade)
    clock[1] += 1
    if heard is not None:
        scale[:] = np.maximum(scale + (np.minimum(heard, (cap * level) ** 2) - scale) / memory, 1.0)
    loud = np.sqrt(squares / scale) / raised
    if clock[0] < 0:
        clock[0] += 1
        return np.full_like(loud, np.nan), False
    rings = bool(clock[0] == 0 and loud.max() > level)
    answer = np.full_like(loud, np.nan) if clock[0] else loud
    if rings or clock[0] > 0:
        clock[0] = silent if rings else clock[0] - 1
        scale[:] = np.maximum(scale, attack / (raised * level) ** 2 * squares)
    return answer, rings


def autoregress(errors: Float64Array, weights: Float64Array) -> Float64Array:
    """Rows (n, d) that are a weighted sum (p, d) of those before them, and an error."""
    rows = errors.copy()
    for t in range(len(rows)):
        for k in range(min(len(weights), t)):
            rows[t] += weights[k] * rows[t - 1 - k]
    return rows
