"""Everything Tocsin raises on purpose.

    TocsinError
    ├── InputError          (ValueError)    a value breaks a rule: data, options, sizes
    ├── NotFittedError      (RuntimeError)  a detector is used before `fit`
    ├── StorageError        (ValueError)    a `.tocsin` file cannot be written or read
    └── MissingExtraError   (ImportError)   an optional dependency is not installed

    ReferenceWarning        (UserWarning)   the reference limits what the detector can do
    └── DependenceWarning                   its observations depend on those before them

Every message names the value, the rule it breaks, the reason for the rule and what to do about it.
"""

from __future__ import annotations


class TocsinError(Exception):
    """Base class of every error that Tocsin raises on purpose."""


class InputError(TocsinError, ValueError):
    """A value breaks a rule. Nothing was changed."""


class NotFittedError(TocsinError, RuntimeError):
    """The detector has no reference yet."""


class StorageError(TocsinError, ValueError):
    """A `.tocsin` file cannot be written, or is not one this version can read."""


class ReferenceWarning(UserWarning):
    """The reference limits what the detector can do; it works, and says so once."""


class DependenceWarning(ReferenceWarning):
    """The observations of the reference depend on those before them."""


class MissingExtraError(TocsinError, ImportError):
    """An optional dependency is needed for this and is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package '{package}': pip install 'tocsin[{extra}]'")
        self._parts = package, extra, purpose

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        return type(self), self._parts  # so that a worker process can raise it
