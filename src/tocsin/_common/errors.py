"""Everything Tocsin raises on purpose.

    TocsinError
    ├── InputError          (ValueError)    a value breaks a rule: data, options, sizes
    ├── NotFittedError      (RuntimeError)  a detector is used before `fit`
    ├── StorageError        (ValueError)    a `.tocsin` file cannot be written or read
    └── MissingExtraError   (ImportError)   an optional dependency is not installed

    ReferenceWarning        (UserWarning)   the reference limits what the detector can do
    └── DependenceWarning                   its observations depend on those before them

Every message names the value, the rule it breaks, the reason for the rule and what to do about it. It is made of text
and of the options that it names: `str` spells these as Python does, and `told` as whoever has other words for them.

>>> error = InputError(Option("ert", 1), " is too small; ask for more, or give ", Option("window", ...))
>>> str(error)
'ert=1 is too small; ask for more, or give window=...'
>>> error.told(lambda option: option.name.upper())
'ERT is too small; ask for more, or give WINDOW'
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


class Code(str):
    """A value as it is written in Python, such as Blocks()."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def in_short(value: object) -> object:
    """As a message shows it: of whole numbers that fill pages, or cannot be written at all, how long they are."""
    if isinstance(value, int) and abs(value) >= PAGES:
        return Code(f"(a number of {int(math.log10(abs(value))) + 1} digits)")
    if type(value) is list:
        return [in_short(part) for part in value]
    if type(value) is tuple:
        return tuple(in_short(part) for part in value)
    return value


PAGES = 10**40
"""Whole numbers from which on nobody reads the digits."""


@dataclass(frozen=True)
class Option:
    """An option, as a message names it.

    value: the one that was given, or that is advised; `...` for any, and none to name the option alone.
    of: the class that has the option, if it is not the detector or function that was called.

    >>> print(Option("ert", 1), Option("window", ...), Option("cluster"), Option("length", 0, of="Blocks"))
    ert=1 window=... cluster Blocks(length=0)
    """

    name: str
    value: object = Code("")
    of: str = ""

    @property
    def alone(self) -> bool:
        """Whether it is named without a value."""
        return isinstance(self.value, Code) and not self.value

    def __str__(self) -> str:
        value = "..." if self.value is ... else repr(in_short(self.value))
        text = self.name if self.alone else f"{self.name}={value}"
        return f"{self.of}({text})" if self.of else text

    def __reduce__(self) -> tuple[type[Option], tuple[str, object, str]]:
        return Option, (self.name, _portable(self.value), self.of)


Part = str | Option


class Worded(BaseException):
    """An error or a warning whose message has parts: text, and options."""

    def __init__(self, *parts: Part) -> None:
        super().__init__(*parts)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The message, to be made part of another."""
        return self.args

    @property
    def options(self) -> tuple[Option, ...]:
        """The options that it names."""
        return tuple(part for part in self.parts if isinstance(part, Option))

    def told(self, spelling: Callable[[Option], str]) -> str:
        """The message, with options spelled so."""
        return "".join(spelling(part) if isinstance(part, Option) else str(part) for part in self.parts)

    def __str__(self) -> str:
        return self.told(str)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class TocsinError(Worded, Exception):
    """Base class of every error that Tocsin raises on purpose."""


class InputError(TocsinError, ValueError):
    """A value breaks a rule. Nothing was changed."""


class NotFittedError(TocsinError, RuntimeError):
    """The detector has no reference yet."""


class StorageError(TocsinError, ValueError):
    """A `.tocsin` file cannot be written, or is not one this version can read."""


class ReferenceWarning(Worded, UserWarning):
    """The reference limits what the detector can do; it works, and says so once."""


class DependenceWarning(ReferenceWarning):
    """The observations of the reference depend on those before them."""


class MissingExtraError(TocsinError, ImportError):
    """An optional dependency is needed for this and is not installed."""

    def __init__(self, package: str, extra: str | None, *purpose: Part) -> None:
        wanted = package if extra is None else f"'tocsin[{extra}]'"
        super().__init__(*purpose, f" needs the package '{package}': pip install {wanted}")
        self.msg = str(self)
        self._given = package, extra, *purpose

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[Part | None, ...]]:
        return type(self), self._given  # so that a worker process can raise it


def _portable(value: object) -> object:
    """The value, if it is one of Python's own; else its text: an error may travel, and the user's objects may not."""
    if type(value) is list:
        return [_portable(part) for part in value]
    if type(value) is tuple:
        return tuple(_portable(part) for part in value)
    if type(value) is dict:
        return {_portable(key): _portable(part) for key, part in value.items()}
    return value if value is None or value is ... or isinstance(value, int | float | str) else Code(repr(value))
