"""A real stream with a strong memory: half-hourly electricity prices and demands (Harries 1999).

    python -m benchmarks.elec2 elec2.parquet [--splits 5] [--ert 1000]

Weeks at random: half of the weeks are the reference, each a group of its own, the other half is the held-out stream; so
both have the same law, and the promise should hold. In order: the first half is the reference, and what follows is the
stream; seasons come and go, so there may be something to ring for.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from tocsin import Blocks, DependenceWarning, Detector, Independent
from tocsin._cli.reading import read_whole
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._detector.quiet import QuietRun, run_quietly
from tocsin._samplers import Sampler

COLUMNS = ["nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]
WEEK = 336
FLAT = 17_760
"""Rows from the time before the Victorian market began, whose columns are then constant."""

SAMPLERS: dict[str, Sampler] = {"independent": Independent(), "blocks": Blocks()}


def fit(ert: float, sampler: Sampler, rows: Float64Array, groups: Int64Array | None, seed: int) -> Detector:
    """The default detector, without the warning that the benchmark is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DependenceWarning)
        return Detector(ert, sampler=sampler, seed=seed).fit(rows, groups=groups, progress=False)


def line(name: str, sampler: str, detector: Detector, run: QuietRun) -> str:
    """A row of the table."""
    calibration = detector.calibration_
    low, high = calibration.interval() or (np.nan, np.nan)
    seen_low, seen_high = run.observed()
    return (
        f"| {name} | {sampler} | {calibration.block} | {', '.join(map(str, detector.windows_))} | {low:.0f}-{high:.0f} "
        f"| {run.alarms} in {run.tests:,} | {run.tests / max(run.alarms, 1):.0f} ({seen_low:.0f}-{seen_high:.0f}) |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--splits", type=int, default=5, help="random halves of the weeks")
    parser.add_argument("--ert", type=float, default=1000)
    options = parser.parse_args()
    rows = np.asarray(read_whole(options.file, COLUMNS))[FLAT:]
    rows = rows[: len(rows) // WEEK * WEEK]
    rows = (rows - rows.mean(0)) / rows.std(0)
    weeks = rows.reshape(-1, WEEK, rows.shape[1])
    half = len(weeks) // 2
    print(f"{len(weeks)} weeks of {WEEK} rows; promised {options.ert:g}")
    print("| stream | sampler | block | windows | 90 % interval | alarms | run time seen (90 %) |")
    print("|---|---|---|---|---|---|---|")
    for seed in range(options.splits):
        order = np.random.default_rng(seed).permutation(len(weeks))
        groups = np.repeat(np.arange(half), WEEK)
        for name, sampler in SAMPLERS.items():
            detector = fit(options.ert, sampler, np.concatenate(weeks[order[:half]]), groups, seed)
            run = run_quietly(detector, weeks[order[half:]])
            print(line(f"weeks at random, {seed}", name, detector, run), flush=True)
    for name, sampler in SAMPLERS.items():
        detector = fit(options.ert, sampler, np.concatenate(weeks[:half]), None, 0)
        print(line("in order", name, detector, run_quietly(detector, weeks[half:])), flush=True)


if __name__ == "__main__":
    main()
