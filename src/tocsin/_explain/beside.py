"""What is known of observations besides what is watched: when they came, and columns to find them again by."""

from __future__ import annotations

import datetime
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from tocsin._common.errors import InputError
from tocsin._common.wording import shown
from tocsin._compute.arrays import Float64Array
from tocsin._data.tables import Table, Values
from tocsin._data.tables.table import EPOCH
from tocsin._data.tables.words import is_gap, time_in

DAY, MINUTE = 86_400, 60

LONGEST = 200
"""Characters of a kept value that are remembered."""

CLOCK = "\0clock"
"""What the column of times is called among those beside the watched ones: no column of a file has such a name."""


class Beside:
    """The latest observations of a stream, counted from 1, with their times, kept columns and texts.

    keep: names of columns.  watched: of columns of texts, of which a detector knows the n-grams alone.
    most: how many observations are remembered.  before: those that came before the first.
    """

    def __init__(
        self, keep: Sequence[str] = (), watched: Sequence[str] = (), *, most: int = 0, before: int = 0
    ) -> None:
        self.keep, self.watched, self.rows = tuple(keep), tuple(watched), before
        self._most = most
        self._seconds: deque[float] = deque()
        self._kept: dict[str, deque[str | None]] = {name: deque() for name in (*self.keep, *self.watched)}
        self._step, self._zone = DAY, False
        self._looked_at, self._in_order = before, True

    def add(self, table: Table | None, count: int) -> Float64Array:
        """So many observations that follow; when they came, in seconds since 1970, NaN where that is not known."""
        columns: Mapping[str, Values] = {} if table is None else table.columns
        self.rows += count
        seconds = self._times(columns.get(CLOCK), count)
        self._seconds.extend(seconds.tolist())
        for name, kept in self._kept.items():
            kept.extend(_words(columns[name]) if name in columns else [None] * count)
        while len(self._seconds) > max(self._most, count):
            self._seconds.popleft()
            for kept in self._kept.values():
                kept.popleft()
        return seconds

    def when(self, row: int) -> str | None:
        """When an observation came, in words; None where that is not known, or times go back."""
        place = self._place(row)
        if place is None or not self._forward:
            return None
        return self.shown(self._seconds[place])

    def shown(self, seconds: float) -> str | None:
        """A time as finely as the times of this stream are told: by the day, minute, second or less.

        >>> clock = Beside()
        >>> clock.shown(1551968400.0)
        '2019-03-07'
        """
        return moment(seconds, self._step, utc=self._zone)

    @property
    def manner(self) -> dict[str, int | bool]:
        """How times are told, for those who tell them elsewhere: to the day, minute, second or less, and in UTC."""
        return {"step": self._step, "utc": self._zone}

    def kept(self, row: int) -> dict[str, str]:
        """Its kept columns, the beginning of each value; none for one that is not remembered."""
        return self._words(row, self.keep)

    def texts(self, row: int) -> dict[str, str]:
        """Its texts likewise."""
        return self._words(row, self.watched)

    def _words(self, row: int, names: Sequence[str]) -> dict[str, str]:
        place = self._place(row)
        if place is None:
            return {}
        found = {name: self._kept[name][place] for name in names}
        return {name: "missing" if value is None else value for name, value in found.items()}

    def _place(self, row: int) -> int | None:
        place = row - self.rows + len(self._seconds) - 1
        return place if 0 <= place < len(self._seconds) else None

    @property
    def _forward(self) -> bool:
        """Whether the times that are remembered never go back."""
        if self._looked_at != self.rows:
            there = [seconds for seconds in self._seconds if seconds == seconds]
            self._looked_at = self.rows
            self._in_order = all(first <= second for first, second in pairwise(there))
        return self._in_order

    def _times(self, values: Values | None, count: int) -> Float64Array:
        if values is None:
            return np.full(count, np.nan)
        if values.holds == "strings":
            seconds = np.full(count, np.nan)
            for i, word in enumerate(values.data.tolist()):
                found = None if is_gap(word) else time_in(word)
                if found is not None:
                    seconds[i], zone = found
                    self._zone = self._zone or zone
        else:
            seconds = values.data
        there = seconds[np.isfinite(seconds)]
        for finer in (MINUTE, 1, 0):
            if self._step > finer and len(there) and (there % self._step).any():
                self._step = finer
        return seconds


def moment(seconds: float, step: int, *, utc: bool = False) -> str | None:
    """A time in words, told by whole days, minutes or seconds, or else by the millisecond (a step of 0).

    >>> moment(1551968400.0, 60), moment(1551968400.5, 0), moment(1551968400.0, 1, utc=True), moment(float("nan"), 1)
    ('2019-03-07 14:20', '2019-03-07 14:20:00.500', '2019-03-07 14:20:00Z', None)
    """
    if not math.isfinite(seconds):
        return None
    try:
        time = EPOCH + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return None
    if step >= DAY:
        return time.date().isoformat()
    spec = "minutes" if step >= MINUTE else "seconds" if step else "milliseconds"
    return time.isoformat(" ", spec) + "Z" * utc


def time_beside(when: str, other: str) -> str:
    """Another time, without its date where that is the same.

    >>> time_beside("2019-03-07 14:20", "2019-03-07 15:00"), time_beside("2019-03-07 14:20", "2019-03-08 15:00")
    ('15:00', '2019-03-08 15:00')
    """
    day, _, clock = other.partition(" ")
    return clock if clock and when.startswith(day) else other


def clock_among(first: Mapping[str, object], known: Sequence[str] = ()) -> str | None:
    """The column that plainly says when a row came, by the values of a stream's first row; None if there is none.

    known: columns that did so in the reference, which come before others.
    """
    columns = [*(name for name in known if name in first), *first]
    return next((name for name in columns if _is_time(first[name])), None)


def clock_values(times: object) -> Values:
    """Times given in a list, an array or a column of a frame: as times, or as the strings that they are."""
    convert = getattr(times, "to_list", None) or getattr(times, "to_pylist", None)
    given = times if convert is None else convert()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"Times must be in a list, an array or a column; got {shown(times)}.")
    return Values.of_objects(list(given), "times")


def _is_time(value: object) -> bool:
    return isinstance(value, str) and not is_gap(value) and time_in(value) is not None and not _is_number(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _words(values: Values) -> list[str | None]:
    if values.holds == "times":
        return [moment(seconds, 0 if seconds % 1 else 1) for seconds in values.data.tolist()]
    return [None if word is None else shortened(word) for word in values.as_strings().tolist()]


def shortened(text: str, most: int = LONGEST) -> str:
    """The beginning of a text, on one line.

    >>> shortened("a  long\\ntext", 8)
    'a long …'
    """
    line = " ".join(text[: 4 * most].split()).encode("utf-8", "backslashreplace").decode()  # halves of characters too
    return line if len(line) <= most else f"{line[: most - 1]}…"
