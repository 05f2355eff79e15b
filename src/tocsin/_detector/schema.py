"""What values read from a file must be: rules that are declared, and refuse all else before it is used.

A rule is called with a value and the name of its place in the file, and raises `Wrong` or does nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

LARGEST = 1e300
"""No number of a file is larger, unless it may be infinite: sums and products of moderate numbers stay finite."""

MOST = 2**62
"""No count is larger: one more fits into 64 bits."""

EXACT = 2**53
"""No whole number that stands for a number is larger: compiled code takes none beyond 64 bits."""

MOST_SHOWN = 80
"""Letters of a value in a message."""

Rule = Callable[[Any, str], None]


class Wrong(Exception):  # noqa: N818 (no error that anybody sees: a StorageError is made of it)
    """A value breaks a rule; says which and how."""

    def __init__(self, at: str, value: object, rule: str) -> None:
        super().__init__(f"{at} is {_shown(value)}, and must be {rule}")


def anything(value: object, at: str) -> None:
    """No rule: it is handed to a user's own function, as it is."""


@dataclass(frozen=True)
class Number:
    """A number, never a truth value.

    least, most: bounds, both allowed.  nan, infinite: whether it may be NaN, or plus infinity.
    """

    least: float = -LARGEST
    most: float = LARGEST
    nan: bool = False
    infinite: bool = False

    def __call__(self, value: object, at: str) -> None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            if self.least <= value <= self.most and (isinstance(value, float) or abs(value) <= EXACT):
                return
            if isinstance(value, float) and ((self.nan and value != value) or (self.infinite and value == math.inf)):
                return
        raise Wrong(at, value, f"a number from {self.least:g} to {self.most:g}")


@dataclass(frozen=True)
class Whole:
    """A whole number between two bounds, both allowed."""

    least: int = 0
    most: int = MOST

    def __call__(self, value: object, at: str) -> None:
        if not (isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most):
            raise Wrong(at, value, f"a whole number from {self.least} to {self.most}")


@dataclass(frozen=True)
class Choice:
    """One of several words."""

    words: tuple[str, ...]

    def __call__(self, value: object, at: str) -> None:
        if not (isinstance(value, str) and value in self.words):
            raise Wrong(at, value, f"one of {', '.join(self.words)}")


def text(value: object, at: str) -> None:
    """Any text."""
    if not isinstance(value, str):
        raise Wrong(at, value, "a text")


def truth(value: object, at: str) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise Wrong(at, value, "true or false")


def plain(value: object, at: str) -> None:
    """What JSON has words for: numbers, texts, truth values, and lists and records of them."""
    if isinstance(value, dict):
        for key, item in value.items():
            plain(item, f"{at}.{key}")
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            plain(item, f"{at}[{i}]")
    elif not (value is None or isinstance(value, str | int | float)):
        raise Wrong(at, type(value).__name__, "a number, a text, or a list or record of such")


@dataclass(frozen=True)
class Maybe:
    """None, or what another rule says."""

    rule: Rule

    def __call__(self, value: object, at: str) -> None:
        if value is not None:
            self.rule(value, at)


@dataclass(frozen=True)
class Of:
    """An object of one of these classes, whose own fields were checked when it was read."""

    kinds: tuple[type, ...]

    def __call__(self, value: object, at: str) -> None:
        if not isinstance(value, self.kinds):
            raise Wrong(at, value, f"a {' or a '.join(kind.__name__ for kind in self.kinds)}")


@dataclass(frozen=True)
class Many:
    """A list or tuple of so many values, each of which keeps a rule.

    distinct: whether none may come twice.
    """

    rule: Rule
    least: int = 0
    most: int = MOST
    distinct: bool = False

    def __call__(self, value: object, at: str) -> None:
        if not isinstance(value, list | tuple) or not self.least <= len(value) <= self.most:
            raise Wrong(at, value, f"a list of {self.least} to {self.most} values")
        for i, item in enumerate(value):
            self.rule(item, f"{at}[{i}]")
        if self.distinct and len(set(value)) < len(value):
            raise Wrong(at, value, "a list without a value that comes twice")


