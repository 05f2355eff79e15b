"""What to simulate: how streams are drawn, how long they are, how many, and which tests share a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from tocsin._common.checks import one_of
from tocsin._common.errors import Code, InputError, Option
from tocsin._compute.arrays import Int64Array
from tocsin._samplers import DrawnStreams, Source, SplitStreams, StreamSampler

Mode = Literal["steady", "paper", "fixed"]

Precision = float | Literal["auto"]

References = Literal["bootstrap", "direct", "split", "worlds"]
"""What null streams are tested against: bootstrap copies of the reference; the reference itself; or what is left of it.

Bootstrap copies mirror the truth best. On data with few distinct values, though, a statistic has atoms, and their
places depend on the reference: there, streams must meet the very reference that the live stream will."""

PAPER_PATHS = 25_000
"""Paths of the paper's experiments, and the default of its two modes."""

COARSEST, FINEST, OF_OWN = 0.05, 0.03, 1 / 3
"""Bounds of the Monte Carlo error to which 'auto' simulates, and between them which part of what the reference's own
finite size does to the rate: more streams would hardly narrow the interval."""

MOST_TESTS = 2**24
"""Tests that are simulated, once the transients are over. Rarer alarms are extrapolated from what these show."""

FEWEST_ALARMS = 20
"""Alarms that a threshold, or the tail from which it is extrapolated, rests on at least."""

BLOCK_ALARMS = 100
"""Alarms that a reference drawn in blocks must hold, at the rate that is simulated. Blocks do not mix points as single
draws do: a reference of N points holds no more than about N / ERT of them, however many streams are drawn from it."""

TAIL_WINDOWS = 2
"""More often than once in this many windows is no tail to extrapolate from."""

SPREAD_ALARMS = 100
"""Alarms of each pseudo-reference that is looked at for how much they differ."""

STEADY_WINDOWS = 4
"""Tests after the transient, in windows. Longer paths spend less on filling the window, shorter ones are more, which
the thresholds of the first tests need."""

LARGE, MANY_ALARMS, LONG_STEADY_WINDOWS, TOGETHER = 5000, 1000, 8, 4
"""References to which 'auto' gives its finest error, and alarms that leave the first tests enough streams though these
are twice as long. More of these are simulated in one piece, since what a pseudo-reference says of so many points is
read from memory once in a piece."""


