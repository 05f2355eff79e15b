"""The quality of a stream's data beside the reference's, column by column, gathered while the stream is read.

A long file, since what is known of a column, what is seen of it and what is said of that stand beside each other.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tocsin._common.wording import called, counted, share
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._data.contextual import Contextual
from tocsin._data.intake import Rows, Tabular
from tocsin._data.tables import Column, Columns, Kind, Table, Values
from tocsin._data.tables.column import NUMERIC
from tocsin._detector.base import fitted_of
from tocsin._detector.detector import Detector
from tocsin._explain.beside import shortened
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

FEWEST_STRETCHES, SHORT = 30, 2.2
"""Stretches of equal numbers in a reference that tell how long a column stands still, and by how much the logarithm of
their number is made smaller: in one reference of 10^4 the longest is as short as if there were so many fewer."""

BEYOND = 4
"""The weight of a column that an alarm found beyond all that the reference has: what says more has less."""

MOST_WORDS = 3
"""New categories that are named."""


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

    still: how many equal numbers come one after the other at most.  stretches: how many such stretches there are.
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
    still: int = 0
    stretches: int = 0

    def is_stuck(self, count: int, rows: int) -> bool:
        """Whether so many equal numbers one after the other, in so many rows, are clearly more than the reference has.

        Where lengths of stretches are geometric, the longest of n is as long as log n times something that is the same
        in the stream; that of the reference may have been short by chance. Few stretches say nothing of that.
        """
        if self.stretches < FEWEST_STRETCHES:
            return False
        expected = max(self.stretches * rows / self.missing.among, 1.0)
        return count >= FEW and count > self.still * math.log(expected / UNLIKELY) / (math.log(self.stretches) - SHORT)


class Finding(NamedTuple):
    """In what a column of a stream is not as in the reference: as a note on it, and as a clause with its name.

    weight: what is told first has the least.
    """

    note: str
    said: str
    weight: int


class Stretch(NamedTuple):
    """Equal numbers one after the other: the rows of the first and the last, and how many numbers they are."""

    first: int
    last: int
    size: int


@dataclass
class Seen:
    """A column of a stream, as far as it was read.

    new: values beyond the reference's range, or not among its categories; first_new: the row of the first, from 1 on.
    words: two values at most.  new_words: some new ones.  longest: the longest stretch of equal numbers.
    before: observations that came before the first, and are counted with these.
    """

    known: Known
    before: int = 0
    rows: int = 0
    missing: int = 0
    new: int = 0
    low: float = math.inf
    high: float = -math.inf
    words: set[str] = field(default_factory=set)
    new_words: list[str] = field(default_factory=list)
    first_new: int = 0
    longest: Stretch = field(default_factory=lambda: Stretch(0, 0, 0))
    _now: Stretch = field(default_factory=lambda: Stretch(0, 0, 0))
    _value: float = math.nan

    def add(self, values: Values) -> None:
        """Values that follow."""
        self.rows += len(values)
        if self.known.kind in NUMERIC or (values.holds in ("numbers", "times") and not self.known.words):
            self._add_numbers(values.data)
        else:
            counts = Counter(values.as_strings().tolist())
            self.missing += counts.pop(None, 0)
            if self.known.kind == "category":
                self._add_new(values, [word for word in counts if word not in self.known.words], counts)
            if len(self.words) < 2:
                self.words.update(sorted(counts)[:2])

    def _add_new(self, values: Values, words: list[str], counts: Counter[str]) -> None:
        if not words:
            return
        self.new += sum(counts[word] for word in words)
        self.new_words = list(dict.fromkeys([*self.new_words, *words]))[:MOST_WORDS]
        if not self.first_new:
            unseen = set(words)
            place = next(i for i, word in enumerate(values.as_strings().tolist()) if word in unseen)
            self.first_new = self.before + self.rows - len(values) + place + 1

    def _add_numbers(self, data: Float64Array) -> None:
        there = data[~np.isnan(data)]
        self._stand(there, self.before + self.rows - len(data) + np.flatnonzero(~np.isnan(data)) + 1)
        self.missing += len(data) - len(there)
        if len(there):
            self.low, self.high = min(self.low, float(there.min())), max(self.high, float(there.max()))
            if self.known.range is not None:
                low, high = self.known.range
                room = CLOSE * (abs(low) + abs(high))
                beyond = (there < low - room) | (there > high + room)
                self.new += int(beyond.sum())
                if not self.first_new and beyond.any():
                    place = int(np.flatnonzero(~np.isnan(data))[beyond.argmax()])
                    self.first_new = self.before + self.rows - len(data) + place + 1

    def _stand(self, there: Float64Array, rows: Int64Array) -> None:
        """Follow stretches of equal numbers; those that are missing do not end one."""
        if not len(there):
            return
        begins = np.flatnonzero(np.diff(there, prepend=self._value) != 0)
        ends = [*begins.tolist(), len(there)]
        if ends[0]:
            first = self._now.first or int(rows[0])
            self._now = Stretch(first, int(rows[ends[0] - 1]), self._now.size + ends[0])
        self.longest = max(self.longest, self._now, key=lambda stretch: stretch.size)
        if len(begins):
            lengths = np.diff(ends)
            best = int(lengths.argmax())
            self._now = self._stretch(rows, ends, len(lengths) - 1)
            self.longest = max(self.longest, self._stretch(rows, ends, best), key=lambda stretch: stretch.size)
        self._value = float(there[-1])

    @staticmethod
    def _stretch(rows: Int64Array, ends: list[int], i: int) -> Stretch:
        return Stretch(int(rows[ends[i]]), int(rows[ends[i + 1] - 1]), ends[i + 1] - ends[i])

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
        return [*(finding.note for finding in self.findings()), *told]

    def findings(self) -> list[Finding]:
        """In what the stream is not as the reference was.

        First gaps, categories where no new ones are expected, and a column that is empty or has one value only, are
        told as they are. Shares are compared: while nothing changes, each is told of a column with a probability of
        UNLIKELY at most.
        """
        found = [found for found in (self._gaps(), self._new(), self._stillness()) if found is not None]
        return sorted(found, key=lambda own: own.weight)

    def _gaps(self) -> Finding | None:
        known, name = self.known, called(self.known.name)
        here = f"{name} is missing in {share(self.missing / max(self.rows, 1))} of the rows"
        before = f"({share(known.missing.part)} in the reference)"
        if self.rows and self.missing == self.rows:
            if known.missing.count == known.missing.among:
                return None
            return Finding("empty in the stream", f"{name} is empty", 0)
        if self.missing and not known.missing.count:
            return Finding("missing only in the stream", f"{here} (in none of the reference)", 2)
        if known.missing.is_exceeded(self.missing, self.rows):
            return Finding("missing more often than in the reference", f"{here} {before}", 2)
        if known.missing.is_missed(self.missing, self.rows):
            return Finding("missing less often than in the reference", f"{here} {before}", BEYOND + 2)
        return None

    def _new(self) -> Finding | None:
        known, name, there = self.known, called(self.known.name), self.rows - self.missing
        if known.new is None or not self.new:
            return None
        first, part = f"first at observation {self.first_new:,}", share(self.new / max(there, 1))
        if known.kind == "category" and not known.new.count:
            words = ", ".join(shortened(word, 20) for word in self.new_words)
            said = f"{name} has categories that the reference never had ({words}; {first})"
            return Finding(f"categories that the reference never had: {words}, {first}", said, 1)
        if not known.new.is_exceeded(self.new, there):
            return None
        if known.range:
            said = f"{name} is beyond the reference's range in {part} of the rows ({first})"
            return Finding("more values beyond the reference's range than expected", said, BEYOND + 1)
        return Finding("more unseen categories than expected", f"{name} has new categories in {part} of the rows", 3)

    def _stillness(self) -> Finding | None:
        name = called(self.known.name)
        if self.constant and not self.known.constant and self.rows - self.missing >= FEW:
            return Finding("has one value only in the stream", f"{name} has one value only", 0)
        longest = self.longest
        if not self.known.is_stuck(longest.size, self.rows):
            return None
        span = f"{longest.first:,} to {longest.last:,}"
        note = f"stood still from observation {span}; in the reference for at most {counted(self.known.still, 'row')}"
        return Finding(note, f"{name} stood still from observation {span}", 0)


class Quality:
    """Of all columns of a stream that a detector looks at."""

    def __init__(self, detector: Detector, before: int = 0) -> None:
        anywhere = fitted_of(detector).live.has_baselines  # a stream's own level may be where no recording was
        known = (replace(own, new=None) if anywhere and own.range else own for own in _known(detector))
        self.columns = {own.name: Seen(own, before) for own in known}

    @property
    def findings(self) -> list[tuple[str, Finding]]:
        """In what columns are not as in the reference, the gravest first."""
        found = [(name, finding) for name, column in self.columns.items() for finding in column.findings()]
        return sorted(found, key=lambda own: own[1].weight)

    def add(self, table: Table) -> None:
        """Rows that follow."""
        for name, values in table:
            if name in self.columns:
                self.columns[name].add(values)


def _known(detector: Detector) -> list[Known]:
    intake = detector.intake_
    if isinstance(intake, Contextual):
        return _of_context(intake, len(detector.reference_))
    if isinstance(intake, Tabular):
        points = np.asarray(detector.reference_, dtype=np.float64)
        return [
            _of_column(column, points[:, [*np.flatnonzero(intake.owners == i).tolist(), -1]])
            for i, column in enumerate(intake.columns.columns)
        ]
    if isinstance(intake, Rows):
        return [_of_numbers(name, values_in(intake, detector.reference_, name)) for name in intake.names]
    return []


def _of_context(intake: Contextual, rows: int) -> list[Known]:
    """Columns of the context, and what is watched; of this a detector remembers no range."""
    known = list[Known]()
    for own in intake.expectation.design.columns:
        gaps, numbers = Share(0, rows), own.kind == "number"
        beyond = _beyond(rows) if numbers else Share(0, rows)
        ends = (own.low, own.high) if numbers else None
        kind: Kind = "number" if numbers else own.kind
        known.append(Known(own.name, kind, gaps, beyond, ends, frozenset(own.levels)))
    for column in intake.expectation.watched:
        gaps = Share(round(column.missing * rows), rows)
        known.append(Known(column.name, column.kind, gaps, Share(0, rows), None, frozenset(column.values)))
    return known


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
        return standing(
            Known(name, kind, missing, _beyond(there), (low, high), constant=low == high), rows[rows[:, 0] != 0, 0]
        )
    if kind == "category":
        unseen = Share(0 if column.corners else min(_unseen(column, rows), there), there)
        return Known(name, kind, missing, unseen, None, frozenset(column.values), len(column.values) == 1)
    return Known(name, kind, missing)


def _of_numbers(name: str, values: Values | None) -> Known:
    assert values is not None
    low, high = float(values.data.min()), float(values.data.max())
    known = Known(name, "number", Share(0, len(values)), _beyond(len(values)), (low, high), constant=low == high)
    return standing(known, values.data)


def standing(known: Known, numbers: Float64Array) -> Known:
    """With how long the reference stands still; numbers: its own, or what stands for them."""
    edges = np.flatnonzero(np.diff(numbers, prepend=np.nan, append=np.nan) != 0)
    return replace(known, still=int(np.diff(edges).max(initial=0)), stretches=len(edges) - 1)


def _unseen(column: Column, rows: Float64Array) -> int:
    """Values that are unlike all others: as many of further ones are unlike these (Good 1953)."""
    counts = Counter(record[column.name] for record in Columns((column,)).decode(rows))
    return sum(times == 1 for name, times in counts.items() if name not in (None, OTHER)) + counts[OTHER]


def _beyond(count: int) -> Share:
    """Further values that lie beyond the range of so many: a part that varies as if one of these did."""
    return Share(1, count)
