"""How well predicted errors of run times agree with measured ones, over many references."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from tocsin._calibration.result import LEVEL
from tocsin._compute.arrays import BoolArray, Float64Array
from tocsin._experiments.base import Table

NORMAL = float(special.ndtri((1 + LEVEL) / 2))


def column(rows: Table, name: str) -> Float64Array:
    """One column of a table, as numbers."""
    return np.array([row[name] for row in rows], dtype=np.float64)


@dataclass(frozen=True)
class Coverage:
    """Measured run times of some references, and what their fits said of them.

    off: log(ART / ERT), as measured.  predicted: its standard error, by each fit.
    reach: half the width of each interval, on this scale.  noise: of the measurement.
    """

    off: Float64Array
    predicted: Float64Array
    reach: Float64Array
    noise: Float64Array

    @classmethod
    def of(cls, rows: Table, errors: tuple[str, ...]) -> Coverage:
        """From columns art, ert, runs and reach, and those of the `errors` that make up the predicted one."""
        return cls(
            np.log(column(rows, "art") / column(rows, "ert")),
            np.sqrt(sum(column(rows, name) ** 2 for name in errors)),
            column(rows, "reach"),
            column(rows, "runs") ** -0.5,
        )

    @property
    def held(self) -> BoolArray:
        """Which intervals hold the true run time, each widened by the noise of its measurement."""
        return np.asarray(np.abs(self.off) <= np.hypot(self.reach, NORMAL * self.noise))

    @property
    def held_as_measured(self) -> BoolArray:
        """The same with intervals as they are: the noise of the measurement counts against them."""
        return np.asarray(np.abs(self.off) <= self.reach)

    @property
    def mean(self) -> str:
        """Of log(ART / ERT), with its standard error."""
        error = self.off.std(ddof=1) / np.sqrt(len(self.off)) if len(self.off) > 1 else np.nan
        return f"{self.off.mean():+.3f} ± {error:.3f}"

    @property
    def spread(self) -> float:
        """The true spread of log(ART / ERT) over references: about 0, without the noise of the measurement."""
        return float(np.sqrt(np.maximum(np.mean(self.off**2) - np.mean(self.noise**2), 0.0)))

    @property
    def expected(self) -> float:
        """The spread that the fits predict."""
        return float(np.sqrt(np.mean(self.predicted**2)))

    @property
    def width(self) -> float:
        """How wide intervals are, relative to those that the true spread would give."""
        return float(np.sqrt(np.mean(self.reach**2)) / (NORMAL * self.spread)) if self.spread > 0 else np.inf
