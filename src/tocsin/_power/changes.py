"""Changes that a stream may go through, made of quiet rows: what is tried of a column depends on what it holds.

Rows are points, as the statistics compare them. A number is found again in its features, changed, and encoded anew, so
that what is far out is drawn in as a stream's would be; what a category, a time or a text stands for is moved from row
to row as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from tocsin._common.wording import called, listed
from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array
from tocsin._data.contextual import Contextual
from tocsin._data.intake import Intake, Represented, Rows, Tabular
from tocsin._data.tables.column import NUMERIC, QUARTILES_OF_NORMAL
from tocsin._power.result import Kind
from tocsin._statistics.base import Points

SPREADS = (1.0, 3.0, 10.0)
"""By how many spreads a column moves up or down."""

WIDER, NARROWER = 2.0, 0.5
"""What the spread of a column is multiplied by."""

SHARES = (0.3, 1.0)
"""Of the rows, in which a value is missing or is a category that the reference has not."""

LITTLE = (0.5, 1.0)
"""By how many spreads all columns move at once, each up or down."""

MEAN_OF = 25
"""Rows around whose mean a column gets noisier, where rows are in order: its level stays as it is."""

COUPLED, MOST_ROWS, MOST_OTHERS, FAR = 0.3, 1000, 500, 3.0
"""Correlation from which on columns have something to do with each other; rows by which that is seen, and numbers that
each is compared with; and where numbers are cut off for it, in standard deviations."""

MOVING = ("higher", "lower", "wider", "narrower", "other value")
"""Kinds that make other numbers of a column's."""

TOGETHER = 4e6
"""Numbers that are made at once, at most."""

LEAST = 1e-290
"""What is divided by, at least."""

LEAST_QUARTILES = 1e-3
"""Of the spread between quartiles, in standard deviations, to count."""


@dataclass(frozen=True, eq=False)
class Scene:
    """What a change meets.

    before, after: quiet rows up to it, oldest first, and those that would have come.
    elsewhere: rows from another time, as many as after.
    dice: a uniform number for each row after.  signs: 1 or -1 for each column.
    ordered: whether rows follow each other in time.
    """

    before: Points
    after: Points
    elsewhere: Points
    dice: Float64Array
    signs: Float64Array
    ordered: bool


@dataclass(frozen=True)
class Change:
    """A change of a column, or (None) of all.

    size: in spreads of the column, as a factor of its spread, or as a share of the rows; None where there is no more
        and no less.
    """

    kind: Kind
    column: int | None
    size: float | None = None


