"""Calibration on a Dask cluster of local workers: how much faster it is, and what becomes of it when workers die.

    python -m benchmarks.cluster                # speed: one process, one worker, two workers, by turns
    python -m benchmarks.cluster --faults 30    # calibrations that lose a worker, or all of them, at a random moment

All processes use one thread each, and BLAS one too. On a shared machine read the ratios.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy; workers are told the same by Dask

import argparse
import collections
import math
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import numpy as np
from distributed import Client, LocalCluster

from tocsin import Detector
from tocsin._execution import cluster as module

T = TypeVar("T")
R = TypeVar("R")

POINTS, COLUMNS, ERT = 5000, 200, 20_000
TURNS = 2


def main() -> int:
    """Print one table; 1 if anything was lost or doubled, or thresholds differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, metavar="N", help="calibrations that lose workers, instead of speed")
    parser.add_argument("--error", type=float, help="of calibrations (speed: 0.01, a minute; faults: 0.03)")
    parser.add_argument("--seed", type=int, default=0, help="for the moments at which workers die")
    options = parser.parse_args()
    if options.faults is None:
        return speed(options.error or 0.01)
    return faults(options.faults, options.error or 0.03, np.random.default_rng(options.seed))


def speed(error: float) -> int:
    """Seconds of a fit, by turns."""
    reference = np.random.default_rng(0).standard_normal((POINTS, COLUMNS))
    make = partial(Detector, ert=ERT, error=error, seed=1)
    found: dict[str, list[float]] = {"one process": [], "one worker": [], "two workers": []}
    thresholds = set()
    with workers(1) as one, workers(2) as two:
        places = {"one process": None, "one worker": one.scheduler_address, "two workers": two.scheduler_address}
        for place in places.values():  # compiles, and wakes up
            Detector(ert=ERT, error=0.1, interval=False).fit(reference, workers=1, cluster=place)
        for turn in range(TURNS):
            for name, place in places.items():
                began = time.perf_counter()
                detector = make().fit(reference, workers=1, cluster=place)
                found[name].append(time.perf_counter() - began)
                thresholds.add(detector.thresholds_.tobytes())
                say(f"turn {turn + 1}, {name}: {found[name][-1]:.1f} s")
    alone = statistics.median(found["one process"])
    say(f"\n## N={POINTS}, d={COLUMNS}, ERT {ERT}, error {error}: medians of {TURNS} turns")
    say("| | fit | against one process |\n|---|---|---|")
    for name, seconds in found.items():
        say(f"| {name} | {statistics.median(seconds):.1f} s | {alone / statistics.median(seconds):.2f}x |")
    say(f"\nThresholds: {'the same to the last bit' if len(thresholds) == 1 else 'DIFFERENT'}.")
    return int(len(thresholds) > 1)


def faults(count: int, error: float, rng: np.random.Generator) -> int:
    """Kill workers at random moments; count what the client took of every block."""
    reference = np.random.default_rng(0).standard_normal((1000, 20))
    expected = Detector(ert=1000, error=error, seed=1).fit(reference)
    bad = hit = done = 0
    usual = 0.0
    for number in range(count + 1):
        # Workers of its own for each: those that are killed before they are quite there do not come back.
        taken = Taken()
        with workers(2) as cluster, Client(cluster, set_as_default=False) as client, taken.watched():
            client.wait_for_workers(2, timeout=60)
            victims = [nanny.pid for nanny in cluster.workers.values()][: number and 1 + (number % 5 == 0)]
            moment = float(rng.uniform(0, usual))
            killer = threading.Timer(moment, kill, [victims])
            killer.start()
            began = time.perf_counter()
            detector = Detector(ert=1000, error=error, seed=1).fit(reference, cluster=cluster.scheduler_address)
            in_time = not killer.is_alive()
            usual = min(usual or math.inf, time.perf_counter() - began)
            killer.cancel()
        same = detector.thresholds_.tobytes() == expected.thresholds_.tobytes()
        same &= repr(detector.calibration_.errors) == repr(expected.calibration_.errors)
        lost, doubled = taken.wrong()
        hit += bool(victims) and in_time
        bad += bool(lost or doubled or not same)
        done += taken.blocks
        what = f"{len(victims)} killed after {moment:.2f} s" if number else f"undisturbed, in {usual:.1f} s"
        say(
            f"{number}: {what}{'' if in_time else ' (too late)'}: {lost} lost, {doubled} doubled of {taken.blocks} "
            f"blocks, thresholds {'the same' if same else 'DIFFERENT'}"
        )
    say(f"\n{count} calibrations, {hit} hit while they ran, {done} blocks; wrong in any way: {bad}")
    return int(bad > 0)


class Taken:
    """How often the client took the result of each block, map by map, against how often it asked for it."""

    def __init__(self) -> None:
        self.maps: list[tuple[Sequence[object], collections.Counter[object]]] = []

    @property
    def blocks(self) -> int:
        return sum(len(items) for items, _ in self.maps)

    def wrong(self) -> tuple[int, int]:
        """Blocks that never came, and those that came too often."""
        lost = sum(len(set(items) - set(seen)) for items, seen in self.maps)
        doubled = sum(times - 1 for _, seen in self.maps for times in seen.values())
        return lost, doubled

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Every block's result carries its number back, and is counted when the calibration takes it."""
        plain = module.Cluster.map

        def counted(cluster: module.Cluster, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
            asked, seen = list(items), collections.Counter[object]()
            self.maps.append((asked, seen))
            assert isinstance(function, partial)
            numbered: Callable[[T], tuple[object, R]] = partial(with_number, function.func, *function.args)
            for item, result in plain(cluster, numbered, asked):
                seen[item] += 1
                yield result

        module.Cluster.map = counted  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            module.Cluster.map = plain  # type: ignore[method-assign]


def with_number(function: Callable[..., R], *arguments: object) -> tuple[object, R]:
    """On a worker: the block, and its result."""
    return arguments[-1], function(*arguments)


def workers(count: int) -> LocalCluster:
    """Processes with one thread each, that come back when they are killed."""
    return LocalCluster(
        n_workers=count, threads_per_worker=1, memory_limit=0, dashboard_address=":0", silence_logs=50
    )  # fmt: skip


def kill(processes: list[int]) -> None:
    for process in processes:
        os.kill(process, signal.SIGKILL)


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
