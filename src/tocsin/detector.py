"""The detector: fit it to a reference, feed it a stream."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from inspect import signature
from typing import Any, Literal, Self, get_args

import numpy as np

from tocsin import compute, storage, validation
from tocsin.calibration.normalise import Normaliser, atom_in_tail, coin, coins
from tocsin.calibration.plan import Mode, make_plan
from tocsin.calibration.result import Calibration
from tocsin.calibration.run import calibrate
from tocsin.compute.arrays import Float64Array, Int64Array
from tocsin.errors import InputError, NotFittedError, ReferenceWarning
from tocsin.execution import Threads
from tocsin.outcomes import Outcome, Outcomes
from tocsin.progress import progress_bar
from tocsin.samplers import DrawnStreams
from tocsin.statistics.base import Channel, Points, Setting, Statistic, choose, snapshot
from tocsin.statistics.family import LiveFamily, PreparedFamily
from tocsin.statistics.mmd import MMD

Start = Literal["warm", "cold"]

PREPARE, REFERENCES, START, ATOMS = 3, 4, 5, 6
"""Which part of a detector's life a seed is for (1 and 2 are the calibration's)."""

ATOM_WINDOWS = 10_000
"""Windows drawn to see whether a discrete reference gives its statistics atoms that matter."""

OPTIONS = ("ert", "window", "calibration", "start", "error", "paths", "seed", "backend")

MOST_STARTS = 10_000

SHORTEST_PIECE = 32
"""Observations tested at once after a reset; twice as many each time, since what follows an alarm is tested again."""


@dataclass
class _Fitted:
    """Everything that `fit` makes. Of it only `live`, `run`, `time` and `alarm` ever change."""

    live: LiveFamily
    normaliser: Normaliser
    calibration: Calibration
    windows: tuple[int, ...]
    reference: Points
    kept: Int64Array | None
    start: Start
    seed: int
    run: int = 0
    time: int = 0
    alarm: Outcome | None = None

    def places(self) -> Int64Array | None:
        """Where each reference point is among those compared with (-1: it is not); None in a discrete reference.

        A warm start draws from all reference points. As in the null streams, none of them meets itself, but for those
        of a discrete reference.
        """
        if self.calibration.references == "direct":
            return None
        everyone = np.arange(len(self.reference))
        if self.kept is None:
            return everyone
        place = np.full(len(everyone), -1)
        place[self.kept] = np.arange(len(self.kept))
        return place

    @cached_property
    def width(self) -> int | None:
        """Columns of the reference; None for objects."""
        return self.reference.shape[1] if isinstance(self.reference, np.ndarray) else None


def _has_atoms(
    prepared: PreparedFamily,
    points: Points,
    ert: float,
    windows: tuple[int, ...],
    seed: int,
    functions: compute.Functions,
) -> bool:
    """Whether ties decide alarms, judged by windows drawn from the reference."""
    sampler = DrawnStreams(len(points), windows[-1], copies=1)
    streams = sampler.draw(np.random.default_rng([seed, ATOMS]), ATOM_WINDOWS, functions)
    return atom_in_tail(prepared.direct_paths()(streams)[:, :, 0], 1 / ert)


@contextmanager
def _all_or_nothing(fitted: _Fitted) -> Iterator[None]:
    """If a user's function fails, or is interrupted, the detector is as it was."""
    before = fitted.run, fitted.time, fitted.alarm, snapshot(fitted.live.state())
    try:
        yield
    except BaseException:
        fitted.run, fitted.time, fitted.alarm, state = before
        fitted.live.resume(state)
        raise


