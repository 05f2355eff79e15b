"""How far the run time may be from the promise: each error against a toy in which it is known.

An estimate is repeated SIMULATIONS times and its mean compared with the truth, within BOUND standard errors of that
mean, which chance exceeds once in 10^6. Seeds are fixed and were not chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends import BACKENDS, on_device
from tocsin import MMD, Blocks, Detector, Independent
from tocsin import _compute as compute
from tocsin._calibration.plan import make_plan
from tocsin._calibration.recursion import Records
from tocsin._calibration.result import aimed_at
from tocsin._calibration.uncertainty import (
    PAIRS,
    Errors,
    Spread,
    first_alarms,
    law_error,
    law_spread,
    points_to_halve,
    with_reflections,
)
from tocsin._compute import numpy_
from tocsin._compute.arrays import Float64Array, Int32Array
from tocsin._samplers import InBlocks, Singly
from tocsin._statistics.kernels import Gaussian

SIMULATIONS = 200
BOUND = 4.9


def assert_unbiased(estimates: list[float], truth: float, slack: float = 0.0) -> None:
    """Their mean is the truth, but for noise, and for this part of it."""
    error = np.std(estimates) / len(estimates) ** 0.5
    assert abs(np.mean(estimates) - truth) < BOUND * error + slack * truth


# Influence of single points


@dataclass(frozen=True)
class Toy:
    """Windows of points drawn one by one; those that ring hold point i 1 + excess[i] times as often as others."""

    excess: Float64Array
    window: int
    alarms: int

    @property
    def count(self) -> int:
        """Points of the reference."""
        return len(self.excess)

    @property
    def truth(self) -> float:
        """The sum of squared influences, each the excess of point i in a window that rang."""
        likely = (1 + self.excess) / (1 + self.excess).sum()
        return float(((self.window * (likely - 1 / self.count)) ** 2).sum())

    def estimate(self, seed: int) -> tuple[float, float]:
        """Of the error, and of its degrees of freedom."""
        rng = np.random.default_rng(seed)
        likely = (1 + self.excess) / (1 + self.excess).sum()
        rang = rng.choice(self.count, (self.alarms, self.window), p=likely)
        quiet = rng.integers(0, self.count, (4 * self.alarms, self.window))
        return law_error(rang.astype(np.int32), quiet.astype(np.int32), self.count, 1)


def spread_excess(count: int, size: float) -> Float64Array:
    """Excesses in no order, of this root mean square."""
    return np.asarray(np.random.default_rng(9).permutation(np.linspace(-1, 1, count)) * size * 3**0.5)


@pytest.mark.parametrize(("size", "alarms"), [(0.2, 1000), (0.5, 200), (0.5, 1000)])
def test_law_error_is_the_root_of_squared_influences(size: float, alarms: int) -> None:
    """The noise of a few hundred alarms, up to three times as large as the influences themselves, is taken off.

    Sees a bias of 2 % where influences are strong and alarms many, of 6 % where they are not.
    """
    toy = Toy(spread_excess(1000, size), window=10, alarms=alarms)
    squares = [toy.estimate(seed)[0] ** 2 for seed in range(SIMULATIONS)]
    assert_unbiased(squares, toy.truth)


def test_points_without_influence() -> None:
    """What is lost in the noise may be as large as the noise hides: the standard error of its own square, and no more.

    Of N squares of equal noise it is sqrt(2 / N) of their sum; to a tenth, since that of few windows is itself noisy.
    """
    toy = Toy(np.zeros(500), window=10, alarms=400)
    squares = np.array([toy.estimate(seed)[0] ** 2 for seed in range(SIMULATIONS)])
    hidden = toy.window / toy.alarms * 5 / 4 * (2 / toy.count) ** 0.5
    assert squares.min() > 0.9 * hidden
    assert np.median(squares) < 1.1 * hidden
    assert squares.mean() < 1.5 * hidden


@pytest.mark.parametrize("influential", [1, 5, 400], ids=lambda n: f"{n} points")
def test_law_freedom_counts_the_points_that_matter(influential: int) -> None:
    """2 (sum of squares)^2 / (sum of fourth powers): 2 for a single point, 2 n for n alike; to a fifth."""
    excess = np.zeros(400)
    excess[np.random.default_rng(1).permutation(400)[:influential]] = 4.0 if influential < 400 else 1.0
    if influential == 400:
        excess[::2] = -0.5
    toy = Toy(excess, window=10, alarms=10_000)
    likely = (1 + toy.excess) / (1 + toy.excess).sum() - 1 / toy.count
    truth = 2 * (likely**2).sum() ** 2 / (likely**4).sum()
    freedom = [toy.estimate(seed)[1] for seed in range(10)]
    assert np.mean(freedom) == pytest.approx(truth, rel=0.2)


def test_without_alarms_the_error_is_not_known() -> None:
    """One alarm says nothing of how much windows that ring differ."""
    windows = np.arange(20, dtype=np.int32).reshape(2, 10)
    for alarms in (0, 1):
        error, freedom = law_error(windows[:alarms], windows, 50, 1)
        assert error == math.inf
        assert 0 < freedom < 10


# Influence of blocks


@dataclass(frozen=True)
class BlockToy:
    """Windows of contiguous points, half of them with a joint; those that ring begin here more often than there."""

    count: int
    window: int
    block: int
    alarms: int

    @property
    def starts(self) -> Float64Array:
        """How likely a window that rings is to begin at each point; others begin anywhere."""
        places = np.arange(self.count - self.window + 1)
        likely = 1.5 + np.sin(places / 17.0) * (places < self.count // 2)
        return np.asarray(likely / likely.sum())

    def windows(self, rng: np.random.Generator, number: int, likely: Float64Array | None) -> Int32Array:
        """(number, window); every second one is two pieces, each from a place of its own."""
        first, second = rng.choice(self.count - self.window + 1, (2, number), p=likely)
        joint = np.where(np.arange(number) % 2, rng.integers(1, self.window, number), self.window)[:, None]
        steps = np.arange(self.window)
        return np.asarray(np.where(steps < joint, first[:, None] + steps, second[:, None] + steps), dtype=np.int32)

    @property
    def truth(self) -> float:
        """sum u_i u_j (1 - |i - j| / block)_+, u the mean credit of a point in windows that rang, less the usual.

        A piece of k points that follow each other gives each of them 1 / k.
        """
        credit = np.zeros(self.count)
        even = np.full(len(self.starts), 1 / len(self.starts))
        for place, excess in enumerate(self.starts - even):
            credit[place : place + self.window] += excess / self.window / 2
            for joint in range(1, self.window):
                share = excess / 2 / (self.window - 1)
                credit[place : place + joint] += share / joint
                credit[place + joint : place + self.window] += share / (self.window - joint)
        apart = np.abs(np.subtract.outer(np.arange(self.count), np.arange(self.count)))
        return float(credit @ np.maximum(1 - apart / self.block, 0) @ credit)

    def estimate(self, seed: int) -> float:
        """Of the error."""
        rng = np.random.default_rng(seed)
        rang, quiet = self.windows(rng, self.alarms, self.starts), self.windows(rng, 4 * self.alarms, None)
        return law_error(rang, quiet, self.count, self.block)[0]


@pytest.mark.long
@pytest.mark.parametrize(("block", "alarms"), [(12, 300), (12, 1000), (40, 1000), (150, 1000)])
def test_law_error_of_blocks(block: int, alarms: int) -> None:
    """Points that came together share the credit, and influences within a block add up.

    Sees a bias of 7 %, or, of the longest blocks or the fewest alarms, 20 %: counted point by point, without the sums
    over blocks, the truth would be 7 to 25 times as small. One per cent is left for a second piece that goes on, by
    chance, where the first ended.
    """
    toy = BlockToy(count=900, window=12, block=block, alarms=alarms)
    assert_unbiased([toy.estimate(seed) ** 2 for seed in range(SIMULATIONS)], toy.truth, slack=0.01)


# The spread over pseudo-references


def planted(seed: int, even: float, odd: float, *, shared: bool) -> Spread:
    """First alarms of streams whose log rates differ by normal numbers, equal and opposite for reflections.

    shared: whether all pseudo-references meet the same luck, as the same streams give them.
    """
    rng = np.random.default_rng(seed)
    streams, tests, base = 640, 50, 0.012
    same, opposite = even * rng.normal(size=PAIRS), odd * rng.normal(size=PAIRS)
    rates = base * np.exp(np.concatenate([same + opposite, same - opposite]))
    luck = np.log(rng.random((streams, 1 if shared else 2 * PAIRS)))
    first = np.ceil(luck / np.log1p(-rates))
    return Spread(first <= tests, np.minimum(first, tests).astype(np.int64))


@pytest.mark.long
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("even", [0.1, 0.4])
def test_reference_error_is_the_spread_of_the_even_part(even: float, shared: bool) -> None:
    """Whatever the odd part is, and the noise. Sees a bias of 15 %: 5 % are left for what logarithms are bent by.

    Luck that is not shared adds 1 / 600 to the variance of the even part (300 alarms each): a sixth of the smaller one.
    """
    estimates = [planted(seed, even, 0.3, shared=shared).reference_error() ** 2 for seed in range(SIMULATIONS)]
    assert_unbiased(estimates, even**2, slack=0.05)


def test_an_odd_part_alone_is_no_reference_error() -> None:
    """It is the error of the law, which is counted apart: less than a twentieth of it is left."""
    estimates = [planted(seed, 0.0, 0.4, shared=True).reference_error() ** 2 for seed in range(SIMULATIONS)]
    assert np.mean(estimates) < 0.4**2 / 20


@pytest.mark.parametrize("source", [Singly(60), InBlocks(np.array([0, 20, 60]), 5, 0)], ids=["singly", "blocks"])
def test_reflections(source: Singly | InBlocks, functions: compute.Functions) -> None:
    """As large as the reference, and their mean with what they reflect is the reference itself."""
    drawn = source.references(np.random.default_rng(0), 40, functions)
    weights, both = functions.get(drawn), functions.get(with_reflections(drawn, functions))
    assert both.shape == (60, 40 + PAIRS)
    assert both.flags.c_contiguous
    assert both.dtype == np.float32
    np.testing.assert_array_equal(both[:, :40], weights)
    np.testing.assert_array_equal((both[:, :PAIRS] + both[:, 40:]) / 2, np.ones((60, PAIRS)))


@pytest.mark.parametrize(("spread", "alarms"), [(0.5, 40), (0.3, 20), (0.3, 80)])
def test_law_spread_is_that_of_the_rates(spread: float, alarms: int) -> None:
    """Of 100 pseudo-references, without the noise of so few alarms, which is as large as it where they are fewest."""
    rng = np.random.default_rng(12)
    estimates = []
    for _ in range(SIMULATIONS):
        rates = alarms * np.exp(rng.normal(0, spread, 100))
        estimates.append(law_spread(rng.poisson(rates), np.full(100, 10_000))[0] ** 2)
    assert_unbiased(estimates, spread**2, slack=0.05)


def test_rates_that_only_noise_sets_apart() -> None:
    """What is left is little more than how well the noise is known, to a seventh of it; and it is known badly.

    Both bounds are more than 30 standard errors away from what the means are.
    """
    rng = np.random.default_rng(13)
    found = [law_spread(rng.poisson(np.full(100, 20.0)), np.full(100, 10_000)) for _ in range(SIMULATIONS)]
    assert np.mean([error**2 for error, _ in found]) < 0.3 / 20
    assert np.mean([freedom for _, freedom in found]) < 5


# First alarms


@given(seed=st.integers(0, 2**32), paths=st.integers(1, 40), tests=st.integers(1, 15), start=st.integers(0, 14))
def test_first_alarms_by_hand(seed: int, paths: int, tests: int, start: int) -> None:
    """From records, or from the paths themselves: the first test above its level, if there is one."""
    rng = np.random.default_rng(seed)
    values, start = rng.normal(size=(paths, tests)), min(start, tests - 1)
    edges = np.array(sorted({0, int(rng.integers(0, tests + 1)), tests}))
    levels = rng.normal(loc=1.0, size=len(edges) - 1)
    by_test = np.repeat(levels, np.diff(edges))
    expected = [next((t for t in range(tests) if path[t] > by_test[t]), None) for path in values]

    no_floors = np.full(len(levels), -np.inf)
    path, test = first_alarms(Records(paths, no_floors, *numpy_.records(values, edges, no_floors)), edges, levels)
    assert path.tolist() == [p for p, first in enumerate(expected) if first is not None]
    assert test.tolist() == [first for first in expected if first is not None]

    ends = [tests - 1 if first is None else first for first in expected]
    for backend in BACKENDS:
        functions = on_device(backend)
        rang, made = functions.first_passages(functions.put(values), by_test, start)
        assert rang.tolist() == [first is not None and first >= start for first in expected]
        assert made.tolist() == [max(end - start + 1, 0) for end in ends]


# What is told


errors = st.builds(
    Errors,
    simulation=st.floats(0, 0.3),
    law=st.sampled_from([0.0, 1e-3, 0.1, 0.5]),
    reference=st.sampled_from([0.0, 1e-3, 0.1, 0.5]),
    tail=st.sampled_from([0.0, 0.05, 0.3]),
    law_freedom=st.sampled_from([3.0, 50.0, math.inf]),
)


@given(errors=errors, points=st.integers(20, 100_000))
def test_so_many_points_halve_the_interval(errors: Errors, points: int) -> None:
    """Half as wide with them, and not quite with one less; no number where simulation and tail alone are wider."""
    more = points_to_halve(errors, points)
    if more is None:
        assert math.hypot(errors.simulation, errors.tail) >= errors.total / 2
        return

    def width(count: float) -> float:
        part = points / count
        return replace(errors, law=errors.law * part**0.5, reference=errors.reference * part).total

    assert width(points + more) <= errors.total / 2 * (1 + 1e-9)
    assert width(points + more - 1) > errors.total / 2 * (1 - 1e-9)


def test_what_points_fall_with() -> None:
    """The error of the law with their root, that of the gap with their number: three times as many more, or as many."""
    assert points_to_halve(Errors(0.0, 0.1, 0.0, 0.0), 100) == 300
    assert points_to_halve(Errors(0.0, 0.0, 0.1, 0.0), 100) == 100
    assert points_to_halve(Errors(0.1, 0.0, 0.0, 0.0), 100) is None
    assert points_to_halve(Errors(0.0, math.inf, 0.0, 0.0), 100) is None


@given(errors=errors)
def test_quantiles_of_errors(errors: Errors) -> None:
    """Symmetric, rising, at least the normal ones, and those where nothing is in doubt."""
    levels = [0.05, 0.5, 0.8, 0.95, 0.99]
    quantiles = [errors.quantile(level) for level in levels]
    assert quantiles == sorted(quantiles)
    assert errors.quantile(0.5) == pytest.approx(0, abs=1e-9)
    assert errors.quantile(0.05) == pytest.approx(-errors.quantile(0.95))
    assert errors.quantile(0.95) >= 1.6448 * errors.total
    assert errors.quantile(0.95) <= 2.3534 * errors.total  # that of three degrees of freedom
    exact = replace(errors, law_freedom=math.inf, reference=0.0)
    assert exact.quantile(0.95) == pytest.approx(1.644854 * exact.total)


def test_an_error_that_is_not_known_has_no_bounds() -> None:
    """One of them is enough."""
    for name in ("simulation", "law", "reference", "tail"):
        unknown = replace(Errors(0.1, 0.1, 0.1, 0.1), **{name: math.inf})
        assert (unknown.quantile(0.95), unknown.quantile(0.05)) == (math.inf, -math.inf)


# A fit's own errors


def fitted_to(points: int, seed: int) -> tuple[Detector, Float64Array]:
    """A detector with one channel, and the Gaussian reference that it was fitted to."""
    reference = np.random.default_rng(seed).normal(size=(points, 3))
    detector = Detector(
        100, MMD(Gaussian()), window=10, start="cold", sampler=Independent(), seed=seed, error=0.05
    ).fit(reference, progress=False)
    return detector, reference


@pytest.fixture(scope="module")
def fits() -> dict[int, list[tuple[Detector, Float64Array]]]:
    """Four references of each size."""
    return {points: [fitted_to(points, seed) for seed in range(4)] for points in (200, 800)}


def test_fits_tell_of_both_errors(fits: dict[int, list[tuple[Detector, Float64Array]]]) -> None:
    """Of the law about 0.075 and 0.048, of the gap 0.11 and 0.028, by 6 references each, spread by 0.02.

    Means of four are within 0.04 of these, four standard errors: they see an error that is left out.
    """
    for points, law, gap in ((200, 0.075, 0.11), (800, 0.048, 0.028)):
        errors = [detector.calibration_.errors for detector, _ in fits[points]]
        assert np.mean([error.law for error in errors if error]) == pytest.approx(law, abs=0.04)
        assert np.mean([error.reference for error in errors if error]) == pytest.approx(gap, abs=0.04)
        assert all(error and error.law > 0.01 for error in errors)


def test_windows_that_rang_ring(fits: dict[int, list[tuple[Detector, Float64Array]]]) -> None:
    """Against the reference itself rather than its copies, their median is above the threshold, by 13 % or more.

    With only 7 of their 10 points it would be at 0.4 of it: streams are drawn again to the point.
    """
    for detector, reference in fits[800]:
        assert detector._fitted is not None
        rang = detector._fitted.rang
        assert rang is not None
        statistics = []
        for window in rang[:100]:
            detector.reset()
            statistics.append(detector.update_many(reference[window]).statistic[-1])
        assert np.median(statistics) > detector.calibration_.threshold


# Blocks know as much of rare alarms as the reference has of them


def test_rates_below_those_of_the_reference_are_extrapolated() -> None:
    """A reference of 20,000 in blocks holds 100 alarms that come once in 200; independent draws know no such limit."""
    blocks, singly = InBlocks(np.array([0, 20_000]), 60, 0), Singly(20_000)
    options: dict[str, Any] = {"bootstraps": True, "discrete": False, "error": 0.05, "paths": None}
    assert make_plan("steady", 5000, (10,), blocks, **options).simulated == 200
    assert make_plan("steady", 5000, (10,), singly, **options).simulated == 5000


def test_a_tail_of_blocks_is_known_as_well_as_the_reference_is_large() -> None:
    """By the 100 alarms that it holds, however many streams are drawn from it (1100 rang here).

    The scale of a tail is known to sqrt(2 / n) from n maxima, if its shape is about 0: to 0.14, not to 0.04.
    """
    reference = np.random.default_rng(0).normal(size=(3000, 2))
    detector = Detector(300, MMD(Gaussian()), window=5, sampler=Blocks(30, 0), seed=1, error=0.03)
    calibration = detector.fit(reference, progress=False).calibration_
    assert calibration.alarms > 1000
    assert calibration.curve is not None
    assert math.sqrt(calibration.curve.tail.errors[0, 0]) == pytest.approx(0.14, abs=0.05)


def test_rarer_alarms_are_known_worse(fits: dict[int, list[tuple[Detector, Float64Array]]]) -> None:
    """An error in the scale of the statistic moves a higher threshold more: it is farther out, on a tail that falls."""
    for detector, _ in fits[200]:
        calibration = detector.calibration_
        rarer = aimed_at(calibration, 20 * calibration.ert)
        assert calibration.errors
        assert rarer.errors
        for name in ("law", "reference"):
            assert 1.3 < getattr(rarer.errors, name) / getattr(calibration.errors, name) < 3
