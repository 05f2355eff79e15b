"""The quality of a stream's data beside the reference's, column by column, gathered while the stream is read."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._data.intake import Rows, Tabular
from tocsin._data.tables import Column, Columns, Table, Values
from tocsin._data.tables.column import NUMERIC
from tocsin._detector.detector import Detector
from tocsin._plots.samples import values_in

CLOSE = 1e-9
"""Relative error of a reference's numbers, which a detector remembers in another form."""

UNLIKELY, TIMES = 1e-4, 1.5
"""A share is worth a word if chance seldom makes it as large, or small, and it differs from the reference's by such a
factor."""

OTHER = "other"
"""What a category is called that a detector does not know again."""

FEW = 20
"""Rows of a stream that say little when all are alike."""


@dataclass(frozen=True)
class Share:
    """So many of the reference's values."""

    count: int
    among: int

    @property
    def part(self) -> float:
        return self.count / self.among

    def is_exceeded(self, count: int, among: int) -> bool:
        """Whether so many of a stream's values are clearly more."""
        return count > TIMES * self.part * among and self.chance(count, among) < UNLIKELY

    def is_missed(self, count: int, among: int) -> bool:
        """Whether so many are clearly fewer."""
        rest = Share(self.among - self.count, self.among)
        return count * TIMES < self.part * among and rest.chance(among - count, among) < UNLIKELY

    def chance(self, count: int, among: int) -> float:
        """Probability of so many or more, if the reference and the stream have the same share.

        Of all that both have, so few or fewer are then the reference's: Fisher's exact test.
        """
        from scipy import stats  # slow to import, and needed by reports alone

        return float(stats.hypergeom.cdf(self.count, self.among + among, self.among, self.count + count))


@dataclass(frozen=True)
class Known:
    """A column of the reference.

    missing: of its values, how many are.  new: of further values, how many are expected to lie beyond its range, or not
    to be among its categories, if nothing changes; None if there is no such thing.
    """

    name: str
    kind: str
    missing: Share
    new: Share | None = None
    range: tuple[float, float] | None = None
    words: frozenset[str] = frozenset()
    constant: bool = False


@dataclass
class Seen:
    """A column of a stream, as far as it was read.

    new: values beyond the reference's range, or not among its categories.  words: two of them at most.
    """

    known: Known
    rows: int = 0
    missing: int = 0
    new: int = 0
    low: float = math.inf
    high: float = -math.inf
    words: set[str] = field(default_factory=set)

    def add(self, values: Values) -> None:
        """Values that follow."""
        self.rows += len(values)
        if self.known.kind in NUMERIC or (values.holds in ("numbers", "times") and not self.known.words):
            self._add_numbers(values.data)
        else:
            counts = Counter(values.as_strings().tolist())
            self.missing += counts.pop(None, 0)
            if self.known.kind == "category":
                self.new += sum(count for word, count in counts.items() if word not in self.known.words)
            if len(self.words) < 2:
                self.words.update(sorted(counts)[:2])

    def _add_numbers(self, data: Float64Array) -> None:
        there = data[~np.isnan(data)]
        self.missing += len(data) - len(there)
        if len(there):
            self.low, self.high = min(self.low, float(there.min())), max(self.high, float(there.max()))
            if self.known.range is not None:
                low, high = self.known.range
                room = CLOSE * (abs(low) + abs(high))
                self.new += int(((there < low - room) | (there > high + room)).sum())

    @property
    def constant(self) -> bool:
        """Whether all values were alike."""
        return self.low == self.high or len(self.words) == 1

    @property
    def range(self) -> tuple[float, float] | None:
        """Of its numbers, if it has any."""
        return (self.low, self.high) if self.low <= self.high else None

    def notes(self) -> list[str]:
        """What someone should know who relies on this column."""
        told = []
        if self.known.constant:
            told.append("has one value only in the reference" + (", and in the stream" if self.constant else ""))
        return [*self.findings(), *told]

    def findings(self) -> list[str]:
        """In what the stream is not as the reference was.

        First gaps, categories where no new ones are expected, and a column that is empty or has one value only, are
        told as they are. Shares are compared: while nothing changes, each is told of a column with a probability of
        UNLIKELY at most.
        """
        known, there = self.known, self.rows - self.missing
        found = []
        if self.rows and not there:
            found.append("empty in the stream")
        elif self.missing and not known.missing.count:
            found.append("missing only in the stream")
        elif known.missing.is_exceeded(self.missing, self.rows):
            found.append("missing more often than in the reference")
        elif known.missing.is_missed(self.missing, self.rows):
            found.append("missing less often than in the reference")
        if known.kind == "category" and known.new is not None and self.new and not known.new.count:
            found.append("categories that the reference never had")
        elif known.new is not None and self.new and known.new.is_exceeded(self.new, there):
            what = "values beyond the reference's range" if known.range else "unseen categories"
            found.append(f"more {what} than expected")
        if self.constant and not known.constant and there >= FEW:
            found.append("has one value only in the stream")
        return found


class Quality:
    """Of all columns of a stream that a detector looks at."""

    def __init__(self, detector: Detector) -> None:
        self.columns = {known.name: Seen(known) for known in _known(detector)}

    def add(self, table: Table) -> None:
        """Rows that follow."""
        for name, values in table:
            if name in self.columns:
                self.columns[name].add(values)


def _known(detector: Detector) -> list[Known]:
    intake = detector.intake_
    if isinstance(intake, Tabular):
        points = np.asarray(detector.reference_, dtype=np.float64)
        return [
            _of_column(column, points[:, [*np.flatnonzero(intake.owners == i).tolist(), -1]])
            for i, column in enumerate(intake.columns.columns)
        ]
    if isinstance(intake, Rows):
        return [_of_numbers(name, values_in(intake, detector.reference_, name)) for name in intake.names]
    return []


def _of_column(column: Column, rows: Float64Array) -> Known:
    """rows: its features in the reference, and the one for values that are newly missing."""
    name, kind, missing = column.name, column.kind, Share(round(column.missing * len(rows)), len(rows))
    there = max(missing.among - missing.count, 1)
    if kind in NUMERIC:
        # Features rise with the numbers, and a missing one is in their midst.
        ends = rows[[rows[:, 0].argmin(), rows[:, 0].argmax()]]
        low, high = (record[name] for record in Columns((column,)).decode(ends))
        if not isinstance(low, float) or not isinstance(high, float):
            return Known(name, kind, missing)
        return Known(name, kind, missing, _beyond(there), (low, high), constant=low == high)
    if kind == "category":
        unseen = Share(0 if column.corners else min(_unseen(column, rows), there), there)
        return Known(name, kind, missing, unseen, None, frozenset(column.values), len(column.values) == 1)
    return Known(name, kind, missing)


def _of_numbers(name: str, values: Values | None) -> Known:
    assert values is not None
    low, high = float(values.data.min()), float(values.data.max())
    return Known(name, "number", Share(0, len(values)), _beyond(len(values)), (low, high), constant=low == high)


def _unseen(column: Column, rows: Float64Array) -> int:
    """Values that are unlike all others: as many of further ones are unlike these (Good 1953)."""
    counts = Counter(record[column.name] for record in Columns((column,)).decode(rows))
    return sum(times == 1 for name, times in counts.items() if name not in (None, OTHER)) + counts[OTHER]


def _beyond(count: int) -> Share:
    """Further values that lie beyond the range of so many: a part that varies as if one of these did."""
    return Share(1, count)
