"""Whether the order of a reference matters: found when it does, seldom when it does not, and what a fit then does.

Each test of a number of findings states the number that chance exceeds once in 10^6; seeds are fixed and were not
chosen.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from benchmarks.runs import average_run_length
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tocsin import (
    LSDD,
    MMD,
    Blocks,
    Custom,
    DependenceWarning,
    Detector,
    Gaussian,
    Independent,
    InputError,
    MeanShift,
    ReferenceWarning,
)
from tocsin import _compute as compute
from tocsin._calibration import dependence as module
from tocsin._calibration.dependence import SIGNIFICANT, Similarity, dependence, memory
from tocsin._compute.arrays import Array, Float64Array, Int64Array
from tocsin._execution.threads import Threads
from tocsin._statistics.base import Setting, Statistic

RARE = 1e-6


def autoregressive(rng: np.random.Generator, count: int, memory: float, columns: int = 2) -> Float64Array:
    """x_t = memory x_{t-1} + noise, from its own law on; (count, columns)."""
    noise = rng.normal(size=(count, columns))
    x: Float64Array = noise / (1 - memory**2) ** 0.5
    for t in range(1, count):
        x[t] = memory * x[t - 1] + noise[t]
    return x


def product(values: Float64Array) -> Similarity:
    """The linear kernel of a column, centred."""
    centred = values - values.mean()
    return lambda first, second: np.asarray(centred[first] * centred[second])


def similarity_of(statistic: Statistic, points: Float64Array) -> Similarity:
    """How alike a statistic finds points."""
    setting = Setting((8,), compute.load("numba"), Threads(1), np.random.default_rng(0))
    return statistic.prepare(points, points[:20], setting).similarity


def one_group(count: int) -> Int64Array:
    """Its bounds."""
    return np.array([0, count])


# The test


LAWS: dict[str, Callable[[np.random.Generator, int], Float64Array]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(size=n),
    "two values": lambda rng, n: (rng.random(n) < 0.1).astype(np.float64),
}
laws = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


def findings(law: Callable[[np.random.Generator, int], Float64Array], references: int, level: float) -> int:
    """How many references of independent points have a p-value of at most `level`."""
    found = 0
    for seed in range(references):
        rng = np.random.default_rng([seed, 1])
        found += dependence(product(law(rng, 60)), one_group(60), 8) <= level
    return found


@laws
def test_independent_points_are_seldom_called_dependent(
    law: Callable[[np.random.Generator, int], Float64Array],
) -> None:
    """One reference in a hundred: of 300, more than 14 by chance once in 10^6. Sees a level of 9 %."""
    assert findings(law, 300, SIGNIFICANT) <= stats.binom.isf(RARE, 300, SIGNIFICANT)


@laws
def test_the_level_is_exact(
    law: Callable[[np.random.Generator, int], Float64Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The true order is ranked like any other. With nine random ones it is the last of ten once in ten.

    Of 1200 references, more than 172 by chance once in 10^6: sees a level of 16 % in place of 10 %.
    """
    monkeypatch.setattr(module, "MOST_ORDERS", 9)
    assert findings(law, 1200, 0.1) <= stats.binom.isf(RARE, 1200, 0.1)


@pytest.mark.parametrize("seed", range(5))
def test_the_score(seed: int) -> None:
    """Means over lags 1, 2, 4, 8, and over all lags up to 2, 4, 8, for which these stand: 1, 1, 2 and 4 of them."""
    table = np.random.default_rng([seed, 7]).normal(size=(40, 40))
    scores, total, square = [], 0.0, 0.0
    for lag, span in ((1, 1), (2, 1), (4, 2), (8, 4)):
        kernels = np.array([table[i, i + lag] for i in range(40 - lag)])
        mean, variance = kernels.mean(), (kernels**2).mean() / len(kernels)
        total, square = total + span * mean, square + span**2 * variance
        scores += [(abs(mean) / variance**0.5, lag == 1), (abs(total) / square**0.5, lag == 2)][: 1 + (lag > 1)]
    largest = max(score * (module.NEXT if soon else 1) for score, soon in scores)
    by_law = 1 - np.prod([1 - 2 * stats.norm.sf(largest / (module.NEXT if soon else 1)) for _, soon in scores])
    p_value = dependence(lambda first, second: np.asarray(table[first, second]), one_group(40), 8)
    assert p_value == pytest.approx(by_law) if by_law > module.UNUSUAL else p_value != by_law


