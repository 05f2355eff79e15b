"""Whether false alarms are as frequent in the first observations of a run as later: banks, single detectors, fleets.

    python -m benchmarks.starts [--law square ...] [--watch bank|fleet|alone ...] [--start warm|cold ...]
        [--points 1000] [--ert 200] [--detectors 100] [--observations 150000] [--paths 4000] [--workers 2]
        [--statistic default|mmd|lsdd|mean|landmarks|kernel]

A detector is fitted to a reference of its own. Its runs are cut off after a while, most after EARLY tests, so that many
begin, and tests and alarms are counted by how old a run is (only the first alarm of a run counts: the observation after
it begins another). Printed is the rate of alarms in the first EARLY tests of runs over that in later ones, over all
detectors, with its standard error over detectors; both rates times the promised run time; and the rate by age.

Where several kinds of watch or of start are named, all meet the same references with the same thresholds, and how far
each is from the first of them is printed too, with a standard error from which these have gone.

What is spent where: the thresholds of the first tests rest on the simulated alarms of those tests alone, and streams
that are simulated cost a tenth of those that are watched; so there are more of them than a fit would make (--paths).
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from tocsin import LSDD, MMD, Detector, DetectorBank, Fleet, Gaussian, Independent, Landmarks, MeanShift
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._experiments import laws
from tocsin._experiments.laws import Law

EARLY, LONG, SHORT_RUNS = 20, 200, {"warm": 6, "cold": 2}
"""Tests of a run that are early, and of one that is followed for long; and runs cut off early for each of those: as
many as tell most of the ratio for so many observations, of which a cold run has some before its first test."""

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
    waits, ages, streams, rounds = _waits(detector), _none(), *_runs(detector, observations)
    bank = DetectorBank(detector, streams)
    for length in rounds:
        for _ in range(waits + length):
            outcomes = bank.update(law(rng, streams))
            _count(ages, outcomes.time - waits, outcomes.alarm)
        bank.reset()
    return ages


def alone(detector: Detector, law: Law, rng: np.random.Generator, observations: int) -> Ages:
    """Of one stream after the other."""
    waits, ages, times, rounds = _waits(detector), _none(), *_runs(detector, observations)
    for length in rounds * times:
        outcomes = detector.update_many(law(rng, waits + length))
        _count(ages, outcomes.time - waits, outcomes.alarm)
        detector.reset()
    return ages


def in_a_fleet(detector: Detector, law: Law, rng: np.random.Generator, observations: int) -> Ages:
    """Of keys, up to the first alarm of each."""
    waits, ages, fleet, keys, rounds = (
        _waits(detector),
        _none(),
        Fleet(detector, rest=None),
        *_runs(detector, observations),
    )
    for number, length in enumerate(rounds):
        names, each = [f"{number} {k}" for k in range(keys)], waits + length
        owner, order = np.repeat(np.arange(keys), each), np.tile(np.arange(each), keys)
        step = fleet.step(names, [None] * keys, law(rng, keys * each), owner, order)
        ends = np.full(keys, length)
        for alarm in step.alarms:
            ends[names.index(alarm.key)] = alarm.time - waits
            ages[1][alarm.time - waits] += 1
        ages[0][1:] += (ends[:, None] >= np.arange(1, LONG + 1)).sum(0)
    return ages


WATCHES: dict[str, Callable[[Detector, Law, np.random.Generator, int], Ages]] = {
    "bank": in_a_bank,
    "alone": alone,
    "fleet": in_a_fleet,
}


def early_over_late(ages: list[Ages]) -> tuple[float, float, float, float]:
    """The ratio of rates over all detectors, its standard error, and both rates."""
    ratio, moved, early, late = _ratio(ages)
    return ratio, _error(moved), early, late


def apart(ages: list[Ages], first: list[Ages]) -> tuple[float, float]:
    """How much larger the ratio is than another of the same detectors; and the standard error of that."""
    (ratio, moved, *_), (before, moved_before, *_) = _ratio(ages), _ratio(first)
    return ratio - before, _error(moved - moved_before)


def _ratio(ages: list[Ages]) -> tuple[float, Float64Array, float, float]:
    """The ratio of rates, by how much each detector moves it (to first order), and both rates."""
    tests, alarms = (np.array(part, dtype=float) for part in zip(*ages, strict=True))
    parts = slice(1, EARLY + 1), slice(EARLY + 1, None)
    (first, later), (rang, rang_later) = ([counts[:, part].sum(1) for part in parts] for counts in (tests, alarms))
    early, late = float(rang.sum() / first.sum()), float(rang_later.sum() / later.sum())
    moved = (rang - early * first) / first.sum() / early - (rang_later - late * later) / later.sum() / late
    return early / late, early / late * moved, early, late


def _error(moved: Float64Array) -> float:
    return float(np.sqrt((moved**2).sum() * len(moved) / max(len(moved) - 1, 1)))


def _none() -> Ages:
    return np.zeros(LONG + 1, np.int64), np.zeros(LONG + 1, np.int64)


def _waits(detector: Detector) -> int:
    """Observations of a run before its first test."""
    return detector.windows_[-1] - 1 if detector.start == "cold" else 0


def _runs(detector: Detector, observations: int) -> tuple[int, tuple[int, ...]]:
    """How often to let runs of these lengths pass, for so many observations."""
    rounds = (*[EARLY] * SHORT_RUNS[detector.start], LONG)
    return max(observations // (sum(rounds) + _waits(detector) * len(rounds)), 1), rounds


def _count(ages: Ages, age: Int64Array, alarm: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    known = (age >= 1) & (age <= LONG)
    for total, here in zip(ages, (known, known & alarm), strict=True):
        total += np.bincount(age[here], minlength=LONG + 1)


def measure(
    number: int, name: str, watched: list[tuple[str, str]], statistic: str, points: int, ert: float, paths: int,
    observations: int,
) -> list[Ages]:  # fmt: skip
    """Of one reference, watched in each of these ways and begun so."""
    warnings.simplefilter("ignore")  # one quiet reference in a hundred seems to have a memory
    law, reference = LAWS[name], LAWS[name](np.random.default_rng([73, number, points]), points)
    detectors: dict[str, Detector] = {}
    for start in {start for _, start in watched}:
        options: dict[str, Any] = {"start": start, "sampler": Independent(), "interval": False, "paths": paths or None}
        detectors[start] = Detector(ert, STATISTICS[statistic](), seed=number, **options)
        detectors[start].fit(reference, progress=False, workers=1)
    ways = enumerate(watched)
    streams = [np.random.default_rng([74, number, points, way]) for way, _ in ways]
    each = zip(watched, streams, strict=True)
    return [WATCHES[watch](detectors[start], law, rng, observations) for (watch, start), rng in each]


def pinned() -> None:
    """Keep to one core: detectors are many, and have no use for threads."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


