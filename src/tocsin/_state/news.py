"""What a reference of independent rows never shows, heard beside all statistics: plain alarms under the same promise.

Of each column: gaps where the reference has none, or few; categories that it has not; numbers below or above all of
its own; the same value again and again. Each is counted over the last few rows, and rings where chance would bring as
much in a small part of the false alarms that are promised, over all columns together (`_statistics.chance`). So little
that no threshold moves for it: what simulation leaves open is several times as much. A row alone does not ring.

The statistic of such an alarm is the level that the others pass as rarely as chance brings this one, or something as
rare of the same sort in any column: so it is compared with the same threshold, and its rarity is read off the same
curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tocsin._calibration.result import Thresholds
from tocsin._common.caches import Caching
from tocsin._compute import Functions, on_host
from tocsin._compute.arrays import Array, BoolArray, Float64Array, Int64Array
from tocsin._compute.numpy_news import (
    CORNER,
    DIRECTION,
    KEPT,
    LAST,
    MARKS,
    NEVER,
    NEWLY,
    NUMBER,
    OTHER,
    ROWS,
    SLOTS,
    TIES,
    news_values,
)
from tocsin._data.contextual import Contextual
from tocsin._data.intake import Intake, Rows, Tabular
from tocsin._data.tables.column import NUMERIC
from tocsin._state.outcomes import Outcome, Outcomes
from tocsin._statistics.base import Channel
from tocsin._statistics.chance import log_chance, runs_of, standing, stopping
from tocsin._statistics.view_model import NEWS

SHARE = 0.01
"""Of the alarms that are promised, what news may bring by chance: a third of the error that is simulated to."""

SPANS = (8, ROWS)
"""Windows, in rows."""

FEWEST = 2
"""Rows of news that ring: one alone does not."""

MISSING, UNSEEN, BELOW, ABOVE, STOPPED = "missing", "unseen", "below all", "above all", "stopped"
"""What a channel of news is of, as its `view`."""


@dataclass(frozen=True)
class Found:
    """Of some rows: which slot rings with each (-1: none), and the log of its chance."""

    slot: Int64Array
    log_rate: Float64Array

    def __bool__(self) -> bool:
        return bool((self.slot >= 0).any())


@dataclass(frozen=True)
class Ringing:
    """A channel that rings: how many rows ago its news came (of a column that stopped, now and when it did), and the
    log of its chance."""

    channel: Channel
    ago: tuple[int, ...]
    log_rate: float


@dataclass(frozen=True, eq=False)
class Ear(Caching):
    """What a reference makes of rows to come; see `numpy_news.news_watch` for the tables.

    names: of the columns.  log_weight: of a chance, to that of anything as rare in any column.
    lasting: whether what is kept outlives alarms; see `of_views`.
    """

    names: tuple[str, ...]
    layout: Int64Array
    limits: Float64Array
    quiet: Int64Array
    rates: Float64Array
    first: Int64Array
    known: Float64Array
    stops: Float64Array
    alone: Float64Array
    log_weight: float
    limits_of_rule: Thresholds
    compute: Functions
    lasting: bool = False

    @classmethod
    def of(cls, intake: Intake, reference: Float64Array, limits: Thresholds, compute: Functions) -> Ear | None:
        """For a detector that rings as rarely as this; None where observations have no columns."""
        if not isinstance(intake, Rows | Tabular):
            return None
        layout, count = layout_of(intake), len(reference)
        values, missing = news_values(reference, layout)
        listened = sum(_slots(*column) for column in layout[:, 2:].tolist())
        # A guarantee makes alarms rarer than was asked for, and these with them.
        run_time = getattr(limits, "nominal", limits.ert)
        log_allowed = math.log(SHARE / (run_time * listened))
        kinds, quiet = [-1], np.zeros((len(layout), MARKS), np.int64)
        bounds = np.tile([np.inf, -np.inf], (len(layout), 1))
        known, stops, alone = list[Float64Array](), list[Float64Array](), np.tile([np.inf, 0.0], (len(layout), 1))
        for c, (form, gap) in enumerate(layout[:, 2:].tolist()):
            there = values[~missing[:, c], c]
            own, counts = np.unique(there, return_counts=True)
            seen = [-1 if gap == NEVER else count - len(there), -1, -1]
            if form == NUMBER and len(own):
                bounds[c], seen[1:] = (own[0], own[-1]), [0, 0]
                own, counts = own[counts > 1], counts[counts > 1]
            elif form in (CORNER, DIRECTION):
                seen[1] = int((counts == 1).sum())
            kinds += [m for m in seen if m not in kinds]
            quiet[c] = [kinds.index(m) for m in seen]
            if form == OTHER or isinstance(intake, Contextual):
                # Residuals that are alike come of contexts that are; the reference's, left out in turn, never are.
                own, counts = own[:0], counts[:0]
            else:
                alone[c] = stopping(np.ones(1, np.int64), count, log_allowed)[0]
            known.append(own)
            stops.append(stopping(counts, count, log_allowed))
        rates = np.array([[_rates(span, seen, count, log_allowed) for span in SPANS] for seen in kinds])
        first = np.cumsum([0, *map(len, known)])
        return cls(
            intake.names, layout, bounds, quiet, rates, first, np.concatenate(known), np.concatenate(stops), alone,
            math.log(listened / SHARE), limits, compute,
        )  # fmt: skip

    @classmethod
    def of_views(
        cls, intake: Intake, reference: Float64Array, edges: Int64Array, limits: Thresholds, compute: Functions
    ) -> Ear | None:
        """Beside views: which numbers stop, in a reference whose rows are not independent; its own runs of equal values
        say how long is too long. A run of the detector goes on with what the one before it has heard: a column rings
        once, and again whenever it has stood for twice as long. None where observations have no such columns.
        """
        if not isinstance(intake, Rows | Tabular) or isinstance(intake, Contextual):
            return None
        every = layout_of(intake)
        layout = every[every[:, 2] == NUMBER]
        names = tuple(name for name, form in zip(intake.names, every[:, 2].tolist(), strict=True) if form == NUMBER)
        columns = len(layout)
        if not columns:
            return None
        values, missing = news_values(reference, layout)
        log_allowed = math.log(SHARE / (getattr(limits, "nominal", limits.ert) * columns))
        alone = [
            standing(runs_of(values[:, c], ~missing[:, c], edges), len(values), log_allowed) for c in range(columns)
        ]
        nothing = np.full((1, len(SPANS), ROWS + 1), np.inf)
        return cls(
            names, layout, np.tile([-np.inf, np.inf], (columns, 1)), np.zeros((columns, MARKS), np.int64), nothing,
            np.zeros(columns + 1, np.int64), np.empty(0), np.empty((0, 2)), np.array(alone),
            math.log(columns / SHARE), limits, compute, lasting=True,
        )  # fmt: skip

    @cached_property
    def slots(self) -> Int64Array:
        """Those that can ring, in order: each is a channel."""
        rings = np.zeros((len(self.layout), SLOTS), dtype=bool)
        hears: BoolArray = np.asarray((self.rates < np.inf).any(2))
        for c in range(len(self.layout)):
            rings[c, : 2 * MARKS] = hears[self.quiet[c]].ravel()
            rings[c, 2 * MARKS] = np.isfinite(self._stops(c)).any()
        return np.flatnonzero(rings)

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """One for each."""
        return tuple(map(self._channel, self.slots.tolist()))

    def _channel(self, slot: int) -> Channel:
        c, place = divmod(slot, SLOTS)
        if place == 2 * MARKS:
            return Channel(NEWS, self._stop(c), view=STOPPED, column=self.names[c])
        is_number = self.layout[c, 2] == NUMBER
        view = (MISSING, BELOW if is_number else UNSEEN, ABOVE)[place // 2]
        return Channel(NEWS, SPANS[place % 2], view=view, column=self.names[c])

    def _stop(self, c: int) -> int:
        """Rows of the same value that ring, at least."""
        return int(self._stops(c).min()) + 1

    def _stops(self, c: int) -> Float64Array:
        """How often each value of a column may come again at once; the last is of those that are not known."""
        own: Float64Array = self.stops[self.first[c] : self.first[c + 1], 0]
        return np.append(own, self.alone[c, 0])

    def begun(self, streams: int = 1) -> Float64Array:
        """What is kept of streams that begin."""
        heard = np.zeros((streams, len(self.layout), KEPT))
        heard[:, :, LAST] = np.inf
        return heard

    def watch(self, heard: Float64Array, points: Array, owner: Int64Array | None = None) -> Found:
        """Let rows enter what is kept of their streams, which is changed. owner: the stream of each; by default 0."""
        rows = np.ascontiguousarray(on_host(points), np.float64)
        owner = np.zeros(len(rows), np.int64) if owner is None else owner
        return Found(*self.compute.news_watch(rows, owner, heard, *self._tables))

    @cached_property
    def _tables(self) -> tuple[Any, ...]:
        spans = np.array(SPANS, np.int64)
        return (
            self.layout, self.limits, spans, self.quiet, self.rates, self.first, self.known, self.stops, self.alone,
            self.lasting,
        )  # fmt: skip

    def ringing(self, heard: Float64Array) -> list[Ringing]:
        """Which channels ring with the latest row of a stream, of which this is kept, (C, KEPT); the rarest first."""
        found = []
        for slot, channel in zip(self.slots.tolist(), self.channels, strict=True):
            c, place = divmod(slot, SLOTS)
            if place == 2 * MARKS:
                ties = int(heard[c, TIES])
                own = slice(self.first[c], self.first[c + 1])
                known = np.flatnonzero(self.known[own] == heard[c, LAST])
                needed, rate = self.stops[own][known[0]] if len(known) else self.alone[c]
                if ties >= needed:
                    found.append(Ringing(channel, (0, ties), float(rate)))
                continue
            span, bits = SPANS[place % 2], int(heard[c, place // 2])
            ago = tuple(k for k in range(span) if bits >> k & 1)
            rate = self.rates[self.quiet[c, place // 2], place % 2, len(ago)]
            if bits & 1 and rate < np.inf:
                found.append(Ringing(channel, ago, float(rate)))
        return sorted(found, key=lambda each: each.log_rate)

    def told(self, outcomes: Outcomes, found: Found) -> Outcomes:
        """With the alarms that news rings, where nothing is louder and tests are made. Channels stand behind others."""
        rows = np.flatnonzero((found.slot >= 0) & np.isfinite(outcomes.statistic))
        if not len(rows):
            return outcomes
        pairs = zip(found.log_rate[rows].tolist(), outcomes.threshold[rows].tolist(), strict=True)
        loud = np.array([self.level(rate, threshold) for rate, threshold in pairs])
        louder = loud > outcomes.statistic[rows]
        rows, loud = rows[louder], loud[louder]
        alarm, statistic, loudest = outcomes.alarm.copy(), outcomes.statistic.copy(), outcomes.loudest.copy()
        alarm[rows], statistic[rows] = True, loud
        others = len(outcomes.channels) - len(self.slots)
        loudest[rows] = others + np.searchsorted(self.slots, found.slot[rows])
        return replace(outcomes, alarm=alarm, statistic=statistic, loudest=loudest)

    def told_one(self, outcome: Outcome, found: Found) -> Outcome:
        """The same for one."""
        slot = int(found.slot[0])
        if slot < 0 or math.isnan(outcome.statistic):
            return outcome
        loud = self.level(float(found.log_rate[0]), outcome.threshold)
        if loud <= outcome.statistic:
            return outcome
        curve = self.limits_of_rule.curve
        rarity = curve.rarity(loud) if curve else math.nan
        channel = self.channels[int(np.searchsorted(self.slots, slot))]
        return replace(outcome, alarm=True, statistic=loud, rarity=rarity, channel=channel)

    def level(self, log_rate: float, threshold: float) -> float:
        """Of news that rings."""
        curve, least = self.limits_of_rule.curve, math.nextafter(threshold, math.inf)
        return least if curve is None else max(curve.level(log_rate + self.log_weight), least)


def layout_of(intake: Rows | Tabular) -> Int64Array:
    """Where columns are in a point, and what they are there; see `news_watch`."""
    if isinstance(intake, Rows):
        return np.array([[j, 1, NUMBER, NEVER] for j in range(intake.width)], np.int64)
    rows, shares = [], intake.shares if isinstance(intake, Contextual) else frozenset()
    for i, column in enumerate(intake.columns.columns):
        start = intake.columns.features_of(i).start
        form = NUMBER if column.kind in NUMERIC and column.name not in shares else OTHER
        if column.kind == "category":
            form = CORNER if column.corners else DIRECTION
        rows.append([start, column.width, form, start + column.width if column.missing else NEWLY])
    return np.array(rows, np.int64)


def _slots(form: int, gap: int) -> int:
    """Channels that a column of this form may have."""
    return 2 * (gap != NEVER) + {NUMBER: 5, OTHER: 0}.get(form, 3)


def _rates(span: int, seen: int, count: int, log_allowed: float) -> Float64Array:
    """The log of the chance of so many rows of news within a window, infinite where that does not ring.

    seen: rows of the reference that were such news; less than 0 where there is nothing to hear.
    """
    rates = np.full(ROWS + 1, np.inf)
    for rows in range(FEWEST, span + 1) if seen >= 0 else ():
        rate = log_chance(span, rows, seen, count)
        if rate <= log_allowed:
            rates[rows] = rate
    return rates