class Detector:
    """Rings when the distribution behind a stream changes; when nothing changes, once in `ert` observations on average.

    False alarms come at a constant rate: the time to the next is geometric, whatever happened before.

    Parameters
    ----------
    ert
        Expected run time: observations between false alarms, on average.
    statistic
        `MMD()`, `LSDD()`, `MeanShift()`, `Custom(D)`, or a list of these to run together under one promise.
    window
        Recent observations to compare with the reference: a number, or several to run together. Default: 8, 25 and
        100, without those longer than a tenth of the reference (a wide window on a small reference loosens the
        promise) or than three times `ert`.
    calibration
        'steady': tests run on past the transient and are pooled (the default). 'paper': Algorithm 3 of the paper.
        'fixed': its Algorithm 2, one threshold that ignores the dependence between tests (for comparison: its false
        alarms are rarer than promised, and not at a constant rate).
    start
        'warm': tests from the first observation on; windows begin with reference points. 'cold': the first test is
        made when the widest window is full.
    error
        Monte Carlo error of the false alarm rate to calibrate to (relative; mode 'steady').
    paths
        Number of null streams to simulate, instead of as many as `error` asks for.
    seed
        Whole number for reproducible thresholds; None for a fresh one, kept in `seed_`.
    backend
        'auto', 'numba', or 'numpy' (slow, to be read).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> detector = Detector(ert=500, window=10, seed=1).fit(rng.normal(size=(200, 2)))
    >>> outcomes = detector.update_many(rng.normal(loc=3, size=(20, 2)))
    >>> bool(outcomes.alarm.any())
    True
    """

    def __init__(
        self,
        ert: float,
        statistic: Statistic | Sequence[Statistic] | None = None,
        *,
        window: int | Sequence[int] | None = None,
        calibration: Mode = "steady",
        start: Start = "warm",
        error: float = 0.02,
        paths: int | None = None,
        seed: int | None = None,
        backend: compute.Backend = "auto",
    ) -> None:
        self.ert = ert
        self.statistic = statistic
        self.window = window
        self.calibration = calibration
        self.start = start
        self.error = error
        self.paths = paths
        self.seed = seed
        self.backend = backend
        self._fitted: _Fitted | None = None

    # Fitting

    def fit(self, reference: Any, *, workers: int | None = None, progress: bool | None = None) -> Self:
        """Learn the reference and set the thresholds; the detector is then at the start of a run.

        Parameters
        ----------
        reference
            One row per observation from the time when all was well (independent observations); a list of any objects
            for statistics that take them.
        workers
            Threads to use; all cores by default. Their number changes nothing in the result.
        progress
            Whether to show a progress bar on standard error; by default, on a terminal when it takes long.
        """
        validation.one_of("start", self.start, get_args(Start))
        error = validation.fraction("error", self.error, 1e-4, 1.0)
        paths = validation.positive_integer("paths", self.paths)
        executor = Threads(validation.positive_integer("workers", workers))
        seed = validation.seed_number(self.seed)
        functions = compute.load(self.backend)
        statistics = self._statistics()

        everything = validation.reference_points(
            reference, objects_allowed=all(statistic.takes_objects for statistic in statistics)
        )
        if self.window is None:
            windows = validation.default_windows(len(everything), self.ert)
            dropped = [str(w) for w in validation.DEFAULT_WINDOWS if w not in windows]
            if dropped:
                warnings.warn(
                    f"Default windows left out: {', '.join(dropped)}. A window needs {validation.POINTS_PER_WINDOW} "
                    f"times as many reference points (there are {len(everything)}), or the promise gets loose, and at "
                    f"most 3 ert observations. Longer windows find fainter changes: collect more points, or give "
                    "window=... to choose yourself.",
                    ReferenceWarning,
                    stacklevel=2,
                )
        else:
            windows = validation.windows_given(self.window)
        ert = validation.expected_run_time(self.ert, windows[-1])

        rng = np.random.default_rng([seed, PREPARE])
        aside = [statistic.holds_out(len(everything), windows) for statistic in statistics]
        validation.enough_points(len(everything), sum(aside), windows)
        pieces = np.split(rng.permutation(len(everything)), np.cumsum(aside))
        points = choose(everything, np.sort(pieces[-1]))
        with progress_bar("comparing reference points", progress) as report:
            setting = Setting(windows, functions, executor, rng, report)
            prepared = PreparedFamily(
                [
                    statistic.prepare(points, choose(everything, piece), setting)
                    for statistic, piece in zip(statistics, pieces, strict=False)
                ]
            )
            plan = make_plan(
                self.calibration,
                ert,
                windows,
                len(points),
                bootstraps=prepared.bootstraps,
                discrete=validation.few_distinct(points)
                and _has_atoms(prepared, points, ert, windows, seed, functions),
                error=error,
                paths=paths,
            )
            kept = None
            if plan.references == "direct":
                null = prepared.direct_paths()
            elif isinstance(plan.sampler, DrawnStreams):
                null = prepared.bootstrap_paths(plan.sampler.references(np.random.default_rng([seed, REFERENCES])))
            else:
                null = prepared.split_paths()
                left_out = rng.choice(len(points), plan.sampler.length, replace=False)
                kept = np.delete(np.arange(len(points)), left_out)
            live = prepared.live(kept)
        with progress_bar("calibrating", progress) as report:
            calibration, normaliser = calibrate(
                plan,
                null,
                len(prepared.channels),
                seed=seed,
                compute=functions,
                # A function of the user's may not be made for threads, and would gain nothing from them.
                executor=executor if prepared.bootstraps or workers is not None else Threads(1),
                progress=report,
            )
        fitted = _Fitted(
            live, normaliser, calibration, windows, points, kept, self.start, seed
        )  # fmt: skip
        self._begin(fitted, run=0)
        self._fitted = fitted
        return self

    def _statistics(self) -> list[Statistic]:
        given: Any = MMD() if self.statistic is None else self.statistic
        statistics: list[Statistic] = list(given) if isinstance(given, list | tuple) else [given]
        for statistic in statistics:
            if isinstance(statistic, type) or not hasattr(statistic, "prepare"):
                raise InputError(
                    f"statistic={statistic!r} is not a statistic; give MMD(), LSDD(), MeanShift(), Custom(D), or a "
                    "list of these."
                )
        if not statistics:
            raise InputError("statistic=[] names no statistic; leave it out for MMD().")
        return statistics

    # Watching

    def update(self, x: Any) -> Outcome:
        """Take in one observation and test."""
        fitted = self._ready()
        values = fitted.live.advance(fitted.live.observe(validation.observation(x, fitted.width), None), 0, 1)
        fitted.time += 1
        test = fitted.time if fitted.start == "warm" else fitted.time - fitted.windows[-1]
        if test < 0:
            return Outcome(fitted.time, False, math.nan, math.nan, None)
        statistic, loudest = fitted.normaliser.statistic(values[0], coin(fitted.seed, fitted.run, fitted.time))
        threshold = fitted.calibration.threshold_of(test)
        outcome = Outcome(fitted.time, statistic > threshold, statistic, threshold, fitted.live.channels[loudest])
        if outcome.alarm and fitted.alarm is None:
            fitted.alarm = outcome
        return outcome

    def update_many(self, block: Any, *, reset_on_alarm: bool = False) -> Outcomes:
        """Take in a block of observations, in order: the same outcomes as repeated `update`, at array speed.

        With `reset_on_alarm` a new run starts after each alarm, as `reset` would do.
        """
        fitted = self._ready()
        points = validation.observations(block, fitted.width)
        observed = fitted.live.observe(points, None) if len(points) else None
        if not reset_on_alarm:
            return self._advance(fitted, observed, 0, len(points))
        with _all_or_nothing(fitted):
            return self._advance_with_resets(fitted, observed, len(points))

    def _advance_with_resets(self, fitted: _Fitted, observed: Any, count: int) -> Outcomes:
        pieces, position, size = [self._advance(fitted, observed, 0, 0)], 0, SHORTEST_PIECE
        while position < count:
            piece = self._advance(fitted, observed, position, min(position + size, count))
            size *= 2
            rang = np.flatnonzero(piece.alarm)
            if len(rang):
                # What was taken in after the alarm is forgotten with the rest of the run.
                piece, size = piece[: int(rang[0]) + 1], SHORTEST_PIECE
                self.reset()
            pieces.append(piece)
            position += len(piece)
        return Outcomes.join(pieces)

    def reset(self) -> None:
        """Start a new run: forget recent observations and start the clock anew."""
        fitted = self._ready()
        with _all_or_nothing(fitted):
            self._begin(fitted, fitted.run + 1)

    def _begin(self, fitted: _Fitted, run: int) -> None:
        fitted.run, fitted.time, fitted.alarm = run, 0, None
        fitted.live.clear()
        if fitted.start == "cold":
            return
        # The prepended window of the paper: reference points, drawn until the test that they alone make is quiet.
        rng = np.random.default_rng([fitted.seed, START, run])
        places = fitted.places()
        for _ in range(MOST_STARTS):
            chosen = rng.choice(len(fitted.reference), fitted.windows[-1], replace=False)
            points, own = choose(fitted.reference, chosen), None if places is None else places[chosen]
            channels = fitted.live.advance(fitted.live.observe(points, own), 0, len(chosen))[-1:]
            statistic, _ = fitted.normaliser.statistics(channels, rng.random(1))
            if statistic[0] <= fitted.calibration.thresholds[0]:
                return
            fitted.live.clear()
        raise InputError(
            f"{MOST_STARTS} windows drawn from the reference all rang at once, so no quiet start exists: ert="
            f"{fitted.calibration.ert:g} is too small for this reference. Ask for a longer one, or start='cold'."
        )

    def _advance(self, fitted: _Fitted, observed: Any, start: int, stop: int) -> Outcomes:
        count, channels = stop - start, fitted.live.channels
        values = fitted.live.advance(observed, start, stop) if count else np.empty((0, len(channels)))
        time = np.arange(fitted.time + 1, fitted.time + 1 + count)
        thresholds = fitted.calibration.thresholds
        # A warm detector made test 0 before its first observation; a cold one makes it when its windows are full.
        test = time if fitted.start == "warm" else time - fitted.windows[-1]
        threshold = np.where(test >= 0, thresholds[np.clip(test, 0, len(thresholds) - 1)], np.nan)
        tie_breakers = coins(fitted.seed, fitted.run, fitted.time + 1, count)
        statistic, loudest = fitted.normaliser.statistics(values, tie_breakers)
        statistic = np.where(test >= 0, statistic, np.nan)
        outcomes = Outcomes(time, statistic > threshold, statistic, threshold, loudest, channels)
        fitted.time += count
        if fitted.alarm is None and outcomes.alarm.any():
            fitted.alarm = outcomes[int(np.flatnonzero(outcomes.alarm)[0])]
        return outcomes

    def _ready(self) -> _Fitted:
        if self._fitted is None:
            raise NotFittedError("This detector has no reference yet: call fit(reference) first.")
        return self._fitted

    # What is known after fitting

    @property
    def thresholds_(self) -> Float64Array:
        """Thresholds of the first, second, ... test with full windows; the last holds from then on."""
        return self._ready().calibration.thresholds.copy()

    @property
    def calibration_(self) -> Calibration:
        """What the thresholds rest on."""
        return self._ready().calibration

    @property
    def channels_(self) -> tuple[Channel, ...]:
        """The paths that are followed: statistic, window and width of each."""
        return self._ready().live.channels

    @property
    def windows_(self) -> tuple[int, ...]:
        """The windows in use, shortest first."""
        return self._ready().windows

    @property
    def seed_(self) -> int:
        """The seed in use."""
        return self._ready().seed

    @property
    def reference_(self) -> Points:
        """The reference points in use: without those that a statistic set aside."""
        return self._ready().reference

    @property
    def run_(self) -> int:
        """How many runs came before this one."""
        return self._ready().run

    @property
    def time_(self) -> int:
        """Observations in this run so far."""
        return self._ready().time

    @property
    def alarm_(self) -> Outcome | None:
        """This run's first alarm; None while it is quiet."""
        return self._ready().alarm

    def __repr__(self) -> str:
        defaults = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
        given = [f"{name}={getattr(self, name)!r}" for name in defaults if getattr(self, name) != defaults[name]]
        head = f"{type(self).__name__}({', '.join(given)})"
        if self._fitted is None:
            return head
        fitted, calibration = self._fitted, self._fitted.calibration
        shape = f"{len(fitted.reference)} points" + (f" of {fitted.width} columns" if fitted.width else "")
        channels = len(fitted.live.channels)
        state = "quiet" if fitted.alarm is None else f"rang at {fitted.alarm.time}"
        return (
            f"<{head} fitted to {shape}: windows {', '.join(map(str, fitted.windows))}, "
            f"{channels} channel{'s' * (channels > 1)}, threshold {calibration.threshold:.4g} "
            f"(Monte Carlo error {calibration.error:.1%}); time {fitted.time}, {state}>"
        )

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the detector, its place in the stream included, to one file; whole or not at all."""
        fitted, statistics = self._ready(), self._statistics()
        storage.write(
            path,
            {
                "options": {name: getattr(self, name) for name in OPTIONS},
                "names": [statistic.name for statistic in statistics],
                "statistic": self.statistic,
                "fitted": {field.name: getattr(fitted, field.name) for field in fields(fitted) if field.name != "live"},
                "live": fitted.live.parts(),
                "state": fitted.live.state(),
            },
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], statistic: Statistic | Sequence[Statistic] | None = None) -> Self:
        """Read a detector; it goes on where it was saved, bit for bit.

        statistic
            The statistic that it was made with, if that holds a function of your own: no file can hold those.
        """
        content = storage.read(path)
        detector = cls(**content["options"], statistic=statistic or content["statistic"])
        statistics = detector._statistics()
        names = [statistic.name for statistic in statistics]
        if names != content["names"]:
            raise InputError(f"{path} was fitted with {content['names']}, and {names} are given; give the same.")
        saved = content["fitted"]
        saved["windows"] = tuple(saved["windows"])
        functions, parts = compute.load(detector.backend), content["live"]
        live = LiveFamily(
            [member.restore(parts[str(i)], saved["windows"], functions) for i, member in enumerate(statistics)]
        )
        live.resume(content["state"])
        detector._fitted = _Fitted(live=live, **saved)
        return detector
