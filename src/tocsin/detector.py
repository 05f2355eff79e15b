"""The detector: fit it to a reference, feed it a stream."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any, Self, get_args

import numpy as np

from tocsin import compute, validation
from tocsin.calibration.normalise import atom_in_tail
from tocsin.calibration.plan import Mode, make_plan
from tocsin.calibration.result import Calibration
from tocsin.calibration.run import calibrate
from tocsin.compute.arrays import Int64Array
from tocsin.errors import InputError, ReferenceWarning
from tocsin.execution import Threads
from tocsin.progress import progress_bar
from tocsin.samplers import DrawnStreams
from tocsin.statistics.base import Parts, Points, Setting, Statistic, choose
from tocsin.statistics.family import LiveFamily, PreparedFamily
from tocsin.statistics.mmd import MMD
from tocsin.watching import Fitted, Start, Watcher

PREPARE, REFERENCES, START, ATOMS = 3, 4, 5, 6
"""Which part of a detector's life a seed is for (1 and 2 are the calibration's)."""

ATOM_WINDOWS = 10_000
"""Windows drawn to see whether a discrete reference gives its statistics atoms that matter."""

MOST_STARTS = 10_000


def _places(fitted: Fitted[Calibration]) -> Int64Array | None:
    """Where each reference point is among those compared with (-1: it is not); None in a discrete reference.

    A warm start draws from all reference points. As in the null streams, none of them meets itself, but for those of a
    discrete reference.
    """
    if fitted.calibration.references == "direct":
        return None
    everyone = np.arange(len(fitted.reference))
    if fitted.kept is None:
        return everyone
    place = np.full(len(everyone), -1)
    place[fitted.kept] = np.arange(len(fitted.kept))
    return place


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


class Detector(Watcher[Calibration]):
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

    options = ("ert", "window", "calibration", "start", "error", "paths", "seed", "backend")

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
        fitted = Fitted(
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

    # Starting

    def _begin(self, fitted: Fitted[Calibration], run: int) -> None:
        super()._begin(fitted, run)
        if fitted.start == "cold":
            return
        # The prepended window of the paper: reference points, drawn until the test that they alone make is quiet.
        rng = np.random.default_rng([fitted.seed, START, run])
        places = _places(fitted)
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

    # Files

    @classmethod
    def load(cls, path: str | os.PathLike[str], statistic: Statistic | Sequence[Statistic] | None = None) -> Self:
        """Read a detector; it goes on where it was saved, bit for bit.

        statistic
            The statistic that it was made with, if that holds a function of your own: no file can hold those.
        """
        content = cls._open(path)
        detector = cls(**content["options"], statistic=statistic or content["statistic"])
        names = [statistic.name for statistic in detector._statistics()]
        if names != content["names"]:
            raise InputError(f"{path} was fitted with {content['names']}, and {names} are given; give the same.")
        return detector._go_on(content)

    def _description(self) -> Parts:
        return {"names": [statistic.name for statistic in self._statistics()], "statistic": self.statistic}

    def _restore(self, parts: Parts, windows: tuple[int, ...], functions: compute.Functions) -> LiveFamily:
        return LiveFamily(
            [member.restore(parts[str(i)], windows, functions) for i, member in enumerate(self._statistics())]
        )
