"""Principal components: many numbers per observation to few, by a linear map."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from tocsin._common.errors import InputError
from tocsin._compute.arrays import Array, Float64Array
from tocsin._data.representations.base import Learner, Step, held
from tocsin._data.representations.batches import check_sizes, finite_numbers, numbers

NOTHING = 1e-10
"""A direction in which observations vary less than this, relative to the first, is rounding."""


@dataclass(frozen=True)
class PCA(Learner):
    """Projection on the directions in which observations vary most. Images are flattened.

    Parameters
    ----------
    components
        How many directions.
    whiten
        Whether to give all of them the same spread; otherwise the first weigh most.
    """

    components: int
    whiten: bool = False
    kind = "pca"

    def fit(self, batch: object, seed: int = 0, progress: bool | None = None) -> Projection:
        """The directions of these observations, by a singular value decomposition."""
        check_sizes("PCA", components=self.components)
        rows = _flat(finite_numbers(batch))
        mean = rows.mean(0)
        _, spreads, axes = np.linalg.svd(rows - mean, full_matrices=False)
        most = int(np.sum(spreads > NOTHING * spreads[0]))
        if most < self.components:
            raise InputError(
                f"PCA({self.components}) of {len(rows)} observations of {rows.shape[1]} numbers: they vary in only "
                f"{most} directions. Ask for fewer components, or collect more observations to learn them from."
            )
        axes = axes[: self.components]
        # A direction has no sign of its own; this one does not depend on the machine's linear algebra.
        axes *= np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(1)])[:, None]
        if self.whiten:
            axes *= math.sqrt(len(rows) - 1) / spreads[: self.components, None]
        return Projection(mean, axes, float(np.sum(spreads[: self.components] ** 2) / np.sum(spreads**2)))

    def describe(self) -> str:
        return f"PCA to {self.components} numbers"


@dataclass(frozen=True, eq=False)
class Projection(Step):
    """A fitted PCA: rows minus `mean`, times `axes` (components, columns).

    explained: the part of the variance that is left.
    """

    mean: Float64Array
    axes: Float64Array
    explained: float
    kind = "projection"

    @property
    def storable(self) -> bool:
        return True

    def __call__(self, batch: object) -> Float64Array:
        rows = _flat(numbers(batch))
        if rows.shape[1] != len(self.mean):
            raise InputError(
                f"PCA was fitted to observations of {len(self.mean)} numbers, and got some of {rows.shape[1]}; they "
                "must be alike."
            )
        # Row by row: a product of matrices would round differently for blocks of different sizes.
        return np.asarray(np.matmul((rows - self.mean)[:, None, :], self.axes.T)[:, 0])

    def describe(self) -> str:
        return f"PCA of {len(self.mean)} numbers to {len(self.axes)} ({self.explained:.0%} of the variance)"

    def parts(self) -> dict[str, object]:
        return {"mean": self.mean, "axes": self.axes, "explained": self.explained}

    @classmethod
    def restore(cls, parts: Mapping[str, object]) -> Self:
        return cls(held(parts, "mean", np.ndarray), held(parts, "axes", np.ndarray), held(parts, "explained", float))


def _flat(values: Array) -> Float64Array:
    return np.asarray(values.reshape(len(values), -1), dtype=np.float64)
