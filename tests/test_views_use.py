"""Views in use: when they are chosen, what they take, what is refused, and that what happens in between is not lost."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin import (
    MMD,
    Blocks,
    DependenceWarning,
    Detector,
    Independent,
    InputError,
    Views,
    compare,
)
from tocsin._calibration import worlds
from tocsin._compute.arrays import Float64Array
from tocsin._detector import rehearsing
from tocsin._detector.base import content_of
from tocsin._state import Start
from tocsin.integrations.sklearn import ChangeDetector


def remembering(count: int, columns: int = 2, seed: int = 0, memory: float = 0.6) -> Float64Array:
    """Rows of an autoregression."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count + 50, columns))
    for t in range(1, len(rows)):
        rows[t] += memory * rows[t - 1]
    return rows[50:]


def made(**options: Any) -> Detector:
    return Detector(statistic=Views(), **{"ert": 100, "paths": 6, "seed": 1, **options})


REFERENCE, STREAM = remembering(400), remembering(300, seed=1)
STREAM[150:] += 6


def answers(detector: Detector, stream: Any = STREAM) -> list[str]:
    """Bit for bit."""
    return [repr(outcome) for outcome in detector.update_many(stream)]


def views_of(detector: Detector) -> bool:
    return detector.channels_[0].view is not None


# Chosen


@pytest.mark.parametrize("seed", range(3))
def test_a_memory_asks_for_views(seed: int) -> None:
    """By themselves they are what their name gives, and the fit says so; without a memory nothing of them is there."""
    reference = remembering(300, seed=seed, memory=0.5)
    with pytest.warns(DependenceWarning, match=r"watched one by one.*statistic=Views\(\).*sampler=Blocks\(\)"):
        chosen = Detector(100, paths=6, seed=seed).fit(reference)
    named = made(seed=seed).fit(reference)
    assert chosen.thresholds_.tolist() == named.thresholds_.tolist()
    assert answers(chosen) == answers(named)
    assert chosen.calibration_.dependence is not None
    assert named.calibration_.dependence is None, "it was not asked"
    assert chosen.calibration_.rehearsal == named.calibration_.rehearsal


def test_no_memory_asks_for_none() -> None:
    """Nor is anything rehearsed then."""
    reference = np.random.default_rng(0).normal(size=(300, 2))
    detector = Detector(100, window=(4, 8), seed=1).fit(reference)
    assert not views_of(detector)
    assert detector.calibration_.rehearsal is None


