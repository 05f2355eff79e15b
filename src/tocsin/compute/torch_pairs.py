"""Hot functions of kernel statistics in PyTorch. On GPUs the loops over pairs of points are `triton_`'s."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from tocsin.compute.arrays import FARTHEST, Float32Array, Float64Array, Int64Array
from tocsin.compute.torch_memory import get, in_pieces

Tensor = Any

KernelAtLag = Callable[[int], Tensor]
"""The kernels of all points of streams with those so many steps later; (widths, P, L - lag)."""

STEPS = 2**20
"""Observations that enter the windows at once."""


@cache
def _triton(device: str) -> Any:
    """The module, where it can run: on GPUs, with Triton (which PyTorch for Linux brings along)."""
    if device != "cuda" or find_spec("triton") is None:
        return None
    from tocsin.compute import triton_

    return triton_


def _kernels(squares: Tensor, multipliers: Float32Array) -> Iterator[Tensor]:
    """exp(-m squares) for every width; a multiplier of 0 stands for the fourth power of the width before."""
    kernel = squares
    for multiplier in multipliers.tolist():
        kernel = torch.exp(-multiplier * squares) if multiplier else kernel.square().square()
        yield kernel


def _expanded(multipliers: Float32Array) -> Float32Array:
    out: list[float] = []
    for multiplier in multipliers.tolist():
        out.append(multiplier or 4 * out[-1])
    return np.array(out, np.float32)


def _own(own: Any, device: torch.device) -> Tensor | None:
    """Places of queries in the reference, if any of them is a reference point."""
    if own is None or (isinstance(own, np.ndarray) and (own < 0).all()):
        return None
    return torch.as_tensor(own, device=device)


def _squares(points: Tensor, queries: Tensor) -> Tensor:
    """|x - q|^2, (n, N), by differences: points far from all others keep their digits."""
    return torch.cdist(queries.T, points.T, compute_mode="donot_use_mm_for_euclid_dist").square_()


def _left_out(own: Tensor, count: int, guard: int) -> Tensor:
    places = torch.arange(count, device=own.device)
    return ((places - own[:, None]).abs() <= guard) & (own >= 0)[:, None]


def gaussian_row_sums(
    points: Tensor,
    count: int,
    queries: Any,
    own: Any,
    guard: int,
    multipliers: Float32Array,
    weights: Any,
) -> Tensor:
    queries, own = torch.as_tensor(queries, device=points.device), _own(own, points.device)
    weights = torch.as_tensor(weights, device=points.device) if len(weights) else None
    if triton := _triton(points.device.type):
        sums: Tensor = triton.row_sums(points, count, queries, own, guard, multipliers.tolist(), weights)
        return sums
    n = queries.shape[1]
    out = points.new_empty((len(multipliers), n), dtype=torch.float64)

    def some(start: int, stop: int) -> None:
        squares = _squares(points[:, :count], queries[:, start:stop])
        for w, kernel in enumerate(_kernels(squares, multipliers)):
            if own is not None:
                kernel = kernel.masked_fill(_left_out(own[start:stop], count, guard), 0)
            if weights is not None:
                kernel = kernel * weights[w]
            out[w, start:stop] = kernel.sum(1, dtype=torch.float64)

    in_pieces(some, n, 20 * count, points.device)
    return out


def gaussian_products(
    points: Tensor,
    count: int,
    queries: Any,
    own: Any,
    guard: int,
    multipliers: Float32Array,
    weights: Tensor,
) -> Tensor:
    queries, own = torch.as_tensor(queries, device=points.device), torch.as_tensor(own, device=points.device)
    weights = torch.as_tensor(weights, device=points.device)
    if triton := _triton(points.device.type):
        products: Tensor = triton.products(
            points, count, queries, own, guard, _expanded(multipliers).tolist(), weights.contiguous()
        )
        return products
    n = queries.shape[1]
    out = points.new_empty((len(multipliers), n, weights.shape[1]), dtype=torch.float64)

    def some(start: int, stop: int) -> None:
        squares = _squares(points[:, :count], queries[:, start:stop])
        for w, kernel in enumerate(_kernels(squares, multipliers)):
            out[w, start:stop] = (
                kernel.masked_fill(_left_out(own[start:stop], count, guard), 0).double() @ weights.double()
            )

    in_pieces(some, n, 28 * count, points.device)
    return out


def scaled(points: Tensor, centre: Float64Array, scale: float) -> Tensor:
    """As `kernels.ScaledPoints`, where the points are."""
    moved = (points.double() - torch.as_tensor(centre, device=points.device)) * scale
    return moved.clamp_(-FARTHEST, FARTHEST).float()


def gaussian_observe(
    points: Tensor,
    count: int,
    queries: Any,
    centre: Float64Array,
    scale: float,
    own: Any,
    guard: int,
    multipliers: Float32Array,
    weights: Any,
) -> tuple[Tensor, Tensor]:
    queries, own = torch.as_tensor(queries, device=points.device), _own(own, points.device)
    block = scaled(queries, centre, scale).T.contiguous()
    linear = gaussian_row_sums(points, count, block, own, guard, multipliers, weights)
    if own is None or len(weights):
        return block, linear.mul_(-2 if len(weights) else -2 / count)
    left_out = ((own + guard).clamp(max=count - 1) - (own - guard).clamp(min=0) + 1) * (own >= 0)
    return block, linear.mul_(-2 / (count - left_out))


def pair_terms(products: Tensor, row_means: Float64Array, weights: Any, near: Any) -> tuple[Tensor, Tensor, Tensor]:
    device = products.device
    weights, near = torch.as_tensor(weights, device=device), torch.as_tensor(near, device=device)
    means, n = torch.as_tensor(row_means, device=device), len(weights)
    offset = (weights * products).sum(1) / (n**2 - (weights * near).sum(0))
    linear = (products * (-2 / (n - near))).float().permute(2, 0, 1).contiguous()
    return offset, linear, (2 * means - means.mean(1, keepdim=True)).float()


# Null paths


def _lagged(x: Tensor, multipliers: Float32Array) -> KernelAtLag:
    def kernels(lag: int) -> Tensor:
        squares = (x[:, :, lag:] - x[:, :, : x.shape[2] - lag]).square_().sum(0)
        return torch.stack(list(_kernels(squares, multipliers)))

    return kernels


def lag_sums(
    kernels: KernelAtLag, windows: list[int], shape: tuple[int, int, int], device: Any
) -> tuple[Tensor, Tensor]:
    """The sums of a point's kernels with those before it, and after it, that are less than a window away.

    shape: (widths, P, L).  Both (widths, windows, P, L).
    """
    widths, paths, length = shape
    back = torch.zeros((widths, len(windows), paths, length), dtype=torch.float64, device=device)
    fore = torch.zeros_like(back)
    for lag in range(1, min(windows[-1], length)):
        kernel = kernels(lag)
        for v, window in enumerate(windows):
            if lag < window:
                back[:, v, :, lag:] += kernel
                fore[:, v, :, : length - lag] += kernel
    return back, fore


def _with_repeats(kernels: KernelAtLag, streams: Tensor, neutral: Tensor) -> KernelAtLag:
    """A point that comes twice in a window takes the neutral value with itself."""

    def replaced(lag: int) -> Tensor:
        here = streams[:, lag:]
        return torch.where(here == streams[:, : streams.shape[1] - lag], neutral[:, here], kernels(lag))

    return replaced


def _band(
    points: Tensor, table: Any, streams: Tensor, neutral: Tensor | None, multipliers: Float32Array, windows: list[int]
) -> tuple[Tensor, Tensor]:
    """`lag_sums` of streams; neutral: None if no point comes twice."""
    (paths, length), widths, device = streams.shape, len(multipliers), points.device
    places = streams.long()
    if table.size if isinstance(table, np.ndarray) else table.numel():
        matrix = torch.as_tensor(table, device=device)

        kernels: KernelAtLag = lambda lag: matrix[places[:, lag:], places[:, : length - lag]][None]  # noqa: E731
    else:
        x = points.T.contiguous()[:, places.reshape(-1)].reshape(-1, paths, length)
        if triton := _triton(device.type):
            found: tuple[Tensor, Tensor] = triton.band(
                x,
                None if neutral is None else streams,
                neutral,
                multipliers.tolist(),
                windows,
                min(windows[-1], length),
            )
            return found
        kernels = _lagged(x, multipliers)
    if neutral is not None:
        kernels = _with_repeats(kernels, places, neutral)
    return lag_sums(kernels, windows, (widths, paths, length), device)


def window_pairs(back: Tensor, fore: Tensor, window: int, widest: int) -> Tensor:
    """The sum over the pairs of each window: all pairs up to its end, less those that its first point ends; (..., T).

    back, fore (..., L): of `lag_sums` for this window.
    """
    tests = back.shape[-1] - widest + 1
    pairs = back.cumsum(-1, dtype=torch.float64)[..., widest - 1 :]
    left = torch.nn.functional.pad(fore.cumsum(-1, dtype=torch.float64), (1, 0))
    return pairs - left[..., widest - window : widest - window + tests]


def window_sums(values: Tensor, window: int) -> Tensor:
    """Sums of `window` values in a row, (..., L) to (..., L - window + 1). Nothing is subtracted: the sum of a part of
    a stretch of as many values to its end, and of a part of the next from its start."""
    length = values.shape[-1]
    stretches = -(-length // window)
    padded = torch.nn.functional.pad(values.double(), (0, stretches * window - length))
    padded = padded.reshape(*values.shape[:-1], stretches, window)
    rest = padded.flip(-1).cumsum(-1).flip(-1).flatten(-2)[..., : length - window + 1]
    beginning = padded.cumsum(-1)
    beginning[..., -1] = 0  # a whole stretch is in `rest` already
    return rest + beginning.flatten(-2)[..., window - 1 : length]


def _paths_of(
    out: Tensor, back: Tensor, fore: Tensor, windows: list[int], offset: Tensor, linear: KernelAtLag, typical: int
) -> None:
    """Rows of `out` (rows, P, m, T); offset (widths, P, m); linear(w) (P, m, L)."""
    widths, count, widest = len(back), len(windows), windows[-1]
    tests = out.shape[-1]
    for w in range(widths):
        # Mean kernels are between 0 and 1, and streams are short: differences of running sums lose nothing.
        running = torch.nn.functional.pad(linear(w).cumsum(-1, dtype=torch.float64), (1, 0))
        for v, window in enumerate(windows):
            mean = running[..., widest:] - running[..., widest - window : widest - window + tests]
            mean = mean.div_(window).add_(offset[w, :, :, None])
            if w == typical:
                out[widths * count + v] = (mean + offset[w, :, :, None]).mul_(0.5)
            pairs = window_pairs(back[w, v], fore[w, v], window, widest)[:, None]
            out[w * count + v] = mean.add_(pairs.mul_(2 / (window * (window - 1))))


def _bytes(length: int, rows: int, d: int, copies: int) -> float:
    """Of one path, about."""
    return 4.0 * length * d + rows * length * (16 + 4 * copies) + 64.0 * length * copies


def pair_bootstrap_paths(
    points: Tensor,
    table: Any,
    streams: Any,
    copies: Any,
    windows: Int64Array,
    multipliers: Float32Array,
    neutral: Any,
    offset: Any,
    linear: Any,
    typical: int,
) -> Tensor:
    device, sizes = points.device, windows.tolist()
    streams, copies = torch.as_tensor(streams, device=device), torch.as_tensor(copies, device=device).long()
    neutral, offset = torch.as_tensor(neutral, device=device), torch.as_tensor(offset, device=device)
    linear = torch.as_tensor(linear, device=device)
    (paths, length), together = streams.shape, copies.shape[1]
    rows = (len(multipliers) + (typical >= 0)) * len(sizes)
    out = torch.empty((rows, paths, together, length - sizes[-1] + 1), dtype=torch.float32, device=device)

    def some(start: int, stop: int) -> None:
        own, met = streams[start:stop], copies[start:stop]
        back, fore = _band(points, table, own, neutral, multipliers, sizes)
        places = own.long()[:, None, :]
        _paths_of(
            out[:, start:stop], back, fore, sizes, offset[:, met],
            lambda w: linear[:, w][met[:, :, None], places], typical,
        )  # fmt: skip

    in_pieces(some, paths, _bytes(length, rows, len(points.T), together), device)
    return out.flatten(1, 2)


def pair_split_paths(
    points: Tensor,
    table: Any,
    streams: Any,
    windows: Int64Array,
    multipliers: Float32Array,
    row_sums: Any,
    typical: int,
) -> Tensor:
    device, sizes = points.device, windows.tolist()
    streams, row_sums = torch.as_tensor(streams, device=device), torch.as_tensor(row_sums, device=device)
    paths, length = streams.shape
    kept = row_sums.shape[1] - length
    rows = (len(multipliers) + (typical >= 0)) * len(sizes)
    out = torch.empty((rows, paths, length - sizes[-1] + 1), dtype=torch.float32, device=device)

    def some(start: int, stop: int) -> None:
        own = streams[start:stop]
        back, fore = _band(points, table, own, None, multipliers, [*sizes, length])
        within = (back[:, -1] + fore[:, -1]).double()
        across = row_sums[:, own.long()] - within
        among_kept = row_sums.sum(1, keepdim=True) - (2 * across + within).sum(2)
        offset = among_kept / (kept * (kept - 1.0))
        _paths_of(
            out[:, start:stop, None], back, fore, sizes, offset[:, :, None],
            lambda w: (across[w] * (-2 / kept))[:, None], typical,
        )  # fmt: skip

    in_pieces(some, paths, _bytes(length, rows + len(multipliers), len(points.T), 2), device)
    return out


# The live stream


def pair_advance(
    buffer: Float32Array,
    ahead: Float32Array,
    linear: Float64Array,
    cursor: Int64Array,
    windows: Int64Array,
    multipliers: Float32Array,
    offset: Float64Array,
    typical: int,
    block: Tensor,
    block_linear: Tensor,
    start: int,
    stop: int,
) -> Tensor:
    """The state is the host's, as in the other backends: a detector may go on with any of them."""
    state, pieces = (buffer, ahead, linear, cursor), []
    for first in range(start, stop, STEPS):
        new = slice(first, min(first + STEPS, stop))
        pieces.append(
            _advanced(*state, windows.tolist(), multipliers, offset, typical, block[:, new], block_linear[:, new])
        )
    return torch.cat(pieces) if len(pieces) > 1 else pieces[0]


