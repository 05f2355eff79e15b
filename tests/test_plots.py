"""Plots: every peak is in them, they say what is so, and names of any kind can be drawn."""

from __future__ import annotations

import dataclasses
import datetime
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from tocsin import Channel, Detector, Independent, InputError, MissingExtraError, Outcome, Outcomes, plots
from tocsin._data.tables import Values
from tocsin._detector.base import altered
from tocsin._explain.result import Began, Example, Explanation, Moved
from tocsin._plots import figures
from tocsin._plots.envelope import Envelope, envelope
from tocsin._plots.path import beginnings, decades
from tocsin._plots.samples import Bars, Histogram, compared, cut, values_in

pytestmark = pytest.mark.usefixtures("quick_fits")

HEADS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
NAMES = ("flow", "$pressure_{1}$", "a name that is much too long to be shown as a whole", "100 % <b>", "\n")


def moved(name: str, contribution: float, *, changed: bool) -> Moved:
    """A column of an explanation."""
    return Moved(
        name=name, contribution=contribution, usual=(-0.02, 0.1), p_value=0.01 if changed else 0.5, changed=changed,
        how="higher", before="median 3 (2 to 4)", after="median 5 (4 to 6), 20% missing",
    )  # fmt: skip


def explain(outcome: Outcome, columns: int = 5, back: int = 7) -> Explanation:
    """An explanation of this alarm, made by hand."""
    began = max(outcome.time - back, 1)
    return Explanation(
        outcome=outcome, value=0.7, measure="", rate=0.05,
        began=Began(began, max(began - 4, 1), min(began + 3, outcome.time), 0.9),
        columns=tuple(moved(name, 0.3 - 0.1 * i, changed=i < 2) for i, name in enumerate(NAMES[:columns])),
        recent=(Example(outcome.time, {"flow": "5"}),), missed=(Example(3, {"flow": "3"}),),
    )  # fmt: skip


ALARM = Outcome(120, True, 1.3, 1.1, 4.2e6, Channel("MMD", 25, 1.3))


@pytest.fixture(scope="module")
def detector() -> Detector:
    """Fitted to normal rows."""
    reference = np.random.default_rng(0).normal(size=(300, 2))
    return Detector(300, window=[5, 20], paths=300, seed=1).fit(reference, progress=False)


@pytest.fixture(scope="module")
def outcomes(detector: Detector) -> Outcomes:
    """Of a stream that changes after 300 of its 400 rows."""
    rows = np.random.default_rng(1).normal(size=(400, 2))
    rows[300:] += 1.5
    return detector.update_many(rows)


# Times


def test_times_are_told_below_the_axis(outcomes: Outcomes) -> None:
    """Of the observations that have numbers there, in whatever they are given; as many as there are outcomes."""
    begin = datetime.datetime(2019, 3, 7, 14, 20)
    times = [begin + datetime.timedelta(minutes=10 * i) for i in range(len(outcomes))]
    for given_times in (times, np.array(times, dtype="datetime64[us]"), [time.isoformat() for time in times]):
        figure = Figure()
        axes = figure.subplots()
        plots.path_panel(axes, outcomes, first=101, times=given_times)
        figure.canvas.draw()
        told = [label.get_text().split("\n") for label in axes.get_xticklabels()]
        known = [(int(label[0]), label[1]) for label in told if len(label) == 2]
        assert len(known) > 1
        for number, when in known:
            assert when == times[number - 101].isoformat(" ", "minutes")
    for wrong, message in ((times[:3], "There are 3 times for 400 outcomes"), (5, "Times must be in a list")):
        with pytest.raises(InputError, match=message):
            plots.path_panel(Figure().subplots(), outcomes, times=wrong)


# Envelopes


