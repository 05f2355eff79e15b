"""Live streams of kernel statistics, in PyTorch: one, a block at a time, or many, a point each.

State is written last: whatever goes wrong before, memory above all, leaves it as it was.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._compute.torch_memory import Given, get
from tocsin._compute.torch_pairs import lag_sums, lagged, window_pairs, window_sums
from tocsin._compute.torch_rows import kernels_at, triton_on

STEPS = 2**20
"""Observations that enter the windows at once."""


def pair_advance(
    buffer: Float32Array,
    ahead: Float32Array,
    linear: Float64Array,
    cursor: Int64Array,
    windows: Int64Array,
    multipliers: Float32Array,
    offset: Float64Array,
    typical: int,
    rows: Int64Array,
    signs: Float64Array,
    block: Tensor,
    block_linear: Tensor,
    start: int,
    stop: int,
) -> Tensor:
    """The state is the host's, as in the other backends: a detector may go on with any of them."""
    device, sizes, position = block.device, windows.tolist(), int(cursor[0])
    before = slice(max(0, position - sizes[-1] + 1), position)
    points, terms = torch.as_tensor(buffer[:, before], device=device), torch.as_tensor(linear[:, before], device=device)
    base, pieces, sums = torch.as_tensor(offset, device=device)[:, None], [], points
    for first in range(start, stop, STEPS):
        new = slice(first, min(first + STEPS, stop))
        piece, points, terms, sums = _advanced(
            points, terms, sizes, multipliers, base, typical, block[:, new], block_linear[:, new]
        )
        pieces.append(piece)
    keep, found = points.shape[1], (get(points), get(terms), get(sums))
    buffer[:, :keep], linear[:, :keep], ahead[:, :keep] = found
    cursor[0] = keep
    return _channels(torch.cat(pieces) if len(pieces) > 1 else pieces[0], rows, signs)


def _advanced(
    recent: Tensor,
    recent_terms: Tensor,
    windows: list[int],
    multipliers: Float32Array,
    base: Tensor,
    typical: int,
    block: Tensor,
    block_linear: Tensor,
) -> tuple[Tensor, ...]:
    """All rows of new points; and, of the last ones, the points, their terms, and their sums of later kernels."""
    device, widest, known, n = block.device, windows[-1], recent.shape[1], block.shape[1]
    x, terms = torch.cat([recent, block], 1), torch.cat([recent_terms, block_linear], 1)
    length = x.shape[1]
    if triton := triton_on(device.type):
        back, fore = triton.band(
            x[:, None].contiguous(), None, None, multipliers.tolist(), windows, min(widest, length)
        )
    else:
        back, fore = lag_sums(lagged(x[:, None], multipliers), windows, (len(multipliers), 1, length), device)
    widths, count = len(multipliers), len(windows)
    out = torch.full((n, (widths + (typical >= 0)) * count), torch.nan, dtype=torch.float64, device=device)
    for v, window in enumerate(windows):
        if length < window:
            continue
        # The windows that end at new points, from the first that is full.
        full = max(known, window - 1)
        mean = window_sums(terms, window)[:, full - window + 1 :] / window
        pairs = window_pairs(back[:, v, 0], fore[:, v, 0], window, window)[:, full - window + 1 :]
        out[full - known :, v : widths * count : count] = (base + 2 * pairs / (window * (window - 1)) + mean).T
        if typical >= 0:
            out[full - known :, widths * count + v] = base[typical] + mean[typical] / 2
    last = slice(length - min(length, widest - 1), length)
    return out, x[:, last], terms[:, last], fore[:, -1, 0, last]


def _channels(found: Tensor, rows: Int64Array, signs: Float64Array) -> Tensor:
    """signs[k] times row rows[k], of what was found of each point."""
    if np.array_equal(rows, np.arange(found.shape[1])) and (signs == 1).all():
        return found
    made = torch.as_tensor(np.stack([rows, signs]), device=found.device)  # at once: small things are slow to put there
    return found[:, made[0].long()].mul_(made[1])


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
    rows: Int64Array,
    signs: Float64Array,
    chosen: Int64Array,
    start: int,
    stop: int,
    block: Given,
    block_linear: Given,
) -> Tensor:
    device, widest = buffer.device, ahead.shape[2]
    x = torch.as_tensor(block, device=device)[:, start:stop].T
    terms = torch.as_tensor(block_linear, device=device)[:, start:stop].T
    offset, sizes = torch.as_tensor(offset, device=device), torch.as_tensor(windows, device=device).double()
    new = torch.arange(stop - start, device=device)
    everyone = stop - start == len(buffer) and chosen[0] == 0 and bool((np.diff(chosen) == 1).all())
    own = slice(None) if everyone else torch.as_tensor(chosen[start:stop], device=device)
    place = position[own]
    squares = (buffer[own, :, :widest] - x[:, :, None]).square_().sum(1)
    sums, means = (array.clone() if everyone else array[own] for array in (ahead, linear))
    for w, kernel in enumerate(kernels_at(squares, multipliers)):
        sums[:, w] += kernel
    sums[new, :, place], means[new, :, place] = 0, terms
    known = (filled[own] + 1).clamp_(max=widest)
    age = (place[:, None] - torch.arange(widest, device=device)) % widest
    inside = (age[:, :, None] < sizes).double()  # (n, W, windows)
    mean = torch.bmm(means, inside) / sizes
    value = offset[:, None] + torch.bmm(sums.double(), inside) * (2 / (sizes * (sizes - 1))) + mean
    if typical >= 0:
        value = torch.cat([value, (offset[:, None] + mean / 2)[:, typical : typical + 1]], 1)
    out = value.masked_fill_((known[:, None] < sizes)[:, None], torch.nan).flatten(1)
    buffer[new if everyone else own, :, place] = x
    ahead[own], linear[own] = sums, means
    position[own], filled[own] = (place + 1) % widest, known
    return _channels(out, rows, signs)


def pair_sums(
    windows: Tensor,
    sizes: Tensor,
    multipliers: Float32Array,
    which: Int64Array,
    columns: Int64Array,
    block: Given,
) -> Tensor:
    device = windows.device
    own = torch.as_tensor(which, device=device)
    x = torch.as_tensor(block, device=device)[:, torch.as_tensor(columns, device=device)].T
    squares = (windows[own] - x[:, :, None]).square_().sum(1)
    missing = torch.arange(windows.shape[2], device=device) >= sizes[own][:, None]
    kernels = kernels_at(squares, multipliers)
    return torch.stack([kernel.masked_fill(missing, 0).sum(1, dtype=torch.float64) for kernel in kernels])
