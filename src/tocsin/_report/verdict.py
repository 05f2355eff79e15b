"""The verdict on a stream: whether chance alone can explain it, whether its data are as they were, and what to do."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from scipy import special

from tocsin._common.wording import called, counted, few, listed, rounded
from tocsin._explain.context_words import unseen_told
from tocsin._report.describing import changed
from tocsin._report.gathering import Gathered, Series, apart, closeness
from tocsin._report.quality import BEYOND
from tocsin._report.words import chance, count, times

MOST_NAMED, MOST_CHECKED = 1, 3
"""Findings that the first sentence of a verdict names, and columns that it asks to check."""

HARDLY, SELDOM = 0.01, 0.1
"""Probability of what is hardly chance, and of what chance does so seldom that this is said."""


@dataclass(frozen=True)
class Verdict:
    """What a stream says: at the top of the page, on the terminal and in JSON alike.

    sentence: all of it, if nothing else is read.  next: what to do now.  more: what it rests on.
    expected: alarms that chance alone would give on average; None if nothing is promised.
    """

    level: Literal["quiet", "unsure", "rang"]
    sentence: str
    next: str
    more: str
    expected: float | None


def verdict(seen: Gathered) -> Verdict:
    """Whether chance alone would do this: by the number of alarms, how close they are, and how rare the rarest is.

    'Hardly by chance' is said of at most HARDLY of the streams without a change, if the true run time is not below its
    interval: the least of the three probabilities is taken three times (Bonferroni), with the run time at the lower
    end. If it is so with the promised run time alone, that is said. 'Quiet' is said if nothing rang and the data look
    as the reference's do (`Seen.findings` has how often that is missed). Where chance can explain the alarms, but not
    what stands in the table of data quality or that a column left all that the reference has, that is said with it.
    """
    said = _verdict(seen)
    told = unseen_told(seen.unseen, seen.rows, intake=seen.detector.intake_)
    if told is None:
        return said
    if 2 * seen.unseen <= seen.rows:
        return replace(said, more=f"{said.more} {told}")
    level = "unsure" if said.level == "quiet" else said.level
    return replace(said, level=level, sentence=f"{told} {said.sentence}")


def _verdict(seen: Gathered) -> Verdict:
    """By what was judged."""
    calibration = seen.detector.calibration_
    expected = seen.tests / calibration.nominal if calibration.mode != "fixed" else None
    if not seen.tests:
        return _untested(seen, expected)
    more = "How often chance alone would do this is not known."
    if expected is not None:
        more = f"While nothing changes, chance alone gives {_alarms(expected)} in as many observations"
    if not seen.alarms:
        if expected is not None:
            more += f", and none at all with a probability of {chance(math.exp(-expected))}."
        return _without_alarms(seen, more, expected)
    rang, unlike = f"It rang {times(seen.alarms)} in {counted(seen.rows, 'observation')}", _unlike(seen)
    besides = f" Besides, {unlike}." if unlike else ""
    if expected is None:
        return Verdict("rang", f"{rang}.", f"{_look(seen)}{besides}", more, None)
    low = max((calibration.interval() or (calibration.nominal,))[0], 1.0)
    promised, at_worst = (Chances.of(seen, ert) for ert in (calibration.nominal, low))
    more += f". {_reasons(seen, low, at_worst)}"
    if at_worst.together < HARDLY:
        return Verdict("rang", f"{rang}: hardly by chance.", f"{_look(seen, sure=True)}{besides}", more, expected)
    if promised.together < HARDLY:
        said = f": hardly by chance if the true run time is {count(calibration.nominal)}, but it may be shorter"
    elif at_worst.together < SELDOM:
        said = f": chance alone does as much in at most {chance(at_worst.together)} of such streams"
    elif unlike:
        said, besides = f". Chance alone can explain that, but {unlike}", ""
    else:
        told = "If nothing is known to have happened then, go on watching: a change that stays rings again."
        sentence = f"{rang}, which chance alone can explain."
        return Verdict("unsure", sentence, f"{_look(seen)} {told}", more, expected)
    return Verdict("unsure", f"{rang}{said}.", f"{_look(seen)}{besides}{_repair(seen)}", more, expected)


def _untested(seen: Gathered, expected: float | None) -> Verdict:
    """Nothing was seen, or too little for a single test."""
    more = "Without a test there is neither an alarm nor a reason to think that all is well."
    if not seen.rows:
        told = "Check that the stream is the one that was meant, and that it has rows."
        return Verdict("unsure", "There was nothing to watch: the stream has no observations.", told, more, expected)
    unlike = _unlike(seen)
    besides = f" Besides, {unlike}." if unlike else ""
    first = seen.detector.windows_[-1]
    told = f"Watch a longer stream: tests begin once the widest window, of {first:,} observations, is full.{besides}"
    sentence = f"Nothing was tested: the stream ended after {counted(seen.rows, 'observation')}."
    return Verdict("unsure", sentence, told, more, expected)


def _without_alarms(seen: Gathered, more: str, expected: float | None) -> Verdict:
    """Quiet, if the data look as the reference's do."""
    unlike, rows = _unlike(seen), counted(seen.rows, "observation")
    if unlike:
        return Verdict("unsure", f"No alarm in {rows}, but {unlike}.", _repair(seen).strip(), more, expected)
    alike = ", and all columns are as in the reference" if seen.quality.columns else ""
    return Verdict("quiet", f"Quiet: no alarm in {rows}{alike}.", "There is nothing to do.", more, expected)


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


