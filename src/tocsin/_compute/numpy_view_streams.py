"""Streams of views at work in plain NumPy, to read: one or many, a row at a time.

What is kept of a stream are its latest rows, in whole numbers of 2^-16 spreads, so that sums of them are exact in
whatever order they are added up. Of the latest, all digits are kept; of those before, which only the baseline has part
in, the coarse ones: a number is 256 times its row's, and its rest. Row number r, of all that have come, is at place
r mod (places).

Sums of windows are kept beside: those that end with the newest row, and those that ended one widest window before,
of which running scales now hear. `view_sums` says what they are; compiled code takes in what enters, and lets go of
what leaves.
"""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float32Array, Float64Array, Int8Array, Int16Array, Int64Array

LARGEST, FARTHEST, LOUDEST = 1e150, 127.0, 1e30
"""Of a number in units of its spread: its square is finite; where numbers are cut off once what is far out is moved
closer; and of squares and running scales."""

QUANTA, COARSE = 65536.0, 256.0
"""In a spread; and in a coarse one."""


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
    """Let points enter streams, one after the other: points first[k]..last[k] stream number streams[k], for k from
    begin to end; with `halt`, no further than the one that rings, after which last[k] is.

    rows, rests (streams, places, d), sums, position (rows that have come), scale, clock, loud: what is kept of streams.
    clock: rows that stay silent (less than 0 where a stream begins), and rows of the stream so far; less than 0 while
        it has so many to come from which its own level is learnt.
    loud: how loud channels were at the latest alarm.
    usual: (streams, 2, d) levels and spreads of a stream's own, in units of the columns' spreads; (1, 2, d) for all.
    columns: (2, m) centres and spreads of the chosen ones.  axes: (m, d), or none.
    lags: (4, d) constant and coefficients of what foresees a row.  base, gap: of the moving baseline.
    units: (2, channels) what sums are multiplied with, and what then is taken away.  shares: (4, d) what the sums of
        prediction errors, their squares, changes, and their squares are multiplied with to be means.
    pace: soft, floor, most (of an error or change whose square is added up), level, 1 / memory, attack, the largest
        square that scales hear of, early, fade.
    best, which: of each point, how loud its loudest channel was, and which that is; NaN while the stream is silent.
    out: the same of all channels; empty if not wanted.
    """
    soft, floor, most, level, remembered, attack, largest, early, fade = pace.tolist()
    widest = int(windows[-1])
    for k in range(begin, end):
        s = int(streams[k])
        for t in range(int(first[k]), int(last[k])):
            row = _told(points[t], columns, chosen, axes, usual[min(s, len(usual) - 1)], soft)
            coarse = np.floor((row + COARSE / 2) / COARSE)
            rows[s, position[s] % rows.shape[1]] = coarse
            rests[s, position[s] % rests.shape[1]] = row - COARSE * coarse
            position[s] += 1
            latest, baselines = _latest(rows[s], rests[s], int(position[s]), base, gap, 2 * widest)
            seen = _seen(latest, lags, most)
            sums[s] = _sums(seen, baselines, windows)
            raised = 1 + early * np.exp(-max(clock[s, 1], 0) / fade)
            if clock[s, 1] >= widest - 1:
                heard = np.minimum(off(sums[s], latest, 1, windows, base, units, shares, floor) ** 2, largest)
                old = scale[s].astype(np.float64)
                scale[s] = np.maximum(old + (heard - old) * remembered, 1.0)
            clock[s, 1] += 1
            squares = np.minimum(off(sums[s], latest, 0, windows, base, units, shares, floor) ** 2, LOUDEST)
            louds = np.sqrt(squares / scale[s]) / raised
            silent, rings = int(clock[s, 0]), False
            best[t], which[t] = (np.nan, 0) if silent else (louds.max(), louds.argmax())
            if out.size:
                out[t] = np.nan if silent else louds
            if silent < 0:
                clock[s, 0] += 1
                continue
            if silent:
                clock[s, 0] -= 1
            elif best[t] > level:
                rings, clock[s, 0], loud[s] = True, widest, louds
            else:
                continue
            scale[s] = np.minimum(np.maximum(scale[s], attack / (raised * level) ** 2 * squares), LOUDEST)
            if rings and halt:
                last[k] = t + 1
                break


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
    """Sums that streams (streams, places, d) with these rows have; (streams, 8 windows + 5, d).

    First, sums over the baseline of some rows: of the newest, and of the last ones of each window, now and one widest
    window before. Then, for both, over each window: levels, prediction errors, and sums over baselines; and over the
    widest, squares of errors and of changes.
    """
    widest, every = int(windows[-1]), []
    for s in range(len(rows)):
        latest, baselines = _latest(rows[s], rests[s], int(position[s]), base, gap, 2 * widest)
        every.append(_sums(_seen(latest, lags, most), baselines, windows))
    return np.stack(every)


