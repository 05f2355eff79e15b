"""The maximum mean discrepancy: quadratic, unbiased, in O(N + W) a step, or O(m + W) with m landmarks."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin._common.errors import Code, InputError, Option, StorageError
from tocsin._compute import Functions
from tocsin._statistics.base import Live, Parts, Points, Prepared, Setting
from tocsin._statistics.kernels import Gaussian, Kernel
from tocsin._statistics.landmarks import Landmarks, LandmarksLive, PreparedLandmarks
from tocsin._statistics.mmd_callable import CallableLive, PreparedCallable
from tocsin._statistics.mmd_gaussian import GaussianLive, PreparedGaussian

FAMILY = Gaussian(factors=(0.125, 0.25, 0.5, 1.0, 2.0))
"""Narrow widths see changes of shape that the median width averages away; wide ones see shifts."""


@dataclass(frozen=True)
class MMD:
    """Squared maximum mean discrepancy between the window and the reference, the minimum-variance unbiased estimate.

    D(X, Y) = mean_{i != j} k(x_i, x_j) + mean_{i != j} k(y_i, y_j) - 2 mean_{i, j} k(x_i, y_j)

    (the paper's equation for D lacks the factor 2; its later ones have it).

    Parameters
    ----------
    kernel
        `Gaussian(...)`, or any function k(X, Y) of two sequences of observations (strings, graphs, dicts, rows) that
        returns the matrix of k(x, y). Default: Gaussian at 1/8, 1/4, 1/2, 1 and 2 times the median distance, each
        with those windows in which some points can be expected to be alike at that width, and how typical of the
        reference the window's points are (their mean similarity to it), each way. `Gaussian()` is the paper's single
        width, and `Gaussian(factors=...)` several, without typicality.
    approximation
        `Landmarks(1000)` for big references: observations are compared with that many landmarks, weighted so that they
        stand for all reference points. A step costs the same however many these are, and so does each of them in the
        fit. For Gaussian kernels, and observations that do not depend on those before them.
    """

    kernel: Gaussian | Kernel | None = None
    approximation: Landmarks | None = None

    def check(self) -> None:
        function = callable(self.kernel) and not isinstance(self.kernel, type)
        if not (self.kernel is None or isinstance(self.kernel, Gaussian) or function):
            raise InputError(
                Option("kernel", self.kernel, of="MMD"),
                ": a kernel is Gaussian(...) or a function k(X, Y) that returns a matrix. For a width, write ",
                Option("width", ..., of="Gaussian"),
                ".",
            )
        if not (self.approximation is None or isinstance(self.approximation, Landmarks)):
            raise InputError(
                Option("approximation", self.approximation, of="MMD"),
                ": give Landmarks(...), or None to compare observations with all reference points.",
            )
        if isinstance(self.kernel, Gaussian):
            self.kernel.check()
        if self.approximation is not None:
            self.approximation.check()
        if self.approximation is not None and self.takes_objects:
            raise InputError(
                Option("approximation", Code("Landmarks(...)"), of="MMD"),
                " is for Gaussian kernels: of a function it is not known whether it is a kernel that landmarks can "
                "stand for. Give Gaussian(...), or no approximation.",
            )

    @property
    def name(self) -> str:
        return "MMD"

    @property
    def takes_objects(self) -> bool:
        return not (self.kernel is None or isinstance(self.kernel, Gaussian))

    def holds_out(self, count: int, windows: tuple[int, ...]) -> int:
        return 0 if self.approximation is None else self.approximation.holds_out(count)

    def prepare(self, points: Points, held_out: Points, setting: Setting) -> Prepared:
        kernel = FAMILY if self.kernel is None else self.kernel
        if not isinstance(kernel, Gaussian):
            return PreparedCallable(points, kernel, setting)
        widths, default = kernel.widths(points, setting.rng), self.kernel is None
        if self.approximation is not None:
            return PreparedLandmarks(points, held_out, widths, setting, default=default)
        return PreparedGaussian(points, widths, setting, default=default)

    def restore(self, parts: Parts, windows: tuple[int, ...], compute: Functions) -> Live:
        if parts["kind"] == "gaussian":
            return GaussianLive.restore(parts, windows, compute)
        if parts["kind"] == "landmarks":
            return LandmarksLive.restore(parts, windows, compute)
        if self.kernel is None or isinstance(self.kernel, Gaussian):
            raise StorageError(
                "This detector was fitted with a kernel function of its user's, which no file can hold. "
                "Load it with the same function: Detector.load(path, statistic=MMD(kernel=...))."
            )
        return CallableLive(parts["reference"], parts["offset"], self.kernel, windows, parts["guard"])
