"""What files must hold of views: what they learnt of the reference, and where they are in their stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._detector.schema import Array, Each, Many, Number, Record, Rule, Whole, must, text
from tocsin._detector.sizes import Sizes
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.news import MOST_NEWS
from tocsin._statistics.view_model import LAGS, MOST_COLUMNS
from tocsin._statistics.views import ROOM, ViewsLive

FAR, SMALLEST = 1e100, 5e-324
"""Directions of columns, and the least of their spreads: numbers in their units are cut off."""

MANY, LITTLE = 1e30, 1e-30
"""What else is learnt, and what it is divided by: products of these, and their squares, are numbers."""

ROW, VIEW, SQUARE, SCALE = 1e4, 1e80, 1e210, 1e290
"""What rows, views, squares of deviations and running scales can come to, with all that."""

LATEST = 2**62
"""Rows that a stream may have had."""


def views_parts(value: Any, at: str, sizes: Sizes) -> None:
    """Of the reference."""
    must(sizes.columns is not None, at, "of objects", "of rows of numbers")
    assert sizes.columns is not None
    chosen, axes, widest = (value.get(name) if isinstance(value, dict) else None for name in ("chosen", "axes", "base"))
    Array("i8", (None,), 0, sizes.columns - 1, rising=True)(chosen, f"{at}.chosen")
    Array("f8", (None, None), -FAR, FAR)(axes, f"{at}.axes")
    Whole(1, sizes.points)(widest, f"{at}.base")
    assert isinstance(chosen, np.ndarray)
    assert isinstance(axes, np.ndarray)
    must(len(chosen) > 0, f"{at}.chosen", 0, "some columns")
    m, width = len(chosen), axes.shape[1] if axes.size else len(chosen)
    must(not axes.size or axes.shape[0] == m, f"{at}.axes", axes.shape, "directions of the columns that are watched")
    most = min(MOST_COLUMNS + MOST_NEWS, m)
    must(not axes.size or width <= most, f"{at}.axes", width, f"at most {most} directions")
    channels = (4 * len(sizes.windows) + 2) * width
    history = value["base"] + (value["gap"] if isinstance(value.get("gap"), int) else 0) + sizes.widest
    positive = Number(LITTLE, MANY)
    Record(
        {
            "base": Whole(1, sizes.points),
            "gap": Whole(1, sizes.points),
            "centre": Array("f8", (m,)),
            "spread": Array("f8", (m,), SMALLEST),
            "chosen": Array("i8", (None,)),
            "axes": Array("f8", (None, None)),
            "lags": Array("f8", (1 + LAGS, width), -MANY, MANY),
            "sizes": Array("f8", (4, width), LITTLE, MANY),
            "middle": Array("f8", (channels,), -MANY, MANY),
            "unit": Array("f8", (channels,), LITTLE, MANY),
            "level": positive,
            "pace": Each((Number(1.0), positive, positive, Number(0.0, MANY), positive)),
            "past": Array("f8", (history, sizes.columns)),
            "scale": Array("f8", (channels,), 1.0, SCALE),
            "columns": Many(text),
            "owners": Array("i8", (sizes.columns,), 0),
        }
    )(value, at)
    must(value["base"] + value["gap"] > LAGS, f"{at}.base", value["base"], "as many rows as foresee the next")


def views_state(live: ViewsLive, sizes: Sizes) -> Rule:
    """Of the stream."""
    spans, width, channels = live.model.spans, live.model.width, len(live.unit)
    past, widest, room = spans.base + spans.gap, spans.widest, ROOM * spans.widest
    return Record(
        {
            "rows": Array("f8", (past + room, width), -ROW, ROW),
            "views": Array("f8", (widest + room, 4 * width), -VIEW, VIEW),
            "squares": Array("f8", (widest + room, channels), 0.0, SQUARE),
            "loud": Array("f8", (channels,), 0.0, SQUARE),
            "scale": Array("f8", (channels,), 1.0, SCALE),
            "clock": _clock(widest),
            "position": Array("i8", (1,), 0, room),
        }
    )


def _clock(widest: int) -> Rule:
    def rule(value: Any, at: str) -> None:
        Array("i8", (2,), -widest, LATEST)(value, at)
        must(value[0] <= widest and value[1] >= 0, at, value, f"at most {widest} silent rows, and those so far")

    return rule


def check_views(live: LiveFamily, saved: dict[str, Any], at: str) -> None:
    """They alone are rehearsed; they ring at the threshold, and know the columns, that are kept beside them."""
    calibration, intake = saved["calibration"], saved["intake"]
    rehearsal = calibration.rehearsal if isinstance(calibration, Calibration) else None
    kept = f"{at}.calibration.rehearsal"
    must((rehearsal is not None) == live.goes_on, kept, rehearsal, "there with views, and with them alone")
    for member in live.members:
        if isinstance(member, ViewsLive):
            must(len(live.members) == 1, at, live.channels, "those of views, which stand alone")
            thresholds = calibration.thresholds
            same = len(thresholds) == 1 and float(thresholds[0]) == member.level
            must(same, f"{at}.calibration.thresholds", thresholds, f"the level of views, {member.level}")
            known = member.columns == intake.names and np.array_equal(member.owners, intake.owners)
            must(known, f"{at}.intake", intake.names, f"of the columns of views, {member.columns}")
