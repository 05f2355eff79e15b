"""The columns of a reference, and how rows of a table become rows of numbers.

A long file, since what a column is learnt to be and how its values are encoded must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, get_args

import numpy as np

from tocsin._common.checks import one_of
from tocsin._common.errors import InputError, Option
from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array
from tocsin._data.tables.column import APART, NEAREST, NUMERIC, Column, Kind, Value, drawn_in, let_out, must_be_finite
from tocsin._data.tables.table import Holds, Table, Values, plain_numbers, word_of
from tocsin._data.tables.words import guessed, times_in

NEW = 0.25
"""The part of all columns that a value counts for if its like is not in the reference. One alone must not ring: what
comes up once in a thousand rows is not in every reference of a thousand."""

OTHERS = "*"
"""Stands for all columns that are not named: kinds={"flow": "auto", "*": "ignore"} watches one column."""

UNSEEN = "(a name that no stream has)"
"""A category that the reference has not."""

REMEDY = "Rename, add or drop columns"


@dataclass(frozen=True)
class Columns:
    """The columns of a reference: which they are, and how rows become numbers.

    There is one feature more, for values that are missing in columns where the reference lacks none. What the reference
    never shows (a first gap, or a new category where all have corners) counts for as much as several columns: it would
    else be lost among many.

    ignored: columns that streams may have besides, OTHERS for any.
    """

    columns: tuple[Column, ...]
    ignored: tuple[str, ...] = ()

    @classmethod
    def learn(cls, table: Table, kinds: Mapping[str, Kind] | None = None) -> Columns:
        """From a reference; `kinds` for columns that are not of the usual kind."""
        ignores = ignored_by(kinds)
        kinds = {} if kinds is None else dict(kinds)
        for name, kind in kinds.items():
            if name not in table.columns and name != OTHERS:
                raise InputError(
                    Option("kinds"), f" names a column {name!r}, and there is none; there are {_listed(table.names)}."
                )
            one_of(Option("kinds", {name: kind}), kind, get_args(Kind))
        ignored = tuple(name for name, kind in kinds.items() if kind == "ignore")
        kept = table.without([name for name in table.names if ignores(name)])
        kept = Table({name: with_times(values, kind_given(kinds, name)) for name, values in kept})
        clocks = [name for name, values in kept if kind_given(kinds, name) == "auto" and is_clock(values)]
        ignored, kept = (*ignored, *clocks), kept.without(clocks)
        if not kept.columns:
            why = f" besides {_listed(clocks)}, which only says when rows came" if clocks else ""
            raise InputError(f"The reference has no columns to watch{why}; it must have at least one.")
        return cls(tuple(Column.learn(name, values, kind_given(kinds, name)) for name, values in kept), ignored)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def expected(self) -> Mapping[str, bool]:
        """The columns, and whether a record of a stream may lack each."""
        return {column.name: column.missing > 0 for column in self.columns}

    def ignores(self, name: str) -> bool:
        """Whether a column of a stream is not looked at."""
        return name in self.ignored or (OTHERS in self.ignored and name not in self.expected)

    @cached_property
    def width(self) -> int:
        """Features of a row."""
        return sum(column.size for column in self.columns) + 1

    @cached_property
    def owners(self) -> Int64Array:
        """The column that each feature belongs to; len(columns) for values that are newly missing."""
        return np.repeat(np.arange(len(self.columns) + 1), [*(column.size for column in self.columns), 1])

    @cached_property
    def told_by_moving(self) -> Int64Array:
        """Features that are news if they move and the reference's never do. New n-grams of texts are none."""
        texts = [place for place, column in enumerate(self.columns) if column.kind == "text"]
        return np.flatnonzero(~np.isin(self.owners, texts))

    @cached_property
    def gaps(self) -> frozenset[int]:
        """Features that say whether a value of their column is missing, where the reference lacks some."""
        pairs = zip(self.columns, self._places.tolist(), strict=True)
        return frozenset(place + column.width for column, place in pairs if column.missing)

    def encode(self, table: Table) -> Float64Array:
        """Rows of features. Refuses a table with other columns than the reference's; their order does not matter."""
        self.must_match(table)
        rows = np.zeros((len(table), self.width))
        given = [values_of(column.name, column.holds, table) for column in self.columns]
        if self._numbers.which:
            data = np.column_stack([given[i].data for i in self._numbers.which])
            if np.isinf(data).any():
                for i in self._numbers.which:
                    must_be_finite(self.names[i], given[i].data)
            self._put_numbers(rows, data)
        for column, values, place in zip(self.columns, given, self._places, strict=True):
            if column.kind not in NUMERIC:
                rows[:, place : place + column.width] = column.features(values)
                if column.kind == "category" and column.corners:
                    rows[:, place + len(column.values)] *= self._newness
                gone = values.missing
                if gone.any():
                    rows[gone, place : place + column.width] = 0.0
                    self._put_gaps(rows, gone, column, place, 1.0)
        return rows

    def encode_numbers(self, data: Float64Array) -> Float64Array:
        """Rows of features from finite numbers, (n, columns), and gaps; all columns are numbers, in their order."""
        rows = np.zeros((len(data), self.width))
        self._put_numbers(rows, data)
        return rows

    def encode_record(self, record: Mapping[str, object]) -> Float64Array | None:
        """One row, quickly, and to the last bit as `encode` does; None if the record takes a closer look."""
        if not self._numbers.alone or record.keys() != self.expected.keys():
            return None
        rows, numbers = np.zeros((1, self.width)), plain_numbers([record[self.names[i]] for i in self._numbers.which])
        if numbers is None or np.isinf(numbers).any():
            return None
        self._put_numbers(rows, numbers[None, :])
        for column, place in self._categories:
            value = record[column.name]
            if value is None:
                self._put_gaps(rows, 0, column, place, 1.0)
                continue
            if type(value) is str and column.holds == "strings":
                word = value
            elif type(value) is bool and column.holds == "truth values":
                word = word_of(value)
            else:
                return None
            if column.corners:
                corner = column.corner(word)
                rows[0, place + corner] = self._newness if corner == len(column.values) else 1.0
            else:
                rows[0, place : place + column.width] = column.direction(word)
        return rows

    def _put_numbers(self, rows: Float64Array, data: Float64Array) -> None:
        """Numbers of all columns at once: a row alone would else take long."""
        numbers = self._numbers
        drawn = drawn_in(data, numbers.centres, numbers.spreads) * numbers.weights
        rows[:, numbers.places] = np.where(drawn == 0, NEAREST, drawn)
        gone = np.isnan(data)
        if gone.any():
            for k in np.flatnonzero(gone.any(0)):
                place = numbers.places[k]
                rows[gone[:, k], place] = 0.0
                self._put_gaps(rows, gone[:, k], self.columns[numbers.which[k]], place, APART)

    def _put_gaps(self, rows: Float64Array, gone: BoolArray | int, column: Column, place: int, apart: float) -> None:
        """Say where values of a column are missing."""
        if column.missing:
            rows[gone, place + column.width] = apart
        else:
            rows[gone, -1] = np.hypot(rows[gone, -1], apart * self._newness)

    @cached_property
    def _newness(self) -> float:
        """Times by which something new is further away than something else that is known."""
        return float(np.sqrt(max(NEW * len(self.columns), 1.0)))

    @cached_property
    def _places(self) -> Int64Array:
        """Where the features of each column begin."""
        return np.cumsum([0, *(column.size for column in self.columns)])[:-1]

    @cached_property
    def _numbers(self) -> _Numbers:
        which = [i for i, column in enumerate(self.columns) if column.kind in NUMERIC]
        chosen = [self.columns[i] for i in which]
        centres, spreads, weights = (
            np.array([getattr(column, part) for column in chosen]) for part in ("centre", "spread", "weight")
        )
        alone = all(column.kind == "category" or column.holds == "numbers" for column in self.columns)
        return _Numbers(which, self._places[which], centres, spreads, weights, alone)

    @cached_property
    def _categories(self) -> list[tuple[Column, int]]:
        """Columns of categories, and where their features begin."""
        pairs = zip(self.columns, self._places.tolist(), strict=True)
        return [(column, place) for column, place in pairs if column.kind == "category"]

    def held(self, table: Table) -> Table:
        """The reference's columns in a table, each holding what it does in the reference."""
        known = [column for column in self.columns if column.name in table.columns]
        return Table({column.name: values_of(column.name, column.holds, table) for column in known})

    def decode(self, rows: Float64Array) -> list[dict[str, Value]]:
        """Values that rows of features stand for, to be shown: None for what is missing.

        Categories that the reference has not are 'other'; a time is a number of seconds since the week's beginning. Of
        texts nothing but their n-grams is left: each is LOST.
        """
        shown: list[dict[str, Value]] = [{} for _ in rows]
        newly = rows[:, -1] > 0
        for column, place in zip(self.columns, self._places, strict=True):
            features = rows[:, place : place + column.size]
            gone = features[:, -1] > 0 if column.missing else newly & ~features.any(1)
            for record, row, missing in zip(shown, features, gone, strict=True):
                record[column.name] = None if missing else column.value(row)
        return shown

    # One column of rows of features: what it stands for, and something else in its place

    def features_of(self, i: int) -> slice:
        """Where the features of a column are."""
        place = int(self._places[i])
        return slice(place, place + self.columns[i].size)

    def numbers(self, rows: Float64Array, i: int) -> Float64Array:
        """What a column of numbers, or of times as numbers, holds in rows of features; NaN where it is missing."""
        column, own = self.columns[i], rows[:, self.features_of(i)]
        distance = let_out(np.where(own[:, 0] == NEAREST, 0.0, own[:, 0]) / column.weight)
        gone = own[:, -1] > 0 if column.missing else (rows[:, -1] > 0) & (own[:, 0] == 0)
        return np.where(gone, np.nan, column.centre + column.spread * distance)

    def with_numbers(self, rows: Float64Array, i: int, numbers: Float64Array) -> Float64Array:
        """Rows with other numbers in such a column; it stays missing where they are NaN."""
        column, place, there = self.columns[i], int(self._places[i]), ~np.isnan(numbers)
        drawn = drawn_in(numbers[there], column.centre, column.spread) * column.weight
        changed = rows.copy()
        changed[there, place] = np.where(drawn == 0, NEAREST, drawn)
        return changed

    def with_gaps(self, rows: Float64Array, i: int, gone: BoolArray) -> Float64Array:
        """Rows in which a column is missing in some, too."""
        column, changed = self.columns[i], rows.copy()
        changed[gone, self.features_of(i)] = 0.0
        apart = APART if column.kind in NUMERIC else 1.0
        self._put_gaps(changed, gone, column, int(self._places[i]), float(apart))
        return changed

    def with_unseen(self, rows: Float64Array, i: int, where: BoolArray) -> Float64Array:
        """Rows in which a column of categories holds one, in some, that the reference has not."""
        column, place, changed = self.columns[i], int(self._places[i]), rows.copy()
        changed[where, self.features_of(i)] = 0.0
        if column.corners:
            changed[where, place + len(column.values)] = self._newness
        else:
            changed[where, place : place + column.width] = column.direction(UNSEEN)
        return changed

    def must_match(self, table: Table, called: str = "the table", remedy: str = REMEDY) -> None:
        """Refuse a table that lacks columns of the reference, or has others besides."""
        must_have(table, self.names, self.ignored, called, remedy)


