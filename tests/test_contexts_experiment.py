"""The experiment on contexts: its laws, what is measured, how recorded sets are cut, and what is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tocsin._common.errors import InputError
from tocsin._experiments import context_sets, contexts, contexts_report
from tocsin._experiments.base import Options, Result, Row
from tocsin._experiments.context_laws import CONTEXT_LAWS, MOVES, as_table, drawn
from tocsin._experiments.context_sets import RIG, SETS

DATA = Path(__file__).parents[1].parent / "shared" / "data"


@pytest.mark.parametrize("law", CONTEXT_LAWS)
def test_laws_are_what_they_say(law: str) -> None:
    """Of 20,000 rows: noise of spread 1 that remembers 0.7 is known to 0.02, five standard deviations are 0.1."""
    context, numbers = drawn(law, np.random.default_rng(0), 20_000, 0.7)
    truth = CONTEXT_LAWS[law](np.random.default_rng(0), 20_000, 0.0)
    assert context.keys() == truth.context.keys()
    assert all(np.array_equal(context[name], truth.context[name]) for name in context)
    noise = (numbers - truth.expected) / truth.spread
    assert noise.std() == pytest.approx(1, abs=0.1)
    assert np.corrcoef(noise[1:], noise[:-1])[0, 1] == pytest.approx(0.7, abs=0.05)
    moved, _ = drawn(law, np.random.default_rng(0), 20_000, 0.7, 1.0)
    same = all(np.array_equal(context[name], moved[name]) for name in context)
    assert same == (law not in MOVES)
    assert as_table(context, numbers).names == (*context, "x")


def test_a_unit_watches_with_a_context_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "ROWS", 1000)
    monkeypatch.setattr(contexts, "TRIALS", 2)
    found = contexts.Conditional("cyclic", 0.0, 500, 0, 0).run()
    assert found["with_rows"] == found["without_rows"] == found["moved_rows"] == 1000
    assert not found["with_views"]
    assert found["without_views"]  # hours make it remember
    assert found["with_delays"].shape == (2,)
    assert found["with_delays"].max() < 60
    row = contexts._row(contexts.Conditional("cyclic", 0.0, 500, 0, 0), found)
    assert row["with_alarms"] == found["with_alarms"]
    assert [row["with_0"], row["with_1"]] == found["with_delays"].tolist()


def test_thresholds_are_moved_to_ring_as_often() -> None:
    context, numbers = drawn("nothing", np.random.default_rng(1), 500, 0.0)
    detector = contexts.fitted(as_table(context, numbers), None, list(context), 0)
    rarer = contexts.as_often(detector, 4.0)
    assert rarer.calibration_.ert == 4 * contexts.ERT
    assert rarer.calibration_.threshold > detector.calibration_.threshold
    assert contexts.as_often(detector, 1.0).calibration_.threshold == pytest.approx(
        detector.calibration_.threshold, rel=0.01
    )


def told(law: str, alarms: int, moved: int, delays: tuple[float, float], number: int = 0) -> Row:
    row: Row = {"law": law, "memory": 0.0, "reference": 500, "number": number, "ert": 500}
    row |= {"with_alarms": alarms, "with_rows": 5000, "without_alarms": 10, "without_rows": 5000}
    row |= {"moved_alarms": moved, "moved_rows": 5000, "with_views": 0, "without_views": 0}
    return row | {"with_0": delays[0], "with_1": delays[0], "without_0": delays[1], "without_1": delays[1]}


def test_what_misses_its_aim_comes_first(tmp_path: Path) -> None:
    rows = [told("linear", 10, 10, (10.0, 40.0)), told("smooth", 20, 30, (10.0, 20.0)), told("nothing", 10, 10, (9, 9))]
    quiet = {f"{method}_{k}": np.inf for method in ("with", "without") for k in range(2)}
    recorded: Row = {"set": "taxis", "given": "time", "cut": 0, "ert": 500, "refused": 0, "with_alarms": 3}
    recorded |= {"with_rows": 900, "without_alarms": 2, "without_rows": 1000, "unseen": 100, **quiet}
    counts: Row = {"quiet": 40, "expected": 20.5, "rang": 18, "rang_in_baseline": 2, "changed": 40}
    counts |= {"quiet_before": 30, "found": 25, "found_later": 28, "median_delay": np.inf}
    machines: Row = {"recordings": 6, "memory": 0.5, "tails": 3.0, "method": "with", "fewer": 1.0, **counts}
    wells: Row = {"set": "wells", "method": "without", "fewer": 4.0, **counts}
    tables = {"contexts_simulated": rows, "contexts_recorded": [recorded]}
    tables |= {"baselines_simulated": [machines], "baselines_recorded": [wells]}
    text = contexts_report.draw(tables, tmp_path)
    assert "| 6 | 0.5 | 3.0 | with | 1.00 | 18 | 20.5 | 2 | 25 | 30 | - |" in text
    assert "| wells | without | 4.00 | 18 | 20.5 | 2 | 25 | 30 | - |" in text
    lines = [line for line in text.partition("# Own baselines")[0].splitlines() if line.startswith("| ")]
    assert lines[1] == "| smooth | 0.0 | 500 | 2.00 | 1.00 | 3.00 | 0% | 10 | 20 | 2.00 | rate, moved, delay |"
    assert lines[2] == "| linear | 0.0 | 500 | 1.00 | 1.00 | 1.00 | 100% | 10 | 40 | 4.00 |  |"
    assert lines[3].startswith("| nothing ")
    assert "| 0.0 | 500 | 3 | 1.33 | 1.00 | 1.67 | 67% |" in lines
    assert lines[-1] == "| taxis | time | 1 | 1.67 | 1.00 | 10% | - | - | 0% | 0% |"


def test_recorded_sets_are_cut() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'tocsin[data]'")
    if not DATA.is_dir():
        pytest.skip("needs recorded streams beside the checkout")
    folder = context_sets.find(DATA)
    for name in ("bicycles, by time", RIG):
        own = context_sets.cut(folder, name, 0)
        assert own.reference.names == own.stream.names == (*own.given, *own.watched)
        assert len(SETS[name].digest(folder)) == 16
    assert own.groups is not None
    assert [len(np.unique(own.groups)), len(own.reference), len(own.stream)] == [3, 1800, 1800]


def test_all_data_are_there_before_work_begins(tmp_path: Path) -> None:
    """A folder without the sets of own baselines is refused at once, and not when all else is done."""
    for own in SETS.values():
        (tmp_path / f"{own.file}.parquet").touch()

    def perform(what: str, units: object) -> list[Result]:
        raise AssertionError(f"worked on {what}")

    with pytest.raises(InputError, match="has no wells_3w"):
        contexts.measure(Options(data=tmp_path), perform)
