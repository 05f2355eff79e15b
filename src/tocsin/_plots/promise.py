"""How rare each level of the statistic is, and the run lengths of a quiet stream."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from tocsin._calibration.result import LEVEL, Calibration
from tocsin._common.errors import InputError
from tocsin._common.wording import counted
from tocsin._detector.quiet import QuietRun, geometric_quantiles
from tocsin._plots import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIMULATED, FITTED = "C0", "C1"
BAND = 200
"""Levels at which a band is drawn."""


def draw_promise(
    calibration: Calibration, run: QuietRun | None, file: figures.File, *, theme: figures.Theme = "light"
) -> None:
    """How rare each level is, simulated and extrapolated; beside it, if given, the runs of a quiet stream."""
    with figures.figure_file(file, figures.PAGE if run else figures.COLUMN, 2.8, theme) as drawing:
        panels = drawing.subplots(1, 2) if run else [drawing.subplots()]
        rarity_panel(panels[0], calibration)
        if run:
            run_length_panel(panels[1], run)


def rarity_panel(axes: Axes, calibration: Calibration) -> None:
    """Run times as a function of the threshold: what was simulated, the fitted tail, and how far to trust them."""
    curve = calibration.curve
    if curve is None:
        raise InputError("This calibration has no curve of rarities to draw.")
    tail = curve.tail
    axes.plot(curve.values, np.exp(-curve.log_rates), color=SIMULATED, label="simulated")
    deepest = max(math.log(calibration.nominal) + math.log(30), math.log(30) - tail.log_rate)
    log_times = np.linspace(-tail.log_rate, deepest, BAND)
    levels = np.array([curve.level(-log_time) for log_time in log_times])
    axes.plot(levels, np.exp(log_times), color=FITTED, linestyle="--", label="fitted tail")
    if calibration.errors is not None:
        # At the threshold the band is the interval; elsewhere the part that the tail adds is its own.
        rest = math.sqrt(max(calibration.errors.total**2 - calibration.errors.tail**2, 0.0))
        unit = calibration.errors.quantile((1 + LEVEL) / 2) / calibration.errors.total
        reach = np.array([math.hypot(rest, tail.error(level)) for level in levels]) * unit
        axes.fill_between(
            levels, np.exp(log_times - reach), np.exp(log_times + reach), color=FITTED, alpha=0.2, linewidth=0,
            label=f"{LEVEL:.0%} interval",
        )  # fmt: skip
    axes.axvline(calibration.threshold, color=figures.ink(), linewidth=0.8)
    low, high = calibration.interval() or (calibration.nominal, calibration.nominal)
    axes.errorbar(
        [calibration.threshold],
        [calibration.nominal],
        yerr=[[calibration.nominal - low], [high - calibration.nominal]],
        fmt="o",
        capsize=3,
        color=figures.ink(),
        label=f"ERT {calibration.nominal:,.4g}",
    )
    axes.set(yscale="log", xlabel="statistic", ylabel="observations between false alarms")
    axes.legend(loc="lower right")


def run_length_panel(axes: Axes, run: QuietRun) -> None:
    """Run lengths seen against those of a geometric law, with the band that nine runs in ten of such plots stay in."""
    seen, expected = run.quantiles()
    if not len(seen):
        axes.text(0.5, 0.5, f"no alarm in {counted(run.tests, 'test')}", ha="center", transform=axes.transAxes)
        axes.set(xlabel="geometric run length", ylabel="observed run length")
        return
    ranks = np.arange(1, len(seen) + 1)
    low, high = (
        geometric_quantiles(special.betaincinv(ranks, len(seen) + 1 - ranks, tail), run.ert)
        for tail in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    )
    axes.fill_between(expected, low, high, color=SIMULATED, alpha=0.2, linewidth=0, label=f"{LEVEL:.0%} of each")
    axes.plot(expected, seen, "o", color=FITTED, label="observed")
    edge = max(float(expected[-1]), float(seen[-1])) * 1.05
    axes.plot([0, edge], [0, edge], color=figures.ink(), linewidth=0.8)
    axes.set(
        xlabel=f"geometric run length, ERT {run.ert:,.4g}", ylabel="observed run length", xlim=(0, edge), ylim=(0, edge)
    )
    axes.legend(loc="upper left")
