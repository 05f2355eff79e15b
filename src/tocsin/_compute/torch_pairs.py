"""Null paths of kernel statistics, in PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from tocsin._compute.arrays import Float32Array, Int64Array
from tocsin._compute.torch_memory import Given, in_pieces
from tocsin._compute.torch_rows import kernels_at, triton_on

KernelAtLag = Callable[[int], Tensor]
"""The kernels of all points of streams with those so many steps later; (widths, P, L - lag)."""


def lagged(x: Tensor, multipliers: Float32Array) -> KernelAtLag:
    def kernels(lag: int) -> Tensor:
        squares = (x[:, :, lag:] - x[:, :, : x.shape[2] - lag]).square_().sum(0)
        return torch.stack(list(kernels_at(squares, multipliers)))

    return kernels


def lag_sums(
    kernels: KernelAtLag, windows: list[int], shape: tuple[int, int, int], device: torch.device
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
    points: Tensor, table: Given, streams: Tensor, neutral: Tensor | None, multipliers: Float32Array, windows: list[int]
) -> tuple[Tensor, Tensor]:
    """`lag_sums` of streams; neutral: None if no point comes twice."""
    (paths, length), widths, device = streams.shape, len(multipliers), points.device
    places = streams.long()
    if table.size if isinstance(table, np.ndarray) else table.numel():
        matrix = torch.as_tensor(table, device=device)

        kernels: KernelAtLag = lambda lag: matrix[places[:, lag:], places[:, : length - lag]][None]  # noqa: E731
    else:
        x = points.T.contiguous()[:, places.reshape(-1)].reshape(-1, paths, length)
        if triton := triton_on(device.type):
            found: tuple[Tensor, Tensor] = triton.band(
                x,
                None if neutral is None else streams,
                neutral,
                multipliers.tolist(),
                windows,
                min(windows[-1], length),
            )
            return found
        kernels = lagged(x, multipliers)
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
    # As a product with a triangle: PyTorch's running sums of short rows are slow on a GPU.
    from_there = torch.ones(window, window, dtype=torch.float64, device=values.device).tril_()
    rest = (padded @ from_there).flatten(-2)[..., : length - window + 1]
    # A whole stretch is in `rest` already.
    until_then = from_there.T.clone()
    until_then[:, -1] = 0
    return rest + (padded @ until_then).flatten(-2)[..., window - 1 : length]


def _write_paths(
    out: Tensor, back: Tensor, fore: Tensor, windows: list[int], offset: Tensor, linear: Tensor, typical: int
) -> None:
    """Rows of `out` (rows, P, m, T); offset (widths, P, m), linear (widths, P, m, L)."""
    channels, widest, tests = len(back) * len(windows), windows[-1], out.shape[-1]
    # Mean kernels are between 0 and 1, and streams are short: differences of running sums lose nothing.
    running = torch.nn.functional.pad(linear.cumsum(-1, dtype=torch.float64), (1, 0))
    offset = offset[..., None]
    for v, window in enumerate(windows):
        first = widest - window
        mean = (running[..., widest:] - running[..., first : first + tests]).div_(window).add_(offset)
        if typical >= 0:
            out[channels + v] = (mean[typical] + offset[typical]).mul_(0.5)
        pairs = window_pairs(back[:, v], fore[:, v], window, widest)[:, :, None]
        out[v : channels : len(windows)] = mean.add_(pairs.mul_(2 / (window * (window - 1))))


def _bytes(length: int, widths: int, windows: int, d: int, copies: int) -> float:
    """Of one path, about."""
    return 4.0 * length * (d + widths * (4 * windows + 12 + 10 * copies))


def pair_bootstrap_paths(
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
        terms = linear.transpose(0, 1)[:, met[:, :, None], own.long()[:, None, :]]
        _write_paths(out[:, start:stop], back, fore, sizes, offset[:, met], terms, typical)

    in_pieces(some, paths, _bytes(length, len(multipliers), len(sizes), len(points.T), together), device)
    return out.flatten(1, 2)


def pair_split_paths(
    points: Tensor,
    table: Given,
    streams: Given,
    windows: Int64Array,
    multipliers: Float32Array,
    row_sums: Given,
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
        terms = (across * (-2 / kept))[:, :, None]
        _write_paths(out[:, start:stop, None], back, fore, sizes, offset[:, :, None], terms, typical)

    in_pieces(some, paths, _bytes(length, len(multipliers), len(sizes) + 1, len(points.T), 2), device)
    return out
