"""Sums of kernels between points, in PyTorch. On GPUs the loops over pairs of points are `triton_`'s."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from tocsin._compute.arrays import FARTHEST, Float32Array, Float64Array
from tocsin._compute.torch_memory import Given, in_pieces


@cache
def triton_on(device: str) -> ModuleType | None:
    """The module, where it can run: on GPUs, with Triton (which PyTorch for Linux brings along)."""
    if device != "cuda" or find_spec("triton") is None:
        return None
    from tocsin._compute import triton_

    return triton_


def kernels_at(squares: Tensor, multipliers: Float32Array) -> Iterator[Tensor]:
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


def _own(own: Given | None, device: torch.device) -> Tensor | None:
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
    queries: Given,
    own: Given | None,
    guard: int,
    multipliers: Float32Array,
    weights: Given,
) -> Tensor:
    queries, own = torch.as_tensor(queries, device=points.device), _own(own, points.device)
    weights = torch.as_tensor(weights, device=points.device) if len(weights) else None
    if triton := triton_on(points.device.type):
        sums: Tensor = triton.row_sums(points, count, queries, own, guard, multipliers.tolist(), weights)
        return sums
    n = queries.shape[1]
    out = points.new_empty((len(multipliers), n), dtype=torch.float64)

    def some(start: int, stop: int) -> None:
        squares = _squares(points[:, :count], queries[:, start:stop])
        for w, kernel in enumerate(kernels_at(squares, multipliers)):
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
    queries: Given,
    own: Given,
    guard: int,
    multipliers: Float32Array,
    weights: Tensor,
) -> Tensor:
    queries, own = torch.as_tensor(queries, device=points.device), torch.as_tensor(own, device=points.device)
    weights = torch.as_tensor(weights, device=points.device)
    if triton := triton_on(points.device.type):
        products: Tensor = triton.products(
            points, count, queries, own, guard, _expanded(multipliers).tolist(), weights.contiguous()
        )
        return products
    n = queries.shape[1]
    out = points.new_empty((len(multipliers), n, weights.shape[1]), dtype=torch.float64)

    def some(start: int, stop: int) -> None:
        squares = _squares(points[:, :count], queries[:, start:stop])
        for w, kernel in enumerate(kernels_at(squares, multipliers)):
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
    queries: Given,
    centre: Float64Array,
    scale: float,
    own: Given,
    guard: int,
    multipliers: Float32Array,
    weights: Given,
) -> tuple[Tensor, Tensor]:
    queries, own = torch.as_tensor(queries, device=points.device), _own(own, points.device)
    block = scaled(queries, centre, scale).T.contiguous()
    linear = gaussian_row_sums(points, count, block, own, guard, multipliers, weights)
    if own is None or len(weights):
        return block, linear.mul_(-2 if len(weights) else -2 / count)
    left_out = ((own + guard).clamp(max=count - 1) - (own - guard).clamp(min=0) + 1) * (own >= 0)
    return block, linear.mul_(-2 / (count - left_out).double())


def pair_terms(products: Tensor, row_means: Float64Array, weights: Given, near: Given) -> tuple[Tensor, Tensor, Tensor]:
    device = products.device
    weights, near = torch.as_tensor(weights, device=device), torch.as_tensor(near, device=device)
    means, n = torch.as_tensor(row_means, device=device), len(weights)
    offset = (weights * products).sum(1) / (n**2 - (weights * near).sum(0))
    linear = (products * (-2 / (n - near))).float().permute(2, 0, 1).contiguous()
    return offset, linear, (2 * means - means.mean(1, keepdim=True)).float()