@given(
    pieces=st.lists(st.lists(st.floats(-5, 5) | st.just(math.nan), max_size=40), max_size=8),
    most=st.integers(2, 30),
)
def test_an_envelope_holds_the_extremes_of_every_bin(pieces: list[list[float]], most: int) -> None:
    """Whatever the blocks in which values arrive, and in bounded memory; values that are not there do not count."""
    grown = Envelope(most)
    for piece in pieces:
        grown.add(np.array(piece, dtype=np.float64))
    values = np.array([value for piece in pieces for value in piece], dtype=np.float64)
    assert grown.count == len(values)
    assert len(grown.low) == len(grown.high) == len(grown.middles) == -(-len(values) // grown.each) <= most + 1
    for i, (low, high, middle) in enumerate(zip(grown.low, grown.high, grown.middles, strict=True)):
        own = values[i * grown.each : (i + 1) * grown.each]
        assert middle == i * grown.each + (len(own) + 1) / 2
        there = own[~np.isnan(own)]
        if len(there):
            assert (low, high) == (there.min(), there.max())
        else:
            assert math.isnan(low)
            assert math.isnan(high)


@given(count=st.integers(1, 200), most=st.integers(2, 30))
def test_a_coarser_envelope_is_that_of_the_values(count: int, most: int) -> None:
    """Bins are twice as long until there are few enough."""
    values = np.random.default_rng(count).normal(size=count)
    coarse = envelope(values, 64).coarser(most)
    assert len(coarse.low) <= most
    assert coarse.high.max() == values.max()
    assert coarse.low.min() == values.min()


# The path


@pytest.mark.parametrize("suffix", HEADS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_paths_are_drawn(outcomes: Outcomes, tmp_path: Path, suffix: str, theme: figures.Theme) -> None:
    """To files of every kind, for light and dark pages."""
    file = tmp_path / f"path{suffix}"
    plots.draw_path(outcomes, file, theme=theme)
    assert file.read_bytes().startswith(HEADS[suffix])


def test_no_peak_of_a_long_path_is_lost(outcomes: Outcomes) -> None:
    """The highest of a million values is in the picture, which holds a few thousand numbers only."""
    count, peak = 10**6, 777_777
    statistic = np.random.default_rng(0).normal(size=count)
    statistic[peak] = 9.0
    long = dataclasses.replace(
        outcomes, time=np.arange(1, count + 1), alarm=statistic > 8, statistic=statistic, threshold=np.full(count, 8.0),
        loudest=np.zeros(count, dtype=np.int64),
    )  # fmt: skip
    axes = Figure().subplots()
    plots.path_panel(axes, long)
    drawn = np.concatenate([path.vertices for area in axes.collections for path in area.get_paths()])
    assert len(drawn) < 20_000
    highest = drawn[np.nanargmax(drawn[:, 1])]
    assert highest[1] == 9.0
    assert abs(highest[0] - (peak + 1)) < 1000


def test_alarms_and_onsets_are_where_they_belong(outcomes: Outcomes) -> None:
    """In rows of the stream, though explanations count from the beginning of their run."""
    rang = beginnings(outcomes)
    assert rang.tolist() == np.flatnonzero(outcomes.alarm).tolist()
    explained = [explain(outcomes[int(row)]) for row in rang[:2]]
    axes = Figure().subplots()
    plots.path_panel(axes, outcomes, explanations=explained, first=1001)
    marks = next(line for line in axes.lines if line.get_marker() == "v")
    assert np.asarray(marks.get_xdata()).tolist() == (rang + 1001).tolist()
    for row, explanation, span in zip(rang, explained, axes.patches, strict=False):
        run_began = int(row) + 1001 - explanation.outcome.time
        left, right = span.get_extents().transformed(axes.transData.inverted()).intervalx
        assert left == pytest.approx(run_began + explanation.began.low - 0.5, abs=1e-6)
        assert right == pytest.approx(run_began + explanation.began.high + 0.5, abs=1e-6)


def test_alarms_in_a_row_are_one_mark(detector: Detector) -> None:
    """Where no new run was started, the statistic stays above its threshold for a while."""
    detector.reset()
    outcomes = altered(detector, resets=False).update_many(np.full((60, 2), 3.0))
    assert outcomes.alarm.sum() > 40
    assert len(beginnings(outcomes)) == 1


def test_many_alarms_are_ticks(outcomes: Outcomes) -> None:
    """Hundreds of triangles would hide the path."""
    count = 1000
    many = dataclasses.replace(
        outcomes, time=np.ones(count, dtype=np.int64), alarm=np.arange(count) % 2 == 0, statistic=np.ones(count),
        threshold=np.ones(count), loudest=np.zeros(count, dtype=np.int64),
    )  # fmt: skip
    axes = Figure().subplots()
    plots.path_panel(axes, many)
    assert [line.get_marker() for line in axes.lines if line.get_marker() in ("v", "|")] == ["|"]


def test_decades_of_rarity_are_those_of_the_curve(detector: Detector) -> None:
    """At each level chance alone gives as much once in so many; none is outside of the axis or near the one below."""
    curve = detector.calibration_.curve
    assert curve is not None
    found = decades(curve, 0.0, 3.0)
    assert found
    for level, rarity in found:
        assert 0 < level < 3
        assert curve.rarity(level) == pytest.approx(rarity, rel=0.05)
    assert all(np.diff([level for level, _ in found]) > 0.1)


def test_what_cannot_be_drawn(detector: Detector, outcomes: Outcomes, tmp_path: Path) -> None:
    """Nothing is written then."""
    with pytest.raises(InputError, match="no outcomes"):
        plots.draw_path(outcomes[:0], tmp_path / "a.png")
    with pytest.raises(InputError, match="not of one of these outcomes"):
        plots.draw_path(outcomes, tmp_path / "a.png", explanations=[explain(ALARM)])
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        plots.draw_path(outcomes, tmp_path / "a.txt")
    with pytest.raises(InputError, match="theme='blue' is unknown; choose one of 'light', 'dark'"):
        plots.draw_path(outcomes, tmp_path / "a.png", theme="blue")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no columns to draw"):
        plots.contributions_panel(Figure().subplots(), explain(ALARM, columns=0))
    assert not list(tmp_path.iterdir())


def test_matplotlib_is_asked_for(outcomes: Outcomes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of the extra."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"tocsin\[plot\]"):
        plots.draw_path(outcomes, tmp_path / "a.png")


def test_styles_do_not_outlive_their_block(outcomes: Outcomes) -> None:
    """And panels drawn in one have its colours."""
    from matplotlib import rcParams

    before = rcParams["axes.facecolor"]
    with plots.style("dark"):
        axes = Figure().subplots()
        plots.path_panel(axes, outcomes)
        assert to_hex(axes.lines[0].get_color()).upper() == figures.ON_DARK[0]
    assert rcParams["axes.facecolor"] == before


# Explanations


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("columns", [0, 1, 5])
def test_explanations_are_drawn(tmp_path: Path, theme: figures.Theme, columns: int) -> None:
    """With any number of columns, whatever these are called."""
    file = tmp_path / "explanation.svg"
    plots.draw_explanation(explain(ALARM, columns), file, theme=theme)
    drawn = file.read_text()
    assert "Alarm at observation 120" in drawn
    assert "once in 4,200,000 observations" in drawn
    assert ("$pressure_{1}$" in drawn) == (columns == 5)


def test_an_explanation_draws_itself(tmp_path: Path) -> None:
    """To a path or the name of one."""
    explain(ALARM).plot(str(tmp_path / "a.png"))
    assert (tmp_path / "a.png").read_bytes().startswith(HEADS[".png"])


def test_an_alarm_at_the_first_observation_is_drawn(tmp_path: Path) -> None:
    """Its line of time has no length."""
    plots.draw_explanation(explain(dataclasses.replace(ALARM, time=1, rarity=math.nan)), tmp_path / "a.png")


def test_bars_are_contributions(tmp_path: Path) -> None:
    """Over grey ranges; those of columns that changed have a colour of their own, and come first."""
    explanation = explain(ALARM)
    explanation = dataclasses.replace(explanation, columns=explanation.columns[::-1])
    axes = Figure().subplots()
    plots.contributions_panel(axes, explanation, most=3)
    usual, changed, others = axes.containers
    assert [bar.get_width() for bar in usual] == pytest.approx([0.12] * 3)
    assert sorted(bar.get_width() for bar in changed) == pytest.approx([0.2, 0.3])
    assert [bar.get_width() for bar in others] == pytest.approx([-0.1])
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == ["$pressure_{1}$", "flow"]


# The reference against recent observations


def sample(count: int, shift: float, seed: int) -> list[dict[str, Any]]:
    """Rows with columns of all kinds."""
    rng = np.random.default_rng(seed)
    return [
        {
            "flow": float(rng.normal(shift)),
            "count": int(rng.poisson(3)),
            "$kind$": str(rng.choice(list("abcdefghij"))),
            "on": bool(rng.random() < 0.5),
            "gaps": None if rng.random() < 0.3 else float(rng.normal()),
            "nothing": None,
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_comparisons_are_drawn(tmp_path: Path, theme: figures.Theme) -> None:
    """Of columns of every kind."""
    file = tmp_path / "comparison.svg"
    plots.draw_comparison(sample(200, 0, 0), sample(20, 2, 1), file, theme=theme)
    drawn = file.read_text()
    for words in ("flow", "$kind$", "reference", "recent", "true", "missing"):
        assert words in drawn


def test_arrays_and_single_columns_are_compared(tmp_path: Path) -> None:
    """Under numbers for names."""
    rng = np.random.default_rng(0)
    plots.draw_comparison(rng.normal(size=(50, 2)), rng.normal(size=(9, 2)), tmp_path / "a.png", columns=["2"])
    plots.draw_comparison(np.zeros(5), np.zeros(3), tmp_path / "b.png")
    plots.draw_comparison(np.array([0, 86_399], dtype="M8[s]"), np.array([3600], dtype="M8[s]"), tmp_path / "c.png")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["flow", "speed"]}, "column 'speed'"),
        ({"columns": []}, "names no column"),
        ({"after": []}, "no rows"),
        ({"after": np.zeros((2, 2, 2))}, "shape"),
    ],
)
def test_samples_that_cannot_be_compared(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    """Say why, and nothing is written."""
    given: dict[str, Any] = {
        "before": sample(9, 0, 0),
        "after": sample(9, 0, 1),
        "file": tmp_path / "a.png",
    } | arguments
    with pytest.raises(InputError, match=message):
        plots.draw_comparison(**given)
    assert not list(tmp_path.iterdir())


numbers = st.lists(st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float) | st.just(math.nan), min_size=1, max_size=50)


@given(before=numbers, after=numbers)
def test_histograms_hold_all_values(before: list[float], after: list[float]) -> None:
    """Those beyond the ends are counted at the ends, and the part that is missing is told."""
    found = compared(Values.of_numbers(before), Values.of_numbers(after))
    if not isinstance(found, Histogram):
        assert all(math.isnan(value) for value in [*before, *after])
        return
    assert np.all(np.diff(found.edges) > 0)
    for values, shares, missing in zip((before, after), (found.before, found.after), found.missing, strict=True):
        there = sum(not math.isnan(value) for value in values)
        assert shares.sum() == pytest.approx(1.0 if there else 0.0)
        assert missing == pytest.approx(1 - there / len(values))


@given(
    before=st.lists(st.sampled_from("abcdefghijk") | st.none(), min_size=1),
    after=st.lists(st.sampled_from("abc"), min_size=1),
)
def test_bars_hold_all_categories(before: list[str | None], after: list[str]) -> None:
    """Where there are too many the rest has a bar."""
    found = compared(Values.of_objects([*before, "a"], "x"), Values.of_objects(after, "x"))
    assert isinstance(found, Bars)
    assert len(found.names) <= 6
    assert found.before.sum() == pytest.approx(1.0)
    assert found.after.sum() == pytest.approx(1.0)
    assert found.before[list(found.names).index("a")] == pytest.approx(([*before, "a"]).count("a") / (len(before) + 1))


def test_values_are_read_back_from_a_detector() -> None:
    """As they were given, up to rounding; a text cannot be."""
    rows = sample(200, 0, 0)
    for i, row in enumerate(rows):
        row["words"] = f"text number {i}"
    detector = Detector(50, window=5, paths=100, seed=0, sampler=Independent()).fit(rows, progress=False)
    points = detector.reference_
    for name in ("flow", "count", "gaps"):
        found = values_in(detector.intake_, points, name)
        assert found is not None
        expected = [math.nan if row[name] is None else row[name] for row in rows]
        np.testing.assert_allclose(found.data, expected, rtol=1e-9, atol=1e-9)
    kinds = values_in(detector.intake_, points, "$kind$")
    assert kinds is not None
    assert kinds.data.tolist() == [row["$kind$"] for row in rows]
    assert values_in(detector.intake_, points, "words") is None
    assert values_in(detector.intake_, points, "unknown") is None


def test_names_are_cut() -> None:
    """To one line of a given length."""
    assert cut("a\nb", 10) == "a b"
    assert cut("x" * 20, 5) == "xxxx…"
