"""The terms that an expectation may be made of: those of each column of the context, and of pairs of columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from tocsin._common.wording import listed
from tocsin._compute.arrays import BoolArray, Float64Array
from tocsin._data.context.basis import Surrounding
from tocsin._data.tables import Table, Values, values_of

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
            terms = [own.terms(none.columns[own.name]) for own in columns]
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
        return tuple(part.shape[1] for part in self._parts(nothing_of(self.columns)) if part is not None)

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

    def rows(self, context: Table, pairs: frozenset[int] | None = None) -> Float64Array:
        """All functions, (n, width), of a context that is known; those of other pairs than these may be left 0."""
        rows = np.zeros((len(context), self.width))
        for place, part in zip(self.places, self._parts(context, pairs), strict=True):
            if part is not None:
                rows[:, place] = part
        return rows

    @property
    def first_pair(self) -> int:
        """The place of the term that the first pair makes."""
        return len(self.sizes) - len(self.pairs)

    def _parts(self, context: Table, pairs: frozenset[int] | None = None) -> list[Float64Array | None]:
        terms = [own.terms(context.columns[own.name]) for own in self.columns]
        return [
            np.ones((len(context), 1)),
            *(part for own in terms for part in own),
            *(
                _product(self.columns, pair, terms) if pairs is None or k in pairs else None
                for k, pair in enumerate(self.pairs)
            ),
        ]


def nothing_of(columns: tuple[Surrounding, ...]) -> Table:
    """A context without rows."""
    empty = {"strings": Values("strings", np.empty(0, object))}
    return Table({own.name: empty.get(own.holds, Values(own.holds, np.empty(0))) for own in columns})


def _product(columns: tuple[Surrounding, ...], pair: tuple[int, int], terms: list[list[Float64Array]]) -> Float64Array:
    """Functions of one column times those of another; of a time, hours times days of the week."""
    i, j = pair
    first, second = columns[i], columns[j]
    if i == j:
        turns = dict(zip(first.cycles, terms[i], strict=True))
        a, b = turns["week"], turns["day"][:, : 2 * HEADS["time"] + 2]
    else:
        a, b = first.heads(terms[i], HEADS[second.kind]), second.heads(terms[j], HEADS[first.kind])
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), a.shape[1] * b.shape[1])
