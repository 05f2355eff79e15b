"""What every detector does once it is fitted: take in observations, test, start anew, and live in a file."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import numpy as np

from tocsin import compute, storage, validation
from tocsin.calibration.normalise import Normaliser, coin, coins
from tocsin.calibration.result import Thresholds
from tocsin.compute.arrays import Float64Array, Int32Array, Int64Array
from tocsin.errors import InputError, NotFittedError
from tocsin.intake import Intake, Rows
from tocsin.outcomes import Outcome, Outcomes
from tocsin.statistics.base import Channel, Parts, Points, snapshot
from tocsin.statistics.family import LiveFamily

Start = Literal["warm", "cold"]
C = TypeVar("C", bound=Thresholds)

SHORTEST_PIECE = 32
"""Observations tested at once after a reset; twice as many each time, since what follows an alarm is tested again."""


RECENT_WINDOWS = 2
"""Points that are remembered, in widest windows: a change may have begun before the window that tells of it."""


@dataclass
class Fitted(Generic[C]):
    """Everything that `fit` makes. Of it only `live`, `run`, `time`, `alarm`, `recent` and `begun_with` change.

    intake: how observations become points.  reference: points in use.  kept: those that live windows are compared with,
        if not all.  edges: of groups of the reference.  rows: which of the observations given these points are.
    rang: null windows that rang, as places in the reference; an explanation is judged by them.
    recent: the latest points of this run.  begun_with: points that stood before them when it began, if any.
    stream: in a bank, 1 for the first, and so on; a detector alone is stream 0.
    known: what explanations have learned from the reference; copies share it, and files do without.
    """

    live: LiveFamily
    normaliser: Normaliser
    calibration: C
    windows: tuple[int, ...]
    intake: Intake
    reference: Points
    kept: Int64Array | None
    start: Start
    seed: int
    edges: Int64Array | None = None
    rows: Int64Array | None = None
    rang: Int32Array | None = None
    run: int = 0
    time: int = 0
    alarm: Outcome | None = None
    recent: deque[Any] = field(default_factory=deque)
    begun_with: Points | None = None
    stream: int = 0
    known: dict[Hashable, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.recent = deque(self.recent, maxlen=RECENT_WINDOWS * self.windows[-1])

    def in_stream(
        self, stream: int, run: int, time: int, alarm: Outcome | None, window: Float64Array, calibration: C
    ) -> Fitted[C]:
        """A copy that stands where one of many streams does, whose window holds these points, to explain its alarm."""
        begun = max(len(window) - time, 0)
        return replace(
            self,
            calibration=calibration,
            run=run,
            time=time,
            alarm=alarm,
            recent=deque(window[begun:]),
            begun_with=window[:begun] if begun else None,
            stream=stream,
        )

    def remember(self, points: Points) -> None:
        """Keep the latest points, apart from arrays that may change."""
        if hasattr(points, "is_cuda"):
            points = validation.plain_array(points[-self.recent.maxlen :])  # type: ignore[operator]
        if len(points) == 1:
            point = points[0]
            self.recent.append(point.copy() if isinstance(point, np.ndarray) else point)
            return
        latest = points[-self.recent.maxlen :] if len(points) else points  # type: ignore[operator]
        self.recent.extend(latest.copy())


class _Checkpoint:
    """What changes as a detector watches, as it is now."""

    def __init__(self, fitted: Fitted[Any]) -> None:
        self._kept = fitted.run, fitted.time, fitted.alarm, fitted.recent.copy(), snapshot(fitted.live.state())

    def restore(self, fitted: Fitted[Any]) -> None:
        """Back to then."""
        fitted.run, fitted.time, fitted.alarm, fitted.recent, state = self._kept
        fitted.live.resume(state)


@contextmanager
def _all_or_nothing(fitted: Fitted[Any]) -> Iterator[None]:
    """If a user's function fails, or is interrupted, the detector is as it was."""
    before = _Checkpoint(fitted)
    try:
        yield
    except BaseException:
        before.restore(fitted)
        raise


