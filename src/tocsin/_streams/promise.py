"""A promise for one stream of many, or for many together, from thresholds that were made for one."""

from __future__ import annotations

import math
from dataclasses import replace

from tocsin._calibration.result import Calibration, aimed_at, guaranteed
from tocsin._common.checks import is_finite
from tocsin._common.errors import Code, InputError, Option
from tocsin._common.wording import counted
from tocsin._data import validation
from tocsin._state import Fitted

CLOSE = 0.01
"""Part by which an expected run time may exceed that of the fit and still be the one that was asked for there."""


def promising(fitted: Fitted[Calibration], ert: float | None, for_all: int | None) -> Fitted[Calibration]:
    """With the thresholds with which `for_all` streams together ring once in `ert` observations of each.

    ert: None for what was promised at the fit.  for_all: None for each stream by itself.
    """
    calibration, count = fitted.calibration, validation.positive_integer("for_all", for_all)
    if ert is None and count is None:
        return fitted
    if ert is not None and not (is_finite(ert) and ert >= 2):
        raise InputError(
            Option("ert", ert), " must be a number of observations of a stream between false alarms, at least 2."
        )
    together = calibration.ert if ert is None else float(ert)
    # Streams are quiet together with probability (1 - 1 / each)^count.
    each = -1 / math.expm1(math.log1p(-1 / together) / (count or 1))
    each = validation.expected_run_time(each, fitted.widest)
    asked = Option("for_all", count) if count else Option("ert", Code(f"{together:g}"))
    if calibration.references == "direct" and each > calibration.nominal:
        raise InputError(
            asked,
            f" needs an expected run time of {each:.4g} for each stream, and the reference has so few distinct values "
            "that thresholds cannot be extrapolated. Fit the detector with ",
            Option("ert", Code(f"{each:.4g}")),
            ", and leave ",
            Option(asked.name),
            " out.",
        )
    if calibration.curve is None or calibration.mode == "fixed":
        raise InputError(
            Option(asked.name), " needs a detector that keeps a promise: fit it with ", Option("mode", "steady"), "."
        )
    if fitted.live.goes_on:
        _must_be_rehearsed(asked, calibration, each)
    aimed = replace(aimed_at(calibration, each), ert=each, guarantee=None)
    if calibration.guarantee is not None:
        aimed = guaranteed(aimed, calibration.guarantee)
    live = fitted.live.at_level(aimed.threshold, fitted.reference, fitted.edges)
    return replace(fitted, calibration=aimed, live=live)


def _must_be_rehearsed(asked: Option, calibration: Calibration, each: float) -> None:
    """What runs that go on do at a level, running scales included, is known where worlds were followed at it."""
    assert calibration.curve is not None
    shortest, longest = (math.exp(-float(calibration.curve.log_rates[k])) for k in (0, -1))
    if not shortest <= each <= max(longest, calibration.nominal) * (1 + CLOSE):
        raise InputError(
            asked,
            f" asks for alarms of each stream once in {each:.4g} observations. What views do is known at the levels "
            f"that were rehearsed, which are passed once in {shortest:.4g} to {longest:.4g}. Fit the detector with ",
            Option("ert", Code(f"{each:.4g}")),
            "; this can then be asked of it.",
        )


def told(each: Calibration, one: str, together: float, for_all: int | None) -> str:
    """The promise in words. one: what a stream is called."""
    if for_all is None:
        return f"once in {each.ert:g} observations of each {one}"
    return f"once in {together:g} observations of each of {counted(for_all, one)} together ({each.ert:.4g} of one)"
