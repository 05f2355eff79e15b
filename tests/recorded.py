"""Recordings of machines that have levels, spreads and memories of their own."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array


def machine(rng: np.random.Generator, count: int, columns: int = 3, memory: float = 0.5) -> Float64Array:
    """Rows of one: levels differ by twenty spreads, logarithms of spreads by a half, memories a little."""
    own = float(np.clip(np.tanh(np.arctanh(memory) + 0.25 * rng.normal()), -0.95, 0.95))
    rows = rng.normal(size=(count + 100, columns))
    for t in range(1, len(rows)):
        rows[t] += own * rows[t - 1]
    level, spread = 20 * rng.normal(size=columns), np.exp(0.5 * rng.normal(size=columns))
    return np.asarray(level + spread * np.sqrt(1 - own**2) * rows[100:])


def machines(
    rng: np.random.Generator, count: int, columns: int = 3, memory: float = 0.5, rows: tuple[int, int] = (150, 300)
) -> tuple[Float64Array, Int64Array]:
    """Rows of so many, and which of them each is of."""
    found = [machine(rng, int(rng.integers(*rows)), columns, memory) for _ in range(count)]
    return np.concatenate(found), np.repeat(np.arange(count), [len(own) for own in found])
