"""What an alarm means where rows have a context: how far a column is from what is expected, in its own units."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tocsin._common.wording import called
from tocsin._compute.arrays import Float64Array
from tocsin._data.context.laws import Law
from tocsin._data.contextual import Contextual
from tocsin._explain.result import Moved
from tocsin._explain.words import Words

HALF = 0.6745
"""Within so many spreads is half of what varies as a normal law does."""

MOST_TOLD = 3
"""Columns of which an example is told."""


@dataclass(frozen=True, eq=False)
class Deviations:
    """Recent rows of a run, relative to what was expected of them.

    points: as they were compared, (n, features).  beside: what was expected, as `Contextual.taken` has it; None where
        that was not kept: then deviations are told at the typical spread.
    """

    intake: Contextual
    points: Float64Array
    beside: Float64Array | None

    @classmethod
    def of(cls, intake: Contextual, points: Float64Array, beside: Float64Array | None) -> Deviations:
        """Of the latest points, whose last is the last of those beside."""
        if beside is None or len(beside) < len(points):
            return cls(intake, points, None)
        return cls(intake, points, beside[len(beside) - len(points) :])

    def since(self, first: int) -> Deviations:
        """From this one on."""
        return replace(self, points=self.points[first:], beside=None if self.beside is None else self.beside[first:])

    def expected(self, k: int) -> Float64Array | None:
        """Of a law, by its place."""
        return None if self.beside is None else self.beside[:, k]

    def off(self, k: int) -> Float64Array:
        """How far each row is from that, in the units of the column."""
        intake = self.intake
        law, laws = intake.expectation.laws[k], len(intake.expectation.laws)
        relative = intake.columns.numbers(self.points, intake.names.index(law.name))
        return relative * (law.typical if self.beside is None else self.beside[:, laws + k])

    def words(self, words: list[Words]) -> list[Words]:
        """What is told of each column, before and after, in its own units."""
        places = {law.name: k for k, law in enumerate(self.intake.expectation.laws)}
        return [self._worded(own, places[own.name]) if own.name in places else own for own in words]

    def _worded(self, own: Words, k: int) -> Words:
        law = self.intake.expectation.laws[k]
        off = self.off(k)
        off, there = off[~np.isnan(off)], ~np.isnan(off)
        if not len(off):
            return own
        expected, mean = self.expected(k), float(off.mean())
        found = None if expected is None else (float((expected[there] + off).mean()), float(expected[there].mean()))
        return Words(own.name, _usual(law), _told(law, mean, found), own.numeric)

    def sentences(self, moved: tuple[Moved, ...], places: list[int]) -> tuple[str, ...]:
        """Of columns that changed, how the clearest of these rows shows it."""
        if self.beside is None or not places:
            return ()
        known = {law.name: k for k, law in enumerate(self.intake.expectation.laws) if law.what == "value"}
        told = []
        for name in [own.name for own in moved if own.changed and own.name in known][:MOST_TOLD]:
            off = self.off(known[name])
            farthest = max(places, key=lambda place: abs(np.nan_to_num(off[place])))
            told.append(self._sentence(known[name], farthest, float(off[farthest])))
        return tuple(told)

    def _sentence(self, k: int, place: int, off: float) -> str:
        assert self.beside is not None
        intake, expected = self.intake, float(self.beside[place, k])
        around = intake.expectation.design.told(self.beside[place, 2 * len(intake.expectation.laws) :])
        side = "above" if off > 0 else "below"
        return (
            f"{called(intake.expectation.laws[k].column)} is {abs(off):.3g} {side} what {around} is used to "
            f"({expected + off:.4g} where {expected:.4g} is expected)"
        )

    def shown(self, place: int) -> dict[str, str]:
        """A row in the units of its columns, with what was expected, and its context."""
        intake = self.intake
        values = {}
        for k, law in enumerate(intake.expectation.laws):
            off = float(self.off(k)[place])
            if law.what != "value" or np.isnan(off):
                continue
            if self.beside is None:
                values[law.name] = f"{off:+.3g} from what is expected"
            else:
                expected = float(self.beside[place, k])
                values[law.name] = f"{expected + off:.4g} ({expected:.4g} expected)"
        if self.beside is not None:
            kept = self.beside[place, 2 * len(intake.expectation.laws) :]
            for own, number in zip(intake.expectation.design.columns, kept, strict=True):
                values[own.name] = own.told(float(number)).removeprefix(f"{own.name} ")
        return values


def _usual(law: Law) -> str:
    if law.what != "value":
        return "as often as is expected"
    return f"within {HALF * law.typical:.3g} of what is expected, half of the time"


def _told(law: Law, off: float, found: tuple[float, float] | None) -> str:
    """off: mean distance.  found: the mean, and what was expected of it."""
    if law.what != "value":
        side = "more" if off > 0 else "less"
        where = "" if found is None else f" ({found[0]:.0%} where {found[1]:.0%} is expected)"
        return f"{side} often than is expected{where}"
    where = "" if found is None else f" ({found[0]:.4g} where {found[1]:.4g} is)"
    return f"{abs(off):.3g} {'above' if off > 0 else 'below'} what is expected{where}"
