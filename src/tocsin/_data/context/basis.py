"""A column of the context, and the functions of it that expectations are made of.

    category    a level each, shrunken towards all the others
    number      a slope, and bends: a natural cubic spline, in functions that are ordered by how much they bend
    time        hours on a circle, days of the week, and the season; each where the reference has four turns of it

Functions are scaled so that all of a term deserve the same shrinkage: the more a function bends, the smaller it is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Literal

import numpy as np

from tocsin._common.errors import InputError, Option
from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array
from tocsin._data.tables import Kind
from tocsin._data.tables.summary import clock
from tocsin._data.tables.table import Holds, Values

Kept = Literal["category", "number", "time"]

FEW_NUMBERS = 12
"""Whole numbers of so few kinds are levels: a day of the week, a state, a gear."""

MOST_LEVELS = 200
"""Levels of a category: with more, few of them have rows enough to tell what they are like."""

KNOTS, ROWS_PER_KNOT = 20, 15
"""Of splines, at most; and rows of the reference that ask for one more."""

MARGIN = 0.05
"""How far a number may lie outside of the reference's, in parts of their range, and count as seen."""

TURNS = 4
"""Of a cycle, that a reference must have for it to be told from chance."""

HOUR, DAY, WEEK, YEAR = 3600.0, 86_400.0, 604_800.0, 365.2425 * 86_400.0
CYCLES = {"day": DAY, "week": WEEK, "year": YEAR}
HARMONICS = {"day": 10, "year": 3}

DAYS = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")
"""Of the week in which 1970 began."""

FIRST_MONDAY = 4 * DAY
"""Of 1970, in which time begins on a Thursday."""

SMALL = 1e-9
"""Of the variation of the broadest function, that is left out of what splines are made of: rounding made it."""


