"""How observations become points that statistics compare: rows of numbers, or objects for kernels that take them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from tocsin._common.errors import InputError, Option, ReferenceWarning
from tocsin._common.seeds import Purpose, generator
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._data import validation
from tocsin._data.foreign import Tensor, is_collection, is_on_gpu, is_sparse, is_tensor
from tocsin._data.representations import Representation, adapt, restore
from tocsin._data.representations.base import Described
from tocsin._data.representations.batches import count_of, rows_at
from tocsin._data.tables import (
    Column,
    Columns,
    Kind,
    Table,
    Values,
    as_record,
    as_table,
    ignored_by,
    is_frame,
    kind_given,
    look_like_dates,
    must_have,
    named_row,
    numbered,
    one_row,
    times_in,
    unnamed,
    values_of,
)
from tocsin._data.tables.columns import REMEDY
from tocsin._data.tables.sources import Record
from tocsin._data.tables.table import Holds
from tocsin._statistics.base import Points

PIECES = 20
"""Parts that a reference is cut into, some of which a representation is fitted to."""


@dataclass(frozen=True, eq=False)
class Learned:
    """What a fit knows of its reference before it begins.

    points: the reference, taken in.  rows: which of the observations given these are.  edges: of their groups.
    tensor: the points on a GPU, if they were given there.
    """

    intake: Intake
    points: Points
    rows: Int64Array
    edges: Int64Array
    tensor: Tensor | None = None


def learn(reference: object, groups: object, kinds: Mapping[str, Kind] | None, *, objects_allowed: bool) -> Learned:
    """How to take in observations like these, and the reference taken in."""
    intake, points = _take_in(reference, kinds, objects_allowed=objects_allowed)
    tensor = None
    if isinstance(points, np.ndarray) and is_on_gpu(reference):
        tensor = reference.detach().reshape(points.shape)
    return Learned(intake, points, np.arange(len(points)), validation.group_edges(groups, len(points)), tensor)


def learn_represented(
    reference: object, groups: object, preprocess: object, share: float, seed: int, progress: bool | None
) -> Learned:
    """The same through a representation. If that has to be fitted, the part that it is fitted to leaves the reference.

    That part is made of pieces that are contiguous, so that what remains keeps its memory; each is a group then.
    """
    representation = adapt(preprocess)
    count = count_of(reference)
    rows, labels = np.arange(count), validation.group_labels(groups, count)
    if representation.needs_fitting:
        pieces = np.arange(count) * PIECES // max(count, 1)
        chosen = generator(seed, Purpose.REPRESENTATION).permutation(PIECES)[: max(round(share * PIECES), 1)]
        aside = np.isin(pieces, chosen)
        representation = representation.fit(rows_at(reference, np.flatnonzero(aside)), seed, progress)
        rows, labels = np.flatnonzero(~aside), labels + np.cumsum(aside)
        reference = rows_at(reference, rows)
    points = representation(reference)
    return Learned(Represented.by(representation), points, rows, validation.group_edges(labels[rows], len(rows)))


def _take_in(reference: object, kinds: Mapping[str, Kind] | None, *, objects_allowed: bool) -> tuple[Intake, Points]:
    table = _table(reference, kinds, objects_allowed=objects_allowed)
    if table is not None and not len(table):
        raise InputError("The reference is empty; it must hold observations from the time when all was well.")
    if table is not None and not objects_allowed:
        columns = Columns.learn(table, kinds)
        for column in columns.columns:
            if column.holds == "strings" and kind_given(kinds, column.name) == "auto":
                _doubt(column, table.columns[column.name])
        return Tabular(columns), columns.encode(table)
    if kinds is not None:
        why = "a function of yours does that here. Leave it out."
        if table is None:
            why = f"the reference is a {type(reference).__name__}. Leave it out, or give a data frame."
        raise InputError(Option("kinds", kinds), f" says how to compare the columns of tables, and {why}")
    if table is not None:
        # A function of the user's gets what the user has: numbers if all are, and dicts otherwise.
        plain = all(values.holds == "numbers" and not values.missing.any() for _, values in table)
        return (Rows(len(table.names), table.names), np.asarray(table)) if plain else (Objects(), Objects().many(table))
    points = validation.reference_points(reference, objects_allowed=objects_allowed)
    return Rows(points.shape[1]) if isinstance(points, np.ndarray) else Objects(), points


def _doubt(column: Column, strings: Values) -> None:
    """Say so if a column of the reference may hold times, and is taken for something else."""
    if strings.named or not look_like_dates(strings):
        return
    told = ReferenceWarning(
        f"Column {column.name!r} is taken for {column.kind}, though most of its strings look like dates: "
        f"{times_in(strings)[1]!r} is not written as ISO 8601 does it (2024-03-07), and all strings of a column of "
        "times must be. Write them so, with nothing where a date is missing; or say that it is meant, by ",
        Option("kinds", {column.name: column.kind}),
        ".",
    )
    warnings.warn(told, stacklevel=6)


def _table(reference: object, kinds: Mapping[str, Kind] | None, *, objects_allowed: bool) -> Table | None:
    """The reference, if it is to be taken for a table."""
    if objects_allowed and not is_frame(reference):
        return None
    return as_table(reference, ignored_by(kinds))


class Intake(Protocol):
    """What a detector takes in, learned from its reference."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns; none if observations have no columns."""

    @property
    def owners(self) -> Int64Array:
        """The column that each number of a row belongs to; len(names) if to none."""

    @property
    def told_by_moving(self) -> Int64Array:
        """The numbers of a row that are news if they move and the reference's never do."""

    def many(self, block: object) -> Points:
        """Several observations."""

    def one(self, x: object) -> Points:
        """One observation, as a block of one."""


