"""A detector whose alarms are incidents: one for each change, until it is over."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import Literal, Self, get_args

import numpy as np

from tocsin._common.checks import is_whole, one_of
from tocsin._common.errors import InputError, Option
from tocsin._common.wording import counted
from tocsin._detector import storage
from tocsin._detector.base import altered, begun, content_of, fitted_of, now, placed, taken_in
from tocsin._detector.checking import sizes_of
from tocsin._detector.detector import Detector, from_content
from tocsin._detector.stepping import SHORTEST_PIECE, advance, advance_until_alarm
from tocsin._execution.threads import undisturbed
from tocsin._explain.result import Explanation
from tocsin._incidents.files import check_monitor, parts_of, place_of
from tocsin._incidents.hearing import closed, lessons, listening, opened
from tocsin._incidents.incident import Incident
from tocsin._incidents.place import Place
from tocsin._incidents.returning import Return
from tocsin._state import Run
from tocsin._state.outcomes import Outcome, Outcomes
from tocsin._statistics.base import Points

After = Literal["wait", "ring"]
AFTER = get_args(After)


class Monitor:
    """Watches a stream with a fitted detector, and tells of each change once.

    An alarm opens an incident. While it lasts, however long, nothing rings: the monitor listens until the stream is
    like the reference again, which ends the incident, and then watches anew. So a change that lasts is one alarm, and
    the promise holds for the observations that are watched: a false alarm once in `ert` of them, on average.

    Parameters
    ----------
    detector
        A fitted detector. It is not changed: the monitor goes on from where it is with a copy.
    after
        What follows an alarm. 'wait': its incident, until the stream has returned. 'ring': nothing; each alarm is an
        incident that ends as it begins, and a change that stays rings again, as with a detector alone.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> detector = Detector(ert=500, window=10, seed=1).fit(rng.normal(size=(200, 2)))
    >>> monitor = Monitor(detector)
    >>> outcomes = monitor.update_many(rng.normal(loc=3, size=(200, 2)))
    >>> int(outcomes.alarm.sum()), monitor.incident.state
    (1, 'open')
    >>> _ = monitor.update_many(rng.normal(size=(60, 2)))
    >>> monitor.incidents[0].state
    'returned'
    """

    def __init__(self, detector: Detector, after: After = "wait") -> None:
        one_of(Option("after", after), after, AFTER)
        if not isinstance(detector, Detector):
            raise InputError(
                f"A monitor watches with a Detector, not with a {type(detector).__name__}. Give one that was fitted."
            )
        self.after = after
        self._watches = replace(fitted_of(detector), resets=False)
        self._listens = listening(self._watches)
        self._return = Return.of(self._listens)
        self._watcher, self._lock = altered(detector, resets=False), RLock()
        if self._watcher.alarm is not None:
            self._watcher.reset()
        self._place = Place(before=-self._watcher.time)

    # Watching

    def update(self, x: object) -> Outcome:
        """Take in one observation, as a detector does; but `alarm` is true only where an incident begins."""
        with self._lock:
            self._caught_up()
            if self._place.hears:
                return undisturbed(partial(self._listen, x))
            outcome = self._watcher.update(x)
            return undisturbed(partial(self._heard, outcome)) if outcome.alarm else outcome

    def update_many(self, block: object) -> Outcomes:
        """Take in a block of observations, in order: the same as repeated `update`, at array speed.

        Whatever goes wrong, or interrupts it, all of the block is taken in or nothing.
        """
        with self._lock:
            self._caught_up()
            points, position, size = (
                taken_in(self._watches, block, tensors=self._watches.live.takes_tensors),
                0,
                SHORTEST_PIECE,
            )
            place, run = self._place, now(self._watcher)[1]
            pieces = [advance(self._watches, run, points, [], 0, 0)]
            while position < len(points):
                if place.hears:
                    most = place.scene_at - run.time if place.scene_at else size
                    outcomes, place, run = self._listened(place, run, points[position : position + min(size, most)])
                    size = 2 * size if place.hears else SHORTEST_PIECE
                else:
                    outcomes, run = advance_until_alarm(self._watches, run, points[position:])
                    if run.alarm is not None:
                        rings, place, run = self._rang(place, run)
                        outcomes = replace(outcomes, alarm=outcomes.alarm & rings)
                pieces.append(outcomes)
                position += len(outcomes)
            undisturbed(partial(self._put, place, run))
            return Outcomes.join(pieces)

    def _listen(self, x: object) -> Outcome:
        return self._heard(self._watcher.update(x))

    def _caught_up(self) -> None:
        """An alarm that was interrupted before it was looked at."""
        rang = self._watcher.alarm
        if rang is not None and not self._place.hears:
            undisturbed(partial(self._heard, rang))

    def _heard(self, outcome: Outcome) -> Outcome:
        """What the latest observation means, which came while the stream was loud, or made it so."""
        place, rings = self._place, False
        if not place.hears:
            rings, place, run = self._rang(place, now(self._watcher)[1])
            self._put(place, run)
        else:
            statistic = np.array([outcome.statistic])
            at, calm = self._return.found(statistic, place.calm)
            place = place.heard(self.row, statistic, calm)
            if at is not None or self._watcher.time == place.scene_at:
                place, run = self._went_on(place, now(self._watcher)[1], returned=at is not None)
                self._put(place, run)
            else:
                self._place = place
        return outcome if outcome.alarm == rings else replace(outcome, alarm=rings)

    def _listened(self, place: Place, run: Run, piece: Points) -> tuple[Outcomes, Place, Run]:
        """Observations of an incident, up to a return."""
        observed, ahead = self._listens.live.observe(piece, None), run.copy()
        outcomes = advance(self._listens, ahead, piece, observed, 0, len(piece))
        at, calm = self._return.found(outcomes.statistic, place.calm)
        if at is not None and at + 1 < len(piece):
            ahead = run.copy()
            outcomes = advance(self._listens, ahead, piece, observed, 0, at + 1)
        place = place.heard(place.before + run.time + 1, outcomes.statistic, calm)
        outcomes = replace(outcomes, alarm=np.zeros(len(outcomes), bool))
        return outcomes, *self._went_on(place, ahead, returned=at is not None)

    def _rang(self, place: Place, run: Run) -> tuple[bool, Place, Run]:
        """After an alarm: whether it is to be told, and what follows."""
        row, outcome = place.before + run.time, run.alarm
        assert outcome is not None
        if place.flaps(row, self._return.flapping):
            if place.latest.state == "returned":
                place = place.with_latest(state="open", ended=None)
            place = place.pictured(run, place.latest.number)
            return False, self._hearing(place, run), opened(self._watches, run)
        told, lasts = row > place.muted_until, self.after == "wait"
        number = len(place.incidents) + 1
        incident = Incident(number, row, outcome, "open", None, (), outcome.statistic, row, not told)
        if not lasts:
            incident = replace(incident, state="returned", ended=row)
        place = place.opened(incident, run)
        if not lasts:
            return told, *self._anew(place, run)
        return told, self._hearing(place, run), opened(self._watches, run)

    def _hearing(self, place: Place, run: Run) -> Place:
        """From an alarm on; one widest window later most is known of it."""
        return replace(place, hears=True, calm=0, scene_at=run.time + self._watches.widest)

    def _went_on(self, place: Place, run: Run, *, returned: bool) -> tuple[Place, Run]:
        """After observations of an incident."""
        if place.scene_at and (returned or run.time == place.scene_at):
            place = self._known(place, run)
        if not returned:
            return place, run
        row = place.before + run.time
        place = place.with_latest(returns=(*place.latest.returns, row))
        if place.latest.open:
            place = place.with_latest(state="returned", ended=row)
        return self._anew(place, closed(self._watches, run, place.taught))

    def _known(self, place: Place, run: Run) -> Place:
        """With what is known of the alarm by now. Views explain it as it was then."""
        scene = place.scenes[place.latest.number]
        taught = lessons(self._watches, scene.run, run)
        place = place.pictured(run, place.latest.number) if taught is None else replace(place, scene_at=0)
        return replace(place, taught=taught)

    def _anew(self, place: Place, run: Run) -> tuple[Place, Run]:
        """In the run after this one."""
        after = begun(self._watcher, self._watches, run)
        return replace(place, before=place.before + run.time, hears=False, calm=0, scene_at=0, taught=None), after

    def _put(self, place: Place, run: Run) -> None:
        placed(self._watcher, self._listens if place.hears else self._watches, run)
        self._place = place

    # What people say

    def dismiss(self) -> None:
        """The open incident does not matter, or is none. Nothing rings until the stream is like the reference again."""
        with self._lock:
            self._caught_up()
            if self.incident is None:
                raise InputError("No incident is open, so none can be dismissed. `incidents` has those that were.")
            self._place = self._place.with_latest(state="dismissed", ended=self.row)

    def mute(self, rows: int) -> None:
        """Tell of no incident that begins within so many observations; 0: tell of the next. They are in `incidents`."""
        if not is_whole(rows, 0):
            raise InputError(Option("rows", rows), " must be a whole number, 0 or more: the observations from now on.")
        with self._lock:
            self._caught_up()
            self._place = replace(self._place, muted_until=self.row + int(rows))

    # What is known

    @property
    def detector(self) -> Detector:
        """What it watches with; a copy, at the place in the stream where the monitor is."""
        return altered(self._watcher)

    @property
    def row(self) -> int:
        """Observations taken in so far."""
        return self._place.before + self._watcher.time

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Those that there were, the first first; the last may be open."""
        return self._place.incidents

    @property
    def incident(self) -> Incident | None:
        """The one that is open; None if none is."""
        return self.incidents[-1] if self.incidents and self.incidents[-1].open else None

    def explain(self, number: int | None = None) -> Explanation:
        """What an incident means: the latest, or the one with this number. Times count observations, as `row` does.

        While it is young, it is explained by all that is known by now. Only the latest 16 can be.
        """
        from tocsin._explain.alarm import Alarm  # needs scipy, which watching does not

        with self._lock:
            self._caught_up()
            place = self._place
            if not place.incidents:
                raise InputError(f"There was no alarm in {counted(self.row, 'observation')}, so none can be explained.")
            number = place.latest.number if number is None else number
            if number not in place.scenes:
                known = ", ".join(map(str, place.scenes))
                raise InputError(f"Incident {number} cannot be explained; those that can are {known}.")
            scene = place.scenes[number]
            run, before = scene.run, scene.before
            if place.scene_at and number == place.latest.number and not self._watches.live.goes_on:
                run, before = now(self._watcher)[1], place.before
        return Alarm.of(self._watches, run).explain().moved_on(before)

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the monitor, with its detector and all its incidents, to one file; whole or not at all."""
        with self._lock:
            self._caught_up()
            detector = altered(self._watcher)
            placed(detector, self._watches, now(self._watcher)[1])
            own = parts_of(self._place, self.after, numeric=self._watches.numeric)
            content = {**content_of(detector), "kind": type(self).__name__, "monitor": own}
        storage.write(path, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str], preprocess: object = None, **place: object) -> Self:
        """Read a monitor; it goes on where it was saved. preprocess, backend, device: as in `Detector.load`."""
        content = storage.read(path, cls.__name__)
        detector = from_content(Detector, content, path, None, preprocess, **place)
        fitted, run = now(detector)
        with content.explained():
            sizes = sizes_of(content["fitted"], "fitted")
            saved = content.part("monitor", partial(check_monitor, sizes=sizes, fitted=fitted, run=run, after=AFTER))
            detector.reset()
            monitor = cls(detector, saved["after"])
        monitor._put(place_of(saved, fitted.widest), run)
        return monitor

    def __repr__(self) -> str:
        told = counted(len(self.incidents), "incident")
        last = f"; {self.incident}" if self.incident else ""
        return f"<Monitor(after={self.after!r}) after {counted(self.row, 'observation')}: {told}{last}>"