@pytest.mark.parametrize("options", [{"sampler": Blocks(5, 2)}, {"sampler": Independent()}, {"statistic": MMD()}])
def test_what_is_asked_for_stays(options: dict[str, Any]) -> None:
    """A memory changes neither a sampler nor a statistic that was given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DependenceWarning)
        detector = Detector(100, window=3, paths=100, seed=1, interval=False, **options).fit(REFERENCE)
    assert not views_of(detector)


@pytest.mark.parametrize("count", [30, 60, 100])
def test_short_references_are_taken(count: int) -> None:
    """By default windows, with a promise and an interval; and files of them can be read."""
    detector = made().fit(remembering(count))
    assert detector.windows_[-1] <= max(count // 10, rehearsing.SHORTER)
    assert detector.calibration_.interval() is not None
    answers(detector)


def test_shorter_ones_are_refused() -> None:
    """With what there is, what is needed, and what would help: a shorter window does, or more rows."""
    with pytest.raises(InputError, match=r"20 rows, its longest group 20.*leave 5.*8 are needed.*shorter window"):
        made().fit(remembering(20))
    assert made(window=2).fit(remembering(20)).windows_ == (2,)
    with pytest.raises(InputError, match=r"longest group 10.*leave 0"):
        made().fit(remembering(100), groups=np.arange(100) // 10)


@pytest.mark.parametrize("value", [0.0, 1e9, -1e300])
def test_references_that_stand_still_are_refused(value: float) -> None:
    """There is nothing to learn from."""
    with pytest.raises(InputError, match="No column of the reference varies"):
        made().fit(np.full((100, 3), value))


def test_the_widest_window_that_fits(tmp_path: Path) -> None:
    """As wide as half of the reference: what is fitted can be saved, and read."""
    detector = made(window=30).fit(remembering(60))
    detector.save(tmp_path / "a.tocsin")
    assert answers(Detector.load(tmp_path / "a.tocsin")) == answers(detector)


# Numbers of all kinds


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-3, 1e150, 1e200, 1e299])
def test_scales(scale: float, tmp_path: Path) -> None:
    """Every column is in units of its own: alarms are those of numbers about 1."""
    expected = made().fit(REFERENCE).update_many(STREAM)
    detector = made().fit(REFERENCE * scale)
    detector.save(tmp_path / "a.tocsin")
    got = Detector.load(tmp_path / "a.tocsin").update_many(STREAM * scale)
    assert got.alarm.tolist() == expected.alarm.tolist()
    assert got.alarm.any()
    np.testing.assert_allclose(got.statistic, expected.statistic, rtol=1e-4 if scale < 1e-300 else 1e-9)


def test_offsets() -> None:
    """A billion spreads from 0."""
    expected = made().fit(REFERENCE).update_many(STREAM)
    got = made().fit(REFERENCE + 1e9).update_many(STREAM + 1e9)
    assert got.alarm.tolist() == expected.alarm.tolist()
    np.testing.assert_allclose(got.statistic, expected.statistic, atol=1e-4)


def _almost_constant(x: Float64Array) -> Float64Array:
    return np.where(np.arange(len(x)) == 7, 1.0, 0.0)


COLUMNS: dict[str, Callable[[Float64Array], Any]] = {
    "almost constant": _almost_constant,
    "constant": np.zeros_like,
    "of two values": lambda x: (x > 0).astype(np.float64),
    "in turn": lambda x: np.arange(len(x)) % 2.0,
    "interpolated": lambda x: np.interp(np.arange(len(x)), np.arange(0, len(x), 10), x[::10]),
    "a ramp": lambda x: np.arange(float(len(x))),
    "a wave": lambda x: np.sin(np.arange(len(x)) / 5),
    "standing still after half": lambda x: np.where(np.arange(len(x)) < len(x) // 2, x, 3.0),
    "one beyond all measure": lambda x: np.where(np.arange(len(x)) == 99, 1e300, x),
    "heavy tails": lambda x: np.sinh(3 * x) ** 3,
    "a copy": lambda x: x,
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_all_kinds(name: str) -> None:
    """Beside one that is as usual: statistics are numbers, and a shift of that one is heard."""
    reference = np.column_stack([REFERENCE[:, 0], COLUMNS[name](REFERENCE[:, 0])])
    detector = made().fit(reference)
    assert np.isfinite(detector.thresholds_).all()
    assert detector.calibration_.threshold > 0
    stream = np.column_stack([remembering(400, 1, seed=2)[:, 0], reference[:, 1]])
    stream[200:, 0] += 12
    outcomes = detector.update_many(stream)
    widest = detector.windows_[-1]
    assert outcomes.alarm[200 : 200 + 2 * widest].any()
    tested = ~np.isnan(outcomes.statistic)
    assert tested.sum() == len(stream) - widest * (1 + outcomes.alarm.sum()) + _cut_off(outcomes.alarm, widest)
    assert np.isfinite(outcomes.statistic[tested]).all()


def _cut_off(alarm: Any, widest: int) -> int:
    """Silent observations that would have followed the end of the stream."""
    rang = np.flatnonzero(alarm)
    return max(int(rang[-1]) + widest - (len(alarm) - 1), 0) if len(rang) else 0


@pytest.mark.parametrize("kind", [np.float32, np.int16, bool])
def test_types(kind: Any) -> None:
    """The numbers count, not what holds them."""
    reference, stream = ((np.round(3 * rows)).astype(kind) for rows in (REFERENCE, STREAM))
    expected = answers(made().fit(reference.astype(np.float64)), stream.astype(np.float64))
    assert answers(made().fit(reference), stream) == expected
    assert answers(made().fit(reference.tolist()), stream.tolist()) == expected


# Tables


def table(count: int, seed: int = 0) -> Any:
    """Numbers with gaps, a category, a time and a text, all with a memory."""
    pandas = pytest.importorskip("pandas")
    rng, rows = np.random.default_rng(seed), remembering(count, 3, seed=seed)
    frame = pandas.DataFrame({"flow": rows[:, 0], "level": rows[:, 1]})
    frame["level"] = frame["level"].mask(rng.random(count) < 0.1)
    frame["state"] = np.where(rows[:, 2] > 0, "on", "off")
    frame["at"] = pandas.date_range("2024-03-01", periods=count, freq="17min")
    frame["note"] = [f"{rng.choice(['leak', 'noise', 'dust'])} at {i % 10}" for i in range(count)]
    return frame


@pytest.mark.parametrize("columns", [["flow", "level"], ["state"], ["flow", "level", "state", "at", "note"]])
def test_tables(columns: list[str], tmp_path: Path) -> None:
    """Columns of every kind have names in channels; files hold them; rows and blocks say the same."""
    reference, stream = table(300)[columns], table(120, seed=1)[columns]
    detector = made(ert=300).fit(reference)
    named = {str(channel.column) for channel in detector.channels_}
    named.remove("(newly missing)")
    assert named <= set(columns) or all(name.startswith("direction ") for name in named - set(columns))
    detector.update_many(stream[:50])
    detector.save(tmp_path / "a.tocsin")
    other = Detector.load(tmp_path / "a.tocsin")
    expected = answers(detector, stream[50:])
    assert [repr(other.update(row)) for row in stream[50:].to_dict("records")] == expected


def test_texts() -> None:
    """A list of texts is watched as one column of many numbers."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["pump", "valve", "tank", "leak"], 3)) for _ in range(120)]
    detector = made().fit(texts)
    assert str(detector.channels_[0]) == "mean of level of text, window 5"
    detector.update_many(texts[:40])


