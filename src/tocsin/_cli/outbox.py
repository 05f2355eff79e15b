"""Alarms that are still to be told, by each way of telling them: at least once, and kept until then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any

Alarm = dict[str, Any]
"""An object for JSON, with an 'id' that it keeps however often it is told."""

WAYS = ("output", "file", "action")
"""How alarms are told: on standard output, in a file, and by what they set off."""

MOST = 1000
"""Alarms kept; those that ring when so many wait push out the oldest."""


class Outbox:
    """What waits, oldest first. Threads may share it.

    ways: names of the ways by which each alarm is to be told.  kept: what `parts` gave, of an earlier one.
    """

    def __init__(self, ways: Sequence[str], kept: Iterable[Any] = ()) -> None:
        self._ways, self._lock = tuple(ways), Lock()
        self._waiting: dict[str, tuple[Alarm, set[str]]] = {}
        self.pushed_out = 0
        for entry in kept:
            still = set(entry["ways"]) & set(ways)
            if still:
                self._waiting[entry["alarm"]["id"]] = dict(entry["alarm"]), still

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, alarm: Alarm) -> None:
        """An alarm rang; `pushed_out` counts those that it, or others before it, left no room for."""
        with self._lock:
            if not self._ways:
                return
            self._waiting[alarm["id"]] = alarm, set(self._ways)
            while len(self._waiting) > MOST:
                del self._waiting[next(iter(self._waiting))]
                self.pushed_out += 1

    def told(self, alarm: Alarm, way: str) -> None:
        """It need not be told this way again."""
        with self._lock:
            _, ways = self._waiting.get(alarm["id"], (alarm, set()))
            ways.discard(way)
            if not ways:
                self._waiting.pop(alarm["id"], None)

    def waiting(self, way: str) -> list[Alarm]:
        """Alarms that are to be told this way."""
        with self._lock:
            return [alarm for alarm, ways in self._waiting.values() if way in ways]

    def parts(self) -> list[dict[str, Any]]:
        """What a file holds."""
        with self._lock:
            return [{"alarm": alarm, "ways": sorted(ways)} for alarm, ways in self._waiting.values()]
