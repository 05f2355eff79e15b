"""How quickly changes are found: mean delay on the paper's four problems at one ERT, default family and one channel.

python -m benchmarks.power [--configurations 40] [--runs 100]
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.runs import mean_delay
from tocsin import MMD, Detector, Gaussian
from tocsin.experiments.laws import PROBLEMS

POINTS, ERT = 1000, 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--configurations", type=int, default=40)
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    print(
        f"N={POINTS}, ERT={ERT}, {options.configurations} configurations x {options.runs} runs; mean delay ± its error"
    )
    print("| problem | one window of 25, median width | default |")
    print("|---|---|---|")
    for name, (before, after) in PROBLEMS.items():
        delays: list[list[float]] = [[], []]
        for seed in range(options.configurations):
            rng = np.random.default_rng([seed, 1])
            reference = before(rng, POINTS)
            detectors = (
                Detector(ert=ERT, statistic=MMD(Gaussian()), window=25, seed=seed),
                Detector(ert=ERT, seed=seed),
            )
            for found, detector in zip(delays, detectors, strict=True):
                found.append(mean_delay(detector.fit(reference), before, after, rng, options.runs))
        cells = [f"{np.mean(d):.1f} ± {np.std(d, ddof=1) / np.sqrt(len(d)):.1f}" for d in delays]
        print(f"| {name} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
