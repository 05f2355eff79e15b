"""When is a stream like its reference again?

While an incident is open its path goes on. A stream that has returned is quiet once the rows of the change have left
the widest window, and then stays below a level that chance leaves uncrossed for as many rows as that window has, more
often than not. A change that lasts crosses it as soon as it shows at all: it is well below the threshold. So a return
is known two to three widest windows after it, in the median.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._compute.arrays import Float64Array
from tocsin._incidents.hearing import views_of
from tocsin._state import Fitted

CALM = 0.6
"""How often chance leaves the level uncrossed, for as many rows as the widest window has."""

FLAPS, OFTEN = 3, 10
"""A stream that rings within so many widest windows after a return had not returned; but not later than this part of
the expected run time, in which chance seldom rings."""


@dataclass(frozen=True)
class Return:
    """What says that a stream has returned: so many rows in a row, none of which crosses a level.

    flapping: rows after a return in which an alarm says that there was none.
    """

    level: float
    rows: int
    flapping: int

    @classmethod
    def of(cls, listens: Fitted[Calibration]) -> Return:
        """For what hears a stream while an incident is open."""
        calibration, rows = listens.calibration, listens.widest
        level = min(calm_level(listens), calibration.threshold)
        return cls(level, rows, int(min(FLAPS * rows, calibration.ert / OFTEN)))

    def found(self, statistic: Float64Array, calm: int) -> tuple[int | None, int]:
        """The place of the first row with which the stream has returned, if it has; and how many were calm in a row.

        calm: rows in a row that were, before these.
        """
        loud = np.flatnonzero(~(statistic <= self.level))
        begins = np.concatenate([[-calm], loud + 1])
        ends = np.concatenate([loud, [len(statistic)]])
        long = np.flatnonzero(ends - begins >= self.rows)
        if len(long):
            return int(begins[long[0]]) + self.rows - 1, self.rows
        return None, int(ends[-1] - begins[-1])


def calm_level(listens: Fitted[Calibration]) -> float:
    """The level that chance leaves uncrossed so often."""
    curve, rows = listens.calibration.curve, listens.widest
    if views_of(listens) is not None:
        loudest = _heard_of_reference(listens)
        if len(loudest) >= rows:
            highest = np.lib.stride_tricks.sliding_window_view(loudest, rows).max(1)
            return float(np.quantile(highest, CALM))
    elif curve is not None:
        return curve.level(math.log(-math.log(CALM) / rows))
    return listens.calibration.threshold


def _heard_of_reference(listens: Fitted[Calibration]) -> Float64Array:
    """How loud the loudest channel of views is in the rows of the reference itself."""
    live, points, edges = views_of(listens), listens.reference, listens.edges
    assert live is not None
    assert isinstance(points, np.ndarray)
    assert edges is not None
    lead, found = live.model.spans.history + 1, [np.empty(0)]
    for start, stop in pairwise(edges.tolist()):
        if stop - start > lead + listens.widest:
            state = replace(live, past=points[start : start + lead]).begin(0)
            state["clock"][:] = 0, len(points)
            found.append(live.advance(state, points[start + lead : stop], 0, stop - start - lead).max(1))
    return np.concatenate(found)
