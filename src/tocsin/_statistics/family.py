"""Several statistics as one: their channels side by side."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from tocsin._compute import Functions, on_host
from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._samplers import Streams
from tocsin._statistics.base import Channel, GoingOn, Live, NullPaths, Parts, Points, Prepared, WindowState
from tocsin._statistics.without import share


class PreparedFamily:
    """Prepared statistics that share one reference and one set of null streams."""

    def __init__(self, members: list[Prepared], compute: Functions) -> None:
        self.members, self._compute = members, compute
        self.channels: tuple[Channel, ...] = sum((member.channels for member in members), ())
        self.bootstraps = all(member.bootstraps for member in members)
        self.takes_blocks = all(member.takes_blocks for member in members)
        self.compares_points = any(member.compares_points for member in members)

    def bootstrap_paths(self, weights: Float32Array, reflected: int = 0) -> NullPaths:
        return self._together([member.bootstrap_paths(weights, reflected) for member in self.members])

    def split_paths(self) -> NullPaths:
        return self._together([member.split_paths() for member in self.members])

    def direct_paths(self) -> NullPaths:
        return self._together([member.direct_paths() for member in self.members])

    def _together(self, paths: list[NullPaths]) -> NullPaths:
        return FamilyPaths(paths, self._compute) if len(paths) > 1 else paths[0]

    def similarity(self, first: Int64Array, second: Int64Array) -> Float64Array:
        """By the first statistic that can tell."""
        return next(member for member in self.members if member.compares_points).similarity(first, second)

    def live(self, kept: Int64Array | None) -> LiveFamily:
        return LiveFamily([member.live(kept) for member in self.members])


@dataclass(frozen=True, eq=False)
class FamilyPaths:
    """Null paths of several statistics, one after the other."""

    members: list[NullPaths]
    compute: Functions

    def __call__(self, streams: Streams) -> Float32Array:
        return self.compute.concatenate([member(streams) for member in self.members])


class LiveFamily:
    """Live statistics that see the same points at the same time."""

    def __init__(self, members: list[Live]) -> None:
        self.members = members
        self.channels: tuple[Channel, ...] = sum((member.channels for member in members), ())
        self.takes_tensors = all(member.takes_tensors for member in members)
        self.at_once = all(member.at_once for member in members)
        self.goes_on = any(member.goes_on for member in members)
        # Asked for once: to ask a protocol takes longer than a step.
        self._learner = self._going_on if self.goes_on and self._going_on.has_baselines else None
        self._windows = np.array([channel.window for channel in self.channels])
        self._widest = int(self._windows.max(initial=0))
        ends = list(accumulate(len(member.channels) for member in members))
        self._columns = [slice(end - len(member.channels), end) for member, end in zip(members, ends, strict=True)]

    def observe(self, points: Points, own: Int64Array | None) -> list[object]:
        return [member.observe(points, own) for member in self.members]

    def leave_out(self, observed: list[Any], own: Int64Array, count: int) -> tuple[list[object], list[Parts]]:
        met, left = zip(
            *(member.leave_out(seen, own, count) for member, seen in zip(self.members, observed, strict=True)),
            strict=True,
        )
        return list(met), list(left)

    def lacking(self, left: list[Parts], observed: list[Any], start: int, stop: int) -> list[object]:
        each = zip(self.members, left, observed, strict=True)
        return [member.lacking(own, seen, start, stop) for member, own, seen in each]

    def due(self, left: list[Parts]) -> Float64Array:
        """What is to be added to the channels, (channels,), as far as their windows have met the reference so."""
        return np.concatenate([member.due(parts) for member, parts in zip(self.members, left, strict=True)])

    def share(self, time: Int64Array) -> Float64Array:
        """How far they have, after so many observations of a run; (n, channels)."""
        return share(self._windows, self._widest, time)

    def begin(self, run: int) -> list[WindowState]:
        return [member.begin(run) for member in self.members]

    def renew(self, states: list[WindowState]) -> list[WindowState]:
        return [member.renew(state) for member, state in zip(self.members, states, strict=True)]

    def advance(self, states: list[WindowState], observed: list[object], start: int, stop: int) -> Float64Array:
        if len(self.members) == 1:
            return self.members[0].advance(states[0], observed[0], start, stop)
        each = zip(self.members, states, observed, strict=True)
        return np.concatenate(
            [on_host(member.advance(state, seen, start, stop)) for member, state, seen in each], axis=1
        )

    def listen(self, states: list[WindowState], observed: list[object]) -> tuple[Float64Array, Int64Array]:
        """`advance` of those that go on, who stand alone and measure for themselves: how loud the loudest channel is,
        (n, 1), and which that is."""
        return self._going_on.listen(states[0], observed[0])

    @property
    def has_baselines(self) -> bool:
        """Whether streams have levels of their own."""
        return self._learner is not None

    def learns(self, states: list[WindowState]) -> int:
        """Observations that a stream still gives for its own level, before it is watched relative to that."""
        return 0 if self._learner is None else self._learner.learns(states[0])

    def at_level(self, level: float, reference: Points, edges: Int64Array | None) -> LiveFamily:
        """The same, for another threshold, which those that go on must know."""
        if not self.goes_on:
            return self
        assert edges is not None
        return LiveFamily([self._going_on.at_level(level, reference, edges)])

    @property
    def _going_on(self) -> GoingOn:
        (member,) = self.members
        assert isinstance(member, GoingOn)
        return member

    def places(self, states: list[WindowState]) -> list[int]:
        """Where the windows are, if a point enters them at once: those in which one has are elsewhere."""
        return [state["position"].item() for state in states]

    def enter(
        self,
        states: list[WindowState],
        point: Points,
        values: Float64Array,
        places: list[int],
        left: list[Parts] | None,
    ) -> None:
        """Let one point enter the windows that are still at these places; their channels are left in `values`.

        left: what the reference lacks that it meets, if it does.
        """
        for i, member in enumerate(self.members):
            if states[i]["position"].item() == places[i]:
                out = values[:, self._columns[i]]
                if left is None:
                    member.enter(states[i], point, out)
                else:
                    member.enter_lacking(left[i], states[i], point, out)

    def parts(self) -> list[Parts]:
        return [member.parts() for member in self.members]
