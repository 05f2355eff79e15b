"""Whether the order of a reference matters: how often that is found, by the test that every fit makes.

    python -m benchmarks.order [--references 200]

Of references of independent points (where it should be found in at most 1 %), and of autoregressions of two columns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from tocsin import MMD
from tocsin import _compute as compute
from tocsin._calibration.dependence import SIGNIFICANT, dependence
from tocsin._compute.arrays import Float64Array
from tocsin._execution.threads import Threads
from tocsin._statistics.base import Setting

COUNTS, COEFFICIENTS = (300, 1000, 3000), (0.05, 0.1, 0.15, 0.2, 0.3)

Law = Callable[[np.random.Generator, int], Float64Array]

INDEPENDENT: dict[str, Law] = {
    "normal, 2 columns": lambda rng, n: rng.normal(size=(n, 2)),
    "normal, 20 columns": lambda rng, n: rng.normal(size=(n, 20)),
    "Cauchy": lambda rng, n: rng.standard_cauchy(size=(n, 1)),
    "lognormal": lambda rng, n: np.exp(2 * rng.normal(size=(n, 2))),
    "counts": lambda rng, n: rng.poisson(0.7, size=(n, 2)).astype(np.float64),
    "one in twenty": lambda rng, n: (rng.random((n, 1)) < 0.05).astype(np.float64),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--references", type=int, default=200)
    references = parser.parse_args().references
    print(f"Share of {references} references called dependent (p <= {SIGNIFICANT:g})\n")
    print("| | " + " | ".join(f"N={count}" for count in COUNTS) + " |\n|---|" + "---|" * len(COUNTS))
    for name, law in INDEPENDENT.items():
        row(name, law, references)
    for coefficient in COEFFICIENTS:
        row(f"AR({coefficient:g})", autoregression(coefficient), references)


def row(name: str, law: Law, references: int) -> None:
    shares = [np.mean([found(law, count, seed) for seed in range(references)]) for count in COUNTS]
    print(f"| {name} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |", flush=True)


def found(law: Law, count: int, seed: int) -> bool:
    """By the default family, over as many lags as the default windows have points."""
    points, reach = law(np.random.default_rng([seed, count]), count), min(100, count // 10)
    setting = Setting((reach,), compute.load("numba"), Threads(1), np.random.default_rng(0))
    similarity = MMD().prepare(points, points[:20], setting).similarity
    return dependence(similarity, np.array([0, count]), reach) <= SIGNIFICANT


def autoregression(coefficient: float) -> Law:
    def law(rng: np.random.Generator, count: int) -> Float64Array:
        noise = rng.normal(size=(count, 2))
        x: Float64Array = noise / (1 - coefficient**2) ** 0.5
        for t in range(1, count):
            x[t] = coefficient * x[t - 1] + noise[t]
        return x

    return law


if __name__ == "__main__":
    main()
