"""What an alarm means: when the change began, which columns moved and how, and which examples show it best."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypedDict

from tocsin._common.wording import called, counted, rounded
from tocsin._explain.beside import Beside, shortened, time_beside
from tocsin._state.outcomes import Outcome

MOST_COLUMNS, MOST_EXAMPLES, MOST_VALUES = 8, 3, 6
"""Of what there may be many: columns, examples and values of an example that a text shows."""

SHOWN = 40
"""Characters of a kept value, or of a text, that a line shows."""


@dataclass(frozen=True)
class Began:
    """When the change began, as the time of the first observation after it.

    low, high: an interval that holds the truth with probability `level`.
    when: what the data's own clock said at each of the three, if they have one.
    """

    time: int
    low: int
    high: int
    level: float
    when: tuple[str, str, str] | None = None

    def __str__(self) -> str:
        if self.time < 1:
            return self.about
        low, high = max(self.low, 1), max(self.high, 1)
        ends = ""
        if self.when is not None:
            when, first, last = self.when
            ends = f", {time_beside(when, first)} to {time_beside(when, last)}"
        return f"{self.about} ({self.level:.0%} interval {low:,} to {high:,}{ends})"

    @property
    def about(self) -> str:
        """The same without the interval."""
        if self.time < 1:
            return "before this stream"
        return f"at about observation {self.time:,}{'' if self.when is None else f', {self.when[0]}'}"


@dataclass(frozen=True)
class Moved:
    """A column, and its part in the alarm.

    contribution: to the statistic; those of all columns add up to it. Of columns that are heard one by one, how loud
        the loudest channel of this one was; the loudest of all is the statistic.
    usual: where nine in ten of its contributions to false alarms are; of columns heard one by one, up to the threshold.
    p_value: how likely it is that any column stands out as much in a false alarm.
    changed: whether that is unlikely enough to say that this column changed.
    how: 'higher', 'lower', 'wider' or 'narrower', of numbers; 'missing more often' or 'missing less often'; or nothing.
        Of columns that are heard one by one, what was heard: 'changes 2.1 times as large', say.
    before, after: its values in the reference, and since the change began, in a few words.
    """

    name: str
    contribution: float
    usual: tuple[float, float]
    p_value: float
    changed: bool
    how: str
    before: str
    after: str


@dataclass(frozen=True)
class Example:
    """An observation that shows the change.

    place: its time in this run, or, of the reference, its row, counted from 1.
    values: by column; none where observations have no columns that can be shown.
    when: what the data's own clock said, if they have one.  kept: its values in columns that are kept to find it again.
    """

    place: int
    values: Mapping[str, str]
    when: str | None = None
    kept: Mapping[str, str] = field(default_factory=dict)


class ExplanationFacts(TypedDict):
    """An explanation as numbers, strings, lists and dicts only."""

    time: int
    when: str | None
    kept: dict[str, str]
    statistic: float
    threshold: float
    rarity: float | None
    channel: dict[str, str | float | None] | None
    value: float
    measure: str
    began: dict[str, float | list[str] | None]
    columns: list[dict[str, object]]
    rate: float
    recent: list[dict[str, object]]
    missed: list[dict[str, object]]
    beyond: list[str]
    given: list[str]


@dataclass(frozen=True, eq=False)
class Explanation:
    """Of an alarm.

    outcome: the alarm.  value: of the statistic that spoke, in its own units.
    measure: what contributions add up to, if not that.
    began: when the change began.
    columns: the one that surely changed first; contributions say how much of the statistic is due to each.
    rate: the part of false alarms of which some column is said to have changed.
    recent: observations that are most typical of the change.  missed: reference rows whose like are not seen any more.
    beyond: columns whose values have left all that the reference has.
    given: where observations have a context, how far columns that changed are from what is expected of it.
    run: which run of the stream times count in, the first being 1; None where they count observations of the stream.
    when, kept: of the observation that rang, as an `Example` has them.
    """

    outcome: Outcome
    value: float
    measure: str
    began: Began
    columns: tuple[Moved, ...]
    rate: float
    recent: tuple[Example, ...]
    missed: tuple[Example, ...]
    beyond: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    run: int | None = 1
    when: str | None = None
    kept: Mapping[str, str] = field(default_factory=dict)

    @property
    def one_by_one(self) -> bool:
        """Whether columns were heard one by one, in views, and each was compared with the threshold."""
        return self.outcome.channel is not None and self.outcome.channel.view is not None

    @property
    def changed(self) -> tuple[Moved, ...]:
        """The columns that are said to have changed."""
        return tuple(column for column in self.columns if column.changed)

    def moved_on(self, by: int, judged: Sequence[int] = ()) -> Explanation:
        """The same with all its times moved on, so as to count observations of a stream and not of its latest run.

        by: observations of the stream before this run; negative if the run is older than the stream.
        judged: the numbers of the latest that were judged, the last of them that which rang; others were left out.
        """
        began, last = self.began, self.outcome.time

        def moved(time: int) -> int:
            back = last - time
            return judged[-1 - back] if 0 <= back < len(judged) else time + by

        return replace(
            self,
            outcome=replace(self.outcome, time=last + by),
            began=replace(began, time=moved(began.time), low=moved(began.low), high=moved(began.high)),
            recent=tuple(replace(example, place=moved(example.place)) for example in self.recent),
            run=None,
        )

    def found_by(self, beside: Beside) -> Explanation:
        """The same with what stands beside the observations of the stream: times, kept columns, and texts."""
        began, time = self.began, self.outcome.time
        around = [beside.when(max(place, 1)) for place in (began.time, began.low, began.high)]
        first, low, high = around if began.time > 0 else (None, None, None)
        known = None if first is None or low is None or high is None else (first, low, high)
        return replace(
            self,
            began=replace(began, when=known),
            recent=tuple(
                replace(
                    own,
                    when=beside.when(own.place),
                    kept=beside.kept(own.place),
                    values={**own.values, **beside.texts(own.place)},
                )
                for own in self.recent
            ),
            when=beside.when(time),
            kept=beside.kept(time),
        )

    def to_dict(self) -> ExplanationFacts:
        """Numbers, strings, lists and dicts only."""
        return {
            "time": self.outcome.time,
            "when": self.when,
            "kept": dict(self.kept),
            "statistic": self.outcome.statistic,
            "threshold": self.outcome.threshold,
            "rarity": self.outcome.rarity if math.isfinite(self.outcome.rarity) else None,
            "channel": None if self.outcome.channel is None else asdict(self.outcome.channel),
            "value": self.value,
            "measure": self.measure,
            "began": {**asdict(self.began), "when": None if self.began.when is None else list(self.began.when)},
            "columns": [{**asdict(column), "usual": list(column.usual)} for column in self.columns],
            "rate": self.rate,
            "recent": [
                {"time": own.place, "when": own.when, "kept": dict(own.kept), "values": dict(own.values)}
                for own in self.recent
            ],
            "missed": [{"row": example.place, "values": dict(example.values)} for example in self.missed],
            "beyond": list(self.beyond),
            "given": list(self.given),
        }

    def to_json(self) -> str:
        """The same as a line of JSON."""
        return json.dumps(self.to_dict())

    def plot(self, file: str | os.PathLike[str]) -> None:
        """Draw it to a .png, .svg or .pdf file."""
        from tocsin._plots.explanation import draw_explanation

        draw_explanation(self, Path(file))

    def __str__(self) -> str:
        return "\n".join([*self._headline(), *self._columns(), *self._given(), *self._left(), *self._examples()])

    def _headline(self) -> list[str]:
        outcome, began = self.outcome, self.began
        rare = ""
        if math.isfinite(outcome.rarity):
            rare = f": chance alone gives as much once in {rounded(outcome.rarity)} observations"
        return [
            f"Alarm at {self.where} ({outcome.channel}){rare}.",
            f"The change began {began}, {ago(outcome.time - began.time)}.",
        ]

    @property
    def where(self) -> str:
        """Which observation rang, and how to find it again."""
        of_run = f" of run {self.run}" if self.run is not None and self.run > 1 else ""
        return "".join([f"observation {self.outcome.time:,}{of_run}", *beside_it(self.when, self.kept)])

    def _columns(self) -> list[str]:
        if not self.columns:
            return []
        # Some columns speak against the change; those that speak for it share it.
        total = sum(max(column.contribution, 0.0) for column in self.columns) or 1.0
        if not self.changed:
            return ["No single column stands out: what changed is spread over several of them, or lies between them."]
        others = len(self.columns) - len(self.changed)
        shown = self.changed[:MOST_COLUMNS]
        width = max(len(called(column.name)) for column in shown)
        more = len(self.changed) - len(shown)
        if self.one_by_one:
            how = max(len(column.how) for column in shown)
            return [
                "Heard in (each column by itself; a false alarm is heard in one at least):",
                *(
                    f"  {called(column.name):<{width}}  {column.how:<{how}}   {column.before} -> {column.after}"
                    for column in shown
                ),
                *([f"  and {more} more"] if more else []),
            ]
        return [
            f"Changed (some column is named in at most {self.rate:.0%} of false alarms):",
            *(
                f"  {called(column.name):<{width}}  {max(column.contribution, 0.0) / total:4.0%} of the evidence   "
                f"{column.before} -> {column.after}"
                for column in shown
            ),
            *([f"  and {more} more"] if more else []),
            *([f"Of the other {others} nothing can be said."] if others > 1 else []),
        ]

    def _given(self) -> list[str]:
        return [f"{sentence[0].upper()}{sentence[1:]}." for sentence in self.given]

    def _left(self) -> list[str]:
        if not self.beyond:
            return []
        named = ", ".join(called(name) for name in self.beyond[:MOST_COLUMNS])
        others = f" and {len(self.beyond) - MOST_COLUMNS} more" if len(self.beyond) > MOST_COLUMNS else ""
        return [f"Beyond all that the reference has: {named}{others}."]

    def _examples(self) -> list[str]:
        lines = []
        for title, word, examples in (
            ("Typical of what is new", "observation", self.recent),
            ("Typical of what is gone", "reference row", self.missed),
        ):
            if examples:
                lines.append(f"{title}:")
                for example in examples[:MOST_EXAMPLES]:
                    where = f"before this {'stream' if self.run is None else 'run'}"
                    if example.place > 0:
                        where = "".join([f"{word} {example.place:,}", *beside_it(example.when, example.kept)])
                    lines.append(f"  {where}{self._values(example)}")
        return lines

    def _values(self, example: Example) -> str:
        known = [column.name for column in self.columns]
        order = [name for name in known if name in example.values]
        order = [*order, *(name for name in example.values if name not in known)][:MOST_VALUES]
        shown = ", ".join(f"{called(name)} {shortened(example.values[name], SHOWN)}" for name in order)
        return f": {shown}{', ...' if len(example.values) > len(order) else ''}" if shown else ""


def beside_it(when: str | None, kept: Mapping[str, str]) -> list[str]:
    """What follows the number of an observation: when it came, and its kept columns.

    >>> "".join(beside_it("2019-03-07 14:20", {"id": "A7"}))
    ', 2019-03-07 14:20, id A7'
    """
    return [*([f", {when}"] if when else []), *(f", {called(name)} {shortened(kept[name], SHOWN)}" for name in kept)]


def ago(observations: int) -> str:
    """How long before an alarm.

    >>> ago(0), ago(1), ago(1200)
    ('with the observation that rang', '1 observation before the alarm', '1,200 observations before the alarm')
    """
    return (
        f"{counted(observations, 'observation')} before the alarm" if observations else "with the observation that rang"
    )
