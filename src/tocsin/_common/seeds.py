"""Every purpose for which a detector draws random numbers: from one seed, and never the same ones for two of them."""

from __future__ import annotations

from enum import IntEnum, unique

import numpy as np


@unique
class Purpose(IntEnum):
    """What numbers are drawn for. A detector's thresholds depend on these values: they are never used again."""

    PILOT = 1
    MAIN = 2
    PREPARE = 3
    REFERENCES = 4
    START = 5
    ATOMS = 6
    SPREAD = 7
    ORDER = 8
    REALITY = 9
    CONTROLS = 10
    REPRESENTATION = 11
    BANK_STARTS = 12
    FLEET_STARTS = 13
    EXPLAIN = 14
    COMPARE = 15
    WORLDS = 16
    WANDERING = 17
    POWER = 18


LARGEST = 2**4096
"""No seed is larger: a file has no room for numbers without end."""


def generator(seed: int, purpose: Purpose, *further: int) -> np.random.Generator:
    """The random numbers of a purpose; further numbers tell its parts apart (a missing one counts as 0)."""
    return np.random.default_rng([seed, purpose, *further])