def is_clock(values: Values) -> bool:
    """Whether a column only says when its row came: times that never go back."""
    there = values.data[~values.missing] if values.holds == "times" else np.empty(0)
    return len(there) > 1 and bool((np.diff(there) >= 0).all())


class _Numbers(NamedTuple):
    """Which columns are numbers, where their features are, and the centre, spread and weight of each.

    alone: whether all columns are categories, or hold numbers: no times, and no text.
    """

    which: list[int]
    places: Int64Array
    centres: Float64Array
    spreads: Float64Array
    weights: Float64Array
    alone: bool


def must_have(
    table: Table,
    names: Sequence[str],
    ignored: Sequence[str] = (),
    called: str = "the table",
    remedy: str = REMEDY,
) -> None:
    """Refuse a table that lacks columns, or has others besides."""
    if table.columns.keys() == set(names):
        return
    lacking = [name for name in names if name not in table.columns]
    extra = [] if OTHERS in ignored else [name for name in table.names if name not in names and name not in ignored]
    if lacking or extra:
        parts = [f"lacks {_listed(lacking)}"] * bool(lacking) + [f"has {_listed(extra)} besides"] * bool(extra)
        raise InputError(
            f"The columns must be those of the reference, in any order: {called} {' and '.join(parts)}. "
            f"{remedy}, or fit to a reference that has the same."
        )


