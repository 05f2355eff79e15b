"""The promise itself: without a change, run lengths are geometric with mean ERT.

Each case fits CONFIGURATIONS detectors to references of their own and collects RUNS runs of each.

Mean: the average of log(ART / ERT) must be within BOUND_OF_MEAN standard errors of 0. Its standard error has three
sources: the runs (1 / sqrt(runs) each), the calibration (its stated Monte Carlo error) and the reference itself, whose
error is fixed for a detector's life. The last is taken as REFERENCE_SPREAD (more where a window is wide for its
reference), which the measurements in docs/results/core.md put at or above what references of this size show. At 4.9
standard errors the test fails falsely once in 10^6; with the sizes here it sees a bias of about 12 %.

Law: run lengths, each divided by its own detector's average (so that an error of the mean is not counted twice), are
compared with the geometric law by the Kolmogorov distance. The bound 2.7 / sqrt(n) is exceeded with probability 1e-6 by
continuous data, less by discrete; at the sizes here it sees a distortion of 3 % of the distribution function.

Seeds are fixed and were not chosen.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pytest
from benchmarks.runs import average_run_length, run_lengths
from scipy import stats

from tocsin import LSDD, MMD, Blocks, Custom, Detector, Gaussian, Independent, MeanShift
from tocsin._compute.arrays import Float64Array
from tocsin._experiments import laws
from tocsin._experiments.processes import autoregressive

pytestmark = pytest.mark.long

CONFIGURATIONS = 6
RUNS = 1200
REFERENCE_SPREAD = 0.06
BOUND_OF_MEAN = 4.9
BOUND_OF_LAW = 2.7


@dataclass(frozen=True)
class Case:
    """A detector and a law to keep the promise on."""

    name: str
    law: laws.Law
    detector: Callable[[int], Detector]
    points: int = 1500
    runs: int = RUNS
    spread: float = REFERENCE_SPREAD


def one_column(rng: np.random.Generator, n: int) -> Float64Array:
    """Gaussian-distributed scalars, far from 0."""
    return rng.normal(1000.0, 3.0, (n, 1))


def two_values(rng: np.random.Generator, n: int) -> Float64Array:
    """A coin that shows 1 three times in ten: the fewest values there can be."""
    return (rng.random((n, 1)) < 0.3).astype(float)


def fifty_categories(rng: np.random.Generator, n: int) -> Float64Array:
    """Fifty categories, equally likely, one-hot."""
    return np.eye(50)[rng.integers(0, 50, n)]


def mean_distance(reference: Float64Array, window: Float64Array) -> float:
    """A two-sample function of a user's own."""
    return abs(float(reference.mean() - window.mean()))


CASES = [
    Case("MMD, one window", laws.mixture_t5, lambda seed: Detector(64, MMD(Gaussian()), window=10, seed=seed)),
    Case(
        "MMD, one window, cold",
        laws.mixture_t5,
        lambda seed: Detector(64, MMD(Gaussian()), window=10, start="cold", seed=seed),
    ),
    Case("MMD, family", laws.skewed, lambda seed: Detector(80, window=(4, 12, 30), seed=seed), points=3000),
    Case(
        "MMD, family, cold",
        laws.square,
        lambda seed: Detector(80, window=(4, 12, 30), start="cold", seed=seed),
        points=3000,
    ),
    Case(
        "MMD, as in the paper",
        laws.square,
        lambda seed: Detector(64, MMD(Gaussian()), window=10, mode="paper", seed=seed),
    ),
    Case("MMD, categories", laws.categories, lambda seed: Detector(64, MMD(Gaussian()), window=10, seed=seed)),
    Case("MMD, categories, family", laws.categories, lambda seed: Detector(64, window=(5, 20), seed=seed), points=3000),
    Case("MMD, two values", two_values, lambda seed: Detector(32, MMD(Gaussian()), window=6, seed=seed)),
    Case("LSDD", laws.skewed, lambda seed: Detector(64, LSDD(), window=10, seed=seed)),
    Case(
        "LSDD, cold, windows", laws.square, lambda seed: Detector(64, LSDD(), window=(5, 15), start="cold", seed=seed)
    ),
    Case("MeanShift", laws.mixture_t5, lambda seed: Detector(64, MeanShift(), window=10, seed=seed)),
    # A reference mean that is off moves a signed difference in proportion, not in square: it takes more points.
    Case(
        "MeanShift, one side",
        one_column,
        lambda seed: Detector(64, MeanShift([1.0]), window=8, seed=seed),
        points=12_000,
    ),
    Case("MeanShift, categories", laws.categories, lambda seed: Detector(64, MeanShift(), window=8, seed=seed)),
    Case("MMD and LSDD", laws.square, lambda seed: Detector(64, [MMD(Gaussian()), LSDD()], window=10, seed=seed)),
    Case(
        "Custom",
        one_column,
        lambda seed: Detector(20, Custom(mean_distance), window=5, error=0.04, seed=seed),
        points=600,
        runs=400,
    ),
    # Many categories and a wide window: ties do not matter, but a point that met itself would.
    Case(
        "MMD, fifty categories",
        fifty_categories,
        lambda seed: Detector(150, MMD(Gaussian()), window=50, seed=seed),
        points=1500,
        runs=800,
        spread=0.12,
    ),
    Case(
        "Custom, two values, cold",
        two_values,
        lambda seed: Detector(20, Custom(mean_distance), window=5, error=0.04, start="cold", seed=seed),
        points=600,
        runs=400,
    ),
]