@laws
def test_what_is_nothing_unusual_is_not_ranked(law: Callable[[np.random.Generator, int], Float64Array]) -> None:
    """Ranking takes far longer: four in ten references at least do without, and are not found."""
    ranked = 0
    for seed in range(100):
        rng, seen = np.random.default_rng([seed, 5]), [0]
        similar = product(law(rng, 60))

        def counted(
            first: Int64Array, second: Int64Array, similar: Similarity = similar, seen: list[int] = seen
        ) -> Any:
            seen[0] += 1
            return similar(first, second)

        p_value = dependence(counted, one_group(60), 8)
        assert seen[0] <= 1 + module.MOST_ORDERS
        assert seen[0] > 1 or p_value > module.UNUSUAL
        ranked += seen[0] > 1
    assert 0 < ranked <= 60


@pytest.mark.parametrize(
    "statistic", [MMD(), MMD(Gaussian()), LSDD(), MeanShift()], ids=["family", "MMD", "LSDD", "mean"]
)
def test_dependence_is_found(statistic: Statistic) -> None:
    """A correlation of 0.3, in 500 points: in at least 22 of 30 references.

    Where 97 in 100 are found, fewer are once in 10^6; sees a power of less than 55 %.
    """
    found = 0
    for seed in range(30):
        rng = np.random.default_rng([seed, 2])
        similarity = similarity_of(statistic, autoregressive(rng, 500, 0.3))
        found += dependence(similarity, one_group(500), 8) <= SIGNIFICANT
    assert found >= 22


def test_a_slow_change_is_dependence_too() -> None:
    """A drift through the reference, which neighbours share, however far apart they are."""
    rng = np.random.default_rng(0)
    drifting = rng.normal(size=500) + np.linspace(0, 2, 500)
    assert dependence(product(drifting), one_group(500), 8) <= SIGNIFICANT


def test_only_points_of_one_group_are_compared() -> None:
    """Pairs of independent points, each of whose second is the next one's first: dependent only across groups.

    Of 40 references, more than 6 are found by chance once in 10^6 if groups are known; all are if they are not.
    """
    known, unknown = 0, 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 3])
        steps = rng.normal(size=151)
        similarity = product(np.stack([steps[:-1], steps[1:]], axis=1).ravel())
        known += dependence(similarity, np.arange(0, 301, 2), 8) <= SIGNIFICANT
        unknown += dependence(similarity, one_group(300), 8) <= SIGNIFICANT
    assert known <= stats.binom.isf(RARE, 40, SIGNIFICANT)
    assert unknown == 40


def test_what_is_clear_is_ranked_among_few_orders() -> None:
    """As a memory of 0.6 is; and what is found is found with any other orders, as it is far from what they show."""
    rng, seen = np.random.default_rng(3), [0]
    similar = product(autoregressive(rng, 500, 0.6, 1)[:, 0])

    def counted(first: Int64Array, second: Int64Array) -> Float64Array:
        seen[0] += 1
        return similar(first, second)

    assert dependence(counted, one_group(500), 8) == 1 / (1 + module.FEW_ORDERS)
    assert seen[0] == 1 + module.FEW_ORDERS


@pytest.mark.parametrize(("count", "correlation", "least"), [(300, 0.3, 30), (1000, 0.15, 26), (3000, 0.1, 30)])
def test_how_much_dependence_is_found(count: int, correlation: float, least: int) -> None:
    """Of 32 references. Where 97 in 100 are found (91 for the second), fewer than these are once in 10^3 to 10^4."""
    found = 0
    for seed in range(32):
        points = autoregressive(np.random.default_rng([seed, 6]), count, correlation)
        found += dependence(similarity_of(MMD(), points), one_group(count), 25) <= SIGNIFICANT
    assert found >= least


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_decision_is_the_references(seed: int) -> None:
    """Not the seed's: with a p-value close to the bound it is the same to the last digit."""
    points = autoregressive(np.random.default_rng(11), 400, 0.15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [Detector(200, window=8, seed=s, paths=200, interval=False).fit(points) for s in (0, seed)]
    assert found[0].calibration_.dependence == found[1].calibration_.dependence
    assert 0 < (found[0].calibration_.dependence or 0) <= module.UNUSUAL


@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=5), reach=st.integers(1, 20))
def test_pairs_that_are_looked_at(sizes: list[int], reach: int) -> None:
    """All points that are 1, 2, 4, ... apart in a group, and no others."""
    edges = np.cumsum([0, *sizes])
    groups, seen = np.repeat(np.arange(len(sizes)), sizes), []

    def similarity(first: Int64Array, second: Int64Array) -> Float64Array:
        seen.append(list(zip(first.tolist(), second.tolist(), strict=True)))
        return np.zeros(len(first))

    p_value = dependence(similarity, edges, reach)
    expected = [
        (i, i + lag)
        for lag in (2**k for k in range(5) if 2**k <= reach)
        for i in range(sum(sizes) - lag)
        if groups[i] == groups[i + lag]
    ]
    assert seen[:1] == ([expected] if expected else []), "the order as it is comes first"
    assert p_value == 1


