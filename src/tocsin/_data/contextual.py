"""Rows that are watched relative to what is expected of them given their context."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tocsin._common.errors import InputError, Option, ReferenceWarning
from tocsin._common.wording import counted, listed
from tocsin._compute.arrays import BoolArray, Float64Array
from tocsin._data import validation
from tocsin._data.context import Design, Expectation, Surrounding
from tocsin._data.context.basis import DAY, TURNS
from tocsin._data.context.expectation import FEWEST_ROWS
from tocsin._data.context.expectation import learn as learn_expectation
from tocsin._data.context.reading import Reading
from tocsin._data.intake import Learned, Tabular
from tocsin._data.tables import (
    OTHERS,
    Column,
    Columns,
    Kind,
    Table,
    as_table,
    ignored_by,
    is_clock,
    kind_given,
    must_have,
    numbered,
    one_row,
    unnamed,
    values_of,
    with_times,
)
from tocsin._data.tables.column import NUMERIC, must_be_finite
from tocsin._data.tables.columns import REMEDY
from tocsin._data.tables.sources import Record
from tocsin._data.tables.table import Holds

MOST_UNKNOWN = 0.5
"""The part of a reference that may lack its context."""

WORTH = 0.1
"""Part of a column's variance, in stretches left out, from which on the time is taken for a context by itself."""


class Taken(NamedTuple):
    """Rows taken in.

    points: of all rows; NaN where the context is one that the reference lacks.
    beside: what was expected of each row, and the spread around it, law by law, and its context; (n, width_beside).
    """

    points: Float64Array
    beside: Float64Array

    @property
    def known(self) -> BoolArray:
        """Which of them can be judged."""
        known: BoolArray = ~np.isnan(self.points[:, 0])
        return known


