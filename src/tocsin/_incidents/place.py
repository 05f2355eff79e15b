"""Where a monitor is in its stream, besides the run of its detector."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tocsin._compute.arrays import Float32Array, Float64Array
from tocsin._incidents.incident import Incident
from tocsin._state import Run

REMEMBERED = 16
"""Latest incidents that can be explained."""


@dataclass(frozen=True)
class Scene:
    """The run that rang, when most was known of it. before: observations before it."""

    run: Run
    before: int


@dataclass(frozen=True)
class Place:
    """All that changes besides the run.

    before: observations before the run; less than 0 if it began before the monitor.
    hears: whether the run has rung, and is heard on until the stream has returned.
    calm: rows in a row that speak for a return.
    scene_at: the time in the run at which most is known of its alarm; 0 if no better is to come.
    taught: running scales of views as the alarm has taught them, once that is known.
    muted_until: the observation up to which nobody is told.
    scenes: of the latest incidents, by their numbers.
    """

    before: int = 0
    hears: bool = False
    calm: int = 0
    scene_at: int = 0
    taught: Float32Array | None = None
    muted_until: int = 0
    incidents: tuple[Incident, ...] = ()
    scenes: dict[int, Scene] = field(default_factory=dict)

    @property
    def latest(self) -> Incident:
        return self.incidents[-1]

    def flaps(self, row: int, within: int) -> bool:
        """Whether an alarm says that the latest return was none."""
        ended = self.latest.returns[-1] if self.incidents and self.latest.returns else None
        return ended is not None and row - ended <= within

    def opened(self, incident: Incident, run: Run) -> Place:
        """With another incident, which this run tells of."""
        return replace(self, incidents=(*self.incidents, incident)).pictured(run, incident.number)

    def pictured(self, run: Run, number: int) -> Place:
        """With a run that tells of an incident."""
        scenes = {**self.scenes, number: Scene(run.copy(), self.before)}
        while len(scenes) > REMEMBERED:
            del scenes[min(scenes)]
        return replace(self, scenes=scenes, scene_at=0)

    def heard(self, row: int, statistic: Float64Array, calm: int) -> Place:
        """After observations from this one on, the latest of them calm."""
        loudest = int(statistic.argmax())
        place = replace(self, calm=calm)
        if statistic[loudest] > self.latest.peak:
            place = place.with_latest(peak=float(statistic[loudest]), peak_row=row + loudest)
        return place

    def with_latest(self, **parts: Any) -> Place:
        """With other parts of the latest incident."""
        return replace(self, incidents=(*self.incidents[:-1], replace(self.latest, **parts)))
