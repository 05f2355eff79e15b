"""Simulated streams whose truth is known: a number, what is expected of it given a context, and how far it spreads."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tocsin._compute.arrays import Array, Float64Array
from tocsin._data.tables import Table, Values
from tocsin._experiments.stream_laws import autoregressive

HOURS = 24

SHARES = (0.4, 0.3, 0.15, 0.1, 0.05)
LEVELS = (0.0, 3.0, -3.0, 2.0, -2.0)
"""Of customers of each kind: how common they are, and what is expected of them."""

FARTHEST = 2.5
"""Loads lie within so much of 0."""

WATCHED = "x"


class Truth(NamedTuple):
    """The context, and what is expected given it, with its spread."""

    context: dict[str, Array]
    expected: Float64Array
    spread: Float64Array


Law = Callable[[np.random.Generator, int, float], Truth]
"""From random numbers, a number of rows, and how far the context has moved on: 0 as in the reference."""


def _load(rng: np.random.Generator, count: int, moved: float) -> Float64Array:
    return np.clip(rng.normal(moved, 1, count), -FARTHEST, FARTHEST)


def _nothing(rng: np.random.Generator, count: int, moved: float) -> Truth:
    return Truth({"load": _load(rng, count, moved)}, np.zeros(count), np.ones(count))


def _linear(rng: np.random.Generator, count: int, moved: float) -> Truth:
    load = _load(rng, count, moved)
    return Truth({"load": load}, 2 * load, np.ones(count))


def _smooth(rng: np.random.Generator, count: int, moved: float) -> Truth:
    load = _load(rng, count, moved)
    return Truth({"load": load}, 2 * np.sin(1.5 * load) + load, np.ones(count))


def _cyclic(rng: np.random.Generator, count: int, _moved: float) -> Truth:
    hour = (rng.integers(HOURS) + np.arange(count)) % HOURS
    angle = hour * (2 * np.pi / HOURS)
    return Truth({"hour": hour.astype(np.float64)}, 2 * np.sin(angle) + np.cos(2 * angle), np.ones(count))


def _levels(rng: np.random.Generator, count: int, moved: float) -> Truth:
    shares = np.roll(SHARES, 2) if moved else np.array(SHARES)
    kind = rng.choice(len(LEVELS), count, p=shares)
    return Truth({"customer": np.array([f"kind {k}" for k in kind], object)}, np.array(LEVELS)[kind], np.ones(count))


def _uneven(rng: np.random.Generator, count: int, moved: float) -> Truth:
    load = _load(rng, count, moved)
    return Truth({"load": load}, 2 * load, np.exp(0.4 * load))


CONTEXT_LAWS: dict[str, Law] = {
    "nothing": _nothing,
    "linear": _linear,
    "smooth": _smooth,
    "cyclic": _cyclic,
    "levels": _levels,
    "uneven spread": _uneven,
}
"""By the names that results have for them."""

MOVES = tuple(name for name in CONTEXT_LAWS if name != "cyclic")
"""Those whose context can move on: hours go round."""


def drawn(
    law: str, rng: np.random.Generator, count: int, memory: float, moved: float = 0.0
) -> tuple[dict[str, Array], Float64Array]:
    """A context, and the numbers that come of it: noise has a standard deviation of 1, and remembers so much."""
    context, expected, spread = CONTEXT_LAWS[law](rng, count, moved)
    noise = autoregressive(memory)(rng, count, 1)[:, 0] * np.sqrt(1 - memory**2)
    return context, expected + spread * noise


def as_table(context: dict[str, Array], numbers: Float64Array) -> Table:
    """Both, as a detector takes them."""
    columns = {
        name: Values.of_words(own.tolist()) if own.dtype == object else Values.of_numbers(own)
        for name, own in context.items()
    }
    return Table(columns | {WATCHED: Values.of_numbers(numbers)})
