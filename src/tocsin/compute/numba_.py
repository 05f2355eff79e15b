"""The hot functions, compiled for the CPU. `numpy_` has the same ones in plain NumPy: read those first.

Shapes: N reference points of d coordinates, P null streams of L points, T tests of each (T = L - max(windows) + 1),
G pseudo-references, m features. Channels are ordered width by width, then window by window.
"""

from __future__ import annotations

import numpy as np

from tocsin.compute.arrays import Float32Array, Float64Array, Int32Array, Int64Array
from tocsin.compute.host import (
    BLOCK_WORK,
    ROWS,
    SPREAD_STREAMS,
    concatenate,
    first_passages,
    flat,
    get,
    integers,
    pair_terms,
    put,
    quantile,
    references,
    stretch_maxima,
    take,
    uniforms,
)
from tocsin.compute.jit import jit
from tocsin.compute.numba_features import (
    bumps,
    feature_advance,
    feature_bootstrap_paths,
    feature_split_paths,
    mean_distances,
)
from tocsin.compute.numba_live import pair_advance, pair_bank_step, pair_keys_advance, pair_keys_take
from tocsin.compute.numba_pairs import (
    exponentials,
    gaussian_observe,
    gaussian_products,
    gaussian_row_sums,
    pair_bootstrap_paths,
    pair_split_paths,
)
from tocsin.compute.numba_rule import coins, decide, judge

__all__ = [
    "BLOCK_WORK",
    "ROWS",
    "SPREAD_STREAMS",
    "bumps",
    "coins",
    "concatenate",
    "decide",
    "distinct",
    "distinct_streams",
    "exponentials",
    "feature_advance",
    "feature_bootstrap_paths",
    "feature_split_paths",
    "first_passages",
    "flat",
    "gaussian_observe",
    "gaussian_products",
    "gaussian_row_sums",
    "get",
    "integers",
    "judge",
    "loudest",
    "mean_distances",
    "pair_advance",
    "pair_bank_step",
    "pair_bootstrap_paths",
    "pair_keys_advance",
    "pair_keys_take",
    "pair_split_paths",
    "pair_terms",
    "put",
    "quantile",
    "records",
    "references",
    "stretch_maxima",
    "take",
    "uniforms",
]


@jit
def loudest(
    channels: Float32Array, centre: Float64Array, scale: Float64Array, ties: Float64Array, grid: float, origin: float
) -> Float64Array:
    count, paths, tests = channels.shape
    together = paths // ties.shape[0]
    out = np.empty((paths, tests))
    for p in range(paths):
        for k in range(count):
            middle, size = centre[k], scale[k]
            for t in range(np.uintp(tests)):
                score = (np.float64(channels[k, p, t]) - middle) / size
                if k == 0 or score > out[p, t]:
                    out[p, t] = score
        if grid > 0:
            for t in range(np.uintp(tests)):
                out[p, t] = np.rint((out[p, t] - origin) / grid) * grid + origin
        for t in range(np.uintp(tests)):
            out[p, t] += ties[p // together, t]
    return out


@jit
def records(
    paths: Float64Array, edges: Int64Array, floors: Float64Array
) -> tuple[Int32Array, Int32Array, Int32Array, Float64Array]:
    size = 0
    for p in range(paths.shape[0]):
        for b in range(edges.size - 1):
            best = floors[b]
            for t in range(edges[b], edges[b + 1]):
                if paths[p, t] > best:
                    best = paths[p, t]
                    size += 1
    path, stretch, step = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    value = np.empty(size)
    size = 0
    for p in range(paths.shape[0]):
        for b in range(edges.size - 1):
            best = floors[b]
            for t in range(edges[b], edges[b + 1]):
                if paths[p, t] > best:
                    best = paths[p, t]
                    path[size], stretch[size], step[size] = p, b, t - edges[b] + 1
                    value[size] = best
                    size += 1
    return path, stretch, step, value


@jit
def distinct_streams(uniforms: Float64Array, n: int) -> Int32Array:
    count, length = uniforms.shape
    streams = np.empty((count, length), np.int32)
    deck = np.arange(n).astype(np.int32)
    for p in range(count):
        for t in range(length):
            other = t + np.int64(uniforms[p, t] * (n - t))
            deck[t], deck[other] = deck[other], deck[t]
            streams[p, t] = deck[t]
    return streams


def distinct(device: str, rng: np.random.Generator, count: int, shape: tuple[int, int]) -> Int32Array:
    return distinct_streams(rng.random(shape), count)
