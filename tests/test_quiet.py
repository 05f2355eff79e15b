"""Whether a quiet stream agrees with the promise: exact intervals, p-values, and verdicts that are seldom wrong.

Bounds on how often are crossed by chance once in 10^6; seeds are fixed and were not chosen.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from tocsin import MMD, Detector, Gaussian, MeanShift
from tocsin._calibration.result import LEVEL
from tocsin._compute.arrays import Int64Array
from tocsin._detector.quiet import FEWEST_TIMES, SUSPICIOUS, QuietRun, geometric_quantiles, run_quietly
from tocsin._state import Start
from tocsin.baselines import ScanB

RARE = 1e-6


def quiet(times: Any, tests: int, ert: float = 100.0, interval: tuple[float, float] | None = None) -> QuietRun:
    """A run of so many tests that rang at these."""
    return QuietRun(ert, interval, tests, np.array(times, dtype=np.int64))


def at_most(alarms: int, tests: int, rate: float) -> float:
    """The binomial distribution function, term by term."""
    return math.fsum(math.comb(tests, k) * rate**k * (1 - rate) ** (tests - k) for k in range(alarms + 1))


def at_least(alarms: int, tests: int, rate: float) -> float:
    """1 - at_most of one less, term by term."""
    return math.fsum(math.comb(tests, k) * rate**k * (1 - rate) ** (tests - k) for k in range(alarms, tests + 1))


counts = st.integers(1, 120).flatmap(lambda tests: st.tuples(st.integers(0, tests), st.just(tests)))


def spread(alarms: int, tests: int) -> Int64Array:
    """So many times among the tests."""
    return np.linspace(1, tests, alarms).astype(np.int64)


# Numbers of alarms


@given(counts=counts, level=st.sampled_from([0.5, 0.9, 0.99]))
def test_the_interval_is_exact(counts: tuple[int, int], level: float) -> None:
    """At either end, as few or as many alarms as were seen have a probability of half of what is left of the level."""
    alarms, tests = counts
    low, high = quiet(spread(alarms, tests), tests).observed(level)
    assert 1 <= low <= high
    if alarms < tests:
        assert at_most(alarms, tests, 1 / low) == pytest.approx((1 - level) / 2, rel=1e-6)
    else:
        assert low == 1
    if alarms > 0:
        assert at_least(alarms, tests, 1 / high) == pytest.approx((1 - level) / 2, rel=1e-6)
    else:
        assert high == math.inf


@given(counts=counts, ert=st.floats(1.5, 500))
def test_the_p_value_is_that_of_the_binomial_law(counts: tuple[int, int], ert: float) -> None:
    """Twice the smaller tail, at most 1."""
    alarms, tests = counts
    expected = min(1.0, 2 * min(at_most(alarms, tests, 1 / ert), at_least(alarms, tests, 1 / ert)))
    assert quiet(spread(alarms, tests), tests, ert).p_value == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(counts=counts, ert=st.floats(10, 100), reach=st.floats(1, 3))
def test_an_interval_is_given_the_benefit_of_the_doubt(counts: tuple[int, int], ert: float, reach: float) -> None:
    """Of the run times that it holds the one that fits best counts: the one seen, if it is there, or the nearer end."""
    alarms, tests = counts
    low, high = ert / reach, ert * reach
    run = quiet(spread(alarms, tests), tests, ert, (low, high))
    seen = tests / alarms if alarms else math.inf
    best = min(max(seen, low), high)
    assert run.p_value == pytest.approx(quiet(spread(alarms, tests), tests, best).p_value)
    assert run.p_value >= quiet(spread(alarms, tests), tests, ert).p_value * (1 - 1e-9)
    if low < seen < high:
        assert run.p_value > 0.9


def test_what_is_expected() -> None:
    """One alarm in `ert` tests."""
    run = quiet([3, 10, 11], 400, ert=50)
    assert (run.alarms, run.expected) == (3, 8)
    assert run.run_lengths.tolist() == [3, 7, 1]


# Times of alarms


@given(seed=st.integers(0, 2**32), alarms=st.integers(FEWEST_TIMES, 80), tests=st.integers(2000, 50_000))
def test_evenness_is_kolmogorovs_test(seed: int, alarms: int, tests: int) -> None:
    """To what Stephens' formula is good for: two hundredths, and far less where it decides."""
    times = np.sort(np.random.default_rng(seed).integers(1, tests + 1, alarms))
    got, exact = quiet(times, tests).evenness, stats.kstest(times / (tests + 1), "uniform").pvalue
    assert got == pytest.approx(exact, abs=0.02 if exact > 0.1 else 0.003)


def test_few_times_are_no_evidence() -> None:
    """Fewer than FEWEST_TIMES say nothing of evenness, and the number alone decides."""
    for alarms in range(FEWEST_TIMES):
        run = quiet(np.arange(1, alarms + 1), 400, ert=200)
        assert run.evenness is None
        assert run.consistent == (run.p_value >= SUSPICIOUS)


