"""A detector in words."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin._calibration.dependence import FEWEST_TOLD, SIGNIFICANT
from tocsin._calibration.result import LEVEL
from tocsin._common.wording import called, counted, listed, rounded, share
from tocsin._detector.detector import Detector
from tocsin._explain.result import Explanation, Moved
from tocsin._explain.words import NEWLY_MISSING
from tocsin._report import rehearsed
from tocsin._statistics.view_model import NEWS

MOST_CHANGED = 3
"""Columns that changed which a sentence names."""


def facts(detector: Detector) -> Iterator[tuple[str, str]]:
    """What a page says of the calibration."""
    rows, compared = len(detector.reference_), detector.calibration_.compared
    reference = f"{counted(rows, 'row')} of {counted(len(detector.intake_.names), 'column')}"
    if compared < rows:
        reference += f", {compared:,} of which new observations are compared with"
    yield "Reference", reference
    yield "Windows", windows(detector)
    yield "Channels", channels(detector)
    yield "Thresholds", thresholds(detector)
    yield "Calibration", method(detector)
    yield "Sampling", sampling(detector)
    yield "Start", start(detector)
    yield "Seed", str(detector.seed_)


def promise(detector: Detector) -> str:
    """What the detector promises while nothing changes."""
    calibration = detector.calibration_
    ert = count(calibration.ert)
    if calibration.mode == "fixed":
        return (
            f"none: a single test rings once in {ert}, but tests depend on each other, so false alarms are rarer than "
            "that, and not at a constant rate"
        )
    average = "on average over reference sets"
    if calibration.guarantee is not None:
        average = f"or more, with a probability of {calibration.guarantee:.3g} over reference sets"
    if calibration.rehearsal is not None:
        return f"when nothing changes, one false alarm in {ert} observations {average}; {rehearsed.silence(detector)}"
    cold = "" if detector.start == "warm" else f", from observation {detector.windows_[-1]} of a run on (a cold start)"
    return f"when nothing changes, one false alarm in {ert} observations {average}, at a constant rate{cold}"


def precision(detector: Detector, error: str = "error") -> str:
    """How well the thresholds are known.

    error: what the option is called that says how long to simulate.
    """
    calibration = detector.calibration_
    interval = calibration.interval()
    if interval is None or calibration.errors is None:
        return (
            f"Monte Carlo error of the false alarm rate {calibration.error:.1%} (one standard deviation); what the "
            "reference lacks in size comes on top"
        )
    low, high = map(rounded, interval)
    text = f"ERT {run_time(calibration.nominal, calibration.ert)}, {LEVEL:.0%} interval {low}-{high}"
    found = calibration.rehearsal
    if found is not None and found.recordings is not None:
        enough = found.recordings_to_halve
        would = "more recordings would narrow it" if enough is None else f"{enough:,} recordings would halve it"
        return f"{found.recordings:,} recordings: {text}; {would}"
    more = calibration.points_to_halve
    if more is not None:
        return f"{text}; {rounded(more)} more reference rows would halve it"
    if calibration.errors.tail > calibration.errors.simulation:
        return f"{text}; it is wide because so rare an alarm is extrapolated"
    if calibration.rehearsal is not None:
        return f"{text}; a longer reference would narrow it"
    return f"{text}; a smaller {error} would narrow it"


def causes(detector: Detector) -> str | None:
    """What makes the interval as wide as it is."""
    calibration = detector.calibration_
    errors = calibration.errors
    if errors is None:
        return None
    law, reference = "the law behind a finite reference", "the gap between reference and stream"
    if calibration.rehearsal is not None:
        law, reference = "how much simulated references differ from each other", "what simulation did not foresee"
    parts = [
        (law, errors.law),
        (reference, errors.reference),
        ("the simulation", errors.simulation),
        ("the extrapolation", errors.tail),
    ]
    shown = [f"{share(error)} from {what}" for what, error in parts if error > 0]
    return f"standard errors: {', '.join(shown)}; together {share(errors.total)}"


def windows(detector: Detector) -> str:
    """The windows in use."""
    return f"the latest {listed(detector.windows_)} observations"


def channels(detector: Detector) -> str:
    """How many channels, and what they are."""
    if detector.calibration_.rehearsal is not None:
        return rehearsed.channels(detector)
    parts, channels = [], [channel for channel in detector.channels_ if channel.statistic != NEWS]
    for statistic in dict.fromkeys(channel.statistic for channel in channels):
        own = [channel for channel in channels if channel.statistic == statistic]
        widths = sorted({channel.width for channel in own if channel.width is not None})
        at = f" at kernel width {listed(f'{width:.4g}' for width in widths)}" if widths else ""
        parts.append(f"{statistic}{at}")
    over = ", over these windows" * (len(detector.windows_) > 1)
    return f"{len(channels)}: {'; '.join(parts)}{over}{rehearsed.and_news(detector)}"


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


def method(detector: Detector) -> str:
    """How the thresholds were made."""
    calibration = detector.calibration_
    against = {
        "bootstrap": f"each against one of {calibration.copies:,} bootstrap references",
        "direct": "each against the reference itself, whose values repeat",
        "split": "each against the reference rows that it leaves out (split references)",
        "worlds": "each after a reference of its own, simulated too, that was rehearsed on as the real one was",
    }[calibration.references]
    tests = counted(calibration.tests, "test")
    extrapolated = ""
    if calibration.nominal > 2 * calibration.simulated:
        extrapolated = f"; extrapolated from alarms once in {rounded(calibration.simulated)} to rarer ones"
    return (
        f"'{calibration.mode}': {calibration.paths:,} simulated streams of {tests}, {against}; "
        f"{calibration.seconds:.1f} s{extrapolated}"
    )


def sampling(detector: Detector) -> str:
    """How null streams were drawn, and whether the reference's order matters."""
    calibration = detector.calibration_
    drawn = "independent rows"
    if calibration.rehearsal is not None:
        drawn = rehearsed.DRAWN
    elif calibration.block > 1:
        drawn = f"blocks of {calibration.block:,} rows (guard {calibration.guard:,})"
    if calibration.dependence is None:
        return f"{drawn}; whether rows depend on each other was not tested"
    found = "no dependence found"
    if calibration.dependence <= SIGNIFICANT:
        found = "rows depend on those before them"
    elif calibration.rehearsal is not None:
        found = "too few rows to tell whether they depend on each other"
        if len(detector.reference_) >= FEWEST_TOLD:
            found = "rows may depend on those before them"
    return f"{drawn}; {found} (p = {calibration.dependence:.2g})"


