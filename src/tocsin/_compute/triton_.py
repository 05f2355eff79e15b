"""Hot loops of kernel statistics for NVIDIA GPUs, in Triton: whatever is between points and sums stays in registers.

Points are columns (d, n), as in `numba_pairs`, and `sizes` their squared lengths.
"""

from __future__ import annotations

import math
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

LOG2_E = math.log2(math.e)

ROUNDING, TOLERANCE = 1e-6, 1e-4
"""Relative error of |x|^2 + |q|^2 - 2 x.q, and the relative error of a kernel that is put up with."""

LARGEST_EXPONENT = 16.0
"""Kernels below exp(-16) need not be exact."""

ALIKE = tl.constexpr(LARGEST_EXPONENT * ROUNDING / TOLERANCE)

SUM_TILE, PRODUCT_TILE, BAND_TILE = (128, 64, 4), (64, 64, 4), (32, 16, 1)
"""Rows and columns of tiles, and the warps that share one: the fastest of those tried on an H200."""

PROGRAMS = 1024
"""Programs that keep a large GPU busy."""

SUMMED, MOST_TOGETHER = 2048, 128
"""Columns summed in float32 before float64 takes over; weights that are multiplied together."""


@triton.jit
def _product(
    points, stride, columns, inside, queries, query_stride, rows, within, first, D, DEPTH: tl.constexpr, products
):  # fmt: skip
    k = (first + tl.arange(0, DEPTH)).to(tl.int64)
    known = k < D
    q = tl.load(queries + k[None, :] * query_stride + rows[:, None], mask=known[None, :] & within[:, None], other=0.0)
    x = tl.load(points + k[:, None] * stride + columns[None, :], mask=known[:, None] & inside[None, :], other=0.0)
    return tl.dot(q, x, products, input_precision="tf32x3")


