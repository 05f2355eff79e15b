"""The promise for a fleet: thousands of quiet keys, each with a window of its own, ring together at the stated rate.

    python -m benchmarks.fleet [--keys 5000] [--references 8]

For each law, and each of several references drawn from it: a default detector, a fleet of new keys, and a few hundred
observations of every key in batches. Printed are alarms over those expected, for each key (`ert`) and for a promise to
all keys together (`for_all`), with the standard error over references; and the same for the first observations of
each key alone. Laws are ones that no part of the code was tuned to.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from tocsin import Detector, Fleet, Independent
from tocsin._experiments.laws import Law, counts, ring, skewed

LAWS: dict[str, Law] = {"counts": counts, "ring": ring, "skewed": skewed}
POINTS, ERT, EACH, BATCH, EARLY = 2000, 500, 200, 20, 20
SHARE = 50
"""A promise for all keys is for so many false alarms while every key has EACH observations."""


def alarms(fleet: Fleet, law: Law, keys: int, rng: np.random.Generator) -> tuple[int, int]:
    """Of all keys, and of their first observations."""
    names, found, early = [f"key {k}" for k in range(keys)], 0, 0
    states: list[bytes | None] = [None] * keys
    for start in range(0, EACH, BATCH):
        owner, order = np.repeat(np.arange(keys), BATCH), np.tile(np.arange(start, start + BATCH), keys)
        step = fleet.step(names, states, law(rng, keys * BATCH), owner, order)
        states = list(step.states)
        found += len(step.alarms)
        early += sum(alarm.count <= EARLY for alarm in step.alarms)
    return found, early


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=5000)
    parser.add_argument("--references", type=int, default=8)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # one quiet reference in a hundred seems to have a memory
    print(
        f"{given.references} references of {POINTS} points, {given.keys} keys, {EACH} observations of each, ERT {ERT}"
    )
    print(f"| law | each key | of them, the first {EARLY} observations | all keys together |")
    print("|---|---|---|---|")
    for name, law in LAWS.items():
        rates: list[tuple[float, float, float]] = []
        for number in range(given.references):
            rng = np.random.default_rng([70, number])
            detector = Detector(ERT, seed=number, sampler=Independent(), interval=False)
            detector.fit(law(rng, POINTS), progress=False)
            found, early = alarms(Fleet(detector), law, given.keys, rng)
            together = Fleet(detector, ert=EACH / SHARE, for_all=given.keys)
            rare, _ = alarms(together, law, given.keys, rng)
            expected = given.keys / ERT
            rates.append((found / (expected * EACH), early / (expected * EARLY), rare / SHARE))
        means, errors = np.mean(rates, 0), np.std(rates, axis=0, ddof=1) / np.sqrt(len(rates))
        print(f"| {name} | " + " | ".join(f"{m:.3f} +- {e:.3f}" for m, e in zip(means, errors, strict=True)) + " |")


if __name__ == "__main__":
    main()
