"""An oracle: the equations of the paper and of docs/how-it-works.md, written out one by one.

It shares no code with the library and imports nothing but NumPy. It is slow and meant to be obvious: kernel matrices
are whole, every window is summed from scratch, nothing is updated. `points` are rows; *indices* are places in the
reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = Sequence[int]
Kernel = Callable[[Any, Any], Floats]
"""k(X, Y): the matrix of k(x, y)."""
Distance = Callable[[Indices, Indices], float]
"""D of the reference points with the first indices from those with the second."""


# Kernels and widths


def gaussian(width: float) -> Kernel:
    """k(x, y) = exp(-|x - y|^2 / (2 width^2)), in float64 and by differences."""

    def kernel(X: Floats, Y: Floats) -> Floats:
        squares = (((X[:, None, :] - Y[None, :, :]) / width) ** 2).sum(-1)
        return np.asarray(np.exp(-squares / 2))

    return kernel


def median_distance(points: Floats) -> float:
    """The root of the median squared distance between two reference points; between two that differ if that is 0.

    The square matters only for an even number of pairs, whose median lies between two of them (docs/baselines.md).
    """
    scale = np.abs(points - points[0]).max()
    squares = [float((((x - y) / scale) ** 2).sum()) for i, x in enumerate(points) for y in points[:i]]
    median = np.median(squares) or np.median([square for square in squares if square > 0])
    return float(scale * np.sqrt(median))


def without_diagonal(K: Floats) -> Floats:
    """K with k(x, x) removed: the kernel's real diagonal, which need not be 1."""
    return np.asarray(K - np.diag(np.diag(K)))


# Points in order of time: those at most `guard` apart are not compared with each other (0: a point with itself)


def far(count: int, guard: int) -> NDArray[np.bool_]:
    """Which of so many points may be compared with which; (count, count)."""
    return np.asarray(np.abs(np.subtract.outer(np.arange(count), np.arange(count))) > guard)


def mean_kernels(K: Floats, guard: int) -> Floats:
    """rbar_j: the mean kernel of each point with those that it may be compared with."""
    others = far(len(K), guard)
    return np.asarray((K * others).sum(0) / others.sum(0))


def mean_pair(K: Floats, guard: int) -> float:
    """The mean kernel of all pairs that may be compared."""
    return float(K[far(len(K), guard)].mean())


# Two-sample statistics D(X, Y): X of the reference, Y of the window


def mmd(X: Any, Y: Any, kernel: Kernel, guard: int = 0) -> float:
    """Equation (mmd_hat), with the factor 2 on the cross term that its first appearance lacks."""
    M, W = len(X), len(Y)
    within_Y = without_diagonal(kernel(Y, Y)).sum() / (W * (W - 1))
    return float(mean_pair(kernel(X, X), guard) + within_Y - 2 * kernel(X, Y).sum() / (M * W))


def atypicality(X: Any, Y: Any, kernel: Kernel, guard: int = 0) -> float:
    """How much less alike the points of Y are to those of X, on average, than the points of X are to each other."""
    return float(mean_pair(kernel(X, X), guard) - kernel(X, Y).mean())


def bumps(points: Floats, centres: Floats, width: float) -> Floats:
    """phi_j(x) = exp(-|x - c_j|^2 / (2 width^2)); (n, m)."""
    return gaussian(width)(points, centres)


def bump_products(centres: Floats, width: float) -> Floats:
    """H_jl = exp(-|c_j - c_l|^2 / (4 width^2))."""
    return gaussian(width * 2**0.5)(centres, centres)


def lsdd_form(centres: Floats, width: float, regularisation: float) -> Floats:
    """A = 2 G - G H G, G = (H + regularisation I)^-1."""
    H = bump_products(centres, width)
    G = np.linalg.inv(H + regularisation * np.eye(len(centres)))
    return np.asarray(2 * G - G @ H @ G)


def lsdd(X: Floats, Y: Floats, centres: Floats, width: float, regularisation: float) -> float:
    """D = u' A u, u the difference of the mean bumps."""
    u = bumps(X, centres, width).mean(0) - bumps(Y, centres, width).mean(0)
    return float(u @ lsdd_form(centres, width, regularisation) @ u)