def _look(seen: Gathered, *, sure: bool = False) -> str:
    """Where to look first: at the alarm that says most, and at the columns that it names.

    sure: whether it was hardly by chance.
    """
    told = [series for series in seen.series if series.alarms]
    if not told:
        return "See the alarms below."
    why = max(told, key=Series.strength).alarms[0].explanation
    named = changed(why)
    where = f", in {named}" if named else ", in no single column" if len(why.columns) > 1 else ""
    first = "Look first at" if seen.alarms > 1 else "Look at"
    began = f"the change began {why.began.about}" if sure else f"if there was a change, it began {why.began.about}"
    return f"{first} the alarm at {why.where}: {began}{where}."


def _repair(seen: Gathered) -> str:
    """What to do about data that are not as they were."""
    noted = {column.known.name for column in seen.quality.columns.values() if column.findings()}
    names = list(dict.fromkeys(called(name) for _, name, _ in _found(seen) if name in noted))
    if not names:
        return ""
    more = len(names) - MOST_CHECKED
    names = [*names[:MOST_CHECKED], f"{more:,} more"] if more > 0 else names
    are, they = ("is", "it is") if len(names) == 1 else ("are", "they are")
    return (
        f" Check how {listed(names)} {are} measured and recorded (see Data quality); if {they} to stay so, fit again "
        "with such rows in the reference."
    )


def _found(seen: Gathered) -> list[tuple[int, str, str]]:
    """What is not as in the reference: its weight, the column, and a clause; the gravest first."""
    left = _left(seen)
    found = [
        (finding.weight, column.known.name, finding.said)
        for column in seen.quality.columns.values()
        for finding in column.findings()
        if finding.weight <= BEYOND or column.known.name not in left
    ]
    found += [(BEYOND, name, f"{called(name)} had left all that the reference has when it rang") for name in left]
    return sorted(found, key=lambda own: own[0])


def _unlike(seen: Gathered) -> str:
    """What is not as in the reference, in a clause; nothing if all is."""
    found = _found(seen)
    if not found:
        return ""
    shown = found[:MOST_NAMED]
    rest = len({name for _, name, _ in found} - {name for _, name, _ in shown})
    more = f"{counted(rest, 'more column')} {'is' if rest == 1 else 'are'} not as in the reference"
    return listed([*(said for *_, said in shown), *([more] if rest else [])])


def _left(seen: Gathered) -> list[str]:
    """Columns that an alarm found beyond all that the reference has, but for those whose levels move on there too."""
    rehearsal = seen.detector.calibration_.rehearsal
    wander = () if rehearsal is None else rehearsal.wandering
    explained = [alarm.explanation for series in seen.series for alarm in series.alarms]
    return list(dict.fromkeys(name for why in explained for name in why.beyond if name not in wander))


def _reasons(seen: Gathered, low: float, chances: Chances) -> str:
    """What the verdict rests on."""
    calibration = seen.detector.calibration_
    strongest = ""
    parts = [f"gives {_or_more(seen.alarms)} with a probability of {chance(chances.many)}"]
    if chances.close < SELDOM:
        near = counted(math.floor(apart(seen.detector)), "observation")
        parts.append(f"{seen.close:,} within {near} of the one before with {chance(chances.close)}")
    if seen.rarest > 0:
        when = f", {seen.rarest_when}" if seen.rarest_when else ""
        strongest = (
            f"The strongest evidence, at observation {seen.rarest_row:,}{when}, comes by chance once in "
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