# Points of a reference with a memory count for less than independent ones: its own error is larger.
MEMORIES = [
    Case(
        "MMD, blocks, cold",
        autoregressive(0.5),
        lambda seed: Detector(64, MMD(Gaussian()), window=8, sampler=Blocks(), start="cold", seed=seed),
        points=4000,
        runs=800,
        spread=0.18,
    ),
    Case(
        "MeanShift, blocks, cold",
        autoregressive(0.5),
        lambda seed: Detector(64, MeanShift(), window=8, sampler=Blocks(), start="cold", seed=seed),
        points=8000,
        runs=800,
        spread=0.15,
    ),
]


@dataclass(frozen=True)
class Evidence:
    """How far a case is from the promise, in units of its bounds: more than 1 breaks it."""

    mean: float
    law: float


def measure(case: Case) -> Evidence:
    """Fit, run and compare with the geometric law."""
    logs, scaled, errors = [], [], []
    for configuration in range(CONFIGURATIONS):
        rng = np.random.default_rng([2**31, zlib.crc32(case.name.encode()), configuration])
        detector = case.detector(configuration).fit(case.law(rng, case.points))
        runs = run_lengths(detector, case.law, rng, case.runs)
        average = runs.mean()
        logs.append(np.log(average / detector.calibration_.ert))
        errors.append(1 / case.runs + detector.calibration_.error**2 + case.spread**2)
        # P(T <= t) of a geometric law with this detector's average.
        scaled.append([-np.expm1(times * np.log1p(-1 / average)) for times in (runs, runs - 1)])
    after, before = np.sort(np.concatenate(scaled, axis=1), axis=1)
    n = after.size
    above = (np.arange(1, n + 1) / n - after).max()
    below = (before - np.arange(n) / n).max()
    standard_error = np.sqrt(np.sum(errors)) / CONFIGURATIONS
    return Evidence(
        abs(np.mean(logs)) / (BOUND_OF_MEAN * standard_error), float(max(above, below)) * np.sqrt(n) / BOUND_OF_LAW
    )


@pytest.mark.filterwarnings(
    "ignore::tocsin.DependenceWarning"
)  # one reference in a hundred: the promise holds there too
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_run_lengths_are_geometric_with_the_promised_mean(case: Case) -> None:
    """Sees a bias of the mean of about 12 %, and a distortion of the law of about 3 %."""
    evidence = measure(case)
    assert evidence.mean < 1
    assert evidence.law < 1


@pytest.mark.parametrize("case", MEMORIES, ids=lambda case: case.name)
def test_the_promise_holds_for_streams_with_a_memory(case: Case) -> None:
    """AR(1) with a correlation of 0.5. Sees a bias of the mean of about 35 %, and a distortion of the law of 4 %."""
    evidence = measure(case)
    assert evidence.mean < 1
    assert evidence.law < 1


def test_a_warm_start_in_a_stream_with_a_memory() -> None:
    """The mean is as promised. Where the first window meets the stream there is a joint, which the stream has not:

    so windows ring more seldom at first, and the law is off by three to four per cent; twice the bound is allowed.
    """
    evidence = measure(
        replace(MEMORIES[1], detector=lambda seed: Detector(64, MeanShift(), window=8, sampler=Blocks(), seed=seed))
    )
    assert evidence.mean < 1
    assert evidence.law < 2


@pytest.mark.filterwarnings("ignore::tocsin.DependenceWarning")
def test_single_points_break_the_promise_for_streams_with_a_memory() -> None:
    """Five times as many alarms as promised: what the test above must see, and blocks are for."""
    case = replace(
        MEMORIES[1], detector=lambda seed: Detector(64, MeanShift(), window=8, sampler=Independent(), seed=seed)
    )
    assert measure(replace(case, points=2000)).mean > 3


def test_a_fixed_threshold_breaks_the_mean() -> None:
    """Algorithm 2 ignores the dependence between tests: were the test above blind, it would pass this too."""
    evidence = measure(
        Case(
            "fixed",
            laws.mixture_t5,
            lambda seed: Detector(64, MMD(Gaussian()), window=10, mode="fixed", start="cold", seed=seed),
        )
    )
    assert evidence.mean > 1