def relative_difference(differences: Floats, H: Floats, regularisation: float) -> float:
    """RD = mean of 1 - theta' H theta / (u' theta) over differences u of mean bumps, theta = G u."""
    G = np.linalg.inv(H + regularisation * np.eye(len(H)))
    thetas = [G @ u for u in differences]
    ratios = [1 - theta @ H @ theta / (u @ theta) for u, theta in zip(differences, thetas, strict=True)]
    return float(np.mean(ratios))


def mean_shift(X: Floats, Y: Floats, deviations: Floats) -> float:
    """The squared length of the difference of means, each column in standard deviations."""
    return float((((Y.mean(0) - X.mean(0)) / deviations) ** 2).sum())


def mean_shift_along(X: Floats, Y: Floats, direction: Floats) -> float:
    """The difference of means along a direction."""
    return float(direction @ (Y.mean(0) - X.mean(0)))


# Paths: one value per test; the first test comes when the widest window is full


def split_path(distance: Distance, count: int, stream: Indices, window: int, widest: int) -> Floats:
    """Algorithm 3: U is the stream, the reference all other points, and S_t = D(reference, U_(t - W, t])."""
    kept = [i for i in range(count) if i not in set(stream)]
    ends = range(widest, len(stream) + 1)
    return np.array([distance(kept, stream[end - window : end]) for end in ends])


def direct_path(distance: Distance, count: int, stream: Indices, window: int, widest: int) -> Floats:
    """A stream drawn with replacement, against the reference itself: points meet themselves and their copies."""
    ends = range(widest, len(stream) + 1)
    return np.array([distance(range(count), stream[end - window : end]) for end in ends])


def bootstrap_mmd_path(K: Floats, v: Indices, stream: Indices, window: int, widest: int, guard: int = 0) -> Floats:
    """A stream drawn with replacement against the pseudo-reference that holds point i v_i times (how-it-works.md)."""
    A, c, C = _apart(K, v, guard), _means_across(K, v, guard), _with_neutral_pairs(K, guard)
    path = []
    for end in range(widest, len(stream) + 1):
        inside = stream[end - window : end]
        pairs = sum(C[i, j] for p, i in enumerate(inside) for q, j in enumerate(inside) if p != q)
        path.append(A + pairs / (window * (window - 1)) - 2 * np.mean([c[j] for j in inside]))
    return np.array(path)


def bootstrap_atypicality_path(
    K: Floats, v: Indices, stream: Indices, window: int, widest: int, guard: int = 0
) -> Floats:
    """A^g less the mean over the window of c_j^g."""
    A, c = _apart(K, v, guard), _means_across(K, v, guard)
    ends = range(widest, len(stream) + 1)
    return np.array([A - np.mean([c[j] for j in stream[end - window : end]]) for end in ends])


def bootstrap_feature_path(
    psi: Floats, v: Indices, stream: Indices, window: int, widest: int, guard: int = 0
) -> Floats:
    """As `bootstrap_mmd_path` with the kernel psi(x)'psi(y), for the squared distance of two mean features.

    A squared mean includes its diagonal, of the pseudo-reference (N points) and of the window. Features are measured
    from the mean feature of the reference.
    """
    N = len(psi)
    centred = psi - psi.mean(0)
    K = centred @ centred.T
    A = ((N**2 - N) * _apart(K, v, guard) + sum(v[i] * K[i, i] for i in range(N))) / N**2
    c, C = _means_across(K, v, guard), _with_neutral_pairs(K, guard)
    path = []
    for end in range(widest, len(stream) + 1):
        inside = stream[end - window : end]
        pairs = sum(K[i, i] if p == q else C[i, j] for p, i in enumerate(inside) for q, j in enumerate(inside))
        path.append(A + pairs / window**2 - 2 * np.mean([c[j] for j in inside]))
    return np.array(path)


def bootstrap_signed_path(
    values: Floats, v: Indices, stream: Indices, window: int, widest: int, guard: int = 0
) -> Floats:
    """The window's mean less the pseudo-reference's, each point of the window leaving out its own copies."""
    N = len(values)
    others = _means_across(np.repeat(values[:, None], N, axis=1), v, guard)
    ends = range(widest, len(stream) + 1)
    return np.array([np.mean([values[j] - others[j] for j in stream[end - window : end]]) for end in ends])


