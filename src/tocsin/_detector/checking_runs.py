"""What a file's run must be to the detector that is in it, and the streams of a bank to theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tocsin._calibration.normalise import Normaliser
from tocsin._compute.arrays import FARTHEST
from tocsin._compute.numpy_news import KEPT, MARKS, MOST_TIES, ROWS, TIES
from tocsin._detector.checking import MODERATE
from tocsin._detector.checking_views import views_state, views_streams
from tocsin._detector.declared import MOST
from tocsin._detector.schema import (
    Array,
    Each,
    Many,
    Maybe,
    Number,
    Of,
    Record,
    Rule,
    Whole,
    anything,
    must,
)
from tocsin._detector.sizes import Sizes
from tocsin._state.news import Ear
from tocsin._state.outcomes import Outcome
from tocsin._state.run import RECENT_WINDOWS
from tocsin._statistics.base import Channel, Live
from tocsin._statistics.custom import CustomLive
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.features import LARGEST as LARGEST_FEATURE
from tocsin._statistics.features import FeatureLive
from tocsin._statistics.mmd_bank import room_for
from tocsin._statistics.mmd_callable import CallableLive
from tocsin._statistics.mmd_gaussian import PADDING, GaussianLive
from tocsin._statistics.views import ViewsLive


def check_run(
    run: Any, at: str, sizes: Sizes, live: LiveFamily, ear: Ear | None, state_rule: Callable[[Live, Sizes, int], Rule]
) -> None:
    """Where a detector is in its stream. state_rule: what the windows of a statistic must be."""
    recent = RECENT_WINDOWS * sizes.widest
    time = run.get("time") if isinstance(run, dict) else None
    Whole()(time, f"{at}.time")
    assert isinstance(time, int)
    Record(
        {
            "windows": Each(tuple(state_rule(member, sizes, time) for member in live.members)),
            "recent": sizes.few(recent),
            "begun_with": Maybe(sizes.few(sizes.widest)),
            "number": Whole(),
            "time": Whole(),
            "alarm": Maybe(Of((Outcome,))),
            "left": Maybe(Each(tuple(left_rule(member, sizes) for member in live.members))),
            "heard": Maybe(heard_rule(ear, 1)),
        }
    )(run, at)
    young = sizes.warm and time < RECENT_WINDOWS * sizes.widest
    must(run["left"] is None or young, f"{at}.left", "something", "None, by the clock")
    remembered = min(run["time"], recent)
    must(len(run["recent"]) == remembered, f"{at}.recent", len(run["recent"]), f"{remembered} points, by the clock")
    alarm = run["alarm"]
    if alarm is not None:
        must(alarm.alarm and alarm.time <= run["time"], f"{at}.alarm", alarm, "one that has been")
        channels = live.channels + (ear.channels if ear else ())
        must(alarm.channel in channels, f"{at}.alarm.channel", alarm.channel, "a channel of the detector's")
        must(abs(alarm.statistic) <= MOST, f"{at}.alarm.statistic", alarm.statistic, "a number")


def state_rule(live: Live, sizes: Sizes, time: int) -> Rule:
    """What the windows of a live statistic must be, after so many observations; of a user's own, anything."""
    # One less than the widest window: the next point completes it, and some backends keep no more.
    entered = sizes.widest - 1 if sizes.warm else min(time, sizes.widest - 1)
    if isinstance(live, GaussianLive):
        return lambda value, at: _kernel_windows(value, at, sizes, len(live.multipliers), entered)
    if isinstance(live, FeatureLive):
        return lambda value, at: _feature_windows(value, at, sizes, len(live.centre), entered)
    if isinstance(live, CallableLive):
        return lambda value, at: _callable_windows(value, at, sizes)
    if isinstance(live, ViewsLive):
        return views_state(live, sizes)
    if isinstance(live, CustomLive):
        return lambda value, at: _custom_windows(value, at, sizes)
    return anything


def heard_rule(ear: Ear | None, streams: int) -> Rule:
    """What is kept of news of so many streams."""

    def rule(value: Any, at: str) -> None:
        must(ear is not None, at, "something", "None, since no news is heard")
        assert ear is not None
        Array("f8", (streams, len(ear.layout), KEPT), infinite=True)(value, at)
        must(value.flags.c_contiguous, at, "in columns", "in rows")
        for part, most in ((value[..., :MARKS], 2.0**ROWS - 1), (value[..., TIES], MOST_TIES)):
            whole = (part >= 0) & (part <= most) & (part == np.rint(part))
            must(bool(whole.all()), at, part, "of marks and ties, which are whole numbers")

    return rule


def left_rule(live: Live, sizes: Sizes) -> Rule:
    """What the reference of a young run may lack."""
    most = min(sizes.widest, sizes.compared - 1)
    if isinstance(live, GaussianLive):
        widths = len(live.multipliers)
        return lambda value, at: _left_of_kernels(value, at, sizes, widths, most)
    if isinstance(live, FeatureLive):
        return Record({"centre": Array("f8", (len(live.centre),), -LARGEST_FEATURE, LARGEST_FEATURE)})
    if isinstance(live, CallableLive):
        return lambda value, at: _left_of_a_function(value, at, sizes, most)
    return Record({})


