"""A column of a reference, and how its values become numbers whose distances make sense.

Every kind of column is brought to the same scale: two rows drawn at random differ in it by a squared distance of about
2. A Gaussian kernel of the distance between rows is then a product of kernels, one per column.

    number      its distance from the median, in units of the spread; far outliers are drawn in
    category    a corner each; where there are many, or rare ones, a direction each, by a hash of its name
    time        place in the day and in the week, as points on two circles
    elapsed     a time as a number
    text        its n-grams

A missing value is a corner of its own, at a squared distance of 2 or more from every value.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from tocsin._common.errors import InputError
from tocsin._compute.arrays import Array, Float64Array
from tocsin._data.tables.ngrams import PLACES, ngram_vectors
from tocsin._data.tables.table import Holds, Values

Kind = Literal["auto", "number", "category", "time", "elapsed", "text", "ignore"]

Value = float | str | None
"""What a row of features stands for: a number or a time, the name of a category; None if it is missing or lost."""

ALLOWED: dict[Holds, tuple[Kind, ...]] = {
    "numbers": ("number", "category"),
    "truth values": ("category", "number"),
    "times": ("time", "elapsed", "category"),
    "strings": ("category", "text"),
    "nothing": ("category", "number", "time", "elapsed", "text"),
}
"""Kinds that a column can be taken for, the usual one first."""

NUMERIC = ("number", "elapsed")

KNEE = 3.0
"""Numbers that are further from the median, in units of the spread, grow with the logarithm only: one wild column would
else drown all the others."""

FARTHEST = 1e300
"""Distance, in units of the spread, beyond which all are alike."""

NEAREST = float(np.finfo(np.float64).tiny)
"""What a number at its column's centre is encoded as: no statistic tells it from 0, which says that it is missing."""

MOST_VARIED = 2.0
"""Variance of a column's numbers, drawn in, beyond which they are made to weigh less: quartiles say little where most
values are alike, or tails are heavy."""

QUARTILES_OF_NORMAL = 1.349
"""Distance between the quartiles of a normal law, in standard deviations."""

RARE, MOST_CORNERS = 5, 32
"""Categories have corners if all are seen so often, and there are no more than so many. Otherwise the stream will bring
names not seen before though nothing changes. Setting those aside that the reference happens to have few of, whatever
became of them, would make it unlike the stream: so then every name has a direction, whether it was seen or not."""

DIRECTIONS = 32
"""Features of a category that has a direction: signs, by the bits of a hash. Two of them are at a squared distance of
2 on average, with a standard deviation of 0.35."""

MOST_NAMES = 1000
"""Names of categories that are known again when they are shown."""

COMMON = 5
"""Strings are names of categories if each occurs so often, on average."""

LOST = "text"
"""What stands for a text that is there: its n-grams do not say which it was."""

APART = np.sqrt(2.0)
"""How far a missing number is from one that is there; other values are at a distance of 1 from 0 themselves."""

DAY, WEEK = 86_400.0, 604_800.0