def test_long_references_are_looked_at_in_part() -> None:
    """As many pairs as MOST_PAIRS at each of the lags 1, 2 and 4, from all of the reference."""
    sizes, last = set(), 0

    def similarity(first: Int64Array, second: Int64Array) -> Float64Array:
        nonlocal last
        sizes.add(len(first))
        last = max(last, int(first[-1]))
        return np.zeros(len(first))

    dependence(similarity, one_group(50_000), 4)
    assert sizes == {3 * module.MOST_PAIRS}
    assert last > 49_000


# Memory


def blocks(correlation: float, count: int) -> list[int]:
    """Block lengths for references of a column with this memory."""
    lengths = []
    for seed in range(15):
        rng = np.random.default_rng([seed, 4])
        values = autoregressive(rng, count, correlation, 1)[:, 0]
        lengths.append(memory(product(values), one_group(count), rng).block)
    return lengths


@pytest.mark.parametrize("correlation", [0.3, 0.5, 0.7, 0.9])
def test_block_lengths_of_an_autoregression(correlation: float) -> None:
    """(6 r^2 / (1 - r^2)^2)^(1/3) N^(1/3), as Politis and White have it; the median of 15 references, to a quarter."""
    expected = (6 * correlation**2 / (1 - correlation**2) ** 2) ** (1 / 3) * 3000 ** (1 / 3)
    assert np.median(blocks(correlation, 3000)) == pytest.approx(expected, rel=0.25)


def test_stronger_memory_asks_for_longer_blocks_and_reaches_further() -> None:
    """By the kernel of the MMD, whose features are not the points themselves."""
    found = []
    for correlation in (0.0, 0.4, 0.7, 0.9):
        points = autoregressive(np.random.default_rng(5), 1500, correlation)
        found.append(memory(similarity_of(MMD(), points), one_group(1500), np.random.default_rng(0)))
    for each in ("block", "reach"):
        lengths = [getattr(one, each) for one in found]
        assert lengths == sorted(set(lengths))
    assert found[0].block <= 2
    assert found[-1].block <= 1500 / 3


def test_memory_of_what_never_changes() -> None:
    """None."""
    assert memory(product(np.ones(200)), one_group(200), np.random.default_rng(0)).block == 1


def test_memory_respects_groups() -> None:
    """Groups shorter than the memory say what they can, and no pair across them does."""
    rng = np.random.default_rng(6)
    points = np.concatenate([autoregressive(rng, 20, 0.8, 1)[:, 0] for _ in range(60)])
    apart = memory(product(points), np.arange(0, 1201, 20), np.random.default_rng(0))
    assert 1 < apart.block < 100
    shuffled = rng.permutation(1200)
    assert memory(product(points[shuffled]), np.arange(0, 1201, 20), np.random.default_rng(0)).block <= 3


# What a fit does


