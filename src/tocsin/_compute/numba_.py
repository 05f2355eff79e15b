"""The hot functions, compiled for the CPU. `numpy_` has the same ones in plain NumPy: read those first.

Shapes: N reference points of d coordinates, P null streams of L points, T tests of each (T = L - max(windows) + 1),
G pseudo-references, m features. Channels are ordered width by width, then window by window.
"""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float32Array, Float64Array, Int32Array, Int64Array
from tocsin._compute.host import (
    BLOCK_WORK,
    ROWS,
    SPREAD_STREAMS,
    coins,
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
from tocsin._compute.jit import jit
from tocsin._compute.numba_features import (
    bumps,
    feature_advance,
    feature_bootstrap_paths,
    feature_split_paths,
    mean_distances,
)
from tocsin._compute.numba_live import pair_bank_step, pair_keys_advance, pair_keys_take, pair_sums
from tocsin._compute.numba_news import news_watch
from tocsin._compute.numba_pairs import exponentials, gaussian_products
from tocsin._compute.numba_paths import pair_bootstrap_paths, pair_split_paths
from tocsin._compute.numba_rule import decide, judge, judge_one
from tocsin._compute.numba_scores import pair_bootstrap_loudest, pair_bootstrap_passages
from tocsin._compute.numba_stream import gaussian_observe, gaussian_row_sums, pair_advance, pair_step, pair_step_lacking
from tocsin._compute.numba_view_streams import view_sums, view_watch
from tocsin._compute.numba_views import autoregress, view_channels, view_follow, view_rows

__all__ = [
    "BLOCK_WORK",
    "ROWS",
    "SPREAD_STREAMS",
    "autoregress",
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
    "judge_one",
    "loudest",
    "mean_distances",
    "news_watch",
    "pair_advance",
    "pair_bank_step",
    "pair_bootstrap_loudest",
    "pair_bootstrap_passages",
    "pair_bootstrap_paths",
    "pair_keys_advance",
    "pair_keys_take",
    "pair_split_paths",
    "pair_step",
    "pair_step_lacking",
    "pair_sums",
    "pair_terms",
    "put",
    "quantile",
    "records",
    "references",
    "stretch_maxima",
    "take",
    "uniforms",
    "view_channels",
    "view_follow",
    "view_rows",
    "view_sums",
    "view_watch",
]

NO_PLACES, NO_VALUES = np.empty((3, 0), np.int32), np.empty(0)


def loudest(
    channels: Float32Array, centre: Float64Array, scale: Float64Array, ties: Float64Array, grid: float, origin: float
) -> Float64Array:
    out = np.empty(channels.shape[1:])
    _loudest(channels, centre, scale, ties, grid, origin, out)
    return out


@jit
def _loudest(
    channels: Float32Array,
    centre: Float64Array,
    scale: Float64Array,
    ties: Float64Array,
    grid: float,
    origin: float,
    out: Float64Array,
) -> None:
    count, paths, tests = channels.shape
    together = paths // ties.shape[0]
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


def records(
    paths: Float64Array, edges: Int64Array, floors: Float64Array
) -> tuple[Int32Array, Int32Array, Int32Array, Float64Array]:
    size = _records(paths, edges, floors, NO_PLACES, NO_VALUES)
    places, value = np.empty((3, size), np.int32), np.empty(size)
    _records(paths, edges, floors, places, value)
    path, stretch, step = places
    return path, stretch, step, value


@jit
def _records(
    paths: Float64Array, edges: Int64Array, floors: Float64Array, places: Int32Array, value: Float64Array
) -> int:
    """How many there are; as many as `value` has room for are written: path, stretch and step into `places`."""
    size = 0
    for p in range(paths.shape[0]):
        for b in range(edges.size - 1):
            best = floors[b]
            for t in range(edges[b], edges[b + 1]):
                if paths[p, t] > best:
                    best = paths[p, t]
                    if size < value.size:
                        places[0, size], places[1, size], places[2, size] = p, b, t - edges[b] + 1
                        value[size] = best
                    size += 1
    return size


def distinct_streams(uniforms: Float64Array, n: int) -> Int32Array:
    streams = np.empty(uniforms.shape, np.int32)
    _distinct_streams(uniforms, np.arange(n, dtype=np.int32), streams)
    return streams


@jit
def _distinct_streams(uniforms: Float64Array, deck: Int32Array, streams: Int32Array) -> None:
    (count, length), n = uniforms.shape, deck.size
    for p in range(count):
        for t in range(length):
            other = t + np.int64(uniforms[p, t] * (n - t))
            deck[t], deck[other] = deck[other], deck[t]
            streams[p, t] = deck[t]


def distinct(device: str, rng: np.random.Generator, count: int, shape: tuple[int, int]) -> Int32Array:
    return distinct_streams(rng.random(shape), count)