def _told(
    point: Float64Array,
    columns: Float64Array,
    chosen: Int64Array,
    axes: Float64Array,
    usual: Float64Array,
    soft: float,
) -> Float64Array:
    """A point as a row of whole numbers."""
    with np.errstate(over="ignore"):
        own = np.clip((point[chosen] - columns[0]) / columns[1], -LARGEST, LARGEST)
    along = own if not axes.size else (own[:, None] * axes).sum(0)
    with np.errstate(over="ignore"):
        along = (along - usual[0]) / usual[1]
        size = np.abs(along) / soft
        closer = np.minimum(soft * np.log(size + np.sqrt(size * size + 1)), FARTHEST)
    told: Float64Array = np.rint(np.copysign(closer, along) * QUANTA)
    return told


def _latest(
    rows: Int16Array, rests: Int8Array, position: int, base: int, gap: int, count: int
) -> tuple[Float64Array, Float64Array]:
    """The latest rows, with the three before them that foresee the first; and sums over baselines of the latest."""
    numbers = position - count - 3 + np.arange(count + 3)
    latest: Float64Array = COARSE * rows[numbers % len(rows)].astype(np.float64) + rests[numbers % len(rests)]
    before = rows[(position - count - gap - base + np.arange(count + base)) % len(rows)]
    running: Float64Array = np.cumsum(np.concatenate([np.zeros((1, rows.shape[1])), before]), axis=0)
    return latest, running[base : base + count] - running[:count]


def _seen(latest: Float64Array, lags: Float64Array, most: float) -> Float64Array:
    """Levels, prediction errors and changes of all rows but the first three; (3, rows, d)."""
    x, before = latest[3:], latest[2:-1]
    foreseen = lags[0] + lags[1] * before + lags[2] * latest[1:-2] + lags[3] * latest[:-3]
    return np.stack([x, np.clip(np.rint(x - foreseen), -most, most), np.clip(x - before, -most, most)])


def _sums(seen: Float64Array, baselines: Float64Array, windows: Int64Array) -> Float64Array:
    """As `view_sums` has them, of one stream; from twice as many rows as the widest window has."""
    widest = int(windows[-1])
    sums, blocks = [baselines[-1]], list[Float64Array]()
    for end in (2 * widest, widest):
        sums += [baselines[end - window] for window in windows]
        blocks += [part[end - window : end].sum(0) for part in (*seen[:2], baselines) for window in windows]
        blocks += [(part[end - widest : end] ** 2).sum(0) for part in seen[1:]]
    return np.stack([*sums, *blocks])


def off(
    sums: Float64Array,
    latest: Float64Array,
    block: int,
    windows: Int64Array,
    base: int,
    units: Float64Array,
    shares: Float64Array,
    floor: float,
) -> Float64Array:
    """How far each channel is off, in its units: with the newest row, or (`block` 1) with that of a window before.

    latest: twice as many rows as the widest window has, and the three before them.
    """
    n, widest = len(windows), int(windows[-1])
    at, end = 2 * n + 1 + block * (3 * n + 2), (2 - block) * widest + 2
    levels, errors, baselines = (sums[at + k * n : at + (k + 1) * n] for k in range(3))
    changes = latest[end] - latest[end - windows]
    squares = sums[at + 3 * n : at + 3 * n + 2]
    means = np.stack([errors[-1] * shares[0], changes[-1] * shares[2]])
    variances = np.maximum(squares * shares[1::2] - means**2, 0.0)
    told = [levels, errors, changes, base * levels - COARSE * baselines, np.log(variances + floor * floor)]
    found: Float64Array = np.concatenate([part.ravel() for part in told]) * units[0] - units[1]
    return found
