"""MMD and LSDD of many pairs of samples at once: one from a reference set, one from it or new; by matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from tocsin import _compute as compute
from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._statistics.kernels import median_distance
from tocsin._statistics.lsdd import Bumps, bumps_products, choose_regularisation, factor

ESTIMATORS = ("MMD", "LSDD")


@dataclass(frozen=True, eq=False)
class Reference:
    """Reference points, and what the two estimators need of them.

    kernel: (N, N) similarities.  bumps: LSDD's features of any points.  features: (N, m), those of the reference.
    """

    points: Float64Array
    width: float
    kernel: Float32Array
    bumps: Bumps
    features: Float64Array

    @classmethod
    def prepare(cls, points: Float64Array, centres: Float64Array, window: int, rng: np.random.Generator) -> Reference:
        """As the library's MMD() and LSDD() do, with centres that are not among the points."""
        functions = compute.load("numba")
        width = median_distance(points, rng)
        products = bumps_products(centres, width)
        plain = Bumps(centres, width, np.eye(len(centres)), functions)(points)
        regularisation = choose_regularisation(plain, products, window, rng)
        bumps = Bumps(centres, width, factor(products, regularisation), functions)
        return cls(points, width, similarities(points, points, width), bumps, bumps(points))

    def drawn(self, counts: Float32Array, chosen: Int64Array) -> Float64Array:
        """MMD and LSDD, (2, n), of windows of reference points: which they are, (n, W).

        counts: (n, N), how often each reference point is in X.
        """
        products = counts @ self.kernel
        own = self.kernel[chosen[:, :, None], chosen[:, None, :]].sum((1, 2))
        cross = np.take_along_axis(products, chosen, axis=1).sum(1)
        return self._estimates(counts, products, own, cross, self.features[chosen])

    def fresh(self, counts: Float32Array, windows: Float64Array) -> Float64Array:
        """MMD and LSDD, (2, n), of windows of new points (n, W, d)."""
        n, width, d = windows.shape
        new = windows.reshape(-1, d)
        own = similarities(windows, windows, self.width).sum((1, 2))
        cross = (similarities(new, self.points, self.width).reshape(n, width, -1) @ counts[:, :, None]).sum((1, 2))
        return self._estimates(counts, counts @ self.kernel, own, cross, self.bumps(new).reshape(n, width, -1))

    def _estimates(
        self,
        counts: Float32Array,
        products: Float32Array,
        own: Float32Array,
        cross: Float32Array,
        features: Float64Array,
    ) -> Float64Array:
        """The unbiased estimate of MMD (section 4, with the factor 2 that it lacks), and LSDD.

        Only a position is left out of the sums with itself: a point that was drawn twice meets its copy, at k = 1.
        """
        m, w = float(counts[0].sum()), features.shape[1]
        inside = (products * counts).sum(1, dtype=np.float64) - m
        mmd = inside / (m * (m - 1)) + (own - w) / (w * (w - 1)) - 2 * cross / (m * w)
        lsdd = ((counts @ self.features / m - features.mean(1)) ** 2).sum(1)
        return np.stack([mmd, lsdd])


def similarities(first: Float64Array, second: Float64Array, width: float) -> Float32Array:
    """exp(-|x - y|^2 / (2 width^2)) for (..., n, d) and (..., m, d), whose exponents are a single product.

    In single precision: MMD is then off by some 1e-7, and spreads over 1e-3 or more.
    """
    x, y = ((points / width).astype(np.float32) for points in (first, second))
    x_square, y_square = (-0.5 * (values**2).sum(-1, keepdims=True) for values in (x, y))
    left = np.concatenate([x, x_square, np.ones_like(x_square)], axis=-1)
    right = np.concatenate([y, np.ones_like(y_square), y_square], axis=-1)
    exponents = left @ right.swapaxes(-1, -2)
    return cast(Float32Array, np.exp(exponents, out=exponents))


Sampling = Callable[[np.random.Generator, int, int, int], tuple[Float32Array, Int64Array]]
"""(generator, N, W, n) to n samples: how often each point is in X, (n, N); and which points are Y, (n, W)."""


def with_replacement(
    rng: np.random.Generator, count: int, window: int, samples: int
) -> tuple[Float32Array, Int64Array]:
    """N - W points and W points, each drawn from all."""
    drawn = rng.integers(0, count, (samples, count - window)) + count * np.arange(samples)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=samples * count).reshape(samples, count)
    return counts.astype(np.float32), rng.integers(0, count, (samples, window))


def without_replacement(
    rng: np.random.Generator, count: int, window: int, samples: int
) -> tuple[Float32Array, Int64Array]:
    """W points, and all the others."""
    chosen = compute.load("numba").distinct(rng, count, (samples, window)).astype(np.int64)
    counts = np.ones((samples, count), np.float32)
    np.put_along_axis(counts, chosen, 0.0, axis=1)
    return counts, chosen


SAMPLINGS: dict[str, Sampling] = {"with": with_replacement, "without": without_replacement}
