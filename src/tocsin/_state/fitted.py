"""What `fit` makes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.result import Thresholds
from tocsin._common.caches import Caching
from tocsin._compute import Functions
from tocsin._compute.arrays import Int32Array, Int64Array
from tocsin._data.intake import Intake
from tocsin._state.news import Ear
from tocsin._state.rule import Rule
from tocsin._statistics.base import Channel, Points
from tocsin._statistics.family import LiveFamily

Start = Literal["warm", "cold"]
C = TypeVar("C", bound=Thresholds)


@dataclass(frozen=True, eq=False)
class Fitted(Caching, Generic[C]):
    """A reference, and all that was learned from it. It never changes: where a detector is in its stream is a `Run`.

    live: the statistics, which compare new points with the reference.
    windows: in use, shortest first.  intake: how observations become points.
    reference: points in use.  kept: those that live windows are compared with, if not all.
    resets: whether the observation after an alarm begins a new run.
    edges: of groups of the reference.  rows: which of the observations given these points are.
    hears: whether it hears what the reference never shows besides, by `ear`.
    rang: null windows that rang, as places in the reference; an explanation is judged by them.
    known: what explanations have learned from the reference; copies share it, and files do without.
    """

    live: LiveFamily
    normaliser: Normaliser
    calibration: C
    windows: tuple[int, ...]
    intake: Intake
    reference: Points
    kept: Int64Array | None
    start: Start
    seed: int
    functions: Functions
    resets: bool = True
    edges: Int64Array | None = None
    rows: Int64Array | None = None
    rang: Int32Array | None = None
    hears: bool = False
    known: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def widest(self) -> int:
        return self.windows[-1]

    @property
    def channels(self) -> tuple[Channel, ...]:
        """Those of statistics, and those of news behind them."""
        return self.live.channels + (self.ear.channels if self.ear else ())

    @cached_property
    def ear(self) -> Ear | None:
        """What hears news beside the statistics, if anything does."""
        if not self.hears:
            return None
        given = self.calibration, self.functions.nearby
        if self.live.goes_on:
            edges = np.array([0, len(self.reference)]) if self.edges is None else self.edges
            return Ear.of_views(self.intake, self.reference, edges, *given)
        return Ear.of(self.intake, self.reference, *given)

    @property
    def numeric(self) -> bool:
        """Whether points are rows of numbers."""
        return isinstance(self.reference, np.ndarray)

    @cached_property
    def rule(self) -> Rule:
        """When it rings."""
        untested = 0 if self.start == "warm" else self.widest
        if self.live.goes_on:
            untested += 1  # a window is that of a run when what it differs from, the row before, is too
        return Rule(self.normaliser, self.calibration, self.channels, untested, self.seed, self.functions.nearby)