def test_what_is_told_of_a_table() -> None:
    """Numbers go up or down, and gaps and categories come more or less often."""
    reference, stream = table(400), table(400, seed=1)
    stream["flow"] += 20
    detector = made(ert=300).fit(reference[["flow", "level", "state"]])
    detector.update_until_alarm(stream[["flow", "level", "state"]])
    said = {column.name: column.how for column in detector.explain().columns}
    assert said.keys() == {"flow", "level", "state"}
    assert said["flow"].startswith("higher")
    assert not said["state"].startswith(("higher", "lower"))
    gone = table(400, seed=2)[["flow", "level", "state"]]
    gone["level"] = gone["level"].mask(np.random.default_rng(1).random(400) < 0.9)
    detector.reset()
    detector.update_until_alarm(gone)
    explained = {column.name: column.how for column in detector.explain().columns}
    assert explained["level"] in ("missing more often", "missing at other times")
    assert detector.explain().columns[0].name == "level"


# Options


def test_any_start_is_the_same() -> None:
    """A run begins after the reference, silent until its windows hold rows of its own."""
    starts: tuple[Start, ...] = ("warm", "cold")
    warm, cold = (made(start=start).fit(REFERENCE) for start in starts)
    expected = warm.update_many(STREAM)
    assert np.isnan(expected.statistic[: warm.windows_[-1]]).all()
    assert not np.isnan(expected.statistic[warm.windows_[-1]])
    assert answers(cold) == [repr(outcome) for outcome in expected]


def test_a_guarantee_raises_the_threshold() -> None:
    """And the level at which running scales are startled with it."""
    plain, sure, surer = (made(guarantee=each).fit(REFERENCE) for each in (None, 0.8, 0.95))
    thresholds = [each.calibration_.threshold for each in (plain, sure, surer)]
    assert thresholds == sorted(set(thresholds))
    assert sure.calibration_.nominal > 100
    for each in (plain, sure, surer):
        assert content_of(each)["live"][0]["level"] == each.calibration_.threshold
        assert len(each.update_many(STREAM)) == len(STREAM)


