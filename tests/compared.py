"""Tables to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Rng = np.random.Generator


def heavy(rng: Rng, n: int) -> Any:
    """Heavy tails, columns that depend on each other."""
    return rng.standard_t(3, size=(n, 2)) @ np.array([[1.0, 0.7], [0.0, 1.0]])


def counts(rng: Rng, n: int) -> Any:
    """Ties everywhere."""
    return rng.poisson([0.3, 2.0], size=(n, 2))


def mixed(rng: Rng, n: int) -> Any:
    """Numbers, common and rare categories, gaps and times."""
    rare = rng.geometric(0.2, n)
    return [
        {
            "flow": float(rng.lognormal()),
            "state": str(rng.choice(["on", "off", "idle"], p=[0.7, 0.25, 0.05])),
            "kind": f"k{rare[i]}",
            "level": None if rng.random() < 0.1 else float(rng.normal()),
            "seen": f"2024-03-{rng.integers(1, 29):02d}T{rng.integers(24):02d}:00:00",
        }
        for i in range(n)
    ]


def wide(rng: Rng, n: int) -> Any:
    """More columns than rows."""
    return rng.exponential(size=(n, 60))


def autoregressive(rng: Rng, n: int, phi: float) -> Any:
    rows = rng.normal(size=(n + 50, 2))
    for i in range(1, len(rows)):
        rows[i] += phi * rows[i - 1]
    return rows[50:]


def rows(rng: Rng, n: int, **changed: Callable[[], object]) -> list[dict[str, object]]:
    """A table of ten columns; `changed` for what is different."""
    return [
        {
            **{f"x{j}": float(rng.normal()) for j in range(8)},
            "state": str(rng.choice(["on", "off"])),
            "seen": f"2024-03-07T{rng.integers(24):02d}:00:00",
            **{name: value() for name, value in changed.items()},
        }
        for _ in range(n)
    ]
