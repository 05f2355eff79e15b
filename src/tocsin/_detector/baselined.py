"""How views are fitted to recordings that have levels of their own: each is judged by the others.

The next stream is a new recording, so rehearsal goes over recordings, not over time: what a channel is off by in one of
them is its distance from the mean over all others, and what recordings differ by is known with as many degrees of
freedom as there are recordings. Worlds are fleets of as many recordings (`recordings`), each with a baseline of its
own, and streams are new recordings; so what baselines are off by is in the threshold.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tocsin._calibration.following import Following, Found, find
from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.recordings import Fleet
from tocsin._calibration.rehearsal import Evidence, Heard, Pool
from tocsin._calibration.result import Calibration, guaranteed
from tocsin._common.errors import InputError, Option
from tocsin._common.seeds import Purpose, generator
from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._data.intake import Learned
from tocsin._detector.rehearsing import (
    ALARMS,
    CHEAP,
    DEAR,
    FEWEST_WORLDS,
    HORIZON,
    LEAST_WORLDS,
    RehearsedFit,
    pace_of,
    squares_of,
)
from tocsin._execution.progress import progress_bar
from tocsin._execution.threads import Threads
from tocsin._state import Fitted
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.news import with_news
from tocsin._statistics.own_levels import OwnLevels, hard, log_spreads, long_enough, relative, soft, sounds
from tocsin._statistics.view_model import Model, Spans
from tocsin._statistics.view_streams import as_kept
from tocsin._statistics.views import ViewsLive

FEWEST_RECORDINGS = 4
"""That are long enough: what fewer differ by says next to nothing of what the next one will be."""

MOST_WORLDS, STREAMS, STARTS = 40, 8, 4
"""Worlds, at most; streams of each, at least; and further baselines of each, to see how loud streams are in these."""

SHORTEST_STREAM = 100
"""Rows of a world's stream after its baseline, at least."""

MOST_MORE = 20.0
"""Times as many recordings as there are, at most, that are told to halve the interval."""

LEAST_SHARE = 0.2
"""Of recordings, the smallest that is looked at; and the smallest that is not."""

OFTEN = 20
"""Streams of worlds that ring in their baselines, by which the loudness is found with which fewer do."""


@dataclass(frozen=True, eq=False)
class Made:
    """A world: what was heard of its reference, and the channels of its streams, before and after their baselines."""

    before: Heard
    after: Heard
    starts: Float32Array
    streams: Float32Array


