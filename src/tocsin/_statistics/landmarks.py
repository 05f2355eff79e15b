"""MMD on a big reference: landmarks speak for its points, so that a step costs the same however many there are.

Of S = A + (pairs within the window) - 2 mean c(z), only c(z) = mean_i k(x_i, z) has to do with all reference points. In
its place stands

    c~(z) = sum_l w_l k(l, z),   w = u + (K + ridge)^-1 (c(L) - K u),   u = 1/m,

with m landmarks L, K their kernel matrix, and c(L) the exact means at the landmarks: kernel ridge regression of c from
its values there, around what the landmarks' own mean would give. The pairs within the window stay exact.

Landmarks are taken out of the reference. Were they in it, null streams would hold points at which c~ is exact, and live
ones do not: false alarms would come a tenth too often.

c~ is linear in the reference, c~(z) = b(z) + mean_i k~(x_i, z) with k~(x, y) = k(x, L) (K + ridge)^-1 k(L, y). So
pseudo-references are weighted means as ever, and a point leaves itself out by leaving out its own share k~(x, x).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tocsin._common.checks import is_whole
from tocsin._common.errors import InputError, Option
from tocsin._compute import Functions
from tocsin._compute.arrays import Array, Float32Array, Float64Array, Int64Array
from tocsin._statistics.base import NullPaths, Parts, Setting
from tocsin._statistics.kernels import ScaledPoints, middle
from tocsin._statistics.mmd_gaussian import NO_WEIGHTS, GaussianLive, PreparedGaussian, as_columns
from tocsin._statistics.neighbours import near
from tocsin._statistics.pairs import Family, PairTerms

FEWEST_PER_LANDMARK = 4
"""Reference points for each landmark, at least: with fewer there is little to gain, and much of the reference lost."""

CHECKS = 512
"""Reference points at which c~ is compared with c."""

PROBES = 64
"""Random signs by which own shares are estimated. They weigh one N-th of a point's mean: no need to know them well."""


@dataclass(frozen=True)
class Landmarks:
    """Compare observations with `count` landmarks instead of all reference points.

    Landmarks are chosen at random and leave the reference; their weights are fitted to all the others. Needs four times
    as many reference points, or more, and observations that do not depend on those before them.

    >>> Landmarks(500)
    Landmarks(count=500)
    """

    count: int = 1000

    def check(self) -> None:
        """Refuse what is no number of landmarks."""
        if not is_whole(self.count, 1):
            raise InputError(
                Option("count", self.count, of="Landmarks"), ": at least one landmark is needed, a whole number."
            )

    def holds_out(self, count: int) -> int:
        """How many of `count` reference points are landmarks: always as many as were asked for."""
        least = FEWEST_PER_LANDMARK * self.count
        if count < least:
            raise InputError(
                Option("count", self.count, of="Landmarks"),
                f" asks for a reference of {least:,} points or more, and it has {count:,}: landmarks leave it, and the "
                "others tell their weights. Give fewer, or leave ",
                Option("approximation", ...),
                " out: on small references the exact statistic costs little.",
            )
        return int(self.count)


