"""What a representation is: a step that makes rows of numbers, and the checks around it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Self, TypedDict, TypeVar

import numpy as np

from tocsin._common.errors import InputError, NotFittedError, StorageError
from tocsin._compute.arrays import Float64Array
from tocsin._data.representations.batches import (
    batch_of_one,
    check_sizes,
    count_of,
    form_of,
    piece_of,
    rows_of,
    uncovered,
)

BATCH_SIZE = 512
"""Observations that a step is given at once."""

DRIFT, ROUNDING = 0.05, 0.01
"""How far a number may move when its observation comes alone: so many spreads of its column, and so much of the
column's largest value. Networks of low precision move them a little."""


T = TypeVar("T")


class Step(ABC):
    """Observations to rows of numbers: a configuration, or what it has learned. Neither ever changes."""

    kind: ClassVar[str]
    """What a file calls it."""

    @property
    def needs_fitting(self) -> bool:
        """Whether it must learn from data before it can be called."""
        return False

    @property
    def storable(self) -> bool:
        """Whether a file can hold its `parts`."""
        return False

    @abstractmethod
    def __call__(self, batch: object) -> object:
        """One row of numbers per observation."""

    @abstractmethod
    def describe(self) -> str:
        """What it is, in a few words."""

    def fit(self, batch: object, seed: int = 0, progress: bool | None = None) -> Step:
        """What it becomes by learning from observations: another step, ready to be called."""
        return self

    def parts(self) -> dict[str, object]:
        """What a file must hold to build it again."""
        raise NotImplementedError

    @classmethod
    def restore(cls, parts: Mapping[str, object]) -> Self:
        """The step that `parts` describes."""
        raise NotImplementedError


def held(parts: Mapping[str, object], name: str, kind: type[T]) -> T:
    """One of a step's parts, which must be what was written there."""
    value = parts.get(name)
    if not isinstance(value, kind):
        raise StorageError(
            f"The {name} of the file's preprocess step is of type {type(value).__name__}, and {kind.__name__} was "
            "written: the file is damaged. Restore it from a copy, or fit the detector again."
        )
    return value


class Learner(Step):
    """A configuration that has to learn before it can be called."""

    @property
    def needs_fitting(self) -> bool:
        return True

    def __call__(self, batch: object) -> object:
        raise NotFittedError(f"This {self.describe()} has not learned from any data yet: call fit(batch) first.")


class Described(TypedDict):
    """What a file holds of a representation; of its step None, if no file can hold that."""

    kind: str
    description: str
    batch_size: int
    width: int | None
    form: str | None
    step: dict[str, object] | None


class Representation:
    """A step in use: calls it in batches, and answers for what it gives.

    Parameters
    ----------
    step
        What makes the rows.
    batch_size
        Observations that the step is given at once.
    width
        Numbers per row; None to learn it from the first call. All later calls must give as many.
    form
        How batches come ('array', 'list', 'pandas', ...); None to learn it from the first call.
    """

    def __init__(
        self, step: Step, batch_size: int = BATCH_SIZE, width: int | None = None, form: str | None = None
    ) -> None:
        check_sizes("adapt", batch_size=batch_size)
        self.step, self.batch_size, self.width, self.form = step, batch_size, width, form

    @property
    def needs_fitting(self) -> bool:
        """Whether `fit` must come first."""
        return self.step.needs_fitting

    @property
    def storable(self) -> bool:
        """Whether a file can hold it; if not, the object must be given again when a detector is loaded."""
        return self.step.storable

    def fit(self, batch: object, seed: int = 0, progress: bool | None = None) -> Representation:
        """A representation that has learned from these observations; this one, if there is nothing to learn.

        What it has learned fits these observations better than any others, so they must not be in the reference.
        """
        if not self.needs_fitting:
            return self
        batch = uncovered(batch)
        count_of(batch)
        with named(self.step, "fitting"):
            return Representation(self.step.fit(batch, seed, progress), self.batch_size)

    def __call__(self, batch: object) -> Float64Array:
        """One finite row of numbers per observation, (n, width); nothing is called for no observations."""
        batch = uncovered(batch)
        count = count_of(batch)
        if self.needs_fitting:
            raise NotFittedError(f"The preprocess step ({self.describe()}) has not learned from any data yet: fit it.")
        if count == 0:
            return np.empty((0, self.width or 0))
        pieces = [self._rows(piece_of(batch, i, i + self.batch_size)) for i in range(0, count, self.batch_size)]
        widths = sorted({piece.shape[1] for piece in pieces} | ({self.width} if self.width is not None else set()))
        if len(widths) > 1:
            found = " and of ".join(map(str, widths))
            raise InputError(
                f"The preprocess step ({self.describe()}) gave rows of {found} numbers; only rows of one length can be "
                "compared. Find what makes the length depend on the data."
            )
        rows = np.concatenate(pieces)
        if count > 1 and self.width is None:
            for place in (0, count - 1):
                self._check_alone(rows, place, self._rows(piece_of(batch, place, place + 1)))
        self.width = widths[0]
        self.form = self.form or form_of(batch)
        return rows

    def one(self, x: object) -> Float64Array:
        """The row of one observation, (1, width); the step gets it in a batch of the form that it knows."""
        return self(batch_of_one(uncovered(x), self.form))

    def describe(self) -> str:
        """What it is, in a few words."""
        return self.step.describe()

    def parts(self) -> Described:
        """What a file must hold; `restore` reads it."""
        return {
            "kind": self.step.kind,
            "description": self.describe(),
            "batch_size": self.batch_size,
            "width": self.width,
            "form": self.form,
            "step": self.step.parts() if self.storable else None,
        }

    def __repr__(self) -> str:
        width = "" if self.width is None else f", rows of {self.width}"
        return f"<Representation: {self.describe()}{width}{', not fitted' if self.needs_fitting else ''}>"

    def _rows(self, piece: object) -> Float64Array:
        with named(self.step, "calling"):
            output = self.step(piece)
        return rows_of(output, count_of(piece), self.describe())

    def _check_alone(self, rows: Float64Array, place: int, alone: Float64Array) -> None:
        """A detector sees observations one by one and in blocks; both must give the same row."""
        allowed = DRIFT * rows.std(0) + ROUNDING * np.abs(rows).max(0)
        if alone.shape[1] == rows.shape[1] and np.all(np.abs(alone[0] - rows[place]) <= allowed):
            return
        raise InputError(
            f"The preprocess step ({self.describe()}) gives observation {place + 1} (index {place}) the row "
            f"{_shown(rows[place])} among {len(rows)}, and {_shown(alone[0])} alone. The row of an observation may "
            "depend on nothing else: neither on means of the batch nor on random numbers. Learn such numbers "
            "beforehand, from other data."
        )


@contextmanager
def named(step: Step, doing: str) -> Iterator[None]:
    """Errors that come out of a step say which it was."""
    try:
        yield
    except Exception as error:
        error.add_note(f"Raised while {doing} the preprocess step: {step.describe()}.")
        raise


def _shown(row: Float64Array) -> str:
    more = ", ..." if len(row) > 3 else ""
    return f"({', '.join(f'{value:.4g}' for value in row[:3])}{more})"
