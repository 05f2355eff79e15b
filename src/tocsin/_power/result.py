"""What a detector can see, as it is told: changes that were simulated, and when they were found."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from typing import Literal, TypedDict

Kind = Literal[
    "higher", "lower", "wider", "narrower", "other value", "stuck", "missing", "unseen", "uncoupled", "shifted"
]

FOUND = 0.5
"""The share of trials from which on a change is said to be found, of those that would not have rung without it."""


class PowerFacts(TypedDict):
    """A power card as numbers, strings, lists and dicts only."""

    ert: float
    horizon: int
    trials: int
    chance: float
    rows: Literal["stretches", "recordings", "draws"]
    columns: int
    tried: list[str]
    not_simulated: list[str]
    advice: list[str]
    would_help: list[dict[str, object]]
    changes: list[dict[str, object]]
    text: str


@dataclass(frozen=True)
class SimulatedChange:
    """A change that was made of rows of the reference many times, and how often and how soon it was found.

    kind: 'higher', 'lower', 'wider', 'narrower' (its noise), 'stuck' (at its last value), 'other value' (than the only
        one that it has), 'missing', 'unseen' (a category), 'uncoupled' (its rows are those of another time), or
        'shifted' (all columns at once, each up or down).
    column: its name; None if all columns change.
    size: in spreads of the column; of 'wider' and 'narrower' a factor of its spread, and of 'missing' and 'unseen' the
        share of the rows. None where there is no more and no less.
    amount: by how much the column moves, in its own units; None where it does not move by so much.
    share: of the trials in which it was found within the card's `horizon`.
    delay: observations from the first that is changed up to the alarm, in half of the trials that would not have rung
        by then anyway; infinite if it is found in fewer.
    low, high: a 90% interval for the typical delay, from the trials alone; either may be infinite.
    """

    kind: Kind
    column: str | None
    size: float | None
    amount: float | None
    share: float
    delay: float
    low: float
    high: float

    @property
    def found(self) -> bool:
        """Whether it is, in half of the trials or more."""
        return math.isfinite(self.delay)

    def __str__(self) -> str:
        from tocsin._power.words import named

        if not self.found:
            return f"{named(self)}: not found ({self.share:.0%} of trials)"
        high = f"{self.high:,.0f}" if math.isfinite(self.high) else "more"
        return f"{named(self)}: within {self.delay:,.0f} rows half of the time ({self.low:,.0f} to {high})"


@dataclass(frozen=True)
class Remedy:
    """What would find a change that is not found, as far as that was tried.

    kind, column, size: of the change, as in `SimulatedChange`.
    ert: the longest expected run time with which it is found, of two, five and twenty times as short ones that were
        simulated; None if it is found with none of them.
    rows: of a reference that would find it, by estimate, since it allows wider windows; None where none would, or that
        cannot be told.
    """

    kind: Kind
    column: str | None
    size: float | None
    ert: float | None
    rows: int | None


@dataclass(frozen=True)
class Power:
    """What a detector can see: changes simulated on its own reference, and when they are found.

    Printed, it says what is found within how many rows, and what is not; `to_dict()["changes"]` has a record of each
    change, of which any library makes a frame. Whatever a stream does that is in no row here
    is not judged.

    changes: what was tried, column by column.
    ert: the promise under which that holds.
    horizon: rows after the beginning of a change in which it must be found.
    trials: of each change.  chance: the share of them that ring within the horizon when nothing changes.
    rows: 'stretches' of the reference in order, each judged by the rows before it; 'recordings' of it, each met as
        a new stream and judged by the others; or 'draws' from it.
    columns: how many the reference has.  tried: those that were changed one by one.
    not_simulated: what could not be tried, and why.  advice: what would find more, in words.
    would_help: the same of changes that are not found, one by one: of all of them, or of some, spread out.
    """

    changes: tuple[SimulatedChange, ...]
    ert: float
    horizon: int
    trials: int
    chance: float
    rows: Literal["stretches", "recordings", "draws"]
    columns: int
    tried: tuple[str, ...]
    not_simulated: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    would_help: tuple[Remedy, ...] = ()

    @property
    def found(self) -> tuple[SimulatedChange, ...]:
        """What is found in half of the trials or more."""
        return tuple(change for change in self.changes if change.found)

    @property
    def unseen(self) -> tuple[SimulatedChange, ...]:
        """What is not."""
        return tuple(change for change in self.changes if not change.found)

    def to_dict(self) -> PowerFacts:
        """Numbers, strings, lists and dicts only; None for a delay that is infinite."""
        return {
            "ert": self.ert,
            "horizon": self.horizon,
            "trials": self.trials,
            "chance": self.chance,
            "rows": self.rows,
            "columns": self.columns,
            "tried": list(self.tried),
            "not_simulated": list(self.not_simulated),
            "advice": list(self.advice),
            "would_help": [asdict(remedy) for remedy in self.would_help],
            "changes": [_plain(change) for change in self.changes],
            "text": str(self),
        }

    def to_json(self) -> str:
        """The same as a line of JSON."""
        return json.dumps(self.to_dict())

    def plot(self, file: str | os.PathLike[str]) -> None:
        """Draw the typical delay of every change to a .png, .svg or .pdf file; what is not found is hatched."""
        from tocsin._plots.power import draw_power

        draw_power(self, file)

    def __str__(self) -> str:
        from tocsin._power.words import text

        return text(self)

    def __repr__(self) -> str:
        return (
            f"<Power: {len(self.found)} of {len(self.changes)} simulated changes of {len(self.tried)} columns found "
            f"within {self.horizon} rows, ERT {self.ert:g}>"
        )


def _plain(change: SimulatedChange) -> dict[str, object]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in {**asdict(change), "found": change.found}.items()
    }
