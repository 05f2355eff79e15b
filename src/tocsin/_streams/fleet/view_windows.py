"""What a detector with views does with the streams of many keys: begin them, hear them, explain them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._compute.arrays import Array, Float64Array, Int64Array
from tocsin._execution.threads import Threads
from tocsin._explain.result import Explanation
from tocsin._state import Fitted, Run
from tocsin._state.news import Found
from tocsin._state.outcomes import Outcome
from tocsin._statistics.base import WindowState
from tocsin._statistics.view_streams import Loudest, Places, begun, history, silenced, summed
from tocsin._statistics.views import ViewsLive
from tocsin._streams.fleet.listening import listened, to_news
from tocsin._streams.fleet.prints import fingerprint_of
from tocsin._streams.fleet.view_states import ViewStates, layout_of_views

KEYS_AT_ONCE = 64
"""Keys that one piece of work advances."""


class ViewWindows:
    """A detector and a threshold that all keys share. States of keys are passed in, and changed."""

    def __init__(self, live: ViewsLive, fitted: Fitted[Calibration], workers: int | None = None) -> None:
        self.fitted, self._live, self._executor = fitted, live, Threads(workers)
        places = Places.of(live.model.spans)
        self.columns, self.widest = live.past.shape[1], places.coarse
        heard = 0 if fitted.ear is None else len(fitted.ear.layout)
        self.layout = layout_of_views(live.model.width, len(live.unit), places, heard, own=live.has_baselines)

    @property
    def has_baselines(self) -> bool:
        """Whether keys have levels of their own."""
        return self._live.has_baselines

    @cached_property
    def fingerprint(self) -> int:
        """Of all that a stream depends on; the threshold may change without it, and what scales begin with."""
        parts = {name: part for name, part in self._live.parts().items() if name not in ("level", "scale")}
        return fingerprint_of(self.fitted, {**parts, "unit": self._live.unit[~self._live.news]})

    def read(self, heads: list[bytes], alarms: dict[int, Array]) -> ViewStates:
        """States of this layout; tails are given apart."""
        return ViewStates.read(heads, alarms, self.layout)

    def begin(self, kept: ViewStates, chosen: Int64Array) -> None:
        """Let the streams of these keys begin after the reference."""
        kept.time[chosen] = kept.resting[chosen] = 0
        if len(chosen):
            state, kept.sums = self._live.begin(0), None
            for k in chosen.tolist():
                kept.put(k, state)
            if kept.news is not None and self.fitted.ear is not None:
                kept.news[chosen] = self.fitted.ear.begun(len(chosen))
            kept.entered[chosen] = self.widest

    def renew(self, kept: ViewStates, chosen: Int64Array) -> None:
        """Let these keys begin new runs, which go on with what they have heard."""
        kept.time[chosen] = kept.resting[chosen] = 0
        state = kept.streams()
        silenced(state, chosen, self._live.model.spans.widest)
        kept.filled[chosen] = state["clock"][chosen, 0]

    def observe(self, points: Float64Array) -> Float64Array:
        return np.ascontiguousarray(points)

    def advance(
        self, kept: ViewStates, chosen: Int64Array, observed: Float64Array, first: Int64Array, stop: Int64Array
    ) -> tuple[Int64Array, Int64Array, list[Outcome]]:
        """Let points first..stop of each of these keys enter, up to its first alarm; where that is, who rang, how."""
        ear, news = self.fitted.ear, kept.news
        last = stop.copy() if ear is None or news is None else to_news(ear, news, chosen, observed, first, stop)
        state, found = self._streams(kept), Loudest.of(len(observed))
        young = kept.age[chosen] < 0

        def some(start: int) -> None:
            piece, live = slice(start, min(start + KEYS_AT_ONCE, len(chosen))), self._live
            live.watch(state, observed, chosen, first, last, piece, found, halt=True)

        list(self._executor.map(some, range(0, len(chosen), KEYS_AT_ONCE)))
        kept.filled[:], kept.age[:] = state["clock"].T
        kept.entered[chosen] = np.minimum(kept.entered[chosen] + last - first, self.widest)
        kept.entered[chosen[young & (kept.age[chosen] >= 0)]] = self.widest  # told in units of their own from now on
        ends = last - 1
        time = kept.time[chosen] + last - first
        outcomes = self.fitted.rule(
            found.best[ends][:, None], kept.key[chosen], kept.run[chosen], time, found.which[ends]
        )
        if ear is not None and news is not None:
            news[chosen], heard = listened(ear, news, chosen, observed, first, last)
            ends = np.cumsum(last - first) - 1
            outcomes = ear.told(outcomes, Found(heard.slot[ends], heard.log_rate[ends]))
        rang = np.flatnonzero(outcomes.alarm)
        return last, rang, [outcomes[int(i)] for i in rang]

    def _streams(self, kept: ViewStates) -> WindowState:
        state = kept.streams()
        if kept.sums is None:
            kept.sums = summed(state, self._live.ear, self._live.model.spans, self._live.compute)
        return state | {"sums": kept.sums}

    def carry(self, kept: ViewStates, k: int, old: ViewStates, earlier: Any) -> bool:
        """Let a key go on from what an earlier detector has left of it; whether it can."""
        if not isinstance(earlier, ViewWindows) or self._live.has_baselines or earlier.has_baselines:
            return False
        live, widest = self._live, self._live.model.spans.widest
        past = np.concatenate([live.past, earlier.points(old)])
        state = begun(live.rows(past), live.scale, live.ear, live.model.spans, live.compute)
        state["clock"][0] = np.clip(old.filled[0], -widest, widest), old.age[0]
        kept.put(k, state)
        kept.sums = None
        return True

    def points(self, kept: ViewStates) -> Float64Array:
        """All that is known of the first of these keys, oldest first, and coarsely of the older ones."""
        rows = history(kept.streams(), 0)
        known = self._live.model.spans.history + 1 + int(kept.age[0])
        return self._live.points_at(rows[-min(known, len(rows)) :])

    def explain(self, kept: ViewStates, k: int, outcome: Outcome) -> Explanation:
        """What an alarm means that a key's last observation has raised."""
        from tocsin._explain.alarm import Alarm  # needs scipy, which watching does not

        everything = self._streams(kept)
        state = {name: part[k : k + 1] for name, part in everything.items()}
        place = int(kept.key[k]), int(kept.run[k]), outcome.time
        run = Run.of_window(self._live.points_of(state, 0), *place, outcome, [state])
        return Alarm.of(self.fitted, run).explain()
