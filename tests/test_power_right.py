"""Power cards are right, and so is what they say would help."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from powering import made, remembering
from tocsin import MMD, Detector, Views
from tocsin._detector.base import fitted_of
from tocsin._detector.starting import places_of
from tocsin._execution.progress import no_progress
from tocsin._power.measure import measure, median_ranks
from tocsin._power.trials import at_run_time, typical

pytestmark = pytest.mark.usefixtures("quick_fits")


LAWS: dict[str, tuple[Any, Any]] = {
    "independent": (lambda rng, n: rng.normal(size=(n, 2)), lambda: Detector(200, MMD(), window=[5, 20], seed=2)),
    "remembering": (
        lambda rng, n: remembering(n, 2, int(rng.integers(10**9)), 0.5),
        lambda: Detector(200, Views(), seed=2, paths=12),
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_delays_are_those_of_fresh_streams(law: str) -> None:
    """The law goes on, and a column moves by three spreads: the median is within a factor of 1.6 of the card's (and a
    row), which has forty trials, and the interval on the card holds it, or a row beside it.

    The median of 60 fresh delays, which spread by a third to a half, is known to 8 %, that of 40 to 10 %: a factor of
    1.6 and a row are some four standard deviations, and each case is one of fixed seeds.
    """
    draw, make = LAWS[law]
    rng = np.random.default_rng(3)
    reference = draw(rng, 600)
    detector = make().fit(reference, progress=False)
    card = detector.power(progress=False)
    change = next(c for c in card.changes if (c.kind, c.column, c.size) == ("higher", "1", 3.0))
    assert change.amount is not None
    delays = []
    for _ in range(60):
        stream = draw(rng, 500 + 40)
        stream[500:, 0] += change.amount
        watching = copy.copy(detector)
        watching.update_many(stream[:500])  # of views, the first rows are judged more strictly
        outcomes = watching.update_until_alarm(stream[500:])
        delays.append(len(outcomes) if outcomes.alarm.any() else np.inf)
    median = float(np.median(delays))
    assert change.delay / 1.6 - 1 <= median <= 1.6 * change.delay + 1
    assert change.low - 1 <= median <= change.high + 1


def test_other_run_times() -> None:
    """A shorter one finds no less, and sooner; what would help is told."""
    for name in ("mmd", "views"):
        own = fitted_of(made(name))
        places = None if own.live.goes_on else places_of(own)
        cards = [measure(at_run_time(own, ert), places, 1, no_progress, share=0.9) for ert in (100, 5000)]
        pairs = [(a.delay, b.delay) for a, b in zip(*(card.changes for card in cards), strict=True) if b.found]
        assert len(pairs) > 5
        assert np.mean([a for a, _ in pairs]) < np.mean([b for _, b in pairs])
        assert [card.ert for card in cards] == [100, 5000]
        assert not any(card.advice for card in cards)


def test_typical_delays() -> None:
    """The median, of those trials that would not have rung anyway; and its interval holds it often enough."""
    nothing = np.full(5, np.inf)
    assert typical(np.array([1.0, 2, 3, 4, 5]), nothing) == 3
    assert typical(np.array([1.0, 2, np.inf, np.inf, np.inf]), nothing) == math.inf
    lucky = np.array([1.0, 1, 1, np.inf, np.inf])
    assert typical(np.array([1.0, 1, 1, 9, np.inf]), lucky) == 9
    assert typical(np.array([1.0, 1, 1, np.inf, np.inf]), lucky) == math.inf
    for count in range(1, 65):
        low, high = median_ranks(count)
        assert 0 <= low <= high < count
        held = stats.binom.cdf(high, count, 0.5) - stats.binom.cdf(low, count, 0.5)  # P(low < B <= high)
        assert held >= 0.9 or (low, high) == (0, count - 1)
