"""What `Detector.fit` does: prepare the statistics, see how the reference was drawn, calibrate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tocsin import validation
from tocsin.calibration.dependence import SIGNIFICANT, dependence, memory
from tocsin.calibration.normalise import Normaliser, atom_in_tail
from tocsin.calibration.plan import STEADY_WINDOWS, Mode, Plan, make_plan
from tocsin.calibration.result import Calibration
from tocsin.calibration.run import Simulation
from tocsin.calibration.uncertainty import first_passages, with_reflections
from tocsin.compute import Functions
from tocsin.compute.arrays import Float64Array, Int64Array
from tocsin.errors import DependenceWarning, InputError, ReferenceWarning
from tocsin.execution import Threads
from tocsin.progress import progress_bar
from tocsin.samplers import Blocks, DrawnStreams, InBlocks, Independent, Sampler, Singly, Source
from tocsin.statistics.base import Points, Setting, Statistic, choose
from tocsin.statistics.family import PreparedFamily
from tocsin.watching import Fitted, Start

PREPARE, REFERENCES, START, ATOMS, ORDER, REALITY = 3, 4, 5, 6, 8, 9
"""Which part of a detector's life a seed is for (1, 2 and 7 are the calibration's)."""

ATOM_WINDOWS = 10_000
"""Windows drawn to see whether a discrete reference gives its statistics atoms that matter."""

REALITY_PATHS = 2000
"""Streams in blocks by which a promise that ignores dependence is judged."""

BLOCK_WINDOWS = 6
"""Blocks are this many times as long as the widest window, or longer, if the reference allows: few windows then see a
joint between two blocks, where the stream forgets what came before."""

FEWEST_BLOCKS = 10
"""Blocks that fit into the reference, at least."""


@dataclass(frozen=True)
class Fit:
    """Everything that a fit is asked for, checked."""

    ert: float
    statistics: Sequence[Statistic]
    windows: tuple[int, ...]
    default_windows: bool
    mode: Mode
    start: Start
    sampler: Sampler | Literal["auto"]
    guarantee: float | None
    interval: bool
    error: float
    paths: int | None
    seed: int
    functions: Functions
    workers: int | None

    def run(self, everything: Points, groups: Int64Array, progress: bool | None) -> Fitted[Calibration]:
        """Fit to reference points in groups, whose bounds are given."""
        count = len(everything)
        aside = [statistic.holds_out(count, self.windows) for statistic in self.statistics]
        validation.enough_points(count, sum(aside), self.windows)
        order = np.random.default_rng([self.seed, PREPARE]).permutation(count)
        pieces = [np.sort(piece) for piece in np.split(order, np.cumsum(aside))]
        points = choose(everything, pieces[-1])
        edges = np.unique(np.searchsorted(pieces[-1], groups))
        executor = Threads(self.workers)

        def prepare(guard: int) -> PreparedFamily:
            rng = np.random.default_rng([self.seed, PREPARE, 1])
            setting = Setting(self.windows, self.functions, executor, rng, report, guard)
            held = (choose(everything, piece) for piece in pieces)
            return PreparedFamily(
                [statistic.prepare(points, own, setting) for statistic, own in zip(self.statistics, held, strict=False)]
            )

        with progress_bar("comparing reference points", progress) as report:
            prepared = prepare(guard=0)
            p_value = self._dependence(prepared, edges)
            source = self._source(prepared, edges, p_value)
            fewer = tuple(w for w in self.windows if w * BLOCK_WINDOWS * FEWEST_BLOCKS <= count) or self.windows[:1]
            if source.length > 1 and self.default_windows and fewer != self.windows:
                return replace(self, windows=fewer).run(everything, groups, progress)
            if source.guard:
                prepared = prepare(source.guard)
            plan = make_plan(
                self.mode,
                self.ert,
                self.windows,
                source,
                bootstraps=prepared.bootstraps,
                discrete=validation.few_distinct(points) and self._has_atoms(prepared, source),
                error=self.error,
                paths=self.paths,
                interval=self.interval,
            )
            kept = None
            if plan.references == "direct":
                null = prepared.direct_paths()
            elif isinstance(plan.sampler, DrawnStreams):
                weights = source.references(np.random.default_rng([self.seed, REFERENCES]), plan.sampler.copies)
                null = prepared.bootstrap_paths(with_reflections(weights) if plan.spread else weights)
            else:
                null = prepared.split_paths()
                rng = np.random.default_rng([self.seed, PREPARE, 2])
                left_out = source.distinct(rng, 1, plan.sampler.length, self.functions)[0]
                kept = np.delete(np.arange(len(points)), left_out)
            live = prepared.live(kept)
        with progress_bar("calibrating", progress) as report:
            # A function of the user's may not be made for threads, and would gain nothing from them.
            threads = executor if prepared.bootstraps or self.workers is not None else Threads(1)
            calibration, normaliser = Simulation(
                plan, null, len(prepared.channels), self.seed, self.functions, threads, report, self.interval
            ).run(self.guarantee)
        calibration = replace(calibration, dependence=p_value)
        if p_value is not None and p_value <= SIGNIFICANT:
            self._tell(prepared, edges, plan, calibration, normaliser)
        return Fitted(live, normaliser, calibration, self.windows, points, kept, self.start, self.seed, edges=edges)

    # How the reference was drawn

    def _dependence(self, prepared: PreparedFamily, edges: Int64Array) -> float | None:
        if not prepared.compares_points:
            return None
        return dependence(prepared.similarity, edges, self.windows[-1], np.random.default_rng([self.seed, ORDER]))

    def _source(self, prepared: PreparedFamily, edges: Int64Array, p_value: float | None) -> Source:
        sampler = self.sampler
        if sampler == "auto":
            sampler = Blocks() if p_value is not None and p_value <= SIGNIFICANT else Independent()
        return Singly(int(edges[-1])) if isinstance(sampler, Independent) else self._blocks(sampler, prepared, edges)

    def _blocks(self, sampler: Blocks, prepared: PreparedFamily, edges: Int64Array) -> InBlocks:
        count, widest = int(edges[-1]), self.windows[-1]
        length, guard = sampler.length, sampler.guard
        if length is None or guard is None:
            if not prepared.compares_points:
                raise InputError(
                    "Blocks() cannot see how far the stream's memory reaches, since the observations are not numbers "
                    "and the statistic says nothing about pairs of them; give Blocks(length=..., guard=...)."
                )
            found = memory(prepared.similarity, edges, np.random.default_rng([self.seed, ORDER, 1]))
            if length is None:
                length = max(found.block, min(BLOCK_WINDOWS * widest, count // FEWEST_BLOCKS))
            guard = min(found.reach, count // 20) if guard is None else guard
        if length * FEWEST_BLOCKS > count:
            raise InputError(
                f"Blocks of {length} observations are too long for a reference of {count}: at least {FEWEST_BLOCKS} "
                f"must fit, or null streams would be copies of each other. Collect {FEWEST_BLOCKS * length:,} "
                "observations or more, choose shorter windows, or give Blocks(length=...)."
            )
        return InBlocks(edges, length, guard)

    def _has_atoms(self, prepared: PreparedFamily, source: Source) -> bool:
        """Whether ties decide alarms, judged by windows drawn from the reference."""
        sampler = DrawnStreams(source, self.windows[-1], copies=1)
        streams = sampler.draw(np.random.default_rng([self.seed, ATOMS]), ATOM_WINDOWS, self.functions)
        return atom_in_tail(prepared.direct_paths()(streams)[:, :, 0], 1 / self.ert)

    # What to say

    def _tell(
        self, prepared: PreparedFamily, edges: Int64Array, plan: Plan, calibration: Calibration, normaliser: Normaliser
    ) -> None:
        p_value = f"p = {calibration.dependence:.3g}"
        if calibration.block > 1:
            if self.sampler == "auto":
                warnings.warn(
                    f"The reference depends on its order ({p_value}), so null streams are drawn in blocks of "
                    f"{calibration.block} observations, and windows are {', '.join(map(str, self.windows))} "
                    "(sampler=Blocks()). If its order is not that in which it was observed, shuffle it, or give "
                    "sampler=Independent().",
                    DependenceWarning,
                    stacklevel=4,
                )
            return
        source = self._blocks(Blocks(), prepared, edges)
        real = _run_time(prepared, source, plan, calibration, normaliser, self.seed, self.functions)
        warnings.warn(
            f"The reference depends on its order ({p_value}), and independent observations are assumed: on a stream "
            f"like it the detector would ring once in about {real:.2g} observations, not {self.ert:g}. Give "
            "sampler=Blocks(), or 'auto'; if the order means nothing, shuffle the reference.",
            DependenceWarning,
            stacklevel=4,
        )


def _run_time(
    prepared: PreparedFamily,
    source: InBlocks,
    plan: Plan,
    calibration: Calibration,
    normaliser: Normaliser,
    seed: int,
    functions: Functions,
) -> float:
    """Tests between false alarms on streams in blocks, with thresholds for another kind of streams."""
    widest = plan.windows[-1]
    sampler = DrawnStreams(source, (STEADY_WINDOWS + 1) * widest, copies=1)
    null, alarms, tests = prepared.direct_paths(), 0, 0
    by_test = calibration.thresholds[
        np.minimum(np.arange(sampler.length - widest + 1), len(calibration.thresholds) - 1)
    ]
    for block in range(-(-REALITY_PATHS // plan.block)):
        streams = sampler.draw(np.random.default_rng([seed, REALITY, block]), plan.block, functions)
        paths: Float64Array = normaliser.paths(null(streams), streams.coins[:, : len(by_test)], functions)
        rang, made = first_passages(paths, by_test, 0)
        alarms, tests = alarms + int(rang.sum()), tests + int(made.sum())
    return tests / max(alarms, 1)


def windows_for(given: Any, count: int, ert: Any) -> tuple[int, ...]:
    """The windows asked for, or the default ones that the reference is large enough for."""
    if given is not None:
        return validation.windows_given(given)
    windows = validation.default_windows(count, ert)
    dropped = [str(w) for w in validation.DEFAULT_WINDOWS if w not in windows]
    if dropped:
        warnings.warn(
            f"Default windows left out: {', '.join(dropped)}. A window needs {validation.POINTS_PER_WINDOW} "
            f"times as many reference points (there are {count}), or the promise gets loose, and at "
            f"most 3 ert observations. Longer windows find fainter changes: collect more points, or give "
            "window=... to choose yourself.",
            ReferenceWarning,
            stacklevel=3,
        )
    return windows
