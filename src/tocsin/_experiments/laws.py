"""Distributions to try detectors on: the paper's four problems, and laws that no part of the code was tuned to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Law = Callable[[np.random.Generator, int], Points]
"""(generator, n) to n independent points (n, d)."""


def gaussian(rng: np.random.Generator, n: int) -> Points:
    """N(0, I) in 20 dimensions."""
    return rng.standard_normal((n, 20))


def gaussian_shifted(rng: np.random.Generator, n: int) -> Points:
    """D1: every coordinate's mean moves by 0.3."""
    return gaussian(rng, n) + 0.3


def gaussian_spread(rng: np.random.Generator, n: int) -> Points:
    """D2: half of the coordinates double their variance."""
    return np.asarray(gaussian(rng, n) * np.repeat([1.0, np.sqrt(2.0)], 10))


def square(rng: np.random.Generator, n: int) -> Points:
    """Uniform on the square with corners (+-1, +-1)."""
    return rng.uniform(-1, 1, (n, 2))


def diamond(rng: np.random.Generator, n: int) -> Points:
    """D3: uniform on the diamond with corners (0, +-2) and (+-2, 0): the square, turned by 45 degrees and stretched."""
    u, v = rng.uniform(-1, 1, (2, n))
    return np.stack([u + v, u - v], axis=1)


def hollow_square(rng: np.random.Generator, n: int) -> Points:
    """D4: uniform on the square without its inner square (+-1/2, +-1/2)."""
    points = square(rng, 2 * n + 64)
    points = points[np.abs(points).max(1) > 0.5]
    return points[:n] if len(points) >= n else np.concatenate([points, hollow_square(rng, n - len(points))])


def mixture_t5(rng: np.random.Generator, n: int) -> Points:
    """Three clusters of heavy-tailed points in 5 dimensions."""
    centres = np.array([[0.0] * 5, [4.0] + [0.0] * 4, [0.0, -3.0, 3.0, 0.0, 0.0]])
    return centres[rng.integers(0, 3, n)] + rng.standard_t(5, (n, 5))


def skewed(rng: np.random.Generator, n: int) -> Points:
    """Exponential and log-normal columns, correlated."""
    base = rng.standard_normal((n, 8))
    base[:, 4:] += base[:, :4]
    return np.concatenate([np.exp(base[:, :4] / 2), -np.log(rng.random((n, 4))), base[:, 4:]], axis=1)


def categories(rng: np.random.Generator, n: int) -> Points:
    """Two categorical columns (4 and 3 levels), one-hot: every statistic has ties."""
    first = np.eye(4)[rng.choice(4, n, p=[0.55, 0.25, 0.15, 0.05])]
    second = np.eye(3)[rng.choice(3, n, p=[0.7, 0.2, 0.1])]
    return np.concatenate([first, second], axis=1)


def coins(rng: np.random.Generator, n: int) -> Points:
    """One column, 1 in one row of ten: the errors of a model, say."""
    return (rng.random((n, 1)) < 0.1).astype(np.float64)


def cauchy(rng: np.random.Generator, n: int) -> Points:
    """Three columns without a mean, one of them mixed into another."""
    points = rng.standard_cauchy((n, 3))
    points[:, 1] += 0.5 * points[:, 0]
    return points


def counts(rng: np.random.Generator, n: int) -> Points:
    """Six columns of counts that share a rate: many values, each of them often."""
    rate = rng.gamma(2.0, 1.0, (n, 1))
    return np.asarray(rng.poisson(rate * np.array([0.5, 1, 2, 4, 4, 8])), dtype=np.float64)


def ring(rng: np.random.Generator, n: int) -> Points:
    """A noisy ring in the plane, thicker on one side."""
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = 3 + rng.standard_normal(n) * (0.3 + 0.2 * np.cos(angle))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def sparse(rng: np.random.Generator, n: int) -> Points:
    """Ten columns, mostly 0: many rows are equal, and the others are far from each other."""
    return rng.exponential(1.0, (n, 10)) * (rng.random((n, 10)) < 0.1)


def outliers(rng: np.random.Generator, n: int) -> Points:
    """Five Gaussian columns, and a point in two hundred a thousand times further out."""
    far = rng.random((n, 1)) < 0.005
    return rng.standard_normal((n, 5)) * np.where(far, 1000.0, 1.0)


PROBLEMS: dict[str, tuple[Law, Law]] = {
    "D1": (gaussian, gaussian_shifted),
    "D2": (gaussian, gaussian_spread),
    "D3": (square, diamond),
    "D4": (square, hollow_square),
}
"""The paper's problems: before and after the change."""
