"""What plain news adds to false alarms, and how soon it is heard, with and without its channels.

python -m benchmarks.news            # both; some minutes
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from tocsin import Detector, Independent
from tocsin import _compute as compute
from tocsin._calibration.result import Thresholds
from tocsin._data.intake import Rows, Tabular, learn
from tocsin._detector.base import altered
from tocsin._state.news import SHARE, Ear

Rng = np.random.Generator

ERT, STREAM, RUN = 30, 2000, 100
"""Of the rates: a short run time, so that there is something to count; rows after each reference, in runs of so many
rows."""

WORK, FEWEST = 800, 20
"""References of one column and few rows, of which there are most; and at least."""

PROMISED, QUIET, HORIZON, TRIALS = 5000, 100, 400, 30
"""Of the delays: what is promised; rows before the change, and after it; and trials, five to a reference."""


def categories(codes: Any) -> pd.DataFrame:
    """A name for each code."""
    return pd.DataFrame({f"c{j}": [f"k{code}" for code in own] for j, own in enumerate(codes.T)})


def gaps(rng: Rng, n: int, d: int, share: float) -> pd.DataFrame:
    """Numbers, some of which are missing."""
    rows = rng.normal(size=(n, d))
    rows[rng.random((n, d)) < share] = np.nan
    return pd.DataFrame(rows, columns=[f"c{j}" for j in range(d)])


LAWS: dict[str, Callable[[Rng, int, int, int], Any]] = {
    "normal": lambda rng, n, d, count: rng.normal(size=(n, d)),
    "Student's t, 1 degree": lambda rng, n, d, count: rng.standard_t(1, size=(n, d)),
    "Poisson counts": lambda rng, n, d, count: rng.poisson(2.0, size=(n, d)).astype(float),
    "60 % zeros": lambda rng, n, d, count: rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4),
    "events, 3 in N rows": lambda rng, n, d, count: (rng.random((n, d)) < 3 / count).astype(float),
    "zipf numbers": lambda rng, n, d, count: np.minimum(rng.zipf(1.5, (n, d)), 10**9).astype(float),
    "zipf categories": lambda rng, n, d, count: categories(np.minimum(rng.zipf(2.0, (n, d)), 10**9)),
    "categories, 1 in N rows": lambda rng, n, d, count: categories(rng.integers(0, count, (n, d))),
    "categories, 5 in N rows": lambda rng, n, d, count: categories(rng.integers(0, count // 5, (n, d))),
    "gaps, 1 in N rows": lambda rng, n, d, count: gaps(rng, n, d, 1 / count),
    "gaps, 10 %": lambda rng, n, d, count: gaps(rng, n, d, 0.1),
}


def added(law: str, columns: int, count: int, references: int) -> tuple[float, float]:
    """Alarms of news over those that are promised, on streams without a change; and the standard error.

    A run ends with its first alarm.
    """
    rng, functions, rang, rows = np.random.default_rng([columns, count]), compute.load("numba"), [], 0
    for _ in range(references):
        learned = learn(LAWS[law](rng, count, columns, count), None, None, objects_allowed=False)
        assert isinstance(learned.intake, Rows | Tabular)
        ear = Ear.of(learned.intake, learned.points, Thresholds(ERT, np.ones(1), 0.0), functions)
        assert ear is not None
        runs = STREAM // RUN
        points = learned.intake.many(LAWS[law](rng, STREAM, columns, count))
        rings = ear.watch(ear.begun(runs), points, np.repeat(np.arange(runs), RUN)).slot.reshape(runs, RUN) >= 0
        rang.append(int(rings.any(1).sum()))
        rows += int(np.where(rings.any(1), rings.argmax(1) + 1, RUN).sum())
    error = np.sqrt(max(float((np.array(rang) ** 2).sum()), 1.0))
    return sum(rang) / rows * ERT, error / rows * ERT


def table(rng: Rng, n: int, columns: int) -> pd.DataFrame:
    """Numbers, a category and a constant."""
    own: dict[str, Any] = {f"x{j}": rng.normal(size=n) for j in range(columns - 2)}
    return pd.DataFrame(own | {"state": rng.choice(["on", "off", "idle"], n, p=[0.6, 0.3, 0.1]), "mode": 3.0})


CHANGES: dict[str, tuple[str, Any, float]] = {
    "a number stops": ("x0", "last", 1.0),
    "a number is missing": ("x0", None, 1.0),
    "a number is missing in 30 % of rows": ("x0", None, 0.3),
    "a category never seen": ("state", "new", 1.0),
    "a category never seen in 30 % of rows": ("state", "new", 0.3),
    "a number just above all of the reference": ("x0", "above", 1.0),
    "a number just above all of the reference in 30 % of rows": ("x0", "above", 0.3),
    "a constant moves": ("mode", 4.0, 1.0),
}


def delay(detector: Detector, rows: pd.DataFrame) -> float:
    """Rows from the change to the alarm; infinite if there is none."""
    detector.reset()
    detector.update_many(rows.iloc[:QUIET])
    if detector.alarm is not None:
        detector.reset()
    outcomes = detector.update_until_alarm(rows.iloc[QUIET:])
    return float(len(outcomes)) if outcomes.alarm.any() else np.inf


def delays(count: int, columns: int) -> None:
    """Medians, and the part found, without news and with it."""
    found: dict[tuple[str, bool], list[float]] = {(change, hears): [] for change in CHANGES for hears in (False, True)}
    for trial in range(TRIALS):
        rng = np.random.default_rng([count, columns, trial])
        if trial % 5 == 0:
            reference = table(rng, count, columns)
            detector = Detector(PROMISED, sampler=Independent(), interval=False, error=0.1, seed=trial)
            detector.fit(reference, progress=False)
        for change, (name, value, share) in CHANGES.items():
            rows = table(rng, QUIET + HORIZON, columns)
            where = (np.arange(len(rows)) >= QUIET) & (rng.random(len(rows)) < share)
            if value == "above":
                value = reference[name].max() + 0.1 + 0.1 * rng.random(int(where.sum()))
            rows.loc[where, name] = rows[name][QUIET] if isinstance(value, str) and value == "last" else value
            for hears in (False, True):
                found[change, hears].append(delay(altered(detector, hears=hears), rows))
    for change in CHANGES:
        before, after = (np.array(found[change, hears]) for hears in (False, True))
        shown = [f"{np.median(own):.0f} | {np.isfinite(own).mean():.0%}" for own in (before, after)]
        print(f"| {count} | {columns} | {change} | {' | '.join(shown)} |", flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"alarms of news, in percent of those promised (at most {SHARE:.0%})")
    for law in LAWS:
        shown = []
        for count in (100, 1000):
            for columns in (1, 8, 40):
                share, error = added(law, columns, count, max(WORK // (columns + count // 100), FEWEST))
                shown.append(f"{100 * share:.2f} ± {100 * error:.2f}")
        print(f"| {law} | {' | '.join(shown)} |", flush=True)
    for count in (1000, 200):
        for columns in (4, 20):
            delays(count, columns)


if __name__ == "__main__":
    main()