def _apart(K: Floats, v: Indices, guard: int) -> float:
    """A^g: the mean kernel of two points of the pseudo-reference that may be compared."""
    pairs = np.outer(v, v) * far(len(K), guard)
    return float((pairs * K).sum() / pairs.sum())


def _means_across(K: Floats, v: Indices, guard: int) -> Floats:
    """c_j^g: the mean kernel of point j with those points of the pseudo-reference that it may be compared with."""
    met = np.array(v)[:, None] * far(len(K), guard)
    return np.asarray((K * met).sum(0) / met.sum(0))


def _with_neutral_pairs(K: Floats, guard: int) -> Floats:
    """The kernel between points, and rbar_i + rbar_i - gbar between two draws of the same point."""
    rbar = mean_kernels(K, guard)
    return np.asarray(without_diagonal(K) + np.diag(2 * rbar - rbar.mean()))


# The live statistic, from scratch at each step


def live_path(distance: Callable[[Any, Any], float], reference: Any, stream: Any, window: int) -> Floats:
    """S_t = D(reference, the last W observations) after every observation; NaN until there are W of them."""
    ends = range(1, len(stream) + 1)
    return np.array([distance(reference, stream[t - window : t]) if t >= window else np.nan for t in ends])


@dataclass(frozen=True)
class Window:
    """The points of a warm run's window, as long as some of them met a reference without those that the run began with.

    own: the index of each in the reference, -1 for new observations.  lacking: whether it met the lacking reference.
    began: indices of the points that this lacks.
    """

    points: Any
    own: Indices
    lacking: Sequence[bool]
    began: Indices

    def weights(self, count: int, lacks: bool) -> Floats:
        """Of the points of a reference. Those that it lacks keep a little, so that the squared weights of window mean
        and reference mean add up to 1/W + 1/N, as for a window of other points than the reference's."""
        W, N = len(self.began), count
        weights = np.ones(N)
        if lacks and W:
            weights[list(self.began)] = (N * math.sqrt((N - W) / (N + W)) - (N - W)) / W
        return weights

    def meetings(self, count: int, guard: int) -> list[tuple[Floats, Floats]]:
        """Of each point: the reference that it met, and the points of this that it may be compared with."""
        apart, found = far(count, guard), []
        for j, lacks in zip(self.own, self.lacking, strict=True):
            weights = self.weights(count, lacks)
            found.append((weights, weights if j < 0 else weights * apart[j]))
        return found


def warm_mmd(reference: Any, window: Window, kernel: Kernel, guard: int = 0) -> float:
    """The pairs within the window, and of each of its points the A and c of the reference that it met: A - 2 c."""
    W, across = len(window.points), kernel(reference, window.points)
    C = without_diagonal(kernel(window.points, window.points)).sum() / (W * (W - 1))
    met = _met(kernel(reference, reference), across, window, guard)
    return float(C + np.mean([A - 2 * c for A, c in met]))


def warm_atypicality(reference: Any, window: Window, kernel: Kernel, guard: int = 0) -> float:
    """The same for `atypicality`: A - c."""
    met = _met(kernel(reference, reference), kernel(reference, window.points), window, guard)
    return float(np.mean([A - c for A, c in met]))


def warm_features(reference: Floats, window: Window, guard: int = 0) -> float:
    """The same for the squared distance of mean features, measured from the mean feature of the reference."""
    origin = reference.mean(0)
    X, Y = reference - origin, window.points - origin
    parts = []
    for (there, met), y in zip(window.meetings(len(X), guard), Y, strict=True):
        parts.append((np.average(X, axis=0, weights=there) ** 2).sum() - 2 * np.average(X, axis=0, weights=met) @ y)
    return float((Y.mean(0) ** 2).sum() + np.mean(parts))


def warm_signed(reference: Floats, window: Window, guard: int = 0) -> float:
    """The same for the signed difference of means."""
    each = window.meetings(len(reference), guard)
    parts = [y - np.average(reference, weights=met) for (_, met), y in zip(each, window.points, strict=True)]
    return float(np.mean(parts))


