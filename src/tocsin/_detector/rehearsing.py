"""How views are fitted: by rehearsal on the reference, and on worlds made of it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from tocsin._calibration.following import ATTACK, CAP, FADE, Following, Found, find, memory_of
from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.rehearsal import Evidence, Heard, Pool
from tocsin._calibration.result import Calibration, guaranteed
from tocsin._calibration.tail import RateCurve
from tocsin._calibration.uncertainty import Errors
from tocsin._calibration.wandering import unlikeness, wandering
from tocsin._calibration.worlds import World
from tocsin._common.errors import InputError
from tocsin._common.seeds import Purpose, generator
from tocsin._compute import Functions
from tocsin._compute.arrays import Float32Array, Float64Array
from tocsin._data.contextual import Contextual
from tocsin._data.intake import Intake, Learned, Rows, Tabular
from tocsin._execution.progress import progress_bar
from tocsin._execution.threads import Threads
from tocsin._state import Fitted
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.news import with_news
from tocsin._statistics.view_model import Model, Spans
from tocsin._statistics.view_streams import Pace, settling
from tocsin._statistics.views import ViewsLive

HORIZON, SHORTEST, LONGEST = 4.0, 1000, 4000
"""Rows of a world's stream, in expected run times; at least and at most."""

FEWEST_WORLDS, MOST_WORLDS, ALARMS = 12, 64, 60.0
"""Worlds, and the alarms that they should give."""

CHEAP, DEAR, LEAST_WORLDS = 4e6, 1.2e7, 6
"""Numbers of worlds up to which there are more of them than that takes, and beyond which there are fewer."""

LAW = 0.04
"""Standard error of the logarithm of a threshold for what worlds do not show: their own law is an estimate."""

FEWEST_ROWS = 8
"""Of channels, from which anything can be learnt."""

WIDEST, SHORTER = 25, 5
"""Default windows, for references that have ten times as many rows as the first."""


