"""What a detector can see: how soon each change is found in each column, and where it is not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tocsin._common.errors import InputError
from tocsin._common.wording import counted
from tocsin._plots import figures
from tocsin._plots.samples import cut
from tocsin._power.result import Power

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COLUMNS, LONGEST_NAME = 40, 22
"""Columns that are drawn, those first in which most is not found; and characters of a name."""

SHORT = {
    "shift": "shift",
    "other value": "another value",
    "stuck": "stops",
    "wider": "noise doubled",
    "narrower": "noise halved",
    "missing": "missing",
    "unseen": "unseen category",
    "uncoupled": "goes its own way",
    "shifted": "shift",
}
"""Kinds of changes, at the top of a column of the figure."""

ALL = "all at once"


def draw_power(power: Power, file: figures.File, *, theme: figures.Theme = "light") -> None:
    """A cell for each change of each column, with the rows until it is found; grey where it is not."""
    _must_have_changes(power)
    names, kinds = _axes_of(power)
    width = max(figures.COLUMN, 1.9 + 0.46 * len(kinds))
    with figures.figure_file(file, width, 1.5 + 0.2 * len(names), theme) as drawing:
        power_panel(drawing.subplots(), power)


def power_panel(axes: Axes, power: Power) -> None:
    """The same on axes of yours."""
    _must_have_changes(power)
    names, kinds = _axes_of(power)
    delays = np.full((len(names), len(kinds)), np.nan)
    for change in power.changes:
        name, kind = change.column or ALL, _kind(change.kind, change.size)
        if name in names:
            at = names.index(name), kinds.index(kind)
            delays[at] = change.delay if np.isnan(delays[at]) else max(delays[at], change.delay)
    span = math.log(max(power.horizon, 2))
    shade = np.where(np.isfinite(delays), 1 - np.log(np.maximum(delays, 1)) / span, np.nan)
    from matplotlib.colors import to_rgba

    picture = np.zeros((*delays.shape, 4))
    known, missed = np.isfinite(delays), np.isinf(delays)
    picture[known] = to_rgba("C0")
    picture[known, 3] = 0.18 + 0.62 * shade[known]
    picture[missed] = to_rgba(figures.ink(), 0.16)
    axes.imshow(picture, aspect="auto", interpolation="nearest")
    for i, j in zip(*np.nonzero(known | missed), strict=True):
        label = f"{delays[i, j]:,.0f}" if known[i, j] else "-"
        axes.text(j, i, label, ha="center", va="center", fontsize=6, color=figures.ink())
    axes.set_xticks(range(len(kinds)), [_title(kind, size) for kind, size in kinds], rotation=55, ha="left")
    axes.set_yticks(range(len(names)), [cut(name, LONGEST_NAME) for name in names], parse_math=False)
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    drawn = len(names) - (ALL in names)
    more = f"; {counted(len(power.tried) - drawn, 'column')} more" if len(power.tried) > drawn else ""
    axes.set_xlabel(
        f"rows until half of the trials have rung; -: not within {counted(power.horizon, 'row')} "
        f"(ERT {power.ert:,.10g}){more}",
        fontsize=6.5, loc="left",
    )  # fmt: skip


def _must_have_changes(power: Power) -> None:
    if not power.changes:
        raise InputError(f"Nothing could be simulated, so there is nothing to draw: {'; '.join(power.not_simulated)}.")


def _kind(kind: str, size: float | None) -> tuple[str, float | None]:
    return ("shift" if kind in ("higher", "lower", "shifted") else kind), size


def _axes_of(power: Power) -> tuple[list[str], list[tuple[str, float | None]]]:
    """Names of the rows, and kinds and sizes of the columns, of the figure."""
    missed: dict[str, int] = dict.fromkeys(power.tried, 0)
    for change in power.unseen:
        if change.column is not None:
            missed[change.column] += 1
    kept = set(sorted(missed, key=lambda name: -missed[name])[:MOST_COLUMNS])
    names = [name for name in power.tried if name in kept]
    if any(change.column is None for change in power.changes):
        names.append(ALL)
    order = list(SHORT)
    kinds = {_kind(change.kind, change.size) for change in power.changes}
    return names, sorted(kinds, key=lambda each: (order.index(each[0]), each[1] or 0.0))


def _title(kind: str, size: float | None) -> str:
    if kind == "shift":
        return f"shift {size:g}"
    return f"{SHORT[kind]} {size:.0%}" if kind in ("missing", "unseen") else SHORT[kind]