def _met(K: Floats, across: Floats, window: Window, guard: int) -> list[tuple[float, float]]:
    """A and c for each point of the window."""
    apart, found = far(len(K), guard), []
    for (there, met), column in zip(window.meetings(len(K), guard), across.T, strict=True):
        pairs = np.outer(there, there) * apart
        found.append((float((pairs * K).sum() / pairs.sum()), float(np.average(column, weights=met))))
    return found


# Thresholds


def algorithm_2(first_tests: Floats, alpha: float) -> float:
    """The empirical (1 - alpha)-quantile of one test of every path."""
    return float(np.quantile(first_tests, 1 - alpha))


def algorithm_3(paths: Floats, alpha: float) -> list[float]:
    """Step by step the (1 - alpha)-quantile of the surviving paths, which then survive if S_t <= h_t."""
    survivors = list(range(len(paths)))
    thresholds = []
    for t in range(paths.shape[1]):
        h = float(np.quantile(paths[survivors, t], 1 - alpha))
        thresholds.append(h)
        survivors = [b for b in survivors if paths[b, t] <= h]
    return thresholds


def first_passages(paths: Floats, threshold: float) -> tuple[int, int]:
    """How many paths ring (S > h) and how many tests all of them make, each until it rings or ends."""
    alarms = tests = 0
    for path in paths:
        for value in path:
            tests += 1
            if value > threshold:
                alarms += 1
                break
    return alarms, tests


def passage_rates(paths: Floats) -> tuple[Floats, Floats]:
    """The values at which a rising threshold changes any first passage, and alarms / (tests - 1) from each value on.

    The test taken off makes the quantile of a single test numpy's default one.
    """
    values, rates = [], []
    before = (len(paths), len(paths))
    for h in np.unique(paths):
        alarms, tests = first_passages(paths, h)
        if (alarms, tests) != before:
            values.append(h)
            rates.append(alarms / max(tests - 1, 1))
        before = alarms, tests
    return np.array(values), np.array(rates)


def pooled_threshold(paths: Floats, alpha: float) -> float:
    """The threshold with that rate, linear between the values (which must be different for each path)."""
    values, rates = passage_rates(paths)
    return float(values[0] if rates[0] <= alpha else np.interp(-alpha, -rates, values))


def stretch_thresholds(paths: Floats, edges: Indices, alpha: float) -> list[float]:
    """Algorithm 3 with stretches of tests edges[b] <= t < edges[b + 1] that share a threshold, while paths remain."""
    survivors = list(range(len(paths)))
    thresholds: list[float] = []
    for start, stop in pairwise(edges):
        if survivors:
            h = pooled_threshold(paths[survivors, start:stop], alpha)
            thresholds.append(h)
            survivors = [b for b in survivors if (paths[b, start:stop] <= h).all()]
    return thresholds


def falling_thresholds(paths: Floats, edges: Indices, alpha: float) -> list[float]:
    """As `stretch_thresholds`, joining a stretch with the one before it while its threshold would be higher."""
    done: list[tuple[int, int, int, float]] = []
    for start, stop in pairwise(edges):
        first, joined = start, 1
        while True:
            quiet = [b for b, path in enumerate(paths) if all((path[i:j] <= h).all() for i, j, _, h in done)]
            if not quiet:
                return []
            h = pooled_threshold(paths[quiet, first:stop], alpha)
            if not done or h <= done[-1][3]:
                break
            first, _, earlier, _ = done.pop()
            joined += earlier
        done.append((first, stop, joined, h))
    return [h for _, _, joined, h in done for _ in range(joined)]


def on_grid(value: float, width: float, origin: float) -> float:
    """The line of a grid that is nearest; the value itself where the grid has no width."""
    return value if width == 0 or math.isnan(value) else origin + width * round((value - origin) / width)


def coin(seed: int, stream: int, run: int, time: int) -> float:
    """The tie-breaker of a test: splitmix64 (Steele, Lea and Flood 2014) of a counter, in whole numbers."""
    mask = 2**64 - 1
    x = seed + stream * 0xA0761D6478BD642F + run * 0xD1342543DE82EF95 + (time + 1) * 0x9E3779B97F4A7C15 & mask
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
    x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
    return float((x ^ x >> 31) >> 11) / 2**53
