"""A table in memory: named columns of numbers, truth values, times or strings, each with gaps."""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from tocsin._common.errors import InputError
from tocsin._common.wording import shown
from tocsin._compute.arrays import Array, Float64Array, Int64Array

Holds = Literal["numbers", "truth values", "times", "strings", "nothing"]
"""What the values of a column are; 'nothing' if all are missing."""

EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a column.

    data: float64 with NaN for what is missing (truth values as 0 and 1, times as seconds since 1970), or, for strings,
        an array of objects with None.
    named: whether the strings are known to be names of categories.
    """

    holds: Holds
    data: Array
    named: bool = False

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, rows: slice | Int64Array) -> Values:
        return Values(self.holds, self.data[rows], self.named)

    @property
    def missing(self) -> Array:
        """Where there is no value."""
        if self.holds == "strings":
            return np.array([value is None for value in self.data], dtype=bool)
        return np.isnan(self.data)

    @classmethod
    def of_numbers(cls, data: ArrayLike, holds: Holds = "numbers") -> Values:
        """From numbers, with NaN for what is missing."""
        numbers = np.asarray(data, dtype=np.float64)
        return cls("nothing" if np.isnan(numbers).all() else holds, numbers)

    @classmethod
    def of_words(cls, words: Sequence[str | None]) -> Values:
        """From strings, with None for what is missing."""
        data = np.empty(len(words), dtype=object)
        data[:] = words
        return cls("strings", data)

    @classmethod
    def of_objects(cls, objects: Sequence[object], column: str) -> Values:
        """From Python objects of one kind, None and NaN among them."""
        quick = _of_few_types(objects)
        if quick is not None:
            return quick
        kinds: dict[Holds, object] = {}
        data = np.empty(len(objects), dtype=object)
        for i, value in enumerate(objects):
            if _is_missing(value):
                continue
            holds, data[i] = _plain(value, column)
            kinds.setdefault(holds, value)
        if len(kinds) > 1:
            (first, one), (second, other) = list(kinds.items())[:2]
            raise InputError(
                f"Column {column!r} holds {first} such as {one!r} and {second} such as {other!r}; a column holds "
                "values of one kind. Mend the column, or turn all of it into strings."
            )
        if "strings" in kinds:
            return cls("strings", data)
        if not kinds:
            return cls("nothing", np.full(len(objects), np.nan))
        return cls(next(iter(kinds)), np.array([np.nan if value is None else value for value in data]))

    @classmethod
    def join(cls, pieces: Sequence[Values]) -> Values:
        """Values that follow each other."""
        holds: Holds = next((piece.holds for piece in pieces if piece.holds != "nothing"), "nothing")
        gap = None if holds == "strings" else np.nan
        data = [
            np.full(len(piece), gap, dtype=object if gap is None else None) if piece.holds == "nothing" else piece.data
            for piece in pieces
        ]
        return cls(holds, np.concatenate(data), any(piece.named for piece in pieces))

    def as_strings(self) -> Array:
        """Each value as a word, None where it is missing."""
        if self.holds == "strings":
            return self.data
        values = self.data.tolist()
        names = {value: self._word(value) for value in set(values)}
        words = np.empty(len(values), dtype=object)
        words[:] = [names[value] for value in values]
        return words

    def _word(self, value: float) -> str | None:
        if value != value:
            return None
        return word_of(bool(value)) if self.holds == "truth values" else number_word(value)


def number_word(value: float) -> str:
    """A number as a word."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e16 else repr(value)


def word_of(truth: bool) -> str:
    """A truth value as a word."""
    return "true" if truth else "false"


def _of_few_types(objects: Sequence[object]) -> Values | None:
    """Columns of strings alone, or of numbers alone, at once; None for others."""
    types = set(map(type, objects))
    if types == {str} or types == {str, type(None)}:
        return Values.of_words(cast(Sequence[str | None], objects))
    numbers = plain_numbers(objects)
    return None if numbers is None else Values.of_numbers(numbers)


