"""The least-squares density difference (Bu et al. 2016), incremental and independent of the reference's size."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from tocsin.compute.arrays import Float64Array
from tocsin.errors import InputError
from tocsin.kernels import median_distance
from tocsin.statistics.base import Live, Parts, Prepared, Setting
from tocsin.statistics.features import FeatureLive, FeatureMap, Features, PreparedFeatures

CANDIDATES = tuple(2.0**-i for i in range(10))
"""Regularisations tried, largest first."""

RELATIVE_DIFFERENCE = 0.2
"""The largest regularisation that changes the estimate by less than this is taken."""

BOOTSTRAPS = 500


@dataclass(frozen=True)
class LSDD:
    """Least-squares estimate of the squared distance between the densities of window and reference.

    With Gaussian bumps phi around m centres, u the difference of the mean bumps, H the bumps' inner products and
    G = (H + regularisation I)^-1:  D = u' (2G - G H G) u.

    Parameters
    ----------
    centres
        Number of bumps; their centres are reference points that are set aside. None: twice the widest window, as in
        the paper, but at most a tenth of the reference.
    width
        Width of the bumps. None: the median distance between reference points.
    regularisation
        None: the largest of 1, 1/2, ..., 1/512 that changes D by less than a fifth.
    """

    centres: int | None = None
    width: float | None = None
    regularisation: float | None = None

    def __post_init__(self) -> None:
        if self.centres is not None and self.centres < 1:
            raise InputError(f"LSDD(centres={self.centres!r}): at least one centre is needed.")
        for name, value in (("width", self.width), ("regularisation", self.regularisation)):
            if value is not None and not (np.isfinite(value) and value > 0):
                raise InputError(
                    f"LSDD({name}={value!r}): must be a positive number, or None to choose it from the data."
                )

    @property
    def name(self) -> str:
        return "LSDD"

    @property
    def takes_objects(self) -> bool:
        return False

    def holds_out(self, count: int, windows: tuple[int, ...]) -> int:
        return self.centres if self.centres is not None else min(2 * windows[-1], max(count // 10, 1))

    def prepare(self, points: Float64Array, held_out: Float64Array, setting: Setting) -> Prepared:
        width = self.width if self.width is not None else median_distance(points, setting.rng)
        bumps = _bumps(held_out, width)
        products = bumps_products(held_out, width)
        regularisation = self.regularisation
        if regularisation is None:
            regularisation = choose_regularisation(bumps(points), products, setting.windows[-1], setting.rng)
        return PreparedFeatures(points, self._features(held_out, width, factor(products, regularisation)), setting)

    def restore(self, parts: Parts, windows: tuple[int, ...], compute: ModuleType) -> Live:
        saved = parts["features"]
        features = self._features(saved["centres"], saved["width"], saved["factor"])
        return FeatureLive(features, parts["centre"], parts["count"], windows, compute)

    def _features(self, centres: Float64Array, width: float, factor: Float64Array) -> Features:
        bumps = _bumps(centres, width)
        parts = {"centres": centres, "width": width, "factor": factor}
        return Features(self.name, lambda points: bumps(points) @ factor, False, parts)


def _bumps(centres: Float64Array, width: float) -> FeatureMap:
    """phi_j(x) = exp(-|x - c_j|^2 / (2 width^2))."""

    def bumps(points: Float64Array) -> Float64Array:
        return np.exp(-squared_distances(points, centres) / (2 * width**2))

    return bumps


def bumps_products(centres: Float64Array, width: float) -> Float64Array:
    """H_jl = exp(-|c_j - c_l|^2 / (4 width^2)); the factor (pi width^2)^(d/2) is dropped, as the paper's code did."""
    return np.exp(-squared_distances(centres, centres) / (4 * width**2))


def factor(products: Float64Array, regularisation: float) -> Float64Array:
    """F with F F' = 2G - G H G, by the eigenvalues of H: D is then a squared distance of two mean features phi F."""
    values, vectors = np.linalg.eigh(products)
    values = np.maximum(values, 0)
    return np.asarray(vectors * (np.sqrt(values + 2 * regularisation) / (values + regularisation)))


def choose_regularisation(values: Float64Array, products: Float64Array, window: int, rng: np.random.Generator) -> float:
    """The largest candidate whose mean relative difference, 1 - theta'H theta / (u'theta), is small.

    theta = G u, with u of random windows against all other points.
    """
    eigenvalues, vectors = np.linalg.eigh(products)
    eigenvalues = np.maximum(eigenvalues, 0)
    chosen = np.stack([rng.choice(len(values), window, replace=False) for _ in range(BOOTSTRAPS)])
    sums = values[chosen].sum(1)
    differences = (values.sum(0) - sums) / (len(values) - window) - sums / window
    rotated = (differences @ vectors) ** 2
    for candidate in CANDIDATES:
        plain = rotated @ (1 / (eigenvalues + candidate))
        smoothed = rotated @ (eigenvalues / (eigenvalues + candidate) ** 2)
        if float(np.mean(1 - smoothed / plain)) < RELATIVE_DIFFERENCE:
            return candidate
    return CANDIDATES[-1]


def squared_distances(a: Float64Array, b: Float64Array) -> Float64Array:
    """|a_i - b_j|^2, around the mean of b so that an offset of the data costs no digits."""
    centre = b.mean(0)
    a, b = a - centre, b - centre
    squares: Float64Array = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * (a @ b.T)
    return np.maximum(squares, 0.0)