@triton.jit
def _squares(
    points, sizes, stride, columns, inside, queries, query_sizes, query_stride, rows, within, far,
    doubtful, D, DEPTH: tl.constexpr, AT_ONCE: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """|x - q|^2 of every row and column of a tile, by |x|^2 + |q|^2 - 2 x.q.

    If that would cancel too many digits for some pair (both far from the centre, and near to each other), the tile is
    computed by differences. To look for such pairs costs time: `doubtful` says whether there can be any.
    """
    products = tl.zeros((R, C), tl.float32)
    if AT_ONCE:  # without a loop of their own, tiles are fetched while the one before is computed
        products = _product(points, stride, columns, inside, queries, query_stride, rows, within, 0, D, DEPTH, products)
    else:
        for first in range(0, D, DEPTH):
            products = _product(
                points, stride, columns, inside, queries, query_stride, rows, within, first, D, DEPTH, products
            )
    size = tl.load(sizes + columns, mask=inside, other=0.0)
    query_size = tl.load(query_sizes + rows, mask=within, other=0.0)
    both = query_size[:, None] + size[None, :]
    squares = tl.maximum(both - 2 * products, 0.0)
    # Nested, here and below: Triton computes both sides of an `and`.
    if doubtful:  # noqa: SIM102
        if tl.max(tl.where(squares < ALIKE * both, both, 0.0)) > far:
            squares = tl.zeros((R, C), tl.float32)
            point, query = points, queries
            for _ in range(D):
                x = tl.load(point + columns, mask=inside, other=0.0)
                q = tl.load(query + rows, mask=within, other=0.0)
                point += stride
                query += query_stride
                difference = q[:, None] - x[None, :]
                squares += difference * difference
    return squares


@triton.jit
def _row_sums(
    points, sizes, stride, count, queries, query_sizes, query_stride, n, own, guard, weights, multipliers, far,
    largest, out, span, D, DEPTH: tl.constexpr, AT_ONCE: tl.constexpr, WIDTHS: tl.constexpr, POWERS: tl.constexpr,
    OWN: tl.constexpr, WEIGHTED: tl.constexpr, ROOM: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    doubtful = tl.load(largest) > far
    rows = tl.program_id(0) * R + tl.arange(0, R)
    within = rows < n
    places = tl.arange(0, ROOM)
    begin = tl.program_id(1) * span
    if OWN:
        mine = tl.load(own + rows, mask=within, other=-1)
        first, last = tl.where(mine >= 0, mine - guard, -1), tl.where(mine >= 0, mine + guard, -1)
    sums = tl.zeros((R, ROOM), tl.float64)
    for start in range(begin, min(begin + span, count), C):
        columns = start + tl.arange(0, C)
        inside = columns < count
        squares = _squares(
            points, sizes, stride, columns, inside, queries, query_sizes, query_stride, rows, within, far,
            doubtful, D, DEPTH, AT_ONCE, R, C,
        )  # fmt: skip
        met = inside[None, :]
        if OWN:
            met = met & ((columns[None, :] < first[:, None]) | (columns[None, :] > last[:, None]))
        kernel = squares
        for w in tl.static_range(WIDTHS):
            if (POWERS >> w) & 1:
                kernel = kernel * kernel
                kernel = kernel * kernel
            else:
                kernel = tl.where(met, tl.exp2(-tl.load(multipliers + w) * squares), 0.0)
            summand = kernel
            if WEIGHTED:
                summand = kernel * tl.load(weights + w * count + columns, mask=inside, other=0.0)[None, :]
            total = tl.sum(summand, 1).to(tl.float64)
            sums += tl.where(places[None, :] == w, total[:, None], 0.0)
    target = out + (tl.program_id(1) * WIDTHS + places[None, :]) * n + rows[:, None]
    tl.store(target, sums, mask=within[:, None] & (places[None, :] < WIDTHS))


@triton.jit
def _products(
    points, sizes, stride, count, queries, query_sizes, query_stride, n, own, guard, weights, multipliers, far,
    largest, out, copies, D, DEPTH: tl.constexpr, AT_ONCE: tl.constexpr, SPAN: tl.constexpr, R: tl.constexpr,
    C: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    doubtful = tl.load(largest) > far
    w = tl.program_id(1)
    rows = tl.program_id(0) * R + tl.arange(0, R)
    within = rows < n
    together = tl.program_id(2) * G + tl.arange(0, G)
    multiplier = tl.load(multipliers + w)
    mine = tl.load(own + rows, mask=within, other=-1)
    first, last = mine - guard, mine + guard
    target = out + (w.to(tl.int64) * n + rows[:, None]) * copies + together[None, :]
    stored = within[:, None] & (together[None, :] < copies)
    for begin in range(0, count, SPAN):
        total = tl.zeros((R, G), tl.float32)
        for start in range(begin, min(begin + SPAN, count), C):
            columns = start + tl.arange(0, C)
            inside = columns < count
            squares = _squares(
                points, sizes, stride, columns, inside, queries, query_sizes, query_stride, rows, within, far,
                doubtful, D, DEPTH, AT_ONCE, R, C,
            )  # fmt: skip
            met = inside[None, :] & ((columns[None, :] < first[:, None]) | (columns[None, :] > last[:, None]))
            kernel = tl.where(met, tl.exp2(-multiplier * squares), 0.0)
            places = weights + columns[:, None].to(tl.int64) * copies + together[None, :]
            weight = tl.load(places, mask=inside[:, None] & (together[None, :] < copies), other=0.0)
            total = tl.dot(kernel, weight, total, input_precision="tf32x3")
        before = tl.load(target, mask=stored, other=0.0)
        tl.store(target, before + total.to(tl.float64), mask=stored)


@triton.jit
def _band(
    x, sizes, streams, neutral, count, multipliers, far, largest, back, fore, length, paths, stride, reach,
    D, DEPTH: tl.constexpr, AT_ONCE: tl.constexpr, WIDTHS: tl.constexpr, WINDOWS: tl.constexpr, BOUNDS: tl.constexpr,
    POWERS: tl.constexpr, REPEATS: tl.constexpr, ROOM: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    doubtful = tl.load(largest) > far
    path = tl.program_id(0).to(tl.int64)
    begin = tl.program_id(1) * R
    own, own_sizes, own_places = x + path * length, sizes + path * length, streams + path * length
    t = begin + tl.arange(0, R)
    within = t < length
    channels = tl.arange(0, ROOM)
    if REPEATS:
        mine = tl.load(own_places + t, mask=within, other=-1)
    before = tl.zeros((R, ROOM), tl.float32)
    after = tl.zeros((R, ROOM), tl.float32)
    for start in range(begin - reach + 1, begin + R + reach - 1, C):
        columns = start + tl.arange(0, C)
        inside = (columns >= 0) & (columns < length)
        squares = _squares(
            own, own_sizes, stride, columns, inside, own, own_sizes, stride, t, within, far,
            doubtful, D, DEPTH, AT_ONCE, R, C,
        )  # fmt: skip
        lag = tl.where(inside[None, :], t[:, None] - columns[None, :], 0)
        latest, earliest = begin + R - 1 - start, begin - start - C + 1
        if REPEATS:
            others = tl.load(own_places + columns, mask=inside, other=-2)
            same = mine[:, None] == others[None, :]
            repeats = tl.max(same.to(tl.int32)) > 0
        kernel = squares
        for w in tl.static_range(WIDTHS):
            if (POWERS >> w) & 1:
                kernel = kernel * kernel
                kernel = kernel * kernel
            else:
                kernel = tl.exp2(-tl.load(multipliers + w) * squares)
            pair = kernel
            if REPEATS:  # noqa: SIM102
                if repeats:
                    value = tl.load(neutral + w * count + mine, mask=within, other=0.0)
                    pair = tl.where(same, value[:, None], kernel)
            for v in tl.static_range(WINDOWS):
                # Lags between this window and the one before are in all wider windows too.
                least, most = BOUNDS[v], BOUNDS[v + 1]
                here = (channels[None, :] >= w * WINDOWS + v) & (channels[None, :] < (w + 1) * WINDOWS)
                if (latest >= least) & (earliest < most):
                    past = tl.sum(tl.where((lag >= least) & (lag < most), pair, 0.0), 1)
                    before += tl.where(here, past[:, None], 0.0)
                if (-earliest >= least) & (-latest < most):
                    future = tl.sum(tl.where((lag <= -least) & (lag > -most), pair, 0.0), 1)
                    after += tl.where(here, future[:, None], 0.0)
    target = (channels[None, :].to(tl.int64) * paths + path) * length + t[:, None]
    stored = within[:, None] & (channels[None, :] < WIDTHS * WINDOWS)
    tl.store(back + target, before, mask=stored)
    tl.store(fore + target, after, mask=stored)


@cache
def _widths(multipliers: tuple[float, ...], device: torch.device) -> tuple[Tensor, int, float]:
    """Multipliers for powers of two; which widths are the fourth power of the one before, as bits; how large points
    must be for the digits of their distances to be doubted."""
    powers = sum(1 << w for w, value in enumerate(multipliers) if value == 0)
    narrowest = 0.0
    for value in multipliers:
        narrowest = max(value, 4 * narrowest if value == 0 else 0.0)
    return torch.tensor(multipliers, device=device) * LOG2_E, powers, TOLERANCE / ROUNDING / narrowest


def _sizes(points: Tensor) -> Tensor:
    return (points * points).sum(0)


def _largest(sizes: Tensor, query_sizes: Tensor) -> Tensor:
    return sizes.amax() + query_sizes.amax()


def _depth(d: int) -> int:
    return max(16, min(32, int(triton.next_power_of_2(d))))


def row_sums(
    points: Tensor, count: int, queries: Tensor, own: Tensor | None, guard: int, multipliers: list[float],
    weights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The sums of `numpy_.gaussian_row_sums`; own: None if no query is a reference point."""
    d, n, widths, (rows, columns, warps) = len(points), queries.shape[1], len(multipliers), SUM_TILE
    blocks = triton.cdiv(n, rows)
    # Few queries would leave most of the chip idle: several programs then share the columns of each.
    parts = max(1, min(PROGRAMS // blocks, triton.cdiv(count, columns)))
    span = triton.cdiv(triton.cdiv(count, parts), columns) * columns
    out = torch.empty((parts, widths, n), dtype=torch.float64, device=points.device)
    sizes, query_sizes = _sizes(points), _sizes(queries)
    scaled, powers, far = _widths(tuple(multipliers), points.device)
    with torch.cuda.device_of(points):  # Triton launches on the current one
        _row_sums[(blocks, parts)](
            points, sizes, points.stride(0), count, queries, query_sizes, queries.stride(0), n,
            scaled if own is None else own, guard, scaled if weights is None else weights, scaled, far,
            _largest(sizes, query_sizes), out, span, d, DEPTH=_depth(d), AT_ONCE=d <= _depth(d), WIDTHS=widths,
            POWERS=powers, OWN=own is not None, WEIGHTED=weights is not None, ROOM=triton.next_power_of_2(widths),
            R=rows, C=columns, num_warps=warps,
        )  # fmt: skip
    return out.sum(0)


def products(
    points: Tensor, count: int, queries: Tensor, own: Tensor, guard: int, multipliers: list[float], weights: Tensor
) -> Tensor:
    """The products of `numpy_.gaussian_products`; multipliers of all widths, none 0."""
    d, n, copies = len(points), queries.shape[1], weights.shape[1]
    out = torch.zeros((len(multipliers), n, copies), dtype=torch.float64, device=points.device)
    scaled, _, far = _widths(tuple(multipliers), points.device)
    rows, columns, warps = PRODUCT_TILE
    sizes, query_sizes = _sizes(points), _sizes(queries)
    together = max(16, min(MOST_TOGETHER, triton.next_power_of_2(copies)))
    with torch.cuda.device_of(points):  # Triton launches on the current one
        _products[(triton.cdiv(n, rows), len(multipliers), triton.cdiv(copies, together))](
            points, sizes, points.stride(0), count, queries, query_sizes, queries.stride(0), n, own, guard, weights,
            scaled, far, _largest(sizes, query_sizes), out, copies, d, DEPTH=_depth(d), AT_ONCE=d <= _depth(d),
            SPAN=SUMMED, R=rows, C=columns, G=together, num_warps=warps,
        )  # fmt: skip
    return out


def band(
    x: Tensor, streams: Tensor | None, neutral: Tensor | None, multipliers: list[float], windows: list[int], reach: int
) -> tuple[Tensor, Tensor]:
    """As `torch_pairs.lag_sums`; x (d, P, L), and streams (P, L) of places where some may come twice."""
    d, paths, length = x.shape
    shape = (len(multipliers), len(windows), paths, length)
    back = torch.empty(shape, dtype=torch.float32, device=x.device)
    fore = torch.empty_like(back)
    scaled, powers, far = _widths(tuple(multipliers), x.device)
    rows, columns, warps = BAND_TILE
    sizes = _sizes(x)
    with torch.cuda.device_of(x):  # Triton launches on the current one
        _band[(paths, triton.cdiv(length, rows))](
            x, sizes, scaled if streams is None else streams, scaled if neutral is None else neutral,
            0 if neutral is None else neutral.shape[1], scaled,
            far, _largest(sizes, sizes), back, fore, length, paths, paths * length,
            reach, d, DEPTH=_depth(d), AT_ONCE=d <= _depth(d), WIDTHS=len(multipliers), WINDOWS=len(windows),
            BOUNDS=(1, *windows), POWERS=powers, REPEATS=streams is not None,
            ROOM=triton.next_power_of_2(shape[0] * shape[1]), R=rows,
            C=columns, num_warps=warps,
        )  # fmt: skip
    return back, fore
