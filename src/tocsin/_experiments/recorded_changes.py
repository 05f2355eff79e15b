"""Changes put into quiet recordings: shifts in long-run spreads, doubled noise, and a column that stops."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array

SHIFTS = {"shift 1": 1.0, "shift 2": 2.0, "shift 4": 4.0}
"""By how many long-run spreads."""
NOISE, STOPPED, NOTHING = "doubled noise", "stopped column", "no change"
KINDS = (NOTHING, *SHIFTS, NOISE, STOPPED)
"""What is tried; how often methods ring when nothing changes is what luck would find."""

MEAN_OF = 25
"""Rows whose means tell how far the level strays, and around whose mean noise is doubled."""
STRETCHES, FACTOR = 5, 5.0
INTERQUARTILE = 1.349
"""Of the Gaussian law, in standard deviations."""


def long_run_spread(reference: Float64Array) -> Float64Array:
    """Of each column: the larger of the spread of points, and five times that of short means in held-out stretches.

    A fifth of the reference at a time is held out; its means of 25 rows are taken from the median of the rest.
    """
    quarters = np.percentile(reference, [25, 75], axis=0)
    points = (quarters[1] - quarters[0]) / INTERQUARTILE
    strayed = []
    for rows in np.array_split(np.arange(len(reference)), STRETCHES):
        pieces = np.array_split(reference[rows], max(1, len(rows) // MEAN_OF))
        centre = np.median(np.delete(reference, rows, axis=0), axis=0)
        strayed += [piece.mean(0) - centre for piece in pieces]
    spread: Float64Array = np.maximum(np.where(points > 0, points, reference.std(0)), FACTOR * np.std(strayed, axis=0))
    return spread


def changed(
    kind: str, stream: Float64Array, onset: int, rows: int, spread: Float64Array, rng: np.random.Generator
) -> Float64Array:
    """Those rows of a stream from the onset on, changed; a column at rest already stops without a trace."""
    after = stream[onset : onset + rows].copy()
    count = stream.shape[1]
    columns: Int64Array = rng.choice(count, 1 if kind == STOPPED else max(1, count // 10), replace=False)
    if kind in SHIFTS:
        after[:, columns] += SHIFTS[kind] * spread[columns] * rng.choice([-1.0, 1.0], len(columns))
    elif kind == NOISE:
        mean = running_mean(stream[:, columns])[onset : onset + rows]
        after[:, columns] = mean + 2 * (after[:, columns] - mean)
    elif kind == STOPPED:
        after[:, columns] = stream[onset - 1, columns]
    return after


def running_mean(x: Float64Array) -> Float64Array:
    """Over the rows around each; over fewer at the ends."""
    sums = np.cumsum(np.concatenate([np.zeros((1, x.shape[1])), x]), axis=0)
    places, half = np.arange(len(x)), MEAN_OF // 2
    first, last = np.maximum(places - half, 0), np.minimum(places + half + 1, len(x))
    mean: Float64Array = (sums[last] - sums[first]) / (last - first)[:, None]
    return mean
