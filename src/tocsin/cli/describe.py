"""A detector in words, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rich.table import Table

from tocsin.detector import Detector
from tocsin.outcomes import Outcome
from tocsin.statistics.base import Channel


def table(rows: Iterable[tuple[str, str]]) -> Table:
    """Labels and what they stand for."""
    grid = Table.grid(padding=(0, 2), pad_edge=True)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    for label, text in rows:
        grid.add_row(label, text)
    return grid


def count(number: float) -> str:
    """
    >>> count(12345.0)
    '12,345'
    """
    return f"{number:,.10g}"


def promise(detector: Detector) -> str:
    """What the detector promises while nothing changes."""
    calibration = detector.calibration_
    ert = count(calibration.ert)
    if calibration.mode == "fixed":
        return (
            f"none: one threshold for every test, by which a single test rings once in {ert}. Tests depend on each other, "
            "so false alarms are rarer than that, and not at a constant rate"
        )
    cold = "" if detector.start == "warm" else f", from observation {detector.windows_[-1]} of a run on (a cold start)"
    return f"when nothing changes, one false alarm in {ert} observations on average, at a constant rate{cold}"


def counted(number: int, thing: str) -> str:
    """
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def listed(items: Iterable[object]) -> str:
    """
    >>> listed([8, 25, 100])
    '8, 25 and 100'
    """
    words = [str(item) for item in items]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def windows(detector: Detector) -> str:
    """The windows in use."""
    return f"the latest {listed(detector.windows_)} observations"


def channels(detector: Detector) -> str:
    """How many channels, and what they are."""
    parts = []
    for statistic in dict.fromkeys(channel.statistic for channel in detector.channels_):
        own = [channel for channel in detector.channels_ if channel.statistic == statistic]
        widths = sorted({channel.width for channel in own if channel.width is not None})
        at = f", at kernel width{'s' * (len(widths) > 1)} {listed(f'{width:.4g}' for width in widths)}" if widths else ""
        parts.append(f"{statistic} over each window{at}" if len(detector.windows_) > 1 else f"{statistic}{at}")
    total = len(detector.channels_)
    return f"{total}: {'; '.join(parts)}"


def precision(detector: Detector) -> str:
    """How well the thresholds are known."""
    calibration = detector.calibration_
    return f"Monte Carlo error of the false alarm rate {calibration.error:.1%} (one standard deviation)"


def method(detector: Detector) -> str:
    """How the thresholds were made."""
    calibration = detector.calibration_
    if calibration.references == "bootstrap":
        against = f"each against one of {calibration.copies:,} bootstrap references"
    else:
        against = "each against the reference rows that it leaves out (split references)"
    tests = f"{calibration.tests:,} test{'s' * (calibration.tests > 1)}"
    return (
        f"'{calibration.mode}': {calibration.paths:,} simulated streams of {tests}, {against}; "
        f"{calibration.seconds:.1f} s"
    )


def thresholds(detector: Detector) -> str:
    """The first threshold, a few, and the last."""
    values = detector.thresholds_
    # A warm detector has made test 0 before the first observation; a cold one makes it with the last of a full window.
    skipped, first = (1, 1) if detector.start == "warm" else (0, detector.windows_[-1])
    last = len(values) - 1
    steps = [step * 10**power for power in range(math.ceil(math.log10(last + 1)) + 1) for step in (1, 2, 5)]
    some = sorted({skipped, *(step for step in steps if skipped < step < last)} - {last})
    shown = [f"{values[i]:.4g} at observation {i - skipped + first}" for i in some]
    return ", ".join([*shown, f"{values[last]:.4g} from {max(last - skipped, 0) + first} on"])


def place(detector: Detector, run: int) -> str:
    """Where in the stream the detector is."""
    alarm = detector.alarm_
    state = "quiet so far" if alarm is None else f"rang at observation {alarm.time:,} ({alarm.channel})"
    return f"run {run + 1}, {detector.time_:,} observations into it, {state}"


def facts(detector: Detector, rows: int, columns: int) -> dict[str, Any]:
    """What is known of a detector, for machines."""
    calibration = detector.calibration_
    return {
        "ert": calibration.ert,
        "calibration": calibration.mode,
        "start": detector.start,
        "windows": list(detector.windows_),
        "channels": [channel_facts(channel) for channel in detector.channels_],
        "reference": {"rows": rows, "columns": columns, "compared": calibration.compared},
        "thresholds": detector.thresholds_.tolist(),
        "monte_carlo_error": calibration.error,
        "paths": calibration.paths,
        "tests": calibration.tests,
        "alarms": calibration.alarms,
        "references": calibration.references,
        "copies": calibration.copies,
        "seconds": calibration.seconds,
        "seed": detector.seed_,
    }


def channel_facts(channel: Channel | None) -> dict[str, Any] | None:
    """A channel, for machines."""
    if channel is None:
        return None
    return {"statistic": channel.statistic, "window": channel.window, "width": channel.width}


def alarm_facts(outcome: Outcome) -> dict[str, Any]:
    """An alarm, for machines."""
    return {
        "run_length": outcome.time,
        "statistic": outcome.statistic,
        "threshold": outcome.threshold,
        "channel": channel_facts(outcome.channel),
    }
