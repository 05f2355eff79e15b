"""How one record is read quickly: what its context is as numbers, and the numbers that laws are of."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._data.context.basis import Surrounding
from tocsin._data.context.expectation import Expectation
from tocsin._data.context.laws import What
from tocsin._data.tables import Column, Values, times_in
from tocsin._data.tables.table import Holds, number_word, plain_numbers, seconds_of, word_of

NO_NEWS = np.zeros((1, 0))


Read = tuple[Float64Array | None, Float64Array, Float64Array]
"""Context as numbers, (1, columns), None if the reference lacks its like; what laws are of, (1, laws); and which
categories are new."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Where in a record everything is.

    numbers: columns that hold these, those of the context first.  around: columns of the context, and where each is
        among the numbers; None if it is not.  words: watched categories, and which are known.
    laws: of each, what it is of, where its column is among numbers or words, whether it is a word, and the level.
    quick: whether this can be.  plain: whether laws are of the last numbers, one by one.
    """

    numbers: tuple[str, ...]
    around: tuple[tuple[Surrounding, int | None], ...]
    words: tuple[tuple[Column, frozenset[str]], ...]
    laws: tuple[tuple[What, int, bool, str], ...]
    quick: bool
    plain: bool

    @classmethod
    def of(cls, expectation: Expectation) -> Reading:
        """For records such as those that this was learned from."""
        columns, watched = expectation.design.columns, expectation.watched
        context = [own.name for own in columns if own.holds == "numbers"]
        values = [own.name for own in watched if own.kind != "category"]
        spots = {name: (k, False) for k, name in enumerate(values, len(context))}
        spots |= {own.name: (k, True) for k, own in enumerate(expectation.categories)}
        return cls(
            (*context, *values),
            tuple((own, context.index(own.name) if own.name in context else None) for own in columns),
            tuple((own, frozenset(own.values)) for own in expectation.categories),
            tuple((law.what, *spots[law.column], law.level) for law in expectation.laws),
            not expectation.is_foreign
            and all(
                own.holds in ("strings", "truth values") if own.kind == "category" else own.holds == "numbers"
                for own in watched
            ),
            [law.column for law in expectation.laws] == values,
        )

    def one(self, record: Mapping[str, object]) -> Read | None:
        """A record with all columns; None if it takes a closer look."""
        numbers = plain_numbers([record[name] for name in self.numbers]) if self.quick else None
        if numbers is None or np.isinf(numbers).any():
            return None
        context, known = np.empty((1, len(self.around))), True
        for k, (own, spot) in enumerate(self.around):
            number = _kept(own, record[own.name]) if spot is None else _placed(own, float(numbers[spot]))
            if number is None:
                return None
            low, high = own.limits
            known = known and low <= number <= high
            context[0, k] = number
        words = [record[column.name] for column, _ in self.words]
        for k, (column, _) in enumerate(self.words):
            if not _is_word(column.holds, words[k]):
                return None
            words[k] = _word(words[k])
        values, news = numbers[None, len(numbers) - len(self.laws) :], NO_NEWS
        if not self.plain:
            numbered = [
                _number(what, words[k] if is_word else numbers[k], level) for what, k, is_word, level in self.laws
            ]
            values = np.array([numbered])
        if words:
            pairs = zip(words, self.words, strict=True)
            news = np.array([[float(word is not None and word not in names) for word, (_, names) in pairs]])
        return context if known else None, values, news


def _placed(own: Surrounding, number: float) -> float:
    """A number of the context as it is kept."""
    if own.kind != "category":
        return number
    return float(own.place(None if number != number else number_word(number)))


def _kept(own: Surrounding, value: object) -> float | None:
    """A value of the context that is no number, as one; None if it takes a closer look."""
    if own.kind == "category":
        return float(own.place(_word(value))) if _is_word(own.holds, value) else None
    if own.holds != "times":
        return None
    if type(value) is str:
        times, other = times_in(Values.of_words([value]))
        return float(times.data[0]) if other is None else None
    if not isinstance(value, datetime.datetime):
        return None
    return seconds_of(value) if value == value else math.nan  # pandas has one that is no time


def _is_word(holds: Holds, value: object) -> bool:
    """Whether a value is what a category of this kind holds, or missing."""
    return value is None or type(value) is {"strings": str, "truth values": bool}.get(holds)


def _word(value: object) -> str | None:
    if type(value) is bool:
        return word_of(value)
    return value if type(value) is str else None


def _number(what: What, value: object, level: str) -> float:
    """One of the numbers that a column is made into."""
    missing = value is None or value != value
    if what == "gap":
        return float(missing)
    if what == "level":
        return math.nan if missing else float(value == level)
    return float(value)  # type: ignore[arg-type]