def _advanced(
    buffer: Float32Array,
    ahead: Float32Array,
    linear: Float64Array,
    cursor: Int64Array,
    windows: list[int],
    multipliers: Float32Array,
    offset: Float64Array,
    typical: int,
    block: Tensor,
    block_linear: Tensor,
) -> Tensor:
    device, widest, position, n = block.device, windows[-1], int(cursor[0]), block.shape[1]
    before = slice(max(0, position - widest + 1), position)
    x = torch.cat([torch.as_tensor(buffer[:, before], device=device), block], 1)
    terms = torch.cat([torch.as_tensor(linear[:, before], device=device), block_linear], 1)
    known, length = before.stop - before.start, x.shape[1]
    if triton := _triton(device.type):
        back, fore = triton.band(
            x[:, None].contiguous(), None, None, multipliers.tolist(), windows, min(widest, length)
        )
    else:
        kernels = _lagged(x[:, None], multipliers)
        back, fore = lag_sums(kernels, windows, (len(multipliers), 1, length), device)
    widths, count = len(multipliers), len(windows)
    out = torch.full((n, (widths + (typical >= 0)) * count), torch.nan, dtype=torch.float64, device=device)
    for v, window in enumerate(windows):
        if length < window:
            continue
        # The windows that end at new points, from the first that is full.
        full = max(known, window - 1)
        mean = window_sums(terms, window)[:, full - window + 1 :] / window
        pairs = window_pairs(back[:, v, 0], fore[:, v, 0], window, window)[:, full - window + 1 :]
        base = torch.as_tensor(offset, device=device)[:, None]
        out[full - known :, v : widths * count : count] = (base + 2 * pairs / (window * (window - 1)) + mean).T
        if typical >= 0:
            out[full - known :, widths * count + v] = base[typical] + mean[typical] / 2
    keep = min(length, widest - 1)
    buffer[:, :keep], linear[:, :keep] = get(x[:, length - keep :]), get(terms[:, length - keep :])
    ahead[:, :keep] = get(fore[:, -1, 0, length - keep :])
    cursor[0] = keep
    return out


