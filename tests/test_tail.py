"""How rare a level is: the curve of rates and its inverse, one value or many, and the tail beyond what was simulated.

Statistical tests state what they see. Each of their bounds is crossed by chance once in 10^6; seeds are fixed and were
not chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
from tocsin import MMD, Detector, Gaussian
from tocsin._calibration.recursion import Records, passage_curve
from tocsin._calibration.tail import DEPTH, POINTS, SHAPE_SPREAD, RateCurve, Tail, fit_tail
from tocsin._compute import numpy_

BOUND = 4.9
"""Standard errors that chance exceeds once in 10^6."""

NO_ERROR = np.zeros((2, 2))
NO_FLOOR = np.full(1, -np.inf)


@dataclass(frozen=True)
class Shape:
    """What makes a curve: where it begins, how it falls, and its tail."""

    seed: int
    points: int
    start: float
    scale: float
    shape: float

    @property
    def curve(self) -> RateCurve:
        """Levels, the rates at which they are passed, and the tail after them."""
        rng = np.random.default_rng(self.seed)
        values = self.start - self.scale * np.append(np.cumsum(rng.exponential(size=self.points - 1))[::-1], 0.0)
        log_rates = -7.0 + np.append(np.cumsum(rng.exponential(size=self.points - 1))[::-1], 0.0)
        tail = Tail(float(values[-1]), float(log_rates[-1]), self.scale, self.shape, NO_ERROR)
        return RateCurve(values, log_rates, tail)


shapes = st.builds(
    Shape,
    seed=st.integers(0, 2**32),
    points=st.sampled_from([1, 2, 5, POINTS]),
    start=st.sampled_from([0.0, 1.0, -3.0, 1e6]),
    scale=st.sampled_from([1e-3, 1.0, 20.0]),
    shape=st.sampled_from([0.0, 1e-12, 0.1, 0.5, -0.1, -0.4]),
)


# Levels and rates


@given(shape=shapes, part=st.floats(0, 1))
def test_level_and_rate_are_inverse(shape: Shape, part: float) -> None:
    """From the first simulated level to e^15 times as rare as the last."""
    curve = shape.curve
    log_rate = float(curve.log_rates[0] + part * (curve.tail.log_rate - 15 - curve.log_rates[0]))
    level = curve.level(log_rate)
    # Near the end of a finite tail, and far from 0, a level has fewer digits than its rate.
    digits = 1e-9 + 1e-15 * abs(shape.start) / shape.scale * math.exp(max(-shape.shape, 0) * 16)
    assert curve.log_rarity(np.array([level]))[0] == pytest.approx(-log_rate, rel=100 * digits, abs=100 * digits)


@given(shape=shapes)
def test_rarer_is_higher(shape: Shape) -> None:
    """Levels rise and rarities never fall; below the first level nothing is known, and the first is said."""
    curve = shape.curve
    log_rates = np.linspace(curve.log_rates[0], curve.tail.log_rate - 10, 300)
    levels = np.array([curve.level(log_rate) for log_rate in log_rates])
    assert (np.diff(levels) >= 0).all()
    assert (np.diff(curve.log_rarity(levels)) >= 0).all()
    assert (np.diff(curve.rarities(levels)) >= 0).all()
    below = np.array([curve.values[0] - 1, -1e300, -np.inf])
    assert (curve.rarities(below) == np.exp(-curve.log_rates[0])).all()


@given(shape=shapes, part=st.floats(0, 1))
def test_rarities_are_looked_up_to_a_third_of_a_percent(shape: Shape, part: float) -> None:
    """Exact at the levels that are kept; in the tail linear between points that are 1/8 apart in the logarithm."""
    curve = shape.curve
    np.testing.assert_allclose(curve.rarities(curve.values), np.exp(-curve.log_rates), rtol=1e-9)
    level = np.array([curve.tail.level(curve.tail.log_rate - part * DEPTH / 2)])
    if level > curve.tail.start:
        coarse = abs(shape.start) / shape.scale * 1e-15 * math.exp(max(-shape.shape, 0) * DEPTH / 2)
        np.testing.assert_allclose(curve.rarities(level), np.exp(curve.log_rarity(level)), rtol=0.003 + coarse)


def test_far_beyond_everything_is_just_very_rare() -> None:
    """A number, not an overflow: e^30 times as rare as what was simulated, at least."""
    for shape in (0.0, 0.4, -0.4):
        curve = Shape(0, 5, 1.0, 1.0, shape).curve
        for far in (1e9, 1e300, np.inf):
            assert curve.rarity(far) == curve.rarities(np.array([far]))[0]
            assert curve.rarity(far) == pytest.approx(math.exp(DEPTH - curve.tail.log_rate))


@settings(max_examples=200)
@given(shape=shapes, place=st.integers(0, 600), ulps=st.integers(-2, 2), value=st.floats(allow_nan=True))
@example(shape=Shape(0, 5, 1.0, 1.0, 0.0), place=0, ulps=0, value=math.nan)
@example(shape=Shape(0, 1, 1.0, 1.0, 0.0), place=0, ulps=0, value=math.inf)
@example(shape=Shape(0, 1, 1.0, 1.0, 0.0), place=0, ulps=0, value=-math.inf)
def test_one_rarity_is_that_of_many_to_the_last_bit(shape: Shape, place: int, ulps: int, value: float) -> None:
    """Anywhere: between levels, at them, one bit beside them, beyond all, and where there is no number."""
    curve = shape.curve
    x = curve._table[0]
    near = x[place % len(x)]
    for _ in range(abs(ulps)):
        near = np.nextafter(near, np.inf * ulps)
    for each in (value, float(near)):
        one, many = curve.rarity(each), curve.rarities(np.array([each]))[0]
        assert one.hex() == float(many).hex()


# From simulated paths


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32), paths=st.integers(2, 60), tests=st.integers(1, 12))
def test_a_curve_of_paths_counts_their_first_passages(seed: int, paths: int, tests: int) -> None:
    """At each level that is kept, and at the start of the tail, which is set apart."""
    values = np.random.default_rng(seed).normal(size=(paths, tests))
    records = Records(paths, NO_FLOOR, *numpy_.records(values, np.array([0, tests]), NO_FLOOR))
    start = float(np.quantile(values, 0.9))
    alarms, made = naive.first_passages(values, start)
    tail = Tail(start, math.log(max(alarms, 0.5) / made), 1.0, 0.0, NO_ERROR)
    curve = RateCurve.of(passage_curve(records.path, records.step, records.value, tests, paths), tail)
    assert (np.diff(curve.values) > 0).all()
    assert (np.diff(curve.log_rates) <= 0).all()
    assert (curve.values[-1], curve.log_rates[-1]) == (tail.start, tail.log_rate)
    for level, log_rate in zip(curve.values[:-1], curve.log_rates[:-1], strict=True):
        alarms, made = naive.first_passages(values, level)
        assert math.exp(log_rate) == pytest.approx(max(alarms / made, math.exp(tail.log_rate)))


# The tail


@dataclass(frozen=True)
class Law:
    """Paths whose rate of alarms falls as a generalised Pareto tail.

    hazard: alarms that a path of so many tests expects beyond `start`, which it passes with 1 - exp(-hazard).
    """

    shape: float
    hazard: float
    start: float = 3.0
    scale: float = 0.7
    tests: int = 400

    def fit(self, seed: int, paths: int) -> Tail:
        """To the maxima of so many paths: log(rate(v) tests) of a maximum v is that of an exponential number."""
        fall = math.log(self.hazard) - np.log(np.random.default_rng(seed).exponential(size=paths))
        fall = fall[fall > 0]
        reach = fall if self.shape == 0 else np.expm1(self.shape * fall) / self.shape
        return fit_tail(self.start + self.scale * reach, self.start, self.hazard / self.tests, self.tests)

    def level(self, depth: float) -> float:
        """The value that is passed e^depth times as seldom as `start`."""
        return self.start + self.scale * (depth if self.shape == 0 else math.expm1(self.shape * depth) / self.shape)


FITS, PATHS, DEEP = 150, 3000, math.log(100)
laws = pytest.mark.parametrize(
    "law",
    [Law(0.0, 0.3), Law(0.0, 2.0), Law(0.15, 0.3), Law(-0.2, 0.3), Law(-0.2, 2.0)],
    ids=lambda law: f"shape {law.shape}, hazard {law.hazard}",
)


@cache
def many_fits(law: Law) -> list[Tail]:
    """To maxima of different paths."""
    return [law.fit(seed, PATHS) for seed in range(FITS)]


@laws
def test_a_tail_is_found_again(law: Law) -> None:
    """Scale, shape and the rate of an alarm a hundred times as rare, each within its error.

    Over FITS fits the mean deviation, in standard errors, has one of 1 / sqrt(FITS). A quarter of a standard error is
    left to what the prior on the shape pulls it towards 0, and to what likelihood loses to a finite sample. Sees a bias
    of 0.65 standard errors: 6 to 17 % of a rate a hundred times as small as the one that the tail starts at.
    """
    tails = many_fits(law)
    bound = 0.25 + BOUND / FITS**0.5
    scale = [(math.log(tail.scale) - math.log(law.scale)) / tail.errors[0, 0] ** 0.5 for tail in tails]
    shape = [(tail.shape - law.shape) / tail.errors[1, 1] ** 0.5 for tail in tails]
    level = law.level(DEEP)
    rate = [(math.log(law.hazard / law.tests) - DEEP - log_rate(tail, level)) / tail.error(level) for tail in tails]
    for deviations in (scale, shape, rate):
        assert abs(np.mean(deviations)) < bound


@laws
def test_the_error_of_a_tail_is_right(law: Law) -> None:
    """The deviations, in standard errors, vary by 1.

    Their standard deviation is known to 1 / sqrt(2 FITS), so the bound sees an error that is 30 % too small or too
    large; the prior narrows them by less than 3 %. Where most paths pass the start, a maximum says more than the excess
    of a threshold that the error is computed for: there it may be half as much again too large.
    """
    slack = 0.03 + BOUND / (2 * FITS) ** 0.5
    for depth in (1.0, DEEP):
        level, known = law.level(depth), math.log(law.hazard / law.tests) - depth
        deviations = [(log_rate(tail, level) - known) / tail.error(level) for tail in many_fits(law)]
        assert (1 if law.hazard < 1 else 1 / 1.5) - slack < np.std(deviations) < 1 + slack


def log_rate(tail: Tail, level: float) -> float:
    """The logarithm of the fitted rate at a level."""
    return float(tail.log_rates(np.array([level]))[0])


def test_an_error_grows_with_the_distance() -> None:
    """None where the tail starts; and four times the paths halve it."""
    few, many = Law(0.0, 1.0).fit(0, 1000), Law(0.0, 1.0).fit(1, 64_000)
    assert few.error(few.start) == 0
    assert few.error(few.start - 1) == 0
    errors = [few.error(few.start + reach) for reach in (0.1, 0.5, 1, 2, 4)]
    assert errors == sorted(errors)
    assert many.error(5) == pytest.approx(few.error(5) / 8, rel=0.2)


def test_maxima_that_count_for_less() -> None:
    """Each of them four times, at a quarter of the weight, is each of them once."""
    maxima = 1 + np.random.default_rng(0).exponential(size=300)
    once, often = fit_tail(maxima, 1.0, 1e-3, 50), fit_tail(np.repeat(maxima, 4), 1.0, 1e-3, 50, weight=0.25)
    assert often.scale == pytest.approx(once.scale, rel=1e-3)
    assert often.shape == pytest.approx(once.shape, abs=1e-3)
    np.testing.assert_allclose(often.errors, once.errors, rtol=1e-2, atol=1e-6)
    assert fit_tail(maxima, 1.0, 1e-3, 50, weight=0.25).error(4.0) > 1.5 * once.error(4.0)


@pytest.mark.parametrize("start", [0.0, -2.0, 1e8])
@pytest.mark.parametrize(
    "beyond",
    [[], [0.5], [0.5, 0.5], [0.5] * 100, [0.5, 2.0], [1e-9] * 5],
    ids=["none", "one", "two alike", "many alike", "two", "tiny"],
)
def test_few_maxima_or_all_alike(beyond: list[float], start: float) -> None:
    """Whatever they say of the tail, it is a number: levels rise with rarity, and shapes stay near the prior's."""
    maxima = start + np.array(beyond)
    tail = fit_tail(maxima, start, 1e-3, 100)
    assert tail.scale > 0
    assert abs(tail.shape) < 5 * SHAPE_SPREAD
    levels = [tail.level(tail.log_rate - depth) for depth in (0, 1, 5, 20)]
    assert np.isfinite(levels).all()
    assert levels == sorted(levels)
    assert tail.error(levels[-1]) > 0.1, "so little says little"
    curve = RateCurve(np.array([start]), np.array([tail.log_rate]), tail)
    assert curve.rarity(start) == pytest.approx(1000)
    assert np.isfinite(curve.rarities(np.array([start - 1, start, start + 1e-9, start + 1]))).all()


