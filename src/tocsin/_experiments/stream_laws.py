"""Laws of simulated streams: independent rows, and rows that depend on those before them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tocsin._compute.arrays import Float64Array

BURN_IN = 500
"""Rows before a process is taken to have forgotten where it began."""

SEASON, SEASONAL = 24, 2.0
REGIME, HIGH = 40, 2.0
"""Rows of a regime on average, and how much higher the second is, in deviations of the noise."""

STEP = 0.05
"""Of a walk, in deviations of the noise around it."""

FREEDOM, RATE = 3, 3.0

StreamLaw = Callable[[np.random.Generator, int, int], Float64Array]
"""(generator, rows, columns) to rows in time."""


def autoregressive(coefficient: float) -> StreamLaw:
    """Columns that remember, each for itself."""

    def process(rng: np.random.Generator, rows: int, columns: int) -> Float64Array:
        from scipy.signal import lfilter  # slow to import

        noise = rng.standard_normal((rows + BURN_IN, columns))
        return np.ascontiguousarray(lfilter([1.0], [1.0, -coefficient], noise, axis=0)[BURN_IN:])

    return process


def seasonal(rng: np.random.Generator, rows: int, columns: int) -> Float64Array:
    """A sine of 24 rows in noise; each column begins anywhere in it."""
    turns = np.arange(rows)[:, None] / SEASON + rng.random(columns)
    return SEASONAL * np.sin(2 * np.pi * turns) + rng.standard_normal((rows, columns))


def regimes(rng: np.random.Generator, rows: int, columns: int) -> Float64Array:
    """All columns go up and down together, at times that cannot be foreseen."""
    state = (np.cumsum(rng.random(rows) < 1 / REGIME) + rng.integers(2)) % 2
    return HIGH * state[:, None] + rng.standard_normal((rows, columns))


def walk(rng: np.random.Generator, rows: int, columns: int) -> Float64Array:
    """A random walk in noise: it never comes back for long."""
    steps, noise = STEP * rng.standard_normal((rows, columns)), rng.standard_normal((rows, columns))
    return np.cumsum(steps, axis=0) + noise


def arch(rng: np.random.Generator, rows: int, columns: int) -> Float64Array:
    """Spreads that remember, GARCH(1, 1): loud rows come together."""
    noise, variance = rng.standard_normal((rows + BURN_IN, columns)), np.ones(columns)
    found = np.empty_like(noise)
    for t, row in enumerate(noise):
        found[t] = row * np.sqrt(variance)
        variance = 0.1 + 0.3 * found[t] ** 2 + 0.6 * variance
    return found[BURN_IN:]


WALK = "random walk"
AUTOREGRESSIVE = {f"AR {coefficient}": coefficient for coefficient in (0.3, 0.6, 0.9)}
STREAM_LAWS: dict[str, StreamLaw] = {
    "Gaussian": lambda rng, rows, columns: rng.standard_normal((rows, columns)),
    "t3": lambda rng, rows, columns: rng.standard_t(FREEDOM, (rows, columns)),
    "counts": lambda rng, rows, columns: rng.poisson(RATE, (rows, columns)).astype(np.float64),
    **{name: autoregressive(coefficient) for name, coefficient in AUTOREGRESSIVE.items()},
    "season": seasonal,
    "regimes": regimes,
    WALK: walk,
    "ARCH": arch,
}
"""By the names that results have for them."""
