"""Tables of own baselines: what is counted, from recordings that ring where it was made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin._experiments import contexts_baselines as baselines
from tocsin._experiments.base import Options, Result, Unit
from tocsin._experiments.contexts_baselines import NONE, SimulatedFleet
from tocsin._experiments.contexts_recordings import RECORDED, machine, moved

DATA = Path(__file__).parents[1] / "../shared/data/real"


def test_a_simulated_fleet() -> None:
    """As many quiet and changed streams as were asked for; the same again from the same seed."""
    unit = SimulatedFleet(0.5, 5, 0.0, 6, 0, 0)
    found, again = unit.run(), unit.run()
    assert found["with_quiet"].shape == (6, 3)
    assert found["with_changed"].shape == (6, 3)
    assert found["without_quiet"].shape == (len(baselines.FEWER), 6, 3)
    assert (found["with_changed"][:, 0] >= baselines.BASELINE + baselines.LEAD).all()
    for name, part in found.items():
        np.testing.assert_array_equal(part, again[name])


def test_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings that rang after their baselines, and changes that were found after quiet; and at equal rates."""
    monkeypatch.setattr(baselines, "FEWER", (1.0, 4.0, 16.0))
    quiet = np.array([[550, NONE, 60], [550, 20, NONE], [550, NONE, NONE]])
    changed = np.array([[100, NONE, 110], [100, 70, 101], [100, NONE, 400], [100, NONE, NONE]])
    result: Result = {"with_quiet": quiet, "with_changed": changed}
    louder = np.stack([quiet, quiet, quiet])
    louder[0, :, 2] = 60
    result |= {"without_quiet": louder, "without_changed": np.stack([changed] * 3)}

    def perform(what: str, units: Any) -> list[Result]:
        return [result for _ in units]

    monkeypatch.setattr(baselines, "_fleets", lambda options: [SimulatedFleet(0.5, 6, 0.0, 3, k, 0) for k in range(2)])
    (table,) = baselines.tables(Options(quick=True), perform).values()
    own, plain, equal = table
    assert [row["method"] for row in table] == ["with", "without", "without"]
    assert (own["rang"], own["rang_in_baseline"], own["quiet"]) == (2, 2, 6)
    assert own["expected"] == pytest.approx(6 * (1 - 0.998**500), abs=0.1)
    assert (own["changed"], own["quiet_before"], own["found"], own["found_later"]) == (8, 6, 2, 4)
    assert own["median_delay"] == 301
    assert (plain["fewer"], plain["rang"]) == (1.0, 6)
    assert (equal["fewer"], equal["rang"]) == (4.0, 2)


def test_machines_differ() -> None:
    """In level and spread; what moves is one column, from the onset on, by two of its spreads."""
    rng = np.random.default_rng(0)
    every = [machine(rng, 200, 2, 0.5, None) for _ in range(30)]
    levels, spreads = (np.array([part(rows, axis=0) for rows in every]) for part in (np.median, np.std))
    assert 12 < levels.std() < 30
    assert 0.3 < np.log(spreads).std() < 0.8
    after = moved(rng, every[0], 120)
    np.testing.assert_array_equal(after[:120], every[0][:120])
    steps = np.abs(after[120:] - every[0][120:]) / spreads[0]
    assert sorted(steps.mean(0).round(6).tolist()) == [0.0, 2.0]


@pytest.mark.skipif(not DATA.is_dir(), reason="needs recordings")
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_sets(name: str) -> None:
    """Recordings without a gap between their names, and changes that begin within them."""
    pytest.importorskip("pyarrow")
    recorded = RECORDED[name](DATA)
    assert len(recorded.quiet) >= 30
    for changed in recorded.changed.values():
        assert changed.onset < len(changed.rows)
        assert changed.of is None or changed.of in recorded.quiet


def test_units_have_keys() -> None:
    """By which what was done is found again, wherever the data are."""
    one, other = (baselines.Half(folder, "3W wells", 0, 1) for folder in ("a", "b"))
    assert one.key == other.key
    assert isinstance(one, Unit)
