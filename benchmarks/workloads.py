"""What `benchmarks.versions` has each version do: fits, updates, banks, fleets and files, by public names alone.

    python -m benchmarks.workloads [first | fits]

prints, as JSON, the processor time of each in seconds, and a digest of all that it gave; or, of a first small fit and
an update alone, the time since the process began; or the time of fits with no option but the expected run time.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import LSDD, MMD, Blocks, Custom, Detector, DetectorBank, Fleet, Gaussian, Landmarks, MeanShift, Outcomes

EARLY = "mode" not in signature(Detector).parameters
"""Versions in which two options had other names, and a new run after an alarm had to be asked for."""

PAPER: dict[str, Any] = {"calibration" if EARLY else "mode": "paper"}
RESETS: dict[str, Any] = {"reset_on_alarm": True} if EARLY else {}

Floats = NDArray[np.float64]
Times = dict[str, float]
Digests = dict[str, str]


def main() -> None:
    """Run everything once."""
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["first"]:
        quiet = np.random.default_rng(0).standard_normal((1000, 2))
        Detector(200, seed=1, paths=200).fit(quiet).update(np.zeros(2))
        print(json.dumps({"times": {"first fit and update, nothing compiled": time.process_time()}, "digests": {}}))
        return
    if sys.argv[1:] == ["fits"]:
        print(json.dumps({"times": default_fits(), "digests": {}}))
        return
    times: Times = {}
    digests: Digests = {}
    for name, detector, reference, stream in cases():
        times[f"fit, {name}"] = timed(partial(detector.fit, reference))
        digests[f"thresholds, {name}"] = digest(detector.thresholds_, np.array(interval(detector)))
        run(name, detector, stream, times, digests)
    print(json.dumps({"times": times, "digests": digests}))


def default_fits() -> Times:
    """As a user's first: to a run time of 5000, with an interval."""
    times: Times = {}
    for points, columns in ((1000, 2), (1000, 20), (10_000, 2), (10_000, 20)):
        reference = np.random.default_rng(0).standard_normal((points, columns))
        for name, interval in (("", True), (" without its interval", False)):
            fit = partial(Detector(5000, seed=1, interval=interval).fit, reference)
            times[f"default fit{name}, {points} points, {columns} columns"] = timed(fit)
    return times


def cases() -> Iterator[tuple[str, Detector, object, Floats]]:
    """Detectors, what they learn from and what they watch: quiet at first, then not."""
    rng = np.random.default_rng(0)
    small, wide, big = (rng.standard_normal(shape) for shape in ((1000, 2), (1000, 20), (4000, 8)))
    wandering = np.zeros((3000, 2))
    for t in range(1, 3000):
        wandering[t] = 0.6 * wandering[t - 1] + rng.standard_normal(2)
    coins = (rng.random((600, 1)) < 0.3).astype(float)
    yield "default, 2 columns", Detector(1000, seed=1, error=0.05), small, changing(rng, 2)
    yield "default, 20 columns", Detector(1000, seed=2, error=0.05), wide, changing(rng, 20)
    yield "guarantee", Detector(500, seed=3, error=0.05, guarantee=0.9, start="cold"), small, changing(rng, 2)
    paper = Detector(1024, MMD(Gaussian()), window=25, **PAPER, interval=False, seed=4)
    yield "paper", paper, wide, changing(rng, 20)
    blocks = Detector(500, window=(8, 25), sampler=Blocks(), seed=5, error=0.1)
    yield "blocks", blocks, wandering, wandering[::-1].copy()
    yield "discrete", Detector(200, window=(8, 25), seed=6, error=0.1), coins, (changing(rng, 1) > 0.5).astype(float)
    yield "LSDD", Detector(500, LSDD(), window=25, seed=7, error=0.05), small, changing(rng, 2)
    yield "mean", Detector(500, MeanShift(), window=(5, 25), seed=8, error=0.05), small, changing(rng, 2)
    landmarks = Detector(500, MMD(approximation=Landmarks(200)), window=25, seed=9, error=0.05)
    yield "landmarks", landmarks, big, changing(rng, 8)
    median = Custom(lambda X, Y: float(abs(np.median(X) - np.median(Y))))
    several = Detector(60, [median, MeanShift()], window=5, seed=10, paths=150, interval=False)
    yield "a function", several, small[:200, :1], changing(rng, 1)[:300]


def changing(rng: np.random.Generator, columns: int) -> Floats:
    """Half as the reference, half elsewhere."""
    stream = rng.standard_normal((3000, columns))
    stream[1500:] += 0.5
    return stream


def run(name: str, detector: Detector, stream: Floats, times: Times, digests: Digests) -> None:
    """Watch with one detector, with a bank and with a fleet, and go through a file."""
    found: list[Outcomes] = []
    singles = stream[: len(stream) // 3]
    alarms = []

    def one_by_one() -> None:
        for row in singles:
            outcome = detector.update(row)
            alarms.append((outcome.time, outcome.statistic, outcome.threshold, outcome.rarity, str(outcome.channel)))
            if outcome.alarm:
                detector.reset()

    times[f"update, {name}"] = timed(one_by_one)
    times[f"update_many, {name}"] = timed(lambda: found.append(detector.update_many(stream, **RESETS)))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.tocsin"
        if name != "a function":
            times[f"file, {name}"] = timed(lambda: detector.save(file))
            detector = Detector.load(file)
    found.append(detector.update_until_alarm(stream[-500:]))
    digests[f"update, {name}"] = hashlib.sha256(repr(alarms).encode()).hexdigest()
    digests[f"update_many, {name}"] = outcomes_digest(found)
    if name in ("default, 2 columns", "guarantee", "discrete"):
        many(name, detector, stream, times, digests)


def many(name: str, detector: Detector, stream: Floats, times: Times, digests: Digests) -> None:
    """A bank of streams, and keys whose states travel."""
    bank, found = DetectorBank(detector, 500), list[Outcomes]()

    def steps() -> None:
        for t in range(30):
            found.append(bank.update(np.resize(stream[t:], (500, stream.shape[1])), **RESETS))

    times[f"bank, {name}"] = timed(steps)
    digests[f"bank, {name}"] = outcomes_digest(found)
    fleet, keys = Fleet(detector, rest=5), [f"key {i}" for i in range(100)]
    told: list[object] = []

    def batches() -> None:
        states: list[bytes | None] = [None] * len(keys)
        for batch in range(3):
            owner, rows = np.repeat(np.arange(100), 10), np.resize(stream[batch * 700 :], (1000, stream.shape[1]))
            step = fleet.step(keys, states, rows, owner, batch * 1000 + np.arange(1000))
            states = list(step.states)
            told.extend((a.key, a.count, a.run, a.time, a.statistic, a.threshold, str(a.channel)) for a in step.alarms)
            told.append(hashlib.sha256(b"".join(step.states)).hexdigest())

    times[f"fleet, {name}"] = timed(batches)
    digests[f"fleet, {name}"] = hashlib.sha256(repr(told).encode()).hexdigest()


def interval(detector: Detector) -> tuple[float, float]:
    return detector.calibration_.interval() or (np.nan, np.nan)


def timed(work: Callable[[], object]) -> float:
    """Processor time of this process, all its threads included."""
    began = time.process_time()
    work()
    return time.process_time() - began


def outcomes_digest(pieces: list[Outcomes]) -> str:
    joined = Outcomes.join(pieces)
    return digest(joined.time, joined.alarm, joined.statistic, joined.threshold, joined.loudest, joined.rarity)


def digest(*arrays: NDArray[Any]) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


if __name__ == "__main__":
    main()
