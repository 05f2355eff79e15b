"""What a fleet asks of a detector, whatever its keys are heard by."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._compute.arrays import Array, Float64Array, Int64Array
from tocsin._explain.result import Explanation
from tocsin._state import Fitted
from tocsin._state.outcomes import Outcome
from tocsin._statistics.views import ViewsLive
from tocsin._streams.fleet.view_windows import ViewWindows
from tocsin._streams.fleet.windows import PairWindows
from tocsin._streams.shared import shared_by


class Windows(Protocol):
    """A detector and thresholds that all keys share. States of keys are passed in, and changed.

    columns: numbers of a point.  widest: columns of a window in a state.  layout: of a state without its tail.
    """

    fitted: Fitted[Calibration]
    columns: int
    widest: int
    layout: np.dtype[Any]

    @property
    def fingerprint(self) -> int:
        """Of all that a window depends on; thresholds may change without it."""

    def read(self, heads: list[bytes], alarms: dict[int, Array]) -> Any:
        """States of this layout, to be passed in; tails are given apart."""

    def begin(self, kept: Any, chosen: Int64Array) -> None:
        """Let the streams of these keys begin."""

    def renew(self, kept: Any, chosen: Int64Array) -> None:
        """Let these keys begin new runs."""

    def observe(self, points: Float64Array) -> Any:
        """All about points that needs no state."""

    def advance(
        self, kept: Any, chosen: Int64Array, observed: Any, first: Int64Array, stop: Int64Array
    ) -> tuple[Int64Array, Int64Array, list[Outcome]]:
        """Let points first..stop of each of these keys enter, up to its first alarm; where that is, who rang, how."""

    def carry(self, kept: Any, k: int, old: Any, earlier: Any) -> bool:
        """Let a key go on from what an earlier detector has left of it; whether it can."""

    def explain(self, kept: Any, k: int, outcome: Outcome) -> Explanation:
        """What an alarm means that a key's last observation has raised."""


def windows_of(fitted: Fitted[Calibration], workers: int | None = None) -> Windows:
    """For many keys that share this."""
    live = shared_by(fitted)
    return ViewWindows(live, fitted, workers) if isinstance(live, ViewsLive) else PairWindows(live, fitted, workers)