def main() -> None:
    """Measure, and print a line for every law and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--law", action="append", choices=sorted(LAWS), help="one of them; several times for several")
    parser.add_argument("--watch", action="append", choices=sorted(WATCHES), help="likewise; a bank by default")
    parser.add_argument("--start", action="append", choices=("warm", "cold"), help="likewise; warm by default")
    parser.add_argument("--statistic", choices=sorted(STATISTICS), default="default")
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--ert", type=float, default=200)
    parser.add_argument("--detectors", type=int, default=100)
    parser.add_argument("--observations", type=int, default=150_000, help="of each detector, in each way")
    parser.add_argument(
        "--paths", type=int, default=4000, help="null streams that thresholds rest on; 0: as many as a fit makes"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes")
    given = parser.parse_args()
    watched = list(product(given.watch or ["bank"], given.start or ["warm"]))
    print(
        f"{given.statistic}: {given.detectors} references of {given.points} points, {given.observations:,} "
        f"observations each, ERT {given.ert:g}, {given.paths or 'as usual'} null streams"
    )
    by_age = ", ".join(f"{a}-{b - 1}" if b - a > 1 else f"{a}" for a, b in pairwise(EDGES))
    print(
        f"| law | watched | first {EARLY} over later | more than the first | first {EARLY}, times ERT | later "
        f"| alarms | by age {by_age} | s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(given.workers, initializer=pinned) as pool:
        for name in given.law or LAWS:
            began = time.perf_counter()
            one = partial(
                measure, name=name, watched=watched, statistic=given.statistic, points=given.points, ert=given.ert,
                paths=given.paths, observations=given.observations,
            )  # fmt: skip
            ways = [list(ages) for ages in zip(*pool.map(one, range(given.detectors)), strict=True)]
            for (watch, start), ages in zip(watched, ways, strict=True):
                ratio, error, early, late = early_over_late(ages)
                more = "" if ages is ways[0] else "{:+.3f} ± {:.3f}".format(*apart(ages, ways[0]))
                tests, alarms = (np.sum(part, axis=0) for part in zip(*ages, strict=True))
                rates = [alarms[a:b].sum() / max(tests[a:b].sum(), 1) * given.ert for a, b in pairwise(EDGES)]
                print(
                    f"| {name} | {watch}, {start} | {ratio:.3f} ± {error:.3f} | {more} | {early * given.ert:.3f} "
                    f"| {late * given.ert:.3f} | {alarms.sum():,} | {' '.join(f'{rate:.2f}' for rate in rates)} "
                    f"| {time.perf_counter() - began:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
