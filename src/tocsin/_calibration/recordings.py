"""Worlds of recordings: fleets that could have been, made from a reference of several machines, patients or days.

Each recording of the reference is a kind: a sieve of its own (`worlds`) says what its rows do about its level, in units
of its spread. A new recording is of a kind at random, and has a level and a spread of its own. These are those of its
kind, moved: by a mixture, with Gaussian weights, of what all recordings differ by, which keeps what columns have to do
with each other. The fewer recordings there are, the further they are moved, up to a law that is Gaussian: what a few
recordings are is no bound for what the next one will be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tocsin._calibration.worlds import World
from tocsin._compute import Functions
from tocsin._compute.arrays import Float64Array

SMOOTHING = -0.2
"""The power of the number of recordings that says how far levels and spreads are moved (Silverman 1986)."""


@dataclass(frozen=True, eq=False)
class Fleet:
    """What the recordings of a reference are like, and what they differ by.

    kinds: of rows about a level, in units of a spread.  levels, logarithms: of each recording, (R, d), and the
    logarithms of its spreads.
    """

    kinds: list[World]
    levels: Float64Array
    logarithms: Float64Array

    @classmethod
    def of(cls, recordings: Sequence[Float64Array], levels: Float64Array, logarithms: Float64Array) -> Fleet:
        """From rows (n, d) of each, about its level and in units of its spread."""
        return cls([World.of(rows, np.array([0, len(rows)])) for rows in recordings], levels, logarithms)

    def draw(
        self, rng: np.random.Generator, kind: int, length: int, compute: Functions
    ) -> tuple[Float64Array, Float64Array, Float64Array]:
        """A new recording of so many rows, of this kind: its level, its spread, and its rows in these."""
        count = len(self.kinds)
        width = count**SMOOTHING
        mixture = rng.normal(size=count) * width / np.sqrt(max(count - 1, 1))
        level, spread = (
            own.mean(0) + (own[kind] - own.mean(0) + mixture @ (own - own.mean(0))) / np.sqrt(1 + width**2)
            for own in (self.levels, self.logarithms)
        )
        return level, np.exp(spread), self.kinds[kind].draw(rng, length, compute)
