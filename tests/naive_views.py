"""Views, straight from their definitions: a row at a time, all that came before it at hand, nothing of the library's.

Everything is a list or a small array, indexed by names: a channel is (column, view, window, kind), as a person would
say it. What the library chose (how many rows a baseline has, how fast scales follow) is handed in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import linalg, stats

Matrix = Any
Named = tuple[int, str, int, str]
"""Column, view, window, and 'mean' or 'spread'."""

LEVEL, ERROR, CHANGE, MOVING = "level", "prediction error", "change", "moving level"


# What is learnt of columns


def quartile(values: Sequence[float], part: float) -> float:
    """Between the ordered values, on a straight line."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def centre_and_spread(values: Sequence[float], interquartile: float, least: float) -> tuple[float, float]:
    """The median, and the distance of quartiles in standard deviations of a Gaussian, or the standard deviation."""
    deviation = math.sqrt(math.fsum((x - math.fsum(values) / len(values)) ** 2 for x in values) / len(values))
    spread = (quartile(values, 0.75) - quartile(values, 0.25)) / interquartile
    return quartile(values, 0.5), spread if spread > least * deviation else deviation


def softened(x: float, soft: float) -> float:
    """x near 0, and its logarithm far from it."""
    return soft * math.log(x / soft + math.hypot(x / soft, 1)) if x >= 0 else -softened(-x, soft)


def kept(x: float, grain: float, farthest: float) -> float:
    """x to the nearest grain, as far as numbers are kept."""
    return round(min(max(x, -farthest), farthest) / grain) * grain


def foreseeing(column: Matrix, edges: Sequence[int], lags: int, ridge: float) -> Matrix:
    """A constant, and weights of the last rows, by least squares with `ridge` rows that speak for no weights."""
    later = [t for start, stop in pairwise(edges) for t in range(start + lags, stop)]
    design = [[1.0, *(column[t - k] for k in range(1, lags + 1))] for t in later]
    design += [[0.0] * (1 + k) + [math.sqrt(ridge)] + [0.0] * (lags - 1 - k) for k in range(lags)]
    return linalg.lstsq(np.array(design), np.array([column[t] for t in later] + [0.0] * lags))[0]


def sizes_of(column: Matrix, weights: Matrix, edges: Sequence[int], least: float) -> dict[str, float]:
    """The spread of each view of a column."""
    lags = len(weights) - 1
    later = [t for start, stop in pairwise(edges) for t in range(start + lags, stop)]
    errors = [column[t] - foreseen(column, t, weights) for t in later]
    changes = [column[t] - column[t - 1] for t in later]
    found = {LEVEL: np.std(column), ERROR: np.std(errors), CHANGE: np.std(changes), MOVING: np.std(column)}
    return {view: max(float(size), least) for view, size in found.items()}


def foreseen(column: Matrix, t: int, weights: Matrix) -> float:
    """The row at t, by those before it."""
    return float(weights[0] + sum(weights[k] * column[t - k] for k in range(1, len(weights))))


# Views and channels


@dataclass
class Sight:
    """How rows (n, d) look: each column through its views.

    weights: (1 + lags, d).  sizes: (4, d), in the order of the views above.
    grains: of prediction errors, and of rows in a baseline, where they are rounded: a half, half up.
    """

    rows: Matrix
    weights: Matrix
    sizes: Matrix
    base: int
    gap: int
    windows: Sequence[int]
    floor: float
    grains: tuple[float, float] | None = None

    def view(self, t: int, column: int, view: str) -> float:
        """One number of one row."""
        own = self.rows[:, column]
        if view == LEVEL:
            return float(own[t] / self.sizes[0, column])
        if view == ERROR:
            error = float(own[t] - foreseen(own, t, self.weights[:, column]))
            return (kept(error, self.grains[0], math.inf) if self.grains else error) / float(self.sizes[1, column])
        if view == CHANGE:
            return float((own[t] - own[t - 1]) / self.sizes[2, column])
        earlier = [own[i] for i in range(t - self.gap - self.base, t - self.gap)]
        if self.grains:
            earlier = [math.floor(x / self.grains[1] + 0.5) * self.grains[1] for x in earlier]
        return float((own[t] - math.fsum(earlier) / self.base) / self.sizes[3, column])

    def channel(self, t: int, name: Named) -> float:
        """The mean of a view over a window that ends at t, or the logarithm of its spread there."""
        column, view, window, kind = name
        seen = [self.view(i, column, view) for i in range(t - window + 1, t + 1)]
        mean = math.fsum(seen) / window
        if kind == "mean":
            return mean
        return math.log(math.sqrt(math.fsum((x - mean) ** 2 for x in seen) / window + self.floor**2))

    @property
    def names(self) -> list[Named]:
        """All channels: means by view, window and column, then spreads over the widest window."""
        columns, widest = range(self.rows.shape[1]), max(self.windows)
        views = (LEVEL, ERROR, CHANGE, MOVING)
        means = [(c, view, window, "mean") for view in views for window in self.windows for c in columns]
        return means + [(c, view, widest, "spread") for view in (ERROR, CHANGE) for c in columns]

    @property
    def first(self) -> int:
        """The first row that has channels."""
        return self.base + self.gap + max(self.windows) - 1

    def channels(self) -> Matrix:
        """Of all rows that have them."""
        rows = range(self.first, len(self.rows))
        return np.array([[self.channel(t, name) for name in self.names] for t in rows]).reshape(-1, len(self.names))