def fit(reference: Any, **options: Any) -> tuple[Detector, list[str]]:
    """A fitted detector, and what it said about the order of its reference."""
    defaults = {"ert": 500, "statistic": MMD(Gaussian()), "window": 10, "interval": False, "paths": 4000, "seed": 0}
    groups = options.pop("groups", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        detector = Detector(**{**defaults, **options}).fit(reference, groups=groups)
    assert all(warning.filename == __file__ for warning in caught), "warnings name the line that called fit"
    messages = [str(warning.message) for warning in caught if warning.category is DependenceWarning]
    for warning in caught:
        if warning.category is not DependenceWarning:
            warnings.warn(warning.message, warning.category, stacklevel=2)
    return detector, messages


DEPENDENT = autoregressive(np.random.default_rng(0), 2000, 0.6)


def test_assumed_independence_is_warned_of_with_the_real_run_time() -> None:
    """Far below what is asked for, and within a factor of two of what fresh streams show.

    (200 alarms have an error of 7 %; the run time told rests on some hundreds, and on the reference.)
    """
    detector, (message,) = fit(DEPENDENT, sampler=Independent())
    told = re.search(r"ring once in about (\S+) observations, not 500\. Give sampler=Blocks\(\)", message)
    assert told is not None
    assert float(told[1]) < 500 / 4
    assert detector.calibration_.block == 1
    assert detector.calibration_.dependence is not None
    assert detector.calibration_.dependence <= SIGNIFICANT
    seen = average_run_length(
        detector, lambda rng, n: autoregressive(rng, n, 0.6), np.random.default_rng(1), alarms=200
    )
    assert 0.5 < float(told[1]) / seen < 2


def test_the_default_takes_blocks_and_says_so() -> None:
    """With their length; asked for, they are taken without a word."""
    detector, (message,) = fit(DEPENDENT)
    calibration = detector.calibration_
    assert calibration.block > 10
    assert calibration.guard > 0
    assert f"depends on its order (p = 0.01), so null streams are drawn in blocks of {calibration.block} " in message
    assert "sampler=Independent()" in message
    asked_for, nothing = fit(DEPENDENT, sampler=Blocks())
    assert nothing == []
    assert asked_for.calibration_.threshold == calibration.threshold
    independent, _ = fit(DEPENDENT, sampler=Independent())
    assert calibration.threshold > 1.2 * independent.calibration_.threshold


def test_default_windows_leave_room_for_blocks() -> None:
    """Blocks hold several windows, and the reference several blocks: too short for the longest window, it says so."""
    with pytest.warns(ReferenceWarning, match=r"Default windows left out: 100\. In blocks, a window needs 60 times"):
        detector, (message,) = fit(DEPENDENT, window=None)
    assert detector.windows_ == (8, 25)
    assert "so null streams are drawn in blocks" in message


def test_a_shuffled_reference_is_independent() -> None:
    """What the warning advises where the order means nothing."""
    detector, nothing = fit(np.random.default_rng(0).permutation(DEPENDENT))
    assert nothing == []
    assert detector.calibration_.block == 1


def test_fits_to_independent_points_are_quiet() -> None:
    """And draw them one by one, but for one in a hundred: of 25, more than 5 by chance once in 10^6."""
    spoke = 0
    for seed in range(25):
        detector, messages = fit(np.random.default_rng([seed, 7]).normal(size=(300, 2)), seed=seed, paths=500)
        p_value = detector.calibration_.dependence
        assert p_value is not None
        assert (detector.calibration_.block > 1) == (len(messages) == 1) == (p_value <= SIGNIFICANT)
        spoke += len(messages)
    assert spoke <= stats.binom.isf(RARE, 25, SIGNIFICANT)


def test_groups_are_what_a_fit_looks_at() -> None:
    """Recordings of independent points, each at a level of its own, are dependent unless they are told apart.

    (Points of one recording are alike, so groups do not make them independent; those a lag apart in time, though, are
    no more alike than any two of it where each holds one point.)
    """
    levels = np.repeat(np.random.default_rng(8).normal(size=(30, 2)), 20, axis=0)
    points = levels + np.random.default_rng(9).normal(size=(600, 2))
    _, messages = fit(points)
    assert len(messages) == 1
    detector, messages = fit(points, groups=np.arange(600))
    assert messages == []
    assert detector.calibration_.dependence == 1


# Where nothing can be seen, or there is not enough


def price_gap(X: list[dict[str, float]], Y: list[dict[str, float]]) -> float:
    """A distance between two samples of dicts."""
    return abs(float(np.mean([x["price"] for x in X]) - np.mean([y["price"] for y in Y])))


def test_objects_that_only_a_function_knows() -> None:
    """No test can be made: they are taken for independent, and blocks need a length."""
    prices = [{"price": float(x)} for x in autoregressive(np.random.default_rng(0), 300, 0.9, 1)[:, 0]]
    options: dict[str, Any] = {"statistic": Custom(price_gap), "ert": 30, "window": 4, "paths": 600}
    detector, nothing = fit(prices, **options)
    assert nothing == []
    assert detector.calibration_.dependence is None
    with pytest.raises(InputError, match=r"Blocks\(\) cannot .* give sampler=Blocks\(length=\.\.\., guard=\.\.\.\)"):
        fit(prices, **options, sampler=Blocks())
    detector, nothing = fit(prices, **options, sampler=Blocks(20, 3))
    assert nothing == []
    assert detector.calibration_.block == 20


def test_rows_of_numbers_are_compared_even_if_the_function_says_nothing() -> None:
    """Column by column, at their own scales."""

    def gap(X: Array, Y: Array) -> float:
        return float(np.abs(X.mean(0) - Y.mean(0)).max())

    points = autoregressive(np.random.default_rng(0), 600, 0.6) * [1.0, 1e6]
    detector, (message,) = fit(points, statistic=Custom(gap), ert=30, window=4, paths=600)
    assert detector.calibration_.block > 1
    assert "depends on its order" in message


def test_blocks_that_are_too_long_are_refused() -> None:
    """With how many points there would have to be."""
    with pytest.raises(
        InputError, match=r"Blocks of 50 .* too long for a reference of 200: .*Collect 500 observations"
    ):
        fit(DEPENDENT[:200], sampler=Blocks(50))


def test_assumed_independence_is_taken_at_its_word() -> None:
    """Even if a reference is too short for blocks: the user asked for none."""
    detector, messages = fit(
        autoregressive(np.random.default_rng(0), 60, 0.95), sampler=Independent(), ert=30, window=5, paths=600
    )
    assert detector.calibration_.block == 1
    assert len(messages) == 1
