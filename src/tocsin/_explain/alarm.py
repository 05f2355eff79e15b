"""From a detector that rang to an explanation."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._common.errors import InputError
from tocsin._common.wording import counted
from tocsin._compute.arrays import Int64Array
from tocsin._data.contextual import Contextual
from tocsin._explain.columns import RATE, ColumnTest
from tocsin._explain.contributions import Contributions, column_contributions
from tocsin._explain.examples import find_examples
from tocsin._explain.given import Deviations
from tocsin._explain.kernel import gaussian, median_width, some
from tocsin._explain.news import NewsHeard
from tocsin._explain.onset import LEVEL, Axes, Onset, find_onset
from tocsin._explain.result import Began, Example, Explanation, Moved
from tocsin._explain.views import Hearing
from tocsin._explain.words import NEWLY_MISSING, compare, did, show
from tocsin._state import Fitted, Run
from tocsin._state.news import Ear
from tocsin._state.outcomes import Outcome
from tocsin._statistics.base import Channel, Live, Points, choose
from tocsin._statistics.kernels import Kernel
from tocsin._statistics.mmd_callable import CallableLive
from tocsin._statistics.views import ViewsLive

T = TypeVar("T")

TYPICAL, COMPARED = 3, 1000
"""Examples of an alarm of views; and reference rows that are described beside recent ones, at most."""


@dataclass(frozen=True, eq=False)
class Alarm:
    """An alarm, and what is known of the run that it ended.

    recent: the latest observations of the run, oldest first.  after: how many of them came after the alarm.
    """

    fitted: Fitted[Calibration]
    run: Run
    outcome: Outcome
    channel: Channel
    recent: Points
    after: int

    @classmethod
    def of(cls, fitted: Fitted[Calibration], run: Run) -> Alarm:
        """The first alarm of this run."""
        outcome = run.alarm
        if outcome is None or outcome.channel is None:
            raise InputError(
                f"There is no alarm to explain: this run has been quiet for {counted(run.time, 'observation')}. An "
                "alarm ends its run, and the next observation begins another: call explain() in between. In a block, "
                "update_until_alarm stops at the alarm."
            )
        after = run.time - outcome.time
        if after >= len(run.recent):
            raise InputError(
                f"The alarm is {counted(after, 'observation')} ago, and the last {len(run.recent):,} are remembered. "
                "Call explain() when it rings, or soon after."
            )
        points = list(run.recent)
        return cls(fitted, run, outcome, outcome.channel, np.array(points) if fitted.numeric else points, after)

    def explain(self) -> Explanation:
        """What it means."""
        fitted = self.fitted
        if fitted.ear is not None and self.channel in fitted.ear.channels:
            return self._news(fitted.ear)
        if isinstance(self.member, ViewsLive):
            return self._heard(self.member)
        began = find_onset(
            self.recent, fitted.reference, self.kernel, self.channel.window,
            after=self.after, ordered=fitted.calibration.block > 1, seed=fitted.seed, axes=self._axes,
        )  # fmt: skip
        typical = find_examples(self.recent, fitted.reference, self.kernel, began.probabilities, seed=fitted.seed)
        parts = self._contributions()
        moved = () if parts is None else self._moved(parts, began)
        return Explanation(
            outcome=self.outcome,
            value=self.value,
            measure="" if parts is None or parts.measure == self.channel else str(parts.measure),
            began=Began(self._time(began.estimate), self._time(began.low), self._time(began.high), LEVEL),
            columns=moved,
            rate=RATE,
            recent=self._examples(self.recent, typical.recent, self._time(0)),
            missed=self._missed(typical.reference),
            given=self._given(moved, typical.recent),
            run=self.run.number + 1,
        )

    def _heard(self, live: ViewsLive) -> Explanation:
        """What it means where columns are heard one by one."""
        fitted, calibration = self.fitted, self.fitted.calibration
        before = self.recent[: len(self.recent) - self.after]
        hearing = Hearing(fitted, live, self.run, self.channel, before, self.outcome.learning)
        began, columns = hearing.onset(0, fitted.seed), list[Moved]()
        beyond: tuple[str, ...] = ()
        since = self.recent[began.estimate :]
        if not live.model.axes.size:
            chosen = some(len(hearing.past), COMPARED, fitted.seed)
            said = compare(fitted.intake, choose(hearing.past, chosen), since)
            if self.deviations is not None:
                said = self.deviations.since(began.estimate).words(said)
            words = {own.name: own for own in said}
            latest = self.recent[min(began.high, len(self.recent) - self.after - 1) :]
            beyond = tuple(hearing.beyond(said, since, latest))
            for name in hearing.order:
                loud, own, clearest = hearing.loudness[name], words[name], hearing.loudest_of(name)
                rarity = calibration.curve.rarity(loud) if calibration.curve else math.nan
                columns.append(
                    Moved(
                        name=name,
                        contribution=loud,
                        usual=(0.0, calibration.threshold),
                        p_value=min(calibration.nominal / rarity, 1.0),
                        changed=loud >= calibration.threshold,
                        how=_and(hearing.how(clearest), hearing.own_level(clearest, since)),
                        before=own.before,
                        after=own.after,
                    )
                )
        far = np.abs(hearing.series(since, live.channels.index(self.channel))[:, 0])
        typical = began.estimate + np.argsort(-far, kind="stable")[:TYPICAL]
        return Explanation(
            outcome=self.outcome,
            value=self.outcome.statistic,
            measure="",
            began=Began(self._time(began.estimate), self._time(began.low), self._time(began.high), LEVEL),
            columns=tuple(columns),
            rate=1.0,
            recent=self._examples(self.recent, typical, self._time(0)),
            missed=(),
            beyond=beyond,
            given=self._given(tuple(columns), typical),
            run=self.run.number + 1,
        )

    def _news(self, ear: Ear) -> Explanation:
        """What it means where a column showed what the reference never does."""
        rows = self.recent[: len(self.recent) - self.after]
        heard = NewsHeard(self.fitted, ear, self.channel, rows)
        ringing = heard.ringing
        own = ringing[str(self.channel.column)]
        first, low, high = heard.onset(own)
        shown = np.array([len(rows) - 1 - ago for ago in own.ago[:TYPICAL] if ago < len(rows)], np.int64)
        columns = heard.columns(ringing, first, self.outcome.statistic, self.deviations)
        return Explanation(
            outcome=self.outcome,
            value=self.outcome.statistic,
            measure="",
            began=Began(self._time(first), self._time(low), self._time(high), LEVEL),
            columns=columns,
            rate=1.0,
            recent=self._examples(rows, shown, self._time(0)),
            missed=(),
            given=self._given(columns, shown),
            run=self.run.number + 1,
        )

    @cached_property
    def kernel(self) -> Kernel:
        """That of the channel, or one of the median width where it has none."""
        if isinstance(self.member, CallableLive):
            return self.member.kernel
        reference = self.fitted.reference
        if not isinstance(reference, np.ndarray):
            raise InputError(
                f"{self.channel.statistic} compares observations by a function of its own, which says nothing about "
                "single ones; only statistics with a kernel, and those on rows of numbers, can be explained."
            )
        width = self.channel.width
        return gaussian(median_width(reference, self.fitted.seed) if width is None else width)

    @property
    def member(self) -> Live:
        """The statistic that spoke."""
        return next(member for member in self.fitted.live.members if self.channel in member.channels)

    @property
    def value(self) -> float:
        """The channel's own value, without the coin."""
        fitted, normaliser = self.fitted, self.fitted.normaliser
        k = fitted.channels.index(self.channel)
        stream, run, time = np.array([self.run.stream], np.uint64), self.run.number, self.outcome.time
        coin = float(fitted.rule.coins(stream, np.array([run]), np.array([time]))[0])
        score = self.outcome.statistic - normaliser.tie * coin
        return float(score * normaliser.scale[k] + normaliser.centre[k])

    def _time(self, place: int) -> int:
        """Of a place among the recent observations."""
        return self.run.time - len(self.recent) + place + 1

    @property
    def _at_alarm(self) -> Points:
        """The observations up to the alarm; before them, after a warm start, those that the run began with."""
        rows = self.recent[: len(self.recent) - self.after]
        missing = self.channel.window - len(rows)
        begun = self.run.begun_with
        return np.concatenate([begun[len(begun) - missing :], rows]) if missing > 0 and begun is not None else rows

    def _contributions(self) -> Contributions | None:
        fitted = self.fitted
        if not isinstance(fitted.reference, np.ndarray) or not fitted.intake.names:
            return None
        weights = None
        if self.channel.statistic == "MeanShift":
            weights = self.member.parts()["features"]["weights"]
        return column_contributions(
            self.channel, self._at_alarm, fitted.reference, fitted.intake.owners, total=self.value,
            weights=weights, signed=self.channel.statistic == "MeanShift" and self._is_signed,
            rang=fitted.rang, seed=fitted.seed,
        )  # fmt: skip

    @property
    def _is_signed(self) -> bool:
        member: Any = self.member
        return bool(member.features.signed)

    def _moved(self, parts: Contributions, began: Onset) -> tuple[Moved, ...]:
        fitted = self.fitted
        changes = self._column_test(self.recent)
        before = choose(fitted.reference, some(len(fitted.reference), COMPARED, fitted.seed))
        words = compare(fitted.intake, before, self.recent[began.estimate :])
        if self.deviations is not None:
            words = self.deviations.since(began.estimate).words(words)
        changed = set(changes.changed.tolist())
        return tuple(
            Moved(
                name=words[i].name,
                contribution=float(parts.columns[i]),
                usual=(float(parts.low[i]), float(parts.high[i])),
                p_value=float(changes.p_values[i]),
                changed=int(i) in changed,
                how=did(fitted.intake, words[i], int(changes.features[i]), changes.how[i]),
                before=words[i].before,
                after=words[i].after,
            )
            for i in changes.order
            if words[i].name != NEWLY_MISSING or parts.columns[i]
        )

    @property
    def _column_test(self) -> ColumnTest:
        fitted = self.fitted
        assert fitted.rang is not None
        learn = partial(ColumnTest, fitted.reference, fitted.intake.owners, fitted.rang, seed=fitted.seed)
        return self._known("columns", learn)

    @property
    def _axes(self) -> Axes:
        learn = partial(Axes.of, self.fitted.reference, self.kernel, self.fitted.seed)
        return self._known(("axes", self.channel.statistic, self.channel.width), learn)

    def _known(self, name: Hashable, learn: Callable[[], T]) -> T:
        """Learned from the reference with the first explanation, and kept."""
        if name not in self.fitted.known:
            self.fitted.known[name] = learn()
        known: T = self.fitted.known[name]
        return known

    @cached_property
    def deviations(self) -> Deviations | None:
        """The recent observations relative to what their context lets expect; None where they have none."""
        intake = self.fitted.intake
        return Deviations.of(intake, self.recent, self.run.beside) if isinstance(intake, Contextual) else None

    def _given(self, columns: tuple[Moved, ...], typical: Int64Array) -> tuple[str, ...]:
        return () if self.deviations is None else self.deviations.sentences(columns, typical.tolist())

    def _examples(self, rows: Points, places: Int64Array, first: int) -> tuple[Example, ...]:
        shown = show(self.fitted.intake, choose(rows, places))
        if self.deviations is not None:
            shown = [self.deviations.shown(int(place)) for place in places]
        return tuple(Example(first + int(place), values) for place, values in zip(places, shown, strict=True))

    def _missed(self, places: Int64Array) -> tuple[Example, ...]:
        fitted = self.fitted
        rows = places if fitted.rows is None else fitted.rows[places]
        shown = show(fitted.intake, choose(fitted.reference, places))
        if isinstance(fitted.intake, Contextual):
            past = Deviations(fitted.intake, choose(fitted.reference, places), None)
            shown = [past.shown(k) for k in range(len(places))]
        return tuple(Example(int(row) + 1, values) for row, values in zip(rows, shown, strict=True))


def _and(how: str, level: str) -> str:
    return f"{how}, {level}" if how and level else how or level