# How alarms come


@dataclass
class Listener:
    """One running scale per channel, and the rule.

    silent: rows without a test at first and after an alarm.  deaf: those to come now.  rang: whether they follow an
    alarm, whose rows raise the scales.  age: rows so far.
    """

    scale: list[float]
    level: float
    memory: float
    attack: float
    cap: float
    silent: int
    early: float
    fade: float
    rounded: Callable[[float], float] = float
    """How running scales are kept."""
    deaf: int = 0
    rang: bool = False
    age: int = 0
    squares: list[list[float]] = field(default_factory=list)
    """Of all rows so far; the running scales hear of each after `silent` rows, and nothing of those that have none."""

    def begin(self) -> None:
        """A stream begins, after rows of the past."""
        self.deaf, self.rang, self.age = self.silent, False, 0

    def hear(self, deviations: Sequence[float]) -> tuple[float, int] | None:
        """The loudest channel and its place, or nothing from those that do not listen yet; `rang` says if it rings."""
        strict = 1 + self.early * math.exp(-self.age / self.fade)
        self.age += 1
        if len(self.squares) >= self.silent:
            old = self.squares[-self.silent]
            most = (self.cap * self.level) ** 2
            for c, square in enumerate(old):
                scale = max(self.scale[c] + (min(square, most) - self.scale[c]) / self.memory, 1.0)
                self.scale[c] = self.rounded(scale)
        squares = [x * x for x in deviations]
        self.squares.append(squares)
        loud = [math.sqrt(square / scale) / strict for square, scale in zip(squares, self.scale, strict=True)]
        if self.deaf:
            self.deaf -= 1
            if self.rang:
                self.startle(squares, strict)
            return None
        self.rang = max(loud) > self.level
        if self.rang:
            self.deaf = self.silent
            self.startle(squares, strict)
        return max(loud), loud.index(max(loud))

    def startle(self, squares: Sequence[float], strict: float) -> None:
        """Scales are such that `attack` times as large a square would be just quiet."""
        for c, square in enumerate(squares):
            self.scale[c] = self.rounded(max(self.scale[c], self.attack * square / (strict * self.level) ** 2))


# Rehearsal


def missed(channel: Sequence[float], edges: Sequence[int]) -> list[list[float]]:
    """Of each stretch between the edges, the distances of its rows to the mean of all that came before it."""
    return [[x - math.fsum(channel[:start]) / start for x in channel[start:stop]] for start, stop in pairwise(edges)]


def unit(
    stretches: list[list[float]],
    rows: int,
    window: int,
    *,
    start: float,
    doubt: float,
    usual: float,
    seldom: float,
    largest: float,
    least: float,
    known: float | None = None,
) -> float:
    """What one channel is off by: variance between and within stretches, as Student's law sees it, or its extremes.

    known: degrees of freedom of what differs between stretches, if not as many as there are.
    """
    everything = sorted(abs(x) for own in stretches for x in own)
    length = len(everything) / len(stretches)
    within = float(np.mean([np.var(own) for own in stretches]))
    between = float(np.mean([np.mean(own) ** 2 for own in stretches]))
    total = between + within + 1e-9
    share = max(between - within * min(1.0, window / length), 0.0) / total
    freedom = 1 / (share**2 / (known or len(stretches)) + (1 - share) ** 2 / max(rows * (1 - start) / window, 2))
    wider = stats.t.isf(doubt, max(freedom, 2)) / stats.norm.isf(doubt)
    extremes = quartile(everything, usual) / seldom, everything[-1] / largest
    return float(max(math.sqrt(total) * wider, *extremes, least))


# Worlds


def autoregression(values: Sequence[float], edges: Sequence[int], longest: int) -> Matrix:
    """Yule and Walker's equations solved for each order; the one of the least corrected criterion of Akaike."""
    n = len(values)
    covariance = [
        math.fsum(values[t] * values[t - k] for start, stop in pairwise(edges) for t in range(start + k, stop)) / n
        for k in range(longest + 1)
    ]
    best, chosen = n * math.log(covariance[0]), np.zeros(0)
    for order in range(1, longest + 1):
        weights = linalg.solve_toeplitz(covariance[:order], covariance[1 : order + 1])
        variance = covariance[0] - float(np.dot(weights, covariance[1 : order + 1]))
        criterion = n * math.log(variance) + 2 * order * n / max(n - order - 2, 1)
        if criterion < best:
            best, chosen = criterion, weights
    return chosen


def unforeseen(rows: Matrix, edges: Sequence[int], weights: Matrix) -> Matrix:
    """What the last rows leave of each row that has enough of them in its group."""
    p = len(weights)
    return np.array(
        [
            [rows[t][j] - sum(weights[k][j] * rows[t - 1 - k][j] for k in range(p)) for j in range(len(rows[t]))]
            for start, stop in pairwise(edges)
            for t in range(start + p, stop)
        ]
    )
