"""Kernels: how alike two observations are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin._common.checks import is_finite
from tocsin._common.errors import InputError, Option
from tocsin._compute.arrays import FARTHEST, Array, Float32Array, Float64Array

Kernel = Callable[[Any, Any], Array]
"""Any function k(X, Y) of two sequences of observations that returns the (len(X), len(Y)) matrix of k(x, y)."""

MEDIAN_POINTS = 1000
"""The median distance is taken over all pairs of at most this many reference points; beyond, over those of one half
of a seeded choice with the other. The middle is that of as many."""


FAR_OUT = 1e100
"""Values that are further from the median than this, in typical distances from it, do not say what the scale is."""

SMALLEST, LARGEST = 1e-304, 1e304
"""Distances whose inverses are numbers, with room for multiples."""


@dataclass(frozen=True)
class Gaussian:
    """k(x, y) = exp(-|x - y|^2 / (2 width^2)), at one width or at several.

    Parameters
    ----------
    width
        A width, or several, in the units of the data. None: the median distance between reference points, the rule
        of the paper (the distance itself, not divided by sqrt 2).
    factors
        With `width=None`, multiples of the median distance to use.

    A family of widths in ratio 2 costs little more than one, for k at half the width is k to the fourth power.

    >>> Gaussian()
    Gaussian(width=None, factors=(1.0,))
    >>> Gaussian(width=(0.5, 1, 2)).width
    (0.5, 1, 2)
    """

    width: float | Sequence[float] | None = None
    factors: Sequence[float] = (1.0,)

    def check(self) -> None:
        """Refuse what cannot be a width."""
        if self.width is not None:
            _positive(Option("width", self.width, of="Gaussian"))
        _positive(Option("factors", self.factors, of="Gaussian"))

    def widths(self, points: Float64Array, rng: np.random.Generator) -> tuple[float, ...]:
        """The widths for this reference, widest first."""
        if self.width is not None:
            widths = _positive(Option("width", self.width, of="Gaussian"))
        else:
            median = median_distance(points, rng)
            factors = _positive(Option("factors", self.factors, of="Gaussian"))
            widths = tuple(median * factor for factor in factors)
        return tuple(sorted(widths, reverse=True))


def median_distance(points: Float64Array, rng: np.random.Generator) -> float:
    """Median distance over pairs of points; over the pairs that differ, where half or more of them do not.

    >>> float(median_distance(np.array([[0.0], [1.0], [3.0]]), np.random.default_rng(0)))
    2.0
    """
    chosen = len(points) > MEDIAN_POINTS
    if chosen:
        points = points[rng.choice(len(points), MEDIAN_POINTS, replace=False)]
    with np.errstate(over="ignore"):
        centred = points - np.median(points, axis=0)
    sizes = np.abs(centred)
    scale = float(sizes.max())
    if scale == 0:
        raise InputError(
            "All reference points are equal, so no kernel width can be taken from their distances. "
            "Check that the right columns were read, or give ",
            Option("width", ..., of="Gaussian"),
            ".",
        )
    typical = float(np.median(sizes[sizes > 0]))
    if scale > FAR_OUT * typical:
        # On the scale of a few wild values, all others would be one point.
        scale = typical
        centred = np.clip(centred, -FAR_OUT * scale, FAR_OUT * scale)
    if not SMALLEST < scale < LARGEST:
        column = int(sizes.max(0).argmax())
        raise InputError(
            f"Reference points are about {scale:.3g} apart, most of all in column {column}; distances must lie between "
            f"{SMALLEST:g} and {LARGEST:g}, or differences of numbers are lost. Check the values, or bring the "
            "columns to another unit."
        )
    centred /= scale
    from scipy.spatial.distance import cdist, pdist  # slow to import, and needed by fits alone

    half = len(centred) // 2
    squares = cdist(centred[:half], centred[half:], "sqeuclidean").ravel() if chosen else pdist(centred, "sqeuclidean")
    median = np.median(squares)
    if median == 0:
        median = np.median(squares[squares > 0])
    return float(np.sqrt(median) * scale)


def middle(points: Float64Array) -> Float64Array:
    """A place to centre points at: their medians, or those of MEDIAN_POINTS of them, spread evenly."""
    if len(points) > MEDIAN_POINTS:
        points = points[np.linspace(0, len(points) - 1, MEDIAN_POINTS).astype(np.int64)]
    return np.asarray(np.median(points, axis=0))


@dataclass(frozen=True)
class ScaledPoints:
    """Points in float32, centred and scaled so that exp(-|x - y|^2) is the kernel at the widest width.

    Centring comes first: float32 distances of points far from 0 would be lost to rounding.
    """

    centre: Float64Array
    widths: tuple[float, ...]

    @property
    def multipliers(self) -> Float32Array:
        """exp(-m |x - y|^2) per width; 0 where the kernel is the fourth power of the one before.

        At most two such steps in a row: each quadruples the rounding error.
        """
        out: list[float] = []
        for i, width in enumerate(self.widths):
            halved = i > 0 and abs(self.widths[i - 1] / width - 2) < 1e-9
            recent = out[-2:]
            chained = halved and not (len(recent) == 2 and recent == [0.0, 0.0])
            out.append(0.0 if chained else (self.widths[0] / width) ** 2)
        return np.array(out, np.float32)

    @property
    def scale(self) -> float:
        """What the centred points are multiplied by."""
        return float(np.sqrt(0.5) / self.widths[0])

    def __call__(self, points: Float64Array) -> Float32Array:
        """(n, d) in float32."""
        with np.errstate(over="ignore"):
            scaled = np.clip((points - self.centre) * self.scale, -FARTHEST, FARTHEST)
        return scaled.astype(np.float32)


def _positive(option: Option) -> tuple[float, ...]:
    try:
        numbers = tuple(float(value) for value in np.atleast_1d(np.asarray(option.value, dtype=np.float64)))
    except (TypeError, ValueError, OverflowError):
        numbers = ()
    if not numbers or not all(is_finite(number) and number > 0 for number in numbers):
        raise InputError(option, ": widths are positive numbers below 1e308, at least one of them.")
    if len(set(numbers)) < len(numbers):
        raise InputError(option, " names a width twice; each width is a channel of its own.")
    return numbers
