"""Trials where rows depend on those before them: stretches of the reference itself, each judged as if it came next.

A change begins in a row of the reference. The means that channels are measured from are those of the rows up to some
time before it, at random, as in rehearsal: there the reference might have ended, and the stream begun. Running scales
have followed the rows since then, and some before; windows hold the latest. The first rows of a stream are judged more
strictly: the change comes at some time in as many rows as running scales remember, or later. So the detector is as it
would be in use, but for its units and its threshold, which rest on all of the reference.

Until the first alarm no channel knows of the others: of a change in one column only the channels of that column are
followed anew, and those of all others are what they were without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from tocsin._common.seeds import Purpose, generator
from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array
from tocsin._power.changes import MEAN_OF, Cells, Change, Scene, together
from tocsin._state.news import Ear
from tocsin._statistics.base import WindowState, snapshot
from tocsin._statistics.own_levels import OwnLevels
from tocsin._statistics.view_model import Model
from tocsin._statistics.view_streams import Loudest, Places, summed, watch
from tocsin._statistics.views import ViewsLive

START = 0.4
"""The part of the reference that the first trial is judged by, as in rehearsal."""

SETTLING = 2.0
"""Rows that running scales have followed, in their memories."""

SHORTEST = 3
"""Rows that a reference must have room for after an onset."""


@dataclass(frozen=True, eq=False)
class Stretches:
    """Where trials can begin in a reference, and how the detector is there.

    points, edges: the reference, and where its groups begin.  wanted: rows of a trial, if there are as many.
    ear: what hears beside the views which columns stop, if anything does.
    """

    live: ViewsLive
    points: Float64Array
    edges: Int64Array
    cells: Cells
    seed: int
    wanted: int
    ear: Ear | None = None
    ordered = True

    @cached_property
    def room(self) -> Int64Array:
        """Of rows that have enough before them, how many follow in their group; 0 of others."""
        room = np.zeros(len(self.points), np.int64)
        history = self.live.model.spans.history + 1
        for start, stop in pairwise(self.edges.tolist()):
            room[start + history : stop] = np.arange(stop - start - history, 0, -1)
        judged = np.flatnonzero(self._judged_by < START * len(self._sums))
        room[judged] = 0
        return room

    @property
    def horizon(self) -> int:
        """Rows of a trial; 0 if the reference has no room for any."""
        most = int(self.room.max(initial=0))
        return min(self.wanted, max(most // 2, SHORTEST)) if most >= SHORTEST else 0

    @cached_property
    def _sums(self) -> Float64Array:
        """Running totals of the channels of all rows that have any."""
        model, compute = self.live.model, self.live.compute
        rows = model.rows(self.points, compute)
        channels = [model.channels(rows[start:stop], compute) for start, stop in pairwise(self.edges)]
        return np.cumsum(np.concatenate(channels), axis=0)

    @cached_property
    def _judged_by(self) -> Int64Array:
        """Of every row, how many before it have channels."""
        has = np.zeros(len(self.points), np.int64)
        for start, stop in pairwise(self.edges.tolist()):
            has[start + self.live.model.spans.history : stop] = 1
        return np.cumsum(has) - has

    def onsets(self, trials: int) -> Int64Array:
        """Rows with which changes begin, spread over the reference: one in each part of it, at random."""
        places = np.flatnonzero(self.room >= self.horizon)
        parts = (np.arange(trials) + generator(self.seed, Purpose.POWER).random(trials)) / trials
        return places[(parts * len(places)).astype(np.int64)]

    def delays(self, onset: int, trial: int, changes: Sequence[Change]) -> Float64Array:
        """Rows from the onset to the first alarm, that included: without a change, and with each; inf if none."""
        live, state = self.state(onset, trial)
        quiet, width = self.points[onset : onset + self.horizon], live.model.width
        values = live.advance(snapshot(state), quiet, 0, len(quiet))
        heard = Heard(live, state, values.reshape(len(quiet), -1, width).max(1))
        scene = self._scene(onset, trial)
        found = [np.array([first(heard.quiet.max(1), live.level)])]
        for own in together(changes, quiet.size):
            points = self.cells.changed(own, scene)
            by_views = heard.delays(self._watched(own[0]), points, len(own))
            found.append(np.minimum(by_views, self._stops(onset, points, len(own))))
        return np.concatenate(found)

    def _stops(self, onset: int, points: Float64Array, count: int) -> Float64Array:
        """Rows until a column rings that stops, of so many streams that follow from there; inf if none does."""
        if self.ear is None:
            return np.full(count, np.inf)
        kept, owner = self.ear.begun(count), np.arange(count)
        self.ear.watch(kept, np.repeat(self.points[onset - 1 : onset], count, axis=0), owner)
        rows = len(points) // count
        rings = self.ear.watch(kept, points, np.repeat(owner, rows)).slot.reshape(count, rows) >= 0
        return np.where(rings.any(1), rings.argmax(1) + 1.0, np.inf)

    def _watched(self, change: Change) -> tuple[int, ...] | None:
        """The places of what a change touches among what is watched; None if that may be anything."""
        touched, model = self.cells.features(change), self.live.model
        if touched is None or model.axes.size:
            return None
        places = np.searchsorted(model.chosen, touched)
        known = places < len(model.chosen)
        places, touched = places[known], touched[known]
        return tuple(places[model.chosen[places] == touched].tolist())

    def state(self, onset: int, trial: int) -> tuple[ViewsLive, WindowState]:
        """The detector, and its windows, after the rows before this one."""
        live, kept = self.live, Places.of(self.live.model.spans).coarse
        group = self.group_of(onset)
        begun = max(group, onset - kept - int(SETTLING * live.pace.memory))
        lead_from = min(begun + kept, onset)
        count, least = int(self._judged_by[onset]), int(START * len(self._sums))
        ended, begun_ago = generator(self.seed, Purpose.POWER, 1 + trial, 1).random(2)
        since = int(ended * max(count - max(least, 1), 0))
        count -= since
        clock = since + int(begun_ago * live.pace.memory)
        live = replace(live, middle=self._sums[count - 1] / count, past=self.points[begun:lead_from])
        state = live.begin(0)
        lead = self.points[lead_from:onset]
        state["clock"][0] = 0, max(clock - len(lead), 0)
        live.advance(state, lead, 0, len(lead))
        state["clock"][0, 1] = clock
        return live, state

    def _scene(self, onset: int, trial: int) -> Scene:
        rng, horizon = generator(self.seed, Purpose.POWER, 1 + trial), self.horizon
        group = self.group_of(onset)
        return Scene(
            before=self.points[max(group, onset - MEAN_OF) : onset],
            after=self.points[onset : onset + horizon],
            elsewhere=self.elsewhere(onset, rng),
            dice=rng.random(horizon),
            signs=rng.choice([-1.0, 1.0], self.points.shape[1]),
            ordered=True,
        )

    def group_of(self, row: int) -> int:
        """Where the group of a row begins."""
        return int(self.edges[np.searchsorted(self.edges, row, side="right") - 1])

    def elsewhere(self, onset: int, rng: np.random.Generator) -> Float64Array:
        """As many rows of one group from another time, apart from these if that can be."""
        horizon, starts = self.horizon, np.arange(len(self.points))
        ends = np.concatenate([np.full(stop - start, stop) for start, stop in pairwise(self.edges.tolist())])
        possible = starts[starts + horizon <= ends]
        apart = possible[np.abs(possible - onset) >= horizon]
        start = int(rng.choice(apart if len(apart) else possible))
        return self.points[start : start + horizon]


class Heard:
    """A detector at the onset of a trial, and how loud each column is from there on when nothing changes.

    quiet: (rows, columns).
    """

    def __init__(self, live: ViewsLive, state: WindowState, quiet: Float64Array) -> None:
        self.live, self.state, self.quiet = live, state, quiet
        self._parts: dict[tuple[int, ...], tuple[ViewsLive, WindowState, float | None]] = {}

    def delays(self, own: tuple[int, ...] | None, points: Float64Array, count: int) -> Float64Array:
        """Rows to the first alarm, of so many streams that follow from there, one after the other in `points`.

        own: columns that may differ from what they were; None for all.
        """
        if own is None:
            return _alarms(self.live, self.state, points, count)
        if own not in self._parts:
            self._parts[own] = self._part(own)
        live, state, others = self._parts[own]
        if others is None:
            return _alarms(self.live, self.state, points, count)
        if not own:
            return np.full(count, others)
        return np.minimum(others, _alarms(live, state, points, count, others))

    def _part(self, own: tuple[int, ...]) -> tuple[ViewsLive, WindowState, float | None]:
        """These columns alone, and when the others ring; None if that cannot be told.

        Where these would ring first without the change, all are silent after it, and the others have not been heard.
        """
        level = self.live.level
        others = first(np.delete(self.quiet, own, axis=1).max(1, initial=0.0), level)
        told = None if first(self.quiet.max(1), level) < others else others
        places = np.array(own, np.int64)
        part = some_columns(self.live, places)
        return part, some_state(self.state, places, self.live.model.width, part), told


def _alarms(
    live: ViewsLive, state: WindowState, points: Float64Array, count: int, most: float = np.inf
) -> Float64Array:
    """Rows to the first alarm of each of so many streams, each no further than `most` rows."""
    rows = len(points) // count
    first = rows * np.arange(count)
    last = first + int(min(rows, most))
    states: WindowState = {name: np.repeat(part, count, axis=0) for name, part in state.items()}
    found = Loudest.of(len(points))
    watch(
        live.compute, live.ear, states, np.ascontiguousarray(points), np.arange(count), first, last, slice(0, count),
        found, halt=True,
    )  # fmt: skip
    return np.where(found.best[last - 1] > live.level, last - first, np.inf)


def first(loudest: Float64Array, level: float) -> float:
    """The first that rings, counted from 1; inf if none does. Silent rows are NaN."""
    rang: BoolArray = loudest > level
    return float(rang.argmax()) + 1 if rang.any() else np.inf


def some_columns(live: ViewsLive, own: Int64Array) -> ViewsLive:
    """The same, hearing some of its columns alone."""
    model, channels = live.model, _channels(len(live.unit), live.model.width, own)
    part = Model(
        model.spans, model.centre[own], model.spread[own], model.chosen[own], model.axes,
        np.ascontiguousarray(model.lags[:, own]), np.ascontiguousarray(model.sizes[:, own]),
    )  # fmt: skip
    levels = live.own
    if levels is not None:
        levels = OwnLevels(
            levels.share[own], levels.typical[own], levels.middle[channels], levels.unit[channels],
            levels.scale[channels],
        )  # fmt: skip
    return replace(
        live, model=part, middle=live.middle[channels], unit=live.unit[channels], scale=live.scale[channels], own=levels
    )


def some_state(state: WindowState, own: Int64Array, width: int, part: ViewsLive) -> WindowState:
    """Its windows, which `part` hears."""
    channels = _channels(state["scale"].shape[1], width, own)
    kept: WindowState = {
        "rows": np.ascontiguousarray(state["rows"][:, :, own]),
        "rests": np.ascontiguousarray(state["rests"][:, :, own]),
        "loud": np.ascontiguousarray(state["loud"][:, channels]),
        "scale": np.ascontiguousarray(state["scale"][:, channels]),
        "clock": state["clock"].copy(),
        "position": state["position"].copy(),
        **({"own": np.ascontiguousarray(state["own"][:, :, own])} if "own" in state else {}),
    }
    return kept | {"sums": summed(kept, part.ear, part.model.spans, part.compute)}


def _channels(count: int, width: int, own: Int64Array) -> Int64Array:
    """Which of so many, column by column within each kind, belong to these columns."""
    return (np.arange(0, count, width)[:, None] + own).ravel()
