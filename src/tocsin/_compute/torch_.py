"""The hot functions in PyTorch, for GPUs (and for CPUs, to test them there). `numpy_` has the same ones: read those.

Arrays are tensors on one device, that of the first argument; what is small may be NumPy's. What goes on to be judged on
the host (records, first passages) is NumPy's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tocsin._compute.arrays import Array, BoolArray, Float32Array, Float64Array, Int32Array, Int64Array
from tocsin._compute.host import coins
from tocsin._compute.numba_live import pair_keys_advance, pair_keys_take
from tocsin._compute.numba_news import news_watch
from tocsin._compute.numba_rule import decide, judge, judge_one
from tocsin._compute.numba_stream import pair_step, pair_step_lacking
from tocsin._compute.numba_view_streams import view_sums
from tocsin._compute.numba_views import autoregress, view_channels, view_follow, view_rows
from tocsin._compute.torch_features import (
    bumps,
    feature_advance,
    feature_bootstrap_paths,
    feature_split_paths,
    mean_distances,
)
from tocsin._compute.torch_live import pair_advance, pair_bank_step, pair_sums
from tocsin._compute.torch_memory import Given, get, put
from tocsin._compute.torch_pairs import pair_bootstrap_paths, pair_split_paths
from tocsin._compute.torch_rows import gaussian_observe, gaussian_products, gaussian_row_sums, pair_terms
from tocsin._compute.torch_view_streams import view_watch

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
    "speaking",
    "stretch_maxima",
    "take",
    "uniforms",
    "view_channels",
    "view_follow",
    "view_rows",
    "view_sums",
    "view_watch",
]

BLOCK_WORK, SPREAD_STREAMS, ROWS = 2**30, 512, 2**17
"""As in `host`: enough to keep a GPU busy. What its memory cannot hold at once is computed in pieces."""

TOGETHER = 2**24
"""Points of pseudo-references that are drawn at once."""

GOLDEN = 0x9E3779B97F4A7C15 - 2**64
MIXERS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)


def _hashed(seed: int, size: int, device: str) -> Tensor:
    """Uniform numbers: splitmix64 (Steele et al. 2014) of a counter, the same on every device."""
    x = torch.arange(1, size + 1, device=device).mul_(GOLDEN).add_(seed)
    for shift, mixer in zip((30, 27), MIXERS, strict=True):
        x = x.bitwise_xor_((x >> shift) & (2 ** (64 - shift) - 1)).mul_(mixer)
    x = x.bitwise_xor_((x >> 31) & (2**33 - 1))
    return ((x >> 11) & (2**53 - 1)).double().mul_(2.0**-53)


def uniforms(device: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Tensor:
    return _hashed(int(rng.integers(2**62)), int(np.prod(shape)), device).reshape(shape)


def integers(device: str, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Tensor:
    return uniforms(device, rng, shape).mul_(count).int()


def references(device: str, rng: np.random.Generator, count: int, copies: int) -> Tensor:
    pieces, size = [], max(1, TOGETHER // count)
    for start in range(0, copies, size):
        own = torch.arange(min(size, copies - start), device=device)[:, None]
        drawn = integers(device, rng, count, (len(own), count)) + own * count
        pieces.append(torch.bincount(drawn.flatten(), minlength=len(own) * count).reshape(-1, count))
    return torch.cat(pieces).T.float().contiguous()


def distinct(device: str, rng: np.random.Generator, count: int, shape: tuple[int, int]) -> Tensor:
    """Whatever comes a second time in its row is drawn again; no label is preferred, so all streams are as likely."""
    streams = integers(device, rng, count, shape)
    while True:
        in_order, places = streams.sort(dim=1, stable=True)
        again = torch.zeros_like(streams, dtype=torch.bool)
        again.scatter_(1, places[:, 1:], in_order[:, 1:] == in_order[:, :-1])
        repeats = int(again.sum())
        if not repeats:
            return streams
        streams[again] = integers(device, rng, count, (repeats,))


def concatenate(arrays: Sequence[Given], axis: int = 0) -> Tensor:
    device = next((array.device for array in arrays if isinstance(array, torch.Tensor)), "cpu")
    return torch.cat([torch.as_tensor(array, device=device) for array in arrays], axis)


def flat(array: Given) -> Tensor:
    return torch.as_tensor(array).reshape(-1).double()


def quantile(values: Tensor, level: float) -> float:
    place = level * (len(values) - 1)
    low = int(place)
    around = values.sort().values[low : low + 2].tolist()
    return float(around[0] + (place - low) * (around[-1] - around[0]))


def loudest(
    channels: Tensor, centre: Float64Array, scale: Float64Array, ties: Given, grid: float, origin: float
) -> Tensor:
    return _loudest(list(torch.as_tensor(channels)), centre, scale, ties, grid, origin)


def _loudest(
    channels: list[Tensor], centre: Float64Array, scale: Float64Array, ties: Given, grid: float, origin: float
) -> Tensor:
    ties = torch.as_tensor(ties, device=channels[0].device)
    out: Tensor | None = None
    for values, middle, size in zip(channels, centre.tolist(), scale.tolist(), strict=True):
        score = values.double().sub_(middle).div_(size)
        out = score if out is None else torch.maximum(out, score, out=out)
    assert out is not None
    if grid:
        out = out.sub_(origin).div_(grid).round_().mul_(grid).add_(origin)
    return out.add_(ties.repeat_interleave(len(out) // len(ties), 0))


def pair_bootstrap_loudest(
    points: Tensor,
    table: Given,
    streams: Given,
    copies: Given,
    windows: Int64Array,
    multipliers: Float32Array,
    neutral: Given,
    offset: Given,
    linear: Given,
    typical: int,
    rows: Int64Array,
    signs: Float64Array,
    centre: Float64Array,
    scale: Float64Array,
    ties: Given,
    grid: float,
    origin: float,
) -> Tensor:
    paths = pair_bootstrap_paths(
        points, table, streams, copies, windows, multipliers, neutral, offset, linear, typical
    )  # fmt: skip
    # sign S - centre over scale, with the rows as they are: no copy of them is made.
    return _loudest([paths[row] for row in rows.tolist()], signs * centre, signs * scale, ties, grid, origin)


def pair_bootstrap_passages(
    points: Tensor,
    table: Given,
    streams: Given,
    windows: Int64Array,
    multipliers: Float32Array,
    neutral: Given,
    offset: Given,
    linear: Given,
    mean_offset: Given,
    mean_linear: Given,
    typical: int,
    rows: Int64Array,
    signs: Float64Array,
    centre: Float64Array,
    scale: Float64Array,
    ties: Given,
    levels: Float64Array,
    floors: Float64Array,
) -> tuple[Int64Array, float]:
    device, tests = points.device, len(levels)

    def paths(offset: Given, linear: Given) -> Tensor:
        copies = torch.arange(len(linear), device=device).expand(len(streams), -1)
        found = pair_bootstrap_loudest(
            points, table, streams, copies, windows, multipliers, neutral, offset, linear, typical, rows, signs,
            centre, scale, ties, 0.0, 0.0,
        )  # fmt: skip
        return found.reshape(len(streams), -1, tests)

    passed, least = (
        paths(offset, torch.as_tensor(linear, device=device).permute(2, 1, 0)) > torch.as_tensor(levels, device=device),
        np.inf,
    )
    if np.isfinite(floors).any():  # else all is looked at, and the mean need not be known
        above = paths(mean_offset, mean_linear) - torch.as_tensor(floors, device=device)
        passed &= above > 0
        last = torch.where(passed.any(2), passed.int().argmax(2), tests)
        seen = above[:, 0].gather(1, last.clamp(max=tests - 1))[last < tests]
        least = float(seen.min()) if len(seen) else np.inf
    return get(torch.where(passed.any(2), passed.int().argmax(2), tests)), least


def speaking(channels: Tensor, centre: Float64Array, scale: Float64Array) -> tuple[Float64Array, Int64Array]:
    device = channels.device
    scores = (channels - torch.as_tensor(centre, device=device)).div_(torch.as_tensor(scale, device=device))
    best, loudest = scores.max(1)
    return get(best), get(loudest)


def records(paths: Tensor, edges: Int64Array, floors: Float64Array) -> tuple[Int32Array, Int32Array, Int32Array, Array]:
    found = paths > torch.as_tensor(np.repeat(floors, np.diff(edges)), device=paths.device)
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if stop - start > 1:
            best = paths[:, start : stop - 1].cummax(1).values
            found[:, start + 1 : stop] &= paths[:, start + 1 : stop] > best
    path, test = found.nonzero(as_tuple=True)
    value = get(paths[path, test])
    path, test = get(path.int()), get(test)
    stretch = np.searchsorted(edges, test, side="right") - 1
    return path, stretch.astype(np.int32), (test - edges[stretch] + 1).astype(np.int32), value


def first_passages(paths: Tensor, levels: Float64Array, start: int) -> tuple[BoolArray, Int64Array]:
    above = paths > torch.as_tensor(levels, device=paths.device)
    rang = above.any(1)
    last = torch.where(rang, above.int().argmax(1), paths.shape[1] - 1)
    return get(rang & (last >= start)), get((last - start + 1).clamp_(min=0))


def exponentials(x: Tensor) -> Tensor:
    return torch.exp(torch.as_tensor(x))


def take(array: Given, rows: Int64Array, columns: Int64Array) -> Array:
    array = torch.as_tensor(array)
    return get(array[torch.as_tensor(rows, device=array.device), torch.as_tensor(columns, device=array.device)])


def stretch_maxima(paths: Tensor, edges: Int64Array) -> Float64Array:
    pieces = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return get(torch.stack([paths[:, start:stop].amax(1) for start, stop in pieces], 1))
