"""The alarm rule, compiled for the CPU. `numpy_` has the same functions in plain NumPy."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import MIXERS, RUN_STRIDE, STREAM_STRIDE, TEST_STRIDE, Float64Array, Int64Array, UInt64Array
from tocsin._compute.jit import literal

# Compiled code must not turn these into floats, as it does where signed and unsigned numbers meet.
_BY_RUN, _BY_STREAM, _BY_TEST = np.uint64(RUN_STRIDE), np.uint64(STREAM_STRIDE), np.uint64(TEST_STRIDE)
_FIRST, _SECOND = np.uint64(MIXERS[0]), np.uint64(MIXERS[1])
_11, _27, _30, _31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)

_NO_SEED, _NO_STREAM, _NO_RUN = np.uint64(0), np.zeros(1, np.uint64), np.zeros(1, np.int64)


def decide(
    values: Float64Array,
    coins: Float64Array,
    tests: Int64Array,
    centre: Float64Array,
    scale: Float64Array,
    tie: float,
    grid: float,
    origin: float,
    thresholds: Float64Array,
) -> tuple[Float64Array, Float64Array, Int64Array]:
    statistic, threshold, loudest = coins.copy(), np.empty(len(values)), np.empty(len(values), np.int64)
    _judge(
        values, _NO_SEED, _NO_STREAM, _NO_RUN, tests, 0, centre, scale, tie, grid, origin, thresholds, False,
        statistic, threshold, loudest,
    )  # fmt: skip
    return statistic, threshold, loudest


def judge(
    values: Float64Array,
    seed: np.uint64,
    stream: UInt64Array,
    run: Int64Array,
    time: Int64Array,
    untested: int,
    centre: Float64Array,
    scale: Float64Array,
    tie: float,
    grid: float,
    origin: float,
    thresholds: Float64Array,
) -> tuple[Float64Array, Float64Array, Int64Array]:
    statistic, threshold, loudest = np.empty(len(values)), np.empty(len(values)), np.empty(len(values), np.int64)
    _judge(
        values, seed, stream, run, time, untested, centre, scale, tie, grid, origin, thresholds, True,
        statistic, threshold, loudest,
    )  # fmt: skip
    return statistic, threshold, loudest


def judge_one(
    values: Float64Array,
    seed: np.uint64,
    run: int,
    time: int,
    untested: int,
    centre: Float64Array,
    scale: Float64Array,
    tie: float,
    grid: float,
    origin: float,
    thresholds: Float64Array,
) -> tuple[float, float, int]:
    return _test(values, 0, seed, run, time, untested, centre, scale, tie, grid, origin, thresholds, True, 0.0)


@literal
def _judge(
    values: Float64Array,
    seed: np.uint64,
    stream: UInt64Array,
    run: Int64Array,
    time: Int64Array,
    untested: int,
    centre: Float64Array,
    scale: Float64Array,
    tie: float,
    grid: float,
    origin: float,
    thresholds: Float64Array,
    toss: bool,
    statistic: Float64Array,
    threshold: Float64Array,
    loudest: Int64Array,
) -> None:
    """Without a `toss`, `statistic` holds the coins when it begins."""
    for i in range(values.shape[0]):
        start = seed + stream[i if stream.size > 1 else 0] * _BY_STREAM
        number, now = run[i if run.size > 1 else 0], time[i if time.size > 1 else 0]
        statistic[i], threshold[i], loudest[i] = _test(
            values, i, start, number, now, untested, centre, scale, tie, grid, origin, thresholds, toss, statistic[i]
        )


@literal
def _test(
    values: Float64Array,
    i: int,
    start: np.uint64,
    run: int,
    time: int,
    untested: int,
    centre: Float64Array,
    scale: Float64Array,
    tie: float,
    grid: float,
    origin: float,
    thresholds: Float64Array,
    toss: bool,
    coin: float,
) -> tuple[float, float, int]:
    """Of observation i; with a `toss` its coin is hashed, from `start`: what the seed and its stream make of it."""
    if toss:
        x = start + np.uint64(run) * _BY_RUN
        x += (np.uint64(time) + np.uint64(1)) * _BY_TEST
        x = (x ^ (x >> _30)) * _FIRST
        x = (x ^ (x >> _27)) * _SECOND
        coin = np.float64((x ^ (x >> _31)) >> _11) * 2.0**-53
    best, loudest = (values[i, 0] - centre[0]) / scale[0], 0
    for k in range(1, values.shape[1]):
        score = (values[i, k] - centre[k]) / scale[k]
        if score > best or (np.isnan(score) and not np.isnan(best)):
            best, loudest = score, k
    if grid > 0:
        best = np.rint((best - origin) / grid) * grid + origin
    test = time - untested
    if test < 0:
        return np.nan, np.nan, loudest
    return best + tie * coin, thresholds[min(test, thresholds.size - 1)], loudest