def test_an_interval_can_be_left_out() -> None:
    """Which changes nothing else."""
    with_one, without = (made(interval=each).fit(REFERENCE) for each in (True, False))
    assert without.calibration_.interval() is None
    assert with_one.calibration_.interval() is not None
    assert answers(with_one) == answers(without)


def test_seeds_workers_and_paths() -> None:
    """The seed settles all; the number of threads nothing; as many worlds are made as there are to be paths."""
    one, two, other = (made(seed=seed).fit(REFERENCE, workers=workers) for seed, workers in ((1, 1), (1, 3), (2, 1)))
    assert one.thresholds_.tolist() == two.thresholds_.tolist()
    assert answers(one) == answers(two)
    assert one.thresholds_.tolist() != other.thresholds_.tolist()
    assert [made(paths=paths).fit(REFERENCE).calibration_.paths for paths in (1, 9)] == [rehearsing.LEAST_WORLDS, 9]


def test_groups_are_apart() -> None:
    """Rows of one are no past of the next: levels that differ between recordings are no changes within them."""
    reference = remembering(400)
    groups = np.repeat(np.arange(4), 100)
    joined = reference + 30 * groups[:, None]
    apart, together = made().fit(joined, groups=groups), made().fit(joined)
    sizes = [content_of(each)["live"][0]["sizes"] for each in (apart, together)]
    assert (sizes[0][2] < sizes[1][2]).all(), (
        "steps from one recording to the next are changes where they are not apart"
    )
    assert len(apart.update_many(STREAM)) == len(STREAM)


def test_after_a_preprocess_step() -> None:
    """What it makes is watched."""
    detector = made(preprocess=lambda X: np.asarray(X)[:, :1] * 2).fit(REFERENCE)
    assert {channel.column for channel in detector.channels_} == {"1"}
    assert detector.update_many(STREAM).alarm.any()


def test_a_run_that_goes_on_is_silent_after_its_alarms() -> None:
    """It rings again only for what is louder than what it heard."""
    ends, goes_on = (made(reset_on_alarm=each).fit(REFERENCE) for each in (True, False))
    one, other = (each.update_many(STREAM) for each in (ends, goes_on))
    assert one.alarm.tolist() == other.alarm.tolist()
    assert other.time.tolist() == list(range(1, len(STREAM) + 1))
    np.testing.assert_array_equal(one.statistic, other.statistic)
    assert (ends.run, goes_on.run) == (one.alarm[:-1].sum(), 0)


# Places in a stream


@pytest.mark.parametrize("before", [0, 1, 5, 149])
@pytest.mark.parametrize("place", ["quiet", "alarm", "silent"])
def test_saved_and_copied_anywhere(before: int, place: str, tmp_path: Path) -> None:
    """Before the first test, at an alarm, and in the silence after it."""
    detector = made().fit(REFERENCE)
    detector.update_many(STREAM[:before])
    rest = STREAM[before:]
    if place != "quiet":
        rest = rest[len(detector.update_until_alarm(rest)) :]
        assert detector.alarm is not None
    if place == "silent":
        assert np.isnan(detector.update_many(rest[:4]).statistic).all()
        rest = rest[4:]
    detector.save(tmp_path / "a.tocsin")
    others = [Detector.load(tmp_path / "a.tocsin"), copy.copy(detector), copy.deepcopy(detector)]
    expected = answers(detector, np.concatenate([rest, STREAM]))
    for other in others:
        assert answers(other, np.concatenate([rest, STREAM])) == expected
        assert (other.run, other.time) == (detector.run, detector.time)


def test_a_reset_is_silent_and_keeps_what_was_heard() -> None:
    """Rows of the run before stay in the windows until they have left them; running scales stay too."""
    detector, twin = made(ert=3000).fit(REFERENCE), made(ert=3000).fit(REFERENCE)
    widest = detector.windows_[-1]
    quiet = remembering(200, seed=3)
    expected = twin.update_many(quiet)
    detector.update_many(quiet[:100])
    assert not expected.alarm.any(), "else what follows is not about resets"
    detector.reset()
    assert (detector.time, detector.run, detector.alarm, len(detector.recent)) == (0, 1, None, 0)
    got = detector.update_many(quiet[100:])
    assert np.isnan(got.statistic[:widest]).all()
    np.testing.assert_array_equal(got.statistic[widest:], expected.statistic[100 + widest :])


