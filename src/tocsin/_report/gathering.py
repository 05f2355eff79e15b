"""What a detector sees in a stream, gathered in bounded memory while the stream is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._data.intake import Tabular
from tocsin._data.representations.batches import count_of, piece_of
from tocsin._data.tables import Table, Values
from tocsin._detector.base import promised
from tocsin._detector.detector import Detector
from tocsin._explain.beside import Beside
from tocsin._explain.judged import Judged
from tocsin._explain.result import Explanation
from tocsin._plots.envelope import Envelope
from tocsin._plots.samples import Bars, Histogram, compared, values_in
from tocsin._report.clock import Clock
from tocsin._report.contexts import Followed
from tocsin._report.quality import Quality
from tocsin._state.outcomes import Outcome, Outcomes
from tocsin._state.run import RECENT_WINDOWS
from tocsin._statistics.base import choose

MOST_BINS = 1 << 16
"""Bins of the path that a page holds, with the extremes of statistic and threshold in each: 1.4 MB as text."""

MOST_MARKS, MOST_SERIES = 10_000, 1000
"""Alarms whose rows are kept, and series of alarms."""

SERIES = 20
"""Alarms are of one series if each follows the one before within ert / SERIES rows. Without a change one run in so many
is as short."""

MOST_EXPLAINED, EXPLAINED_IN_SERIES = 20, 3
"""Series that are explained, the strongest ones, and alarms of each: a change that stays rings on and on, for the same
reason."""

CLOSE_UP = 2
"""Widest windows before an alarm that are shown row by row."""

MOST_COMPARED, MOST_REFERENCE = 4, 4000
"""Columns of an alarm that are compared with the reference, and rows of it that are enough for that."""


@dataclass(frozen=True, eq=False)
class Alarm:
    """An alarm in a stream, with all that can be said of it.

    row, number: its row in the stream, and which alarm it is, both from 1.
    statistic, threshold: of the rows up to this one.  seconds: when these came; NaN where that is not known.
    explanation: its times count rows of the stream, too.
    samples: of some columns, values in the reference and since the change began.
    followed: the column that changed, against what was expected of it; None where there is no context.
    """

    row: int
    number: int
    statistic: Float64Array
    threshold: Float64Array
    seconds: Float64Array
    explanation: Explanation
    samples: dict[str, Histogram | Bars]
    followed: Followed | None = None


@dataclass(eq=False)
class Series:
    """Alarms that follow each other closely.

    first, last: their rows.  when: what the data's own clock said at these.  rarity: of the rarest.
    alarms: those that are explained.
    """

    first: int
    last: int
    when: tuple[str | None, str | None] = (None, None)
    count: int = 0
    rarity: float = 1.0
    alarms: list[Alarm] = field(default_factory=list)

    def add(self, row: int, outcome: Outcome, when: str | None) -> None:
        """The next alarm."""
        self.when = self.when[0] if self.count else when, when
        self.last, self.count = row, self.count + 1
        self.rarity = max(self.rarity, outcome.rarity) if math.isfinite(outcome.rarity) else self.rarity

    def strength(self) -> float:
        """How much it says that something changed: log of how seldom chance alone does this."""
        return math.log(self.rarity) + (self.count - 1) * math.log(SERIES)


class Gathered:
    """All that a report tells of a stream.

    keep: columns that stand beside those that are watched.  texts: watched columns of texts.
    unseen: observations that were left out, since the reference lacks the like of their context.
    close: alarms that follow the one before closely.  series: the strongest ones, in order.
    """

    def __init__(self, detector: Detector, keep: Sequence[str] = (), texts: Sequence[str] = ()) -> None:
        if detector.alarm is not None:
            detector.reset()
        self.detector = detector
        self.rows = self.tests = self.alarms = self.close = self.unseen = 0
        self.rarest, self.rarest_row = 0.0, 0
        self.rarest_when: str | None = None
        self.statistic, self.threshold = Envelope(MOST_BINS), Envelope(MOST_BINS)
        self.clock, self.beside = Clock(MOST_BINS), Beside(keep, texts, most=RECENT_WINDOWS * detector.windows_[-1])
        self.marks: list[int] = []
        self.series: list[Series] = []
        self.quality = Quality(detector)
        self._latest_series: Series | None = None
        self._latest = np.empty((3, 0))
        self._judged = Judged(RECENT_WINDOWS * detector.windows_[-1])
        self._reference: dict[str, Values | None] = {}

    def add(self, rows: object, aside: Table | None = None) -> None:
        """Watch the rows that follow, and what stands beside them; a new run begins after each alarm."""
        intake = self.detector.intake_
        if isinstance(intake, Tabular) and isinstance(rows, Table):
            intake.must_match(rows)
            rows = intake.held(rows)
        position, count = 0, count_of(rows)
        while position < count:
            outcomes = self.detector.update_until_alarm(piece_of(rows, position, count))
            self._saw(outcomes, None if aside is None else aside[position : position + len(outcomes)])
            position += len(outcomes)
            if self.detector.alarm is not None:
                self._rang(self.detector.alarm)
                self.detector.reset()
        if isinstance(rows, Table):
            self.quality.add(rows)

    def _saw(self, outcomes: Outcomes, aside: Table | None) -> None:
        self._judged.add(self.rows + 1, len(outcomes), outcomes.unseen)
        self.rows += len(outcomes)
        self.unseen += 0 if outcomes.unseen is None else int(outcomes.unseen.sum())
        seconds = self.beside.add(aside, len(outcomes))
        self.clock.add(seconds)
        self.tests += int(promised(self.detector.calibration_, outcomes).sum())
        self.statistic.add(outcomes.statistic)
        self.threshold.add(outcomes.threshold)
        shown = CLOSE_UP * self.detector.windows_[-1]
        all_three = np.array([outcomes.statistic[-shown:], outcomes.threshold[-shown:], seconds[-shown:]])
        self._latest = np.concatenate([self._latest, all_three], axis=1)[:, -shown:]

    def _rang(self, outcome: Outcome) -> None:
        self.alarms += 1
        when = self.beside.when(self.rows)
        if len(self.marks) < MOST_MARKS:
            self.marks.append(self.rows)
        if outcome.rarity > self.rarest:
            self.rarest, self.rarest_row, self.rarest_when = outcome.rarity, self.rows, when
        series = self._latest_series
        if series is None or self.rows - series.last > apart(self.detector):
            series = self._latest_series = Series(self.rows, self.rows)
        else:
            self.close += 1
        series.add(self.rows, outcome, when)
        self._keep(series)
        if self._is_to_be_explained(series):
            explanation = self.detector.explain()
            samples, followed = self._samples(explanation), Followed.of(self.detector, explanation)
            explanation = explanation.moved_on(self.rows - outcome.time, self._judged.rows).found_by(self.beside)
            statistic, threshold, seconds = self._latest
            series.alarms.append(
                Alarm(self.rows, self.alarms, statistic, threshold, seconds, explanation, samples, followed)
            )

    def _keep(self, series: Series) -> None:
        """Keep the latest series among the others, or leave it out if it is the weakest of too many."""
        if not self.series or self.series[-1] is not series:
            self.series.append(series)
        if len(self.series) > MOST_SERIES:
            self.series.remove(min(self.series, key=Series.strength))

    def _is_to_be_explained(self, series: Series) -> bool:
        """Whether this alarm is; then a weaker series may lose its explanations."""
        if series.alarms:
            return len(series.alarms) < EXPLAINED_IN_SERIES
        others = [other for other in self.series if other.alarms]
        if len(others) < MOST_EXPLAINED:
            return True
        weakest = min(others, key=Series.strength)
        if series.strength() <= weakest.strength():
            return False
        weakest.alarms.clear()
        return True

    def _samples(self, explanation: Explanation) -> dict[str, Histogram | Bars]:
        """Columns in the reference and since the change began: those that changed, or the first two."""
        detector = self.detector
        columns = explanation.changed[:MOST_COMPARED] or explanation.columns[:2]
        recent = detector.recent
        since = recent[-min(explanation.outcome.time - explanation.began.time + 1, len(recent)) :]
        found = {}
        for name in (column.name for column in columns):
            if name not in self._reference:
                count = len(detector.reference_)
                some = np.arange(0, count, -(-count // MOST_REFERENCE))
                self._reference[name] = values_in(detector.intake_, choose(detector.reference_, some), name)
            before, after = self._reference[name], values_in(detector.intake_, since, name)
            if before is not None and after is not None:
                found[name] = compared(before, after)
        return found


def apart(detector: Detector) -> float:
    """Rows within which an alarm follows the one before in the same series: close, once its run may ring at all."""
    calibration = detector.calibration_
    silent = 0 if calibration.rehearsal is None else detector.windows_[-1]
    return silent + closeness(calibration.ert)


def closeness(ert: float) -> float:
    """Rows that are few beside an expected run time."""
    return max(ert / SERIES, 1.0)
