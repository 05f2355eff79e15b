"""What a fit settled, that all other parts of its file have to fit to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin._detector.schema import Array, Many, Rule, anything, must


@dataclass(frozen=True)
class Sizes:
    """How many there are of everything.

    points: of the reference.  columns: of a point; None for objects.  compared: points that windows are compared with.
    """

    windows: tuple[int, ...]
    points: int
    columns: int | None
    compared: int
    warm: bool
    beside: int = 0

    @property
    def widest(self) -> int:
        return self.windows[-1]

    def rows(self, count: int | None) -> Rule:
        """Points: rows of numbers, or a list of objects."""
        if self.columns is None:
            return Many(anything) if count is None else Many(anything, count, count)
        return Array("f8", (count, self.columns))

    def few(self, most: int) -> Rule:
        """Up to so many points; none of them may be an empty list, whatever points are."""

        def rule(value: Any, at: str) -> None:
            if (isinstance(value, list) and not value) or (isinstance(value, np.ndarray) and value.shape[:1] == (0,)):
                return
            self.rows(None)(value, at)
            must(len(value) <= most, at, len(value), f"at most {most} points")

        return rule
