"""What it costs to fit a representation to the reference itself, in observations between false alarms.

    python -m benchmarks.representations

The table of docs/representations.md: 256 promised, 20 references for each entry, 20,000 quiet observations each; some
ten minutes on one core. Needs PyTorch and scikit-learn. One fit in a hundred warns of a memory that is not there: that
is the level of the test.
"""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

from tocsin import Detector, Independent
from tocsin._compute.arrays import Float64Array
from tocsin._data.representations import adapt
from tocsin._detector.quiet import run_quietly
from tocsin._experiments.laws import Law
from tocsin.representations import PCA, Autoencoder

REFERENCES = 20


def noise(rng: np.random.Generator, count: int) -> Float64Array:
    """A hundred columns without structure."""
    return rng.normal(size=(count, 100))


def factors(rng: np.random.Generator, count: int) -> Float64Array:
    """Ten strong directions in it, always the same."""
    directions = np.random.default_rng(99).normal(size=(10, 100))
    return rng.normal(size=(count, 10)) @ directions + noise(rng, count)


def run_time(preprocess: object, law: Law, count: int, *, apart: bool, seed: int) -> float:
    """Tests between false alarms of one detector; apart: fitted to a quarter that leaves the reference."""
    rng = np.random.default_rng(seed)
    reference = law(rng, count)
    learned, kept = np.split(reference, [count // 4]) if apart else (reference, reference)
    rows = adapt(preprocess).fit(learned, seed)
    detector = Detector(256, window=(8, 25), sampler=Independent(), interval=False, seed=seed).fit(rows(kept))
    run = run_quietly(detector, (rows(law(rng, 5000)) for _ in range(4)))
    return run.tests / run.alarms


def main() -> None:
    """Print the table."""
    laws: list[tuple[str, Law, int]] = [("noise", noise, 500), ("noise", noise, 2000), ("ten factors", factors, 500)]
    print("| step | rows | reference | fitted to the reference itself | to a quarter that leaves it |")
    print("|---|---|---|---|---|")
    for preprocess in (PCA(10), Autoencoder(10), StandardScaler()):
        for name, law, count in laws:
            cells = []
            for apart in (False, True):
                times = np.log([run_time(preprocess, law, count, apart=apart, seed=seed) for seed in range(REFERENCES)])
                mean, error = np.exp(times.mean()), times.std(ddof=1) / np.sqrt(REFERENCES)
                cells.append(f"{mean:.1f} ± {mean * error:.1f}")
            print(f"| `{preprocess}` | {name} | {count:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
