"""Numbers as people read them, and the verdict on a stream."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy import special

from tocsin._common.wording import counted, few, rounded
from tocsin._report.gathering import Gathered, closeness

HARDLY = 0.01
"""Probability of what is hardly chance."""


def count(number: float) -> str:
    """With commas between thousands; four digits of a number that is none of things counted.

    >>> count(12345.0), count(0.25)
    ('12,345', '0.25')
    """
    return f"{number:,.0f}" if number >= 1000 else f"{number:,.4g}"


def times(number: int) -> str:
    """How often.

    >>> times(1), times(2), times(12)
    ('once', 'twice', '12 times')
    """
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def share(part: float) -> str:
    """In percent, with a digit more if it is small.

    >>> share(0.5), share(0.012), share(0.00001), share(0.0)
    ('50%', '1.2%', '<0.1%', '0%')
    """
    if 0 < part < 0.001:
        return "<0.1%"
    return f"{part:.1%}" if 0 < part < 0.1 else f"{part:.0%}"


def chance(probability: float) -> str:
    """A probability in words.

    >>> chance(0.25), chance(0.0004), chance(1e-12)
    ('25%', 'one in 2,500', 'less than one in a million')
    """
    if probability < 1e-6:
        return "less than one in a million"
    return f"one in {rounded(1 / probability)}" if probability < 0.01 else f"{probability:.0%}"


@dataclass(frozen=True)
class Verdict:
    """What a stream says.

    sentence: all of it, if nothing else is read.  more: what it rests on.
    expected: alarms that chance alone would give on average; None if nothing is promised.
    """

    level: Literal["quiet", "unsure", "rang"]
    sentence: str
    more: str
    expected: float | None


def verdict(seen: Gathered) -> Verdict:
    """Whether chance alone would do this: by the number of alarms, how close they are, and how rare the rarest is."""
    calibration, rows = seen.detector.calibration_, counted(seen.rows, "row")
    if calibration.mode == "fixed":
        sentence = f"It rang {times(seen.alarms)} in {rows}." if seen.alarms else f"Quiet: no alarm in {rows}."
        return Verdict(
            "rang" if seen.alarms else "quiet", sentence, "How often chance alone would do this is not known.", None
        )
    expected = seen.tests / calibration.nominal
    alone = f"While nothing changes, chance alone gives {_alarms(expected)} in as many rows"
    low = max((calibration.interval() or (calibration.nominal,))[0], 1.0)
    if not seen.alarms:
        more = f"{alone}, and none at all with a probability of {chance(math.exp(-expected))}."
        return Verdict("quiet", f"Quiet: no alarm in {rows}.", more, expected)
    as_many, at_worst = (
        float(special.bdtrc(seen.alarms - 1, seen.tests, 1 / ert)) for ert in (calibration.nominal, low)
    )
    as_rare = min(seen.tests / seen.rarest, 1.0) if seen.rarest > 0 else 1.0
    as_close = _closeness(seen, low)
    hardly = 3 * min(at_worst, as_rare, as_close) < HARDLY
    more = f"{alone}, and {_or_more(seen.alarms)} with a probability of {chance(as_many)}."
    if as_close < HARDLY:
        more += (
            f" {seen.close:,} came within {math.floor(closeness(calibration.ert)):,} rows of the one before, which "
            f"chance alone does with a probability of {chance(as_close)}."
        )
    if seen.rarest > 0:
        more += (
            f" The strongest evidence, at row {seen.rarest_row:,}, comes by chance once in {rounded(seen.rarest)} rows."
        )
    rang = f"It rang {times(seen.alarms)} in {rows}"
    sentence = f"{rang}: hardly by chance." if hardly else f"{rang}, which chance alone can explain."
    return Verdict("rang" if hardly else "unsure", sentence, more, expected)


def _closeness(seen: Gathered, ert: float) -> float:
    """Probability that as many alarms follow closely, if run lengths are geometric."""
    if not seen.close:
        return 1.0
    short = -math.expm1(closeness(seen.detector.calibration_.ert) * math.log1p(-min(1 / ert, 0.999)))
    return float(special.bdtrc(seen.close - 1, seen.alarms - 1, short))


def _alarms(number: float) -> str:
    shown = few(number)
    return f"{shown} alarm{'' if shown == '1' else 's'} on average"


def _or_more(number: int) -> str:
    return "at least one" if number == 1 else f"{number:,} or more"
