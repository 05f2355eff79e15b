"""Arrays of the CPU backends: NumPy's own, and random numbers from NumPy's generators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tocsin._compute.arrays import (
    MIXERS,
    RUN_STRIDE,
    STREAM_STRIDE,
    TEST_STRIDE,
    Array,
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    UInt64Array,
)

BLOCK_WORK, SPREAD_STREAMS, ROWS = 2**20, 8, 256
"""Pairs of points in a block of null streams; streams in a block that meets all pseudo-references; rows of the kernel
matrix in one piece of work. What a block holds stays in a core's cache."""


def put(device: str, array: Array) -> Array:
    """NumPy's array as one of the backend's."""
    return array


def get(array: Array) -> Array:
    """The backend's array as one of NumPy's."""
    return array


def uniforms(device: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64Array:
    """Uniform numbers from 0 to 1."""
    return rng.random(shape)


def integers(device: str, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Int32Array:
    """Whole numbers below `count`, each as likely as the others."""
    return rng.integers(0, count, shape, dtype=np.int32)


def references(device: str, rng: np.random.Generator, count: int, copies: int) -> Float32Array:
    """How often each of `count` points is in each of `copies` samples of as many, drawn with replacement; (N, G)."""
    weights = np.empty((count, copies), np.float32)
    for g in range(copies):
        weights[:, g] = np.bincount(rng.integers(0, count, count), minlength=count)
    return weights


def concatenate(arrays: Sequence[Array], axis: int = 0) -> Array:
    return np.concatenate(arrays, axis)


def flat(array: Float32Array) -> Float64Array:
    """All values in a row, in float64."""
    return array.reshape(-1).astype(np.float64)


def quantile(values: Float64Array, level: float) -> float:
    """Of a flat array, interpolated."""
    return float(np.quantile(values, level))


def first_passages(paths: Float64Array, levels: Float64Array, start: int) -> tuple[BoolArray, Int64Array]:
    """Whether each path passes its test's level only from test `start` on, and the tests that it makes from there."""
    above = paths > levels
    rang = above.any(1)
    last = np.where(rang, above.argmax(1), paths.shape[1] - 1)
    return rang & (last >= start), np.maximum(last - start + 1, 0)


def pair_terms(
    products: Float64Array, row_means: Float64Array, weights: Float32Array, near: Float64Array
) -> tuple[Float64Array, Float32Array, Float32Array]:
    """What a path adds to the pairs of its window: offset (widths, G), linear (G, widths, N), neutral (widths, N).

    A^g = v'Kv / (N^2 - v'n) and -2 c_j^g = -2 (K v)_j / (N - n_j), v the counts of pseudo-reference g (N, G), products
    K v (widths, N, G), n what `near` has (N, G): the sum of v over the points that are not compared with j.
    neutral: 2 m_j - mean m, the kernel of a point with itself whose centred value is 0; row_means m (widths, N).
    """
    n = len(weights)
    offset = np.einsum("ng,wng->wg", weights, products) / (n**2 - (weights * near).sum(0))
    linear = (-2 * products / (n - near)).transpose(2, 0, 1)
    neutral = 2 * row_means - row_means.mean(1, keepdims=True)
    return offset, np.ascontiguousarray(linear, dtype=np.float32), neutral.astype(np.float32)


def take(array: Array, rows: Int64Array, columns: Int64Array) -> Array:
    """array[rows, columns], as one of NumPy's."""
    return np.asarray(array[rows, columns])


def stretch_maxima(paths: Float64Array, edges: Int64Array) -> Float64Array:
    """The largest value of each path within each stretch; (P, stretches)."""
    return np.asarray(np.maximum.reduceat(paths, edges[:-1], axis=1))


def coins(seed: np.uint64, stream: UInt64Array, run: Int64Array, time: Int64Array) -> Float64Array:
    """Uniform numbers for the tests at these times, (n,), of runs of streams, (n,) or (1,): a hash of all three.

    A counter-based generator (Salmon et al. 2011) with the mixing of splitmix64 (Steele et al. 2014). Sums and products
    wrap around, as they should.
    """
    x = (time.astype(np.uint64) + np.uint64(1)) * np.uint64(TEST_STRIDE)
    x += stream * np.uint64(STREAM_STRIDE) + run.astype(np.uint64) * np.uint64(RUN_STRIDE) + seed
    for shift, mixer in zip((30, 27), MIXERS, strict=True):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(mixer)
    return np.asarray(((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53)
