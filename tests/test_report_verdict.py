"""The verdict of a report: whether chance alone would do this."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tocsin._report import gathering
from tocsin._report.words import HARDLY, verdict


def seen_alarms(rang: list[int], tests: int, rarest: float = 0.0, interval: Any = None, mode: str = "steady") -> Any:
    """What a verdict looks at, with alarms at these tests."""
    calibration = SimpleNamespace(mode=mode, nominal=1000.0, ert=1000.0, interval=lambda: interval)
    close = sum(second - first <= 1000 / gathering.SERIES for first, second in pairwise(rang))
    return SimpleNamespace(
        detector=SimpleNamespace(calibration_=calibration), rows=tests, tests=tests, alarms=len(rang), close=close,
        rarest=rarest, rarest_row=rang[-1] if rang else 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "level", "words"),
    [
        (seen_alarms([], 5000), "quiet", "Quiet: no alarm in 5,000 rows."),
        (seen_alarms([500], 5000, 1500), "unsure", "It rang once in 5,000 rows, which chance alone can explain."),
        (seen_alarms([*range(9, 3000, 99)], 5000, 1500), "rang", "It rang 31 times in 5,000 rows: hardly by chance."),
        (seen_alarms([500], 5000, 1e8), "rang", "It rang once in 5,000 rows: hardly by chance."),
        (seen_alarms([1000, 1010, 1020, 1030], 5000, 1500), "rang", "It rang 4 times in 5,000 rows: hardly by chance."),
        (seen_alarms([9], 10, 1500, mode="fixed"), "rang", "It rang once in 10 rows."),
        (seen_alarms([], 10, mode="fixed"), "quiet", "Quiet: no alarm in 10 rows."),
        (seen_alarms([], 0), "quiet", "Quiet: no alarm in 0 rows."),
        (seen_alarms([1], 1, 1500), "rang", "It rang once in 1 row: hardly by chance."),
    ],
)  # fmt: skip
def test_verdicts(seen: Any, level: str, words: str) -> None:
    """By the number of alarms, by how close they are, and by how rare."""
    said = verdict(seen)
    assert (said.level, said.sentence) == (level, words)


def test_an_interval_is_given_the_benefit_of_the_doubt() -> None:
    """Eleven alarms where five are promised are hardly chance, unless the true run time may be half as long."""
    rang = list(range(400, 4900, 440))
    assert verdict(seen_alarms(rang, 5000, 1500)).level == "unsure"
    rang = list(range(300, 4900, 300))
    assert verdict(seen_alarms(rang, 5000, 1500)).level == "rang"
    assert verdict(seen_alarms(rang, 5000, 1500, interval=(450.0, 2200.0))).level == "unsure"


def test_chance_is_seldom_taken_for_a_change() -> None:
    """Of 2000 quiet streams at most 1 % are; fails falsely once in 10^6 if that is so, and sees a rate of 4 %."""
    rng = np.random.default_rng(0)
    wrong, streams = 0, 2000
    for _ in range(streams):
        times = np.cumsum(rng.geometric(1e-3, size=200))
        rang = times[times <= 20_000].tolist()
        rarest = 1000 / rng.random(len(rang)).min() if rang else 0.0
        wrong += verdict(seen_alarms(rang, 20_000, rarest)).level == "rang"
    assert wrong <= stats.binom.isf(1e-6, streams, HARDLY)
