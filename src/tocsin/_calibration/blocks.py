"""What is done with one block of null paths. It needs nothing but what it is given, so any process may do it.

Every block has a seed of its own, and comes out the same wherever, whenever and however often it is simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.plan import Plan
from tocsin._calibration.recursion import Records, floors
from tocsin._common.seeds import Purpose, generator
from tocsin._compute import Functions
from tocsin._compute.arrays import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array
from tocsin._samplers import Streams

NullPaths = Callable[[Streams], Float32Array]


@runtime_checkable
class Loudest(Protocol):
    """Null paths that can tell their loudest channel without the others."""

    def against(self, copies: Int32Array) -> Passages:
        """Each stream against all of these pseudo-references."""

    def loudest(
        self,
        streams: Streams,
        centre: Float64Array,
        scale: Float64Array,
        ties: Float64Array,
        grid: float,
        origin: float,
    ) -> Float64Array:
        """What `compute.loudest` makes of their channels."""


class Passages(Protocol):
    """Null paths of streams against many pseudo-references each, up to their first passages."""

    def passages(
        self,
        streams: Streams,
        centre: Float64Array,
        scale: Float64Array,
        ties: Float64Array,
        levels: Float64Array,
        usual: float,
    ) -> Int64Array:
        """The test at which each exceeds its level, or their number; (streams, copies).  usual: the mean of paths."""


@dataclass(frozen=True, eq=False)
class NullBlocks:
    """The streams of a plan, and what makes paths of them: all that the blocks of a calibration share.

    Methods take the block last, and give a summary of its paths; but for `pilot`.
    """

    plan: Plan
    null: NullPaths
    seed: int
    compute: Functions

    def streams(self, block: int) -> Streams:
        """As they are drawn; again the same, if asked for again."""
        return self.plan.sampler.draw(self._rng(Purpose.MAIN, block), self._count(block), self.compute)

    def points(self, block: int) -> Int32Array:
        """Of the streams, alone."""
        return self.plan.sampler.points(self._rng(Purpose.MAIN, block), self._count(block), self.compute)

    def _count(self, block: int) -> int:
        return min(self.plan.block, self.plan.paths - block * self.plan.block)

    def pilot(self, paths: int, length: int, block: int) -> Float32Array:
        """Short paths of every channel, (channels, paths, tests)."""
        sampler = replace(self.plan.sampler, length=length)
        return self.null(sampler.draw(self._rng(Purpose.PILOT, block), paths, self.compute))

    def first_records(self, normaliser: Normaliser, enough: int, block: int) -> tuple[Float64Array, Records]:
        """Before floors are known: the maxima (paths, stretches) that tell them, and all records.

        enough: paths to judge floors by. A block that has as many, or all, leaves out at once what is below.
        """
        plan, paths = self.plan, self._paths(normaliser, self.streams(block))
        maxima = self.compute.stretch_maxima(paths[:enough], plan.edges)
        alone = min(enough, plan.paths) <= plan.block
        low = floors(maxima, plan.edges, plan.alpha) if alone else np.full(len(plan.edges) - 1, -np.inf)
        return maxima, self._records(paths, low)

    def records(self, normaliser: Normaliser, low: Float64Array, block: int) -> Records:
        """Without those below the floors `low`."""
        return self._records(self._paths(normaliser, self.streams(block)), low)

    def passages(
        self,
        normaliser: Normaliser,
        together: Passages | None,
        copies: Int32Array,
        levels: Float64Array,
        start: int,
        usual: float,
        block: int,
    ) -> tuple[BoolArray, Int64Array]:
        """Of other streams, each against all these pseudo-references: whether it rings, and how many tests it makes.

        Both (streams, copies), and from the test `start` on.  usual: the mean of paths.
        together: does it all at once, if it can be done.
        """
        drawn = self.plan.sampler.draw(self._rng(Purpose.SPREAD, block), self.compute.SPREAD_STREAMS, self.compute)
        if together is not None:
            ties = normaliser.tie * drawn.coins[:, : self.plan.tests]
            last = together.passages(drawn, normaliser.centre, normaliser.scale, ties, levels, usual)
            made = np.minimum(last, self.plan.tests - 1)
            return (last < self.plan.tests) & (last >= start), np.maximum(made - start + 1, 0)
        streams = replace(drawn, copies=np.tile(copies, (len(drawn.points), 1)))
        rang, tests = self.compute.first_passages(self._paths(normaliser, streams), levels, start)
        return rang.reshape(-1, len(copies)), tests.reshape(-1, len(copies))

    def _rng(self, purpose: Purpose, block: int) -> np.random.Generator:
        return generator(self.seed, purpose, block)

    def _paths(self, normaliser: Normaliser, streams: Streams) -> Float64Array:
        coins = streams.coins[:, : self.plan.tests]
        if self._loudest is None:
            return normaliser.paths(self.null(streams), coins, self.compute)
        return self._loudest.loudest(
            streams, normaliser.centre, normaliser.scale, normaliser.tie * coins, normaliser.grid, normaliser.origin
        )

    @cached_property
    def _loudest(self) -> Loudest | None:
        # To look for it takes as long as many a block.
        return self.null if isinstance(self.null, Loudest) else None

    def _records(self, paths: Float64Array, low: Float64Array) -> Records:
        edges = self.plan.edges
        return Records(len(paths), low, *self.compute.records(paths, edges, Records.least(low)))
