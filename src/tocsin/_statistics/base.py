"""What a statistic is to the rest of Tocsin: null paths for calibration, and a live twin with the same path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from tocsin._compute import Functions
from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._execution.progress import Progress, no_progress
from tocsin._execution.threads import Executor
from tocsin._samplers import Streams

T = TypeVar("T")
R = TypeVar("R")

Points = Any
"""A sequence of observations: a float64 array (n, d), or a list of objects for kernels and functions that take them."""

NullPaths = Callable[[Streams], Float32Array]
"""Null streams to the paths of every channel; (channels, P, T) with T = L - max(windows) + 1.

These are small objects that hold nothing but what paths need: they travel to the workers of a cluster."""

Parts = dict[str, Any]
"""What a file holds of an object: arrays, numbers, strings, and lists or dicts of these."""

WindowState = dict[str, Any]
"""What a live statistic keeps of recent points: arrays, numbers and lists, by name."""


@dataclass(frozen=True)
class Channel:
    """One of the paths that a detector follows: a statistic, over a window, at a kernel width (if it has one).

    view, column: what of one column it is of, where columns are heard one by one: 'level', 'prediction error', 'change'
        or 'moving level'. Of 'news', what the reference never shows, the view is what that is: 'missing', 'unseen',
        'below all', 'above all' or 'stopped' (among views it is their 'level', of a column that moves at all).
    """

    statistic: str
    window: int
    width: float | None = None
    view: str | None = None
    column: str | None = None

    def __str__(self) -> str:
        if self.statistic == "news":
            what = "" if self.view == "level" else f"{self.view}, "
            return f"news in {self.column}, {what}window {self.window}"
        if self.view is not None:
            return f"{self.statistic} of {self.view} of {self.column}, window {self.window}"
        width = "" if self.width is None else f", width {self.width:.4g}"
        return f"{self.statistic}, window {self.window}{width}"


@dataclass(frozen=True)
class Setting:
    """What a statistic is prepared with.

    guard: reference points that are no further apart in time than this are never compared with each other. Those that
        are drawn into a null stream resemble their neighbours in time, if the stream has a memory.
    tensor: the reference points on a GPU, if that is where they came from.
    """

    windows: tuple[int, ...]
    compute: Functions
    executor: Executor
    rng: np.random.Generator
    progress: Progress = no_progress
    guard: int = 0
    tensor: Any = None

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """The function of every item, on all workers, reporting progress."""
        results = []
        for result in self.executor.map(function, items):
            results.append(result)
            self.progress(len(results), len(items))
        return results

    @property
    def window_array(self) -> Int64Array:
        return np.array(self.windows, dtype=np.int64)


class Statistic(Protocol):
    """A configuration: small, frozen, and without data."""

    @property
    def name(self) -> str: ...

    def check(self) -> None:
        """Refuse options that make no sense; constructors only keep them."""

    @property
    def takes_objects(self) -> bool:
        """Whether observations may be anything, or must be rows of numbers."""

    def holds_out(self, count: int, windows: tuple[int, ...]) -> int:
        """How many of `count` reference points it sets aside for itself; they leave the reference."""

    def prepare(self, points: Points, held_out: Points, setting: Setting) -> Prepared:
        """Learn what depends on the reference alone."""

    def restore(self, parts: Parts, windows: tuple[int, ...], compute: Functions) -> Live:
        """The live statistic that `Live.parts` describes."""


class Prepared(Protocol):
    """A statistic that has seen its reference."""

    @property
    def channels(self) -> tuple[Channel, ...]: ...

    @property
    def bootstraps(self) -> bool:
        """Whether `bootstrap_paths` exists; the other two always do. Only then may paths be asked for in threads."""

    @property
    def takes_blocks(self) -> bool:
        """Whether null streams may be drawn in blocks."""

    def bootstrap_paths(self, weights: Float32Array, reflected: int = 0) -> NullPaths:
        """Paths against pseudo-references, given as (N, G) counts of the reference points.

        reflected: so many of the last are the reflections 2 - v of the first, which may save work.
        """

    def split_paths(self) -> NullPaths:
        """Paths of streams of distinct points against the points that each leaves out."""

    def direct_paths(self) -> NullPaths:
        """Paths of streams drawn with replacement against the reference itself, computed just as the live ones."""

    @property
    def compares_points(self) -> bool:
        """Whether `similarity` exists."""

    def similarity(self, first: Int64Array, second: Int64Array) -> Float64Array:
        """How alike the statistic finds pairs of reference points, given by their places: a centred kernel."""

    def live(self, kept: Int64Array | None) -> Live:
        """The statistic against the reference, or against the points `kept` of it."""


class Live(Protocol):
    """A statistic at work: what it keeps of the reference. What it keeps of recent points is passed in, and changed."""

    @property
    def takes_tensors(self) -> bool:
        """Whether `observe` takes blocks that are on a GPU as they are."""

    @property
    def goes_on(self) -> bool:
        """Whether a new run goes on with the windows of the one before it (`renew`), silent until they are its own."""

    @property
    def at_once(self) -> bool:
        """Whether `enter` exists: windows move in a single compiled call, which nothing can break off half-way."""

    @property
    def channels(self) -> tuple[Channel, ...]: ...

    def observe(self, points: Points, own: Int64Array | None) -> Any:
        """Everything about new points that needs no state: the costly part, once per point.

        own: for points of the reference itself, their index in it (-1: it is not among those compared with); they are
            not compared with themselves, nor with the points of this block that are within the guard.
        """

    def leave_out(self, observed: Any, own: Int64Array, count: int) -> tuple[Any, Parts]:
        """The first `count` of these observed points, as a run begins with them, and what its reference then lacks.

        They leave the reference, and each is compared with the points that stay. own: as `observe` had them.
        """

    def lacking(self, left: Parts, observed: Any, start: int, stop: int) -> Any:
        """Observed points start..stop, compared with the reference as `leave_out` left it."""

    def due(self, left: Parts) -> Float64Array:
        """What is to be added to each channel, (channels,), as far as its window has met the reference so."""

    def begin(self, run: int) -> WindowState:
        """Empty windows. run: the number of the run, for statistics that draw at random."""

    def renew(self, state: WindowState) -> WindowState:
        """What a run begins with that goes on with these windows: others, which hold the same."""

    def advance(self, state: WindowState, observed: Any, start: int, stop: int) -> Float64Array:
        """Let observed points start..stop enter the windows; (stop - start, channels), NaN until a window is full.

        If it fails, the state may be half changed.
        """

    def enter(self, state: WindowState, point: Points, values: Float64Array) -> None:
        """Observe one point and `advance` by it, at once; its channels are left in `values`, (1, channels).

        state["position"] then says that it has entered.
        """

    def enter_lacking(self, left: Parts, state: WindowState, point: Points, values: Float64Array) -> None:
        """`enter`, compared with the reference as `leave_out` left it."""

    def parts(self) -> Parts:
        """What a file must hold to build this object again."""


@runtime_checkable
class GoingOn(Live, Protocol):
    """One whose runs go on with the windows of the run before, and learn from what rings. It stands alone."""

    def listen(self, state: WindowState, observed: Any) -> tuple[Float64Array, Int64Array]:
        """`advance` by all points: how loud the loudest channel is, (n, 1), NaN while it is silent; and which it is."""

    @property
    def has_baselines(self) -> bool:
        """Whether streams have levels of their own, which are learnt from their first rows."""

    def learns(self, state: WindowState) -> int:
        """Observations that the stream still gives for its own level; 0 once it is known, or if there is none."""

    def at_level(self, level: float, reference: Float64Array, edges: Int64Array) -> GoingOn:
        """The same, ringing at another threshold. edges: of the reference's groups."""


