"""Small plots in characters: a statistic against its threshold, and quantiles against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

import numpy as np
from rich.text import Text

from tocsin._compute.arrays import Float64Array
from tocsin._state.outcomes import Outcomes

BARS = " ▁▂▃▄▅▆▇█"
HEIGHT, WIDTH = 7, 60
THRESHOLD = " threshold "
MARGIN = len(THRESHOLD)
HEADROOM = 1.25
"""The plot ends at the highest statistic, but shows at least this much, in thresholds."""


def plot(outcomes: Outcomes, change: int) -> Text:
    """The statistic up to an alarm, in units of the threshold; `change`: observations before the change."""
    ratio = np.maximum(outcomes.statistic / outcomes.threshold, 0)
    edges = np.linspace(0, len(ratio), WIDTH + 1).astype(int)
    levels = [float(ratio[low:high].max()) for low, high in pairwise(edges)]
    changed = int(np.searchsorted(edges, change, side="right")) - 1
    picture = bars(levels, lambda column: "yellow" if column >= changed else "green")
    picture.append(" " * MARGIN + "─" * changed + "▲" + "─" * (WIDTH - changed - 2) + "▲\n")
    label = f"change after {change}"
    below = f"{label:>{changed + 1}}".ljust(max(changed + 3, WIDTH - 6))
    picture.append(f"{' ' * MARGIN}{below}alarm at {len(ratio)}\n")
    return picture


def bars(levels: Sequence[float], colour: Callable[[int], str], height: int = HEIGHT) -> Text:
    """A bar for each level, in units of the threshold; red above it, and `colour` of its column elsewhere.

    A level that is NaN has no bar.
    """
    shown = [level if level > 0 else 0.0 for level in levels]
    top = max(HEADROOM, *shown)
    threshold_row = round(height / top - 0.5)
    colours = ["red" if level > 1 else colour(column) for column, level in enumerate(shown)]
    picture = Text()
    for row in reversed(range(height)):
        picture.append(THRESHOLD if row == threshold_row else " " * MARGIN)
        cells = [BARS[min(max(round((level / top * height - row) * 8), 0), 8)] for level in shown]
        line = [
            ("╌", "red") if cell == " " and row == threshold_row else (cell, cell_colour)
            for cell, cell_colour in zip(cells, colours, strict=True)
        ]
        for style, run in groupby(line, key=lambda cell: cell[1]):
            picture.append("".join(cell for cell, _ in run), style)
        picture.append("\n")
    return picture


def quantile_plot(seen: Float64Array, expected: Float64Array) -> Text:
    """Run lengths as observed against those of the geometric law: on the diagonal if the promise is kept."""
    high, wide = 2 * HEIGHT, WIDTH // 2
    top = float(max(seen[-1], expected[-1]))
    cells = [[" "] * wide for _ in range(high)]
    for column in range(wide):
        cells[column * high // wide][column] = "·"
    for x, y in zip(expected, seen, strict=True):
        cells[min(int(y / top * high), high - 1)][min(int(x / top * wide), wide - 1)] = "●"
    label = f"{top:,.0f}"
    picture = Text()
    for row in reversed(range(high)):
        picture.append(f"  {label if row == high - 1 else '0' if row == 0 else '':>{len(label)}} ")
        for cell in cells[row]:
            picture.append(cell, {"●": "red", "·": "dim"}.get(cell, ""))
        picture.append("   observed run lengths\n" if row == high - 1 else "\n")
    margin = " " * (len(label) + 3)
    picture.append(f"{margin}0{label:>{wide - 1}}   geometric run lengths\n")
    return picture
