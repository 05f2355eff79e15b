"""Statistics that compare two mean features: O(m) a step, whatever the size of the reference.

With psi(z) an explicit feature, D = |mean psi(window) - mean psi(reference)|^2, or, signed, the difference itself.
LSDD and the mean difference are of this kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tocsin._compute import Functions
from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._samplers import Streams
from tocsin._statistics.base import Anew, Channel, NullPaths, Parts, Setting, WindowState
from tocsin._statistics.neighbours import near, near_products, others
from tocsin._statistics.without import away

LARGEST = 1e140
"""Features are cut off here: an absurd observation is heard, and its square stays finite."""


MODERATE = 1e140
"""Numbers up to this, and down to its inverse, have squares."""


def in_units(points: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Points whose columns have squares, and the unit of each: 1, but for columns of enormous or minute numbers."""
    largest = np.abs(points).max(0)
    extreme = (largest > MODERATE) | ((largest > 0) & (largest < 1 / MODERATE))
    units = np.where(extreme, largest, 1.0)
    return points / units, units


class FeatureMap(Protocol):
    """Points (n, d) to features (n, m), row by row: a row's features do not depend on the others in its block."""

    def __call__(self, points: Float64Array) -> Float64Array: ...


@dataclass(frozen=True)
class Features:
    """A feature map, and how its means are compared.

    parts: what a file must hold to make the map again.
    """

    name: str
    map: FeatureMap
    signed: bool
    parts: Parts


class PreparedFeatures:
    """The features of the reference, centred."""

    bootstraps = takes_blocks = True
    compares_points = True

    def __init__(self, points: Float64Array, features: Features, setting: Setting) -> None:
        self.setting, self.features = setting, features
        values = features.map(points)
        self.centre = values.mean(0)
        self.values = values - self.centre
        self._values = setting.compute.put(self.values)
        self.channels = tuple(Channel(features.name, window) for window in setting.windows)

    def split_paths(self) -> NullPaths:
        return FeatureSplitPaths(self._values, self.features.signed, self.setting.window_array, self.setting.compute)

    def bootstrap_paths(self, weights: Float32Array, reflected: int = 0) -> NullPaths:
        """As `mmd_gaussian.bootstrap_terms` with the kernel psi(x)'psi(y), and the diagonal that a square includes."""
        weights = self.setting.compute.get(weights)
        values, counts, signed = self.values, weights.astype(np.float64), self.features.signed
        n, guard = len(values), self.setting.guard
        norms = (values**2).sum(1)
        sums, close = values.T @ counts, near(weights, guard)  # (m, G), (N, G)
        if signed:
            total = values.sum(1)
            linear = total[:, None] - (sums.sum(0) - near(total[:, None] * counts, guard)) / (n - close)
            offset = np.zeros(weights.shape[1])
        else:
            products = values @ sums - near_products(values, counts, guard)
            linear = -2 * products / (n - close)
            own = (counts * norms[:, None]).sum(0)
            apart = (counts * products).sum(0)
            offset = ((n**2 - n) * apart / (n**2 - (counts * close).sum(0)) + own) / n**2
        # Centred features sum to 0: row sums of the kernel are minus what the guard leaves out, |psi|^2 at least.
        mean = -near_products(values, np.ones((n, 1)), guard)[:, 0] / others(n, guard)
        excess = (2 * mean - mean.mean()) - norms
        return self._drawn(excess, offset, np.ascontiguousarray(linear.T))

    def direct_paths(self) -> NullPaths:
        linear = self.values.sum(1) if self.features.signed else np.zeros(len(self.values))
        return self._drawn(np.zeros(len(self.values)), np.zeros(1), linear[None])

    def _drawn(self, excess: Float64Array, offset: Float64Array, linear: Float64Array) -> NullPaths:
        setting, put = self.setting, self.setting.compute.put
        return FeaturePaths(
            self._values, self.features.signed, put(excess), put(offset), put(linear), setting.window_array,
            setting.compute,
        )  # fmt: skip

    def similarity(self, first: Int64Array, second: Int64Array) -> Float64Array:
        products: Float64Array = (self.values[first] * self.values[second]).sum(1)
        return products

    def live(self, kept: Int64Array | None) -> FeatureLive:
        if kept is None:
            centre, count = self.centre, len(self.values)
        else:
            centre, count = self.centre + self.values[kept].mean(0), len(kept)
        return FeatureLive(self.features, centre, count, self.setting.windows, self.setting.guard, self.setting.compute)


