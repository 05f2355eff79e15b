"""An explanation as a picture: when the change began, and what each column has to do with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tocsin._common.errors import InputError
from tocsin._common.wording import rounded
from tocsin._explain.result import MOST_COLUMNS, Explanation, Moved
from tocsin._plots import figures
from tocsin._plots.samples import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_NAME, LONGEST_WORDS = 26, 46
"""Characters of a column's name, and of a line about its values."""

ROW, TIME_LINE = 0.36, 1.2
"""Inches: the height of a column's bar, and of the line of time with its title."""


def draw_explanation(
    explanation: Explanation, file: figures.File, *, most: int = MOST_COLUMNS, theme: figures.Theme = "light"
) -> None:
    """When the change began, how much each column contributes, and what its values were like before and after.

    Parameters
    ----------
    explanation
        What `detector.explain()` gave.
    file
        A .png, .svg or .pdf to write.
    most
        Columns to show; those that changed come first.
    theme
        'light', or 'dark' for dark pages.
    """
    shown = min(most, len(explanation.columns))
    height = TIME_LINE + (0.75 + ROW * shown if shown else 0)
    with figures.figure_file(file, figures.PAGE, height, theme) as drawing:
        drawing.suptitle(_title(explanation), fontsize=9, x=0.01, ha="left")
        if not shown:
            onset_panel(drawing.subplots(), explanation)
            return
        (upper,), (lower,) = drawing.subfigures(2, 1, squeeze=False, height_ratios=(TIME_LINE, height - TIME_LINE))
        onset_panel(upper.subplots(), explanation)
        left, right = lower.subplots(1, 2, width_ratios=(1, 1), sharey=True)
        contributions_panel(left, explanation, most=most)
        _words_panel(right, explanation, _first(explanation, most))


def onset_panel(axes: Axes, explanation: Explanation) -> None:
    """A line of time: when the change began, with its interval, and when the alarm came."""
    began, alarm = explanation.began, explanation.outcome.time
    earliest = max(1, min(began.low, began.time) - max((alarm - began.low) // 4, 2))
    axes.axvspan(began.low - 0.5, began.high + 0.5, color="C4", alpha=0.35, linewidth=0)
    axes.plot([earliest, alarm], [0, 0], color=figures.ink(), linewidth=1.0)
    axes.plot([began.time], [0], "o", color="C4", markersize=6, zorder=3, markeredgecolor=figures.ink())
    axes.plot([alarm], [0], "v", color="C1", markersize=7, zorder=3)
    right = began.time > (earliest + alarm) / 2
    axes.annotate(
        f"began at about {began.time:,}{_at(began.when)} ({began.level:.0%}: {began.low:,} to {began.high:,})",
        (began.time, 0), (0, 7), textcoords="offset points", ha="right" if right else "left", fontsize=7,
    )  # fmt: skip
    rang = f"alarm {alarm:,}{_at(explanation.when)}"
    axes.annotate(rang, (alarm, 0), (0, -14), textcoords="offset points", ha="right", fontsize=7)
    room = max((alarm - earliest) * 0.02, 0.7)
    whose = "the stream" if explanation.run is None else "this run"
    axes.set(ylim=(-1, 1), yticks=[], xlim=(earliest - room, alarm + room), xlabel=f"observation of {whose}")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value == round(value) else "")
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)


def _at(when: str | tuple[str, ...] | None) -> str:
    """The data's own time after a number, if there is one."""
    return "" if not when else f", {when if isinstance(when, str) else when[0]}"


def contributions_panel(axes: Axes, explanation: Explanation, *, most: int = MOST_COLUMNS) -> None:
    """How much each column contributes; grey is where nine in ten of its contributions to false alarms are."""
    columns = _first(explanation, most)
    if not columns:
        raise InputError("This explanation has no columns to draw: the observations have none that can be told apart.")
    places = range(len(columns))
    low, high = zip(*(column.usual for column in columns), strict=True)
    axes.barh(
        places, [b - a for a, b in zip(low, high, strict=True)], left=low, height=0.78, color=figures.ink(), alpha=0.18,
        label="up to the threshold" if explanation.one_by_one else "usual at false alarms",
    )  # fmt: skip
    for changed, colour, label in ((True, "C1", "changed"), (False, "C0", "others")):
        own = [place for place in places if columns[place].changed == changed]
        if own:
            axes.barh(own, [columns[place].contribution for place in own], height=0.4, color=colour, label=label)
    axes.axvline(0, color=figures.ink(), linewidth=0.6)
    part = "loudness" if explanation.one_by_one else f"contribution to {explanation.measure or 'the statistic'}"
    axes.set(ylim=(len(columns) - 0.5, -0.5), xlabel=part)
    axes.set_yticks(list(places), [cut(column.name, LONGEST_NAME) for column in columns], parse_math=False)
    axes.use_sticky_edges = False
    axes.margins(x=0.04)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, handlelength=1.0, columnspacing=1.0
    )


def _words_panel(axes: Axes, explanation: Explanation, columns: tuple[Moved, ...]) -> None:
    """What the values were like, beside each bar; and what was heard of columns one by one."""
    axes.set_axis_off()
    head = "heard: before → after" if explanation.one_by_one else "before → after"
    axes.text(0.0, 1.02, head, transform=axes.transAxes, fontsize=7, va="bottom", weight="bold")
    for place, column in enumerate(columns):
        told = f"{column.before}\n→ {column.after}"
        if explanation.one_by_one and column.changed:
            left = ", beyond all of the reference" if column.name in explanation.beyond else ""
            told = f"{column.how}{left}:\n{told}"
        lines = [cut(line, LONGEST_WORDS) for line in told.splitlines()]
        axes.text(
            0.0, place, "\n".join(lines), va="center", fontsize=7, linespacing=1.1, parse_math=False,
            transform=axes.get_yaxis_transform(), alpha=1.0 if column.changed else 0.7,
        )  # fmt: skip


def _first(explanation: Explanation, most: int) -> tuple[Moved, ...]:
    """The columns to show: those that changed, then those that contribute most."""
    rest = [column for column in explanation.columns if not column.changed]
    return tuple([*explanation.changed, *rest][:most])


def _title(explanation: Explanation) -> str:
    outcome = explanation.outcome
    rare = f": by chance once in {rounded(outcome.rarity)} observations" if math.isfinite(outcome.rarity) else ""
    return f"Alarm at {explanation.where} ({outcome.channel}){rare}"
