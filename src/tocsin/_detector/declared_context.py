"""What files hold of expectations given a context: the classes, and what the fields of each must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

import numpy as np

from tocsin._data.context.basis import CYCLES, MOST_LEVELS, Kept, Surrounding
from tocsin._data.context.design import Design
from tocsin._data.context.expectation import Expectation
from tocsin._data.context.laws import Law, What
from tocsin._data.contextual import Contextual
from tocsin._data.tables import Column, Columns
from tocsin._data.tables.table import Holds
from tocsin._detector.schema import Array, Choice, Many, Number, Of, Rule, Whole, must, text

MOST_COLUMNS, MOST_FUNCTIONS = 1000, 100_000

LARGEST, MODERATE = 1e100, 1e30
"""Of what is multiplied by numbers that a spread is not far from, and of what is squared besides."""

SCALE = Number(1e-100, 1e100)

PLACES = Array("i8", (None,), 0, MOST_FUNCTIONS)

FIELDS: dict[type[Any], Mapping[str, Rule]] = {
    Surrounding: {
        "name": text,
        "holds": Choice(get_args(Holds)),
        "kind": Choice(get_args(Kept)),
        "levels": Many(text, most=MOST_LEVELS, distinct=True),
        "low": Number(),
        "high": Number(),
        "knots": Array("f8", (None,), rising=True),
        "mixing": Array("f8", (None, None), -LARGEST, LARGEST),
        "cycles": Many(Choice(tuple(CYCLES)), distinct=True),
    },
    Design: {
        "columns": Many(Of((Surrounding,)), 1, MOST_COLUMNS),
        "pairs": Many(Many(Whole(0, MOST_COLUMNS), 2, 2), most=MOST_COLUMNS),
        "sizes": Many(Whole(1, MOST_FUNCTIONS), 1),
    },
    Law: {
        "column": text,
        "what": Choice(get_args(What)),
        "level": text,
        "places": PLACES,
        "weights": Array("f8", (None,), -LARGEST, LARGEST),
        "half": Array("f8", (None, None), -MODERATE, MODERATE),
        "spread_places": PLACES,
        "spread_weights": Array("f8", (None,), -MODERATE, MODERATE),
        "low": Number(-600.0, 600.0),
        "high": Number(-600.0, 600.0),
        "scale": SCALE,
        "typical": SCALE,
        "explained": Number(),
        "probes": Array("f8", (None, None)),
        "answers": Array("f8", (None,)),
    },
    Expectation: {
        "design": Of((Design,)),
        "watched": Many(Of((Column,)), 1),
        "laws": Many(Of((Law,)), 1),
    },
    Contextual: {
        "columns": Of((Columns,)),
        "expectation": Of((Expectation,)),
        "order": Many(text, 2, distinct=True),
        "ignored": Many(text),
    },
}


def _surrounding(own: Surrounding, at: str) -> None:
    must(own.low <= own.high, at, (own.low, own.high), "from a number to one that is no smaller")
    if own.kind == "category":
        must(len(own.levels) > 0, at, own.levels, "of some levels")
    elif own.kind == "time":
        must(own.holds == "times" and len(own.cycles) > 0, at, own.cycles, "of times, with some cycle")
    else:
        fits = own.holds != "strings" and len(own.mixing) == len(own.knots) != 1
        must(fits and (not len(own.knots) or own.mixing.shape[1] > 0), at, own.mixing.shape, "a row for each knot")


def _design(design: Design, at: str) -> None:
    names = [own.name for own in design.columns]
    must(len(set(names)) == len(names), at, names, "without a name that comes twice")
    within = all(i < len(names) and j < len(names) for i, j in design.pairs)
    must(within, f"{at}.pairs", design.pairs, "of columns that there are")
    alone = [design.columns[i].cycles for i, j in design.pairs if i == j]
    must(all({"day", "week"} <= set(own) for own in alone), f"{at}.pairs", design.pairs, "of different columns")
    must(design.sizes == design.counted(), f"{at}.sizes", design.sizes, "as its columns have them")


def _law(law: Law, at: str) -> None:
    p = len(law.places)
    must(len(law.weights) == p, f"{at}.weights", len(law.weights), f"{p}, one for each function")
    must(law.half.shape == (p, p), f"{at}.half", law.half.shape, f"{p} times {p}")
    must(not np.triu(law.half, 1).any(), f"{at}.half", law.half, "0 above its diagonal")
    must(len(law.spread_weights) == len(law.spread_places), at, len(law.spread_weights), "one for each function")
    must(len(law.probes) == len(law.answers), f"{at}.answers", len(law.answers), "one for each row")
    must(law.low <= law.high, at, (law.low, law.high), "from a number to one that is no smaller")


def _expectation(own: Expectation, at: str) -> None:
    known, width = {column.name for column in own.watched}, own.design.width
    for law in own.laws:
        must(law.column in known, f"{at}.laws", law.column, "of columns that are watched")
        places = np.concatenate([law.places, law.spread_places])
        must(not len(places) or int(places.max()) < width, f"{at}.laws", places, f"places among {width} functions")
    names = [law.name for law in own.laws]
    must(len(set(names)) == len(names), f"{at}.laws", names, "without a name that comes twice")


def _contextual(own: Contextual, at: str) -> None:
    names, wanted = own.columns.names, own.expectation.names
    must(names == wanted, f"{at}.columns", names, f"those of its expectation, {wanted}")
    must(all(column.kind == "number" for column in own.columns.columns), f"{at}.columns", names, "numbers")
    fields = {*own.given, *(column.name for column in own.expectation.watched)}
    must(fields == set(own.order), f"{at}.order", own.order, "of the context and of what is watched")


TOGETHER: dict[type[Any], Callable[[Any, str], None]] = {
    Surrounding: _surrounding,
    Design: _design,
    Law: _law,
    Expectation: _expectation,
    Contextual: _contextual,
}
"""What the fields of a class must be to each other."""