@dataclass(frozen=True, eq=False)
class Surrounding:
    """A column of the context.

    levels: of a category.  low, high: between which the reference's numbers lie.
    knots, mixing: of a spline; what its functions are made of.  cycles: of times, those that are known.
    """

    name: str
    holds: Holds
    kind: Kept
    levels: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 1.0
    knots: Float64Array = field(default_factory=lambda: np.zeros(0))
    mixing: Float64Array = field(default_factory=lambda: np.zeros((0, 0)))
    cycles: tuple[str, ...] = ()

    @classmethod
    def learn(cls, name: str, values: Values, kind: Kind) -> Surrounding:
        """From the values of a reference, some of which may be missing."""
        there = values[np.flatnonzero(~values.missing)]
        if not len(there):
            raise InputError(Option("given", [name]), ": all of its values are missing, so it tells nothing.")
        if kind in ("text", "ignore"):
            raise InputError(Option("kinds", {name: kind}), " goes for a column that is watched, and this is context.")
        if _is_category(there, kind):
            levels = tuple(level for level, _ in Counter(there.as_strings().tolist()).most_common())
            if len(levels) > MOST_LEVELS:
                raise InputError(
                    Option("given", [name]),
                    f": it has {len(levels):,} levels, and at most {MOST_LEVELS} can be told apart. Give a coarser "
                    "column, such as a region for a postcode.",
                )
            return cls(name, values.holds, "category", levels)
        if values.holds == "strings":
            raise InputError(
                Option("kinds", {name: kind}), f": the values of {name!r} are strings such as {there.data[0]!r}."
            )
        numbers = there.data
        low, high = float(numbers.min()), float(numbers.max())
        if not np.isfinite(numbers).all():
            raise InputError(Option("given", [name]), " holds numbers that are not finite; mend them, or leave it out.")
        if values.holds == "times" and kind != "elapsed":
            cycles = tuple(cycle for cycle, seconds in CYCLES.items() if (high - low) >= TURNS * seconds)
            if not cycles:
                raise InputError(
                    Option("given", [name]),
                    f": the reference spans {(high - low) / DAY:.1f} days, and hours can be told from chance from "
                    f"{TURNS} days on. Give a longer reference, or leave it out.",
                )
            return cls(name, values.holds, "time", low=low, high=high, cycles=cycles)
        knots, mixing = _spline(numbers) if high > low else (np.zeros(0), np.zeros((0, 0)))
        return cls(name, values.holds, "number", low=low, high=high, knots=knots, mixing=mixing)

    def known(self, values: Values) -> BoolArray:
        """Which of these the reference has the like of."""
        low, high = self.limits
        kept = self.kept(values)
        with np.errstate(invalid="ignore"):
            return np.asarray((kept >= low) & (kept <= high))

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Between which a value, as a number, must lie to be known."""
        if self.kind == "category":
            return 0.0, np.inf
        if self.kind == "time":
            return -np.inf, np.inf
        margin = MARGIN * (self.high - self.low)
        return self.low - margin, self.high + margin

    def terms(self, values: Values) -> list[Float64Array]:
        """Functions of known values, term by term, each (n, functions)."""
        if self.kind == "category":
            return [(self._places(values)[:, None] == np.arange(len(self.levels))).astype(np.float64)]
        if self.kind == "number":
            if not len(self.knots):
                return [np.zeros((len(values), 1))]
            functions = summed(_natural(values.data, self.knots), self.mixing)
            return [functions[:, :1], functions[:, 1:]]
        return [_turns(values.data, cycle) for cycle in self.cycles]

    @cached_property
    def places(self) -> list[slice]:
        """Where the functions of each term are among those of all its terms."""
        sizes = [term.shape[1] for term in self.terms(nothing(self.holds))]
        return [slice(end - size, end) for end, size in zip(accumulate(sizes), sizes, strict=True)]

    def heads(self, most: int) -> slice:
        """Where the broadest of these functions are, so many at most, for products with those of another column."""
        if self.kind == "number":
            return slice(0, min(most, self.places[-1].stop))
        first = self.places[0]
        return slice(0, min(2 * most, first.stop)) if "day" in self.cycles else first

    def kept(self, values: Values) -> Float64Array:
        """Values as numbers: of categories, the places of their levels, -1 for others."""
        kept: Float64Array = self._places(values).astype(np.float64) if self.kind == "category" else values.data
        return kept

    def told(self, number: float) -> str:
        """Such a number in words.

        >>> Surrounding("day", "strings", "category", levels=("Mon", "Tue")).told(1.0)
        'day Tue'
        """
        if self.kind == "time":
            day = f" on a {DAYS[int(number % WEEK // DAY)]}" if "week" in self.cycles else ""
            return f"{clock(number % DAY)}{day}"
        value = self.levels[int(number)] if self.kind == "category" else f"{number:.4g}"
        return f"{self.name} {value}"

    def place(self, word: str | None) -> int:
        """That of a level; -1 for others."""
        return self._level.get(word, -1)

    def _places(self, values: Values) -> Int64Array:
        return np.array([self.place(word) for word in values.as_strings().tolist()], np.int64).reshape(-1)

    @cached_property
    def _level(self) -> dict[str | None, int]:
        return {level: place for place, level in enumerate(self.levels)}


def nothing(holds: Holds) -> Values:
    """A column without values."""
    return Values("strings", np.empty(0, object)) if holds == "strings" else Values(holds, np.empty(0))


def _is_category(there: Values, kind: Kind) -> bool:
    if kind in ("number", "elapsed", "time"):
        return False
    if kind == "category" or there.holds in ("strings", "truth values"):
        return True
    if there.holds != "numbers":
        return False
    kinds = np.unique(there.data)
    return len(kinds) <= FEW_NUMBERS and bool((kinds == np.round(kinds)).all())


def _turns(seconds: Float64Array, cycle: str) -> Float64Array:
    """Functions of the place in a cycle; days of the week are a level each."""
    if cycle == "week":
        day: Float64Array = np.floor((seconds - FIRST_MONDAY) % WEEK / DAY)
        return np.asarray(day[:, None] == np.arange(7), np.float64)
    angle = seconds % CYCLES[cycle] * (2 * np.pi / CYCLES[cycle])
    pairs = [(np.cos(k * angle), np.sin(k * angle), k) for k in range(1, HARMONICS[cycle] + 1)]
    return np.column_stack([own * (2**0.5 / k**1.5) for c, s, k in pairs for own in (c, s)])


def summed(functions: Float64Array, weights: Float64Array) -> Float64Array:
    """functions @ weights, whose every bit is that of a row alone, however many rows there are."""
    total = np.zeros((len(functions), weights.shape[1]))
    for j in np.flatnonzero(weights.any(1)):
        total += functions[:, j : j + 1] * weights[j]
    return total


def _natural(x: Float64Array, knots: Float64Array) -> Float64Array:
    """1, x and the natural cubic splines with these knots: straight beyond the first and the last."""
    scale = knots[-1] - knots[0]
    place, inner = (x - knots[0]) / scale, (knots - knots[0]) / scale
    ahead = np.maximum(place[:, None] - inner, 0.0)
    cubes = ahead * ahead * ahead
    cubes = (cubes[:, :-1] - cubes[:, -1:]) / (inner[-1] - inner[:-1])
    rows = np.ones((len(x), len(knots)))
    rows[:, 1], rows[:, 2:] = place, cubes[:, :-1] - cubes[:, -1:]
    return rows


def _spline(numbers: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Knots, and what functions are made of: a slope, then bends, which vary as much as each other over the reference,
    are unlike each other, and are made as much smaller as they bend more."""
    distinct = np.unique(numbers)
    count = int(np.clip(min(len(distinct), len(numbers) // ROWS_PER_KNOT), 2, KNOTS))
    knots = np.unique(np.quantile(distinct if len(distinct) <= 3 * KNOTS else numbers, np.linspace(0, 1, count)))
    rows = _natural(numbers, knots)
    slope = np.zeros(rows.shape[1])
    spread = rows[:, 1].std()
    slope[:2] = -rows[:, 1].mean() / spread, 1 / spread
    if len(knots) < 3:
        return knots, slope[:, None]
    straight = rows[:, :2]
    onto = np.linalg.lstsq(straight, rows[:, 2:], rcond=None)[0]
    bends = rows[:, 2:] - straight @ onto
    # Functions that differ over the reference, the least bent first.
    _, size, axes = np.linalg.svd(bends / np.sqrt(len(rows)), full_matrices=False)
    white = (axes / size[:, None])[size > SMALL * size[0]].T
    how_much, turn = np.linalg.eigh(white.T @ _bending(knots) @ white)
    how_much = np.maximum(how_much, SMALL * how_much[-1])
    mixed = white @ turn / np.sqrt(how_much / how_much[0])
    mixing = np.zeros((rows.shape[1], 1 + mixed.shape[1]))
    mixing[:, 0] = slope
    mixing[2:, 1:] = mixed
    mixing[:2, 1:] = -onto @ mixed
    return knots, mixing


def _bending(knots: Float64Array) -> Float64Array:
    """Integrals of products of second derivatives of `_natural` but the first two; these are straight between knots."""
    inner = (knots - knots[0]) / (knots[-1] - knots[0])
    ahead = np.maximum(inner[:, None] - inner, 0.0)
    second = (ahead[:, :-1] - ahead[:, -1:]) / (inner[-1] - inner[:-1])
    second = second[:, :-1] - second[:, -1:]
    left, right, wide = second[:-1], second[1:], np.diff(inner)[:, None]
    bent: Float64Array = (left.T @ (wide * (2 * left + right)) + right.T @ (wide * (left + 2 * right))) / 6
    return bent
