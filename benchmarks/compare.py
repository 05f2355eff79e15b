"""How often `tocsin.compare` says that tables differ: when they do not, and when one column has moved.

python -m benchmarks.compare null      # false verdicts, on laws that nothing was tuned to
python -m benchmarks.compare power     # beside tests of each column by SciPy, with Bonferroni's correction
python -m benchmarks.compare memory    # false verdicts on rows that depend on those before them
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

import tocsin

ERT = 100
TIMES = 1000

Rng = np.random.Generator


def heavy(rng: Rng, n: int) -> Any:
    """Student's t with 3 degrees of freedom, in four columns that depend on each other."""
    return rng.standard_t(3, size=(n, 4)) @ np.array([[1, 0.5, 0, 0], [0, 1, 0.5, 0], [0, 0, 1, 0.5], [0, 0, 0, 1]])


def counts(rng: Rng, n: int) -> Any:
    """Small counts: ties everywhere."""
    return rng.poisson([0.3, 2.0], size=(n, 2))


def mixed(rng: Rng, n: int) -> Any:
    """A table with numbers, a common and a rare category, gaps, and times."""
    rare = [f"k{k}" for k in rng.geometric(0.2, n)]
    return [
        {
            "flow": float(rng.lognormal()),
            "state": str(rng.choice(["on", "off", "idle"], p=[0.7, 0.25, 0.05])),
            "kind": rare[i],
            "level": None if rng.random() < 0.1 else float(rng.normal()),
            "seen": f"2024-03-{rng.integers(1, 29):02d}T{rng.integers(24):02d}:00:00",
        }
        for i in range(n)
    ]


def wide(rng: Rng, n: int) -> Any:
    """Many columns, few rows."""
    return rng.exponential(size=(n, 60))


LAWS: dict[str, tuple[Callable[[Rng, int], Any], int, int]] = {
    "t3, 4 columns": (heavy, 200, 60),
    "counts, 2 columns": (counts, 150, 50),
    "mixed table": (mixed, 120, 80),
    "exponential, 60 columns": (wide, 60, 120),
}
"""Laws, and rows of the reference and of the batch."""


def null() -> None:
    """False verdicts; ERT says one in so many."""
    for name, (law, first, second) in LAWS.items():
        rng = np.random.default_rng(1)
        rarities = [tocsin.compare(law(rng, first), law(rng, second), ert=ERT, seed=i).rarity for i in range(TIMES)]
        p_values = 1 / np.array(rarities)
        rates = ", ".join(f"{np.mean(p_values <= level + 1e-9):.4f} below {level:g}" for level in (0.01, 0.05, 0.5))
        even = stats.kstest(p_values, "uniform").pvalue
        print(f"{name} ({first} and {second} rows): {rates}; Kolmogorov-Smirnov p = {even:.2g}", flush=True)


def power() -> None:
    """One of five normal columns moved; 1,000 rows and 200."""
    for shift in (0.5, 0.25):
        rng = np.random.default_rng(2)
        found = np.zeros(3)
        named, times = np.zeros(2), TIMES // 5
        for i in range(times):
            first, second = rng.normal(size=(1000, 5)), rng.normal(size=(200, 5))
            second[:, 0] += shift
            answer = tocsin.compare(first, second, ert=ERT, seed=i)
            by_column = [
                min(test(first[:, j], second[:, j]).pvalue for j in range(5)) * 5 <= 1 / ERT
                for test in (stats.ks_2samp, stats.mannwhitneyu)
            ]
            found += [answer.differs, *by_column]
            names = {column.name for column in answer.changed}
            named += ["1" in names, bool(names - {"1"})]
        shares = zip(("compare", "Kolmogorov-Smirnov", "Mann-Whitney"), found / times, strict=True)
        told = ", ".join(f"{name} {share:.3f}" for name, share in shares)
        print(f"shift {shift}: {told}; column named {named[0] / times:.3f}, another {named[1] / times:.3f}", flush=True)


def memory() -> None:
    """Autoregressive rows, two columns: 1,000 and 300 of them."""
    for phi in (0.3, 0.6, 0.9):
        rng, times = np.random.default_rng(3), TIMES // 5
        answers = [
            tocsin.compare(_autoregressive(rng, 1000, phi), _autoregressive(rng, 300, phi), ert=20, seed=i)
            for i in range(times)
        ]
        said, mute = sum(each.differs for each in answers), sum(not each.conclusive for each in answers)
        blocks = np.median([answer.block for answer in answers])
        print(f"phi {phi}: {said} of {times} (1 in 20), {mute} without a verdict, blocks of {blocks:g}", flush=True)


def _autoregressive(rng: Rng, n: int, phi: float) -> Any:
    noise = rng.normal(size=(n + 100, 2))
    for i in range(1, len(noise)):
        noise[i] += phi * noise[i - 1]
    return noise[100:]


if __name__ == "__main__":
    {"null": null, "power": power, "memory": memory}[sys.argv[1]]()
