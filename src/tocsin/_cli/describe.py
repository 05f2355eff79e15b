"""A detector in words, and as JSON."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from tocsin._calibration.dependence import SIGNIFICANT
from tocsin._calibration.result import LEVEL
from tocsin._common.wording import counted, rounded
from tocsin._data.intake import Tabular
from tocsin._data.tables import OTHERS, Column
from tocsin._detector.detector import Detector
from tocsin._explain.result import Explanation
from tocsin._state.outcomes import Outcome
from tocsin._statistics.base import Channel

MOST_NAMES, MOST_CHANGED = 12, 3
"""Names of columns shown, and of those that changed."""


def print_table(out: Console, rows: Sequence[tuple[str, str]]) -> None:
    """Labels, and what they stand for."""
    margin = max(len(label) for label, _ in rows) + 4
    for label, text in rows:
        lines = textwrap.wrap(text, max(out.width - margin, 20), break_long_words=False, break_on_hyphens=False)
        out.print(
            Text(f"  {label:<{margin - 2}}", "bold"), Text(f"\n{' ' * margin}".join(lines)), sep="", soft_wrap=True
        )


def count(number: float) -> str:
    """A number with commas between thousands.

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
            f"none: a single test rings once in {ert}, but tests depend on each other, so false alarms are rarer than "
            "that, and not at a constant rate"
        )
    cold = "" if detector.start == "warm" else f", from observation {detector.windows_[-1]} of a run on (a cold start)"
    average = "on average over reference sets"
    if calibration.guarantee is not None:
        average = f"or more, with a probability of {calibration.guarantee:.3g} over reference sets"
    return f"when nothing changes, one false alarm in {ert} observations {average}, at a constant rate{cold}"


def listed(items: Iterable[object]) -> str:
    """Items in a sentence.

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
        at = f" at kernel width {listed(f'{width:.4g}' for width in widths)}" if widths else ""
        parts.append(f"{statistic}{at}")
    return f"{len(detector.channels_)}: {'; '.join(parts)}{', over these windows' * (len(detector.windows_) > 1)}"


def precision(detector: Detector) -> str:
    """How well the thresholds are known."""
    calibration = detector.calibration_
    interval = calibration.interval()
    if interval is None or calibration.errors is None:
        return (
            f"Monte Carlo error of the false alarm rate {calibration.error:.1%} (one standard deviation); what the "
            "reference lacks in size comes on top"
        )
    low, high = map(rounded, interval)
    text = f"ERT {run_time(calibration.nominal, calibration.ert)}, {LEVEL:.0%} interval {low}-{high}"
    more = calibration.points_to_halve
    if more is not None:
        return f"{text}; {rounded(more)} more reference rows would halve it"
    if calibration.errors.tail > calibration.errors.simulation:
        return f"{text}; it is wide because so rare an alarm is extrapolated"
    return f"{text}; a smaller --error would narrow it"


def causes(detector: Detector) -> str | None:
    """What makes the interval as wide as it is."""
    errors = detector.calibration_.errors
    if errors is None:
        return None
    parts = [
        ("the law behind a finite reference", errors.law),
        ("the gap between reference and stream", errors.reference),
        ("the simulation", errors.simulation),
        ("the extrapolation", errors.tail),
    ]
    shown = [f"{error:.1%} {what}" for what, error in parts if error > 0]
    return f"standard errors: {', '.join(shown)}; together {errors.total:.1%}"


def sampling(detector: Detector) -> str:
    """How null streams were drawn, and whether the reference's order matters."""
    calibration = detector.calibration_
    drawn = "independent rows"
    if calibration.block > 1:
        drawn = f"blocks of {calibration.block:,} rows (guard {calibration.guard:,})"
    if calibration.dependence is None:
        return f"{drawn}; whether rows depend on each other was not tested"
    found = "rows depend on those before them" if calibration.dependence <= SIGNIFICANT else "no dependence found"
    return f"{drawn}; {found} (p = {calibration.dependence:.2g})"


def run_time(nominal: float, ert: float) -> str:
    """What thresholds are set for: the promise to the letter, or, with a guarantee, about how much more."""
    return count(ert) if nominal == ert else rounded(nominal)


def method(detector: Detector) -> str:
    """How the thresholds were made."""
    calibration = detector.calibration_
    against = {
        "bootstrap": f"each against one of {calibration.copies:,} bootstrap references",
        "direct": "each against the reference itself, whose values repeat",
        "split": "each against the reference rows that it leaves out (split references)",
    }[calibration.references]
    tests = counted(calibration.tests, "test")
    extrapolated = ""
    if calibration.nominal > 2 * calibration.simulated:
        extrapolated = f"; extrapolated from alarms once in {rounded(calibration.simulated)} to rarer ones"
    return (
        f"'{calibration.mode}': {calibration.paths:,} simulated streams of {tests}, {against}; "
        f"{calibration.seconds:.1f} s{extrapolated}"
    )


def thresholds(detector: Detector) -> str:
    """The first threshold, a few, and the last."""
    values = detector.thresholds_
    # Test 0 is made before the first observation by a warm detector, and with the last of a full window by a cold one.
    zeroth = 0 if detector.start == "warm" else detector.windows_[-1]
    first, settled = max(zeroth, 1), zeroth + len(values) - 1
    steps = (step * 10**power for power in range(len(str(len(values)))) for step in (1, 2, 5))
    some = sorted({first} | {zeroth + step for step in steps})
    shown = [f"{time}: {values[time - zeroth]:.4g}" for time in some if time < settled]
    return f"at observation {', '.join(shown)}; from {settled} on: {values[-1]:.4g}" if shown else f"{values[-1]:.4g}"


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
    left_out = [name for name in intake.columns.ignored if name != OTHERS] if isinstance(intake, Tabular) else []
    shown = listed(names if len(names) <= MOST_NAMES else [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES} more"])
    return f"{shown}; without {listed(left_out)}" if left_out else shown


def changed(explanation: Explanation) -> str:
    """The columns that are said to have changed, and how; nothing if none is."""
    names = [f"{column.name} ({column.how})" if column.how else column.name for column in explanation.changed]
    more = len(names) - MOST_CHANGED
    return listed([*names[:MOST_CHANGED], f"{more:,} more"] if more > 0 else names) if names else ""


def _kind(column: Column) -> str:
    return f"{column.kind}, {column.missing:.0%} missing" if column.missing else column.kind


def facts(detector: Detector) -> dict[str, object]:
    """What is known of a detector, for machines."""
    rows, columns = len(detector.reference_), len(detector.intake_.names)
    calibration = detector.calibration_
    return {
        "ert": calibration.ert,
        "calibration": calibration.mode,
        "start": detector.start,
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
        "copies": calibration.copies,
        "seconds": calibration.seconds,
        "seed": detector.seed_,
    }


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
    return {"statistic": channel.statistic, "window": channel.window, "width": channel.width}


def alarm_facts(outcome: Outcome) -> dict[str, object]:
    """An alarm, for machines."""
    return {
        "run_length": outcome.time,
        "statistic": outcome.statistic,
        "threshold": outcome.threshold,
        "rarity": finite(outcome.rarity),
        "channel": channel_facts(outcome.channel),
    }
