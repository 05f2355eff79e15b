"""A small plot of a statistic against its threshold, in characters."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from rich.text import Text

from tocsin.outcomes import Outcomes

BARS = " ▁▂▃▄▅▆▇█"
HEIGHT, WIDTH = 7, 60
HEADROOM = 1.25
"""The plot ends at the highest statistic, but shows at least this much, in thresholds."""


def plot(outcomes: Outcomes, change: int) -> Text:
    """The statistic up to an alarm, in units of the threshold; `change`: observations before the change."""
    ratio = np.maximum(outcomes.statistic / outcomes.threshold, 0)
    edges = np.linspace(0, len(ratio), WIDTH + 1).astype(int)
    levels = [float(ratio[low:high].max()) for low, high in pairwise(edges)]
    top = max(HEADROOM, *levels)
    threshold_row = round(HEIGHT / top - 0.5)
    changed = int(np.searchsorted(edges, change, side="right")) - 1
    picture = Text()
    for row in reversed(range(HEIGHT)):
        picture.append(" threshold " if row == threshold_row else " " * 11)
        for column, level in enumerate(levels):
            filled = int(np.clip(round((level / top * HEIGHT - row) * 8), 0, 8))
            if filled == 0 and row == threshold_row:
                picture.append("╌", "red")
            else:
                picture.append(BARS[filled], "red" if level > 1 else "yellow" if column >= changed else "green")
        picture.append("\n")
    picture.append(" " * 11 + "─" * changed + "▲" + "─" * (WIDTH - changed - 2) + "▲\n")
    label = f"change after {change}"
    picture.append(" " * 11 + f"{label:>{changed + 1}}".ljust(max(changed + 3, WIDTH - 6)) + f"alarm at {len(ratio)}\n")
    return picture
