"""What views cost beside MMD, both with their default windows: one detector, a bank, a fleet.

    python -m benchmarks.views [--quick]

Streams of 8 and 20 columns, 1000 reference points. Microseconds of processor time, on all cores together, for an
observation; both are measured by turns, and the least of several rounds counts: other processes can only add to it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

from tocsin import MMD, Detector, DetectorBank, Fleet, Independent, Views
from tocsin._compute.arrays import Float64Array

COLUMNS, REFERENCE, MEMORY, ROUNDS = (8, 20), 1000, 0.6, 9
STREAMS, KEYS, EACH, ROWS = 10_000, 1000, 10, 4000

Work = Callable[[], int]
"""Does something with so many observations, and says how many."""


def remembering(count: int, columns: int, seed: int) -> Float64Array:
    """Rows of an autoregression."""
    rows = np.random.default_rng(seed).standard_normal((count + 50, columns))
    for t in range(1, len(rows)):
        rows[t] += MEMORY * rows[t - 1]
    return rows[50:]


def works(detector: Detector, columns: int) -> dict[str, Work]:
    """Ways to watch."""
    rows, many = remembering(ROWS, columns, 2), remembering(STREAMS, columns, 3)
    bank, fleet = DetectorBank(detector, STREAMS), Fleet(detector)
    keys, owner, order = [str(k) for k in range(KEYS)], np.arange(KEYS * EACH) % KEYS, np.arange(KEYS * EACH)
    states = fleet.step(keys, [None] * KEYS, many[: KEYS * EACH], owner, order - KEYS * EACH).states

    def update() -> int:
        for row in rows[:500]:
            detector.update(row)
        return 500

    def update_many() -> int:
        return len(detector.update_many(rows))

    def step_of_a_bank() -> int:
        return len(bank.update(many))

    def step_of_a_fleet() -> int:
        return fleet.step(keys, states, many[: KEYS * EACH], owner, order).taken

    return {
        "update": update,
        "update_many": update_many,
        f"bank, {STREAMS:,} streams": step_of_a_bank,
        f"fleet, {KEYS:,} keys, {EACH} rows of each": step_of_a_fleet,
    }


def measured(several: list[Work], rounds: int) -> list[float]:
    """Microseconds of processor time for an observation, at least."""
    least = [np.inf] * len(several)
    for number in range(rounds + 1):
        for i, work in enumerate(several):
            began = time.process_time()
            count = work()
            if number:  # the first compiles
                least[i] = min(least[i], (time.process_time() - began) / count * 1e6)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rounds")
    rounds = 3 if parser.parse_args().quick else ROUNDS
    print("| columns | | MMD, us | views, us | ratio |\n|---|---|---|---|---|")
    for columns in COLUMNS:
        reference = remembering(REFERENCE, columns, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pair = [
                Detector(5000, MMD(), seed=1, interval=False, paths=400, sampler=Independent()).fit(reference),
                Detector(5000, Views(), seed=1, interval=False, paths=12).fit(reference),
            ]
        ways = [works(detector, columns) for detector in pair]
        for name in ways[0]:
            first, second = measured([way[name] for way in ways], rounds)
            print(f"| {columns} | {name} | {first:.2f} | {second:.2f} | {second / first:.2f} |", flush=True)
        sizes = [len(Fleet(detector).step(["a"], [None], reference[:1], [0], [0]).states[0]) for detector in pair]
        print(f"| {columns} | bytes of a key's state | {sizes[0]:,} | {sizes[1]:,} | {sizes[1] / sizes[0]:.2f} |")


if __name__ == "__main__":
    main()
