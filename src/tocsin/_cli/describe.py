"""A detector in words, and as JSON."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from tocsin._calibration.rehearsal import Rehearsal
from tocsin._common.wording import called, counted, listed
from tocsin._data.intake import Tabular
from tocsin._data.tables import OTHERS, Column
from tocsin._detector.detector import Detector
from tocsin._explain.context_words import given_lines
from tocsin._explain.result import Explanation
from tocsin._power.words import in_short
from tocsin._report import describing
from tocsin._report.describing import (
    MOST_CHANGED,
    causes,
    changed,
    channels,
    count,
    method,
    promise,
    rehearsal,
    sampling,
    start,
    thresholds,
    windows,
)
from tocsin._state.outcomes import Outcome
from tocsin._statistics.base import Channel

__all__ = [
    "alarm_facts",
    "causes",
    "changed",
    "channel_facts",
    "channels",
    "columns",
    "count",
    "facts",
    "finite",
    "left",
    "listed",
    "method",
    "place",
    "power",
    "precision",
    "print_table",
    "promise",
    "rehearsal",
    "sampling",
    "start",
    "thresholds",
    "windows",
]

MOST_NAMES = 12
"""Names of columns shown."""


def print_table(out: Console, rows: Sequence[tuple[str, str]]) -> None:
    """Labels, and what they stand for."""
    margin = max(len(label) for label, _ in rows) + 4
    for label, text in rows:
        lines = textwrap.wrap(text, max(out.width - margin, 20), break_long_words=False, break_on_hyphens=False)
        out.print(
            Text(f"  {label:<{margin - 2}}", "bold"), Text(f"\n{' ' * margin}".join(lines)), sep="", soft_wrap=True
        )


def precision(detector: Detector) -> str:
    """How well the thresholds are known."""
    return describing.precision(detector, "--error")


def place(detector: Detector, run: int) -> str:
    """Where in the stream the detector is."""
    alarm = detector.alarm
    state = "quiet so far" if alarm is None else f"rang at observation {alarm.time:,} ({alarm.channel})"
    return f"run {run + 1}, {counted(detector.time, 'observation')} into it, {state}"


def columns(detector: Detector) -> str:
    """The columns that are watched, each with its kind where that is known."""
    intake = detector.intake_
    names = list(intake.names)
    if isinstance(intake, Tabular):
        names = [f"{column.name} ({_kind(column)})" for column in intake.columns.columns]
    left_out = [name for name in intake.left_out if name != OTHERS] if isinstance(intake, Tabular) else []
    shown = listed(names if len(names) <= MOST_NAMES else [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES} more"])
    return f"{shown}; without {listed(left_out)}" if left_out else shown


def given(detector: Detector) -> list[tuple[str, str]]:
    """What the context explains of each column, where there is one."""
    return [("Given" if k == 0 else "", line) for k, line in enumerate(given_lines(detector.intake_))]


def left(explanation: Explanation) -> str:
    """Which columns have left all that the reference has; nothing if none has."""
    names = [called(name) for name in explanation.beyond]
    if not names:
        return ""
    more = len(names) - MOST_CHANGED
    shown = listed([*names[:MOST_CHANGED], f"{more:,} more"] if more > 0 else names)
    return f"{shown} {'has' if len(names) == 1 else 'have'} left all that the reference has."


def _kind(column: Column) -> str:
    return f"{column.kind}, {column.missing:.0%} missing" if column.missing else column.kind


def power(detector: Detector) -> Sequence[str]:
    """What it can see, and what it cannot, in a few sentences; nothing where that was not simulated."""
    return [] if detector.power_ is None else in_short(detector.power_)


def facts(detector: Detector) -> dict[str, object]:
    """What is known of a detector, for machines."""
    rows, columns = len(detector.reference_), len(detector.intake_.names)
    calibration = detector.calibration_
    return {
        "ert": calibration.ert,
        "calibration": calibration.mode,
        "start": detector.start if calibration.rehearsal is None else "cold",
        "windows": list(detector.windows_),
        "channels": [channel_facts(channel) for channel in detector.channels_],
        "reference": {"rows": rows, "columns": columns, "compared": calibration.compared},
        "names": list(detector.intake_.names),
        "thresholds": detector.thresholds_.tolist(),
        "nominal_ert": calibration.nominal,
        "guarantee": calibration.guarantee,
        "interval": finite(calibration.interval()),
        "errors": None if calibration.errors is None else finite(asdict(calibration.errors)),
        "points_to_halve": calibration.points_to_halve,
        "monte_carlo_error": calibration.error,
        "simulated_ert": calibration.simulated,
        "block": calibration.block,
        "guard": calibration.guard,
        "dependence": calibration.dependence,
        "paths": calibration.paths,
        "tests": calibration.tests,
        "alarms": calibration.alarms,
        "references": calibration.references,
        "rehearsal": _rehearsal_facts(calibration.rehearsal),
        "copies": calibration.copies,
        "seconds": calibration.seconds,
        "power": None if detector.power_ is None else detector.power_.to_dict(),
        "seed": detector.seed_,
    }


def _rehearsal_facts(found: Rehearsal | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {**asdict(found), "wandering": list(found.wandering), "text": str(found)}


def finite(value: object) -> object:
    """The same with None for what is not finite, which JSON has no word for."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def channel_facts(channel: Channel | None) -> dict[str, object] | None:
    """A channel, for machines."""
    if channel is None:
        return None
    return asdict(channel)


def alarm_facts(outcome: Outcome) -> dict[str, object]:
    """An alarm, for machines."""
    return {
        "run_length": outcome.time,
        "statistic": outcome.statistic,
        "threshold": outcome.threshold,
        "rarity": finite(outcome.rarity),
        "channel": channel_facts(outcome.channel),
        **({"learning": True} if outcome.learning else {}),
    }
