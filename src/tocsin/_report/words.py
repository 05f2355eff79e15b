"""Numbers as people read them, and the verdict on a stream."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from scipy import special

from tocsin._common.wording import counted, few, rounded
from tocsin._report.gathering import Gathered, apart, closeness

HARDLY, SELDOM = 0.01, 0.1
"""Probability of what is hardly chance, and of what chance does so seldom that this is said."""


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
    """Whether chance alone would do this: by the number of alarms, how close they are, and how rare the rarest is.

    'Hardly by chance' is said of at most HARDLY of the streams without a change, if the true run time is not below its
    interval: the least of the three probabilities is taken three times (Bonferroni), with the run time at the lower
    end. If it is so with the promised run time alone, that is said. 'Quiet' is said if nothing rang and the data look
    as the reference's do (`Seen.findings` has how often that is missed).
    """
    calibration, rows = seen.detector.calibration_, counted(seen.rows, "observation")
    unlike, known = _unlike(seen), calibration.mode != "fixed"
    expected = seen.tests / calibration.nominal if known else None
    more = "How often chance alone would do this is not known."
    if expected is not None:
        more = f"While nothing changes, chance alone gives {_alarms(expected)} in as many observations"
    if not seen.alarms:
        if expected is not None:
            more += f", and none at all with a probability of {chance(math.exp(-expected))}."
        quiet = f"No alarm in {rows}, but {unlike}." if unlike else f"Quiet: no alarm in {rows}."
        return Verdict("unsure" if unlike else "quiet", quiet, more, expected)
    rang = f"It rang {times(seen.alarms)} in {rows}"
    besides = f" Besides, {unlike}." if unlike else ""
    if expected is None:
        return Verdict("rang", f"{rang}.", more + besides, None)
    low = max((calibration.interval() or (calibration.nominal,))[0], 1.0)
    promised, at_worst = (Chances.of(seen, ert) for ert in (calibration.nominal, low))
    more += f". {_reasons(seen, low, at_worst)}{besides}"
    if at_worst.together < HARDLY:
        return Verdict("rang", f"{rang}: hardly by chance.", more, expected)
    said = ", which chance alone can explain"
    if promised.together < HARDLY:
        said = f": hardly by chance if the true run time is {count(calibration.nominal)}, but it may be shorter"
    elif at_worst.together < SELDOM:
        said = f": chance alone does as much in at most {chance(at_worst.together)} of such streams"
    return Verdict("unsure", f"{rang}{said}.", more, expected)


class Chances(NamedTuple):
    """Probabilities, while nothing changes, of as many alarms, of as many close ones, and of any that is as rare."""

    many: float
    close: float
    rare: float

    @classmethod
    def of(cls, seen: Gathered, ert: float) -> Chances:
        """With this expected run time; rarities are off as it is."""
        calibration = seen.detector.calibration_
        many = float(special.bdtrc(seen.alarms - 1, seen.tests, 1 / ert))
        close = 1.0
        if seen.close:
            # Run lengths are geometric.
            short = -math.expm1(closeness(calibration.ert) * math.log1p(-min(1 / ert, 0.999)))
            close = float(special.bdtrc(seen.close - 1, seen.alarms - 1, short))
        rarity = seen.rarest * ert / calibration.nominal
        return cls(many, close, min(seen.tests / rarity, 1.0) if rarity > 0 else 1.0)

    @property
    def together(self) -> float:
        """Of anything as unlikely as the least likely of the three, at most."""
        return min(len(self) * min(self), 1.0)


def _unlike(seen: Gathered) -> str:
    """How many columns are not as in the reference; nothing if all are."""
    columns = seen.quality.columns.values()
    found = sum(bool(column.findings()) for column in columns)
    are = "is" if found == 1 else "are"
    return f"{found:,} of {counted(len(columns), 'column')} {are} not as in the reference (see Data quality)" * bool(
        found
    )


def _reasons(seen: Gathered, low: float, chances: Chances) -> str:
    """What the verdict rests on."""
    calibration = seen.detector.calibration_
    strongest = ""
    parts = [f"gives {_or_more(seen.alarms)} with a probability of {chance(chances.many)}"]
    if chances.close < SELDOM:
        near = counted(math.floor(apart(seen.detector)), "observation")
        parts.append(f"{seen.close:,} within {near} of the one before with {chance(chances.close)}")
    if seen.rarest > 0:
        strongest = (
            f"The strongest evidence, at observation {seen.rarest_row:,}, comes by chance once in "
            f"{rounded(seen.rarest)} observations. "
        )
        parts.append(f"evidence as strong as that with {chance(chances.rare)}")
    worst = f"With a true run time of {rounded(low)}, the lower end of its interval, chance" * (
        low < calibration.nominal
    )
    return f"{strongest}{worst or 'Chance'} alone {', '.join(parts[:-1])}{' and ' * (len(parts) > 1)}{parts[-1]}."


def _alarms(number: float) -> str:
    shown = few(number)
    return f"{shown} alarm{'' if shown == '1' else 's'} on average"


def _or_more(number: int) -> str:
    return "at least one" if number == 1 else f"{number:,} or more"
