"""The experiment on power cards: changes are made as the card says, in the values of a recording, and told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin._experiments import power_card, power_card_report, recordings
from tocsin._experiments.base import Row
from tocsin._experiments.power_card import Carded, made
from tocsin._experiments.recordings import Recording
from tocsin._power.result import Power, SimulatedChange

pd = pytest.importorskip("pandas")

NAMES = ["flow", "heat"]
rng = np.random.default_rng(0)
ROWS = np.cumsum(rng.normal(size=(400, 2)), axis=0) / 10 + rng.normal(size=(400, 2))


def changed(kind: Any, column: str | None, size: float | None = None, rows: Any = "stretches") -> Any:
    """Twenty rows from the hundredth on."""
    moves = [SimulatedChange("higher", name, 1.0, own, 1, 1, 1, 1) for name, own in zip(NAMES, (2.0, 5.0), strict=True)]
    change = SimulatedChange(kind, column, size, None if size is None else 2.0 * size, 1.0, 1.0, 1.0, 1.0)
    card = Power((*moves, change), 500.0, 20, 40, 0.0, rows, 2, tuple(NAMES))
    return made(card, change, ROWS, NAMES, 100, 20, np.random.default_rng(1))


def test_changes_are_made_by_the_amount_that_the_card_states() -> None:
    """Of that column alone, and the stream itself stays as it is."""
    before, after = ROWS.copy(), ROWS[100:120]
    assert np.allclose(changed("higher", "flow", 3.0) - after, [6.0, 0.0])
    assert np.allclose(changed("lower", "flow", 1.0) - after, [-2.0, 0.0])
    assert np.allclose(changed("other value", "flow", 1.0) - after, [2.0, 0.0])
    assert (changed("stuck", "heat")[:, 1] == ROWS[99, 1]).all()
    assert (changed("stuck", None) == ROWS[99]).all()
    assert np.isnan(changed("missing", "heat", 1.0)[:, 1]).all()
    assert 0 < np.isnan(changed("missing", "heat", 0.3)[:, 1]).sum() < 15
    assert np.allclose(np.abs(changed("shifted", None, 0.5) - after), [1.0, 2.5])
    elsewhere = changed("uncoupled", "flow")[:, 0]
    (place,) = [k for k in range(380) if (ROWS[k : k + 20, 0] == elsewhere).all()]
    assert abs(place - 100) >= 20
    assert set(changed("uncoupled", "flow", rows="draws")[:, 0]) <= set(ROWS[:, 0])
    assert (before == ROWS).all()


def test_noise_is_about_a_running_mean_in_order_and_about_the_median_else() -> None:
    off = changed("wider", "flow", 2.0)[:, 0] - ROWS[100:120, 0]
    assert abs(off.mean()) < 0.5 < off.std()
    drawn = changed("wider", "flow", 2.0, "draws")[:, 0]
    assert np.allclose(drawn, 2 * ROWS[100:120, 0] - np.median(ROWS[:, 0]))


def test_a_recording_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many triples as are asked for, each with what the card says and what came of it; the same again."""
    frame = pd.DataFrame(ROWS, columns=NAMES)
    recording = Recording("one", frame[:240], frame[240:].reset_index(drop=True), chosen=True)
    monkeypatch.setattr(recordings, "read", lambda folder, source: {"one": recording})
    unit = Carded("", "0", "some set", "one", 5, 6, 0)
    assert unit.key == replace(unit, folder="elsewhere").key != replace(unit, digest="1").key
    result = unit.run()
    assert result["numbers"].shape == (5, len(power_card.NUMBERS))
    again = unit.run()
    assert np.array_equal(result["numbers"], again["numbers"], equal_nan=True)
    rows = list(power_card._rows(unit, result))
    assert [row["set"] for row in rows] == ["some set"] * 5
    for row in rows:
        assert row["column"] in (*NAMES, "")
        assert 0 <= float(row["within"]) <= 1
        assert float(row["median"]) >= 1


def row(name: str, delay: float, median: float, **parts: float) -> Row:
    told = {"share": 0.7, "low": 1.0, "high": 9.0, "horizon": 60.0, "chance": 0.1, "luck": 0.1}
    found = {"within": float(median <= 60), "twice": float(median <= 2 * delay), "views": 1.0}
    seconds = {"fit_seconds": 1.0, "card_seconds": 0.5}
    return {"set": name, "kind": "stuck", "delay": delay, "median": median, **told, **found, **seconds, **parts}


def test_what_is_close_and_what_is_furthest_off_comes_first(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [row("good", 10, 15), row("good", 3, 5), row("bad", 10, 30), row("bad", 40, 12), row("bad", np.inf, 7)]
    assert [power_card_report.is_close(own) for own in rows[:4]] == [True, True, False, False]
    shares = power_card_report.shares(rows)
    assert shares["close"] == 0.5
    assert shares["late"] == shares["early"] == 0.25
    assert shares["missed"] == 1.0
    text = power_card_report.draw({"power_card": rows}, tmp_path)
    assert text.index("| bad |") < text.index("| good |")
    assert text.count("**missed**") == 5
    assert "| reached |" in power_card_report.draw({"power_card": rows[:2]}, tmp_path)
    assert (tmp_path / "power_card.svg").exists()
    assert "No recording" in power_card_report.draw({"power_card": []}, tmp_path)