@dataclass(frozen=True, eq=False)
class FeaturePaths:
    """Null paths against pseudo-references or the reference itself.

    values (N, m): the features, centred; excess (N,), offset (G,), linear (G, N): what a path adds to their means.
    """

    values: Float64Array
    signed: bool
    excess: Float64Array
    offset: Float64Array
    linear: Float64Array
    windows: Int64Array
    compute: Functions

    def __call__(self, streams: Streams) -> Float32Array:
        return self.compute.feature_bootstrap_paths(
            self.values, streams.points, streams.copies, self.windows, self.excess, self.offset, self.linear,
            0.0 if self.signed else 1.0,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class FeatureSplitPaths:
    """Null paths against the points that a stream leaves out."""

    values: Float64Array
    signed: bool
    windows: Int64Array
    compute: Functions

    def __call__(self, streams: Streams) -> Float32Array:
        return self.compute.feature_split_paths(self.values, streams.points, self.windows, self.signed)


class FeatureLive(Anew):
    """|mean of the window's features|^2, the features centred at the reference's mean."""

    takes_tensors = False

    def __init__(
        self,
        features: Features,
        centre: Float64Array,
        count: int,
        windows: tuple[int, ...],
        guard: int,
        compute: Functions,
    ) -> None:
        self.features, self.centre, self.count, self.guard = features, centre, count, guard
        self.channels = tuple(Channel(features.name, window) for window in windows)
        self._compute, self._windows = compute, np.array(windows, dtype=np.int64)
        self.at_once = compute.backend != "numpy"  # PyTorch leaves live features to Numba

    def observe(self, points: Float64Array, own: Int64Array | None) -> tuple[Float64Array, Float64Array]:
        values = np.clip(self.features.map(points) - self.centre, -LARGEST, LARGEST)
        linear = values.sum(1) if self.features.signed else np.zeros(len(values))
        if own is not None:
            # Without point j the centred reference's mean is -psi_j / (N - 1); with a guard, its neighbours go too.
            close = (np.abs(own[:, None] - own) <= self.guard) & (own >= 0)[:, None] & (own >= 0)
            left_out = close @ values
            apart = left_out.sum(1) if self.features.signed else 2 * (values * left_out).sum(1)
            linear = linear + apart / (self.count - close.sum(1))
        return values, linear

    def leave_out(
        self, observed: tuple[Float64Array, Float64Array], own: Int64Array, count: int
    ) -> tuple[tuple[Float64Array, Float64Array], Parts]:
        """With a guard, points that are near those that a run begins with come after them: each leaves them out too."""
        values, first, inside = observed[0], observed[0][:count], own >= 0
        gone = inside & (np.arange(len(own)) < count)
        weights = away(self.count, int(gone.sum())) * gone
        close = (np.abs(own[:count, None] - own) <= self.guard) & inside[:count, None] & inside
        centre = self._centre_without(weights[None], values)[0]
        own_centres = self._centre_without(np.where(close, 1.0, weights), values)
        return (first, self._linear(first, centre, own_centres)), {"centre": centre}

    def _centre_without(self, gone: Float64Array, values: Float64Array) -> Float64Array:
        """The mean of the centred reference without these parts of the values, for each row of `gone`."""
        return np.asarray(-(gone @ values) / (self.count - gone.sum(1))[:, None])

    def _linear(self, values: Float64Array, centre: Float64Array, met: Float64Array) -> Float64Array:
        """What points bring along where the mean of the reference is not 0 but this centre; met: of each, or of all."""
        if self.features.signed:
            return np.asarray((values - met).sum(1))
        return np.asarray((centre**2).sum() - 2 * (values * met).sum(1))

    def lacking(
        self, left: Parts, observed: tuple[Float64Array, Float64Array], start: int, stop: int
    ) -> tuple[Float64Array, Float64Array]:
        values, centre = observed[0][start:stop], left["centre"]
        return values, self._linear(values, centre, centre)

    def due(self, left: Parts) -> Float64Array:
        return np.zeros(len(self.channels))

    def begin(self, run: int) -> WindowState:
        features, windows, widest = len(self.centre), len(self._windows), int(self._windows[-1])
        return {
            "buffer": np.zeros((4 * widest, features)),
            "linear": np.zeros(4 * widest),
            "tails": np.zeros((windows, widest + 1, features)),
            "fresh": np.zeros((windows, features)),
            "age": np.zeros(windows, np.int64),
            "position": np.zeros(1, np.int64),
        }

    def advance(
        self, state: WindowState, observed: tuple[Float64Array, Float64Array], start: int, stop: int
    ) -> Float64Array:
        out = np.empty((stop - start, len(self.channels)))
        self._advance(state, observed, start, stop, out)
        return out

    def _advance(
        self, state: WindowState, observed: tuple[Float64Array, Float64Array], start: int, stop: int, out: Float64Array
    ) -> None:
        self._compute.feature_advance(
            state["buffer"], state["linear"], state["tails"], state["fresh"], state["age"], state["position"],
            self._windows, 0.0 if self.features.signed else 1.0, *observed, start, stop, out,
        )  # fmt: skip

    def enter(self, state: WindowState, point: Float64Array, values: Float64Array) -> None:
        self._advance(state, self.observe(point, None), 0, 1, values)

    def enter_lacking(self, left: Parts, state: WindowState, point: Float64Array, values: Float64Array) -> None:
        self._advance(state, self.lacking(left, self.observe(point, None), 0, 1), 0, 1, values)

    def parts(self) -> Parts:
        return {"centre": self.centre, "count": self.count, "guard": self.guard, "features": self.features.parts}

    @classmethod
    def restore(cls, features: Features, parts: Parts, windows: tuple[int, ...], compute: Functions) -> FeatureLive:
        """The object that `parts` describes."""
        return cls(features, parts["centre"], parts["count"], windows, parts["guard"], compute)
