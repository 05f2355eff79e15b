"""What a calibration found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tocsin.calibration.plan import Mode, References
from tocsin.compute.arrays import Float64Array


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What a detector compares its statistic with.

    ert: the promise, in tests between false alarms.
    thresholds: of the first, second, ... test with full windows; the last one holds from then on.
    seconds: how long it took to find them.
    """

    ert: float
    thresholds: Float64Array
    seconds: float

    @property
    def threshold(self) -> float:
        """The threshold once the transient is over."""
        return float(self.thresholds[-1])

    def threshold_of(self, test: int) -> float:
        """The threshold of a test, counted from 0."""
        return self._listed[min(test, len(self._listed) - 1)]

    @cached_property
    def _listed(self) -> list[float]:
        return [float(threshold) for threshold in self.thresholds]

    @property
    def quality(self) -> str:
        """In a few words, what the promise rests on."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Thresholds):
    """Thresholds, and the simulation that they rest on.

    mode: 'steady', 'paper' or 'fixed'.
    paths, tests: how many null streams were simulated, and the tests of each.
    alarms: first alarms of these streams that the last threshold rests on.
    references: what each stream was tested against: one of `copies` 'bootstrap' pseudo-references; the reference itself
        ('direct', where it has few distinct values); or ('split') the reference points that the stream leaves out.
    compared: reference points that the live detector compares with.
    """

    mode: Mode
    paths: int
    tests: int
    alarms: float
    references: References
    copies: int
    compared: int

    @property
    def error(self) -> float:
        """Monte Carlo error of the rate of false alarms in the long run (one standard deviation, relative)."""
        return float(max(self.alarms, 1.0) ** -0.5)

    @property
    def quality(self) -> str:
        return f"Monte Carlo error {self.error:.1%}"

    def __repr__(self) -> str:
        return (
            f"Calibration(mode={self.mode!r}, ert={self.ert:g}, threshold={self.threshold:.6g}, "
            f"error={self.error:.1%}, paths={self.paths}, seconds={self.seconds:.2f})"
        )
