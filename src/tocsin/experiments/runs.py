"""Run lengths and delays of a fitted detector on streams from known laws, many at a time.

Both use that a statistic depends on the last observations alone, as many as the widest window holds: it can be computed
for a long stream at once, and runs read off afterwards. Detectors must start cold.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.compute.arrays import Float64Array, Int64Array
from tocsin.experiments.laws import Law
from tocsin.watching import Watcher

SHORTEST_BLOCK, LONGEST_BLOCK = 1024, 32_768

FIRST_STEPS, MOST_STEPS = 32, 512
"""Observations after a change that are looked at first, and at most in one piece."""


def run_lengths(detector: Watcher[Any], law: Law, rng: np.random.Generator, runs: int) -> Int64Array:
    """Tests up to and including the alarm, for `runs` runs without a change."""
    thresholds, widest = detector.thresholds_, detector.windows_[-1]
    detector.reset()
    found: list[int] = []
    statistic = np.empty(0)
    first = widest - 1  # where in `statistic` the first test of the current run is
    while len(found) < runs:
        expected = (runs - len(found)) * (widest + (np.mean(found) if found else detector.calibration_.ert))
        size = int(np.clip(expected, SHORTEST_BLOCK, LONGEST_BLOCK))
        statistic = np.concatenate([statistic, detector.update_many(law(rng, size)).statistic])
        above = np.flatnonzero(statistic > thresholds[-1])
        while len(found) < runs:
            alarm = _first_alarm(statistic, first, above, thresholds)
            if alarm is None:
                break
            found.append(alarm - first + 1)
            first = alarm + widest
        done = min(first, len(statistic))
        statistic, first = statistic[done:], first - done
    return np.array(found)


def _first_alarm(statistic: Float64Array, first: int, above: Int64Array, thresholds: Float64Array) -> int | None:
    """Where the run whose first test is at `first` rings; `above`: where the last threshold is exceeded."""
    early = statistic[first : first + len(thresholds) - 1]
    rang = np.flatnonzero(early > thresholds[: len(early)])
    if len(rang):
        return first + int(rang[0])
    later = int(np.searchsorted(above, first + len(thresholds) - 1))
    return int(above[later]) if later < len(above) else None


def delays(detector: Watcher[Any], before: Law, after: Law, rng: np.random.Generator, runs: int) -> Int64Array:
    """Observations from a change up to and including the alarm.

    The change comes when the windows are just full, and the first test, made of points from before, was quiet: the
    paper's change point W + 1, and its expectation given that no alarm came earlier.
    """
    thresholds, widest = detector.thresholds_, detector.windows_[-1]
    recent = _quiet_windows(detector, before, rng, runs)
    found = np.zeros(runs, np.int64)
    active, tests, steps = np.arange(runs), 1, FIRST_STEPS
    while len(active):
        new = after(rng, len(active) * steps).reshape(len(active), steps, -1)
        streams = np.concatenate([recent, new], axis=1)
        statistic = _statistics(detector, streams)[:, widest:]
        places = np.minimum(np.arange(tests, tests + steps), len(thresholds) - 1)
        rings = statistic > thresholds[places]
        rang = rings.any(1)
        found[active[rang]] = tests + rings[rang].argmax(1)
        active, recent = active[~rang], streams[~rang, -widest:]
        tests, steps = tests + steps, min(2 * steps, MOST_STEPS)
    return found


def _quiet_windows(detector: Watcher[Any], law: Law, rng: np.random.Generator, runs: int) -> Float64Array:
    """Windows (runs, W, d) that do not ring at the first test."""
    threshold, widest = detector.thresholds_[0], detector.windows_[-1]
    pieces: list[Float64Array] = []
    while sum(map(len, pieces)) < runs:
        windows = law(rng, runs * widest).reshape(runs, widest, -1)
        pieces.append(windows[_statistics(detector, windows)[:, -1] <= threshold])
    return np.concatenate(pieces)[:runs]


def _statistics(detector: Watcher[Any], streams: Float64Array) -> Float64Array:
    """The statistic after every point of every stream (P, L, d); right from the W-th point on."""
    detector.reset()
    paths, length, _ = streams.shape
    return detector.update_many(streams.reshape(paths * length, -1)).statistic.reshape(paths, length)
