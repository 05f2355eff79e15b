"""The experiment on simulated streams: their laws, what is measured, and what is told of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tocsin._compute.arrays import Float64Array
from tocsin._experiments import simulated_report, simulated_streams
from tocsin._experiments.base import Options, Row, Table
from tocsin._experiments.laboratory import Laboratory
from tocsin._experiments.stream_laws import AUTOREGRESSIVE, STREAM_LAWS, WALK
from tocsin._experiments.stream_methods import BEFORE, DEFAULT

pytest.importorskip("pandas")

ROWS = 60_000


def drawn(law: str, columns: int = 2) -> Float64Array:
    return STREAM_LAWS[law](np.random.default_rng(0), ROWS, columns)


def correlation(x: Float64Array, lag: int) -> float:
    """Of the first column with itself so many rows before."""
    return float(np.corrcoef(x[lag:, 0], x[:-lag, 0])[0, 1])


@pytest.mark.parametrize("law", STREAM_LAWS)
def test_laws_have_the_shape_that_is_asked_for_and_no_more_than_their_seed(law: str) -> None:
    first, again = (STREAM_LAWS[law](np.random.default_rng(5), 30, 4) for _ in range(2))
    assert first.shape == (30, 4)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, STREAM_LAWS[law](np.random.default_rng(6), 30, 4))


@pytest.mark.parametrize("law", ["Gaussian", "t3", "counts", *AUTOREGRESSIVE])
def test_columns_remember_what_their_name_says(law: str) -> None:
    """Correlations of 60 000 rows, with deviations below 0.01 (0.018 for the longest memory): five of them."""
    x, coefficient = drawn(law), AUTOREGRESSIVE.get(law, 0.0)
    for lag in (1, 3):
        assert correlation(x, lag) == pytest.approx(coefficient**lag, abs=0.05 if coefficient < 0.9 else 0.09)
    assert float(np.corrcoef(x[:, 0], x[:, 1])[0, 1]) == pytest.approx(0, abs=0.05 if coefficient < 0.9 else 0.09)


def test_seasons_regimes_walks_and_spreads_are_what_they_say() -> None:
    season, regimes, walk, arch = (drawn(law) for law in ("season", "regimes", WALK, "ARCH"))
    assert correlation(season, 24) == pytest.approx(2 / 3, abs=0.05)  # a sine of variance 2 in noise of variance 1
    assert correlation(season, 12) == pytest.approx(-2 / 3, abs=0.05)
    assert float(np.corrcoef(regimes[:, 0], regimes[:, 1])[0, 1]) == pytest.approx(
        0.5, abs=0.05
    )  # levels of variance 1, in noise of variance 1
    assert correlation(regimes, 14) == pytest.approx(0.5 * (1 - 2 / 40) ** 14, abs=0.06)
    steps = walk[1000:] - walk[:-1000]
    assert steps.var() == pytest.approx(1000 * 0.05**2 + 2, rel=0.5)
    assert correlation(arch, 1) == pytest.approx(0, abs=0.1)
    assert correlation(np.abs(arch), 1) > 0.15


def test_the_default_and_what_came_before_watch_the_same_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for law in set(STREAM_LAWS) - {"Gaussian", "AR 0.9", WALK}:
        monkeypatch.delitem(STREAM_LAWS, law)
    monkeypatch.setattr(simulated_streams, "QUICK_POINTS", (120, 400))
    place = Laboratory(tmp_path, workers=1, progress=False)
    rows = place.run(simulated_streams.SIMULATED_STREAMS, Options(quick=True))["simulated_streams"]
    assert [row["law"] for row in rows] == ["Gaussian"] * 4 + ["AR 0.9"] * 4 + [WALK] * 4
    assert [row["method"] for row in rows] == [DEFAULT, BEFORE] * 6
    assert [row["reference"] for row in rows] == [400, 400, 120, 120] * 3
    assert [row["rows"] for row in rows] == [5000] * 4 + [10_000] * 4 + [5000] * 4
    alarms = [row["alarms"] for row in rows]
    assert alarms[0] == alarms[1]  # independent: nothing is rehearsed, and both are the same
    assert [row["views"] for row in rows[:4]] == [0, 0, 1, 0]  # 120 rows are too few to tell
    remembers = rows[4]
    assert (remembers["views"], remembers["refused"], rows[5]["views"]) == (1, 0, 0)
    assert 0 < float(remembers["low"]) < float(remembers["high"])
    assert not any(row["told"] for row in rows[:4])

    text = place.draw("simulated-streams", simulated_streams.SIMULATED_STREAMS)
    assert text.startswith("# Simulated streams\n")
    assert "nan" not in text
    assert "| law | method | refused | median | mean | N = 120 | N = 400 | within | told | aim |" in text


def test_a_long_walk_is_told() -> None:
    """Over 3000 rows it strays by three deviations of its noise."""
    found = simulated_streams.Simulated(WALK, 1, 3000, 1, DEFAULT, 0, 0).run()
    assert found["told"]
    assert found["views"]


def counted(law: str, method: str, alarms: int, points: int = 300, **more: int) -> Row:
    row: Row = {"law": law, "method": method, "reference": points, "ert": 500, "rows": 10_000, "alarms": alarms}
    return row | {"low": 300.0, "high": 800.0, "refused": 0, "views": 1, "told": 0} | more


def test_what_is_far_from_its_aim_comes_first(tmp_path: Path) -> None:
    rows: Table = [counted("Gaussian", DEFAULT, alarms) for alarms in (19, 21)]
    rows += [counted(WALK, DEFAULT, 200, told=1), counted(WALK, DEFAULT, 60)]
    rows += [
        counted("AR 0.3", DEFAULT, 20, points=3000),
        counted("AR 0.9", DEFAULT, 60),
        counted("AR 0.9", BEFORE, 0, refused=1),
    ]
    text = simulated_report.draw({"simulated_streams": rows}, tmp_path)
    by_law, by_time = (
        [line for line in part.splitlines() if DEFAULT in line and line[0] == "|"] for part in text.split("\n## ")
    )
    assert by_law == [
        "| random walk | default | 0 of 2 | 6.50 | 6.50 | 6.50 | - | 0% | 50% | missed |",
        "| AR 0.9 | default | 0 of 1 | 3.00 | 3.00 | 3.00 | - | 0% | 0% | missed |",
        "| Gaussian | default | 0 of 2 | 1.00 | 1.00 | 1.00 | - | 100% | 0% | reached |",
        "| AR 0.3 | default | 0 of 1 | 1.00 | 1.00 | - | 1.00 | 100% | 0% | reached |",
    ]
    assert by_time == [
        "| AR 0.9 | 300 | default | 0 of 1 | 0.33 | 0% | 0% | 0% | 0.60 to 1.60 | missed |",
        "| AR 0.3 | 3,000 | default | 0 of 1 | 1.00 | 100% | 100% | 100% | 0.60 to 1.60 | reached |",
    ]
    assert "| AR 0.9 | version 0.1 | 1 of 1 | - | - | - | - | - | - | - |" in text
    assert "| AR 0.9 | 300 | version 0.1 | 1 of 1 | - | - | - | - | - | - |" in text


def test_a_walk_that_is_told_is_as_good_as_one_that_is_kept(tmp_path: Path) -> None:
    rows: Table = [counted(WALK, DEFAULT, 200, told=1), counted(WALK, DEFAULT, 30), counted("AR 0.3", DEFAULT, 20)]
    text = simulated_report.draw({"simulated_streams": rows}, tmp_path)
    assert "| random walk | default | 0 of 2 | 5.75 | 5.75 | 5.75 | 50% | 50% | reached |" in text


def test_a_stream_without_alarms_has_a_run_time_of_twice_what_was_watched() -> None:
    rows: Table = [counted("AR 0.3", DEFAULT, alarms) for alarms in (0, 10)]
    assert simulated_report.times(rows).tolist() == [40.0, 2.0]
    assert simulated_report.held(rows) == [False, False]
