"""Kernel ridge regression from landmarks, with the ridge chosen for each width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist

from tocsin._compute.arrays import Float32Array, Float64Array

RIDGES = (0.01, 1.0, 10.0, 100.0)
"""Landmarks may be equal, or at wide widths nearly so: the least ridge keeps weights moderate even then."""


@dataclass(frozen=True, eq=False)
class Solver:
    """(K + ridge)^-1, K the kernel matrix of m landmarks.

    factor: C, upper triangular, with C'C = K + ridge.
    base: what weights are without any values to fit, u - (K + ridge)^-1 K u, u = 1/m; (m,).
    """

    factor: Float64Array
    base: Float64Array

    @classmethod
    def of(cls, kernel: Float64Array, ridge: float) -> Solver:
        """For a kernel matrix (m, m)."""
        factor = linalg.cholesky(kernel + ridge * np.eye(len(kernel)), check_finite=False)
        even = np.full(len(kernel), 1 / len(kernel))
        return cls(factor, even - linalg.cho_solve((factor, False), kernel @ even))

    def __call__(self, values: Float64Array) -> Float64Array:
        """(K + ridge)^-1 times the values (m,) or (m, G)."""
        return np.asarray(linalg.cho_solve((self.factor, False), values))

    def root(self, signs: Float64Array) -> Float64Array:
        """C^-1 times random signs (m, G): the mean of (k' root)^2 estimates k' (K + ridge)^-1 k."""
        return np.asarray(linalg.solve_triangular(self.factor, signs))


def choose_solvers(
    landmarks: Float32Array,
    checked: Float32Array,
    widths: tuple[float, ...],
    means: Float64Array,
    exact: Float64Array,
) -> list[Solver]:
    """For each width that of the RIDGES which comes closest to the exact means at points to check, up to a constant.

    landmarks (m, d) and checked points (n, d), scaled to the widest width; means at the landmarks (widths, m), and
    exact ones at the checked points (widths, n).
    """
    squares, squares_to = cdist(landmarks, landmarks, "sqeuclidean"), cdist(checked, landmarks, "sqeuclidean")
    solvers = []
    for width, mean, target in zip(widths, means, exact, strict=True):
        ratio = (widths[0] / width) ** 2
        kernel, kernel_to = np.exp(-ratio * squares), np.exp(-ratio * squares_to)
        candidates = [Solver.of(kernel, ridge) for ridge in RIDGES]
        errors = [(kernel_to @ (solver.base + solver(mean)) - target).var() for solver in candidates]
        solvers.append(candidates[int(np.argmin(errors))])
    return solvers