def test_an_interrupted_fit_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what was fitted before, nor where that is in its stream."""
    detector, twin = made().fit(REFERENCE), made().fit(REFERENCE)
    for each in (detector, twin):
        each.update_many(STREAM[:40])

    def interrupted(*given: object) -> Float64Array:
        raise KeyboardInterrupt

    monkeypatch.setattr(worlds.World, "draw", interrupted)
    for again in (detector, fresh := made()):
        with pytest.raises(KeyboardInterrupt):
            again.fit(remembering(200, 3))
    monkeypatch.undo()
    assert "fitted" not in repr(fresh)
    assert answers(detector, STREAM[40:]) == answers(twin, STREAM[40:])


# Refused


@pytest.mark.parametrize(
    "options",
    [
        {"statistic": [Views(), MMD()]},
        {"sampler": Blocks(5, 2)},
        {"sampler": Independent()},
        {"mode": "paper", "paths": 2000},
        {"mode": "fixed", "paths": 2000},
    ],
)
def test_what_does_not_go_with_views(options: dict[str, Any]) -> None:
    """It is named, and the same options go with MMD."""
    with pytest.raises(InputError, match=r"statistic=Views\(\) stands alone.*choose statistic=MMD\(\)"):
        Detector(**{"ert": 100, "statistic": Views(), "window": 3, "paths": 60, **options}).fit(REFERENCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DependenceWarning)
        Detector(**{"ert": 100, "window": 3, "paths": 60, **options, "statistic": MMD()}).fit(REFERENCE)


def test_objects_are_refused() -> None:
    """Views are of numbers."""
    with pytest.raises(InputError, match="object"):
        made().fit([object() for _ in range(100)])


# Elsewhere


def test_scikit_learn() -> None:
    """The face for scikit-learn finds what the detector finds, each time anew; while it is silent there is no score."""
    face = ChangeDetector(detector=made()).fit(REFERENCE)
    alone = made().fit(REFERENCE).update_many(STREAM)
    for _ in range(2):
        np.testing.assert_array_equal(face.predict(STREAM), np.where(alone.alarm, -1, 1))
        np.testing.assert_array_equal(face.decision_function(STREAM), alone.threshold - alone.statistic)
    assert alone.alarm.any()


def test_river() -> None:
    """The face for river learns its reference from the stream, and then finds the shift."""
    pytest.importorskip("river")
    from tocsin.integrations.river import ChangeDetector as Drift

    drift = Drift(reference=300, detector=made(ert=3000))
    rang = []
    for t, x in enumerate(np.concatenate([REFERENCE[:350, 0], STREAM[150:, 0] + 6])):
        drift.update(x)
        if drift.drift_detected:
            rang.append(t)
    assert any(350 <= t < 400 for t in rang)


def test_river_with_a_fitted_detector() -> None:
    """It rings as the detector would alone, run after run, and the one that was given stays where it is."""
    pytest.importorskip("river")
    from tocsin.integrations.river import ChangeDetector as Drift

    detector = made().fit(REFERENCE[:, :1])
    alone, drift = copy.deepcopy(detector).update_many(STREAM[:, :1]), Drift(detector=detector)
    rang = []
    for t, x in enumerate(STREAM[:, 0].tolist()):
        drift.update(x)
        if drift.drift_detected:
            rang.append(t)
    assert rang == np.flatnonzero(alone.alarm).tolist()
    assert drift.n_detections == len(rang) > 1
    assert detector.time == 0


def test_two_tables_are_compared_as_before() -> None:
    """A comparison draws from both tables, in whatever order they are."""
    assert not compare(REFERENCE[::2], REFERENCE[1::2], seed=1).differs
    assert compare(REFERENCE, REFERENCE + 3, seed=1).differs