@dataclass(frozen=True)
class BaselinedFit(RehearsedFit):
    """Everything that the fit of views with baselines is asked for, checked.

    baseline: rows from which a stream's own level is learnt.
    """

    baseline: int

    def run(self, learned: Learned, dependence: float | None, progress: bool | None) -> Fitted[Calibration]:
        """Fit to reference points in groups, each a recording in order."""
        began, functions = time.perf_counter(), self.functions.nearby
        points = learned.points
        edges = enough(learned.edges, Spans(np.array(self.windows), 1, 1, self.baseline))
        spans = Spans.of(self.windows, int(np.median([b - a for a, b in edges])), self.baseline)
        model, own, rows = self._learn(points, edges, spans)
        heard = [sounds(own, model, each, functions) for each in rows]
        before, after = self._judged([each.before for each in heard]), self._judged([each.after for each in heard])
        worlds = self._made_worlds(model, own, rows, progress)
        found_before = measured(before, [world.before for world in worlds])
        found_after = measured(after, [world.after for world in worlds])
        (unit_before, units_before), (unit, units) = found_before, found_after
        evidence = Evidence.of(after, unit, [world.after for world in worlds], units, spans.widest, self._share(rows))
        streams = [
            squares_of(stream, world.after.centre, np.exp(u))
            for world, u in zip(worlds, units, strict=True) for stream in world.streams
        ]  # fmt: skip
        each = len(worlds[0].streams)
        following = Following(
            streams, 0, spans.widest, self.ert, functions, Threads(self.workers), each, unpromised=spans.widest
        )
        with progress_bar("calibrating", progress):
            found = find(following, model.width)
        calibration = self._calibration(found, evidence, following, dependence, len(points))
        told = replace(
            evidence.told, recordings=len(rows), recordings_to_halve=to_halve(calibration, found, following, len(rows))
        )
        calibration = replace(calibration, rehearsal=told, seconds=time.perf_counter() - began, copies=len(worlds))
        if self.guarantee is not None:
            calibration = guaranteed(calibration, self.guarantee)
        louder = self._louder(found, worlds, units_before, spans.widest)
        own = replace(own, middle=before.centre, unit=np.exp(unit_before) / louder, scale=found.scale)
        live = ViewsLive(
            model, after.centre, np.exp(unit), calibration.threshold, pace_of(found, following),
            points[len(points) - spans.history - 1 :], found.scale, learned.intake.names, learned.intake.owners,
            functions, own,
        )  # fmt: skip
        live = with_news(live, points, learned.intake.told_by_moving, self.ert)
        if not self.interval:
            calibration = replace(calibration, errors=None)
        count = len(live.unit)
        return Fitted(
            LiveFamily([live]), Normaliser(np.zeros(count), np.ones(count), 0.0), calibration, self.windows,
            learned.intake, points, None, "cold", self.seed, self.functions, self.resets, learned.edges, learned.rows,
            None,
        )  # fmt: skip

    def _learn(
        self, points: Float64Array, edges: list[tuple[int, int]], spans: Spans
    ) -> tuple[Model, OwnLevels, list[Float64Array]]:
        """What columns are like within recordings, how recordings differ in spread, and their rows."""
        functions = self.functions.nearby
        model = Model.learn_recordings(points, edges, spans, functions)
        rows = [model.rows(points[a:b], functions) for a, b in edges]
        own = OwnLevels.learn(rows, spans.own, (4 * len(spans.windows) + 2) * model.width)
        relatives = [relative(each, own.of(as_kept(each[: spans.own])))[spans.own :] for each in rows]
        ends = np.cumsum([0, *(len(each) for each in relatives)])
        return model.foreseeing(np.concatenate(relatives), ends), own, rows

    def _share(self, rows: list[Float64Array]) -> float:
        """Of recordings, how many should ring, as far as so many can tell."""
        stretch = float(np.median([len(own) for own in rows])) - self.baseline
        return float(np.clip(-math.expm1(stretch * math.log1p(-1 / self.ert)), LEAST_SHARE, 1 - LEAST_SHARE))

    def _judged(self, channels: list[Float64Array]) -> Heard:
        """By those of the other recordings; windows that reach into what came before a recording, or before the end of
        its baseline, tell nothing."""
        return Heard.of_recordings([own[self.windows[-1] :] for own in channels], self.windows[-1])

    def _made_worlds(self, model: Model, own: OwnLevels, rows: list[Float64Array], progress: bool | None) -> list[Made]:
        lengths, m, d = np.array([len(each) for each in rows]), self.baseline, model.width
        stretch = int(np.clip(np.median(lengths) - m, SHORTEST_STREAM, max(HORIZON * self.ert, SHORTEST_STREAM)))
        n = int(lengths.sum())
        count = int(np.clip(CHEAP / (n * d), FEWEST_WORLDS, MOST_WORLDS))
        if self.paths is not None:
            count = max(self.paths, LEAST_WORLDS)
        wanted = math.ceil(ALARMS * self.ert / (stretch * count))
        each = max(min(wanted, int(DEAR / (count * (m + stretch) * d))), STREAMS)
        fleet = fleet_of(rows)
        worlds: list[Made] = []
        with progress_bar("rehearsing", progress) as report:
            make = partial(self._made_fleet, model, own, fleet, lengths, stretch, each)
            for made in Threads(self.workers).map(make, range(count)):
                worlds.append(made)
                report(len(worlds), count)
        return worlds

    def _made_fleet(
        self, model: Model, own: OwnLevels, fleet: Fleet, lengths: Int64Array, stretch: int, each: int, number: int
    ) -> Made:
        """A fleet of as many recordings, and streams that are further ones."""
        rng, functions = generator(self.seed, Purpose.WORLDS, number), self.functions.nearby
        kinds = rng.integers(0, len(lengths), len(lengths))
        others = np.setdiff1d(np.arange(len(lengths)), kinds)
        kinds = np.concatenate([kinds, rng.choice(others if len(others) else kinds, each + STARTS)])
        rows = np.concatenate([lengths, np.full(each, self.baseline + stretch), np.full(STARTS, self.baseline)])
        drawn = (fleet.draw(rng, int(k), int(n), functions) for k, n in zip(kinds, rows, strict=True))
        heard = [sounds(own, model, soft(level + spread * hard(about)), functions) for level, spread, about in drawn]
        reference, streams = heard[: len(lengths)], heard[len(lengths) :]
        return Made(
            self._judged([own.before for own in reference]),
            self._judged([own.after for own in reference]),
            np.array([own.before for own in streams], np.float32),
            np.array([own.after for own in streams[:each]], np.float32),
        )

    def _louder(self, found: Found, worlds: list[Made], units: list[Float64Array], widest: int) -> float:
        """By what factor streams must be louder in their baselines to ring there as often as promised."""
        loud = []
        for world, unit in zip(worlds, units, strict=True):
            off = (np.abs(world.starts - world.before.centre.astype(np.float32)) / np.exp(unit).astype(np.float32)).max(
                2
            )
            loud.append(off[:, widest:].max(1))
        tested = self.baseline - widest
        raised = found.level * (1 + found.early)
        return raised / seldom(np.concatenate(loud), -math.expm1(tested * math.log1p(-1 / self.ert)))


