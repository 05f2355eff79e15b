"""The report: one page that needs nothing else, and tells what a run of the detector gives."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reported import EVIL, REFERENCE, STREAM, Page, embedded, reported, rows, table, unpacked
from tocsin import Detector
from tocsin._data.tables import Values
from tocsin._report import gathering
from tocsin._report.gathering import Gathered
from tocsin._report.html import data, join, tag
from tocsin._report.page import SCRIPTS
from tocsin._report.quality import UNLIKELY, Known, Quality, Seen, Share, _beyond, standing

pytestmark = pytest.mark.usefixtures("quick_fits")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector, a stream that changes, and the report; not to be changed."""
    return reported(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    """The report's source."""
    return (folder / "r.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    """The report, parsed."""
    return Page(text)


# The page


def test_all_parts_are_there(page: Page) -> None:
    """Verdict, promise, path, alarms, data quality, calibration and footer, each named once."""
    ids = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert set(ids) >= {"verdict", "promise", "path", "alarms", "quality", "calibration", "path-figure", "path-data"}
    assert max(ids.values()) == 1
    for words in (
        "one false alarm in 2,000 observations on average over reference sets",
        "90% interval",
        "What changed",
        "Typical of what is new",
        "simulated streams",
        "Made by Tocsin",
        "seed 1",
        "watched by pump.tocsin",
    ):
        assert words in page.text
    assert page.all("html") == [{"lang": "en"}]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all("meta")


def test_it_needs_nothing_else(text: str, page: Page) -> None:
    """No address is loaded; links point into the page; and browsers are told to load and run nothing but its own."""
    assert not re.search(r"https?:|//\w+\.\w+|@import|url\(", text)
    for name, attributes in page.elements:
        assert not attributes.keys() & {"src", "srcset", "action", "style", "onclick", "onload"}, name
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_data_stay_data(text: str, page: Page) -> None:
    """Names and words that look like HTML are shown as they are."""
    assert [attributes.get("type") for attributes in page.all("script")] == ["application/json", None]
    assert EVIL not in text
    assert f"{EVIL} & more" in page.text
    assert f"{EVIL}&\"'" in page.text
    assert "</td>" in page.text
    assert "<b>" in page.text


def test_scripts_and_styles_are_shipped(text: str) -> None:
    """As files of the package, which the page holds in full."""
    for name in ("page.css", *SCRIPTS):
        content = files("tocsin._report").joinpath(name).read_text(encoding="utf-8")
        assert content in text
        assert "</" not in content


def test_text_becomes_markup_only_on_purpose() -> None:
    """Everything else is escaped, and what no page may hold is replaced."""
    assert tag("p", "<b>", class_="a\"b'") == '<p class="a&quot;b&#x27;">&lt;b&gt;</p>'
    assert join("a\0\ud800\x85b", None, tag("br")) == "a\ufffd\ufffd\ufffdb<br>"
    assert "</script>" not in data("x", {"a": "</script>"}).removesuffix("</script>")


# What it says


def test_the_page_agrees_with_a_run_of_the_detector(folder: Path, page: Page) -> None:
    """The path to the last bit of float32, and every alarm at its row."""
    detector = Detector.load(folder / "pump.tocsin")
    outcomes = detector.update_many(table(STREAM))
    rang = (np.flatnonzero(outcomes.alarm) + 1).tolist()
    path = embedded(page)
    assert (path["rows"], path["each"], path["marks"]) == (len(STREAM), 1, rang)
    np.testing.assert_array_equal(unpacked(path["high"]), outcomes.statistic.astype("<f4"))
    np.testing.assert_array_equal(unpacked(path["thresholdHigh"]), outcomes.threshold.astype("<f4"))
    assert f"It rang {len(rang)} times in {len(STREAM)} observations: hardly by chance." in page.text
    first = re.search(r"Alarm \d+ at observation ([\d,]+)", page.text)
    assert first is not None
    assert int(first[1].replace(",", "")) in rang
    for level, label in path["levels"]:
        power = int(label.replace(",", "")) if "," in label or label.isascii() else None
        if power:
            curve = detector.calibration_.curve
            assert curve is not None
            assert curve.rarity(level) == pytest.approx(power, rel=0.05)


def test_an_alarm_is_explained_as_the_detector_does(folder: Path, page: Page) -> None:
    """When it began in observations of the stream, the columns that changed, and their values before and since."""
    detector = Detector.load(folder / "pump.tocsin")
    seen = Gathered(detector)
    seen.add(table(STREAM))
    strong = max(seen.series, key=gathering.Series.strength).alarms[0]
    explanation = strong.explanation
    before = max((row for row in seen.marks if row < strong.row), default=0)
    again = Detector.load(folder / "pump.tocsin")
    again.update_many(table(STREAM[:before]))
    again.update_until_alarm(table(STREAM[before:]))
    told = again.explain().moved_on(before)
    assert (told.outcome, told.outcome.time) == (explanation.outcome, strong.row)
    assert str(told) == str(explanation)
    assert f"at about observation {explanation.began.time:,}" in page.text
    assert 480 <= explanation.began.time <= 520
    assert [column.name for column in explanation.changed][:1] == ["flow"]
    for column in explanation.changed:
        assert column.before in page.text
        assert column.after in page.text
    assert "flow" in strong.samples


QUIET = rows(400, 0, 10)
SPOILT = [
    {
        "flow": row["flow"] + 1000.0 * (i % 4 == 0),
        f"{EVIL}&\"'": f"new {i}" if i % 10 == 0 else row[f"{EVIL}&\"'"],
        "gaps": None if i % 2 else row["gaps"],
        "still": 2.0,
    }
    for i, row in enumerate(QUIET)
]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (QUIET, {"still": ["has one value only in the reference, and in the stream"]}),
        (
            SPOILT,
            {
                "flow": ["more values beyond the reference's range than expected"],
                f"{EVIL}&\"'": [
                    "categories that the reference never had: new 0, new 10, new 20, first at observation 1"
                ],
                "gaps": ["missing more often than in the reference"],
                "still": [
                    "more values beyond the reference's range than expected",
                    "has one value only in the reference, and in the stream",
                ],
            },
        ),
    ],
    ids=["quiet", "spoilt"],
)
def test_data_quality(folder: Path, stream: list[dict[str, Any]], expected: dict[str, list[str]]) -> None:
    """Missing, unseen, constant and far-off values are counted, and only what is unusual is noted."""
    quality = Quality(Detector.load(folder / "pump.tocsin"))
    for start in range(0, len(stream), 70):
        quality.add(table(stream[start : start + 70]))
    assert {name: column.notes() for name, column in quality.columns.items() if column.notes()} == expected
    flow, gaps = quality.columns["flow"], quality.columns["gaps"]
    assert gaps.missing == sum(row["gaps"] is None for row in stream)
    assert gaps.known.missing.part == sum(row["gaps"] is None for row in REFERENCE) / len(REFERENCE)
    own, here = [row["flow"] for row in REFERENCE], [row["flow"] for row in stream]
    assert flow.known.range == pytest.approx((min(own), max(own)))
    assert flow.range == (min(here), max(here))
    assert flow.new == sum(not min(own) - 1e-6 < value < max(own) + 1e-6 for value in here)


def test_what_is_notable() -> None:
    """Clearly more or fewer than in the reference, by a factor that matters and beyond what its size leaves open."""
    assert Share(20, 1000).chance(60, 1000) == pytest.approx(stats.betabinom.sf(59, 1000, 21, 980), rel=1e-6)
    assert Share(20, 1000).is_exceeded(60, 1000)
    assert not Share(20, 1000).is_exceeded(30, 1000)
    assert not Share(2, 100).is_exceeded(6, 100)
    assert not Share(500_000, 1_000_000).is_exceeded(520_000, 1_000_000)
    assert Share(0, 1000).is_exceeded(40, 1000)
    assert not Share(0, 1000).is_exceeded(2, 1000)
    assert Share(200, 1000).is_missed(50, 1000)
    assert not Share(200, 1000).is_missed(170, 1000)
    assert not Share(0, 1000).is_missed(0, 1000)


def test_new_categories_are_told_unless_they_are_expected() -> None:
    """One suffices where the reference has none that are rare; else it takes more than rare ones let expect."""
    stream = Values.of_objects(["a"] * 99 + ["new"], "state")
    never, some = (Seen(Known("state", "category", Share(0, 600), Share(n, 600), None, frozenset("a"))) for n in (0, 3))
    for seen in (never, some):
        seen.add(stream)
    assert never.notes()[:1] == ["categories that the reference never had: new, first at observation 100"]
    assert some.findings() == []
    some.add(Values.of_objects(["newer"] * 30, "state"))
    assert some.notes() == ["more unseen categories than expected"]


@pytest.mark.parametrize("size", [7, 1000])
def test_a_sensor_that_stands_still_is_told(size: int) -> None:
    """With its rows, across blocks and gaps; not where the reference stood still as long."""
    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.normal(size=300), np.full(100, 7.25), rng.normal(size=200)])
    numbers[310] = np.nan
    told = "stood still from observation 301 to 400; in the reference for at most 2 rows"
    for still, expected in ((2, [told]), (20, [])):
        seen = Seen(Known("x", "number", Share(9, 600), None, (-9.0, 9.0), still=still, stretches=600 // still))
        for start in range(0, len(numbers), size):
            seen.add(Values.of_numbers(numbers[start : start + size]))
        assert (seen.longest.first, seen.longest.last, seen.longest.size) == (301, 400, 99)
        assert seen.notes() == expected


def test_no_column_is_said_to_stand_still_because_it_is_coarse() -> None:
    """Of columns with few values, at most one in 10^3, some times what is aimed at; fails falsely once in 10^6."""
    rng = np.random.default_rng(0)
    noted, pairs = 0, 2000
    for i in range(pairs):
        law = (rng.random(1500) < (0.5, 0.9, 0.98)[i % 3]).astype(float)
        seen = Seen(standing(Known("x", "number", Share(0, 500), None, (0.0, 1.0)), law[:500]))
        seen.add(Values.of_numbers(law[500:]))
        noted += any("stood still" in note for note in seen.notes())
    assert noted <= stats.binom.isf(1e-6, pairs, 1e-3)


def test_the_range_of_a_reference_is_seldom_left_notably() -> None:
    """By quiet streams, in at most one of 10^4; fails falsely less than once in 10^6 and sees a rate of 0.5 %."""
    rng = np.random.default_rng(0)
    noted, pairs = 0, 3000
    for _ in range(pairs):
        reference, stream = rng.random(100), rng.random(500)
        beyond = int(((stream < reference.min()) | (stream > reference.max())).sum())
        noted += _beyond(100).is_exceeded(beyond, 500)
    assert noted <= stats.binom.isf(1e-6, pairs, UNLIKELY)


# Long streams


def test_long_streams_are_kept_in_bins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every extreme; and of many alarms those are explained that say most."""
    for name, most in (("MOST_BINS", 64), ("MOST_MARKS", 5), ("MOST_SERIES", 3), ("MOST_EXPLAINED", 1)):
        monkeypatch.setattr(gathering, name, most)
    stream = (
        rows(300, 0, 4) + rows(12, 2.0, 5) + rows(300, 0, 6) + rows(100, 3.0, 7) + rows(300, 0, 8) + rows(9, 2.5, 9)
    )
    detector = Detector.load(folder / "pump.tocsin")
    seen = Gathered(detector)
    for start in range(0, len(stream), 77):
        seen.add(table(stream[start : start + 77]))
    outcomes = Detector.load(folder / "pump.tocsin").update_many(table(stream))
    assert seen.alarms == outcomes.alarm.sum() > 5
    assert seen.marks == (np.flatnonzero(outcomes.alarm)[:5] + 1).tolist()
    assert seen.statistic.each == 16
    assert len(seen.statistic.high) <= 64
    assert seen.statistic.high.max() == outcomes.statistic.max()
    assert seen.statistic.low.min() == outcomes.statistic.min()
    assert len(seen.series) <= 3
    (explained,) = (series for series in seen.series if series.alarms)
    assert explained is max(seen.series, key=gathering.Series.strength)
    assert 612 < explained.first < 720
    assert len(explained.alarms) == gathering.EXPLAINED_IN_SERIES
