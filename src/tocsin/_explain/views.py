"""An alarm of views: in which columns it was heard, in which form, and how these have changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._data.intake import Tabular
from tocsin._data.tables.column import NUMERIC
from tocsin._explain.kernel import gaussian, median_width
from tocsin._explain.onset import Onset, find_onset
from tocsin._explain.words import Words
from tocsin._state import Fitted, Run
from tocsin._statistics.base import Channel
from tocsin._statistics.own_levels import long_enough
from tocsin._statistics.view_model import CHANGE, ERROR, LEVEL, MEAN, MOVING, SPREAD
from tocsin._statistics.view_streams import deviations
from tocsin._statistics.views import ViewsLive

OUTSIDE = 0.9
"""The part of the observations since a change that must be beyond all that the reference has, to say so."""

NOTHING = 1e-20
"""What columns come to at most that have not moved at all, by channels that are silent."""

FAR_OFF = 0.5
"""Of its own spread, how far a column must be from its own level for that to be told."""

STILL = 0.2
"""A spread that has fallen to this is told as standing still."""


@dataclass(frozen=True, eq=False)
class Hearing:
    """What views heard when they rang.

    recent: the observations up to the alarm, oldest first.
    learning: whether it rang before the stream had a level of its own, compared with all recordings.
    """

    fitted: Fitted[Calibration]
    live: ViewsLive
    run: Run
    channel: Channel
    recent: Float64Array
    learning: bool = False

    @property
    def order(self) -> list[str]:
        """Columns, the loudest first; without those that can only bring news, and brought none."""
        heard = [name for name, loud in self.loudness.items() if loud > NOTHING]
        return sorted(heard, key=lambda name: -self.loudness[name])

    @property
    def loudness(self) -> dict[str, float]:
        """Of each column, that of its loudest channel."""
        loudest: dict[str, float] = {}
        for channel, loud in zip(self.live.channels, self._loud, strict=True):
            name = str(channel.column)
            loudest[name] = max(loudest.get(name, 0.0), float(loud))
        return loudest

    def loudest_of(self, name: str) -> int:
        """The place of the channel that tells what a column did: its loudest.

        What is far away counts as its logarithm, and seems to change less. So a level that has moved goes before
        changes that have become small.
        """
        channels = self.live.channels
        own = [k for k, channel in enumerate(channels) if channel.column == name]
        loudest = max(own, key=lambda k: self._loud[k])
        if channels[loudest].statistic != SPREAD or self._off(loudest) > 0:
            return loudest
        means = [k for k in own if channels[k].statistic == MEAN and channels[k].view in (LEVEL, MOVING)]
        moved = max(means, key=lambda k: self._loud[k])
        return moved if self._loud[moved] > self.live.level else loudest

    @property
    def _loud(self) -> Float64Array:
        loud: Float64Array = self.run.windows[0]["loud"][0]
        return loud

    def onset(self, after: int, seed: int) -> Onset:
        """When the column that spoke began to be as it is, by its rows, or by their differences."""
        k = self.live.channels.index(self.channel)
        rows, before = self.series(self.recent, k), self._past_rows[:, self._column(k)][:, None]
        if self.channel.view in (CHANGE, ERROR):
            rows, before = np.diff(rows, axis=0, prepend=before[-1:]), np.diff(before, axis=0)
        # What never moved in the reference has no distances: any move is as far as others.
        kernel = gaussian(median_width(before, seed) if np.ptp(before) > 0 else 1.0)
        return find_onset(rows, before, kernel, self.channel.window, after=after, ordered=True, seed=seed)

    def series(self, points: Float64Array, k: int) -> Float64Array:
        """What a channel is of, in units of its spread; (n, 1)."""
        column = self._column(k)
        return self.live.rows(points, self._usual)[:, column : column + 1]

    def _column(self, k: int) -> int:
        return k % self.live.model.width

    @property
    def _past(self) -> Float64Array:
        reference: Float64Array = self.fitted.reference
        return reference

    @property
    def _usual(self) -> Float64Array | None:
        """The stream's own level and spread, if it was heard relative to them."""
        return None if self.learning else self.live.usual(self.run.windows[0], 0)

    @cached_property
    def _past_rows(self) -> Float64Array:
        """Of the reference; relative to levels of its recordings, if the stream was heard relative to its own."""
        live = self.live
        if live.own is None or self.learning:
            return live.rows(self._past)
        assert self.fitted.edges is not None
        found = list[Float64Array]()
        for start, stop in long_enough(self.fitted.edges, live.model.spans):
            rows = live.rows(self._past[start:stop])
            found.append(live.rows(self._past[start:stop], live.own.of(rows[: live.model.spans.own])))
        return np.concatenate(found)

    @cached_property
    def past(self) -> Float64Array:
        """The reference; its columns of numbers moved to the level and spread of the stream, if that has its own."""
        model, usual = self.live.model, self._usual
        if usual is None or model.axes.size:
            return self._past
        assert self.fitted.edges is not None
        found = np.concatenate([self._past[a:b] for a, b in long_enough(self.fitted.edges, model.spans)])
        here = self.live.points_at(self._past_rows, usual)
        numbers = [feature for feature in model.chosen.tolist() if self._is_number(feature)]
        found[:, numbers] = here[:, numbers]
        return found

    def _is_number(self, feature: int) -> bool:
        """Whether a number of a point is that of a column of numbers."""
        intake = self.fitted.intake
        if not isinstance(intake, Tabular):
            return True
        owner = int(intake.owners[feature])
        columns = intake.columns.columns
        return owner < len(columns) and columns[owner].kind in NUMERIC and feature not in intake.columns.gaps

    def own_level(self, k: int, since: Float64Array) -> str:
        """How far a column of numbers is from the stream's own level, in words; nothing where a channel does not tell
        that."""
        intake, usual, model, channel = self.fitted.intake, self._usual, self.live.model, self.live.channels[k]
        if usual is None or model.axes.size or channel.statistic != MEAN or not self._is_number(self._feature(k)):
            return ""
        place, feature = self._column(k), self._feature(k)
        level = model.centre[place] + model.spread[place] * usual[0, place]
        now = float(np.median(since[:, feature]))
        if abs(now - level) < FAR_OFF * model.spread[place] * usual[1, place]:
            return ""
        off = now - level
        if isinstance(intake, Tabular):
            column = intake.columns.columns[int(intake.owners[feature])]
            values = [column.value(np.array([place])) for place in (now, level)]
            off = float(values[0] or 0) - float(values[1] or 0)
        return f"{abs(off):.3g} {'above' if off > 0 else 'below'} its own level"

    def _feature(self, k: int) -> int:
        return int(self.live.model.chosen[self._column(k)])

    def how(self, k: int) -> str:
        """What a channel heard, in words."""
        channel, off = self.live.channels[k], self._off(k)
        of_level = channel.statistic != SPREAD and channel.view in (LEVEL, MOVING)
        if self._tells_gaps(k) and not of_level:
            return "missing at other times"
        sign = self._direction(k)[0 if off > 0 else 1]
        if channel.statistic == SPREAD:
            what = "changes" if channel.view == CHANGE else "prediction errors"
            times = math.exp(off)
            if times < STILL:
                return f"{what} nearly ceased"
            return f"{what} {_times(times)}"
        if channel.view == CHANGE:
            return f"{sign} than {channel.window} observations before"
        if channel.view == ERROR:
            return f"{sign} than its past foretells"
        if channel.view == LEVEL:
            return sign
        return f"{sign} than shortly before"

    def _direction(self, k: int) -> tuple[str, str]:
        """What it is called when a channel's mean rises or falls; texts have others, either way."""
        intake, model = self.fitted.intake, self.live.model
        if not isinstance(intake, Tabular) or model.axes.size:
            return "higher", "lower"
        feature = int(model.chosen[k % model.width])
        if self._tells_gaps(k):
            return "missing more often", "missing less often"
        owner = int(intake.owners[feature])
        if owner == len(intake.columns.columns):
            return "missing where nothing was missing", ""
        column, place = intake.columns.columns[owner], feature - int(np.flatnonzero(intake.owners == owner)[0])
        if column.kind == "category" and column.corners and place == len(column.values):
            return "values never seen before", ""
        if column.kind == "category" and column.corners and place < len(column.values):
            return f"more often {column.values[place]}", f"less often {column.values[place]}"
        return ("higher", "lower") if column.kind in NUMERIC else ("other values", "other values")

    def _tells_gaps(self, k: int) -> bool:
        """Whether a channel is of whether a column is missing."""
        intake, model = self.fitted.intake, self.live.model
        if not isinstance(intake, Tabular) or model.axes.size:
            return False
        return int(model.chosen[k % model.width]) in intake.columns.gaps

    def _off(self, k: int) -> float:
        """How far a channel is from its mean, in units of its view."""
        own = self.live.own
        return float(self._deviations[k] * (own.unit if own is not None and self.learning else self.live.unit)[k])

    @cached_property
    def _deviations(self) -> Float64Array:
        ear = self.live.ear_before if self.learning else self.live.ear
        return deviations(self.run.windows[0], 0, ear, self.live.model.spans)

    def beyond(self, words: list[Words], after: Float64Array, latest: Float64Array) -> list[str]:
        """Columns of numbers that have left all that the reference has.

        after: the observations since the change began.  latest: those that surely came after it, by which a column is
            judged that was heard: where that is soon, some of the others may have come before.
        """
        low, high, owners = self.past.min(0), self.past.max(0), self.fitted.intake.owners
        said = []
        for i, own in enumerate(words):
            places: Int64Array = np.flatnonzero(owners == i)[:1]
            heard = self.loudness.get(own.name, 0.0) > self.live.level
            rows = latest if heard else after
            if own.numeric and len(places) and len(rows):
                j = int(places[0])
                if ((rows[:, j] < low[j]) | (rows[:, j] > high[j])).mean() >= OUTSIDE:
                    said.append(own.name)
        return said


def _times(ratio: float) -> str:
    """How much larger or smaller.

    >>> _times(2.13), _times(0.6)
    ('2.1 times as large', '40% smaller')
    """
    return f"{ratio:.2g} times as large" if ratio >= 1 else f"{1 - ratio:.0%} smaller"
