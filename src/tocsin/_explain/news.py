"""An alarm of news: which columns show what the reference never does, since when, and how often."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tocsin._calibration.result import Calibration
from tocsin._compute.arrays import Float64Array
from tocsin._explain.kernel import some
from tocsin._explain.onset import LEVEL
from tocsin._explain.result import Moved
from tocsin._explain.words import compare
from tocsin._state import Fitted
from tocsin._state.news import ABOVE, BELOW, MISSING, STOPPED, UNSEEN, Ear, Ringing
from tocsin._statistics.base import Channel, choose

COMPARED = 1000
"""Reference rows that are described beside recent ones, at most."""

IN_WORDS = {
    UNSEEN: "never seen before",
    BELOW: "below all of the reference",
    ABOVE: "above all of the reference",
}


@dataclass(frozen=True, eq=False)
class NewsHeard:
    """What rang, as far as the latest observations show it.

    recent: the observations up to the alarm, oldest first.
    """

    fitted: Fitted[Calibration]
    ear: Ear
    channel: Channel
    recent: Float64Array

    @property
    def ringing(self) -> dict[str, Ringing]:
        """Of each column, its rarest news; the one that rang stands first."""
        heard = self.ear.begun()
        self.ear.watch(heard, self.recent)
        found: dict[str, Ringing] = {}
        for each in self.ear.ringing(heard[0]):
            name = str(each.channel.column)
            if name not in found or each.channel == self.channel:
                found[name] = each
        own = str(self.channel.column)
        # Of observations that are only known to float32's precision, the last one may seem not to be news.
        first = found.pop(own, Ringing(self.channel, (0,), -math.inf))
        return {own: first, **found}

    def onset(self, ringing: Ringing) -> tuple[int, int, int]:
        """The first observation of the news, as a place among the recent ones, and an interval that holds it: before
        it came as seldom as that, none may have come by chance."""
        last = len(self.recent) - 1
        first = max(last - max(ringing.ago), 0)
        if ringing.channel.view == STOPPED:
            return min(first + 1, last), first, min(first + 1, last)
        share = len(ringing.ago) / (max(ringing.ago) + 1)
        earlier = math.floor(math.log(1 - LEVEL) / math.log(1 - share)) if share < 1 else 0
        return first, max(first - earlier, 0), first

    def columns(self, ringing: dict[str, Ringing], since: int, statistic: float) -> tuple[Moved, ...]:
        """What each of these did. statistic: of the alarm."""
        fitted, calibration = self.fitted, self.fitted.calibration
        chosen = some(len(fitted.reference), COMPARED, fitted.seed)
        words = compare(fitted.intake, choose(fitted.reference, chosen), self.recent[since:])
        moved = []
        for i, (name, own) in enumerate(ringing.items()):
            loud = self.ear.level(own.log_rate, calibration.threshold) if i else statistic
            rarity = calibration.curve.rarity(loud) if calibration.curve else math.nan
            said = next(word for word in words if word.name == name)
            moved.append(
                Moved(
                    name=name,
                    contribution=loud,
                    usual=(0.0, calibration.threshold),
                    p_value=min(calibration.nominal / rarity, 1.0),
                    changed=True,
                    how=in_words(own),
                    before=said.before,
                    after=said.after,
                )
            )
        return tuple(moved)


def in_words(own: Ringing) -> str:
    """What a column did.

    >>> in_words(Ringing(Channel("news", 8, view="above all", column="flow"), (0, 1, 3), -20.0))
    'above all of the reference in 3 of the last 4 observations'
    """
    view, rows, span = str(own.channel.view), len(own.ago), max(own.ago) + 1
    if view == STOPPED:
        return f"the same value {span:,} times in succession"
    times = f"in {rows} of the last {span} observations" if rows > 1 else "now"
    return f"missing {times}" if view == MISSING else f"{IN_WORDS[view]} {times}"
