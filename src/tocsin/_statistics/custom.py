"""Any two-sample function as a statistic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tocsin._common.errors import InputError, Option
from tocsin._common.wording import shown
from tocsin._compute import Functions
from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._samplers import Streams
from tocsin._statistics.base import (
    Channel,
    Live,
    NullPaths,
    Parts,
    Points,
    Prepared,
    Setting,
    Stepwise,
    WindowState,
    choose,
)
from tocsin._statistics.features import in_units

Distance = Callable[[Any, Any], float]
"""D(reference points, window points): larger when they look less alike."""

LARGEST = 1e38
"""Values are cut off here, within float32."""


@dataclass(frozen=True)
class Custom:
    """A statistic of your own: any function D(X, Y) of reference points X and window points Y.

    Nothing is known of D, so it is computed anew at each step, and null streams are drawn from points that leave the
    reference: the detector then compares with those that remain.

    >>> import numpy as np
    >>> statistic = Custom(lambda X, Y: abs(np.median(X) - np.median(Y)), label="median")
    >>> statistic.name
    'median'
    """

    function: Distance
    label: str = "Custom"

    def check(self) -> None:
        if not callable(self.function):
            raise InputError(
                Option("function", self.function, of="Custom"),
                ": give a function D(X, Y) of reference points and window points that returns a number.",
            )

    @property
    def name(self) -> str:
        return self.label

    @property
    def takes_objects(self) -> bool:
        return True

    def holds_out(self, count: int, windows: tuple[int, ...]) -> int:
        return 0

    def prepare(self, points: Points, held_out: Points, setting: Setting) -> Prepared:
        return PreparedCustom(points, self, setting)

    def restore(self, parts: Parts, windows: tuple[int, ...], compute: Functions) -> Live:
        return CustomLive(parts["reference"], self, windows)

    def __call__(self, reference: Points, window: Points) -> float:
        given = self.function(reference, window)
        try:
            value = float(given)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"The function of {self.name} returned a {type(given).__name__}, {shown(given)}; it must return a "
                "finite number."
            ) from error
        if not np.isfinite(value):
            raise InputError(f"The function of {self.name} returned {value}; it must return a finite number.")
        # Null paths are kept in float32; so is the path that is compared with their quantiles.
        return float(np.float32(min(max(value, -LARGEST), LARGEST)))


class PreparedCustom:
    """The reference points, to be handed to the function."""

    bootstraps, takes_blocks = False, True

    def __init__(self, points: Points, statistic: Custom, setting: Setting) -> None:
        self.points, self.statistic, self.setting = points, statistic, setting
        self.channels = tuple(Channel(statistic.name, window) for window in setting.windows)
        self.compares_points = isinstance(points, np.ndarray)

    def bootstrap_paths(self, weights: Float32Array, reflected: int = 0) -> NullPaths:
        raise NotImplementedError("a function of two samples cannot leave a point out of a comparison with itself")

    def split_paths(self) -> NullPaths:
        return CustomPaths(self.points, self.statistic, self.setting.windows, self.setting.compute, split=True)

    def direct_paths(self) -> NullPaths:
        return CustomPaths(self.points, self.statistic, self.setting.windows, self.setting.compute, split=False)

    def similarity(self, first: Int64Array, second: Int64Array) -> Float64Array:
        """Nothing is known of the function; rows of numbers are compared by their columns, each at its own scale."""
        products: Float64Array = (self._standardised[first] * self._standardised[second]).sum(1)
        return products

    @cached_property
    def _standardised(self) -> Float64Array:
        points, _ = in_units(self.points)
        spread = points.std(0)
        return np.asarray((points - points.mean(0)) / np.where(spread > 0, spread, 1))

    def live(self, kept: Int64Array | None) -> CustomLive:
        points = self.points if kept is None else choose(self.points, kept)
        return CustomLive(points, self.statistic, self.setting.windows)


@dataclass(frozen=True, eq=False)
class CustomPaths:
    """Null paths against all points, or (split) against those that a stream leaves out."""

    points: Points
    statistic: Custom
    windows: tuple[int, ...]
    compute: Functions
    split: bool

    def __call__(self, streams: Streams) -> Float32Array:
        drawn, windows = self.compute.get(streams.points).astype(np.int64), self.windows
        count, length = drawn.shape
        out = np.empty((len(windows), count, length - windows[-1] + 1), np.float32)
        for p, stream in enumerate(drawn):
            compared, arrivals = self._compared(stream), choose(self.points, stream)
            for v, window in enumerate(windows):
                for test in range(out.shape[2]):
                    end = test + windows[-1]
                    out[v, p, test] = self.statistic(compared, arrivals[end - window : end])
        return out

    def _compared(self, stream: Int64Array) -> Points:
        return choose(self.points, np.delete(np.arange(len(self.points)), stream)) if self.split else self.points


class CustomLive(Stepwise):
    """The function, computed anew at each step."""

    takes_tensors = False

    def __init__(self, reference: Points, statistic: Custom, windows: tuple[int, ...]) -> None:
        self.reference, self.statistic, self._windows = reference, statistic, windows
        self.channels = tuple(Channel(statistic.name, window) for window in windows)

    def observe(self, points: Points, own: Int64Array | None) -> tuple[Points, list[int]]:
        places = [-1] * len(points) if own is None else own.tolist()
        return points.copy() if isinstance(points, np.ndarray) else points, places

    def leave_out(
        self, observed: tuple[Points, list[int]], own: Int64Array, count: int
    ) -> tuple[tuple[Points, list[int]], Parts]:
        """Points of the reference leave it for as long as they are in the window anyway."""
        return observed, {}

    def lacking(
        self, left: Parts, observed: tuple[Points, list[int]], start: int, stop: int
    ) -> tuple[Points, list[int]]:
        return observed[0][start:stop], observed[1][start:stop]

    def due(self, left: Parts) -> Float64Array:
        return np.zeros(len(self.channels))

    def begin(self, run: int) -> WindowState:
        return {"recent": [], "own": []}

    def advance(self, state: WindowState, observed: tuple[Points, list[int]], start: int, stop: int) -> Float64Array:
        points, places = observed
        numeric = isinstance(self.reference, np.ndarray)
        out = np.full((stop - start, len(self.channels)), np.nan)
        recent, own = list(state["recent"]), state["own"]
        for i in range(start, stop):
            recent = [*recent, points[i]][-self._windows[-1] :]
            own = [*own, places[i]][-self._windows[-1] :]
            for v, window in enumerate(self._windows):
                if len(recent) >= window:
                    arrivals = recent[-window:]
                    compared = self._without(own[-window:])
                    out[i - start, v] = self.statistic(compared, np.asarray(arrivals) if numeric else arrivals)
        state["recent"], state["own"] = np.asarray(recent) if numeric else recent, own
        return out

    def _without(self, own: list[int]) -> Points:
        """The reference, without the points that are themselves in the window (after a warm start)."""
        present = [place for place in own if place >= 0]
        if not present:
            return self.reference
        return choose(self.reference, np.delete(np.arange(len(self.reference)), present))

    def parts(self) -> Parts:
        return {"reference": self.reference}
