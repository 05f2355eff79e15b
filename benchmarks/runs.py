"""Run lengths of a fitted detector on streams from known laws."""

from __future__ import annotations

import numpy as np

from tocsin import Detector
from tocsin.experiments.laws import Law

BLOCK = 4096


def average_run_length(detector: Detector, law: Law, rng: np.random.Generator, alarms: int) -> float:
    """Tests per false alarm, over a stream that goes on until `alarms` of them have rung."""
    tests, rang = 0, 0
    while rang < alarms:
        outcomes = detector.update_many(law(rng, BLOCK), reset_on_alarm=True)
        tests += int(np.isfinite(outcomes.statistic).sum())
        rang += int(outcomes.alarm.sum())
    return tests / rang


def run_lengths(
    detector: Detector, law: Law, rng: np.random.Generator, runs: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The lengths of `runs` runs without a change, in tests."""
    found: list[int] = []
    current = 0
    while len(found) < runs:
        outcomes = detector.update_many(law(rng, BLOCK), reset_on_alarm=True)
        for tested, alarm in zip(np.isfinite(outcomes.statistic), outcomes.alarm, strict=True):
            current += int(tested)
            if alarm:
                found.append(current)
                current = 0
    return np.array(found[:runs])


def mean_delay(
    detector: Detector, before: Law, after: Law, rng: np.random.Generator, runs: int, *, longest: int = 100_000
) -> float:
    """Observations from a change to the alarm, the windows being full of points from before it."""
    widest = detector.windows_[-1]
    total = 0
    for _ in range(runs):
        while True:
            detector.reset()
            if not detector.update_many(before(rng, widest)).alarm.any():
                break
        delay, size = 0, 2 * widest
        while delay < longest:
            rang = np.flatnonzero(detector.update_many(after(rng, size)).alarm)
            if len(rang):
                delay += int(rang[0]) + 1
                break
            delay, size = delay + size, min(2 * size, BLOCK)
        total += delay
    return total / runs
