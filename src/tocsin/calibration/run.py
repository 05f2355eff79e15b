"""Run a plan: simulate null paths block by block, keep their records, find the thresholds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tocsin.calibration.normalise import Normaliser
from tocsin.calibration.plan import Plan
from tocsin.calibration.recursion import Records, TooFewPathsError, thresholds
from tocsin.calibration.result import Calibration
from tocsin.compute import Functions
from tocsin.compute.arrays import Float32Array
from tocsin.errors import InputError
from tocsin.execution import Executor
from tocsin.progress import Progress
from tocsin.samplers import DrawnStreams, SplitStreams, Streams

NullPaths = Callable[[Streams], Float32Array]

PILOT_PATHS = 4000
PILOT_PATHS_OF_ONE_CHANNEL = 200

PILOT, MAIN = 1, 2
"""Which part of a calibration a block's seed is for."""


def calibrate(
    plan: Plan,
    null: NullPaths,
    channels: int,
    *,
    seed: int,
    compute: Functions,
    executor: Executor,
    progress: Progress,
) -> tuple[Calibration, Normaliser]:
    """Thresholds for the paths that `null` makes of the plan's streams, and the way channels become one path."""
    began = time.perf_counter()
    normaliser = _pilot(plan, null, channels, seed, compute, executor)

    def simulate(block: int) -> Records:
        rng = np.random.default_rng([seed, MAIN, block])
        count = min(plan.block, plan.paths - block * plan.block)
        streams = plan.sampler.draw(rng, count, compute)
        paths = normaliser.paths(null(streams), streams.coins[:, : plan.tests])
        return Records(count, *compute.records(paths, plan.edges))

    pieces = []
    for records in executor.map(simulate, range(plan.blocks)):
        pieces.append(records)
        progress(len(pieces), plan.blocks)
    try:
        stretches = thresholds(Records.merge(pieces), plan.edges, plan.alpha, falling=plan.mode == "steady")
    except TooFewPathsError as error:
        raise InputError(
            f"paths={plan.paths} is too few for ert={plan.ert:g} and windows up to {plan.windows[-1]}: all of them "
            "rang before the last threshold was set. Give more, or none, to have their number chosen."
        ) from error
    sizes = np.diff(plan.edges)
    sizes[-1] = 1
    split = isinstance(plan.sampler, SplitStreams)
    return (
        Calibration(
            mode=plan.mode,
            ert=plan.ert,
            thresholds=np.repeat([stretch.threshold for stretch in stretches], sizes),
            paths=plan.paths,
            tests=plan.tests,
            alarms=stretches[-1].alarms,
            references=plan.references,
            copies=plan.sampler.copies if isinstance(plan.sampler, DrawnStreams) else plan.paths,
            compared=plan.sampler.count - (plan.sampler.length if split else 0),
            seconds=time.perf_counter() - began,
        ),
        normaliser,
    )


def _pilot(plan: Plan, null: NullPaths, channels: int, seed: int, compute: Functions, executor: Executor) -> Normaliser:
    """A few short paths, to measure the channels against each other (and one alone, for the size of its ties)."""
    widest = plan.windows[-1]
    paths = PILOT_PATHS if channels > 1 else PILOT_PATHS_OF_ONE_CHANNEL
    length = min(plan.sampler.length, 2 * widest if channels > 1 else widest)
    sampler = replace(plan.sampler, length=length)
    size = max(1, min(plan.block, paths))

    def simulate(block: int) -> Float32Array:
        rng = np.random.default_rng([seed, PILOT, block])
        return null(sampler.draw(rng, size, compute))

    pieces = list(executor.map(simulate, range(-(-paths // size))))
    return Normaliser.learn(np.concatenate(pieces, axis=1), plan.alpha)
