"""`tocsin.compare`: its level against simulation, and its statistic against the equations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from compared import Rng, autoregressive, counts, heavy, mixed, wide
from tocsin import compare
from tocsin._compare.pooling import pool
from tocsin._compare.splits import draw_splits, ways
from tocsin._compare.statistic import RAREST, discrepancies, largest, rarity
from tocsin._execution.progress import no_progress

# The promise

TIMES, ERT = 300, 20


@pytest.mark.long
@pytest.mark.parametrize(
    ("law", "first", "second"), [(heavy, 40, 20), (counts, 30, 45), (mixed, 60, 30), (wide, 30, 40)]
)
def test_without_a_difference_every_rarity_is_as_rare_as_it_says(
    law: Callable[[Rng, int], Any], first: int, second: int
) -> None:
    """1 / rarity is uniform, and a verdict comes once in `ert`, on laws that nothing was tuned to.

    Each law fails falsely with a probability of 2.5e-7, half by each bound. With 300 comparisons they see a law of
    1 / rarity that is 0.17 from uniform somewhere, and false verdicts that come three times as often as they should.
    """
    rng = np.random.default_rng(5)
    answers = [compare(law(rng, first), law(rng, second), ert=ERT, seed=i) for i in range(TIMES)]
    p_values = [1 / answer.rarity for answer in answers]
    # Ranks among 200 splits: on a grid this fine.
    assert stats.kstest(p_values, "uniform").pvalue > 1.25e-7
    false = sum(answer.differs for answer in answers)
    assert false <= stats.binom.isf(1.25e-7, TIMES, 1 / ERT)
    assert all(answer.differs == (answer.rarity >= ERT) for answer in answers)


@pytest.mark.long
def test_columns_that_do_not_differ_are_seldom_named() -> None:
    """One of four columns differs much; others are named in at most 5% of comparisons.

    Fails falsely with a probability of 1e-6 or less; sees a rate of 15%.
    """
    rng, named, others = np.random.default_rng(6), 0, 0
    for i in range(TIMES):
        second = rng.normal(size=(40, 4))
        second[:, 1] += 1.5
        names = {column.name for column in compare(rng.normal(size=(80, 4)), second, ert=ERT, seed=i).changed}
        named, others = named + ("2" in names), others + bool(names - {"2"})
    assert named == TIMES
    assert others <= stats.binom.isf(1e-6, TIMES, 0.05)


def test_rows_with_a_memory_change_places_in_blocks() -> None:
    """And the answer says so; the same rows in random order do not need that."""
    rng = np.random.default_rng(7)
    first, second = autoregressive(rng, 2000, 0.6), autoregressive(rng, 500, 0.6)
    answer = compare(first, second, seed=1)
    assert answer.block > 5
    assert answer.conclusive
    assert answer.reference_rows % answer.block == answer.batch_rows % answer.block == 0
    assert f"in blocks of {answer.block}: rows depend on those before them" in str(answer)
    assert f"of the reference with {answer.batch_rows} rows, of 2,000 and 500, in" in str(answer)
    assert compare(rng.permutation(first), rng.permutation(second), seed=1).block == 1


def test_too_few_blocks_for_a_verdict() -> None:
    """Nothing is said to differ, however much it does; the answer and the exit status tell why."""
    rng = np.random.default_rng(8)
    answer = compare(autoregressive(rng, 300, 0.9), autoregressive(rng, 60, 0.9) + 100, seed=1)
    assert not answer.conclusive
    assert not answer.differs
    assert not answer.changed
    assert answer.rarity <= answer.reach < 100
    assert str(answer).startswith("No verdict: rows like these can show nothing rarer than once in ")
    assert "shuffle both tables" in str(answer)
    tiny = compare([1.0, 2.0, 3.0], [50.0, 51.0], seed=1)
    assert (tiny.reach, tiny.conclusive, tiny.differs) == (10, False, False)
    assert "shuffle" not in str(tiny)
    assert compare([1.0, 2.0, 3.0], [50.0, 51.0], ert=5, seed=1).conclusive


# The statistic


def naive_mmd(first: Any, second: Any, width: float) -> float:
    """Straight from the equation, pair by pair."""

    def mean(x: Any, y: Any, *, distinct: bool) -> float:
        pairs = [
            math.exp(-float(((a - b) ** 2).sum()) / (2 * width**2))
            for i, a in enumerate(x)
            for j, b in enumerate(y)
            if i != j or not distinct
        ]
        return sum(pairs) / len(pairs)

    return (
        mean(first, first, distinct=True)
        + mean(second, second, distinct=True)
        - 2 * mean(first, second, distinct=False)
    )


def test_discrepancies_are_those_of_the_equation() -> None:
    """For every split, at every width."""
    rng = np.random.default_rng(9)
    pooled = pool(rng.normal(size=(15, 2)), rng.normal(size=(8, 2)), None, 100)
    splits = draw_splits(pooled, 1, 5, seed=1)
    found = discrepancies(pooled.points, (4.0, 1.0), splits, no_progress)
    for i, width in enumerate((4.0, 1.0)):
        for j, own in enumerate(splits.T > 0):
            assert found[i, j] == pytest.approx(
                naive_mmd(pooled.points[~own], pooled.points[own], width), rel=1e-4, abs=1e-6
            )
    # At so narrow a width no two points are alike, and the channel is left out.
    assert len(discrepancies(pooled.points, (4.0, 1e-3), splits, no_progress)) == 1


def test_the_channels_are_measured_alike() -> None:
    """Each by its own mean and spread; one that has none says nothing."""
    values = np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 30.0, 20.0, 10.0], [5.0, 5.0, 5.0, 5.0]])
    spread = np.sqrt(1.25)
    np.testing.assert_allclose(largest(values), np.array([0.0, 1.5, 0.5, 1.5]) / spread, atol=1e-12)


def test_ranks_ties_and_tails() -> None:
    """The rank among all splits, the coin among equals, and the tail beyond all others."""
    others = np.linspace(0, 1, 99)
    assert rarity(np.append(0.995, others), 0.0) == (50, False)
    assert rarity(np.append(-1.0, others), 0.9) == (1, False)
    tied = np.append(1.0, np.append(np.ones(98), 0.5))
    assert [rarity(tied, coin)[0] for coin in (0.0, 0.5, 0.999)] == [100, 2, 100 / 99]
    assert rarity(np.ones(100), 0.0) == (1, False)
    rng = np.random.default_rng(10)
    exponential = rng.exponential(size=2000)
    for level in (12.0, 15.0, 18.0):
        told, extrapolated = rarity(np.append(level, exponential), 0.5)
        assert extrapolated
        assert abs(math.log(told) - level) < 4
    assert rarity(np.append(1e6, exponential), 0.5) == (RAREST, True)
    # A tail that ends is not believed to: this one is exhausted at 1.
    told, _ = rarity(np.append(1.5, rng.random(2000)), 0.5)
    assert 2001 < told < RAREST
    assert rarity(np.append(2.0, others[:5]), 0.5) == (6, True)


@pytest.mark.parametrize("length", [1, 4])
def test_splits(length: int) -> None:
    """The first is the one at hand; all have as many rows, in whole blocks, and all blocks are as likely."""
    rng = np.random.default_rng(11)
    pooled = pool(rng.normal(size=(20, 1)), rng.normal(size=(8, 1)), None, 100)
    splits = draw_splits(pooled, length, 3001, seed=2)
    assert splits[:, 0].tolist() == [0] * 20 + [1] * 8
    assert (splits.sum(0) == 8).all()
    blocks = splits.reshape(28 // length, length, -1)
    assert (blocks == blocks[:, :1]).all()
    # Six standard errors, 28 times: fails falsely with a probability of 6e-8, and sees a share that is 0.05 off.
    assert np.abs(splits[:, 1:].mean(1) - 8 / 28).max() < 6 * np.sqrt(8 / 28 * 20 / 28 / 3000)
    assert ways(pooled, length) == math.comb(28 // length, 8 // length)


def test_no_row_is_treated_by_whose_it_is() -> None:
    """Points are the same, whichever table is called the reference: scales, categories and kinds are those of all."""
    rng = np.random.default_rng(12)
    for law in (heavy, mixed):
        first, second = law(rng, 40), law(rng, 30)
        one, other = pool(first, second, None, 1000), pool(second, first, None, 1000)
        back = np.concatenate([other.points[30:], other.points[:30]])
        distances = [((points[:, None] - points) ** 2).sum(2) for points in (one.points, back)]
        np.testing.assert_allclose(distances[0], distances[1], atol=1e-9)
