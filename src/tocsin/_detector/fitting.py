"""What `Detector.fit` does: prepare the statistics, see how the reference was drawn, calibrate.

A long file, since what a fit decides, and what it tells of that, stand beside each other.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tocsin._calibration.dependence import SIGNIFICANT, dependence, memory
from tocsin._calibration.normalise import Normaliser, atom_in_tail
from tocsin._calibration.plan import STEADY_WINDOWS, Mode, Plan, Precision, make_plan
from tocsin._calibration.result import Calibration
from tocsin._calibration.run import Simulation
from tocsin._calibration.uncertainty import PAIRS, with_reflections
from tocsin._common.errors import Code, InputError, Option, ReferenceWarning
from tocsin._common.seeds import Purpose, generator
from tocsin._compute import Functions
from tocsin._compute.arrays import Int64Array
from tocsin._data import validation
from tocsin._data.intake import Intake, Learned, Rows, Tabular
from tocsin._detector import rehearsing
from tocsin._detector.baselined import BaselinedFit, windows_with
from tocsin._detector.choices import broken_promise, chosen_blocks, chosen_views, no_blocks, why_views
from tocsin._detector.options import tell_left_out
from tocsin._execution.progress import Progress, progress_bar
from tocsin._execution.threads import Executor, OneAtATime, Threads
from tocsin._samplers import Blocks, DrawnStreams, InBlocks, Independent, Sampler, Singly, Source
from tocsin._state import Fitted, Start
from tocsin._statistics.base import NullPaths, Points, Setting, Statistic, choose
from tocsin._statistics.family import PreparedFamily
from tocsin._statistics.views import Views

ATOM_WINDOWS = 10_000
"""Windows drawn to see whether a discrete reference gives its statistics atoms that matter."""

LAWS = 128
"""Pseudo-references from which the null streams of a reference with few distinct values are drawn."""

REALITY_PATHS = 2000
"""Streams in blocks by which a promise that ignores dependence is judged."""

BLOCK_WINDOWS = 6
"""Blocks are this many times as long as the widest window, or longer, if the reference allows: few windows then see a
joint between two blocks, where the stream forgets what came before."""

FEWEST_BLOCKS, FEWEST_GUARDS = 10, 20
"""Blocks, and guards, that fit into the reference, at least."""

FEWEST_VIEWED = 30
"""Points of a reference that views are chosen for."""

WINDOW_BLOCKS = BLOCK_WINDOWS * FEWEST_BLOCKS


@dataclass(frozen=True, eq=False)
class Reference:
    """Reference points in groups, and those that each statistic sets aside for itself.

    rows: which of the points given these are.  tensor: the points on a GPU, if they were given there.
    """

    points: Points
    rows: Int64Array
    edges: Int64Array
    held_out: list[Points]
    tensor: Any = None


@dataclass(frozen=True)
class Fit:
    """Everything that a fit is asked for, checked."""

    ert: float
    statistics: Sequence[Statistic]
    windows: tuple[int, ...]
    default_windows: bool
    default_statistic: bool
    mode: Mode
    start: Start
    resets: bool
    sampler: Sampler | Literal["auto"]
    guarantee: float | None
    interval: bool
    error: Precision
    paths: int | None
    seed: int
    functions: Functions
    workers: int | None
    cluster: Executor | None
    baseline: int | None = None

    def run(self, learned: Learned, progress: bool | None) -> Fitted[Calibration]:
        """Fit to reference points in groups."""
        everything, groups, tensor = learned.points, learned.edges, learned.tensor
        if self.baseline is not None:
            self._must_be_recordings(groups)
        if self._is_views or self.baseline is not None:
            return self._rehearsed(learned, None, progress)
        with progress_bar("comparing reference points", progress) as report:
            reference = self._split(everything, groups, tensor)
            prepared = self._prepare(reference, 0, report)
            p_value = self._dependence(prepared, reference.edges)
            if why := self._asks_for_views(p_value, everything, groups):
                fitted = self._rehearsed(learned, p_value, progress)
                warnings.warn(chosen_views(fitted.calibration, why), stacklevel=3)
                return fitted
            if self.default_windows:
                tell_left_out(self.windows, len(everything))
            fit = self._decided(p_value, len(everything))
            if isinstance(fit.sampler, Blocks) and not prepared.takes_blocks:
                raise no_blocks(p_value if self.sampler == "auto" else None)
            if fit.windows != self.windows:
                reference = fit._split(everything, groups, tensor)
                prepared = fit._prepare(reference, 0, report)
            source = fit._source(prepared, reference.edges)
            # Streams that are tested against what they leave out of the reference meet all of the rest.
            guard = source.guard if fit.mode == "steady" and prepared.bootstraps else 0
            if guard:
                prepared = fit._prepare(reference, guard, report)
            plan = fit._plan(prepared, reference.points, source)
            null, kept = fit._null_paths(prepared, plan)
            live = prepared.live(kept)
        with progress_bar("calibrating", progress) as report:
            executor, nearby = self._executors(prepared)
            if self.cluster is not None and not prepared.bootstraps:
                null = OneAtATime(null)
            simulation = Simulation(
                plan, null, len(prepared.channels), fit.seed, fit.functions, executor, nearby, report, fit.interval
            )
            calibration, normaliser = simulation.run(fit.guarantee)
        calibration = replace(calibration, dependence=p_value, guard=guard)
        if p_value is not None and p_value <= SIGNIFICANT:
            if isinstance(fit.sampler, Independent):
                real = fit._run_time(prepared, fit._length(prepared, reference.edges), plan, calibration, normaliser)
                warnings.warn(broken_promise(calibration, real), stacklevel=3)
            elif self.sampler == "auto":
                warnings.warn(chosen_blocks(calibration), stacklevel=3)
        return Fitted(
            live, normaliser, calibration, fit.windows, learned.intake, reference.points, kept, fit.start, fit.seed,
            fit.functions, fit.resets, reference.edges, learned.rows[reference.rows], simulation.rang,
            hears=fit._hears(learned.intake, p_value, calibration),
        )  # fmt: skip

    def _must_be_recordings(self, groups: Int64Array) -> None:
        """What baselines do not go with."""
        named = Option("baseline", self.baseline)
        others = self.sampler != "auto" or self.mode != "steady"
        if not (self.default_statistic or self._is_views) or others:
            raise InputError(
                named, " is of columns that are heard one by one, in order: of ", Option("statistic", Code("Views()")),
                " alone, which it takes by itself. Leave out what else was chosen: ", Option("statistic", ...), ", ",
                Option("sampler", ...), ", ", Option("mode", ...), "; or leave ", Option("baseline"), " out.",
            )  # fmt: skip
        if len(groups) < 3:
            raise InputError(
                named, " asks what recordings differ by, and the reference is one recording. Name the recording of "
                "each row, such as the machine, the patient or the day, by ", Option("groups", ...), "; or leave ",
                Option("baseline"), " out.",
            )  # fmt: skip

    def _hears(self, intake: Intake, p_value: float | None, calibration: Calibration) -> bool:
        """Whether rows are independent for all that is known, so that chance tells what their reference lacks."""
        independent = calibration.block == 1 and (p_value is None or p_value > SIGNIFICANT)
        return self.mode == "steady" and independent and isinstance(intake, Rows | Tabular)

    @property
    def _is_views(self) -> bool:
        """Whether views are asked for by name; combined with what does not go with them, they refuse to be prepared."""
        alone = len(self.statistics) == 1 and isinstance(self.statistics[0], Views)
        return alone and self.sampler == "auto" and self.mode == "steady"

    def _asks_for_views(self, p_value: float | None, points: Points, groups: Int64Array) -> str | None:
        """Why the order of the reference does, or may, where nothing else is asked for."""
        free = self.default_statistic and self.sampler == "auto" and self.mode == "steady"
        if not free or p_value is None or not isinstance(points, np.ndarray) or len(points) < FEWEST_VIEWED:
            return None
        return why_views(p_value, points, groups)

    def _rehearsed(self, learned: Learned, p_value: float | None, progress: bool | None) -> Fitted[Calibration]:
        count = len(learned.points)
        windows = rehearsing.default_windows(count, self.ert) if self.default_windows else self.windows
        if self.baseline is not None:
            windows = windows_with(self.baseline, windows, chosen=not self.default_windows)
        given = (
            self.ert, windows, self.resets, self.guarantee, self.interval, self.paths, self.seed, self.functions,
            self._workers,
        )  # fmt: skip
        fit = rehearsing.RehearsedFit(*given) if self.baseline is None else BaselinedFit(*given, self.baseline)
        return fit.run(learned, p_value, progress)

    def _executors(self, prepared: PreparedFamily) -> tuple[Executor, Executor]:
        """For most blocks, and for those few whose paths are needed whole, which are slow to send."""
        # A function of the user's may not be made for threads, and would gain nothing from them.
        threads = Threads(self._workers if prepared.bootstraps or self.workers is not None else 1)
        if self.cluster is None:
            return threads, threads
        # Paths of the user's functions are few and slow: simulating them takes longer than sending them.
        return self.cluster, threads if prepared.bootstraps else self.cluster

    @property
    def _workers(self) -> int | None:
        """PyTorch spreads its own work."""
        return 1 if self.functions.backend == "torch" else self.workers

    # The reference

    def _split(self, everything: Points, groups: Int64Array, tensor: Any) -> Reference:
        aside = [statistic.holds_out(len(everything), self.windows) for statistic in self.statistics]
        validation.enough_points(len(everything), sum(aside), self.windows)
        order = generator(self.seed, Purpose.PREPARE).permutation(len(everything))
        *held_out, kept = (np.sort(piece) for piece in np.split(order, np.cumsum(aside)))
        edges = np.unique(np.searchsorted(kept, groups))
        if tensor is not None:
            tensor = tensor.to(self.functions.device)[self.functions.put(kept)] if self.functions.on_gpu else None
        held = [choose(everything, piece) for piece in held_out]
        return Reference(choose(everything, kept), kept, edges, held, tensor)

    def _prepare(self, reference: Reference, guard: int, report: Progress) -> PreparedFamily:
        rng = generator(self.seed, Purpose.PREPARE, 1)
        setting = Setting(self.windows, self.functions, Threads(self._workers), rng, report, guard, reference.tensor)
        members = zip(self.statistics, reference.held_out, strict=True)
        prepared = [member.prepare(reference.points, own, setting) for member, own in members]
        return PreparedFamily(prepared, self.functions)

    # How the reference was drawn, and null streams are to be

    def _dependence(self, prepared: PreparedFamily, edges: Int64Array) -> float | None:
        if not prepared.compares_points:
            return None
        return dependence(prepared.similarity, edges, self.windows[-1])

    def _decided(self, p_value: float | None, count: int) -> Fit:
        """With a sampler, and with windows that leave room for enough blocks."""
        sampler = self.sampler
        if sampler == "auto":
            sampler = Blocks() if p_value is not None and p_value <= SIGNIFICANT else Independent()
        windows = self.windows
        if self.default_windows and isinstance(sampler, Blocks):
            windows = tuple(w for w in windows if w * WINDOW_BLOCKS <= count) or windows[:1]
            dropped = ", ".join(str(w) for w in self.windows if w not in windows)
            if dropped:
                told = ReferenceWarning(
                    f"Default windows left out: {dropped}. In blocks, a window needs {WINDOW_BLOCKS} times as many "
                    f"reference points (there are {count}), or too few blocks fit into the reference. Collect more "
                    "points, or give ",
                    Option("window", ...),
                    " to choose yourself.",
                )
                warnings.warn(told, stacklevel=4)
        return replace(self, sampler=sampler, windows=windows)

    def _source(self, prepared: PreparedFamily, edges: Int64Array) -> Source:
        if not isinstance(self.sampler, Blocks):
            return Singly(int(edges[-1]))
        count, length, guard = int(edges[-1]), self.sampler.length, self.sampler.guard
        if length is None or guard is None:
            if not prepared.compares_points:
                raise InputError(
                    Option("sampler", Code("Blocks()")),
                    " cannot see how far the stream's memory reaches, since the observations are not numbers and the "
                    "statistic says nothing about pairs of them; give ",
                    Option("sampler", Code("Blocks(length=..., guard=...)")),
                    ".",
                )
            chosen = self._length(prepared, edges)
            length, guard = chosen.length if length is None else length, chosen.guard if guard is None else guard
        if length * FEWEST_BLOCKS > count:
            raise InputError(
                f"Blocks of {length} observations are too long for a reference of {count}: at least {FEWEST_BLOCKS} "
                f"must fit, or null streams would be copies of each other. Collect {FEWEST_BLOCKS * length:,} "
                "observations or more, choose shorter windows, or give ",
                Option("length", ..., of="Blocks"),
                ". If the order of the reference means nothing, give ",
                Option("sampler", Code("Independent()")),
                ".",
            )
        if guard * FEWEST_GUARDS > count:
            raise InputError(
                Option("guard", guard, of="Blocks"),
                f" is too large for a reference of {count}: at most a {FEWEST_GUARDS}th of it, or too few points would "
                "be left to compare with.",
            )
        return InBlocks(edges, min(length, int(np.diff(edges).max())), guard)

    def _length(self, prepared: PreparedFamily, edges: Int64Array) -> InBlocks:
        """Blocks as long as the memory of the reference and the windows ask for, whether or not enough of them fit."""
        count = int(edges[-1])
        found = memory(prepared.similarity, edges, generator(self.seed, Purpose.ORDER, 1))
        length = max(found.block, min(BLOCK_WINDOWS * self.windows[-1], count // FEWEST_BLOCKS), 1)
        return InBlocks(edges, length, min(found.reach, count // FEWEST_GUARDS))

    # What to simulate

    def _plan(self, prepared: PreparedFamily, points: Points, source: Source) -> Plan:
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
            block_work=self.functions.BLOCK_WORK,
            stepwise=self.functions.backend != "torch",
        )
        if plan.references != "direct" or source.length > 1 or not isinstance(plan.sampler, DrawnStreams):
            return plan
        weights = source.references(generator(self.seed, Purpose.REFERENCES), LAWS, self.functions)
        counts = self.functions.get(weights).astype(np.int64)
        laws = np.stack([np.repeat(np.arange(source.count, dtype=np.int32), own) for own in counts.T])
        return replace(plan, sampler=replace(plan.sampler, laws=laws))

    def _has_atoms(self, prepared: PreparedFamily, source: Source) -> bool:
        """Whether ties decide alarms, judged by windows drawn from the reference."""
        sampler = DrawnStreams(source, self.windows[-1], copies=1)
        streams = sampler.draw(generator(self.seed, Purpose.ATOMS), ATOM_WINDOWS, self.functions)
        return atom_in_tail(self.functions.get(prepared.direct_paths()(streams)[:, :, 0]), 1 / self.ert)

    def _null_paths(self, prepared: PreparedFamily, plan: Plan) -> tuple[NullPaths, Int64Array | None]:
        """What makes null paths, and the reference points that live observations are compared with, if not all."""
        source = plan.sampler.source
        if plan.references == "direct":
            return prepared.direct_paths(), None
        if isinstance(plan.sampler, DrawnStreams):
            rng = generator(self.seed, Purpose.REFERENCES)
            weights = source.references(rng, plan.sampler.copies, self.functions)
            if plan.spread:
                weights = with_reflections(weights, self.functions)
            return prepared.bootstrap_paths(weights, PAIRS if plan.spread else 0), None
        rng = generator(self.seed, Purpose.PREPARE, 2)
        left_out = self.functions.get(source.distinct(rng, 1, plan.sampler.length, self.functions))[0]
        return prepared.split_paths(), np.delete(np.arange(source.count), left_out)

    # What independent sampling makes of a stream with a memory

    def _run_time(
        self,
        prepared: PreparedFamily,
        source: InBlocks,
        plan: Plan,
        calibration: Calibration,
        normaliser: Normaliser,
    ) -> float:
        """Tests between false alarms on streams in blocks; infinite if there is none among those simulated."""
        widest = plan.windows[-1]
        sampler = DrawnStreams(source, (STEADY_WINDOWS + 1) * widest, copies=1)
        null, alarms, tests = prepared.direct_paths(), 0, 0
        test = np.arange(sampler.length - widest + 1)
        levels = calibration.thresholds[np.minimum(test, len(calibration.thresholds) - 1)]
        size = min(plan.block, REALITY_PATHS)
        for block in range(-(-REALITY_PATHS // size)):
            streams = sampler.draw(generator(self.seed, Purpose.REALITY, block), size, self.functions)
            paths = normaliser.paths(null(streams), streams.coins[:, : len(levels)], self.functions)
            rang, made = self.functions.first_passages(paths, levels, 0)
            alarms, tests = alarms + int(rang.sum()), tests + int(made.sum())
        return tests / alarms if alarms else math.inf
