"""What a page tells, for machines."""

from __future__ import annotations

import math

from tocsin._report.gathering import Gathered, Series
from tocsin._report.quality import Seen
from tocsin._report.verdict import verdict


def seen_facts(seen: Gathered) -> dict[str, object]:
    """The verdict of the page, its series of alarms with those that are explained, and its columns."""
    said = verdict(seen)
    return {
        "verdict": {"level": said.level, "sentence": said.sentence, "next": said.next, "grounds": said.more},
        "rows": seen.rows,
        "alarms": seen.alarms,
        "expected_false_alarms": said.expected,
        "series": [_series(series) for series in seen.series],
        "columns": [_column(column) for column in seen.quality.columns.values()],
    }


def _series(series: Series) -> dict[str, object]:
    return {
        "first": series.first,
        "last": series.last,
        "when": list(series.when),
        "alarms": series.count,
        "rarity": series.rarity if math.isfinite(series.rarity) else None,
        "explained": [{"row": alarm.row, **alarm.explanation.to_dict()} for alarm in series.alarms],
    }


def _column(column: Seen) -> dict[str, object]:
    known = column.known
    return {
        "name": known.name,
        "kind": known.kind,
        "missing": column.missing,
        "missing_in_reference": known.missing.part,
        "new": column.new,
        "first_new": column.first_new or None,
        "longest_still": column.longest._asdict() if column.longest.size else None,
        "notes": column.notes(),
    }
