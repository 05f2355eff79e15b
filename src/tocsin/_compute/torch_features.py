"""Hot functions of statistics that compare mean features, in PyTorch. What a live step costs does not depend on the
reference, so live streams stay on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._compute.numba_features import feature_advance
from tocsin._compute.torch_memory import Given, get, in_pieces
from tocsin._compute.torch_pairs import lag_sums, window_pairs, window_sums

__all__ = ["bumps", "feature_advance", "feature_bootstrap_paths", "feature_split_paths", "mean_distances"]


def bumps(points: Given, centres: Given, width: float, factor: Given) -> Float64Array:
    points = torch.as_tensor(points)
    centres, factor = (torch.as_tensor(array, device=points.device) for array in (centres, factor))
    squares = torch.cdist(points, centres, compute_mode="donot_use_mm_for_euclid_dist").square_()
    return get(squares.mul_(-1 / (2 * width**2)).exp_() @ factor)


def mean_distances(values: Given, places: Int64Array, others: Given, other_places: Int64Array) -> Float64Array:
    values = torch.as_tensor(values)
    device, others = values.device, torch.as_tensor(others, device=values.device)
    out = torch.empty(len(places), dtype=torch.float64, device=device)

    def some(start: int, stop: int) -> None:
        here = values[torch.as_tensor(places[start:stop], device=device)].mean(1)
        there = others[torch.as_tensor(other_places[start:stop], device=device)].mean(1)
        out[start:stop] = (here - there).square_().sum(1)

    in_pieces(some, len(places), 8.0 * values.shape[1] * (places.shape[1] + other_places.shape[1]), out.device)
    return get(out)


def _window_means(features: Tensor, streams: Tensor, window: int, widest: int) -> Tensor:
    """(P, m, T)"""
    arrived = features[streams].transpose(1, 2)
    return window_sums(arrived, window)[..., widest - window :] / window


def feature_bootstrap_paths(
    features: Given,
    streams: Given,
    copies: Given,
    windows: Int64Array,
    excess: Given,
    offset: Given,
    linear: Given,
    quadratic: float,
) -> Tensor:
    features = torch.as_tensor(features)
    device, sizes = features.device, windows.tolist()
    streams, copies = torch.as_tensor(streams, device=device).long(), torch.as_tensor(copies, device=device).long()
    excess, offset = torch.as_tensor(excess, device=device), torch.as_tensor(offset, device=device)
    linear, widest = torch.as_tensor(linear, device=device), sizes[-1]
    (paths, length), together = streams.shape, copies.shape[1]
    out = torch.empty((len(sizes), paths, together, length - widest + 1), dtype=torch.float32, device=device)

    def some(start: int, stop: int) -> None:
        own, met = streams[start:stop], copies[start:stop]

        def repeats(lag: int) -> Tensor:
            here = own[:, lag:]
            return torch.where(here == own[:, : length - lag], excess[here], 0.0)[None]

        back, fore = lag_sums(repeats, sizes, (1, len(own), length), device)
        terms = linear[met[:, :, None], own[:, None, :]]
        for v, window in enumerate(sizes):
            square = _window_means(features, own, window, widest).square_().sum(1)
            square += 2 * window_pairs(back[0, v], fore[0, v], window, widest) / window**2
            mean = window_sums(terms, window)[..., widest - window :] / window
            out[v, start:stop] = offset[met][:, :, None] + quadratic * square[:, None] + mean

    in_pieces(some, paths, 8.0 * length * (6 * features.shape[1] + 6 * together + 6 * len(sizes)), device)
    return out.flatten(1, 2)


def feature_split_paths(features: Given, streams: Given, windows: Int64Array, signed: bool) -> Tensor:
    features = torch.as_tensor(features)
    device, sizes = features.device, windows.tolist()
    streams, widest = torch.as_tensor(streams, device=device).long(), sizes[-1]
    paths, length = streams.shape
    out = torch.empty((len(sizes), paths, length - widest + 1), dtype=torch.float32, device=device)
    everything = features.sum(0)

    def some(start: int, stop: int) -> None:
        own = streams[start:stop]
        kept = (everything - features[own].sum(1)) / (len(features) - length)
        for v, window in enumerate(sizes):
            difference = _window_means(features, own, window, widest) - kept[:, :, None]
            out[v, start:stop] = difference.sum(1) if signed else difference.square_().sum(1)

    in_pieces(some, paths, 8.0 * length * 6 * features.shape[1], device)
    return out
