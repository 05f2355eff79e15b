"""Streams with a memory, to try block calibration on."""

from __future__ import annotations

import numpy as np

from tocsin._experiments.laws import Law, Points

BURN_IN = 500
"""Steps before a process is taken to have forgotten where it began."""


def autoregressive(coefficient: float) -> Law:
    """Three independent AR(1) columns of variance 1."""

    def process(rng: np.random.Generator, n: int) -> Points:
        return _filtered(rng.standard_normal((n + BURN_IN, 3)) * np.sqrt(1 - coefficient**2), coefficient)

    return process


def _filtered(noise: Points, coefficient: float) -> Points:
    """x_t = coefficient x_{t-1} + noise_t, without the burn-in."""
    from scipy.signal import lfilter

    return np.ascontiguousarray(lfilter([1.0], [1.0, -coefficient], noise, axis=0)[BURN_IN:])


def vector(rng: np.random.Generator, n: int) -> Points:
    """A VAR(1) of four columns that drive each other, with heavy-tailed noise."""
    matrix = np.array([[0.5, 0.2, 0.0, 0.0], [-0.2, 0.5, 0.2, 0.0], [0.0, 0.0, 0.3, 0.4], [0.1, 0.0, -0.4, 0.3]])
    noise = rng.standard_t(6, (n + BURN_IN, 4))
    out = np.zeros_like(noise)
    for t in range(1, len(out)):
        out[t] = matrix @ out[t - 1] + noise[t]
    return out[BURN_IN:]


def regimes(rng: np.random.Generator, n: int) -> Points:
    """Two columns that switch between two ways of behaving, twenty steps at a time on average."""
    switches = rng.random(n) < 0.05
    state = (np.cumsum(switches) + rng.integers(0, 2)) % 2
    noise = rng.standard_normal((n, 2))
    calm, lively = noise * 0.5, noise * np.array([1.5, 1.0]) + np.array([1.0, 0.0])
    return np.where(state[:, None] == 0, calm, lively)


def seasonal(rng: np.random.Generator, n: int) -> Points:
    """A cycle of 24 steps in two columns, with AR(1) noise; it begins anywhere in the cycle."""
    phase = 2 * np.pi * (np.arange(n) + rng.integers(0, 24)) / 24
    noise = _filtered(rng.standard_normal((n + BURN_IN, 2)) * np.sqrt(1 - 0.25), 0.5)
    return np.stack([np.sin(phase), np.cos(phase)], axis=1) + noise


PROCESSES: dict[str, Law] = {
    "AR 0": autoregressive(0.0),
    "AR 0.3": autoregressive(0.3),
    "AR 0.6": autoregressive(0.6),
    "AR 0.9": autoregressive(0.9),
    "VAR": vector,
    "regimes": regimes,
    "seasonal": seasonal,
}
