"""Where a detector is in its stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._data import validation
from tocsin._data.foreign import is_tensor
from tocsin._state.outcomes import Outcome
from tocsin._statistics.base import Parts, Points, WindowState, snapshot

RECENT_WINDOWS = 2
"""Points that are remembered, in widest windows: a change may have begun before the window that tells of it."""


@dataclass(eq=False)
class Run:
    """From one start to the next: all that changes as a detector watches.

    windows: of each statistic, what it keeps of recent points.  recent: the latest points of this run.
    begun_with: points that stood before them when it began, if any.
    number: how many runs came before.  time: observations so far.  alarm: the first, if there was one.
    left: of each statistic, what its reference lacks while the run is young; None when it lacks nothing.
    due: what `left` adds to channels, once it was asked for; it is not kept in files.
    heard: what it keeps of news; None when it begins, or hears none.
    stream: 0 for that of a detector alone; among many, the number that chooses its coins.
    unseen: observations that were left out so far, in all runs.  beside: what was expected of the latest ones that were
        not, oldest first; None where observations have no context.
    """

    windows: list[WindowState]
    recent: deque[Any]
    begun_with: Points | None = None
    number: int = 0
    time: int = 0
    alarm: Outcome | None = None
    left: list[Parts] | None = None
    due: Float64Array | None = None
    heard: Float64Array | None = None
    stream: int = 0
    unseen: int = 0
    beside: Float64Array | None = None

    @classmethod
    def begun(
        cls,
        windows: list[WindowState],
        widest: int,
        number: int,
        begun_with: Points | None = None,
        left: list[Parts] | None = None,
    ) -> Run:
        """A new run."""
        return cls(windows, deque(maxlen=RECENT_WINDOWS * widest), begun_with, number, left=left)

    @classmethod
    def of_window(
        cls,
        window: Float64Array,
        stream: int,
        number: int,
        time: int,
        alarm: Outcome | None,
        windows: Sequence[WindowState] = (),
    ) -> Run:
        """That of one stream of many, whose window holds these points, to look at."""
        begun = max(len(window) - time, 0)
        before = window[:begun] if begun else None
        return cls(list(windows), deque(window[begun:]), before, number, time, alarm, stream=stream)

    def copy(self) -> Run:
        """One that goes on from here, and leaves this as it is."""
        heard = None if self.heard is None else self.heard.copy()
        return replace(
            self, windows=[snapshot(state) for state in self.windows], recent=self.recent.copy(), heard=heard
        )

    def settle(self, outcome: Outcome) -> None:
        """Be where this outcome of the latest observation says."""
        self.age(outcome.time)
        if outcome.alarm and self.alarm is None:
            self.alarm = outcome

    def age(self, time: int) -> None:
        """Have taken in so many observations: once no window has one that met a lacking reference, nothing lacks."""
        self.time = time
        if self.left is not None and time >= (self.recent.maxlen or 0):
            self.left = None

    def remember(self, points: Points) -> None:
        """Keep the latest points, apart from arrays that may change."""
        most = self.recent.maxlen or 0
        if is_tensor(points):
            points = validation.plain_array(points[-most:])
        if len(points) == 1:
            point = points[0]
            self.recent.append(point.copy() if isinstance(point, np.ndarray) else point)
        elif len(points):
            self.recent.extend(points[-most:].copy())

    def after(self, before: Run, beside: Float64Array, unseen: int) -> Run:
        """This one, which goes on from another, with what was expected meanwhile, and so many left out."""
        return replace(self, beside=before.with_beside(beside), unseen=before.unseen + unseen)

    def with_beside(self, beside: Float64Array) -> Float64Array:
        """What was expected of the latest observations, these included."""
        known = beside if self.beside is None else np.concatenate((self.beside, beside))
        most = self.recent.maxlen or 0
        return known[len(known) - most :] if len(known) > most else known

    def parts(self, *, numeric: bool) -> Parts:
        """What a file holds. numeric: whether points are rows of numbers."""
        aside = {} if self.beside is None else {"beside": self.beside, "unseen": self.unseen}
        return aside | {
            "windows": self.windows,
            "recent": np.array(self.recent) if numeric else list(self.recent),
            "begun_with": self.begun_with,
            "number": self.number,
            "time": self.time,
            "alarm": self.alarm,
            "left": self.left,
            "heard": self.heard,
        }

    @classmethod
    def restored(cls, parts: Parts, widest: int) -> Run:
        """The run that `parts` describes."""
        recent: deque[Any] = deque(parts["recent"], maxlen=RECENT_WINDOWS * widest)
        return cls(**{**parts, "recent": recent})
