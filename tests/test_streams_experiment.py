"""The experiment on real quiet streams: how recordings are cut, what methods do, what is counted and told."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tocsin import Detector
from tocsin._common.errors import InputError
from tocsin._compute.arrays import Float64Array
from tocsin._experiments import recorded_changes, recordings, stream_methods, streams, streams_report
from tocsin._experiments.base import Options, Row, Table
from tocsin._experiments.laboratory import Laboratory, read_table, write_table
from tocsin._experiments.stream_methods import DEFAULT, METHODS

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'tocsin[data]'")


FAULTY = ("d03_te", "d04_te", "d05_te")


def noise(rows: int, *names: str, seed: int = 0) -> dict[str, Float64Array]:
    return dict(zip(names, np.random.default_rng(seed).normal(size=(len(names), rows)), strict=True))


def write_recordings(folder: Path) -> None:
    """All sets in small, in the layout of the page."""
    folder.mkdir()
    runs = {"d00": 300, "d00_te": 200, "d03_te": 240, "d04_te": 240, "d05_te": 240}
    tennessee = [
        pd.DataFrame({"run": name, "fault": 0, **noise(count, "xmeas1", "xmeas41", "xmv1", seed=number)})
        for number, (name, count) in enumerate(runs.items())
    ]
    for run in tennessee[2:]:
        run.loc[160:, "xmeas41"] += 50.0
    wells = pd.DataFrame({"recording": ["A"] * 400 + ["B"] * 400, "label": 0, **noise(800, "P_PDG", "T_TPT", "QGL")})
    wells.loc[700, "label"] = 101
    wells.loc[:399, "QGL"] = np.nan
    wells.loc[100:102, "P_PDG"] = np.nan
    spacecraft = pd.DataFrame(
        {"channel": ["A-1"] * 400 + ["A-2"] * 400, "part": "train", "commands": b"0", **noise(800, "value")}
    )
    spacecraft.loc[:399, "value"] = 1.0
    nab = pd.DataFrame({"series": ["a/one"] * 400 + ["b/two"] * 500, "window": 0, **noise(900, "value")})
    nab.loc[700:, "window"] = 1
    smd = pd.DataFrame({"machine": "machine-1", "part": ["train"] * 400 + ["test"] * 99, **noise(499, "m1", "m38")})
    cycles = pd.DataFrame({"cycle": np.repeat(np.arange(490), 2), "segment": 0, **noise(980, "TS1", "VS1", "SE")})
    cycles["segment"] = np.searchsorted([150, 160, 310, 320, 470], cycles["cycle"], side="right")
    engines = pd.DataFrame(
        {"part": ["train"] * 330 + ["test"] * 99, "unit": [1] * 130 + [2] * 200 + [1] * 99, **noise(429, "s1", "set1")}
    )
    frames = {
        "tennessee_eastman": pd.concat(tennessee),
        "wells_3w": wells,
        "smap_msl": spacecraft,
        "nab": nab,
        "smd3": smd,
        "daphnet_s06r02": pd.DataFrame({"t_seconds": np.arange(400.0), **noise(400, "ankle_vert", "leg_vert")}),
        "hydraulic_1hz": cycles,
        "bearing_ims2": pd.DataFrame({"row": np.arange(600), **noise(600, "b1_std", "b4_kurt")}),
        "cmapss_fd001": engines,
    }
    for name, frame in frames.items():
        frame.to_parquet(folder / f"{name}.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("streams") / "data"
    write_recordings(data)
    return data


# Recordings


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "Tennessee Eastman",
            dict.fromkeys(FAULTY, (300, 160, 3)) | {"d00_te": (300, 200, 3)},
        ),
        ("3W wells", {"A": (240, 160, 2)}),
        ("SMAP and MSL", {"A-2": (240, 160, 1)}),
        ("NAB", {"a/one": (240, 160, 1), "b/two": (180, 120, 1)}),
        ("SMD", {"machine-1": (240, 160, 2)}),
        ("Daphnet", {"S06R02": (240, 160, 2)}),
        ("hydraulic rig", {f"cycles from {first}": (90, 60, 3) for first in (0, 160, 320)}),
        ("IMS bearings", {"test 2": (319, 213, 2)}),
        ("C-MAPSS", {"engine 1": (39, 26, 2), "engine 2": (60, 40, 2)}),
    ],
)
def test_recordings_are_cut_as_the_protocol_says(
    folder: Path, name: str, expected: dict[str, tuple[int, int, int]]
) -> None:
    found = recordings.read(folder, name)
    shapes = {key: (len(one.reference), len(one.stream), one.stream.shape[1]) for key, one in found.items()}
    assert shapes == expected
    for one in found.values():
        assert not pd.concat([one.reference, one.stream]).isna().any(axis=None)


def test_faults_begin_where_the_quiet_stream_ends_and_the_same_rows_count_once(folder: Path) -> None:
    found = recordings.read(folder, recordings.TENNESSEE)
    assert found["d00_te"].changed is None
    changed = found["d03_te"].changed
    assert changed is not None
    assert len(changed) == 80
    assert changed["xmeas41"].min() > 40 > found["d03_te"].stream["xmeas41"].max()
    assert [name for name, one in found.items() if not one.counted] == ["d05_te"]


def test_gaps_hold_the_last_value(folder: Path) -> None:
    pressure = recordings.read(folder, "3W wells")["A"].reference["P_PDG"]
    assert (pressure[100:103] == pressure[99]).all()


def test_long_recordings_are_cut_short_beside_the_split() -> None:
    frame = pd.DataFrame({"value": np.arange(20_000.0)})
    _, reference, stream, _ = recordings._halves("long", frame)
    assert reference["value"].tolist() == list(range(9000, 12_000))
    assert stream["value"].tolist() == list(range(12_000, 17_000))


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (None, r"data=\.\.\..*Parquet.*streams\.md"),
        ("folder", "is not a folder.*Parquet"),
        ("nab.parquet", r"has no nab\.parquet\..*Parquet file for each set"),
        ("column", r"nab\.parquet has no column window\..*streams\.md"),
        ("measurements", r"nab\.parquet has no column value"),
        ("bytes", r"Cannot read .*nab\.parquet.*complete"),
        ("rows", r"nab\.parquet has no recording that is long enough"),
    ],
)
def test_what_is_missing_is_named(folder: Path, tmp_path: Path, lost: str | None, told: str) -> None:
    copy = tmp_path / "copy"
    if lost not in (None, "folder"):
        shutil.copytree(folder, copy)
        file = copy / "nab.parquet"
        frame = pd.read_parquet(file)
        if lost == "nab.parquet":
            file.unlink()
        elif lost == "bytes":
            file.write_bytes(b"PAR1")
        elif lost == "rows":
            frame[:30].to_parquet(file)
        else:
            frame.drop(columns="window" if lost == "column" else "value").to_parquet(file)
    with pytest.raises(InputError, match=told):
        streams.measure(Options(quick=True, data=copy if lost else None), lambda _what, _units: pytest.fail("began"))


# Methods


def test_the_textbook_limit_holds_for_gaussian_rows() -> None:
    """61 recordings of 1000 rows; 122 alarms expected, and a Poisson count is within 5 standard deviations."""
    rng = np.random.default_rng(0)
    count = 0
    for _ in range(61):
        method = stream_methods.Hotelling(0)
        method.fit(pd.DataFrame(rng.normal(size=(60, 4))), 500)
        count += len(method.alarms(pd.DataFrame(rng.normal(size=(1000, 4)))))
    assert abs(count - 122) < 5 * 122**0.5


@pytest.mark.parametrize("kind", [stream_methods.Hotelling, stream_methods.RehearsedHotelling])
def test_columns_that_are_combinations_of_others_can_be_watched(kind: type[stream_methods.Hotelling]) -> None:
    x = np.random.default_rng(0).normal(size=(400, 2))
    wide = pd.DataFrame(np.concatenate([x, x, x.sum(1, keepdims=True)], axis=1))
    method = kind(0)
    method.fit(wide[:300], 500)
    assert method.alarms(pd.concat([wide[300:], wide[:10] + 20.0])).tolist()[-1] == 100


@pytest.mark.filterwarnings("ignore::tocsin.ReferenceWarning")
@pytest.mark.parametrize("name", METHODS)
def test_alarms_are_those_of_a_fit_just_made(name: str) -> None:
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(700, 2)))
    method = stream_methods.make(name, seed=3)
    method.fit(rows[:300], 40)
    found = method.alarms(rows[300:])
    assert len(found) > 2
    assert np.array_equal(method.alarms(rows[300:]), found)
    if name == DEFAULT:
        detector = Detector(40, seed=3).fit(rows[:300])
        assert np.flatnonzero(detector.update_many(rows[300:]).alarm).tolist() == found.tolist()
        assert method.interval() == detector.calibration_.interval()


def test_passes_that_are_close_are_one() -> None:
    score = np.zeros(100)
    score[[10, 11, 34, 36, 90]] = 1
    assert stream_methods.clusters(score, 0.5).tolist() == [10, 36, 90]
    assert stream_methods.clusters(score, 1).tolist() == []


def test_the_rehearsed_limit_is_passed_about_once_in_ert_rows() -> None:
    score = np.random.default_rng(0).exponential(size=40_000)
    level = stream_methods.passed_once(score, 2000)
    assert np.exp(-level) == pytest.approx(1 / 2000, rel=0.5)
    assert np.isfinite(stream_methods.passed_once(np.ones(30), 500))


# Changes


def test_a_level_that_strays_widens_the_long_run_spread() -> None:
    rng = np.random.default_rng(0)
    still = rng.normal(size=1000)
    strays = still + np.repeat(rng.normal(0, 2, 10), 100)
    spread = recorded_changes.long_run_spread(np.stack([still, strays], axis=1))
    assert spread[0] == pytest.approx(1.1, abs=0.3)
    assert spread[1] > 6


@pytest.mark.parametrize("kind", recorded_changes.KINDS)
def test_changes_are_where_and_what_they_say(kind: str) -> None:
    stream = np.random.default_rng(0).normal(size=(200, 20)) + np.arange(20)
    spread = np.arange(1.0, 21.0)
    before = stream.copy()
    after = recorded_changes.changed(kind, stream, 100, 50, spread, np.random.default_rng(1))
    assert np.array_equal(stream, before)
    moved = np.flatnonzero((after != stream[100:150]).any(0))
    assert len(moved) == {recorded_changes.NOTHING: 0, recorded_changes.STOPPED: 1}.get(kind, 2)
    shift = after[:, moved] - stream[100:150, moved]
    if kind in recorded_changes.SHIFTS:
        np.testing.assert_allclose(np.abs(shift), recorded_changes.SHIFTS[kind] * np.tile(spread[moved], (50, 1)))
    elif kind == recorded_changes.NOISE:
        centre = np.stack([stream[i - 12 : i + 13, moved].mean(0) for i in range(100, 150)])
        np.testing.assert_allclose(after[:, moved], centre + 2 * (stream[100:150, moved] - centre))
    elif kind == recorded_changes.STOPPED:
        assert (after[:, moved] == stream[99, moved]).all()


# The experiment


def test_the_key_knows_the_data_and_not_their_place() -> None:
    unit = streams.Watched("/here", "abc", "NAB", "a", DEFAULT, 500, 1, 0)
    assert replace(unit, folder="/there").key == unit.key
    others = [replace(unit, digest="x"), replace(unit, ert=200), replace(unit, method="m"), replace(unit, trials=2)]
    assert len({unit.key, *(other.key for other in others)}) == 5


@pytest.mark.parametrize("alarms", range(12))
@pytest.mark.parametrize(("low", "high"), [(250.0, 800.0), (400.0, np.inf), (1000.0, 1000.0)])
def test_within_is_likely_for_some_run_time_in_the_interval(alarms: int, low: float, high: float) -> None:
    means = 1000 / np.geomspace(low, min(high, 1e9), 2000)
    likely = (stats.poisson.ppf(0.025, means) <= alarms) & (alarms <= stats.poisson.ppf(0.975, means))
    row: Row = {"rows": 1000, "alarms": alarms, "low": low, "high": high}
    assert streams_report.within(row) == likely.any()


def test_from_recordings_to_words_and_resumed_after_a_move(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    data = tmp_path / "data"
    shutil.copytree(folder, data)
    for name in set(recordings.SOURCES) - {recordings.TENNESSEE, "C-MAPSS"}:
        monkeypatch.delitem(recordings.SOURCES, name)
    place = Laboratory(tmp_path / "results", workers=1, progress=False)
    rows = place.run(streams.STREAMS, Options(quick=True, data=data))["streams"]
    assert [row["method"] for row in rows] == list(METHODS) * 5
    hotelling = {row["recording"]: row for row in rows if row["method"] == "Hotelling"}
    assert list(hotelling) == ["d00_te", "d03_te", "d05_te", "engine 1", "engine 2"]
    assert (hotelling["d05_te"]["rows"], hotelling["d03_te"]["rows"]) == (0, 160)
    assert hotelling["d03_te"]["delay"] == 1
    assert float(hotelling["d03_te"]["shift 4"]) >= float(hotelling["d03_te"]["no change"])

    moved = data.rename(tmp_path / "moved")
    monkeypatch.setattr(streams.Watched, "run", lambda self: pytest.fail("done already"))
    again = place.run(streams.STREAMS, Options(quick=True, data=moved))["streams"]
    assert str(again) == str(rows)

    text = place.draw("streams", streams.STREAMS)
    assert "nan" not in text
    assert "## False alarms at an ERT of 500" in text
    assert "| 3, 9 and 15 | Hotelling | 0 of 1 | 1 of 1 | 1 of 1 | 1 |" in text
    assert (tmp_path / "results" / "streams.png").stat().st_size > 10_000


def made_up(name: str, method: str, refusal: str = "", alarms: int = 2) -> Row:
    row: Row = {"set": name, "recording": "1", "method": method, "ert": 500, "rows": 1000, "alarms": alarms}
    row |= {"refused": int(bool(refusal)), "refusal": refusal, "low": 300.0, "high": 800.0, "trials": 0}
    return row | dict.fromkeys(recorded_changes.KINDS, np.nan) | {"delay": np.nan}


def test_failures_come_first_and_refusals_are_told(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows: Table = [
        made_up("kept", DEFAULT),
        made_up("loud", DEFAULT, alarms=90),
        made_up("silent", DEFAULT, alarms=0),
        made_up("refused", DEFAULT, "Blocks of 68 observations are too long: see this."),
    ]
    write_table(tmp_path / "streams.csv", rows)
    text = streams_report.draw({"streams": read_table(tmp_path / "streams.csv")}, tmp_path)
    table = [line.split(" | ")[0][2:] for line in text.splitlines() if f"| {DEFAULT} |" in line][1:]
    assert table == ["refused", "loud", "silent", "kept"]
    assert "| 500 | default | 1 of 4 | 3 of 4 | 1.00 | loud, 45.0 | 1 of 4 | 1 of 4 |" in text
    assert "| 1 of 4 | Blocks of N observations are too long |" in text
    assert "Within over all sets: 2 of 3, 67%." in text
