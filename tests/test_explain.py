"""`Detector.explain`, from the alarm to the words: for every statistic, and after a file."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin import LSDD, MMD, Blocks, Custom, Detector, Independent, InputError, MeanShift
from tocsin._compute.arrays import Float64Array
from tocsin._detector.base import altered
from tocsin._explain import alarm as alarm_module
from tocsin._explain.contributions import column_contributions
from tocsin._explain.onset import Onset, find_onset
from tocsin._statistics.base import Statistic
from tocsin._statistics.kernels import Gaussian
from tocsin.representations import PCA

RNG = np.random.default_rng(0)
REFERENCE = RNG.normal(size=(200, 3))
QUIET = RNG.normal(size=(15, 3))
SHIFTED = RNG.normal(loc=[0.0, 3.0, 0.0], size=(30, 3))

STATISTICS: dict[str, Statistic] = {
    "default": MMD(),
    "one width": MMD(Gaussian()),
    "mean": MeanShift(),
    "signed mean": MeanShift(direction=[0.0, 1.0, 0.0]),
    "LSDD": LSDD(),
    "function": Custom(lambda X, Y: float(np.abs(X.mean(0) - Y.mean(0)).max())),
}


def alike(X: Any, Y: Any) -> Float64Array:
    """A kernel of words, by their lengths."""
    return np.array([[0.5 ** abs(len(x) - len(y)) for y in Y] for x in X])


def rang(statistic: Statistic, start: Any = "warm", before: Float64Array = QUIET) -> Detector:
    """A detector that rang at a shift of the second column, after 15 quiet observations."""
    detector = Detector(
        500, statistic, window=10, start=start, sampler=Independent(), interval=False, paths=2500, seed=1
    ).fit(REFERENCE, progress=False)
    detector = altered(detector, hears=False)  # news would ring before them
    assert not detector.update_many(before).alarm.any()
    detector.update_until_alarm(SHIFTED)
    assert detector.alarm is not None
    return detector


@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_on_rows(name: str) -> None:
    """The shifted column comes first, the onset is where it was, and contributions add up to what they are said to."""
    detector = rang(STATISTICS[name])
    explanation = detector.explain()
    assert explanation.columns[0].name == "2"
    assert explanation.columns[0].changed
    assert not any(column.changed for column in explanation.columns[1:])
    assert explanation.began.low <= explanation.began.time <= explanation.began.high
    assert abs(explanation.began.time - (detector.time - len(SHIFTED) + 1)) < 30
    total = sum(column.contribution for column in explanation.columns)
    if explanation.measure:
        assert name in ("LSDD", "function")
        assert "MMD" in explanation.measure
    else:
        assert total == pytest.approx(explanation.value, rel=1e-6)
    text = str(explanation)
    assert re.search(r"^Changed .*\n  column 2  .*median", text, re.MULTILINE)
    assert re.search(r"observation \d+: column 2 -?\d", text)
    assert "Typical of what is new" in text


def test_the_value_is_the_channels_own() -> None:
    """One channel is in its own units, so that value and statistic are the same, but for the coin."""
    detector = rang(MMD(Gaussian()), start="cold")
    assert detector.alarm is not None
    assert detector.explain().value == pytest.approx(detector.alarm.statistic, rel=1e-4)


def test_onset_of_a_clear_change() -> None:
    """The change began with observation 16."""
    detector = rang(MMD(), start="cold")
    began = detector.explain().began
    assert began.low <= 16 <= began.high
    assert abs(began.time - 16) <= 2


def test_nothing_changes(tmp_path: Path) -> None:
    """An explanation leaves the detector as it was; twice, or after a file, it is the same."""
    detector = rang(MMD())
    detector.save(tmp_path / "before.tocsin")
    first = detector.explain().to_json()
    assert detector.explain().to_json() == first
    detector.save(tmp_path / "after.tocsin")
    assert (tmp_path / "after.tocsin").read_bytes() == (tmp_path / "before.tocsin").read_bytes()
    assert Detector.load(tmp_path / "after.tocsin").explain().to_json() == first
    facts = json.loads(first)
    assert facts["columns"][0]["name"] == "2"
    assert facts["time"] == detector.time


def test_observations_after_the_alarm_help() -> None:
    """The alarm is still the one that is explained; when it is forgotten, that is told."""
    detector = altered(rang(MMD(), start="cold"), resets=False)
    alarm = detector.alarm
    detector.update_many(SHIFTED[:5])
    before, explanation = rang(MMD(), start="cold").explain(), detector.explain()
    assert explanation.outcome == alarm
    assert explanation.columns[0].name == before.columns[0].name == "2"
    assert explanation.columns[0].p_value <= before.columns[0].p_value
    assert explanation.began.low <= 16 <= explanation.began.high
    detector.update_many(np.tile(SHIFTED, (2, 1)))
    with pytest.raises(InputError, match=r"alarm is \d+ observations ago, and the last 20 are remembered"):
        detector.explain()


def test_without_an_alarm() -> None:
    """There is nothing to explain."""
    detector = rang(MMD())
    detector.reset()
    detector.update_many(QUIET[:3])
    with pytest.raises(InputError, match="no alarm to explain: this run has been quiet for 3 observations"):
        detector.explain()


def test_an_alarm_at_once() -> None:
    """After a warm start the window may still hold reference points; they are part of what is explained."""
    detector = rang(MMD(), before=QUIET[:0])
    assert detector.time < 10
    explanation = detector.explain()
    assert explanation.columns[0].name == "2"
    assert sum(column.contribution for column in explanation.columns) == pytest.approx(explanation.value, rel=1e-6)


def test_objects() -> None:
    """With a kernel there are onset and examples, but no columns; a function of two samples says nothing."""
    reference = ["a" * int(size) for size in np.random.default_rng(0).integers(1, 4, 100)]
    options: dict[str, Any] = {"window": 5, "interval": False, "sampler": Independent(), "seed": 1}
    detector = Detector(50, MMD(alike), paths=300, **options).fit(reference, progress=False)
    detector.update_until_alarm(["aa"] * 3 + ["a" * 9] * 10)
    explanation = detector.explain()
    assert explanation.columns == ()
    assert explanation.recent[0].values == {}
    assert "Alarm at observation" in str(explanation)
    other = Detector(
        50, Custom(lambda X, Y: float(abs(np.mean([*map(len, X)]) - np.mean([*map(len, Y)])))), paths=600, **options
    )
    other.fit(reference, progress=False)
    other.update_until_alarm(["a" * 9] * 10)
    with pytest.raises(InputError, match="compares observations by a function of its own"):
        other.explain()


def test_a_table_in_words() -> None:
    """Names, categories, gaps: before and since; only the column that moved is named."""
    rng = np.random.default_rng(0)

    def rows(count: int, broken: float) -> list[dict[str, Any]]:
        return [
            {
                "flow": float(rng.normal(50, 4)),
                "state": str(rng.choice(["on", "off"], p=[1 - broken, broken])),
                "note": None if rng.random() < 0.2 else float(rng.normal()),
            }
            for _ in range(count)
        ]

    detector = Detector(200, window=25, interval=False, sampler=Independent(), paths=500, seed=1)
    detector = altered(detector.fit(rows(400, 0.1), progress=False), hears=False)
    detector.update_until_alarm(rows(300, 0.9))
    explanation = detector.explain()
    (moved,) = explanation.changed
    assert moved.name == "state"
    assert "on 9" in moved.before or "on 8" in moved.before
    assert "off" in moved.after
    assert {example.values["state"] for example in explanation.recent} == {"off"}
    assert {example.values["state"] for example in explanation.missed} == {"on"}


def test_a_number_at_its_median_is_shown_in_an_example() -> None:
    """It is not taken for missing, though another column of its row is, which the reference never lacks."""
    flow = np.random.default_rng(0).normal(50, 4, 201)
    reference = [{"flow": x, "state": "on"} for x in flow.tolist()]
    detector = Detector(200, window=10, interval=False, sampler=Independent(), paths=500, seed=1)
    detector.fit(reference, progress=False)
    detector.update_until_alarm([{"flow": float(np.median(flow)), "state": None}] * 20)
    shown = detector.explain().recent[0].values
    assert shown == {"flow": f"{np.median(flow):.4g}", "state": "missing"}


@pytest.mark.parametrize(
    ("before", "after", "how"), [(0.2, 0.9, "missing more often"), (0.8, 0.1, "missing less often")]
)
@pytest.mark.parametrize("kind", ["number", "category"])
def test_gaps_are_told_as_such(kind: str, before: float, after: float, how: str) -> None:
    """A column whose gaps alone changed is neither higher nor lower."""
    rng = np.random.default_rng(0)

    def rows(count: int, missing: float) -> list[dict[str, Any]]:
        ages: list[Any] = (
            rng.normal(40, 8, count).tolist() if kind == "number" else rng.choice(["a", "b"], count).tolist()
        )
        gone = rng.random(count) < missing
        return [{"age": None if gap else age, "flow": float(rng.normal())} for age, gap in zip(ages, gone, strict=True)]

    detector = Detector(
        200, window=25, interval=False, sampler=Independent(), reset_on_alarm=False, paths=500, seed=1
    ).fit(rows(400, before), progress=False)
    detector.update_until_alarm(rows(300, after))
    detector.update_many(rows(10, after))
    (moved,) = detector.explain().changed
    assert (moved.name, moved.how) == ("age", how)


def test_texts_are_not_part_of_examples() -> None:
    """Their features do not tell what they were."""
    rng = np.random.default_rng(0)

    def rows(count: int, flow: float) -> list[dict[str, Any]]:
        return [{"note": f"item {rng.integers(10**6)}", "flow": float(rng.normal(flow))} for _ in range(count)]

    detector = Detector(200, window=10, interval=False, sampler=Independent(), paths=500, seed=1)
    detector.fit(rows(200, 0.0), progress=False)
    detector.update_until_alarm(rows(50, 5.0))
    explanation = detector.explain()
    assert {column.name for column in explanation.columns} == {"note", "flow"}
    assert {name for example in (*explanation.recent, *explanation.missed) for name in example.values} == {"flow"}


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_texts_are_summarised_by_how_alike_they_are(missing: float) -> None:
    """A text that is there is not missing, though its features do not tell which it was."""
    rng = np.random.default_rng(0)

    def rows(count: int, words: str, missing: float) -> list[str | None]:
        texts = [f"{words} at {rng.integers(10**6)}" for _ in range(count)]
        return [None if rng.random() < missing else text for text in texts]

    detector = Detector(200, window=10, interval=False, sampler=Independent(), paths=500, seed=1)
    detector.fit(rows(300, "leaking valve", missing), progress=False)
    detector.update_until_alarm(rows(50, "rusty pipe", 0.0))
    (moved,) = (column for column in detector.explain().columns if column.name == "text")
    gap = r", \d\d% missing" if missing else ""
    before = re.fullmatch(rf"texts \(mean cosine (0\.\d\d) to each other\){gap}", moved.before)
    after = re.fullmatch(r"texts \((0\.\d\d) to those before\)(, 0% missing)?", moved.after)
    assert before is not None
    assert after is not None
    assert float(before[1]) > 2 * float(after[1])
    assert (after[2] is not None) == bool(missing)


@pytest.mark.parametrize("kind", ["rows", "objects"])
def test_recent_points(kind: str) -> None:
    """Those of this run, oldest first, two widest windows at most, and apart from arrays that may change."""
    rng = np.random.default_rng(0)
    points: Any = rng.normal(size=(100, 2)) if kind == "rows" else ["a" * int(n) for n in rng.integers(1, 9, 100)]
    statistic = MMD() if kind == "rows" else MMD(alike)
    detector = Detector(
        50, statistic, window=3, interval=False, sampler=Independent(), reset_on_alarm=False, paths=300, seed=1
    ).fit(points, progress=False)
    assert len(detector.recent) == 0
    stream = points[:10].copy()
    detector.update_many(stream[:2])
    assert len(detector.recent) == 2
    for point in stream[2:]:
        detector.update(point)
    if kind == "rows":
        stream[:] = 0.0
    np.testing.assert_array_equal(detector.recent, points[4:10])
    detector.reset()
    assert len(detector.recent) == 0


@pytest.mark.parametrize("sampler", [Independent(), Blocks(length=4)], ids=["independent", "blocks"])
def test_the_order_of_the_reference_counts_where_it_has_a_memory(sampler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The onset is that of observations which depend on each other, or of such that do not."""
    detector = Detector(300, window=10, sampler=sampler, interval=False, paths=500, seed=1)
    detector.fit(REFERENCE, progress=False)
    detector.update_until_alarm(SHIFTED)
    ordered = []

    def find(*arguments: Any, **options: Any) -> Onset:
        ordered.append(options["ordered"])
        return find_onset(*arguments, **options)

    monkeypatch.setattr(alarm_module, "find_onset", find)
    detector.explain()
    assert ordered == [isinstance(sampler, Blocks)]


