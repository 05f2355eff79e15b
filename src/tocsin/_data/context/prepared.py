"""What compiled code needs to know of an expectation, as arrays that are made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._data.context.basis import CYCLES, FIRST_MONDAY, Surrounding
from tocsin._data.context.design import Design, factors
from tocsin._data.context.laws import FARTHEST_RESIDUAL, LEAST_SHARE, Law


@dataclass(frozen=True, eq=False)
class Prepared:
    """Arrays for `tocsin._compute.numba_context`, which says what they are."""

    arrays: tuple[Float64Array | Int64Array | float, ...]
    width: int

    @classmethod
    def of(cls, design: Design, laws: Sequence[Law], fills: Sequence[bool]) -> Prepared:
        """fills: of each law, whether what is missing is as expected."""
        used = np.zeros(design.width, bool)
        for law in laws:
            used[law.places] = used[law.spread_places] = True
        return cls((*_basis(design, used), *_sums(design.width, laws, fills, np.flatnonzero(used))), design.width)

    def relative(self, context: Float64Array, values: Float64Array, beside: Float64Array) -> Float64Array:
        """Rows whose context is known, relative to what is expected of them, (n, laws).

        context: as numbers, (n, columns).  values: what laws are of.
        beside: what is expected, to which all of it is added; the spread and the context, to be filled.
        """
        from tocsin._compute.numba_context import context_rows  # slow to import, and needed for contexts alone

        residuals = np.empty(values.shape)
        context_rows(self.arrays, self.width, context, values, beside, residuals)
        return residuals


def _basis(design: Design, used: Int64Array) -> tuple[Int64Array, Float64Array, Int64Array, float]:
    """How the functions are made that are used, and those that these are made of."""
    terms, numbers, begins = list[tuple[int, ...]](), list[float](), list[int]()
    place = 1
    for column, own in enumerate(design.columns):
        begins.append(place)
        for kind, count, parameters, knots in _made_of(own):
            terms.append((kind, column, place, count, len(numbers), knots))
            numbers += parameters
            place += count
    products = list[tuple[int, ...]]()
    for (i, j), where in zip(design.pairs, design.places[design.first_pair :], strict=True):
        if used[where].any():
            first, second = factors(design.columns, (i, j))
            products.append((begins[i] + first.start, first.stop - first.start, begins[j] + second.start,
                             second.stop - second.start, where.start))  # fmt: skip
    return (
        np.array(terms, np.int64).reshape(-1, 6),
        np.array(numbers, np.float64),
        np.array(products, np.int64).reshape(-1, 5),
        FIRST_MONDAY,
    )


def _made_of(own: Surrounding) -> list[tuple[int, int, list[float], int]]:
    """Of the functions of a column: their kind, how many, of which numbers they are made, and how many knots."""
    from tocsin._compute.numba_context import CIRCLE, DAYS, FLAT, LEVELS, SPLINE

    if own.kind == "category":
        return [(LEVELS, len(own.levels), [], 0)]
    if own.kind == "number":
        if not len(own.knots):
            return [(FLAT, 1, [], 0)]
        return [(SPLINE, own.mixing.shape[1], [*own.knots, *own.mixing.ravel()], len(own.knots))]
    return [
        (DAYS if cycle == "week" else CIRCLE, where.stop - where.start, [CYCLES[cycle]], 0)
        for cycle, where in zip(own.cycles, own.places, strict=True)
    ]


def _sums(
    width: int, laws: Sequence[Law], fills: Sequence[bool], used: Int64Array
) -> tuple[Int64Array, Float64Array, Float64Array, Int64Array, Int64Array, Float64Array, float, float]:
    weights = np.zeros((2, width, len(laws)))
    for k, law in enumerate(laws):
        weights[0, law.places, k], weights[1, law.spread_places, k] = law.weights, law.spread_weights
    counts = [len(law.places) for law in laws]
    halves = [law.half[np.tril_indices(len(law.half))] for law in laws]
    begins, halfway = accumulate(counts, initial=0), accumulate(map(len, halves), initial=0)
    about = [
        (law.what != "value", fill, begin, count, half)
        for law, fill, begin, count, half in zip(laws, fills, begins, counts, halfway, strict=False)
    ]
    return (
        used,
        np.ascontiguousarray(weights[:, used]),
        np.array([(law.low, law.high, law.scale) for law in laws], np.float64).T.copy(),
        np.array(about, np.int64),
        np.concatenate([law.places for law in laws]).astype(np.int64),
        np.concatenate(halves),
        LEAST_SHARE,
        FARTHEST_RESIDUAL,
    )
