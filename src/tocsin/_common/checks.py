"""What single values must be, whoever asks: numbers, whole numbers, one of several words."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from tocsin._common.errors import InputError, Part

MOST = 10**18
"""Whole numbers that count something are no larger."""


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a number, of Python's or NumPy's; truth values are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_finite(value: object) -> TypeGuard[float]:
    """Whether it is a number that a float can hold."""
    return is_number(value) and abs(value) <= sys.float_info.max


def is_whole(value: object, least: int, most: float = MOST) -> TypeGuard[int]:
    """Whether it is a whole number from `least` on."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= most)


def one_of(what: Part, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is none of the choices.

    what: the value and where it comes from, for the message.
    """
    if not isinstance(value, str) or value not in choices:
        raise InputError(what, f" is unknown; choose one of {', '.join(map(repr, choices))}.")
