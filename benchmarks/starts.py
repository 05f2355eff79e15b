"""Whether false alarms are as frequent in the first observations of a run as later: banks, single detectors, fleets.

    python -m benchmarks.starts [--law square ...] [--watch bank|alone|fleet] [--start warm|cold] [--points 2000]
        [--detectors 48] [--observations 400000] [--statistic default|mmd|lsdd|mean|landmarks|kernel]

A detector is fitted to a reference of its own. Its runs are cut off after a while, some after EARLY tests, so that many
begin, and tests and alarms are counted by how old a run is (only the first alarm of a run counts: the observation after
it begins another). Printed is the rate of alarms in the first EARLY tests of runs over that in later ones, over all
detectors, with its standard error over detectors; both rates times the promised run time; and the rate by age.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from tocsin import LSDD, MMD, Detector, DetectorBank, Fleet, Gaussian, Independent, Landmarks, MeanShift
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._experiments import laws
from tocsin._experiments.laws import Law

EARLY, LONG, SHORT_ROUNDS = 20, 200, 3
"""Tests of a run that are early, and of one that is followed for long; runs cut off early for each of those."""

EDGES = (1, 2, 5, 11, 21, 41, 71, 101, 151, 201)
ALONE_RUN = 100
"""Observations after which a detector alone begins anew."""

LAWS: dict[str, Law] = {
    name: getattr(laws, name)
    for name in (
        "gaussian", "square", "hollow_square", "diamond", "mixture_t5", "skewed", "categories", "coins", "cauchy",
        "counts", "ring", "sparse", "outliers",
    )
}  # fmt: skip

Ages = tuple[Int64Array, Int64Array]
"""Tests that were made, and those that rang, by the number of the test in its run (0: none)."""


def kernel(X: Float64Array, Y: Float64Array) -> Float64Array:
    """A function of a user's own."""
    return np.asarray(1 / (1 + ((X[:, None] - Y[None]) ** 2).sum(-1)))


STATISTICS: dict[str, Callable[[], Any]] = {
    "default": lambda: None,
    "mmd": lambda: MMD(Gaussian()),
    "lsdd": LSDD,
    "mean": MeanShift,
    "landmarks": lambda: MMD(approximation=Landmarks(250)),
    "kernel": lambda: MMD(kernel),
}


