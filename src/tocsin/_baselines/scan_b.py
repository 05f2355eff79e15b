"""The online Scan-B detector (Li, Xie, Dai and Song, Sequential Analysis 38, 2019), as run for the paper.

With n disjoint blocks X_i of W reference points and Y_t the last W observations,

    Z_t = mean_i MMD^2(X_i, Y_t),   Z'_t = Z_t / sqrt(V),   alarm at the first t with Z'_t > b,

MMD^2 the unbiased estimate. Here its cross term takes all pairs of X_i and Y_t (Li et al. leave out the W pairs of
equal position), and the blocks stay as they are (those of Li et al. move on with the stream): Z_t is then the quadratic
estimate of the MMD up to a constant. b comes from an approximation of the run length that is exact as b grows.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from tocsin import _compute as compute
from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.result import Thresholds
from tocsin._common.errors import InputError
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._data import validation
from tocsin._data.intake import Rows
from tocsin._detector.checking import gaussian_parts
from tocsin._detector.declared import storable
from tocsin._detector.detector import Watcher
from tocsin._detector.schema import Maybe, Number, Rule, Whole
from tocsin._detector.sizes import Sizes
from tocsin._state import Fitted
from tocsin._statistics.base import Parts
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.kernels import Gaussian, ScaledPoints, middle
from tocsin._statistics.mmd_gaussian import GaussianLive
from tocsin._statistics.pairs import Family

LOWEST = 1.0
"""The approximate run length falls up to about here and grows from here on."""

HIGHEST = 100.0


@storable(blocks=Whole(1), variance=Number(), skewness=Maybe(Number(nan=True)), samples=Whole(1))
@dataclass(frozen=True, eq=False)
class ScanBThreshold(Thresholds):
    """The threshold of a Scan-B detector, and what it rests on.

    blocks: how many blocks of reference points there are.
    variance: of Z_t without a change.  skewness: of Z'_t; None where it was not corrected for.
    samples: Monte Carlo draws that both rest on.
    """

    blocks: int
    variance: float
    skewness: float | None
    samples: int

    @property
    def quality(self) -> str:
        return "an approximation for long run times"


class ScanB(Watcher[ScanBThreshold]):
    """The online B-statistic, with one threshold from an approximation of the average run length.

    The first test is made when the window is full. Run lengths are not geometric, and their mean is off by 20 to 30 %
    in the paper's experiments.

    Parameters
    ----------
    ert
        Expected run time to aim at.
    window
        Recent observations to compare with each block of as many reference points.
    kernel
        `Gaussian()` at the median distance between reference points, or `Gaussian(width=...)` of one width.
    correct_skewness
        Whether the approximation uses the third moment too, as its authors recommend.
    samples
        Monte Carlo draws for the moments.
    seed
        Whole number for reproducible thresholds; None for a fresh one, kept in `seed_`.
    backend
        'auto', 'numba', or 'numpy' (slow, to be read).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> detector = ScanB(ert=500, window=10, seed=1).fit(rng.normal(size=(200, 2)))
    >>> bool(detector.update_many(rng.normal(loc=3, size=(20, 2))).alarm.any())
    True
    """

    _rests_on = ScanBThreshold

    def __init__(
        self,
        ert: float,
        window: int = 25,
        *,
        kernel: Gaussian | None = None,
        correct_skewness: bool = True,
        samples: int = 25_000,
        seed: int | None = None,
        backend: compute.Backend = "auto",
    ) -> None:
        self.ert = ert
        self.window = window
        self.kernel = kernel
        self.correct_skewness = correct_skewness
        self.samples = samples
        self.seed = seed
        self.backend = backend

    def fit(self, reference: object) -> Self:
        """Cut the reference (one row of numbers per observation) into blocks and set the threshold."""
        began = time.perf_counter()
        seed, functions = validation.seed_number(self.seed), compute.load(self.backend)
        samples = validation.positive_integer("samples", self.samples) or 25_000
        points = validation.reference_points(reference, objects_allowed=False)
        window = validation.one_window(self.window)
        validation.enough_points(len(points), 0, (window,))
        ert = validation.expected_run_time(self.ert, window)
        rng = np.random.default_rng(seed)
        kernel = Gaussian() if self.kernel is None else self.kernel
        if not isinstance(kernel, Gaussian):
            raise InputError(f"ScanB(kernel={kernel!r}): its kernel is Gaussian(), or Gaussian(width=...).")
        widths = kernel.widths(points, rng)
        if len(widths) > 1:
            raise InputError(f"ScanB(kernel={self.kernel!r}): its threshold is for one width; give one.")

        count = len(points) // window
        variance, skewness = moments(points, widths[0], window, count, samples, rng)
        if not variance > 0:
            raise InputError(
                f"The B-statistic has no variance on this reference (an estimate of {variance:g} from {samples} "
                "draws), so no threshold can be set. Check that the right columns were read, or give more samples."
            )
        threshold = solve(ert, window, skewness if self.correct_skewness else None)

        scaled = ScaledPoints(middle(points), widths)
        used = points[: count * window].copy()
        offset = np.array([within_blocks(used.reshape(count, window, -1), widths[0])])
        family = Family((window,), widths, np.zeros(1, np.int64), typical=-1)
        live = GaussianLive(scaled(used), offset, scaled, family, 0, functions)
        calibration = ScanBThreshold(
            ert=ert,
            thresholds=np.array([threshold]),
            seconds=time.perf_counter() - began,
            blocks=count,
            variance=variance,
            skewness=skewness if self.correct_skewness else None,
            samples=samples,
        )
        normaliser = Normaliser(np.zeros(1), np.array([math.sqrt(variance)]), tie=0.0)
        fitted = Fitted(
            LiveFamily([live]), normaliser, calibration, (window,), Rows(points.shape[1]), used, None, "cold", seed,
            functions,
        )  # fmt: skip
        self._deploy(fitted)
        return self

    def _rules(self, sizes: Sizes) -> list[Rule]:
        return [partial(gaussian_parts, sizes=sizes)]

    def _restore(self, parts: list[Parts], windows: tuple[int, ...], functions: compute.Functions) -> LiveFamily:
        return LiveFamily([GaussianLive.restore(parts[0], windows, functions)])


def within_blocks(blocks: Float64Array, width: float) -> float:
    """mean_i mean_{l != j} k(x_l, x_j) over points of one block."""
    size = blocks.shape[1]
    total = 0.0
    for block in blocks:
        squares = ((block[:, None] - block[None]) ** 2).sum(-1)
        np.fill_diagonal(squares, np.inf)
        total += float(np.exp(-squares / (2 * width**2)).sum())
    return total / float(len(blocks) * size * (size - 1))


def moments(
    points: Float64Array, width: float, size: int, blocks: int, samples: int, rng: np.random.Generator
) -> tuple[float, float]:
    """The variance of Z and the skewness of Z' without a change, by draws from the reference with replacement.

    With h(i, j; p, q) = k(x_i, x_j) + k(y_p, y_q) - k(x_i, y_q) - k(x_j, y_p) and B the size of n blocks,

        V      = 2 / (B (B-1)) { E[h^2] / n  +  (n-1)/n Cov[h(0,1; 0,1), h(2,3; 0,1)] }
        E[Z^3] = 8 (B-2) / (B^2 (B-1)^2) (a1 + 3 (n-1) b1 + (n-1)(n-2) c1) / n^2
               + 4 / (B^2 (B-1)^2) (a2 + 3 (n-1) b2 + (n-1)(n-2) c2) / n^2
    """
    x, y = rng.integers(0, len(points), (6, samples)), rng.integers(0, len(points), (3, samples))

    def k(first: Int64Array, second: Int64Array) -> Float64Array:
        return np.asarray(np.exp(-((points[first] - points[second]) ** 2).sum(1) / (2 * width**2)))

    def h(i: int, j: int, p: int, q: int) -> Float64Array:
        return k(x[i], x[j]) + k(y[p], y[q]) - k(x[i], y[q]) - k(x[j], y[p])

    same, other, third = h(0, 1, 0, 1), h(2, 3, 0, 1), h(4, 5, 0, 1)
    second, closing = h(1, 2, 1, 2), h(4, 5, 2, 0)
    a1, a2 = np.mean(same * second * h(2, 0, 2, 0)), np.mean(same**3)
    b1, b2 = np.mean(same * second * h(3, 4, 2, 0)), np.mean(same**2 * other)
    c1, c2 = np.mean(same * h(2, 3, 1, 2) * closing), np.mean(same * other * third)

    n, pairs = blocks, size * (size - 1)
    covariance = np.mean(same * other) - np.mean(same) * np.mean(other)
    variance = 2 / pairs * (np.mean(same**2) / n + (n - 1) / n * covariance)
    chains = (a1 + 3 * (n - 1) * b1 + (n - 1) * (n - 2) * c1) / n**2
    powers = (a2 + 3 * (n - 1) * b2 + (n - 1) * (n - 2) * c2) / n**2
    third_moment = (8 * (size - 2) * chains + 4 * powers) / pairs**2
    return float(variance), float(third_moment / variance**1.5) if variance > 0 else math.nan


def run_length(threshold: float, size: int, skewness: float | None) -> float:
    """The approximate average run length at a threshold b, for blocks of `size` points.

    exp(theta b - psi(theta)) / b / (a / sqrt(2 pi) nu(b sqrt(2 a))), a = (2B - 1) / (B (B - 1)); without a skewness,
    theta = b and psi = b^2 / 2; with one, theta = (sqrt(1 + 2 kappa b) - 1) / kappa and psi adds kappa theta^3 / 6.
    """
    b, a = threshold, (2 * size - 1) / (size * (size - 1))
    kappa = skewness or 0.0
    if 1 + 2 * kappa * b <= 0:
        return math.nan
    tilt = 2 * b / (math.sqrt(1 + 2 * kappa * b) + 1)  # theta, in a form that is exact for small kappa
    exponent = tilt * b - tilt**2 / 2 - kappa * tilt**3 / 6
    u = b * math.sqrt(2 * a)
    upper = 0.5 * (1 + math.erf(u / 2 / math.sqrt(2)))
    density = math.exp(-(u**2) / 8) / math.sqrt(2 * math.pi)
    overshoot = (2 / u) * (upper - 0.5) / (u / 2 * upper + density)
    return math.exp(exponent) / b / (a / math.sqrt(2 * math.pi) * overshoot)


def solve(ert: float, size: int, skewness: float | None) -> float:
    """The threshold whose approximate run length is `ert`."""
    from scipy import optimize  # slow to import, and needed by fits alone

    shortest = run_length(LOWEST, size, skewness)
    if not shortest <= ert:
        raise InputError(
            f"ert={ert:g} is too short for ScanB with window={size}: its approximation holds for long run times, and "
            f"gives none below {shortest:.4g}. Ask for a longer one, or use tocsin.Detector."
        )
    high = LOWEST
    while not run_length(high, size, skewness) >= ert:
        high *= 1.1
        if high > HIGHEST or math.isnan(run_length(high, size, skewness)):
            raise InputError(
                f"No ScanB threshold reaches ert={ert:g}: its run-length approximation breaks down on this reference "
                "first. Ask for a shorter one, set correct_skewness=False, or use tocsin.Detector."
            )
    return float(optimize.brentq(lambda b: run_length(b, size, skewness) - ert, LOWEST, high))
