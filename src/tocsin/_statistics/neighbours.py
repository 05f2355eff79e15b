"""Sums over reference points that are close in time, which a guard keeps from being compared with each other."""

from __future__ import annotations

import numpy as np

from tocsin._compute import on_host
from tocsin._compute.arrays import Array, Float64Array, Int64Array


def others(count: int, guard: int) -> Int64Array:
    """How many of `count` points in order are further than `guard` from each; (N,)."""
    place = np.arange(count)
    return count - 1 - np.minimum(place, guard) - np.minimum(count - 1 - place, guard)


def near(weights: Array, guard: int) -> Float64Array:
    """The sum of the weights (N, G) over the points no further than `guard` from each."""
    if guard == 0:
        return weights.astype(np.float64) if isinstance(weights, np.ndarray) else weights.double()
    weights, n = on_host(weights), len(weights)
    total = np.concatenate([np.zeros((1, weights.shape[1])), np.cumsum(weights, axis=0, dtype=np.float64)])
    place = np.arange(n)
    within: Float64Array = total[np.minimum(place + guard, n - 1) + 1] - total[np.maximum(place - guard, 0)]
    return within


def near_products(values: Float64Array, weights: Float64Array, guard: int) -> Float64Array:
    """The sum of weight_i x_i'x_j over the points i no further than `guard` from j; values (N, m), weights (N, G)."""
    total: Float64Array = (values**2).sum(1)[:, None] * weights
    for lag in range(1, min(guard, len(values) - 1) + 1):
        products = (values[lag:] * values[:-lag]).sum(1)[:, None]
        total[lag:] += products * weights[:-lag]
        total[:-lag] += products * weights[lag:]
    return total


def centred(kernel: Array, means: Float64Array, first: Int64Array, second: Int64Array) -> Float64Array:
    """k(x_i, x_j) less the mean kernels of i and of j with others, plus the mean of all; means (N,)."""
    return np.asarray(kernel - means[first] - means[second] + means.mean(), dtype=np.float64)


def mean_pair(row_sums: Float64Array, guard: int) -> Float64Array:
    """The mean of a kernel over points further apart than `guard`, from its sums over such points (widths, N)."""
    mean: Float64Array = row_sums.sum(1) / others(row_sums.shape[1], guard).sum()
    return mean