@dataclass(frozen=True)
class Contextual(Tabular):
    """Rows of a table, relative to what is expected of them given some of its columns.

    columns: of what is watched: rows relative to that.  order: columns of a stream.  ignored: those not looked at.
    """

    expectation: Expectation
    order: tuple[str, ...]
    ignored: tuple[str, ...] = ()

    @property
    def given(self) -> tuple[str, ...]:
        """The columns of the context."""
        return tuple(own.name for own in self.expectation.design.columns)

    @cached_property
    def fields(self) -> Mapping[str, bool]:
        gaps = {column.name: column.missing > 0 for column in self.expectation.watched}
        return {name: gaps.get(name, True) for name in self.order}

    @property
    def shares(self) -> frozenset[str]:
        """What is watched that is no number of the user's: how often a level comes, or a gap."""
        return frozenset(law.name for law in self.expectation.laws if law.what != "value")

    @property
    def models(self) -> Mapping[str, object]:
        """Regressors of the user's that say what is expected, by column, as they were fitted."""
        return self.expectation.models

    @property
    def width_beside(self) -> int:
        """Numbers that are told beside a point."""
        return 2 * len(self.expectation.laws) + len(self.given)

    def ignores(self, name: str) -> bool:
        return name in self.ignored or (OTHERS in self.ignored and name not in self.fields)

    @property
    def holds(self) -> Mapping[str, Holds]:
        around = {own.name: own.holds for own in self.expectation.design.columns}
        known = around | {column.name: column.holds for column in self.expectation.watched}
        return {name: known[name] for name in self.order}

    @property
    def left_out(self) -> tuple[str, ...]:
        return self.ignored

    def must_match(self, table: Table, called: str = "the table", remedy: str = REMEDY) -> None:
        must_have(table, self.order, self.ignored, called, remedy)

    def held(self, table: Table) -> Table:
        return Table({name: values_of(name, own, table) for name, own in self.holds.items() if name in table.columns})

    def many(self, block: object) -> Float64Array:
        return self.taken(block).points

    def one(self, x: object) -> Float64Array:
        return self.taken_one(x).points

    def taken(self, block: object) -> Taken:
        """Several observations."""
        table = self.table(block)
        if table is None:
            return Taken(np.empty((0, self.columns.width)), np.empty((0, self.width_beside)))
        return self._taken(table)

    def taken_one(self, x: object) -> Taken:
        """One observation."""
        row = self.row(x)
        quickly = None if isinstance(row, Table) else self._taken_quickly(row)
        return self._taken(one_row(row, self.fields, self.ignores)) if quickly is None else quickly

    def _taken_quickly(self, record: Record) -> Taken | None:
        """The same to the last bit; None if the record takes a closer look."""
        if record.keys() != self.fields.keys() and not self._has_besides(record):
            return None
        found = self.reading.one(record)
        if found is None:
            return None
        context, values, news = found
        if context is None:
            return Taken(np.full((1, self.columns.width), np.nan), np.full((1, self.width_beside), np.nan))
        return Taken(*self._relative(context, values, news))

    def _has_besides(self, record: Record) -> bool:
        """Whether it has all columns, and those besides are not looked at."""
        besides = record.keys() - self.fields.keys()
        all_there = len(record) - len(besides) == len(self.fields)
        return all_there and all(type(name) is str and self.ignores(name) for name in besides)

    def _relative(
        self, context: Float64Array, values: Float64Array, news: Float64Array, foretold: Float64Array | None = None
    ) -> tuple[Float64Array, Float64Array]:
        """Points, and what is told beside them, of rows whose context is known."""
        residuals, beside = self.expectation.relative(context, values, foretold)
        if news.shape[1]:
            residuals = np.concatenate((residuals, news), axis=1)
        return self.columns.encode_numbers(residuals), beside

    @cached_property
    def reading(self) -> Reading:
        """How a record is read."""
        return Reading.of(self.expectation)

    def _taken(self, table: Table) -> Taken:
        self.must_match(table)
        expectation = self.expectation
        for own in expectation.watched:
            if own.kind in NUMERIC:
                must_be_finite(own.name, values_of(own.name, own.holds, table).data)
        context = expectation.design.held(table)
        known = np.flatnonzero(expectation.design.known(context))
        points = np.full((len(table), self.columns.width), np.nan)
        beside = np.full((len(table), self.width_beside), np.nan)
        rows, context = table[known], context[known]
        points[known], beside[known] = self._relative(
            expectation.design.kept(context),
            expectation.numbers(rows),
            expectation.news(rows),
            expectation.foretold(context),
        )
        return Taken(points, beside)


def learn_given(
    reference: object,
    groups: object,
    kinds: Mapping[str, Kind] | None,
    given: Sequence[object],
    model: object = None,
    seed: int = 0,
) -> Learned:
    """How to take in observations like these, given some of their columns, and the reference taken in.

    Rows of the reference whose context is missing leave it.
    """
    ignores = ignored_by(kinds)
    table = as_table(reference, lambda name: ignores(name) and name not in given)
    if table is None:
        rows = np.asarray(validation.plain_array(reference))
        if rows.ndim != 2 or rows.dtype.kind not in "iuf":
            raise InputError(
                Option("given", list(given)),
                f" names columns, and the reference is a {type(reference).__name__} without any. Give a data frame, or "
                "an array with a row of numbers each.",
            )
        table = unnamed(rows, numbered(rows.shape[1]))
    names = _names(given, table)
    kept, ignored = _kept(table, names, kinds)
    around = tuple(Surrounding.learn(name, kept.columns[name], kind_given(_of(kinds, name), name)) for name in names)
    context = Table({name: kept.columns[name] for name in names})
    known = np.ones(len(kept), bool)
    for own in around:
        known &= own.known(context.columns[own.name])
    rows = np.flatnonzero(known)
    if len(rows) < max(FEWEST_ROWS, MOST_UNKNOWN * len(kept)):
        raise InputError(
            Option("given", list(names)),
            f": {counted(len(rows), 'row')} of {len(kept):,} of the reference have a context, and "
            f"{max(FEWEST_ROWS, int(MOST_UNKNOWN * len(kept))):,} are needed. Collect more, or leave out the column "
            "with most gaps.",
        )
    labels = validation.group_labels(groups, len(kept))
    edges = validation.group_edges(labels[rows], len(rows))
    kept = kept[rows]
    design = Design.learn(around, len(kept))
    expectation, residuals = learn_expectation(kept, design, edges, dict(kinds or {}), model, seed)
    columns = Columns(tuple(Column.learn(name, values, "number") for name, values in residuals))
    return Learned(Contextual(columns, expectation, kept.names, ignored), columns.encode(residuals), rows, edges)