# Through the detector


@pytest.mark.parametrize(
    "options",
    [{}, {"guarantee": 0.9}, {"ert": 1e6}, {"mode": "paper", "paths": 4000}, {"statistic": MMD()}],
    ids=str,
)
def test_rarity_at_the_threshold_is_the_expected_run_time(options: dict[str, object]) -> None:
    """And an alarm, once the first tests are over, is a statistic that is rarer; to what the table is exact to."""
    rng = np.random.default_rng(0)
    defaults: dict[str, object] = {"ert": 100.0, "statistic": MMD(Gaussian()), "window": 5, "paths": 2000, "seed": 0}
    detector = Detector(**{**defaults, **options}).fit(rng.normal(size=(200, 2)))  # type: ignore[arg-type]
    calibration = detector.calibration_
    assert calibration.curve is not None
    assert calibration.curve.rarity(calibration.threshold) == pytest.approx(calibration.nominal, rel=0.003)
    stream = np.concatenate([rng.normal(size=(500, 2)), rng.normal(loc=1.0, size=(300, 2))])
    outcomes = detector.update_many(stream)[len(detector.thresholds_) :]
    apart = np.abs(np.log(outcomes.rarity / calibration.nominal)) > 0.003
    assert apart.sum() > 700
    assert (outcomes.alarm == (outcomes.rarity > calibration.nominal))[apart].all()
    assert outcomes.rarity[-100:].max() > 10 * calibration.ert or calibration.ert == 1e6
