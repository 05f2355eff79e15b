"""What files must hold of views: what they learnt of the reference, and where they are in their stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._compute.numpy_view_streams import LOUDEST
from tocsin._detector.schema import Array, Each, Many, Number, Record, Rule, Whole, must, text
from tocsin._detector.sizes import Sizes
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.news import MOST_NEWS
from tocsin._statistics.view_model import LAGS, MOST_COLUMNS
from tocsin._statistics.view_streams import COARSEST, Places, summed
from tocsin._statistics.views import ViewsLive

FAR, SMALLEST = 1e100, 5e-324
"""Directions of columns, and the least of their spreads: numbers in their units are cut off."""

MANY, LITTLE = 1e30, 1e-30
"""What else is learnt, and what it is divided by: products of these, and their squares, are numbers."""

SCALE = 1e290
"""What running scales can come to, with all that, where a stream begins."""

LOGARITHM, LEVELS, NARROWEST = 200.0, 1e100, 1e-100
"""Of spreads of streams of their own; their levels and spreads, at most; and their spreads, at least."""

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
            "baseline": Whole(sizes.widest + 1, sizes.points),
            "own": Record(
                {
                    "share": Array("f8", (width,), 0.0, 1.0),
                    "typical": Array("f8", (width,), -LOGARITHM, LOGARITHM),
                    "middle": Array("f8", (channels,), -MANY, MANY),
                    "unit": Array("f8", (channels,), LITTLE, MANY),
                    "scale": Array("f8", (channels,), 1.0, SCALE),
                }
            ),
        },
        frozenset({"baseline", "own"}),
    )(value, at)
    must(
        ("own" in value) == ("baseline" in value),
        at,
        sorted(value),
        "given a baseline and what is learnt of it, or none",
    )
    must(value["base"] + value["gap"] > LAGS, f"{at}.base", value["base"], "as many rows as foresee the next")


def views_state(live: ViewsLive, sizes: Sizes) -> Rule:
    """Of the stream that a detector watches: what follows from its rows is there too."""
    kept, spans = views_streams(live, sizes, 1), live.model.spans

    def rule(value: Any, at: str) -> None:
        must(isinstance(value, dict) and "sums" in value, at, value, "with sums of windows")
        kept({name: part for name, part in value.items() if name != "sums"}, at)
        expected = summed(value, live.ear, spans, live.compute)
        Array("f8", expected.shape)(value["sums"], f"{at}.sums")
        must(np.array_equal(value["sums"], expected), f"{at}.sums", value["sums"], "those of the rows")

    return rule


def views_streams(live: ViewsLive, sizes: Sizes, streams: int) -> Rule:
    """Of so many streams."""
    places, width, channels = Places.of(live.model.spans), live.model.width, len(live.unit)
    own = live.model.spans.own
    levels: dict[str, Rule] = {"own": Array("f8", (streams, 2, width), -LEVELS, LEVELS)} if own else {}
    arrays = Record(
        levels
        | {
            "rows": Array("i2", (streams, places.coarse, width), -COARSEST, COARSEST),
            "rests": Array("i1", (streams, places.whole, width)),
            "position": Array("i8", (streams,), places.coarse, LATEST),
            "scale": Array("f4", (streams, channels), 1.0, LOUDEST),
            "clock": Array("i8", (streams, 2), -max(sizes.widest, own), LATEST),
            "loud": Array("f8", (streams, channels), 0.0, LOUDEST),
        }
    )

    def rule(value: Any, at: str) -> None:
        arrays(value, at)
        for name, part in value.items():
            must(part.flags.c_contiguous, f"{at}.{name}", "in columns", "in rows")
        clock = value["clock"]
        right = bool((np.abs(clock[:, 0]) <= sizes.widest).all() and (clock[:, 1] >= -own).all())
        must(right, f"{at}.clock", clock, f"at most {sizes.widest} silent rows, and those so far")
        if own:
            spread, young = value["own"][:, 1], clock[:, 1] < 0
            must(bool((spread >= NARROWEST).all()), f"{at}.own", spread.min(), "spreads of some size")
            new = (value["own"][young] == live.ear.usual).all()
            must(bool(new), f"{at}.own", value["own"][young], "none, while baselines are not whole")

    return rule


def check_views(live: LiveFamily, saved: dict[str, Any], at: str) -> None:
    """They alone are rehearsed, and measured as they are; they ring at the threshold, and know the columns, that are
    kept beside them."""
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
            must(saved.get("edges") is not None, f"{at}.edges", None, "there: views are of groups in order")
            own = saved["normaliser"]
            plain = not own.centre.any() and (own.scale == 1).all() and (own.tie, own.grid) == (0, 0)
            must(bool(plain), f"{at}.normaliser", own, "one that changes nothing")
            known = member.columns == intake.names and np.array_equal(member.owners, intake.owners)
            must(known, f"{at}.intake", intake.names, f"of the columns of views, {member.columns}")
