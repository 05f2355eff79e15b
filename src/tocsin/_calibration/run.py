"""Run a plan: simulate null paths block by block, keep their records, find the thresholds."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from tocsin._calibration.blocks import Loudest, NullBlocks, NullPaths
from tocsin._calibration.found import Found
from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.plan import COARSEST, FINEST, OF_OWN, TAIL_WINDOWS, Plan
from tocsin._calibration.recursion import (
    FloorTooHighError,
    Records,
    Stretch,
    TooFewPathsError,
    floors,
    passage_curve,
    thresholds,
)
from tocsin._calibration.result import Calibration, aimed_at, guaranteed
from tocsin._calibration.tail import RateCurve, fit_tail
from tocsin._calibration.uncertainty import PAIRS, Errors, Spread, first_alarms, law_error, law_spread
from tocsin._common.errors import Code, InputError, Option
from tocsin._common.seeds import Purpose, generator
from tocsin._compute import Functions
from tocsin._compute.arrays import Array, Float64Array, Int32Array, Int64Array
from tocsin._execution.progress import Progress
from tocsin._execution.threads import Executor
from tocsin._samplers import DrawnStreams, SplitStreams

PILOT_PATHS = 4000
PILOT_PATHS_OF_ONE_CHANNEL = 200

FIRST_PATHS = 4096
"""Paths that tell which values of the others are too low to matter."""

SEEN_BEYOND, FEWEST_MAXIMA = 10, 100
"""Levels that are passed so many times more rarely than the threshold are read off the simulation too, and the maxima
that are left for a tail beyond them."""

THRESHOLD_SPREADS = 4
"""How many standard deviations of the statistic a threshold is from its mean, about."""

MOST_RANG = 500
"""Windows that rang that are kept, to judge explanations by."""

ENOUGH_FREEDOM, OFTENER, GROWTH = 10.0, 2.0, 0.75
"""An influence of points that is known worse is judged by alarms that come so many times as often. It grows with the
level as this power of its leverage, about: as all of it where it is all scale, with one narrow window, and as half of
it in a family of windows and widths."""

CONTROLS_PER_ALARM = 4
"""Other windows that each one that rang is compared with."""


@dataclass
class Simulation:
    """A plan being run.

    null: makes paths of its streams.
    executor: runs its blocks.  nearby: runs those whose paths are asked for whole, and should not travel.
    interval: whether to estimate what the reference's finite size does to the promise.
    rang: once it has run, some of the windows that rang, as places in the reference.
    """

    plan: Plan
    null: NullPaths
    channels: int
    seed: int
    compute: Functions
    executor: Executor
    nearby: Executor
    progress: Progress
    interval: bool
    rang: Int32Array | None = None
    blocks: NullBlocks = field(init=False)
    done: int = 0

    def __post_init__(self) -> None:
        self.blocks = NullBlocks(self.plan, self.null, self.seed, self.compute)

    def run(self, guarantee: float | None) -> tuple[Calibration, Normaliser]:
        """Thresholds for the paths, and the way channels become one path."""
        began = time.perf_counter()
        normaliser, centre = self._pilot()
        found = self._simulated(normaliser, centre)
        interval = self.interval and self.plan.mode != "fixed"
        reference = self._reference_error(normaliser, found) if interval else 0.0
        coarse = self.plan.most > self.plan.paths
        law = self._law_error(found) if coarse or (interval and not self._laws) else None
        if coarse and law is not None:
            paths = self._deserved(found, math.hypot(law[0], reference))
            if paths > self.plan.paths:
                found = self._simulated_further(normaliser, found, paths)
                law = self._law_error(found) if interval else None
        plan, stretches, levels, curve = self.plan, found.stretches, found.levels, found.curve
        self.rang = self._windows(found.path[:MOST_RANG], found.test[:MOST_RANG])
        errors = None
        if interval:
            own, freedom = law or self._law_spread(found)
            errors = Errors(found.error, own, reference, tail=0.0, law_freedom=freedom)
        sizes = np.diff(plan.edges)
        sizes[-1] = 1
        source = plan.sampler.source
        split = isinstance(plan.sampler, SplitStreams)
        calibration = Calibration(
            mode=plan.mode,
            ert=plan.ert,
            thresholds=np.repeat(levels, sizes),
            seconds=time.perf_counter() - began,
            curve=curve,
            guarantee=None,
            nominal=plan.simulated,
            simulated=plan.simulated,
            centre=centre,
            errors=errors,
            paths=plan.paths,
            tests=plan.tests,
            alarms=stretches[-1].alarms,
            references=plan.references,
            copies=plan.sampler.copies if isinstance(plan.sampler, DrawnStreams) else plan.paths,
            compared=source.count - (plan.sampler.length if split else 0),
            block=source.length,
            guard=source.guard,
            dependence=None,
        )
        calibration = aimed_at(calibration, plan.ert)
        return calibration if guarantee is None else guaranteed(calibration, guarantee), normaliser

    def _tell(self) -> None:
        """One more block is done."""
        self.done += 1
        self.progress(self.done, max(self.plan.blocks + self._spread_blocks, self.done))

    def _pilot(self) -> tuple[Normaliser, float]:
        """A few short paths, to measure the channels against each other (and one alone, for the size of its ties).

        Also the mean of the paths that they become.
        """
        plan, widest = self.plan, self.plan.windows[-1]
        paths = PILOT_PATHS if self.channels > 1 else PILOT_PATHS_OF_ONE_CHANNEL
        length = min(plan.sampler.length, 2 * widest if self.channels > 1 else widest)
        size = max(1, min(plan.block, paths))
        pieces = list(self.nearby.map(partial(NullBlocks.pilot, self.blocks, size, length), range(-(-paths // size))))
        values = self.compute.concatenate(pieces, 1)
        normaliser = Normaliser.learn(values, plan.alpha, self.compute, discrete=plan.references == "direct")
        return normaliser, float(normaliser.paths(values, np.zeros(values.shape[1:]), self.compute).mean())

    def _simulated(self, normaliser: Normaliser, centre: float, known: Records | None = None) -> Found:
        """All paths, and what they tell; known: records of those of some first blocks."""
        try:
            return self._found(self._records(normaliser, known=known), centre)
        except FloorTooHighError:
            return self._found(self._records(normaliser, everything=True), centre)

    def _deserved(self, found: Found, own: float) -> int:
        """How many paths make their error small beside `own`, what the reference's finite size does to the rate."""
        error = min(max(OF_OWN * own, FINEST), COARSEST)
        return min(math.ceil(self.plan.paths * (found.error / error) ** 2), self.plan.most)

    def _simulated_further(self, normaliser: Normaliser, found: Found, paths: int) -> Found:
        """So many paths, the first of which are those found already."""
        whole = self.plan.paths // self.plan.block * self.plan.block
        self.plan = replace(self.plan, paths=paths)
        self.blocks = NullBlocks(self.plan, self.null, self.seed, self.compute)
        return self._simulated(normaliser, found.centre, found.records.first(whole) if whole else None)

    def _found(self, records: Records, centre: float) -> Found:
        stretches = self._thresholds(records)
        levels = np.array([stretch.threshold for stretch in stretches])
        path, test = first_alarms(records, self.plan.edges, levels)
        return Found(
            records, stretches, levels, path, test, self._rate_curve(records, levels, path, test), centre
        )  # fmt: skip

    def _records(self, normaliser: Normaliser, *, known: Records | None = None, everything: bool = False) -> Records:
        """Of all paths; where not everything is asked for, without values that the first of them show to be too low.

        known: those of some blocks, all of whose paths it has.
        """
        plan = self.plan
        low = np.full(len(plan.edges) - 1, -np.inf)
        pieces: list[Records] = []

        def keep(found: Iterable[Records]) -> None:
            for records in found:
                pieces.append(records)
                self._tell()

        begun = 0
        if known is not None:
            low, pieces, begun = known.floors, [known], known.paths // plan.block
        elif not everything:
            begun = min(-(-FIRST_PATHS // plan.block), plan.blocks)
            simulate_first = partial(NullBlocks.first_records, self.blocks, normaliser, FIRST_PATHS)
            maxima, shown = zip(*self.executor.map(simulate_first, range(begun)), strict=True)
            low = shown[0].floors if begun == 1 else floors(np.concatenate(maxima), plan.edges, plan.alpha)
            keep(records.above(low) for records in shown)
        simulate_rest = partial(NullBlocks.records, self.blocks, normaliser, low)
        keep(self.executor.map(simulate_rest, range(begun, plan.blocks)))
        return Records.merge(pieces)

    def _thresholds(self, records: Records) -> list[Stretch]:
        plan = self.plan
        try:
            return thresholds(records, plan.edges, plan.alpha, falling=plan.mode == "steady")
        except TooFewPathsError as error:
            raise InputError(
                Option("paths", plan.paths),
                " is too few for ",
                Option("ert", Code(f"{plan.ert:g}")),
                f" and windows up to {plan.windows[-1]}: all of them rang before the last threshold was set. Give "
                "more, or none, to have their number chosen.",
            ) from error

    def _rate_curve(self, records: Records, levels: Float64Array, path: Int32Array, test: Int64Array) -> RateCurve:
        """The curve of the last stretch, by the paths that are quiet until then; path, test: the first alarms."""
        edges, source = self.plan.edges, self.plan.sampler.source
        quiet = np.ones(records.paths, dtype=bool)
        quiet[path[test < edges[-2]]] = False
        last = (records.stretch == len(edges) - 2) & quiet[records.path]
        length = int(edges[-1] - edges[-2])
        own, step, value = records.path[last], records.step[last], records.value[last]
        maxima = value[np.concatenate([own[1:] != own[:-1], [True]])]
        beyond = maxima[maxima > levels[-1]]
        # Blocks show the same extremes again and again: those of the reference, which has count / ERT of them.
        held = source.count * self.plan.alpha if source.length > 1 else np.inf
        weight = min(held / max(len(beyond), 1), 1.0)
        passages = passage_curve(own, step, value, length, int(quiet.sum()))
        if self.plan.simulated < self.plan.ert:
            return RateCurve.of(passages, fit_tail(beyond, float(levels[-1]), self.plan.alpha, length, weight))
        # Nothing is extrapolated but rarities: what was simulated serves as far as it can.
        rate = self.plan.alpha * min(max(FEWEST_MAXIMA / max(len(beyond), 1), 1 / SEEN_BEYOND), 1.0)
        start = passages.at_rate(rate).threshold
        return RateCurve.of(passages, fit_tail(maxima[maxima > start], start, rate, length, weight))

    @property
    def _spread_blocks(self) -> int:
        return -(-self.plan.spread // self.compute.SPREAD_STREAMS)

    @property
    def _laws(self) -> bool:
        """Whether streams were drawn from many laws."""
        return isinstance(self.plan.sampler, DrawnStreams) and self.plan.sampler.laws is not None

    def _law_error(self, found: Found) -> tuple[float, float]:
        """From the paths that rang, and the tests at which they did.

        A few hundred alarms tell little of a thousand points in wide windows: then those at a lower level count, which
        are more.
        """
        plan = self.plan
        made = np.full(plan.paths, plan.tests)
        made[found.path] = found.test + 1
        error, freedom = self._influence(found.path, found.test, made, 0)
        oftener = min(OFTENER, plan.simulated / (TAIL_WINDOWS * plan.windows[-1]))
        if plan.mode != "steady" or freedom >= ENOUGH_FREEDOM or oftener <= 1:
            return error, freedom
        level, start = found.curve.level(math.log(plan.alpha * oftener)), int(plan.edges[-2])
        growth = found.leverage(float(found.levels[-1])) / found.leverage(level)
        path, test = first_alarms(found.records, plan.edges, np.append(found.levels[:-1], level))
        late = test >= start
        made = np.full(plan.paths, plan.tests - start)
        made[path] = np.where(late, test + 1 - start, 0)
        error, freedom = self._influence(path[late], test[late], made, start)
        return error * growth**GROWTH, freedom

    def _influence(self, path: Int32Array, test: Int64Array, made: Int64Array, start: int) -> tuple[float, float]:
        """Of points, by these alarms: the error and its freedom. made: tests of each path, from test `start` on."""
        # Windows to compare with: those of any test that was made.
        rng = generator(self.seed, Purpose.CONTROLS)
        which = np.sort(rng.integers(0, made.sum(), CONTROLS_PER_ALARM * len(path)))
        ends = np.cumsum(made)
        other = np.searchsorted(ends, which, side="right")
        source = self.plan.sampler.source
        windows = self._windows(
            np.concatenate([path, other]), np.concatenate([test, start + which - (ends - made)[other]])
        )
        return law_error(windows[: len(path)], windows[len(path) :], source.count, source.length)

    def _law_spread(self, found: Found) -> tuple[float, float]:
        """By the laws that streams were drawn from, once the transient is over."""
        plan, start, path, test = self.plan, int(self.plan.edges[-2]), found.path, found.test
        laws = np.concatenate([self.blocks.streams(block).laws for block in range(plan.blocks)])
        made = np.full(plan.paths, plan.tests - start)
        made[path] = np.maximum(test + 1 - start, 0)
        count = int(laws.max()) + 1
        late = laws[path[test >= start]]
        return law_spread(np.bincount(late, minlength=count), np.bincount(laws, made, count).astype(np.int64))

    def _windows(self, path: Array, test: Int64Array) -> Int32Array:
        """The points of the widest window at these tests of these paths.

        The streams are drawn once more, which is cheap.
        """
        widest, size = self.plan.windows[-1], self.plan.block
        windows = np.empty((len(path), widest), np.int32)
        order = np.argsort(path, kind="stable")
        bounds = np.searchsorted(path[order], np.arange(self.plan.blocks + 1) * size)
        for block, (first, last) in enumerate(itertools.pairwise(bounds)):
            if first < last:
                here = order[first:last]
                own, steps = path[here, None] - block * size, test[here, None] + np.arange(widest)
                windows[here] = self.compute.take(self.blocks.points(block), own, steps)
        return windows

    def _reference_error(self, normaliser: Normaliser, found: Found) -> float:
        plan, levels = self.plan, found.levels
        if self._laws:
            return 0.0
        if not self._spread_blocks:
            # The squared gap of a mean of N points varies W / N times as much as that of a window.
            spread = (levels[-1] - found.centre) / THRESHOLD_SPREADS
            return float(found.curve.slope(levels[-1]) * spread * plan.windows[-1] / plan.sampler.source.count)
        assert isinstance(plan.sampler, DrawnStreams)
        everyone = np.concatenate([np.arange(PAIRS), plan.sampler.copies + np.arange(PAIRS)]).astype(np.int32)
        by_test, start = np.repeat(levels, np.diff(plan.edges)), int(plan.edges[-2])
        together = self.null.against(everyone) if isinstance(self.null, Loudest) else None
        simulate = partial(
            NullBlocks.passages, self.blocks, normaliser, together, everyone, by_test, start, found.centre
        )
        pieces = []
        for piece in self.executor.map(simulate, range(self._spread_blocks)):
            pieces.append(piece)
            self._tell()
        rang, tests = (np.concatenate(part) for part in zip(*pieces, strict=True))
        return Spread(rang, tests).reference_error()