def with_times(values: Values, kind: Kind) -> Values:
    """Strings of a reference as times, if all are; those that numbers could be read from, only if it is said so."""
    if values.holds != "strings" or values.named or kind not in ("auto", "time", "elapsed"):
        return values
    if kind == "auto" and guessed(values.as_strings()) != "times":
        return values
    times, other = times_in(values)
    return values if other is not None else times


def values_of(name: str, holds: Holds, table: Table) -> Values:
    """The values of a column of a stream, which must hold what the reference holds there, or nothing.

    Times may be written as strings, whether those of the reference were or not.
    """
    values = table.columns[name]
    if values.holds == "nothing" and holds == "strings":
        return Values("strings", np.full(len(values), None, dtype=object))
    if values.holds in (holds, "nothing") or holds == "nothing":
        return values
    shown = next(word for word in values.as_strings() if word is not None)
    if holds == "times" and values.holds == "strings":
        times, other = times_in(values)
        if other is None:
            return times
        shown = other
    raise InputError(
        f"Column {name!r} holds {values.holds} such as {shown!r}; in the reference it held {holds}, and must go on "
        "doing so. Mend the stream, or fit to a reference like it."
    )


def ignored_by(kinds: Mapping[str, Kind] | None) -> Callable[[str], bool]:
    """Whether a column, by its name, is not to be watched."""
    if kinds is None:
        return lambda name: False
    if not isinstance(kinds, Mapping):
        raise InputError(Option("kinds", kinds), " must give kinds by name, such as {'colour': 'category'}.")
    return lambda name: kinds.get(name, kinds.get(OTHERS)) == "ignore"


def kind_given(kinds: Mapping[str, Kind] | None, name: str) -> Kind:
    """What a column is said to be."""
    return "auto" if kinds is None else kinds.get(name, kinds.get(OTHERS, "auto"))


def _listed(names: Iterable[str]) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown[:12]) + (f" and {len(shown) - 12} more" if len(shown) > 12 else "")
