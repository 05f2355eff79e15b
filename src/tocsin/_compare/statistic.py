"""How far apart the two tables of each split are: MMD at several widths, each measured against all splits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tocsin._calibration.tail import fit_tail
from tocsin._compute.arrays import Float32Array, Float64Array
from tocsin._execution.progress import Progress
from tocsin._explain.kernel import exponents
from tocsin._statistics.mmd_gaussian import LIKE_PAIRS

ENTRIES = 2**22
"""Of the kernel matrix that are there at once."""

FAINTEST = np.float32(1e-30)
"""A kernel that is smaller counts as 0: processors are slow with smaller numbers."""

TIE = 1e-4
"""Statistics this close, in spreads, are equal but for rounding."""

TAIL, FEWEST_IN_TAIL = 0.1, 30
"""The part of the splits from which the tail beyond them is told, and how many that must be."""

RAREST = 1e9
"""Beyond this nothing is told apart."""


def discrepancies(
    points: Float64Array, widths: Sequence[float], splits: Float32Array, progress: Progress
) -> Float64Array:
    """MMD between the two tables of each split, unbiased, at every width that can speak; (widths, splits).

    With K the kernel matrix without its diagonal and z the ones of a split, z'Kz, z'K1 and 1'K1 tell all three means.
    """
    count = len(points)
    size = max(ENTRIES // count, 1)
    within, across = np.zeros((2, len(widths), splits.shape[1]))
    total = np.zeros(len(widths))
    for start in range(0, count, size):
        own = splits[start : start + size]
        exponent = -exponents(points[start : start + size], points, widths[0]).astype(np.float32)
        places = np.arange(len(own))
        for i, width in enumerate(widths):
            kernel = np.exp(exponent * np.float32((widths[0] / width) ** 2))
            kernel[kernel < FAINTEST] = 0
            kernel[places, start + places] = 0
            sums = kernel.sum(1, dtype=np.float64)
            within[i] += (kernel @ splits * own).sum(0, dtype=np.float64)
            across[i] += sums @ own
            total[i] += sums.sum()
        progress(min(start + size, count), count)
    second = int(splits[:, 0].sum())
    first = count - second
    smaller = min(first, second)
    heard = total / (count * (count - 1)) * smaller * (smaller - 1) / 2 >= LIKE_PAIRS
    heard[0] = True
    rest = total[:, None] - 2 * across + within
    parts = rest / (first * (first - 1)), within / (second * (second - 1)), (across - within) / (first * second)
    found: Float64Array = (parts[0] + parts[1] - 2 * parts[2])[heard]
    return found


def largest(values: Float64Array) -> Float64Array:
    """Of several channels (channels, splits), each in units of its own spread over all splits; (splits,)."""
    spread = values.std(1, keepdims=True)
    known = spread > 1e-12 * np.abs(values).max(1, keepdims=True)
    scores = (values - values.mean(1, keepdims=True)) / np.where(known, spread, np.inf)
    return np.asarray(scores.max(0))


def rarity(statistics: Float64Array, coin: float) -> tuple[float, bool]:
    """Comparisons in which chance gives one as large as the first; and whether the tail had to tell.

    Among all splits it is as likely to have one rank as another, if nothing differs; a coin settles ties. Where all are
    alike there is nothing to settle.
    """
    observed, others = statistics[0], statistics[1:]
    above, tied = int((others > observed + TIE).sum()), int((np.abs(others - observed) <= TIE).sum())
    if tied == len(others):
        return 1.0, False
    rank = above + 1 + int(coin * (tied + 1))
    if rank > 1 or tied:
        return len(statistics) / rank, False
    return max(_beyond(observed, others), float(len(statistics))), True


def _beyond(observed: float, others: Float64Array) -> float:
    """By a tail that is fitted to the largest of the others, and falls no faster than an exponential one.

    One that ended would make everything beyond its end impossible, and a few hundred values cannot tell where it ends.
    """
    start = float(np.quantile(others, 1 - TAIL))
    excess = others[others > start]
    if len(excess) < FEWEST_IN_TAIL:
        return 1.0
    tail = fit_tail(excess, start, len(excess) / len(others), 1.0)
    if tail.shape < 0:
        tail = replace(tail, scale=float((excess - start).mean()), shape=0.0)
    log_rate = float(tail.log_rates(np.array([observed]))[0])
    return min(math.exp(min(-log_rate, 700.0)), RAREST)
