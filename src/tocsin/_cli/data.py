"""Whether the data of a watch are as the reference's: what a report tells in a table, in few words."""

from __future__ import annotations

from tocsin._common.wording import counted, listed
from tocsin._data.intake import Tabular
from tocsin._data.tables import Table
from tocsin._detector.detector import Detector
from tocsin._report.quality import Quality

TOGETHER, MOST_NAMED = 256, 1
"""Rows that are looked at together, since they often come one by one; and findings that are told in full."""


class Data:
    """The rows of a watch beside the reference. before: how many earlier watches took in."""

    def __init__(self, detector: Detector, before: int = 0) -> None:
        self._intake, self._quality = detector.intake_, Quality(detector, before)
        self._waiting: list[Table] = []
        self._rows = 0

    def add(self, rows: Table) -> None:
        """Rows that were tested."""
        if not self._quality.columns:
            return
        self._waiting.append(rows)
        self._rows += len(rows)
        if self._rows >= TOGETHER:
            self._look()

    def _look(self) -> None:
        if self._waiting:
            table = Table.join(self._waiting) if len(self._waiting) > 1 else self._waiting[0]
            self._quality.add(self._intake.columns.held(table) if isinstance(self._intake, Tabular) else table)
        self._waiting, self._rows = [], 0

    def findings(self) -> list[str]:
        """In what columns are not as in the reference, in clauses; the gravest first."""
        self._look()
        return [finding.said for _, finding in self._quality.findings]

    def told(self, alarms: int) -> str:
        """All of it in a sentence; nothing where there are no columns to tell of, or nothing beside alarms."""
        self._look()
        found = self._quality.findings
        if not self._quality.columns:
            return ""
        if not found:
            return "" if alarms else "All columns are as in the reference."
        first, rest = found[:MOST_NAMED], {name for name, _ in found} - {name for name, _ in found[:MOST_NAMED]}
        are = "is" if len(rest) == 1 else "are"
        more = [f"{counted(len(rest), 'more column')} {are} not as in the reference"] if rest else []
        return f"The data: {listed([*(finding.said for _, finding in first), *more])}."
