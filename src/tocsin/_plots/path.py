"""The path of a detector: its statistic against the threshold, with alarms and when the changes began."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tocsin._calibration.tail import RateCurve
from tocsin._common.errors import InputError
from tocsin._common.wording import counted
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._data.tables import Table
from tocsin._explain.beside import CLOCK, Beside, clock_values
from tocsin._explain.result import Explanation
from tocsin._plots import figures
from tocsin._plots.envelope import envelope
from tocsin._state.outcomes import Outcomes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BINS = 1500
"""Bins that a path is drawn in: about one to a dot of a page's width."""

MOST_TRIANGLES = 60
"""Alarms up to which each has a mark of its own at its height."""

MOST_TIMES = 5
"""Numbers of observations that have their times below them."""

CLOSEST = 0.06
"""Part of the axis that is between two ticks, at least."""

DEEPEST = 15
"""Decades of rarity that an axis may show."""


def draw_path(
    outcomes: Outcomes,
    file: figures.File,
    *,
    explanations: Sequence[Explanation] = (),
    first: int = 1,
    times: object = None,
    theme: figures.Theme = "light",
) -> None:
    """The statistic against its threshold, observation by observation; alarms are marked.

    Parameters
    ----------
    outcomes
        What `update_many` gave. A path of millions is drawn as its envelope, with every peak.
    file
        A .png, .svg or .pdf to write.
    explanations
        Of alarms among these outcomes: when each change began is shaded.
    first
        The number of the first observation.
    times
        When each of them came: datetimes, or strings as ISO 8601 has them, in a list, an array or a column of a frame.
        They are told below the numbers of observations.
    theme
        'light', or 'dark' for dark pages.
    """
    with figures.figure_file(file, figures.PAGE, 2.6, theme) as drawing:
        path_panel(drawing.subplots(), outcomes, explanations=explanations, first=first, times=times)


def path_panel(
    axes: Axes,
    outcomes: Outcomes,
    *,
    explanations: Sequence[Explanation] = (),
    first: int = 1,
    times: object = None,
) -> None:
    """The same on axes of yours."""
    if not len(outcomes):
        raise InputError("There are no outcomes to draw; give those of at least one observation.")
    clock = None if times is None else _clock(times, len(outcomes))
    _shade(axes, outcomes, explanations, first)
    _draw_statistic(axes, outcomes.statistic, first)
    _draw_threshold(axes, outcomes.threshold, first)
    _mark(axes, outcomes, first)
    axes.set(xlabel="observation", ylabel="statistic", xlim=_limits(len(outcomes), first))
    axes.margins(y=0.12)
    if clock is not None:
        axes.locator_params(axis="x", nbins=MOST_TIMES)  # times are long
    axes.xaxis.set_major_formatter(lambda value, _: _numbered(value, first, clock))
    if outcomes.curve is not None:
        _rarity_axis(axes, outcomes.curve)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0.2, handlelength=1.4)


def _numbered(value: float, first: int, clock: Beside | None) -> str:
    """The number of an observation, and below it when that came."""
    if value != round(value):
        return ""
    when = None if clock is None else clock.when(int(value) - first + 1)
    return f"{value:,.0f}" if when is None else f"{value:,.0f}\n{when}"


def _clock(times: object, count: int) -> Beside:
    """Times of observations, the first being 1."""
    values = clock_values(times)
    if len(values) != count:
        raise InputError(
            f"There are {counted(len(values), 'time')} for {counted(count, 'outcome')}; each outcome must have one."
        )
    clock = Beside(most=count)
    clock.add(Table({CLOCK: values}), count)
    return clock


def beginnings(outcomes: Outcomes) -> Int64Array:
    """Where alarms begin: the first of several in a row, if no new run was started."""
    before = np.concatenate([[False], outcomes.alarm[:-1] & (np.diff(outcomes.time) > 0)])
    return np.flatnonzero(outcomes.alarm & ~before)


