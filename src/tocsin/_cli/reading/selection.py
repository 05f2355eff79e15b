"""Which columns to read, and what they must hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tocsin._common.errors import InputError, Option
from tocsin._data.tables.table import Holds
from tocsin._explain.beside import CLOCK, clock_among

BLOCK = 4096
"""Rows handed out at once."""

At = Callable[[int], str]
"""What to call a row of a block, in a message."""


@dataclass(frozen=True)
class Aside:
    """What stands beside the columns that are watched, and is read as it is.

    keep: columns to find a record again by.  texts: watched columns of texts.  clocks: columns that said in the
        reference when a row came.  watched: all that are watched.
    """

    keep: Sequence[str] = ()
    texts: Sequence[str] = ()
    clocks: Sequence[str] = ()
    watched: Sequence[str] = ()

    def without(self, names: Sequence[str]) -> list[str]:
        """The other columns of a source: those that are kept need not be watched."""
        return [name for name in names if name not in self.keep or name in self.watched]

    def must_be_in(self, source: str, names: Sequence[str]) -> None:
        """Refuse columns to keep that the source has not."""
        absent = [name for name in self.keep if name not in names]
        if absent:
            raise InputError(
                Option("keep", list(self.keep)),
                f": {source} has no column {' or '.join(map(repr, absent))}; its columns are {listed(names)}. Name "
                "some of these, or leave it out.",
            )

    def places(self, names: Sequence[str], first: Sequence[object]) -> dict[str, int]:
        """Where the columns are in a row, by the names that `Beside` knows them by. first: the first row's values."""
        places = {name: names.index(name) for name in (*self.keep, *self.texts) if name in names}
        clock = clock_among(dict(zip(names, first, strict=False)), self.clocks)
        return places if clock is None else {**places, CLOCK: names.index(clock)}


@dataclass(frozen=True)
class Selection:
    """What to read.

    columns: names of the columns to read, in this order; all of them by default.
    holds: what each column holds, by name (columns without an entry may hold anything); 'guess' to see it from the
        values; None for numbers without gaps.
    expects: is called with the names, as soon as they are known, to refuse those that are wrong.
    aside: what to read besides, as it stands there.
    """

    columns: Sequence[str] | None = None
    holds: Mapping[str, Holds] | Literal["guess"] | None = None
    expects: Callable[[Sequence[str]], None] | None = None
    aside: Aside | None = None

    def of(self, column: str) -> Holds | None:
        """What a column must hold; None if that is to be seen from its values."""
        if self.holds is None:
            return "numbers"
        if self.holds == "guess":
            return None
        nameless = column.isdecimal() and column not in self.holds and not all(map(str.isdecimal, self.holds))
        if nameless and 0 < int(column) <= len(self.holds):
            return list(self.holds.values())[int(column) - 1]
        return self.holds.get(column)

    def positions(self, source: str, names: Sequence[str]) -> list[int]:
        """Where the chosen columns are among `names`."""
        every = names
        if self.aside is not None:
            self.aside.must_be_in(source, names)
            every = self.aside.without(names)
        chosen = every if self.columns is None else self.columns
        for column in chosen:
            if names.count(column) != 1:
                problem = "more than one column" if column in names else "no column"
                raise InputError(f"{source} has {problem} {column!r}; its columns are {listed(names)}.")
        if self.expects is not None:
            self.expects(chosen)
        return [names.index(column) for column in chosen]


def listed(names: Iterable[str]) -> str:
    """Names for a message."""
    shown = [name or "''" for name in names]
    return ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "")


def refusal(where: str, column: str, value: object) -> InputError:
    """Why a value cannot be taken for a number."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return InputError(f"{where}, column {column!r} is empty; every value must be a number. Drop or fill such rows.")
    shown = f"{str(value)[:40]!r}"
    return InputError(
        f"{where}, column {column!r} holds {shown}; every value must be a number. Encode the column as numbers, or "
        "leave it out: ",
        Option("columns", ...),
        " names those to read.",
    )


def not_finite(where: str, column: str, value: float) -> InputError:
    """Why a number is refused."""
    return InputError(
        f"{where}, column {column!r} holds {value}; every value must be finite, since one that is not would "
        "blind the detector for a whole window. Drop or fill such rows."
    )
