"""The least-squares density difference (Bu et al. 2016), incremental and independent of the reference's size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tocsin._common.checks import is_finite, is_whole
from tocsin._common.errors import InputError, Option
from tocsin._compute import Functions
from tocsin._compute.arrays import Float64Array
from tocsin._statistics.base import Live, Parts, Prepared, Setting
from tocsin._statistics.features import FeatureLive, Features, PreparedFeatures
from tocsin._statistics.kernels import median_distance

CANDIDATES = tuple(2.0**-i for i in range(10))
"""Regularisations tried, largest first."""

RELATIVE_DIFFERENCE = 0.2
"""The largest regularisation that changes the estimate by less than this is taken."""

BOOTSTRAPS = 500

SMALLEST, LARGEST = 1e-150, 1e150
"""Widths whose squares are numbers."""

MANY = 1024
"""Points that are worth the way to a GPU."""


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

    def check(self) -> None:
        if self.centres is not None and not is_whole(self.centres, 1):
            raise InputError(
                Option("centres", self.centres, of="LSDD"), ": at least one centre is needed, a whole number, or None."
            )
        width = Option("width", self.width, of="LSDD")
        for option in (width, Option("regularisation", self.regularisation, of="LSDD")):
            if option.value is not None and not (is_finite(option.value) and option.value > 0):
                raise InputError(option, ": must be a positive number; leave it out to have it chosen from the data.")

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
        if not SMALLEST < width < LARGEST:
            raise InputError(
                Option("width", float(width), of="LSDD"),
                f" (the median distance, if none is given) must lie between {SMALLEST:g} and {LARGEST:g}, or its "
                "square is no number. Bring the columns to another unit, or use MMD().",
            )
        products = bumps_products(held_out, width)
        regularisation = self.regularisation
        if regularisation is None:
            bumps = Bumps(held_out, width, np.eye(len(held_out)), setting.compute)(points)
            regularisation = choose_regularisation(bumps, products, setting.windows[-1], setting.rng)
        features = self._features(held_out, width, factor(products, regularisation), setting.compute)
        return PreparedFeatures(points, features, setting)

    def restore(self, parts: Parts, windows: tuple[int, ...], compute: Functions) -> Live:
        saved = parts["features"]
        features = self._features(saved["centres"], saved["width"], saved["factor"], compute)
        return FeatureLive.restore(features, parts, windows, compute)

    def _features(self, centres: Float64Array, width: float, factor: Float64Array, compute: Functions) -> Features:
        parts = {"centres": centres, "width": width, "factor": factor}
        return Features(self.name, Bumps(centres, width, factor, compute), False, parts)


@dataclass(frozen=True)
class Bumps:
    """phi_j(x) = exp(-|x - c_j|^2 / (2 width^2)), times the factor."""

    centres: Float64Array
    width: float
    factor: Float64Array
    compute: Functions

    def __call__(self, points: Float64Array) -> Float64Array:
        compute = self.compute if len(points) >= MANY else self.compute.nearby
        return compute.bumps(compute.put(points), self.centres, self.width, self.factor)


def bumps_products(centres: Float64Array, width: float) -> Float64Array:
    """H_jl = exp(-|c_j - c_l|^2 / (4 width^2)); the factor (pi width^2)^(d/2) is dropped, as the paper's code did."""
    with np.errstate(over="ignore"):
        squares = np.stack([((centres - centre) ** 2).sum(1) for centre in centres])
    return np.exp(-squares / (4 * width**2))


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
    rotated = rotated[rotated.any(1)]
    if not len(rotated):
        return CANDIDATES[0]  # all points are equal, and any will do
    for candidate in CANDIDATES:
        plain = rotated @ (1 / (eigenvalues + candidate))
        smoothed = rotated @ (eigenvalues / (eigenvalues + candidate) ** 2)
        if float(np.mean(1 - smoothed / plain)) < RELATIVE_DIFFERENCE:
            return candidate
    return CANDIDATES[-1]