# Verdicts


def promised(rng: np.random.Generator, tests: int, ert: float) -> QuietRun:
    """A promise that is kept: each test rings with the same probability."""
    return quiet(np.flatnonzero(rng.random(tests) < 1 / ert) + 1, tests, ert)


def test_a_kept_promise_is_seldom_doubted() -> None:
    """Once in twenty for both reasons together, or less: of 2000, more than 149 by chance once in 10^6. Sees 9 %."""
    runs = [promised(np.random.default_rng([seed, 1]), 2000, 100) for seed in range(2000)]
    for doubts in (
        sum(run.p_value < SUSPICIOUS for run in runs),
        sum(run.evenness is not None and run.evenness < SUSPICIOUS for run in runs),
    ):
        assert doubts <= stats.binom.isf(RARE, 2000, SUSPICIOUS)
    assert sum(not run.consistent for run in runs) <= stats.binom.isf(RARE, 2000, 2 * SUSPICIOUS)


def test_a_broken_promise_is_doubted() -> None:
    """Three times as many alarms as promised, or a third; or as many as promised, all of them early."""
    rng = np.random.default_rng(2)
    for factor in (3, 1 / 3):
        run = promised(rng, 5000, 100 * factor)
        broken = quiet(run.times, run.tests, ert=100)
        assert broken.p_value < SUSPICIOUS
        assert not broken.consistent
        assert quiet(run.times, run.tests, ert=100, interval=(20, 500)).consistent
    early = quiet(np.sort(rng.permutation(1000)[:50] + 1), 5000, ert=100)
    assert early.p_value > SUSPICIOUS
    assert early.evenness is not None
    assert early.evenness < SUSPICIOUS
    assert not early.consistent


# Run lengths


@given(ert=st.floats(1.01, 1e5), level=st.floats(0, 0.999999))
def test_geometric_quantiles(ert: float, level: float) -> None:
    """The shortest run length that a geometric law stays at or below with the probability."""
    (length,) = geometric_quantiles(np.array([level]), ert)
    assume(abs(stats.geom.cdf(length, 1 / ert) - level) > 1e-9)
    assert length == max(stats.geom.ppf(level, 1 / ert), 1)


def test_run_lengths_beside_those_of_the_law() -> None:
    """As many, both in order, and near each other where the promise is kept."""
    run = promised(np.random.default_rng(3), 200_000, 100)
    seen, expected = run.quantiles()
    assert seen.sum() == run.times[-1]
    assert (np.diff(seen) >= 0).all()
    assert (np.diff(expected) >= 0).all()
    middle = slice(len(seen) // 10, -len(seen) // 10)
    np.testing.assert_allclose(seen[middle], expected[middle], rtol=0.2)
    assert [len(part) for part in quiet([], 50).quantiles()] == [0, 0]


# Detectors on quiet streams


@pytest.mark.parametrize("start", ["warm", "cold"])
def test_run_quietly_counts_what_a_watch_would(start: Start) -> None:
    """Tests, and those that rang, however the stream is cut into blocks; windows that fill are no tests."""
    rng = np.random.default_rng(4)
    reference, stream = rng.normal(size=(300, 2)), rng.normal(size=(1500, 2))
    detector = Detector(40, MMD(Gaussian()), window=5, start=start, paths=500, seed=0).fit(reference)
    got = run_quietly(detector, [stream[:1], stream[1:700], stream[:0], stream[700:]])
    tests, times = 0, []
    twin = Detector(40, MMD(Gaussian()), window=5, start=start, paths=500, seed=0).fit(reference)
    twin.reset()
    for x in stream:
        outcome = twin.update(x)
        tests += not math.isnan(outcome.statistic)
        if outcome.alarm:
            times.append(tests)
            twin.reset()
    assert (got.tests, got.times.tolist()) == (tests, times)
    assert len(times) > 10
    assert got.ert == 40
    assert got.interval == detector.calibration_.interval()
    assert got.consistent
    low, high = got.observed(LEVEL)
    assert low < tests / len(times) < high


def test_a_detector_without_an_interval_is_judged_by_its_number_alone() -> None:
    """Those of baselines, and fits that were asked for none; a guarantee raises what is expected."""
    rng = np.random.default_rng(5)
    reference, stream = rng.normal(size=(400, 2)), rng.normal(size=(300, 2))
    plain = Detector(40, MeanShift(), window=5, interval=False, paths=500, seed=0).fit(reference)
    assert run_quietly(plain, [stream]).interval is None
    sure = Detector(40, MeanShift(), window=5, guarantee=0.9, paths=500, seed=0).fit(reference)
    assert run_quietly(sure, [stream]).ert == sure.calibration_.nominal > 40
    peer = ScanB(40, window=5, samples=2000, seed=0).fit(reference)
    run = run_quietly(peer, [stream])
    assert (run.ert, run.interval) == (40, None)
    assert run.tests > 200