def learn_with_time(
    reference: object, groups: object, kinds: Mapping[str, Kind] | None, model: object = None, seed: int = 0
) -> Learned | None:
    """The same given when rows came, where the reference has that, and where it helps; None else."""
    table = as_table(reference, ignored_by(kinds))
    for name, own in table or ():
        values = with_times(own, kind_given(kinds, name))
        if kind_given(kinds, name) != "auto" or not is_clock(values):
            continue
        if len(table or ()) < FEWEST_ROWS or np.ptp(values.data[~values.missing]) < TURNS * DAY:
            continue
        try:
            learned = learn_given(reference, groups, kinds, [name], model, seed)
        except InputError:
            continue  # columns that no context can be given for, or none besides
        assert isinstance(learned.intake, Contextual)
        most = max(learned.intake.expectation.laws, key=lambda law: law.explained)
        if most.explained >= WORTH:
            told = ReferenceWarning(
                f"When rows came ({name!r}) foretells {most.explained:.0%} of the variance of {most.name} in stretches "
                "left out, so columns are watched relative to what the time lets expect. To watch them as they are, "
                "give ",
                Option("given", None),
                "; to choose this yourself, ",
                Option("given", [name]),
                ".",
            )
            warnings.warn(told, stacklevel=5)
            return learned
    return None


def _names(given: Sequence[object], table: Table) -> tuple[str, ...]:
    """Of the columns of the context, each once."""
    if isinstance(given, str) or not isinstance(given, list | tuple) or not given:
        raise InputError(
            Option("given", given), " must be names of columns, in a list: ", Option("given", ["hour", "load"]), "."
        )
    named = [table.names[own] if _is_place(own, table) else own for own in given]
    unknown = [own for own in named if own not in table.columns]
    if unknown:
        raise InputError(
            Option("given", list(given)),
            f": the reference has no column {' or '.join(map(repr, unknown))}; its columns are {listed(table.names)}. "
            "Name some of these.",
        )
    names = tuple(dict.fromkeys(map(str, named)))
    if len(names) == len(table.names):
        raise InputError(
            Option("given", list(given)), " names all columns, and none is left to watch. Name fewer, or add others."
        )
    return names


def _is_place(own: object, table: Table) -> bool:
    return isinstance(own, int) and not isinstance(own, bool) and 0 <= own < len(table.names)


def _of(kinds: Mapping[str, Kind] | None, name: str) -> Mapping[str, Kind] | None:
    """Kinds as they are meant for a column of the context: what goes for all others is about what is watched."""
    return kinds if kinds is None or name in kinds else None


def _kept(table: Table, given: Sequence[str], kinds: Mapping[str, Kind] | None) -> tuple[Table, tuple[str, ...]]:
    """The columns of the context and those that are watched; and which are neither."""
    ignores = ignored_by(kinds)
    for name in kinds or {}:
        if name not in table.columns and name != OTHERS:
            raise InputError(
                Option("kinds"), f" names a column {name!r}, and there is none; there are {listed(table.names)}."
            )
    ignored = [name for name, kind in (kinds or {}).items() if kind == "ignore" and name not in given]
    kept = table.without([name for name in table.names if ignores(name) and name not in given])
    kept = Table({name: with_times(own, kind_given(_of(kinds, name), name)) for name, own in kept})
    clocks = [name for name, own in kept if name not in given and kind_given(kinds, name) == "auto" and is_clock(own)]
    kept = kept.without(clocks)
    if set(kept.names) <= set(given):
        raise InputError(
            Option("given", list(given)), ": no column is left to watch besides these. Name fewer, or add others."
        )
    return kept, (*ignored, *clocks)
