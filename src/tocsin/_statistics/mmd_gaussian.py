"""MMD with Gaussian kernels on rows of numbers: the kernel matrix is computed in blocks and never stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from tocsin._common.caches import Caching
from tocsin._compute import Functions
from tocsin._compute.arrays import BoolArray, Float32Array, Float64Array, Int64Array
from tocsin._execution.threads import Threads
from tocsin._statistics.base import Anew, NullPaths, Parts, Setting, WindowState
from tocsin._statistics.kernels import ScaledPoints, middle
from tocsin._statistics.neighbours import centred, mean_pair, others
from tocsin._statistics.pairs import Family, PairPaths, PairSplitPaths, PairTerms, bootstrap_terms, direct_terms
from tocsin._statistics.without import factors, factors_of_one, met, without

PADDING = 64
"""Hot functions read whole strips of this many columns."""

NEARBY_WORK, KERNEL_WORK = 2**26, 32
"""Work that is not worth the way to a GPU, since a CPU is done with it sooner, in coordinates of pairs of points; and
what a kernel of a pair counts for."""

LIKE_PAIRS = 1.0
"""A window in which not even one pair of points is alike at some width can ring only by accident: in many dimensions
narrow widths would add false alarms that the others must make up for, and no power."""

SHORT = 256
"""Observations whose windows a CPU compares sooner than a GPU."""

TYPICAL = 1
"""The place of the median among the default widths, widest first."""

NO_TABLE = NO_WEIGHTS = np.empty((0, 0), np.float32)

NOBODY = np.full(1, -1)
"""The place in the reference of a point that is not in it."""


class PreparedGaussian:
    """The reference in float32 and the row sums of its kernel matrix (diagonal removed).

    The `default` family has only those channels whose windows hold LIKE_PAIRS pairs of points that are alike at their
    width, and those of typicality.
    """

    bootstraps = takes_blocks = True
    compares_points = True

    def __init__(
        self, points: Float64Array, widths: tuple[float, ...], setting: Setting, *, default: bool = False
    ) -> None:
        self.setting = setting
        self.scaled = ScaledPoints(middle(points), widths)
        self.points = self.scaled(points)
        self.multipliers = self.scaled.multipliers
        if setting.tensor is None:
            self._rows, self._columns = setting.compute.put(self.points), setting.compute.put(as_columns(self.points))
        else:
            from tocsin._compute.torch_rows import scaled

            rows = scaled(setting.tensor, self.scaled.centre, self.scaled.scale)
            self._rows, self._columns = rows, rows.T.contiguous()
        row_sums = self._own_row_sums(self._columns, len(points), setting.guard)
        similarity = (row_sums / others(len(points), setting.guard)).mean(1)
        self.row_sums = row_sums[self._choose_channels(similarity, default=default)]

    def _choose_channels(self, similarity: Float64Array, *, default: bool) -> Int64Array:
        """Settle the family, by the mean kernel of reference points at each width; the widths that stay."""
        windows, widths = self.setting.windows, self.scaled.widths
        heard = np.ones((len(widths), len(windows)), dtype=bool)
        if default:
            heard = _can_speak(similarity, self.setting.window_array)
        kept = np.flatnonzero(heard.any(1))
        self.scaled = ScaledPoints(self.scaled.centre, tuple(widths[i] for i in kept))
        self.multipliers = self.scaled.multipliers
        typical = min(TYPICAL, len(kept) - 1) if default else -1
        self.family = Family(windows, self.scaled.widths, np.flatnonzero(heard[kept]), typical)
        self.channels = self.family.channels
        return kept

    def split_paths(self) -> NullPaths:
        return PairSplitPaths(
            self._rows, NO_TABLE, self.multipliers, self.row_sums, self.setting.window_array, self.setting.compute,
            self.family,
        )  # fmt: skip

    def bootstrap_paths(self, weights: Float32Array, reflected: int = 0) -> NullPaths:
        compute, products = self.setting.compute, self._products(weights[:, : weights.shape[1] - reflected])
        if reflected:
            # K (2 - v) = 2 r - K v
            sums = compute.put(self.row_sums[:, :, None])
            products = compute.concatenate([products, 2 * sums - products[:, :, :reflected]], 2)
        return self._drawn(bootstrap_terms(products, self.row_sums, weights, self.setting))

    def direct_paths(self) -> NullPaths:
        guard = self.setting.guard
        everyone = self._own_row_sums(self._columns, len(self.points), guard=0) if guard else self.row_sums
        offset = mean_pair(self.row_sums, guard)
        return self._drawn(direct_terms(everyone, np.ones_like(everyone), offset, self.setting))

    def _drawn(self, terms: PairTerms) -> NullPaths:
        return PairPaths(
            self._rows, NO_TABLE, self.multipliers, terms, self.setting.window_array, self.setting.compute, self.family
        )

    def _products(self, weights: Float32Array) -> Float64Array:
        """K times the weights, at every width; (widths, N, G)."""
        compute, n = self.setting.compute, len(self.points)

        def some(start: int) -> Float64Array:
            own = np.arange(start, min(start + compute.ROWS, n))
            return compute.gaussian_products(
                self._columns, n, self._columns[:, start : start + len(own)], own, self.setting.guard,
                self.multipliers, weights,
            )  # fmt: skip

        return compute.concatenate(self.setting.map(some, range(0, n, compute.ROWS)), 1)

    def _own_row_sums(self, columns: Float32Array, count: int, guard: int) -> Float64Array:
        """sum_{|i - j| > guard} k(x_i, x_j) for every j, at every width; (widths, N)."""
        compute = self.setting.compute

        def some(start: int) -> Float64Array:
            own = np.arange(start, min(start + compute.ROWS, count))
            return compute.get(
                compute.gaussian_row_sums(
                    columns, count, columns[:, start : start + len(own)], own, guard, self.multipliers, NO_WEIGHTS
                )
            )

        return np.concatenate(self.setting.map(some, range(0, count, compute.ROWS)), axis=1)

    def similarity(self, first: Int64Array, second: Int64Array) -> Float64Array:
        """At the median width, or the widest if widths were given."""
        w = max(self.family.typical, 0)
        differences = self.points[first] - self.points[second]
        squares = np.einsum("ij,ij->i", differences, differences)
        kernel = np.exp(-squares * (self.scaled.widths[0] / self.scaled.widths[w]) ** 2)
        return centred(kernel, self._mean_kernels[w], first, second)

    @cached_property
    def _mean_kernels(self) -> Float64Array:
        return self.row_sums / others(len(self.points), self.setting.guard)

    def live(self, kept: Int64Array | None) -> GaussianLive:
        points, sums = self.points, self.row_sums
        if kept is not None:
            points = self.points[kept]
            sums = self._own_row_sums(self.setting.compute.put(as_columns(points)), len(kept), self.setting.guard)
        offset = mean_pair(sums, self.setting.guard)
        return GaussianLive(points, offset, self.scaled, self.family, self.setting.guard, self.setting.compute)


class GaussianLive(Caching, Anew):
    """S_t = A + C_t / (W (W - 1)) - 2 mean_{window} c(z), c(z) = mean_i k(x_i, z): one kernel row a step."""

    weights: Float32Array = NO_WEIGHTS
    """Of the points, (widths, N), where c is not their plain mean."""

    def __init__(
        self,
        points: Float32Array,
        offset: Float64Array,
        scaled: ScaledPoints,
        family: Family,
        guard: int,
        compute: Functions,
    ) -> None:
        self.channels, windows = family.channels, family.windows
        self.points, self.offset, self.scaled, self.family, self.guard = points, offset, scaled, family, guard
        self.compute, self._nearby, self.scale = compute, compute.nearby, scaled.scale
        self.executor = Threads(1 if compute.backend == "torch" else None)  # PyTorch spreads its own work
        self.windows, self.multipliers = np.array(windows, dtype=np.int64), scaled.multipliers
        self._columns = as_columns(points)
        self._few = NEARBY_WORK // (len(points) * (points.shape[1] + KERNEL_WORK * len(scaled.widths)))
        self.at_once = self._nearby.backend == "numba" and (self._few > 0 or not compute.on_gpu)
        self.takes_tensors = compute.on_gpu  # blocks that are there already stay there

    def observe(self, points: Float64Array, own: Int64Array | None) -> tuple[Float32Array, Float64Array]:
        count, compute, columns = len(points), self.compute, self._columns_on_device
        places = own if own is not None else np.full(count, -1)
        if self.takes_tensors and count <= self._few and isinstance(points, np.ndarray):
            compute, columns = self._nearby, self._columns

        def compared(some: Float64Array, own: Int64Array) -> tuple[Float32Array, Float64Array]:
            return compute.gaussian_observe(
                columns, len(self.points), some, self.scaled.centre, self.scale, own, self.guard, self.multipliers,
                self.weights,
            )  # fmt: skip

        if count <= compute.ROWS:
            return compared(points, places)
        pieces = [slice(start, start + compute.ROWS) for start in range(0, count, compute.ROWS)]
        blocks, linear = zip(
            *self.executor.map(lambda piece: compared(points[piece], places[piece]), pieces), strict=True
        )
        return compute.concatenate(blocks, 1), compute.concatenate(linear, 1)

    @cached_property
    def _columns_on_device(self) -> Float32Array:
        return self.compute.put(self._columns)

    @property
    def compared(self) -> int:
        """How many reference points there are."""
        return len(self.points)

    def leave_out(
        self, observed: tuple[Float32Array, Float64Array], own: Int64Array, count: int
    ) -> tuple[tuple[Float32Array, Float64Array], Parts]:
        block, linear = (np.ascontiguousarray(self.compute.get(part)[:, :count]) for part in observed)
        own, columns = own[:count], as_columns(block.T)
        sums, offset = self._met(columns, block, own), self.offset
        inside, (linear, moved) = own >= 0, without(linear, sums, own, offset, self.compared, self.guard)
        left = {"points": as_columns(block[:, inside].T), "count": int(inside.sum()), "moved": moved}
        put = self._nearby.put
        return (put(block), put(linear + moved[:, None])), left

    def _met(self, columns: Float32Array, block: Float32Array, own: Int64Array) -> Float64Array:
        """Of each point of a block, the sum of its kernels with those of the block that leave what it is compared with.

        columns: the block, padded.
        """
        count, widths = len(own), len(self.multipliers)
        if self.guard == 0 and (own >= 0).all():
            return self._sums(columns, count, block, np.arange(count))
        leaving = met(own, self.guard).astype(np.float32)
        weights = [np.tile(leaving[:, j], (widths, 1)) for j in range(count)]
        each = [self._sums(columns, count, block[:, j : j + 1], NOBODY, weights[j]) for j in range(count)]
        return np.concatenate(each, axis=1)

    def _sums(
        self,
        columns: Float32Array,
        count: int,
        block: Float32Array,
        own: Int64Array,
        weights: Float32Array = NO_WEIGHTS,
    ) -> Float64Array:
        """Of each point of a block, the sum of its kernels with these few."""
        if not count:
            return np.zeros((len(self.multipliers), block.shape[1]))
        put = self._nearby.put
        return self._nearby.get(
            self._nearby.gaussian_row_sums(put(columns), count, put(block), own, 0, self.multipliers, weights)
        )

    def lacking(
        self, left: Parts, observed: tuple[Float32Array, Float64Array], start: int, stop: int
    ) -> tuple[Float32Array, Float64Array]:
        block, linear = (np.ascontiguousarray(self.compute.get(part[:, start:stop])) for part in observed)
        sums = self._sums(left["points"], left["count"], block, np.full(stop - start, -1))
        own, leaving = factors(self.compared, left["count"])
        put = self._nearby.put
        return put(block), put(own * linear + leaving * sums + left["moved"][:, None])

    def due(self, left: Parts) -> Float64Array:
        return self.family.due(left["moved"])

    def begin(self, run: int) -> WindowState:
        capacity, widths = 4 * int(self.windows[-1]), len(self.multipliers)
        return {
            "buffer": np.zeros((self.points.shape[1], capacity + PADDING), np.float32),
            "ahead": np.zeros((widths, capacity), np.float32),
            "linear": np.zeros((widths, capacity)),
            "position": np.zeros(1, np.int64),
        }

    def advance(
        self, state: WindowState, observed: tuple[Float32Array, Float64Array], start: int, stop: int
    ) -> Float64Array:
        here = isinstance(observed[0], np.ndarray)
        if self.takes_tensors and not here and stop - start <= SHORT:
            block, linear = (np.ascontiguousarray(self.compute.get(part[:, start:stop])) for part in observed)
            observed, here, start, stop = (block, linear), True, 0, stop - start
        compute = self._nearby if here else self.compute
        return compute.pair_advance(
            state["buffer"], state["ahead"], state["linear"], state["position"], self.windows, self.multipliers,
            self.offset, self.family.typical, self.family.places, self.family.signs, *observed, start, stop,
        )  # fmt: skip

    def enter(self, state: WindowState, point: Float64Array, values: Float64Array) -> None:
        self._step(point, state["buffer"], state["ahead"], state["linear"], state["position"], values)

    def enter_lacking(self, left: Parts, state: WindowState, point: Float64Array, values: Float64Array) -> None:
        gone, size, moved = left["points"], left["count"], left["moved"]
        own, leaving = factors_of_one(self.compared, size)
        windows = state["buffer"], state["ahead"], state["linear"], state["position"]
        self._step_lacking(point, gone, size, own, leaving, moved, *windows, values)

    @cached_property
    def _step(self) -> Callable[..., None]:
        """`pair_step` against this reference."""
        return partial(self._nearby.pair_step, *self._never_changes)

    @cached_property
    def _step_lacking(self) -> Callable[..., None]:
        return partial(self._nearby.pair_step_lacking, *self._never_changes)

    @property
    def _never_changes(self) -> tuple[Any, ...]:
        """What need not be looked up at every observation."""
        return (
            self._columns, len(self.points), self.scaled.centre, self.scale, self.multipliers, self.weights,
            self.windows, self.offset, self.family.typical, self.family.places, self.family.signs,
        )  # fmt: skip

    def parts(self) -> Parts:
        return {
            "kind": "gaussian",
            "points": self.points,
            "offset": self.offset,
            "centre": self.scaled.centre,
            "widths": list(self.scaled.widths),
            "heard": self.family.heard,
            "typical": self.family.typical,
            "guard": self.guard,
        }

    @classmethod
    def restore(cls, parts: Parts, windows: tuple[int, ...], compute: Functions) -> GaussianLive:
        scaled = ScaledPoints(parts["centre"], tuple(parts["widths"]))
        family = Family(windows, scaled.widths, parts["heard"], parts["typical"])
        return cls(parts["points"], parts["offset"], scaled, family, parts["guard"], compute)


def as_columns(points: Float32Array) -> Float32Array:
    """(d, N) with padding, so that strips of columns can be read whole."""
    n, d = points.shape
    columns = np.zeros((d, -(-n // PADDING) * PADDING), np.float32)
    columns[:, :n] = points.T
    return columns


def _can_speak(similarity: Float64Array, windows: Int64Array) -> BoolArray:
    """Which channels to follow, (widths, windows): those whose windows hold LIKE_PAIRS pairs of similar points.

    similarity: the mean kernel between reference points, at each width.
    """
    pairs = windows * (windows - 1) / 2
    heard: BoolArray = similarity[:, None] * pairs >= LIKE_PAIRS
    heard[0] = True  # the widest width always stays, so that every window has a channel
    return heard