class Cells:
    """The columns of a reference, to be changed one by one.

    names, spread, centre: of the columns; NaN for those that hold no numbers.  constant: whether one value is all.
    """

    def __init__(self, intake: Intake, reference: Points, recordings: Int64Array | None = None) -> None:
        """recordings: edges of those within which spreads are taken, each about a level of its own."""
        self.intake, self._recordings = intake, recordings
        named = isinstance(intake, Rows | Tabular) and isinstance(reference, np.ndarray)
        self.names: tuple[str, ...] = intake.names if named else ()
        self._of_table = intake.columns if isinstance(intake, Tabular) else None
        self._reference = reference
        held = [self.numbers(reference, j) for j in range(len(self.names))]
        self.spread, self.centre = np.full(len(held), np.nan), np.full(len(held), np.nan)
        self.constant = np.zeros(len(held), dtype=bool)
        for j, values in enumerate(held):
            there = np.empty(0) if values is None else values[~np.isnan(values)]
            if len(there):
                self.centre[j] = np.median(there)
                self.constant[j] = there.max() == there.min()
                self.spread[j] = abs(there[0]) or 1.0 if self.constant[j] else self._within(values)

    @cached_property
    def _spreads(self) -> Float64Array:
        """Of the numbers of a representation."""
        return np.array([self._within(column) for column in self._reference.T], np.float64)

    def _within(self, numbers: Float64Array | None) -> float:
        """The spread of numbers; where there are recordings, within these, if they move in any."""
        assert numbers is not None
        if self._recordings is not None:
            parts = (own[~np.isnan(own)] for own in np.split(numbers, self._recordings[1:-1]))
            about = np.concatenate([own - np.median(own) for own in parts if len(own)])
            if np.ptp(about) > 0:
                return _spread(about)
        return _spread(numbers[~np.isnan(numbers)])

    @cached_property
    def whole(self) -> bool:
        """Whether observations are rows of numbers of some sort, that can be moved together."""
        return isinstance(self._reference, np.ndarray)

    def changes(self, column: int) -> Iterator[Change]:
        """What makes sense for a column."""
        if self._is_number(column) and not self.constant[column]:
            for size in SPREADS:
                yield Change("higher", column, size)
                yield Change("lower", column, size)
            yield Change("wider", column, WIDER)
            yield Change("narrower", column, NARROWER)
        if self.constant[column]:
            yield Change("other value", column)
        elif not self._is_still(column):
            yield Change("stuck", column)
        if self._of_table is not None:
            own = self._of_table.columns[column]
            if own.kind == "category":
                yield from (Change("unseen", column, share) for share in SHARES)
            yield from (Change("missing", column, share) for share in SHARES if own.missing < share)
        if self._coupled[column]:
            yield Change("uncoupled", column)

    @cached_property
    def _coupled(self) -> BoolArray:
        """Columns that have something to do with another: where there is nothing, nothing can be lost."""
        count = len(self.names)
        owner = np.arange(self._reference.shape[1]) if self._of_table is None else self._of_table.owners
        some = self._reference[:: max(len(self._reference) // MOST_ROWS, 1)]
        far = some - np.median(some, axis=0)
        far /= np.maximum(np.abs(far).max(0), LEAST)
        own = far.std(0)
        moderate = np.clip(far / np.where(own > 0, own, 1.0), -FAR, FAR)
        moderate -= moderate.mean(0)
        moderate /= np.maximum(np.sqrt((moderate**2).sum(0)), LEAST)
        coupled, features = np.zeros(count, dtype=bool), np.flatnonzero(owner < count)
        compared = features[:: -(-len(features) // MOST_OTHERS)]
        for j in range(count):
            own, others = moderate[:, owner == j], compared[owner[compared] != j]
            coupled[j] = bool((np.abs(own.T @ moderate[:, others]) > COUPLED).any())
        return coupled

    def of_all(self) -> Iterator[Change]:
        """What may happen to all columns at once."""
        numbers = [j for j in range(len(self.names)) if self._is_number(j) and not self.constant[j]]
        if len(numbers) > 1 or (self.whole and isinstance(self.intake, Represented)):
            yield from (Change("shifted", None, size) for size in LITTLE)
        if len(self.names) != 1:
            yield Change("stuck", None)

    def left_out(self) -> Iterator[str]:
        """What cannot be simulated, and why."""
        if not self.whole:
            yield "how an observation would change, since it is no row of numbers; a stream that stops is"
        elif not self.names:
            yield (
                "changes of single columns, since what the detector compares are numbers of a representation; all of "
                "them are moved at once, and a stream stops"
            )
        if self._of_table is None:
            return
        for kind, what in (("text", "other texts in"), ("time", "other times of day in")):
            names = [called(column.name) for column in self._of_table.columns if column.kind == kind]
            if names:
                yield f"{what} {listed(names)}"

    def amount(self, change: Change) -> float | None:
        """How much a column moves, in its own units."""
        if change.column is None or change.kind not in ("higher", "lower", "other value"):
            return None
        return float(self.spread[change.column] * (change.size or 1.0) * self._unit(change.column))

    def _unit(self, column: int) -> float:
        """What a number of a point is worth in the column's own units: where rows have a context, about, at the
        typical spread around what is expected."""
        if not isinstance(self.intake, Contextual):
            return 1.0
        own = {law.name: law.typical for law in self.intake.expectation.laws}
        return own.get(self.names[column], 1.0)

    def features(self, change: Change) -> Int64Array | None:
        """The numbers of a point that a change touches; None for all."""
        if change.column is None:
            return None
        if self._of_table is None:
            return np.array([change.column])
        own = self._of_table.features_of(change.column)
        return np.array([*range(own.start, own.stop), self._of_table.width - 1])

    def changed(self, changes: Sequence[Change], scene: Scene) -> Points:
        """The rows after, as they come now: with the first of these changes, then with the next, and so on. All are of
        one column, or of all."""
        moving = [change for change in changes if change.kind in MOVING]
        made = dict(zip(moving, self._moved(moving, scene), strict=True)) if moving else {}
        return _joined([made[change] if change in made else self._altered(change, scene) for change in changes])

    def _altered(self, change: Change, scene: Scene) -> Points:
        """The rows after, where it is not numbers that move."""
        after, column = scene.after, change.column
        if change.kind == "stuck":
            return self._with_features(after, _repeated(scene.before, len(after)), column)
        if column is None:
            return self._all_shifted(scene, float(change.size or 0.0))
        if change.kind == "uncoupled":
            return self._with_features(after, scene.elsewhere, column)
        assert self._of_table is not None
        where = scene.dice < (change.size or 0.0)
        put = self._of_table.with_gaps if change.kind == "missing" else self._of_table.with_unseen
        return put(after, column, where)

    def _moved(self, changes: Sequence[Change], scene: Scene) -> Float64Array:
        """The rows after, for each change of a column whose numbers are shifted, or whose noise changes."""
        column, after = changes[0].column, scene.after
        assert column is not None
        numbers, spread = self.numbers(after, column), self.spread[column]
        assert numbers is not None
        noise = any(own.kind in ("wider", "narrower") for own in changes)
        centre = self._middle(column, numbers, scene) if noise else 0.0
        moved = []
        for change in changes:
            size = change.size or 1.0
            if change.kind in ("wider", "narrower"):
                moved.append(centre + size * (numbers - centre))
            else:
                moved.append(numbers + (-1.0 if change.kind == "lower" else 1.0) * size * spread)
        rows = self._with_numbers(np.tile(after, (len(changes), 1)), column, np.concatenate(moved))
        split: Float64Array = rows.reshape(len(changes), *after.shape)
        return split

    def _middle(self, column: int, numbers: Float64Array, scene: Scene) -> float | Float64Array:
        """What noise is about."""
        if not scene.ordered:
            return float(self.centre[column])
        before = self.numbers(scene.before, column)
        return running_mean(np.concatenate([before, numbers]))[len(scene.before) :]

    def _all_shifted(self, scene: Scene, size: float) -> Points:
        rows = scene.after
        if not self.names:
            shifted: Float64Array = rows + size * scene.signs * self._spreads
            return shifted
        for j in range(len(self.names)):
            if self._is_number(j) and not self.constant[j]:
                numbers = self.numbers(scene.after, j)
                assert numbers is not None
                rows = self._with_numbers(rows, j, numbers + size * scene.signs[j] * self.spread[j])
        return rows

    def numbers(self, rows: Points, column: int) -> Float64Array | None:
        """What a column of numbers holds; None of a column of another kind."""
        if self._of_table is None:
            own: Float64Array = rows[:, column]
            return own
        return self._of_table.numbers(rows, column) if self._is_number(column) else None

    def _is_number(self, column: int) -> bool:
        return self._of_table is None or self._of_table.columns[column].kind in NUMERIC

    def _is_still(self, column: int) -> bool:
        """Whether it never changes in the reference: then there is nothing to stop."""
        if self._is_number(column):
            return bool(self.constant[column]) or bool(np.isnan(self.spread[column]))
        assert self._of_table is not None
        own = self._reference[:, self._of_table.features_of(column)]
        return bool((own == own[0]).all())

    def _with_numbers(self, rows: Points, column: int, numbers: Float64Array) -> Points:
        if self._of_table is not None:
            return self._of_table.with_numbers(rows, column, numbers)
        changed = rows.copy()
        changed[:, column] = numbers
        return changed

    def _with_features(self, rows: Points, others: Points, column: int | None) -> Points:
        """Rows whose column is that of others."""
        if column is None:
            return others
        changed, own = rows.copy(), slice(column, column + 1)
        if self._of_table is not None:
            own = self._of_table.features_of(column)
        changed[:, own] = others[:, own]
        return changed


def together(changes: Sequence[Change], numbers: int) -> Iterator[list[Change]]:
    """Changes that are tried at once: those of a column, but not too many where one takes so many numbers."""
    most = max(int(TOGETHER // max(numbers, 1)), 1)
    for _, own in groupby(changes, key=lambda change: change.column):
        of_column = list(own)
        yield from (of_column[start : start + most] for start in range(0, len(of_column), most))


def running_mean(x: Float64Array) -> Float64Array:
    """Over the rows around each, those that are there (not NaN); over fewer at the ends."""
    there = ~np.isnan(x)
    sums, counts = (np.concatenate([[0.0], np.cumsum(own)]) for own in (np.where(there, x, 0.0), there))
    places, half = np.arange(len(x)), MEAN_OF // 2
    first, last = np.maximum(places - half, 0), np.minimum(places + half + 1, len(x))
    mean: Float64Array = (sums[last] - sums[first]) / np.maximum(counts[last] - counts[first], 1)
    return mean


def _joined(parts: Sequence[Points]) -> Points:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [point for part in parts for point in part]


def _repeated(before: Points, count: int) -> Points:
    """The last row, so many times."""
    if isinstance(before, np.ndarray):
        return np.repeat(before[-1:], count, axis=0)
    return [before[-1]] * count


def _spread(numbers: Float64Array) -> float:
    """From the quartiles; the standard deviation where they say nothing."""
    largest = np.abs(numbers).max() or 1.0
    moderate = numbers / largest  # whose squares are numbers
    low, high = np.percentile(moderate, [25, 75])
    spread, deviation = (high - low) / QUARTILES_OF_NORMAL, moderate.std()
    return float((spread if spread > LEAST_QUARTILES * deviation else deviation) * largest)