def _left_of_kernels(value: Any, at: str, sizes: Sizes, widths: int, most: int) -> None:
    points = Array("f4", (sizes.columns, None), -FARTHEST, FARTHEST)
    moved = Array("f8", (widths,), -MODERATE, MODERATE)
    Record({"points": points, "count": Whole(0, most), "moved": moved})(value, at)
    _in_order({"points": value["points"]}, at)
    whole = room_for(value["count"])
    must(
        value["points"].shape[1] == whole, f"{at}.points", value["points"].shape[1], f"{whole} columns, by their count"
    )


def _left_of_a_function(value: Any, at: str, sizes: Sizes, most: int) -> None:
    Record({"points": sizes.few(most), "moved": Number()})(value, at)


def _kernel_windows(value: Any, at: str, sizes: Sizes, widths: int, entered: int) -> None:
    capacity = 4 * sizes.widest
    Record(
        {
            "buffer": Array("f4", (sizes.columns, capacity + PADDING), -FARTHEST, FARTHEST),
            "ahead": Array("f4", (widths, capacity), -MODERATE, MODERATE),
            "linear": Array("f8", (widths, capacity), -MODERATE, MODERATE),
            "position": Array("i8", (1,), entered, capacity),
        }
    )(value, at)
    _in_order(value, at)


def _feature_windows(value: Any, at: str, sizes: Sizes, features: int, entered: int) -> None:
    capacity, windows = 4 * sizes.widest, len(sizes.windows)
    limit = LARGEST_FEATURE * capacity
    Record(
        {
            "buffer": Array("f8", (capacity, features), -limit, limit),
            "linear": Array("f8", (capacity,)),
            "tails": Array("f8", (windows, sizes.widest + 1, features), -limit, limit),
            "fresh": Array("f8", (windows, features), -limit, limit),
            "age": Array("i8", (windows,), 0),
            "position": Array("i8", (1,), entered, capacity),
        }
    )(value, at)
    _in_order(value, at)
    # The sum of a window is made anew from as many rows before it as its age: they must have been there.
    oldest = np.minimum(np.array(sizes.windows) - 1, value["position"][0])
    must(bool((value["age"] <= oldest).all()), f"{at}.age", value["age"], "less than the window")


def _in_order(value: dict[str, Any], at: str) -> None:
    for name, array in value.items():
        must(array.flags.c_contiguous, f"{at}.{name}", "in columns", "in rows")


def _callable_windows(value: Any, at: str, sizes: Sizes) -> None:
    sums = Array("f8", (None,))
    Record({"recent": sizes.few(sizes.widest), "ahead": sums, "linear": sums})(value, at)
    lengths = {len(part) for part in value.values()}
    must(len(lengths) == 1, at, sorted(lengths), "of one length")


def _custom_windows(value: Any, at: str, sizes: Sizes) -> None:
    Record({"recent": sizes.few(sizes.widest), "own": Many(Whole(-1, sizes.compared - 1))})(value, at)
    must(len(value["own"]) == len(value["recent"]), f"{at}.own", len(value["own"]), "as many as there are points")


def check_channels(normaliser: Normaliser, channels: tuple[Channel, ...], at: str) -> None:
    """Every channel is measured."""
    count = len(normaliser.centre)
    must(count == len(channels), at, f"of {count} channels", f"of the {len(channels)} that there are")


def check_bank(bank: Any, at: str, sizes: Sizes, live: GaussianLive | ViewsLive, ear: Ear | None) -> None:
    """The windows and clocks of many streams."""
    streams = bank.get("streams") if isinstance(bank, dict) else None
    Whole(1)(streams, f"{at}.streams")
    assert isinstance(streams, int)
    clock = Array("i8", (streams,), 0, 2**62)
    Record(
        {
            "streams": anything,
            "ert": Maybe(Number(2.0)),
            "for_all": Maybe(Whole(1)),
            "time": clock,
            "run": clock,
            "rang": clock,
            "heard": Array("f8", (streams, 3), -MOST, MOST),
            "news": Maybe(heard_rule(ear, streams)),
            "windows": views_streams(live, sizes, streams)
            if isinstance(live, ViewsLive)
            else _kernel_streams(live, sizes, streams),
        }
    )(bank, at)
    must(bool((bank["rang"] <= bank["time"]).all()), f"{at}.rang", bank["rang"], "times that have been")
    spoke = bank["heard"][:, 2]
    count = len(live.channels) + (len(ear.channels) if ear else 0)
    channels = bool(((spoke >= 0) & (spoke < count) & (spoke == np.rint(spoke))).all())
    must(channels, f"{at}.heard", spoke, "numbers of channels")


def _kernel_streams(live: GaussianLive, sizes: Sizes, streams: int) -> Rule:
    d, w, widest = sizes.columns, len(live.multipliers), sizes.widest
    return Record(
        {
            "buffer": Array("f4", (streams, d, room_for(widest)), -FARTHEST, FARTHEST),
            "ahead": Array("f4", (streams, w, widest), -MODERATE, MODERATE),
            "linear": Array("f8", (streams, w, widest), -MODERATE, MODERATE),
            "position": Array("i8", (streams,), 0, widest - 1),
            "filled": Array("i8", (streams,), 0, widest),
        }
    )
