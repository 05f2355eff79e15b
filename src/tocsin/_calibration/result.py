"""What a calibration found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from tocsin._calibration.plan import Mode, References
from tocsin._calibration.rehearsal import Rehearsal
from tocsin._calibration.tail import RateCurve
from tocsin._calibration.uncertainty import Errors, points_to_halve
from tocsin._common.errors import Code, InputError, Option
from tocsin._common.wording import rounded
from tocsin._compute.arrays import Float64Array, read_only

LEVEL = 0.9
"""Intervals hold the truth with this probability, if nothing else is asked for."""

ROUNDS, SETTLED, FARTHEST_REACH = 50, 1e-6, 10.0
"""With a guarantee thresholds depend on errors, and errors on thresholds: when both have settled, and when they never
will (thresholds for a run time e^10 times as long would be no use)."""

T = TypeVar("T", bound="Thresholds")


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What a detector compares its statistic with.

    ert: the promise, in tests between false alarms.
    thresholds: of the first, second, ... test with full windows; the last one holds from then on.
    seconds: how long it took to find them.
    curve: how rare each value of the statistic is; None if that is not known.
    """

    ert: float
    thresholds: Float64Array
    seconds: float
    curve: RateCurve | None = field(default=None, kw_only=True)

    @property
    def threshold(self) -> float:
        """The threshold once the transient is over."""
        return float(self.thresholds[-1])

    @property
    def quality(self) -> str:
        """In a few words, what the promise rests on."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Thresholds):
    """Thresholds, and the simulation that they rest on.

    mode: 'steady', 'paper' or 'fixed'.
    guarantee: the probability, over reference sets, with which the true expected run time is at least `ert`; None if it
        is `ert` on average over them.
    nominal: the expected run time that the thresholds are set for: `ert`, or more with a guarantee.
    simulated: the longest that was simulated; beyond it thresholds are extrapolated.
    centre: the mean of the statistic when nothing changes.
    errors: of log(expected run time), by cause; None if they were not asked for, or there is no promise.
    paths, tests: how many null streams were simulated, and the tests of each.
    alarms: first alarms of these streams that the last threshold rests on.
    references: what each stream was tested against: one of `copies` 'bootstrap' pseudo-references; the reference itself
        ('direct', where it has few distinct values); or ('split') the reference points that the stream leaves out; or
        ('worlds') a reference of its own, made like it.
    compared: reference points that the live detector compares with.
    block: streams were drawn in contiguous blocks of this length; 1 for independent points.
    guard: points of the reference that are this close in time were not compared with each other.
    dependence: p-value of the test for serial dependence of the reference; None if it could not be made.
    rehearsal: what rehearsing on the reference showed; None where null streams are drawn from it. With it, `paths` are
        the references that were simulated beside it, `tests` the observations of the stream after each.
    """

    mode: Mode
    guarantee: float | None
    nominal: float
    simulated: float
    centre: float
    errors: Errors | None
    paths: int
    tests: int
    alarms: float
    references: References
    copies: int
    compared: int
    block: int
    guard: int
    dependence: float | None
    rehearsal: Rehearsal | None = field(default=None, kw_only=True)

    @property
    def error(self) -> float:
        """Monte Carlo error of the rate of false alarms in the long run (one standard deviation, relative)."""
        return float(max(self.alarms, 1.0) ** -0.5)

    def interval(self, level: float = LEVEL) -> tuple[float, float] | None:
        """Where the true expected run time is, with this probability over reference sets; None if it is not known."""
        if self.errors is None:
            return None
        reach = self.errors.quantile((1 + level) / 2)
        return self.nominal * math.exp(-min(reach, 700.0)), self.nominal * math.exp(min(reach, 700.0))

    def _leverage(self, level: float) -> float:
        """How much the log rate at a level changes with the scale of the statistic."""
        assert self.curve is not None
        if self.references == "direct":
            # The rate falls in steps, from one atom to the next: no slope at a level says how steep the whole is.
            return max(level - self.centre, 1e-300)
        return self.curve.leverage(level, self.centre)

    @property
    def points_to_halve(self) -> int | None:
        """Further reference points that would halve the interval; None if no number would, or it is not known."""
        if self.errors is None or self.references == "worlds":
            return None
        errors = self.errors
        if self.block > 1:
            # The tail of a reference drawn in blocks is as well known as the reference is large.
            errors = replace(errors, law=math.hypot(errors.law, errors.tail), tail=0.0)
        return points_to_halve(errors, self.compared)

    @property
    def quality(self) -> str:
        interval = self.interval()
        known = f"Monte Carlo error {self.error:.1%}"
        if interval is not None:
            low, high = map(rounded, interval)
            known = f"ERT {rounded(self.nominal)}, {LEVEL:.0%} interval {low}-{high}"
        return known if self.rehearsal is None else f"{known}; {self.rehearsal.in_short}"

    def __repr__(self) -> str:
        return (
            f"Calibration(mode={self.mode!r}, ert={self.ert:g}, threshold={self.threshold:.6g}, "
            f"{self.quality}, paths={self.paths}, seconds={self.seconds:.2f})"
        )


def sealed(found: T) -> T:
    """The same, to be handed out: neither its thresholds nor its curve can be written to."""
    curve = None if found.curve is None else found.curve.sealed()
    return replace(found, thresholds=read_only(found.thresholds), curve=curve)


def aimed_at(calibration: Calibration, run_time: float) -> Calibration:
    """The same calibration, with thresholds for another expected run time, read off the curve of rarities.

    Each threshold keeps its rarity relative to that of the last one. Errors of the law move thresholds in proportion to
    their distance from the centre; those of the tail are its own.
    """
    curve, errors = calibration.curve, calibration.errors
    if run_time == calibration.nominal or curve is None:
        return calibration
    shift = math.log(calibration.nominal / run_time)
    thresholds = np.array([curve.level(shift - r) for r in curve.log_rarity(calibration.thresholds)])
    if errors is not None:
        growth = calibration._leverage(float(thresholds[-1])) / calibration._leverage(calibration.threshold)
        errors = replace(
            errors,
            law=errors.law * growth,
            reference=errors.reference * growth,
            tail=curve.tail.error(float(thresholds[-1])),
        )
    return replace(calibration, thresholds=thresholds, nominal=run_time, errors=errors)


def guaranteed(calibration: Calibration, probability: float) -> Calibration:
    """The same, with thresholds so high that the true expected run time is `ert` or more with this probability."""
    moved = calibration
    if calibration.errors is None:
        raise InputError(
            Option("guarantee", Code(f"{probability:g}")),
            ": ",
            Option("mode", calibration.mode),
            " makes no promise, so there is none to guarantee. Leave it out, or choose ",
            Option("mode", "steady"),
            ".",
        )
    for _ in range(ROUNDS):
        assert moved.errors is not None
        reach = moved.errors.quantile(probability)
        if not reach < FARTHEST_REACH:
            break
        before, moved = moved, aimed_at(calibration, calibration.ert * math.exp(reach))
        if abs(math.log(moved.nominal / before.nominal)) < SETTLED:
            return replace(moved, guarantee=probability)
    raise InputError(
        Option("guarantee", Code(f"{probability:g}")),
        " cannot be given for ",
        Option("ert", Code(f"{calibration.ert:g}")),
        ": the true expected run time could be shorter by any factor, for all that is known. Give a larger "
        "reference or more ",
        Option("paths", ...),
        f", or ask for less: alarms once in {calibration.simulated:.3g} are simulated, and rarer ones extrapolated.",
    )
