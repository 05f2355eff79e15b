"""What every detector does once it is fitted: take in observations, test, start anew, and live in a file."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import fields, replace
from inspect import signature
from threading import RLock
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from tocsin import _compute as compute
from tocsin._calibration.result import Thresholds
from tocsin._common.errors import InputError, NotFittedError
from tocsin._compute.arrays import Float64Array
from tocsin._data import validation
from tocsin._data.foreign import is_on_gpu
from tocsin._data.intake import Intake, Rows
from tocsin._detector import storage
from tocsin._state.fitted import C, Fitted
from tocsin._state.outcomes import Outcome, Outcomes
from tocsin._state.rule import ALONE
from tocsin._state.run import Run
from tocsin._statistics.base import Channel, Parts, Points
from tocsin._statistics.family import LiveFamily

W = TypeVar("W", bound="Watcher[Any]")

SHORTEST_PIECE = 32
"""Observations tested at once after a reset; twice as many each time, since what follows an alarm is tested again."""

NOT_IN_FILES = ("live", "functions", "known")
"""Of what a fit makes: made anew from the parts of statistics, from the options, or when it is wanted."""


class Watcher(Generic[C]):
    """A detector without its `fit`.

    Threads may share one: observations are taken in one at a time, none is lost, and in which order is up to them.
    """

    options: ClassVar[tuple[str, ...]]
    """Arguments of the constructor that a file holds."""

    backend: compute.Backend
    device: str | None = None
    _fitted: Fitted[C] | None = None
    _run: Run
    _lock: RLock
    """Held while the run changes, or is looked at as a whole; there is one, and a run, as soon as it is fitted."""

    # Options

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options, by name, as scikit-learn asks for them: its `clone` makes a copy that is not fitted."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: object) -> Self:
        """Change options; they count from the next `fit` on."""
        names = tuple(signature(type(self)).parameters)
        for name in params:
            if name not in names:
                raise InputError(f"{type(self).__name__} has no option {name!r}; there are {', '.join(names)}.")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    # Watching

    def update(self, x: object) -> Outcome:
        """Take in one observation and test."""
        with self._held:
            fitted = self._ready()
            point = fitted.intake.one(x)
            observed = fitted.live.observe(point, None)
            # A user's function may fail, and the run must not have moved then.
            run = self._run.copy() if fitted.live.may_fail else self._run
            values = fitted.live.advance(run.windows, observed, 0, 1)
            outcome = fitted.rule.one(values, run.number, run.time + 1)
            run.time += 1
            run.remember(point)
            if outcome.alarm and run.alarm is None:
                run.alarm = outcome
            self._run = run
            return outcome

    def update_many(self, block: object, *, reset_on_alarm: bool = False) -> Outcomes:
        """Take in a block of observations, in order: the same outcomes as repeated `update`, at array speed.

        With `reset_on_alarm` a new run starts after each alarm, as `reset` would do. Whatever goes wrong, or interrupts
        it, all of the block is taken in or nothing.
        """
        with self._held:
            fitted, run = self._ready(), self._run.copy()
            points = taken_in(fitted, block)
            observed = fitted.live.observe(points, None) if len(points) else []
            if reset_on_alarm:
                outcomes, run = self._advance_with_resets(fitted, run, points, observed)
            else:
                outcomes = _advance(fitted, run, points, observed, 0, len(points))
            self._run = run
            return outcomes

    def update_until_alarm(self, block: object) -> Outcomes:
        """Take in observations of a block up to the first alarm, the one that rings included.

        The outcomes are as many as were taken in. After an alarm the detector can explain it; after `reset` it can take
        the rest of the block.
        """
        with self._held:
            fitted, run = self._ready(), self._run
            points = taken_in(fitted, block)
            pieces, position, size = [_advance(fitted, run.copy(), points, [], 0, 0)], 0, SHORTEST_PIECE
            while position < len(points) and not pieces[-1].alarm.any():
                piece, ahead = points[position : position + size], run.copy()
                observed = fitted.live.observe(piece, None)
                outcomes = _advance(fitted, ahead, piece, observed, 0, len(piece))
                rang = np.flatnonzero(outcomes.alarm)
                if len(rang) and rang[0] < len(piece) - 1:
                    ahead = run.copy()
                    outcomes = _advance(fitted, ahead, piece, observed, 0, int(rang[0]) + 1)
                pieces.append(outcomes)
                run, position, size = ahead, position + len(outcomes), 2 * size
            self._run = run
            return Outcomes.join(pieces)

    def _advance_with_resets(
        self, fitted: Fitted[C], run: Run, points: Points, observed: list[object]
    ) -> tuple[Outcomes, Run]:
        pieces, position, size = [_advance(fitted, run, points, observed, 0, 0)], 0, SHORTEST_PIECE
        while position < len(points):
            piece = _advance(fitted, run, points, observed, position, min(position + size, len(points)))
            size *= 2
            rang = np.flatnonzero(piece.alarm)
            if len(rang):
                # What was taken in after the alarm is forgotten with the rest of the run.
                piece, size = piece[: int(rang[0]) + 1], SHORTEST_PIECE
                run = self._begin(fitted, run.number + 1)
            pieces.append(piece)
            position += len(piece)
        return Outcomes.join(pieces), run

    def reset(self) -> None:
        """Start a new run: forget recent observations and start the clock anew."""
        with self._held:
            self._run = self._begin(self._ready(), self._run.number + 1)

    def _begin(self, fitted: Fitted[C], number: int) -> Run:
        """A new run."""
        return Run.begun(fitted.live.begin(number), fitted.widest, number)

    def _deploy(self, fitted: Fitted[C], run: Run | None = None) -> None:
        """Watch with this from now on, at the start of a first run or in this one."""
        run = self._begin(fitted, 0) if run is None else run
        if self._fitted is None:
            self._lock = RLock()
        with self._lock:
            self._fitted, self._run = fitted, run

    def _ready(self) -> Fitted[C]:
        if self._fitted is None:
            raise NotFittedError("This detector has no reference yet: call fit(reference) first.")
        return self._fitted

    @property
    def _held(self) -> RLock:
        self._ready()
        return self._lock

    @property
    def _current(self) -> Run:
        self._ready()
        return self._run

    # Copies and pickles go their own ways

    def __getstate__(self) -> dict[str, object]:
        state = {name: value for name, value in self.__dict__.items() if name != "_lock"}
        if self._fitted is not None:
            state["_fitted"], state["_run"] = now(self)
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        if self._fitted is not None:
            self._lock = RLock()

    # What is known after fitting

    @property
    def thresholds_(self) -> Float64Array:
        """Thresholds of the first, second, ... test with full windows; the last holds from then on."""
        return self._ready().calibration.thresholds.copy()

    @property
    def calibration_(self) -> C:
        """What the thresholds rest on."""
        return self._ready().calibration

    @property
    def channels_(self) -> tuple[Channel, ...]:
        """The paths that are followed: statistic, window and width of each."""
        return self._ready().channels

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
    def intake_(self) -> Intake:
        """How observations become points: the columns that they have, and of what kinds."""
        return self._ready().intake

    @property
    def run_(self) -> int:
        """How many runs came before this one."""
        return self._current.number

    @property
    def time_(self) -> int:
        """Observations in this run so far."""
        return self._current.time

    @property
    def alarm_(self) -> Outcome | None:
        """This run's first alarm; None while it is quiet."""
        return self._current.alarm

    @property
    def recent_(self) -> Points:
        """The latest points of this run, oldest first: up to two widest windows of them."""
        fitted, run = now(self)
        recent = list(run.recent)
        return np.array(recent).reshape(-1, fitted.reference.shape[1]) if fitted.numeric else recent

    def __repr__(self) -> str:
        defaults = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
        given = [f"{name}={getattr(self, name)!r}" for name in defaults if getattr(self, name) != defaults[name]]
        head = f"{type(self).__name__}({', '.join(given)})"
        if self._fitted is None:
            return head
        fitted, run = self._fitted, self._run
        columns = len(fitted.intake.names)
        shape = f"{len(fitted.reference)} points" + (f" of {columns} columns" if columns else "")
        channels = len(fitted.channels)
        state = "quiet" if run.alarm is None else f"rang at {run.alarm.time}"
        return (
            f"<{head} fitted to {shape}: windows {', '.join(map(str, fitted.windows))}, "
            f"{channels} channel{'s' * (channels > 1)}, threshold {fitted.calibration.threshold:.4g} "
            f"({fitted.calibration.quality}); time {run.time}, {state}; computed by {fitted.functions}>"
        )

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the detector, its place in the stream included, to one file; whole or not at all."""
        storage.write(path, content_of(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a detector; it goes on where it was saved, bit for bit."""
        content = storage.read(path, cls.__name__)
        detector = cls(**content["options"])
        detector._go_on(content, path)
        return detector

    def _go_on(self, content: storage.Content, path: str | os.PathLike[str]) -> None:
        """From what the file at `path` holds."""
        saved = content["fitted"]
        windows = saved["windows"] = tuple(saved["windows"])
        functions = compute.load(self.backend, self.device)
        live = self._restore(content["live"], windows, functions)
        fitted: Fitted[C] = Fitted(live=live, functions=functions, **saved)
        self._deploy(fitted, Run.restored(content["run"], fitted.widest))

    def _description(self) -> Parts:
        """What else a file must hold."""
        return {}

    def _restore(self, parts: list[Parts], windows: tuple[int, ...], functions: compute.Functions) -> LiveFamily:
        """The live statistics that `parts` describes."""
        raise NotImplementedError


