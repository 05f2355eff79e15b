"""Run lengths of a fitted detector on streams from known laws."""

from __future__ import annotations

import numpy as np

from tocsin import Detector
from tocsin._experiments.laws import Law

BLOCK = 4096


def average_run_length(detector: Detector, law: Law, rng: np.random.Generator, alarms: int) -> float:
    """Tests per false alarm, over a stream that goes on until `alarms` of them have rung."""
    tests, rang = 0, 0
    while rang < alarms:
        outcomes = detector.update_many(law(rng, BLOCK))
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
        outcomes = detector.update_many(law(rng, BLOCK))
        for tested, alarm in zip(np.isfinite(outcomes.statistic), outcomes.alarm, strict=True):
            current += int(tested)
            if alarm:
                found.append(current)
                current = 0
    return np.array(found[:runs])
