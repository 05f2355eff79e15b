"""The alarm rule: coins, loudest channels, thresholds, and what is not tested."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import naive
from backends import with_torch
from tocsin import MMD, Detector, DetectorBank, Fleet, Gaussian
from tocsin._compute import Backend, load
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._detector.base import altered
from tocsin._state import ALONE, Start
from tocsin._state.outcomes import Outcomes


def numbers(*values: int) -> Int64Array:
    return np.array(values, np.int64)


@pytest.mark.parametrize("backend", with_torch)
@given(
    seed=st.integers(0, 2**80), stream=st.integers(0, 2**64 - 1), run=st.integers(0, 2**40), first=st.integers(0, 2**40)
)
def test_coins(backend: Backend, seed: int, stream: int, run: int, first: int) -> None:
    """Those of the oracle, in [0, 1), no two alike; one stream and run stand for all tests."""
    compute, times = load(backend, "cpu"), first + np.arange(20)
    start, streams = np.uint64(seed % 2**64), np.array([stream], np.uint64)
    several = compute.coins(start, streams, numbers(run), times)
    assert several.tolist() == [naive.coin(seed, stream, run, first + i) for i in range(20)]
    assert several.tolist() == compute.coins(start, np.repeat(streams, 20), np.repeat(numbers(run), 20), times).tolist()
    assert ((several >= 0) & (several < 1)).all()
    assert len({*several, naive.coin(seed, stream, run + 1, first), naive.coin(seed + 1, stream, run, first)}) == 22


def test_coins_of_many_streams_are_uniform() -> None:
    """Fails falsely once in 10^4 sets of streams; the set is fixed."""
    many = load("numba").coins(
        np.uint64(12), np.arange(1, 20_001).astype(np.uint64), numbers(0), np.ones(20_000, np.int64)
    )
    assert stats.kstest(many, "uniform").pvalue > 1e-4


def by_hand(
    values: Float64Array, coins: Float64Array, tests: list[int], centre: Float64Array, scale: Float64Array, tie: float,
    grid: float, origin: float, thresholds: Float64Array,
) -> tuple[list[float], list[float], list[int]]:  # fmt: skip
    """A row at a time, in plain Python."""
    statistic, threshold, loudest = [], [], []
    for row, coin, test in zip(values.tolist(), coins.tolist(), tests, strict=True):
        scores = [(value - c) / s for value, c, s in zip(row, centre.tolist(), scale.tolist(), strict=True)]
        unknown = [k for k, score in enumerate(scores) if math.isnan(score)]
        which = unknown[0] if unknown else scores.index(max(scores))
        best = scores[which]
        if grid and math.isfinite(best):
            best = round((best - origin) / grid) * grid + origin
        loudest.append(which)
        statistic.append(best + tie * coin if test >= 0 else math.nan)
        threshold.append(thresholds[min(test, len(thresholds) - 1)] if test >= 0 else math.nan)
    return statistic, threshold, loudest


@pytest.mark.parametrize("backend", with_torch)
@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("grid", [0.0, 0.25])
def test_the_rule(backend: Backend, channels: int, grid: float) -> None:
    """To the last bit what a row at a time gives: ties go to the first channel, NaN speaks before all others."""
    rng = np.random.default_rng(channels)
    values = rng.normal(size=(60, channels))
    values[3], values[4, -1], values[7] = 1.0, np.nan, np.inf
    tests = list(range(-5, 55))
    law = rng.normal(size=channels), rng.uniform(0.5, 2, channels), 0.01, grid, 0.1, np.linspace(3, 1, 20)
    coins = rng.random(60)
    found = load(backend, "cpu").decide(values, coins, np.array(tests), *law)
    for got, expected in zip(found, by_hand(values, coins, tests, *law), strict=True):
        np.testing.assert_array_equal(got, expected)
    same = load(backend, "cpu").decide(values, coins, numbers(4), *law)
    np.testing.assert_array_equal(same[1], law[-1][4])


@pytest.mark.parametrize("start", ["warm", "cold"])
def test_one_stream_of_many_and_one_alone(start: Start) -> None:
    """Bank and fleet ring by the rule of a detector: the same outcomes, less coins of their own, up to float32."""
    rng = np.random.default_rng(0)
    reference, stream = rng.normal(size=(200, 2)), rng.normal(1, size=(40, 2))
    detector = Detector(
        100, MMD(Gaussian()), window=8, start=start, reset_on_alarm=False, paths=500, interval=False, seed=3
    ).fit(reference)
    alone = detector.update_many(stream)
    bank, fleet = DetectorBank(detector, 1), Fleet(altered(detector, resets=True), rest=None)
    stepped = [bank.update(row[None])[0] for row in stream]
    assert [outcome.time for outcome in stepped] == alone.time.tolist()
    np.testing.assert_array_equal([outcome.threshold for outcome in stepped], alone.threshold)
    late = slice(16, None)  # by then all windows hold the stream alone, and all of it met the whole reference
    tie = detector._ready().normaliser.tie
    np.testing.assert_allclose([o.statistic for o in stepped][late], alone.statistic[late], atol=tie + 1e-5)
    told = fleet.step(["a"], [None], stream, np.zeros(40, np.int64), np.arange(40)).alarms
    rang = next(outcome for outcome in stepped if outcome.alarm)
    assert told
    assert abs(told[0].time - rang.time) <= 2
    assert told[0].threshold in alone.threshold


def test_what_is_not_tested_is_not_a_number() -> None:
    """A cold run makes its first test when its windows are full, and not before."""
    detector = Detector(100, MMD(Gaussian()), window=5, start="cold", paths=500, interval=False, seed=3)
    detector.fit(np.random.default_rng(0).normal(size=(100, 1)))
    rule = detector._ready().rule
    outcomes = rule(np.zeros((6, 1)), ALONE, numbers(0), np.arange(1, 7))
    assert np.isnan(outcomes.statistic).tolist() == [True] * 4 + [False] * 2
    assert [outcome.channel is None for outcome in outcomes] == [True] * 4 + [False] * 2
    for time in range(1, 7):
        assert repr(rule.one(np.zeros((1, 1)), 0, time)) == repr(outcomes[time - 1])


def test_outcomes_in_a_line() -> None:
    """How many, how many rang, and the first of these, counted from 1 as times are."""
    time, nothing = np.arange(1, 4), np.zeros(3)

    def outcomes(*alarm: bool) -> Outcomes:
        count = len(alarm)
        return Outcomes(time[:count], np.array(alarm), nothing[:count], nothing[:count], time[:count], (), None)

    assert (
        repr(outcomes(False, True, True)) == "Outcomes(3 observations, 2 alarms, the first at observation 2 of these)"
    )
    assert repr(outcomes(True)) == "Outcomes(1 observation, 1 alarm, the first at observation 1 of these)"
    assert repr(outcomes(False, False)) == "Outcomes(2 observations, 0 alarms)"
