"""Whether intervals held the truth, counted and tabled: on rows made by hand, in which it is known."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from tocsin._experiments import intervals, memories, rare
from tocsin._experiments.base import Experiment, Row, Table
from tocsin._experiments.coverage import NORMAL, Coverage
from tocsin._experiments.processes import PROCESSES

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "promise"


def row(off: float, reach: float = 0.2, runs: int = 10**8, error: float = 0.1) -> Row:
    """A reference whose true run time is e^off times the promise."""
    return {"art": 100 * math.exp(off), "ert": 100, "runs": runs, "reach": reach, "error": error}


def test_intervals_that_hold_the_truth() -> None:
    """Up to the reach to either side, and no farther."""
    found = Coverage.of([row(off) for off in (-0.21, -0.19, 0.0, 0.19, 0.21)], ("error",))
    assert found.held.tolist() == found.held_as_measured.tolist() == [False, True, True, True, False]


def test_the_noise_of_the_measurement_counts_or_does_not() -> None:
    """Of 100 runs it is 0.1: an interval of +-0.2 is widened to +-hypot(0.2, 0.164), 0.26."""
    found = Coverage.of([row(0.25, runs=100), row(-0.27, runs=100)], ("error",))
    assert found.held.tolist() == [True, False]
    assert found.held_as_measured.tolist() == [False, False]


def test_the_true_spread_is_about_the_promise_and_without_noise() -> None:
    """All run times 0.3 too long: that is a spread of 0.3, of which noise of 0.1 takes a little."""
    found = Coverage.of([row(0.3, runs=100), row(0.3, runs=100)], ("error",))
    assert found.spread == pytest.approx(math.sqrt(0.09 - 0.01))
    assert found.width == pytest.approx(0.2 / (NORMAL * found.spread))
    assert Coverage.of([row(0.0, runs=100)], ("error",)).spread == 0


def test_errors_add_up_in_squares() -> None:
    """And are averaged in squares over references."""
    rows: Table = [row(0) | {"simulation": 3.0, "tail": 4.0}, row(0) | {"simulation": 0.0, "tail": 1.0}]
    assert Coverage.of(rows, ("simulation", "tail")).expected == pytest.approx(math.sqrt(13))


def test_guarantees_that_are_kept() -> None:
    """Thresholds for 1.2 times the promise keep it unless the run time comes out 1.2 times too short, or worse."""
    rows: Table = [
        {"ert": 100, "runs": runs, "guaranteed_nominal": 120, "guaranteed_art": art}
        for art, runs in ((101, 10**8), (99, 10**8), (97, 100))
    ]
    assert intervals.kept(rows) == pytest.approx((2 / 3, 1 / 3))


@pytest.mark.parametrize(
    ("experiment", "name", "lines"),
    [
        (intervals.INTERVALS, "intervals", len(intervals.CELLS) + len(intervals.LAWS)),
        (memories.MEMORIES, "memories", len(PROCESSES)),
        (rare.RARE, "rare", len(rare.LAWS)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tables_are_made_from_the_committed_rows(experiment: Experiment, name: str, lines: int, tmp_path: Path) -> None:
    """A line for each group, and no number that is not one."""
    pytest.importorskip("matplotlib")
    with (RESULTS / f"{name}.csv").open() as file:
        rows: Table = [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]
    text = experiment.draw({name: rows}, tmp_path)
    assert sum(line.startswith("| ") for line in text.splitlines()) >= lines
    assert "nan" not in text
    committed = (RESULTS / f"{name}.md").read_text()
    assert set(_cells(text)) <= set(_cells(committed))


def _value(text: str) -> str | float:
    try:
        return float(text) if not text.isdigit() else int(text)
    except ValueError:
        return text


def _cells(text: str) -> list[str]:
    """Rows of tables."""
    return [line for line in text.splitlines() if line.startswith("| ")]


def test_a_row_alone_has_no_error_of_its_mean() -> None:
    """One reference says nothing of the spread over references."""
    assert Coverage.of([row(0.1)], ("error",)).mean.endswith("nan")
    assert np.isinf(Coverage.of([row(0.0)], ("error",)).width)
