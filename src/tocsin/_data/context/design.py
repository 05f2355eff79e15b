"""The terms that an expectation may be made of: those of each column of the context, and of pairs of columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from tocsin._common.wording import listed
from tocsin._compute.arrays import BoolArray, Float64Array
from tocsin._data.context.basis import Surrounding, nothing
from tocsin._data.tables import Table, values_of

HEADS = {"category": 6, "number": 3, "time": 3}
"""Functions of a number that are multiplied by those of a column of this kind."""

MOST_PAIRED = 100
"""Functions of a pair of columns; and a tenth of the rows, at most."""

MOST_COLUMNS = 6
"""Columns of a context of which pairs are looked at."""


@dataclass(frozen=True, eq=False)
class Design:
    """Columns of the context, and the pairs of them that are looked at together.

    sizes: of the terms, in functions.  The first is the intercept's.
    """

    columns: tuple[Surrounding, ...]
    pairs: tuple[tuple[int, int], ...]
    sizes: tuple[int, ...]

    @classmethod
    def learn(cls, columns: tuple[Surrounding, ...], rows: int) -> Design:
        """For a reference of so many rows."""
        pairs = list[tuple[int, int]]()
        if len(columns) <= MOST_COLUMNS:
            weekly = [(i, i) for i, own in enumerate(columns) if {"day", "week"} <= set(own.cycles)]
            none = nothing_of(columns)
            terms = [np.concatenate(own.terms(none.columns[own.name]), axis=1) for own in columns]
            for pair in sorted([*combinations(range(len(columns)), 2), *weekly]):
                if _product(columns, pair, terms).shape[1] <= min(MOST_PAIRED, rows / 10):
                    pairs.append(pair)
        return cls(columns, tuple(pairs), cls(columns, tuple(pairs), ()).counted())

    @property
    def width(self) -> int:
        """Functions in all."""
        return sum(self.sizes)

    @property
    def places(self) -> list[slice]:
        """Where the functions of each term are."""
        return [slice(a, b) for a, b in pairwise(np.cumsum([0, *self.sizes]).tolist())]

    def counted(self) -> tuple[int, ...]:
        """The sizes that the terms of its columns have."""
        return tuple(part.shape[1] for part in self._parts(nothing_of(self.columns)))

    def held(self, table: Table) -> Table:
        """The columns of the context, each holding what it did in the reference."""
        return Table({own.name: values_of(own.name, own.holds, table) for own in self.columns})

    def known(self, context: Table) -> BoolArray:
        """Rows whose context the reference has the like of."""
        known = np.ones(len(context), bool)
        for own in self.columns:
            known &= own.known(context.columns[own.name])
        return known

    def kept(self, context: Table) -> Float64Array:
        """A context as numbers, (n, columns), that `told` knows again."""
        return np.column_stack([own.kept(context.columns[own.name]) for own in self.columns])

    def told(self, kept: Float64Array) -> str:
        """A context in words."""
        return listed(own.told(float(number)) for own, number in zip(self.columns, kept, strict=True))

    def rows(self, context: Table) -> Float64Array:
        """All functions, (n, width), of a context that is known."""
        return np.column_stack(self._parts(context))

    @property
    def first_pair(self) -> int:
        """The place of the term that the first pair makes."""
        return len(self.sizes) - len(self.pairs)

    def _parts(self, context: Table) -> list[Float64Array]:
        terms = [own.terms(context.columns[own.name]) for own in self.columns]
        joined = [np.concatenate(own, axis=1) for own in terms]
        return [
            np.ones((len(context), 1)),
            *(part for own in terms for part in own),
            *(_product(self.columns, pair, joined) for pair in self.pairs),
        ]


def nothing_of(columns: tuple[Surrounding, ...]) -> Table:
    """A context without rows."""
    return Table({own.name: nothing(own.holds) for own in columns})


def factors(columns: tuple[Surrounding, ...], pair: tuple[int, int]) -> tuple[slice, slice]:
    """Which functions of two columns are multiplied; of a time, days of the week times hours."""
    i, j = pair
    if i == j:
        turns = dict(zip(columns[i].cycles, columns[i].places, strict=True))
        day, week = turns["day"], turns["week"]
        return week, slice(day.start, min(day.start + 2 * HEADS["time"] + 2, day.stop))
    return columns[i].heads(HEADS[columns[j].kind]), columns[j].heads(HEADS[columns[i].kind])


def _product(columns: tuple[Surrounding, ...], pair: tuple[int, int], terms: list[Float64Array]) -> Float64Array:
    """Functions of one column times those of another."""
    first, second = factors(columns, pair)
    a, b = terms[pair[0]][:, first], terms[pair[1]][:, second]
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), a.shape[1] * b.shape[1])
