"""The promise on categories: equally likely, one-hot, from two to fifty of them.

python -m benchmarks.discrete
"""

from __future__ import annotations

import numpy as np

from benchmarks.runs import average_run_length
from tocsin import MMD, Detector, Gaussian, MeanShift
from tocsin._experiments.laws import Points

ALARMS = 400

# categories, N, W, ERT, statistic, configurations
CASES: list[tuple[int, int, int, float, MMD | MeanShift, int]] = [
    (50, 1000, 100, 1000, MMD(Gaussian()), 6),
    (10, 400, 40, 500, MMD(Gaussian()), 8),
    (20, 1000, 100, 1000, MeanShift(), 6),
    (2, 1000, 100, 1000, MMD(Gaussian()), 6),
    (4, 1000, 25, 500, MMD(Gaussian()), 8),
    (3, 300, 20, 200, MMD(Gaussian()), 10),
    (2, 300, 6, 32, MMD(Gaussian()), 10),
]


def main() -> None:
    """Print the table."""
    print("| categories | N | W | ERT | statistic | references | mean log(ART/ERT) |\n|---|---|---|---|---|---|---|")
    for categories, points, window, ert, statistic, configurations in CASES:

        def law(rng: np.random.Generator, n: int, categories: int = categories) -> Points:
            return np.eye(categories)[rng.integers(0, categories, n)]

        logs = []
        for seed in range(configurations):
            rng = np.random.default_rng([77, seed, categories, points])
            detector = Detector(ert, statistic, window=window, seed=seed).fit(law(rng, points))
            logs.append(np.log(average_run_length(detector, law, rng, ALARMS) / ert))
        print(
            f"| {categories} | {points} | {window} | {ert:g} | {statistic.name} | {detector.calibration_.references} "
            f"| {np.mean(logs):+.2f} ± {np.std(logs) / np.sqrt(len(logs)):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