class Watcher(Generic[C]):
    """A detector without its `fit`."""

    options: ClassVar[tuple[str, ...]]
    """Arguments of the constructor that a file holds."""

    backend: compute.Backend
    device: str | None = None
    _fitted: Fitted[C] | None = None
    _computed_by: str = ""
    """For `repr`: which backend, on which device."""

    # Options

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options, by name, as scikit-learn asks for them: its `clone` makes a copy that is not fitted."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change options; they count from the next `fit` on."""
        names = tuple(signature(type(self)).parameters)
        for name in params:
            if name not in names:
                raise InputError(f"{type(self).__name__} has no option {name!r}; there are {', '.join(names)}.")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    # Watching

    def update(self, x: Any) -> Outcome:
        """Take in one observation and test."""
        fitted = self._ready()
        point = fitted.intake.one(x)
        values = compute.on_host(fitted.live.advance(fitted.live.observe(point, None), 0, 1))
        fitted.time += 1
        fitted.remember(point)
        test = fitted.time if fitted.start == "warm" else fitted.time - fitted.windows[-1]
        if test < 0:
            return Outcome(fitted.time, False, math.nan, math.nan, math.nan, None)
        statistic, loudest = fitted.normaliser.statistic(values[0], coin(fitted.seed, fitted.run, fitted.time))
        threshold, curve = fitted.calibration.threshold_of(test), fitted.calibration.curve
        outcome = Outcome(
            fitted.time,
            statistic > threshold,
            statistic,
            threshold,
            curve.rarity(statistic) if curve else math.nan,
            fitted.live.channels[loudest],
        )
        if outcome.alarm and fitted.alarm is None:
            fitted.alarm = outcome
        return outcome

    def update_many(self, block: Any, *, reset_on_alarm: bool = False) -> Outcomes:
        """Take in a block of observations, in order: the same outcomes as repeated `update`, at array speed.

        With `reset_on_alarm` a new run starts after each alarm, as `reset` would do.
        """
        fitted = self._ready()
        points = self._taken_in(fitted, block)
        observed = fitted.live.observe(points, None) if len(points) else None
        if not reset_on_alarm:
            return self._advance(fitted, points, observed, 0, len(points))
        with _all_or_nothing(fitted):
            return self._advance_with_resets(fitted, points, observed)

    @staticmethod
    def _taken_in(fitted: Fitted[C], block: Any) -> Points:
        """Points, on the GPU if they are there and are compared there."""
        if getattr(block, "is_cuda", False) and isinstance(fitted.intake, Rows) and fitted.live.takes_tensors:
            return validation.tensor_rows(block, fitted.intake.width)
        return fitted.intake.many(block)

    def update_until_alarm(self, block: Any) -> Outcomes:
        """Take in observations of a block up to the first alarm, the one that rings included.

        The outcomes are as many as were taken in. After an alarm the detector can explain it; after `reset` it can take
        the rest of the block.
        """
        fitted = self._ready()
        points = self._taken_in(fitted, block)
        pieces, position, size = [self._advance(fitted, points, None, 0, 0)], 0, SHORTEST_PIECE
        with _all_or_nothing(fitted):
            while position < len(points) and not pieces[-1].alarm.any():
                piece, before = points[position : position + size], _Checkpoint(fitted)
                observed = fitted.live.observe(piece, None)
                outcomes = self._advance(fitted, piece, observed, 0, len(piece))
                rang = np.flatnonzero(outcomes.alarm)
                if len(rang) and rang[0] < len(piece) - 1:
                    before.restore(fitted)
                    outcomes = self._advance(fitted, piece, observed, 0, int(rang[0]) + 1)
                pieces.append(outcomes)
                position, size = position + len(outcomes), 2 * size
        return Outcomes.join(pieces)

    def _advance_with_resets(self, fitted: Fitted[C], points: Points, observed: Any) -> Outcomes:
        pieces, position, size = [self._advance(fitted, points, observed, 0, 0)], 0, SHORTEST_PIECE
        while position < len(points):
            piece = self._advance(fitted, points, observed, position, min(position + size, len(points)))
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

    def _begin(self, fitted: Fitted[C], run: int) -> None:
        fitted.run, fitted.time, fitted.alarm = run, 0, None
        fitted.recent.clear()
        fitted.live.clear()

    def _advance(self, fitted: Fitted[C], points: Points, observed: Any, start: int, stop: int) -> Outcomes:
        count, channels = stop - start, fitted.live.channels
        values = fitted.live.advance(observed, start, stop) if count else np.empty((0, len(channels)))
        time = np.arange(fitted.time + 1, fitted.time + 1 + count)
        thresholds = fitted.calibration.thresholds
        # A warm detector made test 0 before its first observation; a cold one makes it when its windows are full.
        test = time if fitted.start == "warm" else time - fitted.windows[-1]
        threshold = np.full(count, thresholds[-1])
        early = test[: max(len(thresholds) - 1 - int(test[0]), 0)] if count else test
        threshold[: len(early)] = np.where(early >= 0, thresholds[np.maximum(early, 0)], np.nan)
        tie_breakers = coins(fitted.seed, fitted.run, fitted.time + 1, count)
        statistic, loudest = fitted.normaliser.statistics(values, tie_breakers)
        statistic[: len(early)][early < 0] = np.nan
        curve = fitted.calibration.curve
        outcomes = Outcomes(time, statistic > threshold, statistic, threshold, loudest, channels, curve)
        fitted.time += count
        fitted.remember(points[start:stop])
        if fitted.alarm is None and outcomes.alarm.any():
            fitted.alarm = outcomes[int(np.flatnonzero(outcomes.alarm)[0])]
        return outcomes

    def _ready(self) -> Fitted[C]:
        if self._fitted is None:
            raise NotFittedError("This detector has no reference yet: call fit(reference) first.")
        return self._fitted

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
    def intake_(self) -> Intake:
        """How observations become points: the columns that they have, and of what kinds."""
        return self._ready().intake

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

    @property
    def recent_(self) -> Points:
        """The latest points of this run, oldest first: up to two widest windows of them."""
        fitted = self._ready()
        if isinstance(fitted.reference, np.ndarray):
            return np.array(fitted.recent).reshape(-1, fitted.reference.shape[1])
        return list(fitted.recent)

    def __repr__(self) -> str:
        defaults = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
        given = [f"{name}={getattr(self, name)!r}" for name in defaults if getattr(self, name) != defaults[name]]
        head = f"{type(self).__name__}({', '.join(given)})"
        if self._fitted is None:
            return head
        fitted = self._fitted
        columns = len(fitted.intake.names)
        shape = f"{len(fitted.reference)} points" + (f" of {columns} columns" if columns else "")
        channels = len(fitted.live.channels)
        state = "quiet" if fitted.alarm is None else f"rang at {fitted.alarm.time}"
        return (
            f"<{head} fitted to {shape}: windows {', '.join(map(str, fitted.windows))}, "
            f"{channels} channel{'s' * (channels > 1)}, threshold {fitted.calibration.threshold:.4g} "
            f"({fitted.calibration.quality}); time {fitted.time}, {state}{self._computed_by}>"
        )

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the detector, its place in the stream included, to one file; whole or not at all."""
        storage.write(path, self._content())

    def _content(self) -> Parts:
        """What a file holds."""
        fitted = self._ready()
        numeric = isinstance(fitted.reference, np.ndarray)
        return {
            "kind": type(self).__name__,
            "options": {name: getattr(self, name) for name in self.options},
            **self._description(),
            "fitted": {
                **{own.name: getattr(fitted, own.name) for own in fields(fitted) if own.name not in ("live", "known")},
                "recent": np.array(fitted.recent) if fitted.recent and numeric else list(fitted.recent),
            },
            "live": fitted.live.parts(),
            "state": fitted.live.state(),
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a detector; it goes on where it was saved, bit for bit."""
        content = storage.read(path, cls.__name__)
        return cls(**content["options"])._go_on(content)

    def _go_on(self, content: storage.Content) -> Self:
        saved = content["fitted"]
        saved["windows"] = tuple(saved["windows"])
        functions = compute.load(self.backend, self.device)
        live = self._restore(content["live"], saved["windows"], functions)
        self._computed_by = f"; computed by {functions}"
        live.resume(content["state"])
        self._fitted = Fitted(live=live, **saved)
        return self

    def _description(self) -> Parts:
        """What else a file must hold."""
        return {}

    def _restore(self, parts: Parts, windows: tuple[int, ...], functions: compute.Functions) -> LiveFamily:
        """The live statistics that `parts` describes."""
        raise NotImplementedError