def default_windows(count: int, ert: float) -> tuple[int, ...]:
    """For a reference of so many rows. A run is silent until the widest is full: that is a small part of it."""
    widest = int(np.clip(min(count // 10, ert / 4), SHORTER, WIDEST))
    return min(SHORTER, widest // 2), widest


@dataclass(frozen=True, eq=False)
class Made:
    """A world: what was heard of its reference, how unlike neighbours its stretches are, and its channels from the last
    of those rows on."""

    heard: Heard
    unlike: Float64Array
    channels: Float32Array


@dataclass(frozen=True)
class RehearsedFit:
    """Everything that the fit of views is asked for, checked."""

    ert: float
    windows: tuple[int, ...]
    resets: bool
    guarantee: float | None
    interval: bool
    paths: int | None
    seed: int
    functions: Functions
    workers: int | None

    def run(self, learned: Learned, dependence: float | None, progress: bool | None) -> Fitted[Calibration]:
        """Fit to reference points in order."""
        began, functions = time.perf_counter(), self.functions.nearby
        points, edges = learned.points, learned.edges
        model = Model.learn(points, edges, self._spans(edges), functions)
        rows, widest = model.rows(points, functions), model.spans.widest
        channels = np.concatenate([model.channels(rows[a:b], functions) for a, b in pairwise(edges)])
        own = Heard.of(channels, widest)
        past = settling(len(channels), memory_of(self.ert))
        like = World.of(rows, edges)
        worlds = self._worlds(model, like, rows.shape, past, progress)
        pool = Pool.of(np.array([world.heard.logarithms for world in worlds]))
        unit, units = pool.shrunk(own.logarithms), [pool.shrunk(world.heard.logarithms) for world in worlds]
        evidence = Evidence.of(own, unit, [world.heard for world in worlds], units, widest)
        streams = [squares_of(w.channels, w.heard.centre, np.exp(u)) for w, u in zip(worlds, units, strict=True)]
        unlike = np.array([world.unlike for world in worlds])
        moved = wandering(rows, unlike, like.memory, generator(self.seed, Purpose.WANDERING))
        del worlds
        following = Following(streams, past, widest, self.ert, functions, Threads(self.workers))
        with progress_bar("calibrating", progress):
            found = find(following, model.width)
        calibration = self._calibration(found, evidence, following, dependence, len(points))
        own_names = model.column_names(learned.intake.names, learned.intake.owners)
        told = replace(evidence.told, wandering=tuple(dict.fromkeys(own_names[column] for column in moved)))
        calibration = replace(calibration, rehearsal=told, seconds=time.perf_counter() - began)
        if self.guarantee is not None:
            calibration = guaranteed(calibration, self.guarantee)
        live = self._live(learned, model, own, np.exp(unit), calibration.threshold, found, following, channels[-past:])
        if not self.interval:
            calibration = replace(calibration, errors=None)
        count = len(live.unit)
        normaliser = Normaliser(np.zeros(count), np.ones(count), 0.0)
        return Fitted(
            LiveFamily([live]), normaliser, calibration, self.windows, learned.intake, points, None, "cold", self.seed,
            self.functions, self.resets, edges, learned.rows, None, hears=hears(learned.intake),
        )  # fmt: skip

    def _spans(self, edges: np.ndarray) -> Spans:
        """For groups that are long enough to have channels, most of them."""
        lengths = np.diff(edges)
        spans = Spans.of(self.windows, int(lengths.max()))
        rows = int(np.maximum(lengths - spans.history, 0).sum())
        if rows < FEWEST_ROWS:
            raise InputError(
                f"The reference has {int(edges[-1]):,} rows, its longest group {int(lengths.max()):,}: windows of "
                f"{spans.widest} and what comes before them leave {rows} to learn from, and {FEWEST_ROWS} are needed. "
                "Collect more observations, or give a shorter window."
            )
        return spans

    def _worlds(
        self, model: Model, world: World, shape: tuple[int, ...], past: int, progress: bool | None
    ) -> list[Made]:
        n, d = shape
        length = int(np.clip(HORIZON * self.ert, SHORTEST, LONGEST))
        each = (length + n) * d
        count = int(np.clip(CHEAP / each, np.clip(ALARMS * self.ert / length, FEWEST_WORLDS, MOST_WORLDS), MOST_WORLDS))
        count = max(min(count, int(DEAR / each)), LEAST_WORLDS) if self.paths is None else max(self.paths, LEAST_WORLDS)
        worlds: list[Made] = []
        with progress_bar("rehearsing", progress) as report:
            make = partial(self._made, model, world, n, length, past)
            for made in Threads(self.workers).map(make, range(count)):
                worlds.append(made)
                report(len(worlds), count)
        return worlds

    def _made(self, model: Model, world: World, n: int, length: int, past: int, number: int) -> Made:
        """A reference of n rows, and a stream after it."""
        functions = self.functions.nearby
        rows = world.draw(generator(self.seed, Purpose.WORLDS, number), n + length, functions)
        channels, born = model.channels(rows, functions), n - model.spans.history
        heard = Heard.of(channels[:born], model.spans.widest)
        return Made(heard, unlikeness(rows[:n]), channels[max(born - past, 0) :].astype(np.float32))

    def _calibration(
        self, found: Found, evidence: Evidence, following: Following, dependence: float | None, count: int
    ) -> Calibration:
        higher, curve, streams = math.exp(evidence.raised), found.curve, len(following.squares)
        tail = replace(curve.tail, start=curve.tail.start * higher, scale=curve.tail.scale * higher)
        curve = RateCurve(curve.values * higher, curve.log_rates, tail)
        level = found.level * higher
        alarms = max(found.alarms, 1)
        errors = Errors(
            simulation=alarms**-0.5,
            law=found.leverage * math.hypot(following.difference, LAW),
            reference=found.leverage * evidence.unforeseen,
            tail=curve.tail.error(level),
        )
        return Calibration(
            self.ert, np.array([level]), 0.0, mode="steady", guarantee=None, nominal=self.ert,
            simulated=following.rows * streams / following.target, centre=0.0, errors=errors, paths=streams,
            tests=following.rows, alarms=float(alarms), references="worlds", copies=streams, compared=count,
            block=1, guard=0, dependence=dependence, curve=curve,
        )  # fmt: skip

    def _live(
        self,
        learned: Learned,
        model: Model,
        own: Heard,
        unit: Float64Array,
        level: float,
        found: Found,
        following: Following,
        last: Float64Array,
    ) -> ViewsLive:
        """At the end of the reference; last: channels of its last rows."""
        pace, functions = pace_of(found, following), following.compute
        scale = found.scale.copy()
        squares = squares_of(last.astype(np.float32), own.centre, unit)
        functions.view_follow(
            squares, len(last), scale, level, pace.memory, pace.attack, pace.cap, following.silent, pace.early,
            pace.fade,
        )  # fmt: skip
        past = learned.points[len(learned.points) - model.spans.history - 1 :]
        live = ViewsLive(
            model.for_new_rows(learned.points, functions), own.centre, unit, level, pace, past, scale,
            learned.intake.names, learned.intake.owners, self.functions,
        )  # fmt: skip
        return with_news(live, learned.points, learned.intake.told_by_moving, self.ert)


def hears(intake: Intake) -> bool:
    """Whether columns may be numbers that stop: residuals of a context are alike where contexts are."""
    return isinstance(intake, Rows | Tabular) and not isinstance(intake, Contextual)


def pace_of(found: Found, following: Following) -> Pace:
    """How running scales follow, where they were found to."""
    return Pace(following.memory, ATTACK, CAP, found.early, FADE * following.memory)


def squares_of(channels: Float32Array, centre: Float64Array, unit: Float64Array) -> Float32Array:
    """Of how far channels (rows, channels) are off, in their units."""
    found = channels - centre.astype(np.float32)
    found /= unit.astype(np.float32)
    found *= found
    return found