def test_an_early_alarm_is_explained_by_the_whole_window() -> None:
    """The reference points that a warm start put before the stream are part of it."""
    detector = rang(MMD(Gaussian()), before=QUIET[:0])
    begun = detector._run.begun_with
    missing = 10 - detector.time
    assert missing > 0
    assert begun is not None
    window = np.concatenate([begun[-missing:], detector.recent])
    explanation, (channel,) = detector.explain(), detector.channels_
    wanted = column_contributions(channel, window, REFERENCE, np.arange(3), total=explanation.value, seed=1).columns
    found = {column.name: column.contribution for column in explanation.columns}
    np.testing.assert_allclose([found[name] for name in ("1", "2", "3")], wanted, rtol=1e-9)


def test_reference_rows_are_those_that_were_given() -> None:
    """Though some of them left the reference for a representation to learn from."""
    detector = Detector(
        200, window=10, interval=False, sampler=Independent(), paths=500, seed=1, preprocess=PCA(2)
    ).fit(REFERENCE, progress=False)
    assert len(detector.reference_) < len(REFERENCE)
    detector.update_until_alarm(REFERENCE[:30] + 4.0)
    missed = detector.explain().missed
    assert missed
    for example in missed:
        (point,) = detector.intake_.many(REFERENCE[example.place - 1 : example.place])
        assert list(example.values.values()) == [f"{value:.4g}" for value in point]


def test_what_explanations_learn_is_shared_and_travels() -> None:
    """A detector that has explained can still be copied, pickled and saved, and explains the next alarm alike."""
    rng = np.random.default_rng(0)
    points, rows = rng.normal(size=(300, 3)), rng.normal([0, 0, 3], size=(12, 3))
    detector = Detector(100, window=10, reset_on_alarm=False, seed=1, interval=False).fit(points, progress=False)
    detector.update_many(rows)
    first = detector.explain()
    again = pickle.loads(pickle.dumps(detector))
    assert str(again.explain()) == str(first) == str(detector.explain())
    detector.reset()
    detector.update_many(rows)
    fresh = Detector(100, window=10, reset_on_alarm=False, seed=1, interval=False).fit(points, progress=False)
    fresh.reset()
    fresh.update_many(rows)
    assert str(detector.explain()) == str(fresh.explain())
