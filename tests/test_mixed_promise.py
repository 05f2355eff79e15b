"""The promise, and power, on tables of mixed columns."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from benchmarks.runs import run_lengths

from tocsin import Detector, Independent
from tocsin._common.errors import DependenceWarning
from tocsin._data.tables import Table, Values

PROMISED, REFERENCES, RUNS, POINTS = 200, 4, 200, 1000
"""What is promised, fits to references of their own, runs of each, and points in a reference."""

BOUND_OF_MEAN, BOUND_OF_LAW = 5.3, 2.7
"""Exceeded once in 10^6 by a Student variable of 80 degrees of freedom, and by the Kolmogorov distance x sqrt(n)."""


def thirty(
    rng: np.random.Generator, n: int, gaps: float = 0.2, new_gaps: float = 0.0, new_category: float = 0.0
) -> Table:
    """Thirty columns: categories with ties and rare ones, numbers with gaps, truth values, a heavy tail, counts.

    gaps: the part of two columns that is missing.  new_gaps: the part of a column that is missing, and was not.
    new_category: the part of a column that is of a category not seen before.
    """
    columns: dict[str, Values] = {}
    for i, count in enumerate((2, 3, 4, 6, 9, 14, 20, 30, 60, 200)):
        shares = 1 / np.arange(1, count + 1)
        words = np.array([f"{k}" for k in range(count)], dtype=object)
        drawn = words[rng.choice(count, n, p=shares / shares.sum())]
        new = rng.random(n) < (new_category if i == 3 else 0.0)
        columns[f"category {i}"] = Values("strings", np.where(new, "new", drawn))
    for i, part in enumerate((gaps, gaps, 0.2, 0.2, 0.2)):
        columns[f"gaps {i}"] = Values.of_numbers(np.where(rng.random(n) < part, np.nan, rng.normal(size=n)))
    for i, share in enumerate((0.5, 0.3, 0.1, 0.02)):
        columns[f"truth {i}"] = Values.of_numbers(rng.random(n) < share, "truth values")
    for i in range(9):
        missing = rng.random(n) < (new_gaps if i == 0 else 0.0)
        columns[f"number {i}"] = Values.of_numbers(np.where(missing, np.nan, rng.normal(size=n)))
    columns["count"] = Values.of_numbers(rng.poisson(2, n))
    columns["tail"] = Values.of_numbers(rng.standard_cauchy(n))
    return Table(columns)


@pytest.fixture(scope="module")
def detectors() -> list[Detector]:
    """Fitted to references of their own."""
    with warnings.catch_warnings():
        # One reference in a hundred seems to depend on its order: the promise holds there too.
        warnings.simplefilter("ignore", DependenceWarning)
        return [
            Detector(PROMISED, window=(8, 25), sampler=Independent(), seed=i).fit(
                thirty(np.random.default_rng([5, i]), POINTS)
            )
            for i in range(REFERENCES)
        ]


@pytest.mark.long
def test_the_promise_is_kept_on_mixed_tables(detectors: list[Detector]) -> None:
    """Thirty columns of all kinds, with ties and gaps.

    Mean: the average of log(ART / ERT) over the references, in standard errors. These are what the calibration itself
    tells (about 0.12 for such a reference) and that of the runs. The test fails falsely once in 10^6, and sees a run
    time that is off by 40 %.
    Law: run lengths in units of their detector's average against the geometric law, as in test_promise: once in 10^6,
    and a distortion of 10 % of the distribution function.
    """
    logs, errors, scaled = [], [], []
    for i, detector in enumerate(detectors):
        rng = np.random.default_rng([6, i])
        runs = run_lengths(detector, thirty, rng, RUNS)  # type: ignore[arg-type]
        told = detector.calibration_.errors
        assert told is not None
        logs.append(np.log(runs.mean() / PROMISED))
        errors.append(told.total**2 + 1 / RUNS)
        scaled.append([-np.expm1(times * np.log1p(-1 / runs.mean())) for times in (runs, runs - 1)])
    assert abs(np.sum(logs)) < BOUND_OF_MEAN * np.sqrt(np.sum(errors))
    after, before = np.sort(np.concatenate(scaled, axis=1), axis=1)
    n = after.size
    distance = max((np.arange(1, n + 1) / n - after).max(), (before - np.arange(n) / n).max())
    assert distance * np.sqrt(n) < BOUND_OF_LAW


CHANGES: dict[str, tuple[dict[str, float], int]] = {
    "more gaps in two columns": ({"gaps": 0.6}, 60),
    "gaps where there were none": ({"new_gaps": 0.3}, 25),
    "a new category": ({"new_category": 0.3}, 60),
}


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_in_what_is_missing_or_new_is_found(detectors: list[Detector], change: str) -> None:
    """Alone: every value that is there comes from the same law as before.

    Measured are medians of 28, 14 and 24, and four delays in five within the bound. Of 60 delays half are then beyond
    it less than once in 10^6. Without power delays would be geometric with mean PROMISED, and half of 60 within 60,
    or 25, once in 10^4, or 10^12.
    """
    options, bound = CHANGES[change]
    delays = []
    for i in range(60):
        rng = np.random.default_rng([7, i])
        detector = detectors[i % REFERENCES]
        detector.reset()
        while detector.update_until_alarm(thirty(rng, 30)).alarm.any():
            detector.reset()
        delays.append(len(detector.update_until_alarm(thirty(rng, 20 * PROMISED, **options))))
    assert np.median(delays) <= bound
