"""MMD with a user's own kernel, on observations of any type."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tocsin._common.errors import InputError
from tocsin._common.wording import shown
from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._statistics.base import Channel, NullPaths, Parts, Points, Setting, Stepwise, WindowState, choose
from tocsin._statistics.kernels import Kernel
from tocsin._statistics.neighbours import centred, mean_pair, others
from tocsin._statistics.pairs import PairPaths, PairSplitPaths, PairTerms, bootstrap_terms, direct_terms
from tocsin._statistics.without import factors, met, without

LARGEST = 20_000
"""A function cannot be compiled into the simulation, so its kernel matrix is kept while fitting: 4 N^2 bytes."""


class PreparedCallable:
    """The kernel matrix of the reference, diagonal removed. Only the fit holds it."""

    bootstraps = takes_blocks = True
    compares_points = True

    def __init__(self, points: Points, kernel: Kernel, setting: Setting) -> None:
        if len(points) > LARGEST:
            raise InputError(
                f"A reference of {len(points)} points is too large for a kernel function of your own: at most "
                f"{LARGEST}, since fitting evaluates it on every pair. Fit on a random part of the reference."
            )
        self.setting, self.kernel, self.points = setting, kernel, points
        self.channels = _channels(setting.windows)
        self.table = np.empty((len(points), len(points)), np.float32)
        for start in range(0, len(points), 256):
            rows = choose(points, np.arange(start, min(start + 256, len(points))))
            self.table[start : start + 256] = evaluate(kernel, rows, points)
        if not np.allclose(self.table, self.table.T, rtol=1e-4, atol=1e-6 * float(np.abs(self.table).max())):
            raise InputError(
                "The kernel is not symmetric: k(x, y) and k(y, x) differ for some reference points. A discrepancy of "
                "means needs k(x, y) = k(y, x); use the mean of the two."
            )
        self.diagonal = np.diag(self.table).astype(np.float64)[None]
        np.fill_diagonal(self.table, 0)
        self.row_sums = _without_neighbours(self.table, setting.guard).sum(1, dtype=np.float64)[None]
        self._table = setting.compute.put(self.table)
        self._no_points = setting.compute.put(np.zeros((len(points), 1), np.float32))
        self._one_width = np.ones(1, np.float32)

    def split_paths(self) -> NullPaths:
        setting = self.setting
        return PairSplitPaths(
            self._no_points, self._table, self._one_width, self.row_sums, setting.window_array, setting.compute
        )

    def bootstrap_paths(self, weights: Float32Array, reflected: int = 0) -> NullPaths:
        compute, counts = self.setting.compute, self.setting.compute.get(weights)
        products = (_without_neighbours(self.table, self.setting.guard) @ counts).astype(np.float64)[None]
        terms = bootstrap_terms(compute.put(products), self.row_sums, weights, self.setting)
        return self._drawn(terms)

    def direct_paths(self) -> NullPaths:
        everyone = self.table.sum(1, dtype=np.float64)[None]
        offset = mean_pair(self.row_sums, self.setting.guard)
        return self._drawn(direct_terms(everyone, self.diagonal, offset, self.setting))

    def _drawn(self, terms: PairTerms) -> NullPaths:
        setting = self.setting
        return PairPaths(self._no_points, self._table, self._one_width, terms, setting.window_array, setting.compute)

    def similarity(self, first: Int64Array, second: Int64Array) -> Float64Array:
        kernel = np.where(first == second, self.diagonal[0][first], self.table[first, second])
        return centred(kernel, self._mean_kernels, first, second)

    @cached_property
    def _mean_kernels(self) -> Float64Array:
        return np.asarray(self.row_sums[0] / others(len(self.points), self.setting.guard))

    def live(self, kept: Int64Array | None) -> CallableLive:
        points, sums, guard = self.points, self.row_sums, self.setting.guard
        if kept is not None:
            points, table = choose(points, kept), self.table[np.ix_(kept, kept)]
            sums = _without_neighbours(table, guard).sum(1, dtype=np.float64)[None]
        return CallableLive(points, float(mean_pair(sums, guard)[0]), self.kernel, self.setting.windows, guard)


class CallableLive(Stepwise):
    """As `GaussianLive`, calling the user's kernel."""

    takes_tensors = False

    def __init__(self, reference: Points, offset: float, kernel: Kernel, windows: tuple[int, ...], guard: int) -> None:
        self.reference, self.offset, self.kernel, self.guard = reference, offset, kernel, guard
        self.channels = _channels(windows)
        self._windows = windows

    def observe(self, points: Points, own: Int64Array | None) -> tuple[Points, Float64Array]:
        kernels = evaluate(self.kernel, points, self.reference)
        met = np.full(len(points), len(self.reference))
        if own is not None:
            close = (np.abs(np.arange(len(self.reference)) - own[:, None]) <= self.guard) & (own >= 0)[:, None]
            kernels[close] = 0
            met -= close.sum(1)
        return points.copy() if isinstance(points, np.ndarray) else points, -2 * kernels.sum(1) / met

    def leave_out(
        self, observed: tuple[Points, Float64Array], own: Int64Array, count: int
    ) -> tuple[tuple[Points, Float64Array], Parts]:
        points, linear, own = observed[0][:count], observed[1][None, :count], own[:count]
        kernels = np.where(met(own, self.guard), evaluate(self.kernel, points, points), 0.0).sum(0)[None]
        linear, moved = without(linear, kernels, own, np.array([self.offset]), len(self.reference), self.guard)
        left = {"points": choose(points, np.flatnonzero(own >= 0)), "moved": float(moved[0])}
        return (points, linear[0] + moved), left

    def lacking(
        self, left: Parts, observed: tuple[Points, Float64Array], start: int, stop: int
    ) -> tuple[Points, Float64Array]:
        points, linear, gone = observed[0][start:stop], observed[1][start:stop], left["points"]
        kernels = evaluate(self.kernel, points, gone).sum(1) if len(gone) else np.zeros(len(points))
        own, leaving = factors(len(self.reference), len(gone))
        return points, own * linear + leaving * kernels + left["moved"]

    def due(self, left: Parts) -> Float64Array:
        return np.zeros(len(self.channels))

    def begin(self, run: int) -> WindowState:
        return {"recent": [], "ahead": np.empty(0), "linear": np.empty(0)}

    def advance(self, state: WindowState, observed: tuple[Points, Float64Array], start: int, stop: int) -> Float64Array:
        points, linear = observed
        out = np.full((stop - start, len(self.channels)), np.nan)
        recent, ahead, means = list(state["recent"]), state["ahead"], state["linear"]
        for i in range(start, stop):
            last = slice(-(self._windows[-1] - 1), None)
            recent, ahead, means = recent[last], ahead[last], means[last]
            if recent:
                window = np.asarray(recent) if isinstance(points, np.ndarray) else recent
                ahead = ahead + evaluate(self.kernel, window, points[i : i + 1])[:, 0]
            recent = [*recent, points[i]]
            ahead, means = np.append(ahead, 0.0), np.append(means, linear[i])
            for v, size in enumerate(self._windows):
                if len(recent) >= size:
                    pairs = 2 * ahead[-size:].sum() / (size * (size - 1))
                    out[i - start, v] = self.offset + pairs + means[-size:].mean()
        state["recent"] = np.asarray(recent) if isinstance(self.reference, np.ndarray) else recent
        state["ahead"], state["linear"] = ahead, means
        return out

    def parts(self) -> Parts:
        return {"kind": "callable", "reference": self.reference, "offset": self.offset, "guard": self.guard}


def evaluate(kernel: Kernel, rows: Points, columns: Points) -> Float64Array:
    """kernel(rows, columns), checked."""
    given = kernel(rows, columns)
    try:
        matrix = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"The kernel returned a {type(given).__name__}, {shown(given)}, which is no matrix of numbers; k(X, Y) "
            "must return the matrix of k(x, y), one row per x and one column per y."
        ) from error
    if matrix.shape != (len(rows), len(columns)):
        raise InputError(
            f"The kernel returned an array of shape {matrix.shape} for {len(rows)} and {len(columns)} observations; "
            "k(X, Y) must return the matrix of k(x, y), one row per x and one column per y."
        )
    if not np.isfinite(matrix).all():
        raise InputError("The kernel returned NaN or infinity; it must be finite on every pair of observations.")
    return matrix


def _without_neighbours(table: Float32Array, guard: int) -> Float32Array:
    """The kernel matrix without its `guard` diagonals on either side of the main one, which is empty already."""
    return table if guard == 0 else np.triu(table, guard + 1) + np.tril(table, -guard - 1)


def _channels(windows: tuple[int, ...]) -> tuple[Channel, ...]:
    return tuple(Channel("MMD", window) for window in windows)
