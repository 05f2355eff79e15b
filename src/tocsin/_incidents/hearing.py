"""How a detector goes on hearing a stream while an incident is open.

Most statistics just go on. Views would teach their running scales what the change is like, and no longer hear it: while
an incident is open they keep the scales that they had before the alarm. A level that returns is far from where it was
shortly before: what tells of that is silent, where the level itself tells enough. Afterwards scales are what the alarm
taught them, as in a detector alone, but no more than one taught that rings a little beyond the threshold: what was told
as an incident need not be exceeded to be told again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._compute.arrays import Float32Array, Float64Array
from tocsin._state import Fitted, Run
from tocsin._statistics.base import WindowState, snapshot
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.view_model import LEVEL, MOVING, SILENT, VIEWS
from tocsin._statistics.view_streams import Pace
from tocsin._statistics.views import ViewsLive

FOREVER, NEVER = 1e30, 1e9
"""Rows over which running scales forget, and a level, while an incident is open."""

MUTED = SILENT / 10
"""A unit in which nothing is heard, of a channel of a column that tells more than news."""

WANDERS = 2.0
"""A level wanders that is foreseen so many times worse than its distance from a moving baseline."""


def listening(fitted: Fitted[Calibration]) -> Fitted[Calibration]:
    """What hears a stream while an incident is open."""
    live = views_of(fitted)
    if live is None:
        return replace(fitted, resets=False)
    pace = Pace(FOREVER, 0.0, live.pace.cap, 0.0, live.pace.fade)
    patient = replace(live, level=NEVER, pace=pace, unit=_without_baselines(live))
    return replace(fitted, live=LiveFamily([patient]), resets=False)


def _without_baselines(live: ViewsLive) -> Float64Array:
    """Units of channels, none of which tells how far a level under control is from what it was shortly before.

    Of a column whose level wanders this is all that can be told.
    """
    places, units = len(live.model.spans.windows), live.unit.reshape(-1, live.model.width).copy()
    level, moving = (slice(VIEWS.index(view) * places, (VIEWS.index(view) + 1) * places) for view in (LEVEL, MOVING))
    sizes = live.model.sizes
    told = units[level] * sizes[VIEWS.index(LEVEL)] <= WANDERS * units[moving] * sizes[VIEWS.index(MOVING)]
    units[moving] = np.where(told, MUTED, units[moving])
    return units.ravel()


def opened(fitted: Fitted[Calibration], run: Run) -> Run:
    """The run that has just rung, to be heard on."""
    live = views_of(fitted)
    if live is None:
        return run
    state = dict(run.windows[0])
    if run.alarm is None or run.alarm.channel in live.channels:  # news beside views has taught them nothing
        state["scale"] = np.maximum(state["scale"] / _taught(live, state), 1.0).astype(np.float32)
    state["clock"] = state["clock"] * np.array([[0, 1]])
    return replace(run, windows=[state])


def lessons(fitted: Fitted[Calibration], rang: Run, run: Run) -> Float32Array | None:
    """Running scales as an alarm, and the rows after it up to a run, have taught them; None if there are none.

    rang: the run as it was when it rang.
    """
    live = views_of(fitted)
    if live is None:
        return None
    state, after = snapshot(rang.windows[0]), list(run.recent)[len(run.recent) - (run.time - rang.time) :]
    live.advance(state, np.array(after), 0, len(after))
    scale: Float32Array = state["scale"]
    return scale


def closed(fitted: Fitted[Calibration], run: Run, taught: Float32Array | None) -> Run:
    """The run, as its detector may go on from it."""
    live = views_of(fitted)
    if live is None or taught is None:
        return run
    state, most = dict(run.windows[0]), live.pace.attack * live.pace.cap**2
    state["scale"] = np.clip(taught, state["scale"], (state["scale"] * most).astype(np.float32))
    return replace(run, windows=[state])


def views_of(fitted: Fitted[Calibration]) -> ViewsLive | None:
    """Its views, if it watches by them."""
    live = fitted.live.members[0]
    return live if isinstance(live, ViewsLive) else None


def _taught(live: ViewsLive, state: WindowState) -> Float64Array:
    """By what factor the latest alarm raised each running scale."""
    return np.asarray(np.maximum(live.pace.attack * (state["loud"] / live.level) ** 2, 1.0))
