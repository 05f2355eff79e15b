"""Landmarks side by side with the exact MMD: delays on the paper's problems, and what a step and a fit cost.

    python -m benchmarks.landmarks [--references 8] [--runs 400]   # about a quarter of an hour on two cores

Both see the same references and meet the same changes. Ratios of mean delays are averaged over references, each with a
fit of its own (thresholds, and the choice of landmarks, differ from fit to fit); the error is that of their mean. Times
are the best of several, taken in turns; on a shared machine read their ratios.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from tocsin import MMD, Detector, Gaussian, Independent, Landmarks
from tocsin._experiments.laws import PROBLEMS, Law
from tocsin._experiments.runs import delays

N, ERT, WINDOW = 20_000, 1024, 25
COUNTS = (None, 250, 500, 1000, 2000)
"""Landmarks; None for the exact statistic."""

FAMILIES: dict[str, tuple[Gaussian | None, int | None]] = {
    "default family": (None, None),
    f"one width, W={WINDOW}": (Gaussian(), WINDOW),
}
PAIRS = (("D1", "D2"), ("D3", "D4"))
"""Problems with the same law before the change share their fits."""

BLOCK, SINGLE, REPEATS = 2048, 200, 9


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--references", type=int, default=8)
    parser.add_argument("--runs", type=int, default=400)
    options = parser.parse_args()
    rows, costs = [], []
    for problems in PAIRS:
        law = PROBLEMS[problems[0]][0]
        for family in FAMILIES:
            found = [measure(problems, family, seed, options.runs) for seed in range(options.references)]
            for problem in problems:
                rows += [delay_row(problem, family, count, [one[problem] for one in found]) for count in COUNTS]
            costs += cost_rows(law, problems, family)
    print(f"## Delays, N = {N:,}, ERT = {ERT}: {options.references} references, {options.runs} runs of each\n")
    print("| problem | statistic | landmarks | mean delay | against the exact |\n|---|---|---|---|---|")
    print("\n".join(rows))
    print(f"\n## What a step and a fit cost, N = {N:,}\n")
    print(
        "| law | statistic | landmarks | kernels a step | in blocks | one by one | fit |\n|---|---|---|---|---|---|---|"
    )
    print("\n".join(costs))


def fitted(law: Law, family: str, count: int | None, seed: int) -> Detector:
    """A detector of this family, on the reference of this seed."""
    kernel, window = FAMILIES[family]
    statistic = MMD(kernel, None if count is None else Landmarks(count))
    detector = Detector(
        ERT, statistic, window=window, start="cold", sampler=Independent(), interval=False, error=0.02, seed=seed
    )  # fmt: skip
    return detector.fit(law(np.random.default_rng([31, seed]), N))


def measure(problems: tuple[str, ...], family: str, seed: int, runs: int) -> dict[str, dict[int | None, float]]:
    """Mean delays by problem and number of landmarks, for one reference."""
    found: dict[str, dict[int | None, float]] = {problem: {} for problem in problems}
    for count in COUNTS:
        detector = fitted(PROBLEMS[problems[0]][0], family, count, seed)
        for problem in problems:
            before, after = PROBLEMS[problem]
            (own,) = delays([detector], before, after, np.random.default_rng([32, seed]), runs)
            found[problem][count] = float(own.mean())
    return found


def delay_row(problem: str, family: str, count: int | None, found: list[dict[int | None, float]]) -> str:
    """Of all references."""
    mean = np.mean([one[count] for one in found])
    if count is None:
        return f"| {problem} | {family} | all points | {mean:.1f} | 1 |"
    ratios = np.array([one[count] / one[None] for one in found])
    error = ratios.std(ddof=1) / np.sqrt(len(ratios)) if len(ratios) > 1 else np.nan
    return f"| {problem} | {family} | {count:,} | {mean:.1f} | {ratios.mean():.3f} ± {error:.3f} |"


def cost_rows(law: Law, problems: tuple[str, ...], family: str) -> list[str]:
    """Seconds of fits, and of a step: in a block, and one observation at a time."""
    detectors, fits = {}, {}
    for count in COUNTS:
        began = time.perf_counter()
        detectors[count] = fitted(law, family, count, 0)
        fits[count] = time.perf_counter() - began
    stream = law(np.random.default_rng(33), BLOCK)
    blocks, singles = dict.fromkeys(COUNTS, np.inf), dict.fromkeys(COUNTS, np.inf)
    for _ in range(REPEATS):
        for count, detector in detectors.items():
            blocks[count] = min(blocks[count], seconds(lambda: detector.update_many(stream)) / BLOCK)  # noqa: B023
            singles[count] = min(
                singles[count],
                seconds(lambda: [detector.update(x) for x in stream[:SINGLE]]) / SINGLE,  # noqa: B023
            )
    rows = []
    for count in COUNTS:
        kernels, name = (N, "all points") if count is None else (count, f"{count:,}")
        costs = [f"{own[count] * 1e6:.1f} us ({own[None] / own[count]:.1f}x)" for own in (blocks, singles)]
        rows.append(
            f"| that of {' and '.join(problems)} | {family} | {name} | {kernels:,} ({N / kernels:.0f}x) | "
            f"{' | '.join(costs)} | {fits[count]:.1f} s |"
        )
    return rows


def seconds(function: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
