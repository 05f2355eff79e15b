"""An alarm, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tocsin._common.wording import counted
from tocsin._state.outcomes import Outcome

State = Literal["open", "returned", "dismissed"]
"""The change lasts, as far as is known; the stream is like the reference again; or somebody said that it does not
matter."""


@dataclass(frozen=True)
class Incident:
    """From an alarm until the stream is like the reference again.

    number: from 1 on.  row: the observation that rang, counted from 1 with the first that the monitor took in.
    outcome: of that observation; its time counts in its run.
    state: 'open' while it lasts, then 'returned'; or 'dismissed'.  ended: the observation with which that was known.
    returns: observations with which the stream was taken to have returned; but for the latest, it rang soon after.
    peak, peak_row: the largest statistic so far, and the observation that had it.
    muted: whether it rang while the monitor was muted.
    """

    number: int
    row: int
    outcome: Outcome
    state: State
    ended: int | None
    returns: tuple[int, ...]
    peak: float
    peak_row: int
    muted: bool

    @property
    def open(self) -> bool:
        """Whether it lasts, as far as is known."""
        return self.state == "open"

    def __str__(self) -> str:
        said = f"Incident {self.number}: rang at observation {self.row:,}"
        end = "open" if self.ended is None else f"{self.state} at {self.ended:,}"
        flaps = len(self.returns) - (self.state == "returned")
        return f"{said}, {end}" + (f", after {counted(flaps, 'return')} that did not last" if flaps > 0 else "")
