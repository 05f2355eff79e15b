"""The experiment on real quiet streams: how recordings are cut, what methods do, what is counted and told."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tocsin import MMD, Detector
from tocsin._common.errors import InputError
from tocsin._compute.arrays import Float64Array
from tocsin._experiments import (
    charts,
    equal_rates,
    forward_rehearsal,
    recorded_changes,
    recordings,
    stream_methods,
    streams,
    streams_report,
    streams_targets,
)
from tocsin._experiments.base import Options, Result, Row, Table
from tocsin._experiments.laboratory import Laboratory, read_table, write_table
from tocsin._experiments.recorded_sets import SOURCES, TENNESSEE, _halves
from tocsin._experiments.stream_counts import within
from tocsin._experiments.stream_methods import BEFORE, CHARTS, DEFAULT, METHODS

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
    eyes = pd.DataFrame({"segment": [3] * 599 + [4] * 601, "artefact": 0, **noise(1200, "AF3", "T8")})
    eyes.loc[650, "artefact"] = 1
    flow = pd.DataFrame({"window": [0] * 40 + [1] * 10 + [0] * 200 + [2] * 5 + [0] * 60, **noise(315, "flow")})
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
        "eeg_eye_state": eyes,
        "hvac": pd.DataFrame({"unit": [0] * 100 + [1] * 200, **noise(300, "vibration")}),
        "water_flow": flow,
        "shuttle": pd.DataFrame({"anomaly": [0, 1] * 150, **noise(300, "f1", "f9")}),
        "image_segments": pd.DataFrame({"category": "sky", **noise(200, "hue_mean", "exred_mean")}),
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
        ("EEG", {"segment 4": (360, 240, 2)}),
        ("HVAC", {"unit 0": (60, 40, 1), "unit 1": (120, 80, 1)}),
        ("water flow", {"longest stretch": (120, 80, 1)}),
        ("shuttle", {"usual rows": (90, 60, 2)}),
        ("image patches", {"all kinds": (120, 80, 2)}),
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
    found = recordings.read(folder, TENNESSEE)
    assert found["d00_te"].changed is None
    changed = found["d03_te"].changed
    assert changed is not None
    assert len(changed) == 80
    assert changed["xmeas41"].min() > 40 > found["d03_te"].stream["xmeas41"].max()
    assert [name for name, one in found.items() if not one.counted] == ["d05_te"]


def test_choices_were_made_on_every_other_recording_of_three_sets_and_on_two_whole_ones(folder: Path) -> None:
    chosen = {name: [one.chosen for one in recordings.read(folder, name).values()] for name in SOURCES}
    assert chosen["NAB"] == [True, False]
    assert all(chosen[TENNESSEE] + chosen["SMD"])
    assert not any(chosen["C-MAPSS"] + chosen["HVAC"] + chosen["Daphnet"])
    assert {name for name, source in SOURCES.items() if source.chosen == "even"} == {"3W wells", "SMAP and MSL", "NAB"}


def test_gaps_hold_the_last_value(folder: Path) -> None:
    pressure = recordings.read(folder, "3W wells")["A"].reference["P_PDG"]
    assert (pressure[100:103] == pressure[99]).all()


def test_long_recordings_are_cut_short_beside_the_split() -> None:
    frame = pd.DataFrame({"value": np.arange(20_000.0)})
    _, reference, stream, _ = _halves("long", frame)
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
        method = charts.Hotelling()
        method.fit(pd.DataFrame(rng.normal(size=(60, 4))), 500)
        count += len(method.alarms(pd.DataFrame(rng.normal(size=(1000, 4)))))
    assert abs(count - 122) < 5 * 122**0.5


@pytest.mark.parametrize("kind", [charts.Hotelling, charts.RehearsedHotelling])
def test_columns_that_are_combinations_of_others_can_be_watched(kind: type[charts.Hotelling]) -> None:
    x = np.random.default_rng(0).normal(size=(400, 2))
    wide = pd.DataFrame(np.concatenate([x, x, x.sum(1, keepdims=True)], axis=1))
    method = kind()
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
    if name in (DEFAULT, BEFORE):
        detector = Detector(40, seed=3) if name == DEFAULT else Detector(40, statistic=MMD(), seed=3)
        detector.fit(rows[:300])
        assert np.flatnonzero(detector.update_many(rows[300:]).alarm).tolist() == found.tolist()
        assert method.interval() == detector.calibration_.interval()


def test_passes_that_are_close_are_one() -> None:
    score = np.zeros(100)
    score[[10, 11, 34, 36, 90]] = 1
    assert charts.clusters(score, 0.5).tolist() == [10, 36, 90]
    assert charts.clusters(score, 1).tolist() == []


def test_the_rehearsed_limit_is_passed_about_once_in_ert_rows() -> None:
    score = np.random.default_rng(0).exponential(size=40_000)
    level = charts.passed_once(score, 2000)
    assert np.exp(-level) == pytest.approx(1 / 2000, rel=0.5)
    assert np.isfinite(charts.passed_once(np.ones(30), 500))


def test_what_came_before_views_has_none_where_the_order_matters() -> None:
    """A walk of 300 rows: the default rehearses on it, and that which came before refuses it or uses blocks."""
    rows = pd.DataFrame(np.cumsum(np.random.default_rng(0).normal(size=(300, 2)), axis=0))
    now = stream_methods.Default(0)
    now.fit(rows, 40)
    assert now.detector.calibration_.rehearsal is not None
    with pytest.raises(InputError, match="Blocks"):
        stream_methods.Before(0).fit(rows, 40)


def test_equal_references_are_learnt_once() -> None:
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)))
    first, seconds = stream_methods.fitted("prototype", 0, rows, 500)
    again, same = stream_methods.fitted("prototype", 0, rows.copy(), 500)
    other, _ = stream_methods.fitted("prototype", 0, rows + 1.0, 500)
    assert again is first
    assert same == seconds > 0
    assert other is not first


# The prototype


def naive_channels(reference: Float64Array, history: Float64Array) -> list[float]:
    """Of the last row of its history, written from the words: one column, four views, two means and a log spread."""
    centre = np.median(reference)
    spread = (np.percentile(reference, 75) - np.percentile(reference, 25)) / 1.35
    z, old = (history - centre) / spread, (reference - centre) / spread
    past = np.array([[1.0, old[t - 1], old[t - 2], old[t - 3]] for t in range(3, len(old))])
    weights = np.linalg.solve(past.T @ past + np.diag([0.0, 5, 5, 5]), past.T @ old[3:])
    last = range(len(z) - 25, len(z))
    views = [
        [z[t] for t in last],
        [z[t] - weights @ [1.0, z[t - 1], z[t - 2], z[t - 3]] for t in last],
        [z[t] - z[t - 1] for t in last],
        [z[t] - np.mean([z[s] for s in range(t - 120, t - 20)]) for t in last],
    ]
    forms = [(np.mean(view[-5:]), np.mean(view), 0.5 * np.log(np.var(view))) for view in views]
    return [float(form) for view in forms for form in view]


def test_channels_of_the_prototype_are_what_its_words_say() -> None:
    x = np.random.default_rng(0).normal(2.0, 3.0, 500)
    model = forward_rehearsal.Model(x[:300, None])
    channels = model.channels(x[150:, None])
    assert channels.shape == (200, 12)
    np.testing.assert_allclose(channels[-1], naive_channels(x[:300], x), rtol=1e-9)
    np.testing.assert_allclose(channels[0], naive_channels(x[:300], x[:301]), rtol=1e-9)


def test_the_prototype_hears_a_column_that_moves_or_grows_loud_and_refuses_what_it_cannot_rehearse_on() -> None:
    x = np.random.default_rng(0).normal(size=(1200, 3))
    moved, loud = x.copy(), x.copy()
    moved[900:, 1] += 3.0
    loud[900:, 2] *= 4.0
    for rows in (moved, loud):
        method = forward_rehearsal.ForwardRehearsal()
        method.fit(pd.DataFrame(rows[:600]), 500)
        rang = method.alarms(pd.DataFrame(rows[600:]))
        assert ((rang >= 300) & (rang < 325)).any()
        assert len(rang[rang < 300]) <= 3
    assert method.interval() is None
    with pytest.raises(InputError, match=r"203 rows leaves too few.*needs 204 rows"):
        forward_rehearsal.ForwardRehearsal().fit(pd.DataFrame(x[:203]), 500)
    forward_rehearsal.ForwardRehearsal().fit(pd.DataFrame(x[:204]), 500)


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


# Equal rates


def moved_limit(factor: float, alarms: int, share: float, method: str = "Hotelling", name: str = "NAB") -> Row:
    row: Row = {"set": name, "beside": "Hotelling", "method": method, "factor": factor, "recordings": 2}
    return row | {"expected": 4.0, "alarms": alarms, "tried": 2} | dict.fromkeys(recorded_changes.KINDS, share)


def test_shares_are_read_off_where_the_rates_are_equal() -> None:
    """Between 8 and 2 alarms, by the logarithm of the counts and a half; at 2 the smallest limit, which finds most."""
    limits = [moved_limit(*each) for each in ((0.5, 8, 0.9), (1.0, 2, 0.5), (2.0, 2, 0.3), (4.0, 0, 0.1))]
    for alarms, factor, share in ((2, 1.0, 0.5), (8, 0.5, 0.9), (0, 4.0, 0.1)):
        (found,) = equal_rates.equal([moved_limit(1.0, alarms, 0.7, DEFAULT), *limits])
        assert (found.factor, found.theirs[1], found.ours[1]) == pytest.approx((factor, share, 0.7))
        assert found.reached
    (between,) = equal_rates.equal([moved_limit(1.0, 4, 0.7, DEFAULT), *limits])
    weight = np.log(8.5 / 4.5) / np.log(8.5 / 2.5)
    assert between.theirs[1] == pytest.approx(0.9 - 0.4 * weight)
    assert between.factor == pytest.approx(0.5 * 2**weight)
    assert between.behind == pytest.approx(0.2 - 0.4 * weight)


@pytest.mark.parametrize(("counts", "nearest"), [((9, 7, 5), 2.0), ((1, 0, 0), 0.5)])
def test_a_rate_that_no_limit_has_is_told(counts: tuple[int, int, int], nearest: float) -> None:
    limits = [moved_limit(factor, count, 0.5) for factor, count in zip((0.5, 1.0, 2.0), counts, strict=True)]
    (found,) = equal_rates.equal([moved_limit(1.0, 3, 0.7, DEFAULT), *limits])
    assert not found.reached
    assert found.factor == nearest


def test_one_factor_for_all_sets_sums_alarms_and_takes_the_mean_of_shares() -> None:
    limits: Table = []
    for name, ours in (("NAB", 1), ("SMD", 5)):
        limits.append(moved_limit(1.0, ours, 0.8, DEFAULT, name))
        limits += [moved_limit(factor, count, 0.1 * count, name=name) for factor, count in ((1.0, ours + 3), (2.0, 3))]
    (found,) = equal_rates.with_one_factor(limits, "both")
    assert (found.factor, found.alarms, found.expected, found.recordings) == (2.0, 6, 8.0, 4)
    assert found.theirs[0] == pytest.approx(0.3)


def test_limits_are_compared_on_recordings_that_neither_refused() -> None:
    def watched(recording: str, method: str, refused: int, alarms: int) -> tuple[Row, Result]:
        factors = len(equal_rates.FACTORS) if method in CHARTS else 1
        result: Result = {"alarms": np.full(factors, alarms), "found": np.full((factors, 6), alarms / 10)}
        row: Row = {"set": "NAB", "recording": recording, "method": method, "refused": refused, "rows": 500, "ert": 500}
        return row, result

    rows = [watched(name, DEFAULT, name == "c", 4) for name in "abc"]
    rows += [watched(name, chart, name == "b" and chart == "prototype", 2) for name in "abc" for chart in CHARTS]
    table = equal_rates.table(rows)
    ours = {row["beside"]: (row["recordings"], row["alarms"]) for row in table if row["method"] == DEFAULT}
    assert ours == {"prototype": (1, 4), "Hotelling": (2, 8), "Hotelling, rehearsed": (2, 8)}
    assert len(table) == 3 * (1 + len(equal_rates.FACTORS))
    assert all(row["shift 1"] == 0.2 for row in table if row["method"] in CHARTS)


def test_a_limit_is_moved_by_its_factor_and_the_default_by_none() -> None:
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(900, 2)))
    chart, default = charts.Hotelling(), stream_methods.Default(0)
    chart.fit(rows[:300], 100)
    default.fit(rows[:300], 100)
    score = chart.score(rows[300:])
    rang = equal_rates.heard(chart, rows[300:], (0.5, 1.0, 2.0))
    assert [each.tolist() for each in rang] == [charts.clusters(score, f * chart.limit).tolist() for f in (0.5, 1, 2)]
    assert len(rang[0]) > len(rang[1]) > len(rang[2])
    (own,) = equal_rates.heard(default, rows[300:], (1.0,))
    assert own.tolist() == default.alarms(rows[300:]).tolist()


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
    assert within(row) == likely.any()


def test_from_recordings_to_words_and_resumed_after_a_move(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    data = tmp_path / "data"
    shutil.copytree(folder, data)
    for name in set(SOURCES) - {TENNESSEE, "C-MAPSS"}:
        monkeypatch.delitem(SOURCES, name)
    place = Laboratory(tmp_path / "results", workers=1, progress=False)
    rows = place.run(streams.STREAMS, Options(quick=True, data=data))["streams"]
    assert [row["method"] for row in rows] == list(METHODS) * 5
    assert {row["chosen"] for row in rows if row["set"] == "C-MAPSS"} == {0}
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
    row |= {"chosen": 0, "seconds": 2.0}
    row |= {"refused": int(bool(refusal)), "refusal": refusal, "low": 300.0, "high": 800.0, "trials": 0}
    return row | dict.fromkeys(recorded_changes.KINDS, np.nan) | {"delay": np.nan}


def test_failures_come_first_and_refusals_are_told(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows: Table = [
        made_up("NAB", DEFAULT),
        made_up("SMD", DEFAULT, alarms=90),
        made_up("Daphnet", DEFAULT, alarms=0),
        made_up(TENNESSEE, DEFAULT, "Blocks of 68 observations are too long: see this."),
        made_up("EEG", DEFAULT, alarms=3),
    ]
    write_table(tmp_path / "streams.csv", rows)
    text = streams_report.draw({"streams": read_table(tmp_path / "streams.csv"), "streams_limits": []}, tmp_path)
    part = text[text.index("## False alarms at an ERT of 500") :]
    table = [line.split(" | ")[0][2:] for line in part.splitlines() if f"| {DEFAULT} |" in line][:5]
    assert table == [TENNESSEE, "SMD", "Daphnet", "EEG", "NAB"]
    assert "| 500 | first sets | default | 1 of 4 | 3 of 4 | 1.00 | SMD, 45.0 | 1 of 4 | 1 of 4 |" in text
    assert "| 500 | later sets | default | 0 of 1 | 1 of 1 | 1.50 | EEG, 1.50 | 1 of 1 | 1 of 1 |" in text
    assert "| 1 of 5 | Blocks of N observations are too long |" in text
    assert "Within over all sets, by the default: 3 of 4, 75%." in text
    assert "Within over the first sets, by the default: 2 of 3, 67%." in text
    assert "| default | 2.00 | 2.0 |" in text


def test_targets_are_judged_and_what_was_missed_comes_first() -> None:
    rows: Table = [made_up(name, DEFAULT) | {"trials": 1} for name in ("NAB", "SMD", "3W wells", "EEG")]
    for row, alarms in zip(rows, (2, 9, 6, 90), strict=True):
        row |= {"alarms": alarms} | dict.fromkeys(recorded_changes.KINDS, 0.75)
    limits = [moved_limit(1.0, 2, 0.75, DEFAULT), moved_limit(0.5, 2, 0.8)]
    told = [
        line
        for line in streams_targets.told(rows, limits).splitlines()
        if line.endswith("ed** |") or "reached |" in line
    ]
    assert told == [
        "| false alarms over expected, median over sets | 0.67 to 1.5 | 3.00 | **missed** |",
        "| the same, of each set | at most 2.5 (3W wells 3.5) | SMD 4.50 | **missed** |",
        "| recordings with a count likely for the stated interval | at least 85% | 67% | **missed** |",
        "| shifts of 4 long-run spreads found, mean over sets | at least 80% | 75% | **missed** |",
        *(
            f"| found within 50 rows more than by 'Hotelling', at equal rates, {factor} | more than 0 | -0.05 (no "
            "change -0.05, shift 1 -0.05, shift 2 -0.05, shift 4 -0.05, doubled noise -0.05, stopped column -0.05) "
            "| **missed** |"
            for factor in ("a factor for each set", "one factor for all")
        ),
        "| refused references | none | 0 of 3 | reached |",
    ]


def test_the_plant_is_judged_by_all_of_its_visible_faults() -> None:
    rows: Table = [
        made_up(TENNESSEE, DEFAULT) | {"trials": 1, "recording": f"d{k:02d}_te", "delay": 10.0} for k in range(1, 22)
    ]
    rows[0] |= {"delay": np.inf}
    rows[3] |= {"delay": 101.0}
    rows[2] |= {"delay": np.inf}  # fault 3, which is hardly visible
    text = streams_targets.told(rows, [])
    assert "| Tennessee Eastman: visible faults found within 100 rows | 17 of 18 | 16 | **missed** |" in text
    assert "| their median delay, in rows | at most 15 | 10 | reached |" in text
    assert "| false alarms over expected there | at most 1.5 | 1.00 | reached |" in text
    assert "visible faults" not in streams_targets.told(rows[:9], [])