@dataclass(frozen=True)
class Each:
    """A list with a rule for every one of its values."""

    rules: tuple[Rule, ...]

    def __call__(self, value: object, at: str) -> None:
        if not isinstance(value, list) or len(value) != len(self.rules):
            raise Wrong(at, value, f"a list of {len(self.rules)}")
        for i, (rule, item) in enumerate(zip(self.rules, value, strict=True)):
            rule(item, f"{at}[{i}]")


@dataclass(frozen=True)
class Record:
    """A dict with these keys and no others.

    rules: by key.  optional: keys that may be missing.
    """

    rules: Mapping[str, Rule]
    optional: frozenset[str] = field(default=frozenset())

    def __call__(self, value: object, at: str) -> None:
        if not isinstance(value, dict):
            raise Wrong(at, value, "a record")
        strange = sorted(map(str, value.keys() - self.rules.keys()))
        lacking = sorted(self.rules.keys() - value.keys() - self.optional)
        if strange or lacking:
            raise Wrong(at, strange or lacking, "without these" if strange else "all there, and these are missing")
        for key, rule in self.rules.items():
            if key in value:
                rule(value[key], f"{at}.{key}")


@dataclass(frozen=True)
class Array:
    """An array of one type and shape.

    kind: its dtype, as NumPy writes it.  shape: None where any length will do.
    least, most: bounds of its numbers, both allowed.  rising: whether each number is larger than the one before it.
    infinite: whether numbers may be plus infinity.
    """

    kind: str
    shape: tuple[int | None, ...]
    least: float = -LARGEST
    most: float = LARGEST
    rising: bool = False
    infinite: bool = False

    def __call__(self, value: object, at: str) -> None:
        if not isinstance(value, np.ndarray):
            raise Wrong(at, value, "an array")
        fits = value.ndim == len(self.shape) and all(
            wanted is None or wanted == found for wanted, found in zip(self.shape, value.shape, strict=True)
        )
        if value.dtype != np.dtype(self.kind) or not fits:
            shape = ", ".join("any" if length is None else str(length) for length in self.shape)
            raise Wrong(at, f"{value.dtype} of shape {value.shape}", f"{np.dtype(self.kind)} of shape ({shape})")
        limit = float(np.finfo(value.dtype).max) if value.dtype.kind == "f" else math.inf
        least, most = max(self.least, -limit), min(self.most, limit)
        # The least and the most of them, not a mask: that of bytes is as large as they are.
        for extreme in (value.min().item(), value.max().item()) if value.size else ():
            if not (least <= extreme <= most or (self.infinite and extreme == math.inf)):
                raise Wrong(at, extreme, f"numbers from {self.least:g} to {self.most:g}")
        if self.rising and not (value[1:] > value[:-1]).all():
            raise Wrong(at, value, "numbers that rise")


def must(holds: bool, at: str, value: object, rule: str) -> None:
    """Refuse a value by a rule that looks at several parts."""
    if not holds:
        raise Wrong(at, value, rule)


def _shown(value: object) -> str:
    value = _begun(value)
    shown = value if isinstance(value, str) else repr(value)
    return shown if len(shown) <= MOST_SHOWN else f"{shown[: MOST_SHOWN - 3]}..."


def _begun(value: object) -> object:
    """As much of a value as is shown: there may be no room for all of it as text."""
    if isinstance(value, str):
        return value[: MOST_SHOWN + 1]
    if type(value) in (list, tuple, dict):
        few = list(islice(value, MOST_SHOWN))  # type: ignore[call-overload]
        if isinstance(value, dict):
            return {_begun(key): _begun(value[key]) for key in few}
        return type(value)(map(_begun, few))  # type: ignore[call-arg]
    return value
