"""What to simulate: how streams are drawn, how long they are, how many, and which tests share a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from tocsin.compute.arrays import Int64Array
from tocsin.errors import InputError
from tocsin.samplers import DrawnStreams, Sampler, SplitStreams

Mode = Literal["steady", "paper", "fixed"]

References = Literal["bootstrap", "direct", "split"]
"""What null streams are tested against: bootstrap copies of the reference; the reference itself; or what is left of it.

Bootstrap copies mirror the truth best. On data with few distinct values, though, a statistic has atoms, and their
places depend on the reference: there, streams must meet the very reference that the live stream will."""

PAPER_PATHS = 25_000
"""Paths of the paper's experiments, and the default of its two modes."""

MOST_PATHS = 4_000_000
"""More streams than this are refused: their records would fill the memory."""

FEWEST_ALARMS = 0.5
"""A threshold that is expected to rest on fewer alarms says nothing at all."""

STEADY_WINDOWS = 4
"""Tests after the transient, in windows. Longer paths spend less on filling the window, shorter ones are more, which
the thresholds of the first tests need."""


@dataclass(frozen=True)
class Plan:
    """A calibration to be run.

    mode: 'steady', 'paper' or 'fixed'.  alpha: the rate of false alarms per test, 1 / ERT.
    references: what streams are tested against.  sampler: draws them.
    edges: tests edges[b] to edges[b + 1] - 1 share a threshold.
    paths: how many streams.  block: how many of them are simulated in one piece, from one seed.
    """

    mode: Mode
    ert: float
    windows: tuple[int, ...]
    references: References
    sampler: Sampler
    edges: Int64Array
    paths: int
    block: int

    @property
    def alpha(self) -> float:
        return 1 / self.ert

    @property
    def tests(self) -> int:
        return int(self.edges[-1])

    @property
    def blocks(self) -> int:
        return -(-self.paths // self.block)


def make_plan(
    mode: Mode,
    ert: float,
    windows: tuple[int, ...],
    count: int,
    *,
    bootstraps: bool,
    discrete: bool,
    error: float,
    paths: int | None,
) -> Plan:
    """Plan a calibration of `count` reference points to a Monte Carlo error `error` of the rate of alarms.

    bootstraps: whether the statistic can be tested against bootstrap references.
    discrete: whether the reference has so few distinct values that ties matter.
    """
    widest, alpha = windows[-1], 1 / ert
    sampler: Sampler
    references: References = "split"
    if mode == "steady":
        steady = STEADY_WINDOWS * widest
        if discrete or bootstraps:
            references = "direct" if discrete else "bootstrap"
            steady = min(steady, max(widest, math.ceil(ert)))
            sampler = DrawnStreams(count, 2 * widest - 1 + steady, copies=1 if discrete else _copies(count))
        else:
            # Streams take their points from the reference: not more than a quarter of it, if windows allow.
            length = max(2 * widest, min(2 * widest - 1 + steady, count // 4))
            steady = length - 2 * widest + 1
            sampler = SplitStreams(count, length)
        edges = transient_edges(widest, steady)
        reach_steady, ring = (1 - alpha) ** widest, 1 - (1 - alpha) ** steady
        needed = math.ceil(1 / (error**2 * reach_steady * ring))
        if paths is None and needed > MOST_PATHS:
            raise InputError(
                f"ert={ert:g} would take {needed:,} simulated streams for an error of {error:.1%}, and at most "
                f"{MOST_PATHS:,} are simulated. Ask for a shorter expected run time or a larger error=..., or give "
                "paths=... to insist."
            )
        if paths is not None and paths * reach_steady * ring < FEWEST_ALARMS:
            raise InputError(
                f"paths={paths} is too few for ert={ert:g}: not one of them need ring in the time simulated. Give "
                f"{math.ceil(100 / (reach_steady * ring)):,} or more, or none, to have their number chosen."
            )
        paths = paths or needed
    elif mode == "paper":
        sampler, edges = SplitStreams(count, 2 * widest - 1), np.arange(widest + 1)
        paths = paths or PAPER_PATHS
    elif mode == "fixed":
        sampler, edges = SplitStreams(count, widest), np.array([0, 1])
        paths = paths or PAPER_PATHS
    else:
        known = ", ".join(repr(name) for name in get_args(Mode))
        raise InputError(f"calibration={mode!r} is unknown; choose one of {known}.")
    if mode != "steady" and paths < ert:
        raise InputError(
            f"paths={paths} is too few for ert={ert:g}: a threshold that one path in {ert:g} exceeds needs at least as "
            f"many paths. Give paths={math.ceil(20 * ert)} or more, or calibration='steady', which pools over time."
        )
    work = sampler.length * (widest if mode == "steady" else sampler.length)
    return Plan(mode, ert, windows, references, sampler, edges, paths, block=min(max(2**20 // work, 4), 4096))


def transient_edges(widest: int, steady: int) -> Int64Array:
    """Stretches for the first `widest` tests, each a quarter as long as the time before it; then one for the rest.

    Thresholds fall quickly at first and ever more slowly, so tests far from the start can share theirs.
    """
    edges = [0]
    while edges[-1] < widest:
        edges.append(min(edges[-1] + max(1, edges[-1] // 4), widest))
    return np.array([*edges, widest + steady])


def _copies(count: int) -> int:
    """Pseudo-references: more for small references, where each costs little and differs much from the others."""
    return min(max(2**18 // count, 64), 512)