@dataclass(frozen=True)
class Plan:
    """A calibration to be run.

    mode: 'steady', 'paper' or 'fixed'.
    simulated: the run time that thresholds are simulated for: `ert`, or less if alarms are to be so rare that they are
        extrapolated.  alpha: the rate of false alarms per test that goes with it.
    references: what streams are tested against.  sampler: draws them.
    edges: tests edges[b] to edges[b + 1] - 1 share a threshold.
    paths: how many streams.  most: how many it may come to, if those show that the reference deserves more.
    block: how many of them are simulated in one piece, from one seed.
    spread: how many streams meet many pseudo-references each; 0 for none.
    """

    mode: Mode
    ert: float
    simulated: float
    windows: tuple[int, ...]
    references: References
    sampler: StreamSampler
    edges: Int64Array
    paths: int
    most: int
    block: int
    spread: int

    @property
    def alpha(self) -> float:
        return 1 / self.simulated

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
    source: Source,
    *,
    bootstraps: bool,
    discrete: bool,
    error: Precision,
    paths: int | None,
    interval: bool = True,
    block_work: int = 2**20,
    stepwise: bool = True,
) -> Plan:
    """Plan a calibration with points of `source` to a Monte Carlo error `error` of the rate of alarms.

    error: 'auto' for as small an error as the reference deserves, which what is planned will tell.
    bootstraps: whether the statistic can be tested against bootstrap references.
    discrete: whether the reference has so few distinct values that ties matter.
    interval: whether the error that the reference causes is to be estimated too.
    block_work: pairs of points that streams simulated in one piece have, about.
    stepwise: whether 'auto' may begin with few streams; where they cost next to nothing, it has as many as it ever may.
    """
    one_of(Option("mode", mode), mode, get_args(Mode))
    automatic = error == "auto"
    widest, count, simulated, spread, finer, many = windows[-1], source.count, ert, 0, 1.0, False
    sampler: StreamSampler
    references: References = "split"
    if mode == "steady":
        error = FINEST if error == "auto" else error
        many = count >= LARGE and paths is None and error**-2 >= MANY_ALARMS
        steady = (LONG_STEADY_WINDOWS if many else STEADY_WINDOWS) * widest
        if discrete or bootstraps:
            references = "direct" if discrete else "bootstrap"
            steady = min(steady, max(widest, math.ceil(ert)))
            sampler = DrawnStreams(source, 2 * widest - 1 + steady, copies=1 if discrete else _copies(count))
        else:
            # Streams take their points from the reference: not more than a quarter of it, if windows allow.
            length = max(2 * widest, min(2 * widest - 1 + steady, count // 4))
            steady = length - 2 * widest + 1
            sampler = SplitStreams(source, length)
        edges = transient_edges(widest, steady)
        alarms = error**-2 if paths is None else min(error**-2, max(paths / 4, FEWEST_ALARMS))
        tests = MOST_TESTS if paths is None else paths * steady
        simulated = max(tests / alarms, 2.0, widest / 3)
        if source.length > 1 and references != "direct":
            simulated = min(simulated, max(count / BLOCK_ALARMS, TAIL_WINDOWS * widest))
        simulated = min(ert, simulated)
        if automatic and stepwise and paths is None and simulated == ert and references != "direct":
            # A tail, and the spread over laws, are known the worse the fewer alarms there are.
            finer = (COARSEST / FINEST) ** 2
            alarms /= finer
        if references == "direct" and simulated < ert:
            raise InputError(
                Option("ert", Code(f"{ert:g}")),
                f" is too rare for a reference with so few distinct values: alarms once in {simulated:.3g} can be "
                "simulated, and the statistic's few values leave no tail from which to extrapolate. Ask for a shorter "
                "expected run time, or give more ",
                Option("paths", ...),
                ", or a wider window.",
            )
        ring = _rings(simulated, widest, steady)
        if paths is not None and paths * ring < FEWEST_ALARMS / 2:
            raise InputError(
                Option("paths", paths),
                f" is too few: with windows up to {widest}, thresholds would rest on {paths * ring:.1f} alarms. Give "
                f"{math.ceil(FEWEST_ALARMS / ring):,} or more, or none, to have their number chosen.",
            )
        paths = paths or math.ceil(alarms / ring)
        if interval and references == "bootstrap":
            spread = min(paths, math.ceil(SPREAD_ALARMS / ring))
    elif mode == "paper":
        sampler, edges = SplitStreams(source, 2 * widest - 1), np.arange(widest + 1)
        paths = paths or PAPER_PATHS
    else:
        sampler, edges = SplitStreams(source, widest), np.array([0, 1])
        paths = paths or PAPER_PATHS
    if mode != "steady" and paths < ert:
        raise InputError(
            Option("paths", paths),
            " is too few for ",
            Option("ert", Code(f"{ert:g}")),
            f": a threshold that one path in {ert:g} exceeds needs at least as many paths. Give ",
            Option("paths", math.ceil(20 * ert)),
            " or more, or ",
            Option("mode", "steady"),
            ", which pools over time.",
        )
    work = sampler.length * (widest if mode == "steady" else sampler.length)
    block_work *= TOGETHER if many and stepwise else 1
    block = min(max(block_work // work, 4), block_work // 2**8)
    most = math.ceil(paths * finer)
    return Plan(mode, ert, simulated, windows, references, sampler, edges, paths, most, block, spread)


def _rings(ert: float, widest: int, steady: int) -> float:
    """The part of the streams that get through the transient and ring in the `steady` tests after it."""
    quiet = 1 - 1 / ert
    return float(quiet**widest * (1 - quiet**steady))


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
    return min(max(2**18 // count, 32), 512)
