"""What every detector has besides how it steps: options, a lock, what is known after fitting, a place in a file."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import fields, replace
from functools import partial
from inspect import signature
from threading import RLock
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from tocsin import _compute as compute
from tocsin._calibration.result import Calibration, Thresholds, sealed
from tocsin._common.errors import InputError, NotFittedError, Option
from tocsin._common.wording import counted
from tocsin._compute.arrays import BoolArray, Float64Array, read_only
from tocsin._data import validation
from tocsin._data.foreign import is_on_gpu
from tocsin._data.intake import Intake, Rows
from tocsin._detector import checking, checking_runs, checking_views, storage
from tocsin._detector.schema import Each, Record, Rule, anything
from tocsin._detector.sizes import Sizes
from tocsin._state.fitted import C, Fitted
from tocsin._state.outcomes import Outcome, Outcomes
from tocsin._state.run import Run
from tocsin._statistics.base import Channel, Live, Parts, Points
from tocsin._statistics.family import LiveFamily

W = TypeVar("W", bound="DetectorBase[Any]")

NOT_IN_FILES = ("live", "functions", "known")
"""Of what a fit makes: made anew from the parts of statistics, from the options, or when it is wanted."""


class DetectorBase(Generic[C]):
    """A detector without its `fit` and its `update`."""

    _apart: ClassVar[tuple[str, ...]] = ()
    """Options that a file does not hold as they are."""

    _rests_on: ClassVar[type[Thresholds]]
    """What its thresholds are kept in."""

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

    # Runs

    def _begin(self, fitted: Fitted[C], before: Run | None, *, anew: bool = False) -> Run:
        """The run after another, or the first. anew: forget what was heard before it, if runs go on with that."""
        number = 0 if before is None else before.number + 1
        if before is not None and fitted.live.goes_on and not anew:
            return replace(Run.begun(fitted.live.renew(before.windows), fitted.widest, number), heard=before.heard)
        return Run.begun(fitted.live.begin(number), fitted.widest, number)

    def _deploy(self, fitted: Fitted[C], run: Run | None = None) -> None:
        """Watch with this from now on, at the start of a first run or in this one."""
        run = self._begin(fitted, None) if run is None else run
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
        return sealed(self._ready().calibration)

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
        """The reference points in use: without those that a statistic set aside. They cannot be written to."""
        points = self._ready().reference
        return read_only(points) if isinstance(points, np.ndarray) else points.copy()

    @property
    def intake_(self) -> Intake:
        """How observations become points, which tells the columns that they have, and of what kinds.

        A `Tabular` of `tocsin.types` for tables, `Represented` with `preprocess`, `Rows` for arrays, `Objects` else.
        """
        return self._ready().intake

    @property
    def run(self) -> int:
        """How many runs came before this one."""
        return self._current.number

    @property
    def time(self) -> int:
        """Observations in this run so far."""
        return self._current.time

    @property
    def unseen(self) -> int:
        """Observations so far that were left out, since the reference lacks the like of their context; in all runs."""
        return self._current.unseen

    @property
    def learning(self) -> int:
        """Observations from which the stream's own level is still to be learnt (`baseline`); 0 once it is known."""
        fitted, run = now(self)
        return fitted.live.learns(run.windows)

    @property
    def alarm(self) -> Outcome | None:
        """This run's first alarm; None while it is quiet."""
        return self._current.alarm

    @property
    def recent(self) -> Points:
        """The latest points of this run, oldest first: up to two widest windows of them."""
        fitted, run = now(self)
        recent = list(run.recent)
        return np.array(recent).reshape(-1, fitted.reference.shape[1]) if fitted.numeric else recent

    def __repr__(self) -> str:
        defaults = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
        options = {name: getattr(self, name) for name in defaults}
        given = [f"{name}={value!r}" for name, value in options.items() if not _alike(value, defaults[name])]
        head = f"{type(self).__name__}({', '.join(given)})"
        if self._fitted is None:
            return head
        fitted, run = self._fitted, self._run
        columns = len(fitted.intake.names)
        shape = counted(len(fitted.reference), "point") + (f" of {counted(columns, 'column')}" if columns else "")
        state = "quiet" if run.alarm is None else f"rang at {run.alarm.time}"
        return (
            f"<{head} fitted to {shape}: windows {', '.join(map(str, fitted.windows))}, "
            f"{counted(len(fitted.live.channels), 'channel')}, threshold {fitted.calibration.threshold:.4g} "
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
        detector = cls(**content.part("options", options_rule(cls)))
        detector._go_on(content, path)
        return detector

    def _go_on(self, content: storage.Content, path: str | os.PathLike[str]) -> None:
        """From what the file at `path` holds, once all of it has been looked at."""
        saved = content.part("fitted", partial(checking.check_fitted, kind=self._rests_on))
        windows = saved["windows"] = tuple(saved["windows"])
        sizes = checking.sizes_of(saved, "fitted")
        functions = compute.load(self.backend, self.device)
        parts = content.part("live", Each(tuple(self._rules(sizes))))
        live = self._restore(parts, windows, functions)
        with content.explained():
            checking_runs.check_channels(saved["normaliser"], live.channels, "fitted.normaliser")
            checking_views.check_views(live, saved, "fitted")
        fitted: Fitted[C] = Fitted(live=live, functions=functions, **saved)
        with content.explained():
            ear = fitted.ear
        rule = partial(checking_runs.check_run, sizes=sizes, live=live, ear=ear, state_rule=self._state_rule)
        run = content.part("run", rule)
        self._deploy(fitted, Run.restored(run, fitted.widest))

    def _rules(self, sizes: Sizes) -> list[Rule]:
        """What files must hold of the statistics."""
        raise NotImplementedError

    def _state_rule(self, live: Live, sizes: Sizes, time: int) -> Rule:
        """What files must hold of a statistic's windows."""
        return checking_runs.state_rule(live, sizes, time)

    def _description(self) -> Parts:
        """What else a file must hold."""
        return {}

    def _restore(self, parts: list[Parts], windows: tuple[int, ...], functions: compute.Functions) -> LiveFamily:
        """The live statistics that `parts` describes."""
        raise NotImplementedError


def must_have_baselines(fitted: Fitted[C]) -> None:
    """Refuse to begin a new recording where streams have no level of their own."""
    if not fitted.live.has_baselines:
        raise InputError(
            Option("baseline", True),
            ": this detector was fitted without ",
            Option("baseline"),
            ", so that no stream has a level of its own to be learnt anew. Call reset() without it, or fit with ",
            Option("baseline", 50),
            ".",
        )


def promised(limits: Thresholds, outcomes: Outcomes) -> BoolArray:
    """Which of these observations an expected run time counts: those that were tested, or all.

    Where a detector was rehearsed, its null streams counted the silence at the beginning of every run.
    """
    if isinstance(limits, Calibration) and limits.rehearsal is not None:
        return np.ones(len(outcomes), bool) if outcomes.unseen is None else ~outcomes.unseen
    return np.isfinite(outcomes.statistic)


def _alike(value: object, default: object) -> bool:
    """Whether an option is as if it were left out; arrays, which answer with an array, never are."""
    return value is default or (type(value) is type(default) and bool(value == default))


def now(watcher: DetectorBase[C]) -> tuple[Fitted[C], Run]:
    """What a detector has learned from its reference, and a copy of where it is in its stream."""
    with watcher._held:
        return watcher._ready(), watcher._run.copy()


def fitted_of(watcher: DetectorBase[C]) -> Fitted[C]:
    """What a detector has learned from its reference."""
    return watcher._ready()


def altered(watcher: W, **parts: Any) -> W:
    """A copy at the same place in its stream, with other parts of `Fitted`."""
    other = copy(watcher)
    fitted, run = now(watcher)
    other._deploy(replace(fitted, **parts), run)
    return other


def begun(watcher: DetectorBase[C], fitted: Fitted[C], before: Run) -> Run:
    """The run after this one."""
    return watcher._begin(fitted, before)


def placed(watcher: DetectorBase[C], fitted: Fitted[C], run: Run) -> None:
    """Let a detector watch with this, in this run, from now on."""
    watcher._deploy(fitted, run)


def options_rule(kind: type[DetectorBase[Any]]) -> Rule:
    """Options of this kind of detector by their names; what they may be is told by whoever takes them."""
    names = signature(kind).parameters.keys() - set(kind._apart)
    return Record(dict.fromkeys(names, anything), frozenset(names - {"ert"}))


def content_of(watcher: DetectorBase[C]) -> Parts:
    """What a file holds of a detector."""
    fitted, run = now(watcher)
    return {
        "kind": type(watcher).__name__,
        "options": {name: value for name, value in watcher.get_params().items() if name not in watcher._apart},
        **watcher._description(),
        "fitted": {own.name: getattr(fitted, own.name) for own in fields(fitted) if own.name not in NOT_IN_FILES},
        "live": fitted.live.parts(),
        "run": run.parts(numeric=fitted.numeric),
    }


def taken_in(fitted: Fitted[C], block: object, *, tensors: bool) -> Points:
    """Observations as points, on the GPU if they are there and `tensors` are taken as they are.

    Where observations have a context, points are NaN of those whose context the reference lacks.
    """
    if is_on_gpu(block) and isinstance(fitted.intake, Rows) and tensors:
        return validation.tensor_rows(block, fitted.intake.width)
    return fitted.intake.many(block)
