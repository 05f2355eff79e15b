"""What a fit says of the order of its reference: what it chose because of it, and what does not go with that."""

from __future__ import annotations

import math

from tocsin._calibration.bursts import bursting
from tocsin._calibration.dependence import CAUTIOUS, FEWEST_TOLD, SIGNIFICANT
from tocsin._calibration.result import Calibration
from tocsin._calibration.wandering import SELDOM, moving
from tocsin._common.errors import Code, DependenceWarning, InputError, Option
from tocsin._compute.arrays import Float64Array, Int64Array


def no_blocks(p_value: float | None) -> InputError:
    """p_value: where blocks were chosen because of it."""
    found = (
        "" if p_value is None else f"The reference depends on its order (p = {p_value:.3g}), which asks for blocks. "
    )
    return InputError(
        found,
        Option("sampler", Code("Blocks()")),
        " and ",
        Option("approximation", Code("Landmarks(...)")),
        " do not go together: landmarks are taken out of the midst of blocks, and resemble their neighbours in time. "
        "Leave ",
        Option("approximation", ...),
        " out; or, if the order of the reference means nothing, shuffle it, or give ",
        Option("sampler", Code("Independent()")),
        ".",
    )


def broken_promise(calibration: Calibration, real: float) -> DependenceWarning:
    often = "too often" if math.isinf(real) else f"once in about {real:.2g} observations, not {calibration.ert:g}"
    return DependenceWarning(
        f"The reference depends on its order (p = {calibration.dependence:.3g}), and independent observations are "
        f"assumed: on a stream like it the detector would ring {often}. Give ",
        Option("sampler", Code("Blocks()")),
        ", or ",
        Option("sampler", "auto"),
        "; if the order means nothing, shuffle the reference.",
    )


def why_views(p_value: float, points: Float64Array, groups: Int64Array) -> str | None:
    """Why columns should be watched one by one, in views; None if the order of the points means nothing.

    p_value: of the test of pairs. A level that wanders slowly shows less in pairs than in the means of stretches, and
    rows that are far out together less than in their distances.
    """
    if p_value <= SIGNIFICANT:
        return f"The reference depends on its order (p = {p_value:.3g})"
    if len(points) < FEWEST_TOLD:
        return f"A reference of {len(points)} is too short to tell whether observations depend on those before them"
    if p_value <= CAUTIOUS:
        return f"The reference may depend on its order (p = {p_value:.3g})"
    if len(groups) > 2:
        return None
    if moving(points) <= SELDOM:
        return "Levels of the reference move on from its beginning to its end"
    if bursting(points) <= SELDOM:
        return "Rows of the reference that are far from the middle come together"
    return None


def chosen_views(calibration: Calibration, why: str) -> DependenceWarning:
    return DependenceWarning(
        f"{why}, so its columns are watched one by one, in the forms in which they are quiet (",
        Option("statistic", Code("Views()")),
        f"), and the thresholds are rehearsed on it: {calibration.quality}. If observations do not depend on each "
        "other, or the order is not that in which they were made, give ",
        Option("sampler", Code("Independent()")),
        ". If the reference is long, ",
        Option("sampler", Code("Blocks()")),
        " compares all columns together.",
    )


def chosen_blocks(calibration: Calibration) -> DependenceWarning:
    return DependenceWarning(
        f"The reference depends on its order (p = {calibration.dependence:.3g}), so null streams are drawn in blocks "
        f"of {calibration.block} observations (",
        Option("sampler", Code("Blocks()")),
        "). If its order is not that in which it was observed, shuffle it, or give ",
        Option("sampler", Code("Independent()")),
        ".",
    )
