"""What a detector does with the windows of many keys: begin them, test them, explain them."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._common.seeds import Purpose, generator
from tocsin._compute.arrays import Array, Float64Array, Int64Array
from tocsin._execution.threads import Threads
from tocsin._explain.result import Explanation
from tocsin._state import Fitted, Run
from tocsin._state.outcomes import Outcome, Outcomes
from tocsin._state.run import RECENT_WINDOWS
from tocsin._statistics.mmd_bank import Observed
from tocsin._statistics.mmd_gaussian import GaussianLive
from tocsin._statistics.mmd_starts import Starts
from tocsin._streams.bank import quiet_starts
from tocsin._streams.fleet.listening import listened, places_of
from tocsin._streams.fleet.prints import fingerprint_of
from tocsin._streams.fleet.states import PairStates, layout

STARTS, STARTS_AT_ONCE = 1024, 16
"""Quiet windows of reference points that runs begin with, shared by all keys; and how many are drawn together, when
one of them is wanted."""

KEYS_AT_ONCE = 64
"""Keys that one piece of work advances."""


class Entering(NamedTuple):
    """Points, and what was observed of them."""

    observed: Observed
    points: Float64Array


class PairWindows:
    """A detector and thresholds that all keys share. States of keys are passed in, and changed."""

    def __init__(self, live: GaussianLive, fitted: Fitted[Calibration], workers: int | None = None) -> None:
        self.fitted, self._live = fitted, copy(live)
        if workers is not None:
            self._live.executor = Threads(workers)
        self._compute, self.widest = self._live.compute.nearby, fitted.widest
        self._drawn: dict[int, Starts] = {}
        self.columns = self._live.points.shape[1]
        heard = 0 if fitted.ear is None else len(fitted.ear.layout)
        self.layout = layout(self.columns, len(self._live.multipliers), self.widest, heard)

    @cached_property
    def fingerprint(self) -> int:
        """Of all that a window depends on; thresholds may change without it."""
        return fingerprint_of(self.fitted, self._live.parts())

    def read(self, heads: list[bytes], alarms: dict[int, Array]) -> PairStates:
        """States of this layout; tails are given apart."""
        return PairStates.read(heads, alarms, self.layout)

    def begin(self, kept: PairStates, chosen: Int64Array) -> None:
        """Begin the present runs of these keys, with quiet windows or with none."""
        kept.time[chosen] = kept.resting[chosen] = kept.filled[chosen] = 0
        if kept.news is not None and self.fitted.ear is not None:
            kept.news[chosen] = self.fitted.ear.begun(len(chosen))
        if self.fitted.start == "warm":
            for starts, mine, which in self._begun(kept, chosen):
                points, sums = starts.filled
                kept.points[chosen[mine]], kept.sums[chosen[mine]] = points[which], sums[which].astype(np.float32)
            kept.filled[chosen] = kept.entered[chosen] = self.widest

    renew = begin

    def _begun(self, kept: PairStates, chosen: Int64Array) -> Iterator[tuple[Starts, Int64Array, Int64Array]]:
        """The starts of the present runs of these keys: some together, which of the keys have them, and which each."""
        drawn = self.fitted.rule.coins(kept.key[chosen], kept.run[chosen], np.zeros(len(chosen), np.int64))
        groups, places = np.divmod((drawn * STARTS).astype(np.int64), STARTS_AT_ONCE)
        for group in np.unique(groups).tolist():
            if group not in self._drawn:
                rng = generator(self.fitted.seed, Purpose.FLEET_STARTS, group)
                self._drawn[group] = quiet_starts(self.fitted, self._live, STARTS_AT_ONCE, rng)
            mine = np.flatnonzero(groups == group)
            yield self._drawn[group], mine, places[mine]

    def lacking(
        self, kept: PairStates, chosen: Int64Array, observed: Observed, first: Int64Array, last: Int64Array
    ) -> Observed:
        """Observed points, of which first..last of each of these keys are compared as their runs ask for.

        Those of young runs meet a reference without the points that the run began with.
        """
        time, (block, sums) = kept.time[chosen], observed
        young = np.flatnonzero((time < self.widest) & (last > first))
        if self.fitted.start != "warm" or not len(young):
            return observed
        first, sizes = first[young], np.minimum(last - first, self.widest - time)[young]
        for starts, mine, which in self._begun(kept, chosen[young]):
            columns = places_of(first[mine], sizes[mine])
            _, sums = starts.lacking((block, sums), columns, np.repeat(which, sizes[mine]))
        return block, sums.astype(np.float32).astype(np.float64)

    def observe(self, points: Float64Array) -> Entering:
        """As the live statistic does, with sums as states can hold them: so a batch may end anywhere."""
        block, sums = (self._live.compute.get(part) for part in self._live.observe(points, None))
        return Entering((np.ascontiguousarray(block), sums.astype(np.float32).astype(np.float64)), points)

    def take(
        self, kept: PairStates, chosen: Int64Array, observed: Observed, first: Int64Array, last: Int64Array
    ) -> None:
        """Let observed points first..last of each of these keys enter its window."""
        self._compute.pair_keys_take(kept.points, kept.sums, kept.filled, chosen, first, last, *observed)
        kept.entered[chosen] = np.minimum(kept.entered[chosen] + last - first, self.widest)

    def outcomes(
        self, kept: PairStates, chosen: Int64Array, observed: Observed, first: Int64Array, last: Int64Array
    ) -> Outcomes:
        """Of the tests that these points make, one key after the other."""
        live, sizes = self._live, last - first

        def some(start: int) -> Float64Array:
            return self._compute.pair_keys_advance(
                kept.points, kept.sums, kept.filled, live.windows, live.multipliers, live.offset, live.family.typical,
                live.family.places, live.family.signs, chosen, first, last, start,
                min(start + KEYS_AT_ONCE, len(chosen)), *observed,
            )  # fmt: skip

        values = np.concatenate(list(live.executor.map(some, range(0, len(chosen), KEYS_AT_ONCE))))
        own = np.repeat(chosen, sizes)
        time = places_of(kept.time[chosen] + 1, sizes)
        if self.fitted.start == "warm":
            young = np.flatnonzero(time < RECENT_WINDOWS * self.widest)
            for starts, mine, which in self._begun(kept, own[young]):
                values[young[mine]] += starts.due(which, time[young[mine]])
        return self.fitted.rule(values, kept.key[own], kept.run[own], time)

    def advance(
        self, kept: PairStates, chosen: Int64Array, observed: Entering, first: Int64Array, stop: Int64Array
    ) -> tuple[Int64Array, Int64Array, list[Outcome]]:
        """Let points first..stop of each of these keys enter, up to its first alarm; where that is, who rang, how."""
        sizes, seen = stop - first, self.lacking(kept, chosen, observed.observed, first, stop)
        outcomes = self.outcomes(kept, chosen, seen, first, stop)
        ear, news = self.fitted.ear, None
        if ear is not None:
            assert kept.news is not None
            news, found = listened(ear, kept.news, chosen, observed.points, first, stop)
            outcomes = ear.told(outcomes, found)
        begins = np.cumsum(sizes) - sizes
        loud = np.flatnonzero(outcomes.alarm)
        which, places = np.unique(np.searchsorted(begins, loud, side="right") - 1, return_index=True)
        loud = loud[places]
        last = stop.copy()
        last[which] = first[which] + loud - begins[which] + 1
        self.take(kept, chosen, seen, first, last)
        if ear is not None and news is not None and kept.news is not None:
            if len(which):
                news, _ = listened(ear, kept.news, chosen, observed.points, first, last)
            kept.news[chosen] = news
        return last, which, [outcomes[int(i)] for i in loud]

    def carry(self, kept: PairStates, k: int, old: PairStates, earlier: Any) -> bool:
        """Let a key go on from the window that an earlier detector has left of it; whether it can."""
        if not isinstance(earlier, PairWindows):
            return False
        observed = self.observe(earlier.window(old, 0)).observed
        kept.filled[k] = 0
        self.take(kept, np.array([k]), observed, np.zeros(1, np.int64), np.array([observed[0].shape[1]]))
        return True

    def window(self, kept: PairStates, k: int) -> Float64Array:
        """The points in a key's window, oldest first, as far as float32 tells them."""
        points = kept.points[k][:, self.widest - int(kept.filled[k]) :].T
        return np.asarray(points / self._live.scale + self._live.scaled.centre, dtype=np.float64)

    def explain(self, kept: PairStates, k: int, outcome: Outcome) -> Explanation:
        """What an alarm means that a key's last observation has raised."""
        from tocsin._explain.alarm import Alarm  # needs scipy, which watching does not

        place = int(kept.key[k]), int(kept.run[k]), outcome.time
        return Alarm.of(self.fitted, Run.of_window(self.window(kept, k), *place, outcome)).explain()
