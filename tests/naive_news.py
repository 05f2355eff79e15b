"""News of independent rows, by the book: values as users have them, counts by hand, chances as exact fractions.

Shares no code with the library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import comb
from typing import Any

Record = dict[str, Any]
SPANS, SHARE = (8, 32), Fraction(1, 100)


def chance(k: int, m: int, n: int) -> Fraction:
    """(m + 1) ... (m + k) / ((n + 1) ... (n + k))."""
    product = Fraction(1)
    for i in range(1, k + 1):
        product *= Fraction(m + i, n + i)
    return product


class News:
    """What a reference makes of rows to come. names: of the columns, with whether each holds numbers."""

    def __init__(self, reference: Sequence[Record], names: dict[str, bool], ert: int, *, gaps: bool = True) -> None:
        self.names, self.n, self.gaps = names, len(reference), gaps
        self.values = {name: [row[name] for row in reference if row[name] is not None] for name in names}
        self.counts = {name: Counter(own) for name, own in self.values.items()}
        heard = sum((2 * gaps) + (5 if is_number else 3) for is_number in names.values())
        self.allowed = SHARE / (ert * heard)

    def kinds(self, name: str, value: Any) -> list[tuple[str, int]]:
        """What a value is news of, and how many rows of the reference were, each beside the others."""
        own = self.values[name]
        if value is None:
            return [("missing", self.n - len(own))] if self.gaps else []
        if self.names[name]:
            if not own:
                return []
            return [("above all", 0)] * (value > max(own)) + [("below all", 0)] * (value < min(own))
        seldom = sum(count == 1 for count in self.counts[name].values())
        return [("unseen", seldom)] * (value not in self.counts[name])

    def ringing(self, run: Sequence[Record]) -> set[tuple[str, str, int]]:
        """Which channels ring with the last row of a run: column, kind, and rows of its window (0: stopped)."""
        found = set()
        for name in self.names:
            value = run[-1][name]
            for kind, seen in self.kinds(name, value):
                for span in SPANS:
                    k = sum(kind in [other for other, _ in self.kinds(name, row[name])] for row in run[-span:])
                    if k >= 2 and comb(span - 1, k - 1) * chance(k, seen, self.n) <= self.allowed:
                        found.add((name, kind, span))
            if value is not None and self._stopped(name, [row[name] for row in run]):
                found.add((name, "stopped", 0))
        return found

    def _stopped(self, name: str, values: Sequence[Any]) -> bool:
        ties = 0
        while ties + 1 < len(values) and values[-2 - ties] == values[-1]:
            ties += 1
        # A value that no row of the reference has counts as one that a single row has.
        return ties > 0 and chance(ties, max(self.counts[name][values[-1]], 1), self.n) <= self.allowed