def _draw_statistic(axes: Axes, values: Float64Array, first: int) -> None:
    whole = envelope(values, MOST_BINS)
    x = whole.middles + first - 1
    if whole.each == 1:
        axes.plot(x, whole.high, color="C0", linewidth=1.0, label="statistic")
    else:
        axes.fill_between(x, whole.low, whole.high, color="C0", linewidth=0.4, label="statistic")


def _draw_threshold(axes: Axes, values: Float64Array, first: int) -> None:
    whole, colour = envelope(values, MOST_BINS), figures.ink()
    x = whole.middles + first - 1
    axes.plot(x, whole.low, color=colour, linewidth=0.9, label="threshold", zorder=3)
    if whole.each > 1:
        # Where runs begin it is higher; a line through the highest would be there only.
        axes.fill_between(x, whole.low, whole.high, color=colour, alpha=0.25, linewidth=0, zorder=3)


def _mark(axes: Axes, outcomes: Outcomes, first: int) -> None:
    """Alarms, as triangles, or, if they are many, as ticks along the upper edge."""
    rang = beginnings(outcomes)
    label = f"alarm ({len(rang):,})"
    if 0 < len(rang) <= MOST_TRIANGLES:
        axes.plot(
            rang + first, outcomes.statistic[rang], "v", color="C1", markersize=5, label=label, zorder=4,
            markeredgecolor=axes.get_facecolor(), markeredgewidth=0.5,
        )  # fmt: skip
    elif len(rang):
        axes.plot(
            rang + first, np.full(len(rang), 0.985), "|", color="C1", markersize=6, markeredgewidth=0.6, label=label,
            transform=axes.get_xaxis_transform(),
        )  # fmt: skip


def _shade(axes: Axes, outcomes: Outcomes, explanations: Sequence[Explanation], first: int) -> None:
    for i, explanation in enumerate(explanations):
        rang, began = explanation.outcome, explanation.began
        found = np.flatnonzero((outcomes.time == rang.time) & (outcomes.statistic == rang.statistic) & outcomes.alarm)
        if not len(found):
            raise InputError(
                f"The explanation of the alarm at time {rang.time} is not of one of these outcomes. Give outcomes and "
                "explanations of the same stream."
            )
        start = int(found[0]) + first - rang.time
        axes.axvspan(
            start + began.low - 0.5, start + began.high + 0.5, color="C4", alpha=0.35, linewidth=0,
            label=None if i else f"change began ({began.level:.0%} interval)",
        )  # fmt: skip
        axes.axvline(start + began.time, color="C4", linewidth=0.8)


def _limits(count: int, first: int) -> tuple[float, float]:
    """A little room for marks at either end."""
    room = max(count * 0.01, 0.5)
    return first - room, first + count - 1 + room


def decades(curve: RateCurve, low: float, high: float) -> list[tuple[float, float]]:
    """Levels of the statistic between these two that chance alone reaches once in 10, 100, ..., and these numbers."""
    found: list[tuple[float, float]] = []
    for power in range(1, DEEPEST + 1):
        level = curve.level(-power * math.log(10))
        last = found[-1][0] if found else max(low, float(curve.values[0]))
        if level < high and level - last > CLOSEST * (high - low) * bool(found):
            found.append((level, 10.0**power))
    return found


def _rarity_axis(axes: Axes, curve: RateCurve) -> None:
    """On the right, how rare each level is without a change."""
    low, high = axes.get_ylim()
    levels = decades(curve, low, high)
    if not levels:
        return
    right = axes.twinx()
    right.set(ylim=(low, high), yticks=[level for level, _ in levels], ylabel="by chance once in")
    right.set_yticklabels(
        [f"{rarity:,.0f}" if rarity < 1e5 else f"$10^{{{round(math.log10(rarity))}}}$" for _, rarity in levels]
    )
    right.grid(visible=False)
    right.tick_params(length=2)
