"""Run lengths and delays of fitted detectors on streams from known laws, many at a time.

A statistic depends on the last observations alone, as many as the widest window holds: it can be computed for a long
stream at once, and runs read off afterwards. Detectors that differ in their thresholds only can share it. All must
start cold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tocsin._baselines.lsdd_inc import LSDDInc
from tocsin._baselines.scan_b import ScanB
from tocsin._compute.arrays import Array, Float64Array, Int64Array
from tocsin._detector.base import altered
from tocsin._detector.detector import Detector
from tocsin._experiments.laws import Law

AnyDetector = Detector | LSDDInc | ScanB

SHORTEST_BLOCK, LONGEST_BLOCK = 1024, 32_768

FIRST_STEPS, MOST_STEPS = 32, 512
"""Observations after a change that are looked at first, and at most in one piece."""

MOST_SPARE = 10
"""Windows that are drawn in vain, at most, for each one that is wanted."""


def run_lengths(detectors: Sequence[AnyDetector], law: Law, rng: np.random.Generator, runs: int) -> list[Int64Array]:
    """Tests up to and including the alarm, for `runs` runs without a change of every detector.

    The detectors have the same statistic, that of the first, and thresholds of their own.
    """
    widest = detectors[0].windows_[-1]
    detectors[0].reset()
    watcher = altered(detectors[0], resets=False, hears=False)
    readers = [_Reader(detector, widest - 1) for detector in detectors]
    statistic = np.empty(0)
    while unfinished := [reader for reader in readers if len(reader.found) < runs]:
        expected = max(reader.expected(runs) for reader in unfinished)
        size = int(np.clip(expected, SHORTEST_BLOCK, LONGEST_BLOCK))
        statistic = np.concatenate([statistic, watcher.update_many(law(rng, size)).statistic])
        for reader in unfinished:
            reader.read(statistic, runs)
        done = min([reader.first for reader in unfinished] + [len(statistic)])
        statistic = statistic[done:]
        for reader in unfinished:
            reader.first -= done
    return [np.array(reader.found) for reader in readers]


class _Reader:
    """Finds the runs of one detector in its statistic.

    first: where the first test of the current run is.
    """

    def __init__(self, detector: AnyDetector, first: int) -> None:
        self.thresholds, self.widest, self.ert = detector.thresholds_, detector.windows_[-1], detector.calibration_.ert
        self.first, self.found = first, list[int]()

    def expected(self, runs: int) -> float:
        """Observations that it will take to have found `runs` runs."""
        mean = float(np.mean(self.found)) if self.found else self.ert
        return (runs - len(self.found)) * (self.widest + mean)

    def read(self, statistic: Float64Array, runs: int) -> None:
        """Find further runs, up to as many."""
        above = np.flatnonzero(statistic > self.thresholds[-1])
        while len(self.found) < runs:
            alarm = self._next_alarm(statistic, above)
            if alarm is None:
                return
            self.found.append(alarm - self.first + 1)
            self.first = alarm + self.widest

    def _next_alarm(self, statistic: Float64Array, above: Int64Array) -> int | None:
        transient = len(self.thresholds) - 1
        early = statistic[self.first : self.first + transient]
        rang = np.flatnonzero(early > self.thresholds[: len(early)])
        if len(rang):
            return self.first + int(rang[0])
        later = int(np.searchsorted(above, self.first + transient))
        return int(above[later]) if later < len(above) else None


def delays(
    detectors: Sequence[AnyDetector], before: Law, after: Law, rng: np.random.Generator, runs: int
) -> list[Int64Array]:
    """Observations from a change up to and including the alarm, for `runs` runs of every detector.

    The change comes when the windows are just full, and the first test, made of points from before, was quiet: the
    paper's change point W + 1, and its expectation given that no alarm came earlier. As in `run_lengths`, detectors
    share the statistic of the first.
    """
    shortest = min(detector.calibration_.ert for detector in detectors)
    spare = int(runs / shortest + 6 * np.sqrt(runs / shortest)) + 6  # more than ring at once, if all is well
    while (found := _delays(detectors, before, after, rng, runs, runs + spare)) is None:
        spare *= 4
        if spare > MOST_SPARE * runs:
            raise ArithmeticError(f"Most windows rang before the change, and {runs} quiet ones were asked for.")
    return found


def _delays(
    detectors: Sequence[AnyDetector], before: Law, after: Law, rng: np.random.Generator, runs: int, rows: int
) -> list[Int64Array] | None:
    """`delays`, from so many rows of which `runs` must be quiet before the change; None if they are not."""
    widest = detectors[0].windows_[-1]
    thresholds = [detector.thresholds_ for detector in detectors]
    recent = before(rng, rows * widest).reshape(rows, widest, -1)
    found = np.zeros((len(detectors), rows), np.int64)
    waiting: Array = np.ones_like(found, dtype=bool)
    tests, steps = 1, FIRST_STEPS
    while waiting.any():
        active = np.flatnonzero(waiting.any(0))
        new = after(rng, len(active) * steps).reshape(len(active), steps, -1)
        streams = np.concatenate([recent, new], axis=1)
        statistic = _statistics(detectors[0], streams)
        for mine, lengths, own in zip(waiting, found, thresholds, strict=True):
            if tests == 1:
                quiet = statistic[:, widest - 1] <= own[0]
                if quiet.sum() < runs:
                    return None
                mine &= quiet & (np.cumsum(quiet) <= runs)
            rings = statistic[:, widest:] > own[np.minimum(np.arange(tests, tests + steps), len(own) - 1)]
            rang = rings.any(1) & mine[active]
            lengths[active[rang]] = tests + rings[rang].argmax(1)
            mine[active[rang]] = False
        recent = streams[waiting[:, active].any(0), -widest:]
        tests, steps = tests + steps, min(2 * steps, MOST_STEPS)
    return [lengths[lengths > 0] for lengths in found]


def _statistics(detector: AnyDetector, streams: Float64Array) -> Float64Array:
    """The statistic after every point of every stream (P, L, d); right from the W-th point on."""
    detector.reset()
    paths, length, _ = streams.shape
    outcomes = altered(detector, resets=False, hears=False).update_many(streams.reshape(paths * length, -1))
    return outcomes.statistic.reshape(paths, length)