class PreparedLandmarks(PreparedGaussian):
    """The reference, its landmarks, and what these make of every reference point."""

    takes_blocks = False
    """Landmarks are neighbours in time of points that null streams hold, and of none that live ones do."""

    def __init__(
        self,
        points: Float64Array,
        landmarks: Float64Array,
        widths: tuple[float, ...],
        setting: Setting,
        *,
        default: bool = False,
    ) -> None:
        from tocsin._statistics.ridge import choose_solvers  # scipy is slow to import, and needed by fits alone

        self.setting, self._count, put = setting, len(points), setting.compute.put
        self.scaled = ScaledPoints(middle(points), widths)
        self.multipliers = self.scaled.multipliers
        self.points, self.landmarks = self.scaled(points), self.scaled(landmarks)
        self._rows, self._columns = put(self.points), put(as_columns(self.points))
        self._landmark_columns = put(as_columns(self.landmarks))
        means = self._sums(self._columns, self._count, self._landmark_columns[:, : len(landmarks)]) / self._count
        means = means[self._choose_channels(means.mean(1), default=default)]
        checked = np.sort(setting.rng.choice(self._count, min(CHECKS, self._count), replace=False))
        exact = self._sums(self._columns, self._count, put(self.points[checked].T.copy()), checked) / (self._count - 1)
        self._solvers = choose_solvers(self.landmarks, self.points[checked], self.scaled.widths, means, exact)
        weights = [solver.base + solver(mean) for solver, mean in zip(self._solvers, means, strict=True)]
        self.weights = np.array(weights, dtype=np.float32)
        self._look_at_points(checked, exact)

    def _look_at_points(self, checked: Int64Array, exact: Float64Array) -> None:
        """c~, b, own shares and c~ without the point itself, of every reference point; all (widths, N)."""
        n, m = self._count, len(self.landmarks)
        base = np.array([solver.base for solver in self._solvers], dtype=np.float32)
        self._means, self._base = (
            self._sums(self._landmark_columns, m, self._columns[:, :n], weights=weights)
            for weights in (self.weights, base)
        )
        signs = self.setting.rng.choice([-1.0, 1.0], (m, PROBES))
        probed = [self._at_points(w, solver.root(signs), squared=True) for w, solver in enumerate(self._solvers)]
        self._own = np.stack([self.setting.compute.get(shares) for shares in probed])
        self._left_out = ((self._means - self._base) * n - self._own) / (n - 1) + self._base
        self._lacking = (exact - self._left_out[:, checked]).mean(1)
        # A is such that S is 0 on average; the As of pseudo-references are moved as far.
        self.offset = self._left_out.mean(1) - self._lacking
        self._moved = self._base.mean(1) - self._lacking

    @cached_property
    def _mean_kernels(self) -> Float64Array:
        return np.asarray(self._left_out + self._lacking[:, None])

    def _sums(
        self,
        points: Array,
        count: int,
        queries: Array,
        own: Int64Array | None = None,
        weights: Float32Array = NO_WEIGHTS,
    ) -> Float64Array:
        """Row sums of the kernel between queries (d, n) and points, a piece at a time; (widths, n)."""
        compute, n = self.setting.compute, queries.shape[1]
        own = np.full(n, -1) if own is None else own

        def some(start: int) -> Float64Array:
            piece = slice(start, min(start + compute.ROWS, n))
            return compute.get(
                compute.gaussian_row_sums(points, count, queries[:, piece], own[piece], 0, self.multipliers, weights)
            )

        return np.concatenate(self.setting.map(some, range(0, n, compute.ROWS)), axis=1)

    def _at_points(self, width: int, weights: Float64Array, *, squared: bool = False) -> Float64Array:
        """sum_l weights_l k(l, x) at all reference points, for weights (m, G); (N, G). Or their mean squares, (N,)."""
        compute, n, m = self.setting.compute, self._count, len(self.landmarks)
        ratio = np.array([(self.scaled.widths[0] / self.scaled.widths[width]) ** 2], np.float32)
        given = compute.put(weights.astype(np.float32))

        def some(start: int) -> Float64Array:
            stop = min(start + compute.ROWS, n)
            products: Float64Array = compute.gaussian_products(
                self._landmark_columns, m, self._columns[:, start:stop], np.full(stop - start, -1), 0, ratio, given
            )[0]
            return (products**2).mean(1) if squared else products

        return compute.concatenate(self.setting.map(some, range(0, n, compute.ROWS)))

    def bootstrap_paths(self, weights: Float32Array, reflected: int = 0) -> NullPaths:
        """As `mmd_gaussian.bootstrap_terms` with k~ for k, and what no reference changes: b, and the move of A."""
        compute, counts = self.setting.compute, near(weights, 0)
        terms = []
        for w, (solver, sums) in enumerate(zip(self._solvers, self._landmark_sums(weights), strict=True)):
            products = self._at_points(w, solver(sums)) - compute.put(self._own[w][:, None]) * weights
            offset, linear, neutral = compute.pair_terms(products[None], self._mean_kernels[w][None], weights, counts)
            base = compute.put((-2 * self._base[w]).astype(np.float32))
            terms.append((offset + float(self._moved[w]), linear + base, neutral))
        offsets, linears, neutrals = zip(*terms, strict=True)
        return self._drawn(
            PairTerms(compute.concatenate(offsets), compute.concatenate(linears, 1), compute.concatenate(neutrals))
        )

    def _landmark_sums(self, weights: Float32Array) -> Float64Array:
        """sum_i weights_i k(x_i, l), for weights (N, G); (widths, m, G)."""
        compute, m = self.setting.compute, len(self.landmarks)

        def some(start: int) -> Float64Array:
            stop = min(start + compute.ROWS, m)
            return compute.get(
                compute.gaussian_products(
                    self._columns, self._count, self._landmark_columns[:, start:stop], np.full(stop - start, -1), 0,
                    self.multipliers, weights,
                )
            )  # fmt: skip

        return np.concatenate(self.setting.map(some, range(0, m, compute.ROWS)), axis=1)

    def direct_paths(self) -> NullPaths:
        put = self.setting.compute.put
        linear = (-2 * self._means[None]).astype(np.float32)
        return self._drawn(PairTerms(put(self.offset[:, None]), put(linear), put(np.ones_like(linear[0]))))

    def split_paths(self) -> NullPaths:
        raise InputError(
            "Landmarks cannot leave the points of a stream out of the reference, and ",
            Option("mode", "paper"),
            ", 'fixed' and statistics that are functions of your own need that. Use ",
            Option("mode", "steady"),
            " without such functions, or leave ",
            Option("approximation", ...),
            " out.",
        )

    def live(self, kept: Int64Array | None) -> LandmarksLive:
        return LandmarksLive(
            self.landmarks, self.weights, self._left_out, self.offset, self.scaled, self.family, self.setting.compute
        )


class LandmarksLive(GaussianLive):
    """As `GaussianLive`, with c~ for c: one kernel row of the landmarks a step.

    left_out: c~ of every reference point without itself, (widths, N), for windows that begin with reference points.
    """

    def __init__(
        self,
        landmarks: Float32Array,
        weights: Float32Array,
        left_out: Float64Array,
        offset: Float64Array,
        scaled: ScaledPoints,
        family: Family,
        compute: Functions,
    ) -> None:
        super().__init__(landmarks, offset, scaled, family, 0, compute)
        self.weights, self._left_out = weights, left_out

    def observe(self, points: Float64Array, own: Int64Array | None) -> tuple[Float32Array, Float64Array]:
        block, linear = super().observe(points, None)
        if own is not None:
            known = own >= 0
            means = -2 * self._left_out[:, own[known]]
            linear[:, known] = means if isinstance(linear, np.ndarray) else self.compute.put(means)
        return block, linear

    @property
    def compared(self) -> int:
        return int(self._left_out.shape[1])

    def parts(self) -> Parts:
        return {**super().parts(), "kind": "landmarks", "weights": self.weights, "left_out": self._left_out}

    @classmethod
    def restore(cls, parts: Parts, windows: tuple[int, ...], compute: Functions) -> LandmarksLive:
        scaled = ScaledPoints(parts["centre"], tuple(parts["widths"]))
        family = Family(windows, scaled.widths, parts["heard"], parts["typical"])
        return cls(parts["points"], parts["weights"], parts["left_out"], parts["offset"], scaled, family, compute)