def pair_bank_step(
    buffer: Tensor,
    ahead: Tensor,
    linear: Tensor,
    position: Tensor,
    filled: Tensor,
    windows: Tensor,
    multipliers: Float32Array,
    offset: Tensor,
    typical: int,
    chosen: Any,
    start: int,
    stop: int,
    block: Any,
    block_linear: Any,
) -> Tensor:
    device, widest = buffer.device, ahead.shape[2]
    x = torch.as_tensor(block, device=device)[:, start:stop].T
    terms = torch.as_tensor(block_linear, device=device)[:, start:stop].T
    offset, sizes = torch.as_tensor(offset, device=device), torch.as_tensor(windows, device=device)
    rows = torch.arange(stop - start, device=device)
    everyone = stop - start == len(buffer) and chosen[0] == 0 and bool((np.diff(chosen) == 1).all())
    own = slice(None) if everyone else torch.as_tensor(chosen[start:stop], device=device)
    place = position[own]
    squares = (buffer[own, :, :widest] - x[:, :, None]).square_().sum(1)
    sums, means = ahead[own], linear[own]  # themselves, if everyone's
    for w, kernel in enumerate(_kernels(squares, multipliers)):
        sums[:, w] += kernel
    sums[rows, :, place], means[rows, :, place] = 0, terms
    known = (filled[own] + 1).clamp_(max=widest)
    age = (place[:, None] - torch.arange(widest, device=device)) % widest
    inside = (age[:, :, None] < sizes).double()  # (n, W, windows)
    mean = torch.bmm(means, inside) / sizes
    value = offset[:, None] + torch.bmm(sums.double(), inside) * (2 / (sizes * (sizes - 1))) + mean
    if typical >= 0:
        value = torch.cat([value, (offset[:, None] + mean / 2)[:, typical : typical + 1]], 1)
    out = value.masked_fill_((known[:, None] < sizes)[:, None], torch.nan).flatten(1)
    buffer[rows if everyone else own, :, place] = x
    if not everyone:
        ahead[own], linear[own] = sums, means
    position[own], filled[own] = (place + 1) % widest, known
    return out