def now(watcher: Watcher[C]) -> tuple[Fitted[C], Run]:
    """What a detector has learned from its reference, and a copy of where it is in its stream."""
    with watcher._held:
        return watcher._ready(), watcher._run.copy()


def fitted_of(watcher: Watcher[C]) -> Fitted[C]:
    """What a detector has learned from its reference."""
    return watcher._ready()


def with_thresholds(watcher: W, calibration: Thresholds) -> W:
    """A copy at the same place in its stream, with other thresholds."""
    other = copy(watcher)
    fitted, run = now(watcher)
    other._deploy(replace(fitted, calibration=calibration), run)
    return other


def content_of(watcher: Watcher[C]) -> Parts:
    """What a file holds of a detector."""
    fitted, run = now(watcher)
    return {
        "kind": type(watcher).__name__,
        "options": {name: getattr(watcher, name) for name in watcher.options},
        **watcher._description(),
        "fitted": {own.name: getattr(fitted, own.name) for own in fields(fitted) if own.name not in NOT_IN_FILES},
        "live": fitted.live.parts(),
        "run": run.parts(numeric=fitted.numeric),
    }


def taken_in(fitted: Fitted[C], block: object) -> Points:
    """Observations as points, on the GPU if they are there and are compared there."""
    if is_on_gpu(block) and isinstance(fitted.intake, Rows) and fitted.live.takes_tensors:
        return validation.tensor_rows(block, fitted.intake.width)
    return fitted.intake.many(block)


def _advance(fitted: Fitted[C], run: Run, points: Points, observed: list[object], start: int, stop: int) -> Outcomes:
    """Let points start..stop, which were observed, enter the windows of a run, and test each."""
    count = stop - start
    values = fitted.live.advance(run.windows, observed, start, stop) if count else np.empty((0, len(fitted.channels)))
    time = np.arange(run.time + 1, run.time + 1 + count)
    outcomes = fitted.rule(values, ALONE, np.array([run.number]), time)
    run.time += count
    run.remember(points[start:stop])
    if run.alarm is None and outcomes.alarm.any():
        run.alarm = outcomes[int(np.flatnonzero(outcomes.alarm)[0])]
    return outcomes
