"""Changes to explain: which the law before is, and which the law after."""

from __future__ import annotations

import numpy as np

from tocsin._experiments import laws
from tocsin._experiments.laws import Law, Points

Change = tuple[Law, Law]

COLUMNS = 50


def normal(columns: int) -> Law:
    """N(0, I)."""
    return lambda rng, n: rng.standard_normal((n, columns))


def student(rng: np.random.Generator, n: int) -> Points:
    """Independent columns of Student's t with 4 degrees of freedom, of variance 1."""
    return np.asarray(rng.standard_t(4, (n, COLUMNS)) / np.sqrt(2))


def factors(rng: np.random.Generator, n: int) -> Points:
    """Columns of variance 1 that share five factors."""
    loadings = np.random.default_rng(5).standard_normal((5, COLUMNS))
    points = rng.standard_normal((n, 5)) @ loadings + rng.standard_normal((n, COLUMNS)) * np.sqrt(5)
    return np.asarray(points / np.sqrt((loadings**2).sum(0) + 5))


def pump(together: float) -> Law:
    """Two columns with this correlation."""

    def law(rng: np.random.Generator, n: int) -> Points:
        flow, noise = rng.standard_normal((2, n))
        return np.column_stack([flow, together * flow + np.sqrt(1 - together**2) * noise])

    return law


def moved(law: Law, shift: float, columns: int | None = None) -> Law:
    """The first columns, or all, moved up."""

    def after(rng: np.random.Generator, n: int) -> Points:
        points = law(rng, n)
        points[:, :columns] += shift
        return points

    return after


def stretched(law: Law, factor: float) -> Law:
    """All columns multiplied."""
    return lambda rng, n: law(rng, n) * factor


def other_mixture(rng: np.random.Generator, n: int) -> Points:
    """The clusters of `laws.mixture_t5`, in other proportions."""
    centres = np.array([[0.0] * 5, [4.0] + [0.0] * 4, [0.0, -3.0, 3.0, 0.0, 0.0]])
    return centres[rng.choice(3, n, p=[0.15, 0.7, 0.15])] + rng.standard_t(5, (n, 5))


def other_categories(rng: np.random.Generator, n: int) -> Points:
    """The first column of `laws.categories` in other proportions."""
    points = laws.categories(rng, n)
    points[:, :4] = np.eye(4)[rng.choice(4, n, p=[0.25, 0.25, 0.35, 0.15])]
    return points


def table(rng: np.random.Generator, n: int) -> Points:
    """Numbers, categories, a rare flag, counts, a constant and a column that is mostly 0, side by side."""
    numbers = rng.standard_normal((n, 4))
    return np.column_stack(
        [
            numbers[:, :2],
            np.eye(4)[rng.choice(4, n, p=[0.6, 0.25, 0.13, 0.02])],
            np.eye(3)[np.digitize(numbers[:, 2] + 0.5 * numbers[:, 0], [-0.5, 1])],
            rng.random(n) < 0.02,
            0.8 * rng.poisson(1.5, n),
            np.zeros(n),
            numbers[:, 3] * (rng.random(n) < 0.2),
        ]
    )


TABLE_COLUMNS = np.array([0, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5, 6, 7])
"""Which column of `table` each feature belongs to."""


def laplace(rng: np.random.Generator, n: int) -> Points:
    """Six columns of Laplace noise, each with a part of the one before."""
    points = rng.laplace(size=(n, 6))
    points[:, 1:] += 0.5 * points[:, :-1]
    return points


def crescents(noise: float) -> Law:
    """Two half circles that reach into each other."""

    def law(rng: np.random.Generator, n: int) -> Points:
        angle, upper = rng.uniform(0, np.pi, n), rng.random(n) < 0.5
        x, y = np.cos(angle), np.sin(angle)
        points = np.column_stack([np.where(upper, x, 1 - x), np.where(upper, y, 0.5 - y)])
        return points + noise * rng.standard_normal((n, 2))

    return law


def shell(rng: np.random.Generator, n: int) -> Points:
    """On a sphere in eight dimensions, with radii as those of a normal law, but fewer small and large ones."""
    points = rng.standard_normal((n, 8))
    radius = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / radius * (2.74 + 0.25 * (radius - 2.74)))


def rates(level: float) -> Law:
    """Four Poisson columns, the last at another level."""
    return lambda rng, n: rng.poisson([1.0, 3.0, 10.0, 5.0 * level], (n, 4)).astype(np.float64)


SEEN: dict[str, Change] = {
    "1 column by 1": (normal(1), moved(normal(1), 1.0)),
    "3 columns by 1": (normal(3), moved(normal(3), 1.0)),
    "8 columns by 0.5": (normal(8), moved(normal(8), 0.5)),
    "5 columns x 0.6": (normal(5), stretched(normal(5), 0.6)),
    "mixture": (laws.mixture_t5, other_mixture),
    "categories": (laws.categories, other_categories),
    "correlation": (pump(0.9), pump(0.0)),
    "skewed": (laws.skewed, moved(laws.skewed, 0.5)),
    "Cauchy": (laws.cauchy, moved(laws.cauchy, 1.0)),
    "sparse": (laws.sparse, moved(laws.sparse, 0.3, 2)),
}
"""Changes that were looked at while explanations were made (the last, one much like it)."""

UNSEEN: dict[str, Change] = {
    "Laplace": (laplace, moved(laplace, 1.0, 2)),
    "crescents": (crescents(0.1), crescents(0.3)),
    "shell": (normal(8), shell),
    "rates": (rates(1.0), rates(1.7)),
    "outliers": (laws.outliers, moved(laws.outliers, 1.0, 3)),
}
"""Changes that were not."""
