"""What files must hold of views: what they learnt of the reference, and where they are in their stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin._calibration.result import Calibration, Thresholds
from tocsin._detector.schema import Array, Each, Many, Number, Record, Rule, Whole, must, text
from tocsin._detector.sizes import Sizes
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.view_model import LAGS, MOST_COLUMNS
from tocsin._statistics.views import ROOM, ViewsLive

FAR, SMALL, SMALLEST = 1e100, 1e-300, 5e-324
"""Deviations of columns in their spreads, and the least of what anything is divided by: channels, and columns."""

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
    must(width <= (MOST_COLUMNS if axes.size else m), f"{at}.axes", width, f"at most {MOST_COLUMNS} directions")
    channels = (4 * len(sizes.windows) + 2) * width
    history = value["base"] + (value["gap"] if isinstance(value.get("gap"), int) else 0) + sizes.widest
    positive = Number(SMALL, FAR)
    Record(
        {
            "base": Whole(1, sizes.points),
            "gap": Whole(1, sizes.points),
            "centre": Array("f8", (m,)),
            "spread": Array("f8", (m,), SMALLEST),
            "chosen": Array("i8", (None,)),
            "axes": Array("f8", (None, None)),
            "lags": Array("f8", (1 + LAGS, width), -FAR, FAR),
            "sizes": Array("f8", (4, width), SMALL, FAR),
            "middle": Array("f8", (channels,), -FAR, FAR),
            "unit": Array("f8", (channels,), SMALL, FAR),
            "level": positive,
            "pace": Each((Number(1.0), positive, positive, Number(0.0, FAR), positive)),
            "past": Array("f8", (history, sizes.columns)),
            "scale": Array("f8", (channels,), 1.0, FAR),
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
            "rows": Array("f8", (past + room, width), -FAR, FAR),
            "views": Array("f8", (widest + room, 4 * width), -FAR, FAR),
            "squares": Array("f8", (widest + room, channels), 0.0, FAR),
            "loud": Array("f8", (channels,), 0.0, FAR),
            "scale": Array("f8", (channels,), 1.0, FAR),
            "clock": _clock(widest),
            "position": Array("i8", (1,), 0, room),
        }
    )


def _clock(widest: int) -> Rule:
    def rule(value: Any, at: str) -> None:
        Array("i8", (2,), -widest, LATEST)(value, at)
        must(value[0] <= widest and value[1] >= 0, at, value, f"at most {widest} silent rows, and those so far")

    return rule


def check_views(live: LiveFamily, calibration: Thresholds, at: str) -> None:
    """They alone are rehearsed, and they ring at the threshold that is kept beside them."""
    rehearsal = calibration.rehearsal if isinstance(calibration, Calibration) else None
    must((rehearsal is not None) == live.goes_on, f"{at}.rehearsal", rehearsal, "there with views, and with them alone")
    for member in live.members:
        if isinstance(member, ViewsLive):
            must(len(live.members) == 1, f"{at}.channels", live.channels, "those of views, which stand alone")
            threshold = calibration.threshold
            must(len(calibration.thresholds) == 1, f"{at}.thresholds", calibration.thresholds, "one number")
            must(member.level == threshold, f"{at}.thresholds", threshold, f"the level of views, {member.level}")