@dataclass(frozen=True)
class Column:
    """A column of the reference.

    missing: the part of its values that is missing.
    centre, spread, weight: of numbers.
    values: categories, the commonest first.  corners: whether each has one, or all have directions.
    """

    name: str
    holds: Holds
    kind: Kind
    missing: float
    centre: float = 0.0
    spread: float = 1.0
    weight: float = 1.0
    values: tuple[str, ...] = ()
    corners: bool = True

    @classmethod
    def learn(cls, name: str, values: Values, kind: Kind) -> Column:
        """From the values of a reference; of the usual kind, if 'auto'."""
        allowed = ALLOWED[values.holds]
        gone = values.missing
        there: Array = values.data[~gone]
        if kind == "auto":
            kind = "category" if values.named else allowed[0]
            if values.holds == "strings" and not values.named and len(set(there)) * COMMON > len(there):
                kind = "text"
        elif kind not in allowed:
            raise InputError(
                f"Column {name!r} holds {values.holds}, which cannot be taken for {kind!r}; choose "
                f"{' or '.join(map(repr, allowed))}, or leave it out: 'ignore'."
            )
        missing = float(gone.mean())
        if values.holds == "nothing":
            # Whatever comes will be something new.
            return cls(name, values.holds, "category", missing)
        if kind in NUMERIC:
            must_be_finite(name, values.data)
            return cls(name, values.holds, kind, missing, *_scale(there))
        if kind == "category":
            counts = Counter(word for word in values.as_strings() if word is not None).most_common()
            corners = len(counts) <= MOST_CORNERS and all(count >= RARE for _, count in counts)
            names = tuple(word for word, _ in counts[:MOST_NAMES])
            return cls(name, values.holds, kind, missing, values=names, corners=corners)
        return cls(name, values.holds, kind, missing)

    @property
    def width(self) -> int:
        """Features besides the one that says whether it is missing."""
        if self.kind == "category":
            return len(self.values) + 1 if self.corners else DIRECTIONS
        return {"time": 4, "text": PLACES}.get(self.kind, 1)

    @property
    def size(self) -> int:
        """Features in all."""
        return self.width + (self.missing > 0)

    def features(self, values: Values) -> Float64Array:
        """Rows of `width` features; any, where values are missing. (Numbers are taken in by `Columns`, all at once.)"""
        if self.kind == "text":
            return ngram_vectors(values.as_strings().tolist())
        if self.kind == "category":
            words = values.as_strings().tolist()
            if not self.corners:
                return np.array([self.direction(word) for word in words]).reshape(-1, DIRECTIONS)
            rows = np.zeros((len(values), self.width))
            rows[np.arange(len(values)), list(map(self.corner, words))] = 1.0
            return rows
        angles = [values.data * (2 * np.pi / cycle) for cycle in (DAY, WEEK)]
        circles: Float64Array = np.column_stack([turn(angle) for angle in angles for turn in (np.sin, np.cos)])
        circles *= 0.5**0.5
        return circles

    def corner(self, word: str | None) -> int:
        """Which feature a category is; the last for new ones."""
        return self._corners.get(word, len(self.values))

    @staticmethod
    def direction(word: str | None) -> Float64Array:
        """The features of a category, of length 1; 0 for none."""
        return np.zeros(DIRECTIONS) if word is None else _direction(word)

    def value(self, features: Float64Array) -> Value:
        """What a row of features stands for."""
        if self.kind in NUMERIC:
            distance = 0.0 if features[0] == NEAREST else float(let_out(features[0] / self.weight))
            return self.centre + self.spread * distance
        if self.kind == "category":
            if not self.corners:
                return self._names.get((features[:DIRECTIONS] > 0).tobytes(), "other")
            place = int(features[: self.width].argmax())
            return self.values[place] if place < len(self.values) else "other"
        if self.kind == "time":
            in_week = np.arctan2(features[2], features[3]) / (2 * np.pi) % 1 * WEEK
            in_day = np.arctan2(features[0], features[1]) / (2 * np.pi) % 1 * DAY
            return float(np.round((in_week - in_day) / DAY) * DAY + in_day) % WEEK
        return LOST

    @cached_property
    def _names(self) -> dict[bytes, str]:
        return {(self.direction(value) > 0).tobytes(): value for value in self.values}

    @cached_property
    def _corners(self) -> dict[str | None, int]:
        return {value: i for i, value in enumerate(self.values)}


@lru_cache(maxsize=10_000)
def _direction(word: str) -> Float64Array:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=DIRECTIONS // 8).digest()
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8))
    signs: Float64Array = (2.0 * bits - 1.0) / np.sqrt(DIRECTIONS)
    signs.setflags(write=False)
    return signs


def drawn_in(numbers: Float64Array, centre: float | Float64Array, spread: float | Float64Array) -> Float64Array:
    """Distances from the centre: up to KNEE spreads as they are, then by their logarithm."""
    with np.errstate(over="ignore"):
        distance = (numbers - centre) / spread
    far = np.abs(distance) - KNEE
    drawn: Float64Array = np.copysign(KNEE + np.log1p(np.clip(far, 0, FARTHEST)), distance)
    return np.where(far > 0, drawn, distance)


def let_out(distance: Float64Array) -> Float64Array:
    """The other way round."""
    far = np.abs(distance) - KNEE
    return np.where(far > 0, np.sign(distance) * (KNEE + np.expm1(np.maximum(far, 0))), distance)


def _scale(numbers: Float64Array) -> tuple[float, float, float]:
    """Centre, spread and weight."""
    low, centre, high = np.percentile(numbers, [25, 50, 75])
    spread = (high - low) / QUARTILES_OF_NORMAL
    if not spread:
        largest = np.abs(numbers - centre).max() or 1.0
        spread = largest * ((numbers - centre) / largest).std() or 1.0
    weight = np.sqrt(MOST_VARIED / max(drawn_in(numbers, centre, spread).var(), MOST_VARIED))
    return float(centre), float(spread), float(weight)


def must_be_finite(name: str, numbers: Float64Array) -> None:
    """Refuse a column with infinite numbers."""
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError(
            f"Row {row + 1} (index {row}), column {name!r} holds {numbers[row]}; numbers must be finite. Where a "
            "value is missing, say so by None or NaN."
        )
