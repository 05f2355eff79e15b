"""Two tables as one set of points, made by a rule in which it does not matter which row is whose.

That is what makes permutations exact. Which columns there are, and what they hold, is the reference's to say; scales,
categories and whether strings are texts are learned from all rows together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tocsin._common.errors import InputError
from tocsin._common.wording import counted
from tocsin._compute.arrays import Float64Array
from tocsin._data.foreign import is_collection
from tocsin._data.intake import Intake, Rows, Tabular, learn
from tocsin._data.representations.batches import count_of, rows_at
from tocsin._data.tables import Columns, Kind, Table, Values, as_table, kind_given

FEWEST = 2
"""Rows that a table must have: among fewer there are no pairs."""

MOST_NAMED = 5
"""Columns that an error names."""


@dataclass(frozen=True, eq=False)
class Pooled:
    """Rows of two tables, those of the reference first.

    points: (M, d).  count: how many are the reference's.  given: rows that the tables had.
    tables: the rows as they are, to be shown.
    """

    intake: Intake
    points: Float64Array
    count: int
    given: tuple[int, int]
    tables: tuple[Table, Table]

    @property
    def others(self) -> int:
        """How many rows are the batch's."""
        return len(self.points) - self.count

    def in_blocks(self, length: int) -> Pooled:
        """The latest rows of each, as many as whole blocks have."""
        first, second = (self._latest(count // length * length) for count in (self.count, self.others))
        kept = np.concatenate([np.arange(self.count)[first], np.arange(self.count, len(self.points))[second]])
        tables = self.tables[0][first], self.tables[1][second]
        return Pooled(self.intake, self.points[kept], len(tables[0]), self.given, tables)

    @staticmethod
    def _latest(count: int) -> slice:
        return slice(-count, None) if count else slice(0, 0)


def pool(reference: object, batch: object, kinds: Mapping[str, Kind] | None, most: int) -> Pooled:
    """At most so many rows of both together, drawn evenly."""
    given = _count(reference), _count(batch)
    shares = _shares(*given, most)
    reference, batch = _evenly(reference, given[0], shares[0]), _evenly(batch, given[1], shares[1])
    learned = learn(reference, None, kinds, objects_allowed=False)
    if isinstance(learned.intake, Tabular):
        return _of_tables(learned.intake, reference, batch, kinds, given)
    try:
        first, second = learned.points, learned.intake.many(batch)
    except InputError as error:
        table = as_table(batch)
        if table is None:
            raise
        kinds_of = type(reference).__name__, type(batch).__name__
        names = [*map(repr, table.names[:MOST_NAMED]), *["..."] * (len(table.names) > MOST_NAMED)]
        raise InputError(
            f"The reference is an array ({kinds_of[0]}) and the batch a table ({kinds_of[1]}) with the columns "
            f"{', '.join(names)}. Columns of a table are compared by name and kind, those of an array as they are: "
            "give both alike."
        ) from error
    assert isinstance(first, np.ndarray)
    assert isinstance(second, np.ndarray)
    _must_have_rows(first, second)
    tables = _as_table(learned.intake, first), _as_table(learned.intake, second)
    return Pooled(learned.intake, np.concatenate([first, second]), len(first), given, tables)


def _of_tables(
    intake: Tabular, reference: object, batch: object, kinds: Mapping[str, Kind] | None, given: tuple[int, int]
) -> Pooled:
    tables = []
    for data in (reference, batch):
        table = intake.table(data)
        if table is not None:
            intake.columns.must_match(table)
        tables.append(Table({}) if table is None else intake.columns.held(table))
    first, second = tables
    _must_have_rows(first, second)
    pooled = Table.join([first, second])
    columns = Columns.learn(pooled, {name: _kind(name, values, kinds) for name, values in pooled})
    return Pooled(Tabular(columns), columns.encode(pooled), len(first), given, (first, second))


def _kind(name: str, values: Values, kinds: Mapping[str, Kind] | None) -> Kind:
    """As it was said; times that were no clock in the reference are none now."""
    kind = kind_given(kinds, name)
    return "time" if kind == "auto" and values.holds == "times" else kind


def _as_table(intake: Intake, points: Float64Array) -> Table:
    assert isinstance(intake, Rows)
    return Table({name: Values.of_numbers(data) for name, data in zip(intake.names, points.T, strict=True)})


def _must_have_rows(reference: object, batch: object) -> None:
    for name, rows in (("reference", reference), ("batch", batch)):
        if count_of(rows) < FEWEST:
            raise InputError(
                f"The {name} has {counted(count_of(rows), 'row')}; a comparison needs at least {FEWEST} of each. "
                "Collect more."
            )


def _count(data: object) -> int:
    """Rows of a table, an array or a list; 0 for what is none of these, which is refused where it is read."""
    shape: tuple[int, ...] | None = getattr(data, "shape", None)
    sized = is_collection(data) if shape is None else shape != ()
    return count_of(data) if sized and not isinstance(data, str | bytes | Mapping) else 0


def _shares(first: int, second: int, most: int) -> tuple[int, int]:
    """How many rows of each to compare: the smaller whole, if it is less than half."""
    half = most // 2
    return min(first, max(half, most - second)), min(second, max(half, most - first))


def _evenly(data: object, count: int, wanted: int) -> object:
    """So many rows of a table, in order, at equal distances."""
    if wanted >= count:
        return data
    return rows_at(data, np.linspace(0, count - 1, wanted).astype(np.int64))