class Anew:
    """A live statistic that forgets what it has seen when a run begins."""

    goes_on = False

    def renew(self, state: WindowState) -> WindowState:
        raise NotImplementedError


class Cold:
    """A live statistic whose runs never begin with reference points."""

    def leave_out(self, observed: Any, own: Int64Array, count: int) -> tuple[Any, Parts]:
        raise NotImplementedError

    def lacking(self, left: Parts, observed: Any, start: int, stop: int) -> Any:
        raise NotImplementedError

    def enter_lacking(self, left: Parts, state: WindowState, point: Points, values: Float64Array) -> None:
        raise NotImplementedError

    def due(self, left: Parts) -> Float64Array:
        raise NotImplementedError


class Stepwise(Anew):
    """A live statistic whose windows take many steps of Python to move, so that each time a copy of them must."""

    at_once = False

    def enter(self, state: WindowState, point: Points, values: Float64Array) -> None:
        raise NotImplementedError

    def enter_lacking(self, left: Parts, state: WindowState, point: Points, values: Float64Array) -> None:
        raise NotImplementedError


def snapshot(state: WindowState) -> WindowState:
    """A copy that `advance` cannot reach: of arrays and lists, not of a user's objects in them."""
    return {name: value.copy() if isinstance(value, np.ndarray | list) else value for name, value in state.items()}


def choose(points: Points, indices: Int64Array) -> Points:
    """The points with these indices, as the same kind of sequence."""
    if isinstance(points, np.ndarray):
        return points[indices]
    return [points[i] for i in indices]
