"""Many streams at once: one detector, one reference, a window for each stream."""

from __future__ import annotations

import math
import os
from copy import copy
from functools import partial
from threading import RLock
from typing import Self

import numpy as np

from tocsin import _compute as compute
from tocsin._calibration.result import Calibration, sealed
from tocsin._common.errors import InputError, Option
from tocsin._common.seeds import Purpose, generator
from tocsin._common.wording import counted
from tocsin._compute.arrays import Array, BoolArray, Float64Array, Int64Array, UInt64Array
from tocsin._data import validation
from tocsin._data.contextual import Contextual
from tocsin._detector import storage
from tocsin._detector.base import content_of, fitted_of, must_have_baselines, taken_in
from tocsin._detector.checking import sizes_of
from tocsin._detector.checking_runs import check_bank
from tocsin._detector.detector import Detector, from_content
from tocsin._detector.starting import places_of, warm_windows
from tocsin._detector.stepping import with_learning
from tocsin._execution.threads import undisturbed
from tocsin._explain.result import Explanation
from tocsin._state import Fitted, Run
from tocsin._state.outcomes import Outcome, Outcomes
from tocsin._state.run import RECENT_WINDOWS
from tocsin._statistics.base import Points, snapshot
from tocsin._statistics.mmd_bank import GaussianBank
from tocsin._statistics.mmd_gaussian import GaussianLive
from tocsin._statistics.mmd_starts import Starts
from tocsin._streams.promise import promising, told
from tocsin._streams.shared import bank_of, shared_by

STARTS, STARTS_PER_STREAM, MOST_TRIES = 1024, 16, 1000
"""Quiet windows of reference points, drawn once, that runs begin with: at most, and for each stream if there are few
streams; and how often those that ring are redrawn."""