def in_a_bank(detector: Detector, law: Law, rng: np.random.Generator, observations: int) -> Ages:
    """Of streams that are stepped together."""
    waits, ages = _waits(detector), _none()
    streams = max(observations // (LONG + SHORT_ROUNDS * EARLY), 1)
    bank = DetectorBank(detector, streams)
    for length in (*[EARLY] * SHORT_ROUNDS, LONG):
        for _ in range(waits + length):
            outcomes = bank.update(law(rng, streams))
            _count(ages, outcomes.time - waits, outcomes.alarm)
        bank.reset()
    return ages


def alone(detector: Detector, law: Law, rng: np.random.Generator, observations: int) -> Ages:
    """Of one stream after the other."""
    waits, ages = _waits(detector), _none()
    for _ in range(-(-observations // ALONE_RUN)):
        outcomes = detector.update_many(law(rng, waits + ALONE_RUN))
        _count(ages, outcomes.time - waits, outcomes.alarm)
        detector.reset()
    return ages


def in_a_fleet(detector: Detector, law: Law, rng: np.random.Generator, observations: int) -> Ages:
    """Of keys, up to the first alarm of each."""
    waits, ages, fleet = _waits(detector), _none(), Fleet(detector, rest=None)
    keys = max(observations // LONG, 1)
    names, each = [str(k) for k in range(keys)], waits + LONG
    owner, order = np.repeat(np.arange(keys), each), np.tile(np.arange(each), keys)
    step = fleet.step(names, [None] * keys, law(rng, keys * each), owner, order)
    ends = np.full(keys, LONG)
    for alarm in step.alarms:
        ends[int(alarm.key)] = alarm.time - waits
        ages[1][alarm.time - waits] += 1
    ages[0][1 : LONG + 1] += (ends[:, None] >= np.arange(1, LONG + 1)).sum(0)
    return ages


WATCHES: dict[str, Callable[[Detector, Law, np.random.Generator, int], Ages]] = {
    "bank": in_a_bank,
    "alone": alone,
    "fleet": in_a_fleet,
}


def early_over_late(ages: list[Ages]) -> tuple[float, float, float, float]:
    """The ratio of rates over all detectors, its standard error, and both rates."""
    tests, alarms = (np.array(part, dtype=float) for part in zip(*ages, strict=True))
    parts = slice(1, EARLY + 1), slice(EARLY + 1, None)
    (first, later), (rang, rang_later) = ([counts[:, part].sum(1) for part in parts] for counts in (tests, alarms))
    early, late = rang.sum() / first.sum(), rang_later.sum() / later.sum()
    count = len(tests)
    # To first order, by how much each detector moves the ratio.
    moved = (rang - early * first) / first.sum() / early - (rang_later - late * later) / later.sum() / late
    error = early / late * np.sqrt((moved**2).sum() * count / max(count - 1, 1))
    return early / late, float(error), early, late


def _none() -> Ages:
    return np.zeros(LONG + 1, np.int64), np.zeros(LONG + 1, np.int64)


def _waits(detector: Detector) -> int:
    """Observations of a run before its first test."""
    return detector.windows_[-1] - 1 if detector.start == "cold" else 0


def _count(ages: Ages, age: Int64Array, alarm: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    known = (age >= 1) & (age <= LONG)
    for total, here in zip(ages, (known, known & alarm), strict=True):
        total += np.bincount(age[here], minlength=LONG + 1)


def main() -> None:
    """Measure, and print a line for every law."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--law", action="append", choices=sorted(LAWS), help="one of them; several times for several")
    parser.add_argument("--watch", choices=sorted(WATCHES), default="bank")
    parser.add_argument("--start", choices=("warm", "cold"), default="warm")
    parser.add_argument("--statistic", choices=sorted(STATISTICS), default="default")
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--ert", type=float, default=200)
    parser.add_argument("--detectors", type=int, default=48)
    parser.add_argument("--observations", type=int, default=400_000, help="of each detector")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # one quiet reference in a hundred seems to have a memory
    print(
        f"{given.watch}, {given.start}, {given.statistic}: {given.detectors} references of {given.points} points, "
        f"{given.observations:,} observations each, ERT {given.ert:g}"
    )
    by_age = ", ".join(f"{a}-{b - 1}" if b - a > 1 else f"{a}" for a, b in pairwise(EDGES))
    print(f"| law | first {EARLY} over later | first {EARLY}, times ERT | later | alarms | by age {by_age} | s |")
    print("|---|---|---|---|---|---|---|")
    for name in given.law or LAWS:
        began, ages = time.perf_counter(), []
        for number in range(given.detectors):
            rng = np.random.default_rng([73, number, given.points])
            options: dict[str, Any] = {"start": given.start, "sampler": Independent(), "interval": False}
            detector = Detector(given.ert, STATISTICS[given.statistic](), seed=number, **options)
            detector.fit(LAWS[name](rng, given.points), progress=False)
            ages.append(WATCHES[given.watch](detector, LAWS[name], rng, given.observations))
        ratio, error, early, late = early_over_late(ages)
        tests, alarms = (np.sum(part, axis=0) for part in zip(*ages, strict=True))
        rates = [alarms[a:b].sum() / max(tests[a:b].sum(), 1) * given.ert for a, b in pairwise(EDGES)]
        print(
            f"| {name} | {ratio:.3f} ± {error:.3f} | {early * given.ert:.3f} | {late * given.ert:.3f} "
            f"| {alarms.sum():,} | {' '.join(f'{rate:.2f}' for rate in rates)} | {time.perf_counter() - began:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
