"""Alarms with all that an explanation needs: streams that change after a quiet while, and streams that never do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._detector.base import altered
from tocsin._detector.detector import Detector
from tocsin._experiments.laws import Law
from tocsin._statistics.base import Channel

TOGETHER = 32
"""Streams that are watched at once."""

MOST_TRIES = 8
"""Streams that are watched, at most, for each alarm that is wanted."""

QUIET_BLOCK = 20_000


@dataclass(frozen=True, eq=False)
class Alarm:
    """What a detector held when it rang.

    recent: the latest rows, two widest windows of them, oldest first.  later: rows that came after.
    channel: that which spoke.  delay: rows since the change, the one that rang included.
    """

    recent: Float64Array
    later: Float64Array
    channel: Channel
    delay: int

    @property
    def onset(self) -> int:
        """Where in `recent` the change is."""
        return len(self.recent) - self.delay


def alarms_after_changes(
    detector: Detector, before: Law, after: Law, rng: np.random.Generator, wanted: int, later: int = 0
) -> tuple[list[Alarm], float]:
    """Alarms within two widest windows of a change, and the part of the changes that were found by then.

    The change comes after one to three windows without an alarm. The detector starts cold, so that its statistic can be
    computed for many streams at once.
    """
    widest, thresholds = detector.windows_[-1], detector.thresholds_
    length, most = 5 * widest + later, 2 * widest
    found: list[Alarm] = []
    changes = 0
    while len(found) < wanted and changes < MOST_TRIES * wanted:
        quiet = rng.integers(widest + 1, 3 * widest + 1, TOGETHER)
        streams = np.stack([np.concatenate([before(rng, n), after(rng, length - n)]) for n in quiet])
        detector.reset()
        outcomes = altered(detector, resets=False, hears=False).update_many(streams.reshape(TOGETHER * length, -1))
        statistic, loudest = (x.reshape(TOGETHER, length) for x in (outcomes.statistic, outcomes.loudest))
        test = np.arange(length) - (widest - 1)
        level = np.where(test < 0, np.inf, thresholds[np.clip(test, 0, len(thresholds) - 1)])
        for rows, change, rings, spoke in zip(streams, quiet, statistic > level, loudest, strict=True):
            if rings[:change].any():
                continue
            changes += 1
            if not rings[change : change + most].any():
                continue
            end = int(rings.argmax()) + 1
            recent, coming = rows[max(end - most, 0) : end].copy(), rows[end : end + later].copy()
            found.append(Alarm(recent, coming, outcomes.channels[spoke[end - 1]], end - int(change)))
    return found[:wanted], len(found) / max(changes, 1)


def false_alarms(detector: Detector, law: Law, rng: np.random.Generator, wanted: int) -> list[Alarm]:
    """Alarms on streams without a change, each after two widest windows at least; the delay means nothing."""
    held = 2 * detector.windows_[-1]
    found: list[Alarm] = []
    while len(found) < wanted:
        rows = law(rng, QUIET_BLOCK)
        detector.reset()
        outcomes = detector.update_many(rows)
        found += [
            Alarm(rows[end - held + 1 : end + 1], rows[:0], outcomes.channels[outcomes.loudest[end]], 0)
            for end in np.flatnonzero(outcomes.alarm)
            if end >= held
        ]
    return found[:wanted]
