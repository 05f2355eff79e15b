"""The reference against recent observations, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tocsin._common.errors import InputError
from tocsin._data.tables import Table, Values, as_table, numbered, unnamed
from tocsin._plots import figures
from tocsin._plots.samples import Bars, Histogram, compared, cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COLUMNS, ACROSS = 6, 3
"""Columns that are shown where none are named, and panels side by side."""

LONGEST_NAME, LONGEST_TITLE = 14, 30
"""Characters of a category, and of a column's name."""

NAMES = ("reference", "recent")


def draw_comparison(
    before: object,
    after: object,
    file: figures.File,
    *,
    columns: Sequence[str] | None = None,
    names: tuple[str, str] = NAMES,
    theme: figures.Theme = "light",
) -> None:
    """Two samples side by side: histograms of numbers and times of day, bars of categories.

    Parameters
    ----------
    before, after
        Data frames, lists of dicts or arrays with the same columns: the reference, and what came since the change.
    file
        A .png, .svg or .pdf to write.
    columns
        Those to show, such as the ones that an explanation says have changed; the first few by default.
    names
        What to call the two samples.
    theme
        'light', or 'dark' for dark pages.
    """
    first, second = _table("before", before), _table("after", after)
    shown = list(first.names[:MOST_COLUMNS] if columns is None else columns)
    if not shown:
        raise InputError("columns=[] names no column to draw; leave it out for the first few.")
    for name in shown:
        if name not in first.columns or name not in second.columns:
            raise InputError(
                f"Both samples must have a column {name!r} to compare; there are {', '.join(first.names)}."
            )
    across = min(len(shown), ACROSS)
    down = -(-len(shown) // across)
    width = figures.PAGE if across > 1 else figures.COLUMN
    with figures.figure_file(file, width, 0.35 + 1.75 * down, theme) as drawing:
        panels = list(drawing.subplots(down, across, squeeze=False).flat)
        for axes, name in zip(panels, shown, strict=False):
            comparison_panel(axes, name, first.columns[name], second.columns[name], names=names)
        for axes in panels[len(shown) :]:
            axes.set_axis_off()
        drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=2, handlelength=1.0)


def comparison_panel(
    axes: Axes,
    name: str,
    before: Values | Iterable[object],
    after: Values | Iterable[object],
    *,
    names: tuple[str, str] = NAMES,
) -> None:
    """One column on axes of yours; `before`, `after`: sequences of its values, None or NaN where one is missing."""
    first, second = _values(name, before), _values(name, after)
    if not len(first) or not len(second):
        raise InputError(f"Column {name!r} has no values in one of the samples; each must have at least one.")
    found = compared(first, second)
    axes.set_title(cut(name, LONGEST_TITLE), loc="left", parse_math=False)
    if isinstance(found, Histogram):
        _histogram(axes, found, names)
    else:
        _bars(axes, found, names)


def _histogram(axes: Axes, found: Histogram, names: tuple[str, str]) -> None:
    axes.stairs(found.before, found.edges, fill=True, color=figures.ink(), alpha=0.22, label=names[0])
    axes.stairs(found.after, found.edges, color="C1", linewidth=1.3, label=names[1])
    top = max(float(found.before.max()), float(found.after.max()), 1e-9)
    axes.plot(found.points, np.full(len(found.points), -0.06 * top), "|", color="C1", markersize=4, markeredgewidth=0.7)
    axes.set(ylim=(-0.12 * top, 1.08 * top), xlim=(found.edges[0], found.edges[-1]))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}" if value >= 0 else "")
    if found.of_day:
        axes.set(xticks=range(0, 25, 6), xlabel="time of day (hours)")
    if max(found.missing) > 0:
        axes.set_title(f"missing {found.missing[0]:.0%} → {found.missing[1]:.0%}", loc="right", fontsize=7)


def _bars(axes: Axes, found: Bars, names: tuple[str, str]) -> None:
    places = np.arange(len(found.names))
    axes.barh(places - 0.2, found.before, height=0.36, color=figures.ink(), alpha=0.3, linewidth=0, label=names[0])
    axes.barh(places + 0.2, found.after, height=0.36, color="C1", label=names[1])
    axes.set(ylim=(len(places) - 0.4, -0.6))
    axes.set_yticks(places, [cut(name, LONGEST_NAME) for name in found.names], parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")


def _values(name: str, values: Values | Iterable[object]) -> Values:
    return values if isinstance(values, Values) else Values.of_objects(list(values), name)


def _table(what: str, data: object) -> Table:
    table = as_table(data)
    if table is None:
        rows = np.asarray(data)
        if rows.ndim not in (1, 2):
            raise InputError(f"{what} has shape {rows.shape}; it must be a table: a row per observation.")
        table = unnamed(rows, numbered(1 if rows.ndim == 1 else rows.shape[1]))
    if not len(table):
        raise InputError(f"{what} holds no rows; each sample must have at least one.")
    return table