@dataclass(frozen=True)
class Rows:
    """Rows of so many numbers, as they are.

    labels: of the columns, if they have any.
    """

    width: int
    labels: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.labels or numbered(self.width)

    @property
    def owners(self) -> Int64Array:
        return np.arange(self.width)

    @property
    def told_by_moving(self) -> Int64Array:
        return np.arange(self.width)

    def many(self, block: object) -> Float64Array:
        table = as_table(block, expected=dict.fromkeys(self.labels, False)) if self.labels else None
        rows: Float64Array = validation.observations(block if table is None else self._in_order(table), self.width)
        return rows

    def one(self, x: object) -> Float64Array:
        if self.labels and (is_frame(x) or as_record(x, self.labels) is not None):
            x = self._in_order(one_row(x, dict.fromkeys(self.labels, False)))
        row: Float64Array = validation.observation(x, self.width)
        return row

    def _in_order(self, table: Table) -> Float64Array:
        must_have(table, self.labels)
        return np.column_stack([values_of(name, "numbers", table).data for name in self.labels])


@dataclass(frozen=True)
class Objects:
    """Anything, for a kernel or function of the user's."""

    names = ()

    @property
    def owners(self) -> Int64Array:
        return np.empty(0, dtype=np.int64)

    @property
    def told_by_moving(self) -> Int64Array:
        return self.owners

    def many(self, block: object) -> list[object]:
        table = as_table(block) if is_frame(block) else None
        objects: list[object] = validation.observations(block if table is None else table.records(), None)
        return objects

    def one(self, x: object) -> list[object]:
        if is_frame(x) or (not isinstance(x, Mapping | tuple) and as_record(x) is not None):
            return list(one_row(x).records())
        return [x]


@dataclass(frozen=True)
class Represented:
    """Anything that a representation makes rows of numbers of.

    parts: what a file holds of it.
    """

    parts: Described

    @classmethod
    def by(cls, representation: Representation) -> Represented:
        """With the representation itself."""
        intake = cls(representation.parts())
        intake.__dict__["representation"] = representation
        return intake

    @cached_property
    def representation(self) -> Representation:
        """As the file has it, if it does."""
        return restore(self.parts)

    @property
    def width(self) -> int:
        """Numbers of a row."""
        width = self.parts["width"]
        assert width is not None  # a detector's representation has been called: by its fit
        return width

    @property
    def names(self) -> tuple[str, ...]:
        return numbered(self.width)

    @property
    def owners(self) -> Int64Array:
        return np.arange(self.width)

    @property
    def told_by_moving(self) -> Int64Array:
        return np.empty(0, dtype=np.int64)  # what a number means is the representation's business

    def many(self, block: object) -> Float64Array:
        return self.representation(block)

    def one(self, x: object) -> Float64Array:
        return self.representation.one(x)


@dataclass(frozen=True)
class Tabular:
    """Rows of a table with columns of any kind."""

    columns: Columns

    @property
    def names(self) -> tuple[str, ...]:
        return self.columns.names

    @property
    def owners(self) -> Int64Array:
        return self.columns.owners

    @property
    def told_by_moving(self) -> Int64Array:
        return self.columns.told_by_moving

    @property
    def fields(self) -> Mapping[str, bool]:
        """The columns of a stream, and whether a record may lack each."""
        return self.columns.expected

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of a stream."""
        return tuple(self.fields)

    @property
    def holds(self) -> Mapping[str, Holds]:
        """What each of them held in the reference."""
        return {column.name: column.holds for column in self.columns.columns}

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that a stream may have besides."""
        return self.columns.ignored

    def ignores(self, name: str) -> bool:
        """Whether a column of a stream is not looked at."""
        return self.columns.ignores(name)

    def must_match(self, table: Table, called: str = "the table", remedy: str = REMEDY) -> None:
        """Refuse a table that lacks columns of the reference, or has others besides."""
        self.columns.must_match(table, called, remedy)

    def held(self, table: Table) -> Table:
        """The reference's columns in a table, each holding what it does in the reference."""
        return self.columns.held(table)

    def many(self, block: object) -> Float64Array:
        table = self.table(block)
        return np.empty((0, self.columns.width)) if table is None else self.columns.encode(table)

    def table(self, block: object) -> Table | None:
        """Several observations under the names of the columns; None if there are no observations, and no names."""
        table = as_table(block, self.ignores, self.fields)
        if table is None:
            block = validation.plain_array(block) if _is_tensor_or_sparse(block) else validation.unmasked(block)
            if is_collection(block) and len(block) == 0:
                return None
            table = unnamed(block, self.sources)
        return table

    def one(self, x: object) -> Float64Array:
        row = self.row(x)
        quickly = None if isinstance(row, Table) else self.columns.encode_record(row)
        if quickly is not None:
            return quickly
        return self.columns.encode(one_row(row, self.fields, self.ignores))

    def row(self, x: object) -> Table | Record:
        """One observation, as a table of one row or by names."""
        x = validation.plain_array(x) if _is_tensor_or_sparse(x) else validation.unmasked(x)
        return named_row(x, self.sources, self.ignores)


def _is_tensor_or_sparse(values: object) -> bool:
    return is_tensor(values) or is_sparse(values)
