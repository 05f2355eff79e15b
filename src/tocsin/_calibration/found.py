"""What simulated paths tell."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin._calibration.recursion import Records, Stretch
from tocsin._calibration.tail import RateCurve
from tocsin._compute.arrays import Float64Array, Int32Array, Int64Array


@dataclass(frozen=True)
class Found:
    """What paths tell.

    levels: the thresholds of the stretches.  path, test: which paths ring, and when.
    curve: of rates, once the transient is over.  centre: the mean of all paths.
    """

    records: Records
    stretches: list[Stretch]
    levels: Float64Array
    path: Int32Array
    test: Int64Array
    curve: RateCurve
    centre: float

    def leverage(self, level: float) -> float:
        """How much the log rate at a level changes with the scale of the statistic."""
        return self.curve.leverage(level, self.centre)

    @property
    def error(self) -> float:
        """Monte Carlo error of the rate of alarms."""
        return float(max(self.stretches[-1].alarms, 1.0) ** -0.5)