def fleet_of(recordings: list[Float64Array]) -> Fleet:
    """What recordings are like: from rows of each in units of the columns, soft."""
    apart = [hard(rows) for rows in recordings]
    levels = np.array([np.median(rows, axis=0) for rows in apart])
    logarithms = np.array([log_spreads(rows) for rows in apart])
    about = [soft((rows - level) / np.exp(own)) for rows, level, own in zip(apart, levels, logarithms, strict=True)]
    return Fleet.of(about, levels, logarithms)


def seldom(values: Float64Array, share: float) -> float:
    """What this share of values exceed, by an exponential tail of the largest where they are too few to tell."""
    ordered = np.sort(values)[::-1]
    outer = int(min(max(OFTEN, share * len(ordered)), len(ordered) - 1))
    start = float(ordered[outer])
    mean = float((ordered[:outer] - start).mean())
    return float(start + mean * max(math.log(outer / (share * len(ordered))), 0.0))


def windows_with(baseline: int, windows: tuple[int, ...], *, chosen: bool) -> tuple[int, ...]:
    """Windows that are shorter than a baseline; those that were chosen must be."""
    if not chosen:
        windows = tuple(w for w in windows if w <= baseline // 2) or (baseline // 2,)
    if windows[-1] >= baseline:
        raise InputError(
            Option("baseline", baseline),
            f" is no longer than the window of {windows[-1]}, which is to be filled from it. Give a longer baseline, "
            "or a shorter window.",
        )
    return windows


def enough(edges: Int64Array, spans: Spans) -> list[tuple[int, int]]:
    """Beginnings and ends of recordings from which anything can be learnt, if these are enough."""
    found, lengths = long_enough(edges, spans), np.diff(edges)
    if len(found) < FEWEST_RECORDINGS:
        raise InputError(
            Option("baseline", spans.own),
            f": of the {len(lengths):,} recordings that ",
            Option("groups"),
            f" tells apart, {len(found):,} have more than {spans.own + spans.widest:,} rows (the baseline and the "
            f"longest window); the longest has {int(lengths.max()):,}. At least {FEWEST_RECORDINGS} are needed, to "
            "learn what recordings differ by. Give a shorter baseline, or a shorter window, or more recordings.",
        )
    return found


def to_halve(calibration: Calibration, found: Found, following: Following, count: int) -> int | None:
    """How many recordings would halve the interval: what references differ by falls with their number, not the rest."""
    errors = calibration.errors
    assert errors is not None
    own = (found.leverage * following.difference) ** 2
    least = errors.total**2 / 4 - (errors.total**2 - own)
    return math.ceil(count * own / least) if least * MOST_MORE > own else None


def measured(own: Heard, worlds: list[Heard]) -> tuple[Float64Array, list[Float64Array]]:
    """Logarithms of units, drawn towards those of worlds; and those of the worlds."""
    pool = Pool.of(np.array([world.logarithms for world in worlds]))
    return pool.shrunk(own.logarithms), [pool.shrunk(world.logarithms) for world in worlds]