def plain_numbers(objects: Sequence[object]) -> Float64Array | None:
    """As an array, NaN for None, if all are numbers that Python has or None."""
    if not {int, float, np.float64, type(None)}.issuperset(map(type, objects)):
        return None
    try:
        return np.array(objects, dtype=np.float64)
    except OverflowError:
        return None


GAPS = ("NAType", "NaTType", "MaskedConstant")
"""Types by which pandas, and NumPy's masked arrays, say that a value is missing."""


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ in GAPS:
        return True
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    return isinstance(value, float | np.floating | np.datetime64 | np.timedelta64) and bool(value != value)


def _plain(value: object, column: str) -> tuple[Holds, float | str]:
    """What a value is, and the value as a number or a string."""
    if isinstance(value, str):
        return "strings", str.__str__(value)  # of an enumeration, the value rather than the name
    if isinstance(value, bool | np.bool_):
        return "truth values", float(value)
    if isinstance(value, numbers.Real | decimal.Decimal) and not isinstance(value, np.timedelta64):
        try:
            return "numbers", float(value)
        except OverflowError as error:
            raise InputError(
                f"Column {column!r} holds a number of more than 300 digits, {shown(value)}...; numbers must be less "
                "than 1e308. Give its logarithm, or leave the column out."
            ) from error
    if isinstance(value, datetime.datetime):
        return "times", seconds_of(value)
    if isinstance(value, datetime.date):
        return "times", (datetime.datetime(value.year, value.month, value.day) - EPOCH).total_seconds()
    if isinstance(value, datetime.time):
        return "times", (datetime.datetime.combine(EPOCH, value.replace(tzinfo=None)) - EPOCH).total_seconds()
    if isinstance(value, datetime.timedelta):
        return "numbers", value.total_seconds()
    if isinstance(value, np.datetime64):
        return "times", float(value.astype("datetime64[us]").astype(np.int64)) / 1e6
    if isinstance(value, np.timedelta64):
        return "numbers", float(value.astype("timedelta64[us]").astype(np.int64)) / 1e6
    raise InputError(
        f"Column {column!r} holds a {type(value).__name__} such as {shown(value)}; columns hold numbers, truth "
        "values, times or strings. Take it apart into such columns, or leave it out."
    )


def seconds_of(time: datetime.datetime) -> float:
    """Those since 1970; where no zone is named, by its own clock."""
    # Not by astimezone: at the ends of time another zone's clock has no date to show.
    ahead = time.utcoffset()
    since = (time if time.tzinfo is None else time.replace(tzinfo=None)) - EPOCH
    return (since if ahead is None else since - ahead).total_seconds()


def numbered(count: int) -> tuple[str, ...]:
    """Names for columns that have none."""
    return tuple(str(i + 1) for i in range(count))


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, by name, in order."""

    columns: Mapping[str, Values]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __getitem__(self, rows: slice | Int64Array) -> Table:
        return Table({name: values[rows] for name, values in self.columns.items()})

    def __iter__(self) -> Iterator[tuple[str, Values]]:
        return iter(self.columns.items())

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Rows of numbers, where all columns hold numbers."""
        if any(values.holds == "strings" for values in self.columns.values()):
            raise ValueError("a table with strings in it is no array of numbers")
        rows = np.column_stack([values.data for values in self.columns.values()])
        return rows if dtype is None else rows.astype(dtype)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @classmethod
    def join(cls, tables: Sequence[Table]) -> Table:
        """Tables with the same columns, one after the other."""
        return cls({name: Values.join([table.columns[name] for table in tables]) for name in tables[0].names})

    def records(self) -> list[dict[str, float | str | None]]:
        """A dict per row, None for what is missing; times are seconds since 1970."""
        lists = [
            [None if gone else value for value, gone in zip(values.data.tolist(), values.missing, strict=True)]
            if values.holds != "truth values"
            else [None if number != number else bool(number) for number in values.data.tolist()]
            for values in self.columns.values()
        ]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*lists, strict=True)]

    def renamed(self, names: Sequence[str]) -> Table:
        """The same columns under other names."""
        return Table(dict(zip(names, self.columns.values(), strict=True)))

    def without(self, names: Sequence[str]) -> Table:
        """The other columns."""
        return Table({name: values for name, values in self.columns.items() if name not in names})