def test_the_last_threshold_alone_breaks_the_law() -> None:
    """Without thresholds of their own the first tests ring too often: the test above must see that."""

    class OneThreshold(Detector):
        def fit(self, reference: Any, **options: Any) -> Self:
            super().fit(reference, **options)
            fitted = self._ready()
            steady = replace(fitted.calibration, thresholds=fitted.calibration.thresholds[-1:])
            self._deploy(replace(fitted, calibration=steady))
            return self

    evidence = measure(
        Case(
            "one threshold",
            laws.mixture_t5,
            lambda seed: OneThreshold(40, MMD(Gaussian()), window=30, start="cold", seed=seed),
        )
    )
    assert evidence.law > 1


@pytest.mark.parametrize("statistic", [MMD(Gaussian()), LSDD(centres=8), MeanShift()], ids=lambda s: s.name)
def test_ten_million_steps_leave_no_drift(statistic: MMD | LSDD | MeanShift) -> None:
    """After 10^7 observations the statistic is that of a detector which saw only the last few."""
    rng = np.random.default_rng(0)
    reference = rng.normal(50.0, 1.0, (40, 2))
    options = {"window": 4, "paths": 200, "start": "cold", "reset_on_alarm": False, "seed": 0}
    old, young = (Detector(50, statistic, **options).fit(reference) for _ in range(2))  # type: ignore[arg-type]
    block = rng.normal(50.0, 1.0, (500_000, 2))
    for _ in range(20):
        old.update_many(block)
    for x in block[-4:]:
        young.update(x)
    probe = rng.normal(50.0, 1.0, (20, 2))
    late, early = old.update_many(probe), young.update_many(probe)
    scale = np.abs(early.statistic).max()
    # Ties are broken by a coin that differs with the clock, and is worth 2^-16 of the scale.
    assert np.abs(late.statistic - early.statistic).max() < 1e-4 * scale


GUARANTEED, GUARANTEE, ALARMS = 36, 0.9, 300


def test_a_guarantee_is_kept_over_references() -> None:
    """Of GUARANTEED references one in ten may fall short of the promised run time; and errors are as large as told.

    Run times are measured by ALARMS alarms, to 6 %, which makes 13 in 100 of one in ten: more than 16 of 36 fall short
    by chance once in 10^6. Without a guarantee half of them do. Deviations from what thresholds were set for, in the
    errors that were told (and that of measuring), vary by 1: the standard deviation of 36 is known to 12 %, and at 4.9
    such errors the test sees errors that are told half as large as they are, or twice.
    """
    short, scores = 0, []
    for configuration in range(GUARANTEED):
        rng = np.random.default_rng([2**30, configuration])
        options: dict[str, Any] = {"window": 8, "sampler": Independent(), "guarantee": GUARANTEE, "paths": 4000}
        detector = Detector(64, MMD(Gaussian()), **options, seed=configuration).fit(laws.mixture_t5(rng, 300))
        calibration = detector.calibration_
        average = average_run_length(detector, laws.mixture_t5, rng, ALARMS)
        short += average < 64
        assert calibration.errors is not None
        assert calibration.nominal > 64
        error = np.hypot(calibration.errors.total, ALARMS**-0.5)
        scores.append(np.log(average / calibration.nominal) / error)
    assert short <= stats.binom.isf(1e-6, GUARANTEED, 0.13)
    assert abs(np.mean(scores)) < BOUND_OF_MEAN / GUARANTEED**0.5
    assert abs(np.log(np.std(scores))) < BOUND_OF_MEAN / (2 * GUARANTEED) ** 0.5


def test_extrapolated_thresholds_are_those_of_a_longer_simulation() -> None:
    """Alarms thirty times as rare as any that few paths show, against a simulation that is long enough to count them.

    The rarity of 18 extrapolated thresholds, by the long simulation, in logarithms: their mean is that of the promise,
    to BOUND_OF_MEAN standard errors and a tenth, for a tail that is not quite Pareto; and they vary by what is told.
    Sees a run time that is off by half, and errors that are told half as large as they are.
    """
    reference = laws.mixture_t5(np.random.default_rng(3), 1500)
    options: dict[str, Any] = {"window": 8, "sampler": Independent(), "interval": False}
    known = Detector(4000, MMD(Gaussian()), **options, seed=99).fit(reference).calibration_
    assert known.simulated == 4000
    assert known.curve is not None
    deviations, scores = [], []
    for seed in range(18):
        few = Detector(4000, MMD(Gaussian()), **options, paths=1000, seed=seed).fit(reference).calibration_
        assert few.simulated < 4000 / 30
        assert few.curve is not None
        deviations.append(np.log(known.curve.rarity(few.threshold) / 4000))
        error = np.sqrt(few.curve.tail.error(few.threshold) ** 2 + few.error**2 + known.error**2)
        scores.append(deviations[-1] / error)
    assert abs(np.mean(deviations)) < 0.1 + BOUND_OF_MEAN * np.std(deviations) / 18**0.5
    assert np.std(scores) < np.exp(BOUND_OF_MEAN / 36**0.5)