class DetectorBank:
    """Watches many streams that one detector was fitted for, all of them a step at a time.

    Every stream has a window, a clock and alarms of its own; they share the reference and its thresholds. A step of ten
    thousand streams costs little more than comparing ten thousand observations with the reference.

    Parameters
    ----------
    detector
        A fitted detector whose only statistic is MMD with Gaussian kernels, or Views (the defaults). It is not changed.
    streams
        How many.
    ert
        Observations between false alarms, if not as many as the detector was fitted for.
    for_all
        How many streams share that promise: none of so many rings in `ert` observations of each, on average, if they do
        not depend on each other. As many as there are streams, or more, if other banks watch some. None: each stream
        keeps the promise by itself.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> detector = Detector(ert=500, window=10, seed=1).fit(rng.normal(size=(200, 2)))
    >>> bank = DetectorBank(detector, streams=3)
    >>> for _ in range(20):
    ...     outcomes = bank.update(rng.normal(size=(3, 2)) + [[0], [0], [3]])
    ...     if outcomes.alarm.any():
    ...         break
    >>> bank.alarms.tolist()
    [False, False, True]
    """

    def __init__(
        self, detector: Detector, streams: int, *, ert: float | None = None, for_all: int | None = None
    ) -> None:
        count = validation.positive_integer("streams", streams)
        if count is None:
            raise InputError(Option("streams", None), ": say how many streams the bank watches.")
        # A copy: the detector may be fitted anew, or get other options.
        self.detector, self.streams, self.ert, self.for_all = copy(detector), count, ert, for_all
        self._fitted = promising(fitted_of(detector), ert, for_all)
        live = shared_by(self._fitted)
        self._windows, self._lock = bank_of(live, count), RLock()
        self._time, self._run, self._rang, self._begun, self._unseen = (np.zeros(count, np.int64) for _ in range(5))
        self._heard = np.zeros((count, 3))  # statistic, threshold and channel of each stream's alarm
        ear = self._fitted.ear
        self._news = None if ear is None else ear.begun(count)
        self._starts: Starts | None = None
        if self._fitted.start == "warm":
            assert isinstance(live, GaussianLive)  # views go on from the reference
            rng = generator(self._fitted.seed, Purpose.BANK_STARTS)
            self._starts = quiet_starts(self._fitted, live, min(STARTS, STARTS_PER_STREAM * count), rng)
        self._begin(np.arange(count))

    # Watching

    def update(self, block: object, streams: object = None) -> Outcomes:
        """Take in one observation of every stream, or of those named, and test each.

        As with a detector alone, the observation after an alarm begins a new run (unless the detector was made with
        `reset_on_alarm=False`).

        Parameters
        ----------
        block
            A row for each stream.
        streams
            Numbers of the streams that the rows belong to, each at most once. Default: all, in order.
        """
        chosen = self._named(streams)
        points = taken_in(self._fitted, block, tensors=self._windows.takes_tensors)
        if len(points) != len(chosen):
            raise InputError(
                f"The block has {counted(len(points), 'row')} for {counted(len(chosen), 'stream')}; it must have one "
                "for each. To update some of the streams, name them: update(block, streams=[...])."
            )
        with self._lock:
            # Ctrl-C in the middle of a step waits for its end, so that all streams have made it.
            if isinstance(self._fitted.intake, Contextual):
                return undisturbed(partial(self._given, chosen, points))
            return undisturbed(partial(self._step, chosen, points))

    def _given(self, chosen: Int64Array, points: Float64Array) -> Outcomes:
        """A step in which those streams stay where they are whose context is one that the reference lacks."""
        known = ~np.isnan(points[:, 0])
        self._unseen[chosen[~known]] += 1
        outcomes = self._step(chosen[known], points[known])
        return outcomes.among(known, self._time[chosen[~known]])

    def _step(self, chosen: Int64Array, points: Points) -> Outcomes:
        if self._fitted.resets:
            self._renew(chosen[self._rang[chosen] > 0])
        learning = self._windows.learning(chosen)
        values, spoke = self._entered(chosen, points)
        self._time[chosen] += 1
        outcomes = self._fitted.rule(values, _coins_of(chosen), self._run[chosen], self._time[chosen], spoke)
        outcomes = with_learning(outcomes, learning)
        ear = self._fitted.ear
        if ear is not None and self._news is not None:
            outcomes = ear.told(outcomes, ear.watch(self._news, points, chosen))
        first = outcomes.alarm & (self._rang[chosen] == 0)
        self._rang[chosen[first]] = outcomes.time[first]
        heard = outcomes.statistic, outcomes.threshold, outcomes.loudest
        self._heard[chosen[first]] = np.column_stack([part[first] for part in heard])
        return outcomes

    def _entered(self, chosen: Int64Array, points: Points) -> tuple[Array, Int64Array | None]:
        """Channels of these streams, each with one point more, and which of them spoke; clocks do not move."""
        windows, starts = self._windows, self._starts
        if starts is None or not len(chosen):
            return windows.step(chosen, points)
        assert isinstance(windows, GaussianBank)
        observed, time = windows.live.observe(points, None), self._time[chosen]
        young = np.flatnonzero(time < starts.widest)
        values = windows.enter(chosen, starts.lacking(observed, young, self._begun[chosen[young]]))
        young = np.flatnonzero(time < RECENT_WINDOWS * starts.widest)
        due = starts.due(self._begun[chosen[young]], time[young] + 1)
        values[young] += due if isinstance(values, np.ndarray) else windows.compute.put(due)
        return values, None

    def reset(self, streams: object = None, *, baseline: bool = False) -> None:
        """Start new runs: of all streams, or of those named. baseline: of new recordings; see `Detector.reset`."""
        chosen = self._named(streams)
        if baseline:
            must_have_baselines(self._fitted)
        with self._lock:
            undisturbed(partial(self._anew if baseline else self._renew, chosen))

    def _anew(self, chosen: Int64Array) -> None:
        self._run[chosen] += 1
        self._begin(chosen)

    def _renew(self, chosen: Int64Array) -> None:
        self._run[chosen] += 1
        if self._windows.renew(chosen):
            self._time[chosen], self._rang[chosen] = 0, 0
        else:
            self._begin(chosen)

    def explain(self, stream: int) -> Explanation:
        """What the alarm of a stream's present run means; see `Detector.explain`. Call it while the window shows it."""
        from tocsin._explain.alarm import Alarm  # needs scipy, which watching does not

        s = int(self._named([stream])[0])
        with self._lock:
            place = s + 1, int(self._run[s]), int(self._time[s])
            run = Run.of_window(self._windows.recent(s), *place, self._alarm(s), self._windows.heard(s))
        return Alarm.of(self._fitted, run).explain()

    def _alarm(self, s: int) -> Outcome | None:
        """The alarm of a stream's present run."""
        if not self._rang[s]:
            return None
        statistic, threshold, channel = self._heard[s].tolist()
        curve = self._fitted.calibration.curve
        rarity = curve.rarity(statistic) if curve else math.nan
        return Outcome(int(self._rang[s]), True, statistic, threshold, rarity, self._fitted.channels[int(channel)])

    def _named(self, streams: object) -> Int64Array:
        if streams is None:
            return np.arange(self.streams)
        chosen = np.asarray(streams)
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
            raise InputError(
                Option("streams", streams), ": give the numbers of streams, whole numbers from 0 on, in a list."
            )
        chosen = chosen.astype(np.int64)
        unknown = chosen[(chosen < 0) | (chosen >= self.streams)]
        if len(unknown):
            raise InputError(f"There is no stream {unknown[0]}; they are numbered 0 to {self.streams - 1}.")
        if len(np.unique(chosen)) < len(chosen):
            raise InputError(
                "A stream is named twice. Each takes one observation in a step; give the second in a step of its own."
            )
        return chosen

    # Starting

    def _begin(self, chosen: Int64Array) -> None:
        self._time[chosen], self._rang[chosen] = 0, 0
        if self._news is not None and self._fitted.ear is not None:
            self._news[chosen] = self._fitted.ear.begun(len(chosen))
        if self._starts is None:
            self._windows.clear(chosen)
        elif len(chosen):
            self._begun[chosen] = self._drawn(chosen, self._starts.count)
            assert isinstance(self._windows, GaussianBank)
            self._windows.copy(chosen, self._starts.bank, self._begun[chosen])

    def _drawn(self, chosen: Int64Array, count: int) -> Int64Array:
        """Which of so many starts the present run of each of these streams begins with."""
        coins = self._fitted.rule.coins(_coins_of(chosen), self._run[chosen], np.zeros(len(chosen), np.int64))
        return (coins * count).astype(np.int64)

    # What is known

    @property
    def calibration_(self) -> Calibration:
        """What the thresholds of each stream rest on."""
        return sealed(self._fitted.calibration)

    @property
    def thresholds_(self) -> Float64Array:
        """Thresholds of a stream's first, second, ... test; the last holds from then on."""
        return self.calibration_.thresholds.copy()

    @property
    def alarms(self) -> BoolArray:
        """Which streams have rung in their present run."""
        return self._rang > 0

    @property
    def time(self) -> Int64Array:
        """Observations of each stream in its present run."""
        return self._time.copy()

    @property
    def run(self) -> Int64Array:
        """How many runs of each stream came before its present one."""
        return self._run.copy()

    @property
    def unseen(self) -> Int64Array:
        """Observations of each stream that were left out, since the reference lacks the like of their context."""
        return self._unseen.copy()

    def __repr__(self) -> str:
        promise = told(self.calibration_, "stream", self.ert or self.detector.calibration_.ert, self.for_all)
        rang = int(self.alarms.sum())
        watched = counted(self.streams, "stream")
        return f"<DetectorBank of {watched}, ringing {promise}; on {self._windows.compute}; {rang:,} of them rang>"

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the bank, its detector and every stream's place included, to one file; whole or not at all."""
        with self._lock:
            bank = {
                "streams": self.streams,
                "ert": self.ert,
                "for_all": self.for_all,
                "time": self._time.copy(),
                "run": self._run.copy(),
                "rang": self._rang.copy(),
                "heard": self._heard.copy(),
                "news": None if self._news is None else self._news.copy(),
                "windows": snapshot(self._windows.state()),
                **({"unseen": self._unseen.copy()} if isinstance(self._fitted.intake, Contextual) else {}),
            }
        storage.write(path, {**content_of(self.detector), "kind": type(self).__name__, "bank": bank})

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        preprocess: object = None,
        *,
        context_model: object = None,
        **place: object,
    ) -> Self:
        """Read a bank; it goes on where it was saved. The others: as in `Detector.load`."""
        content = storage.read(path, cls.__name__)
        detector = from_content(Detector, content, path, None, preprocess, context_model, **place)
        with content.explained():
            live, sizes = shared_by(fitted_of(detector)), sizes_of(content["fitted"], "fitted")
            saved = content.part("bank", partial(check_bank, sizes=sizes, live=live, ear=fitted_of(detector).ear))
            bank = cls(detector, saved["streams"], ert=saved["ert"], for_all=saved["for_all"])
        bank._time, bank._run, bank._rang, bank._heard = (saved[name] for name in ("time", "run", "rang", "heard"))
        bank._unseen = saved.get("unseen", bank._unseen)
        if bank._news is not None and saved["news"] is not None:
            bank._news = saved["news"]
        bank._windows.resume(saved["windows"])
        if bank._starts is not None:
            bank._begun = bank._drawn(np.arange(bank.streams), bank._starts.count)
        return bank


def _coins_of(chosen: Int64Array) -> UInt64Array:
    """Numbers by which streams have coins of their own; 0 is that of a detector alone."""
    return (chosen + 1).astype(np.uint64)


def quiet_starts(fitted: Fitted[Calibration], live: GaussianLive, count: int, rng: np.random.Generator) -> Starts:
    """Windows of reference points, drawn as null streams are, whose own test is quiet."""
    starts, waiting, places = Starts(live, count), np.arange(count), places_of(fitted)
    for _ in range(MOST_TRIES):
        drawn = warm_windows(fitted, rng, len(waiting), compute.load("numba"))
        values = starts.fill(waiting, fitted.reference, drawn, places)
        waiting = waiting[~fitted.rule.quiet_at_first(values, rng.random(len(waiting)))]
        if not len(waiting):
            return starts
    raise InputError(
        "Windows drawn from the reference go on ringing at once, so no quiet start exists: an expected run time of "
        f"{fitted.calibration.ert:g} is too small for this reference. Ask for a longer one, or ",
        Option("start", "cold"),
        ".",
    )
