"""False alarms counted beside those promised, and small helpers for tables of them."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._experiments.base import Row, Table

LIKELY = 0.95


class Kept:
    """False alarms in some recordings by one method at one ERT, over those that it did not refuse."""

    def __init__(self, rows: Table) -> None:
        watched = [row for row in rows if not row["refused"]]
        self.recordings, self.refused = len(rows), len(rows) - len(watched)
        self.rows = sum(int(row["rows"]) for row in watched)
        self.expected = sum(int(row["rows"]) / float(row["ert"]) for row in watched)
        self.observed = sum(int(row["alarms"]) for row in watched)
        self.most = max((int(row["alarms"]) for row in watched), default=0)
        stated = [within(row) for row in watched if row["rows"] and not np.isnan(float(row["low"]))]
        self.stated, self.within = len(stated), sum(stated)

    @property
    def ratio(self) -> float:
        """Observed to expected."""
        return self.observed / self.expected if self.expected else np.nan

    @property
    def distance(self) -> float:
        """From the promise, as a logarithm that few expected alarms do not move far; infinite if all was refused."""
        return abs(np.log((self.observed + 0.5) / (self.expected + 0.5))) if self.expected else np.inf

    @property
    def refusals(self) -> str:
        """How many were refused, of how many."""
        return f"{self.refused} of {self.recordings}"


def within(row: Row) -> bool:
    """Whether so many alarms are likely (95 %) for some expected run time in the stated interval."""
    from scipy import special  # slow to import

    rows, alarms, low, high = (float(row[name]) for name in ("rows", "alarms", "low", "high"))
    tail = (1 - LIKELY) / 2
    most, fewest = rows / max(low, 1.0), rows / high
    # P(count >= alarms) at the highest rate, and P(count <= alarms) at the lowest: neither may be too unlikely.
    return bool(
        (alarms == 0 or special.pdtrc(alarms - 1, most) > tail) and (fewest == 0 or special.pdtr(alarms, fewest) > tail)
    )


def where(rows: Table, **equal: object) -> Table:
    """Rows with these values."""
    return [row for row in rows if all(row[name] == value for name, value in equal.items())]


def distinct(rows: Table, name: str) -> list[str | int | float]:
    """Values of a column, in order of their first row."""
    return list(dict.fromkeys(row[name] for row in rows))


def column(rows: Table, name: str) -> Float64Array:
    """Values of a column of numbers."""
    return np.array([row[name] for row in rows], dtype=np.float64)


def number(ratio: float) -> str:
    """With as many digits as are of use."""
    return "-" if np.isnan(ratio) else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}"