def rehearsal(detector: Detector) -> Iterator[tuple[str, str]]:
    """What rehearsing on the reference showed, and what it says cannot be promised; nothing where there was none."""
    found = detector.calibration_.rehearsal
    if found is not None:
        if found.recordings is not None:
            yield "Baseline", rehearsed.baseline(detector)
        text = str(found).removeprefix("rehearsed ")
        yield "Rehearsal", f"{text}; {found.allowance}" if found.allowance else text
        if found.wanders:
            yield "Wandering", found.wanders


def start(detector: Detector) -> str:
    """What the first observations of a run meet."""
    return detector.start if detector.calibration_.rehearsal is None else rehearsed.silence(detector)


def _moved(column: Moved) -> str:
    if column.name == NEWLY_MISSING:
        return "values missing where the reference lacks none"
    return f"{called(column.name)}{f' ({column.how})' if column.how else ''}"


def changed(explanation: Explanation) -> str:
    """The columns that are said to have changed, and how; nothing if none is."""
    names = [_moved(column) for column in explanation.changed]
    more = len(names) - MOST_CHANGED
    return listed([*names[:MOST_CHANGED], f"{more:,} more"] if more > 0 else names) if names else ""


def run_time(nominal: float, ert: float) -> str:
    """What thresholds are set for: the promise to the letter, or, with a guarantee, about how much more."""
    return count(ert) if nominal == ert else rounded(nominal)


def count(number: float) -> str:
    """A number with commas between thousands.

    >>> count(12345.0)
    '12,345'
    """
    return f"{number:,.10g}"
