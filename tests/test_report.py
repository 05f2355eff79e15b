"""The report: one page that needs nothing else, tells what a run of the detector gives, and works in a browser."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner, Result

from tocsin import Detector
from tocsin.cli import app, streams
from tocsin.cli.report import _rows_about
from tocsin.report import gathering
from tocsin.report.gathering import Gathered
from tocsin.report.html import data, join, tag
from tocsin.report.page import SCRIPTS
from tocsin.report.quality import UNLIKELY, Quality, Share, _beyond
from tocsin.report.words import HARDLY, verdict
from tocsin.tables import Table, as_table

pytestmark = pytest.mark.usefixtures("quick_fits")

ERT = 2000
EVIL = "<script>alert(1)</script>"
VOID = {"meta", "link", "br"}
SELF_CLOSED = {"line", "rect", "circle", "path", "polygon", "polyline"}
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

in_a_browser = pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")


def rows(count: int, shift: float, seed: int) -> list[dict[str, Any]]:
    """Rows with columns of several kinds, and with names and words that are HTML."""
    rng = np.random.default_rng(seed)
    return [
        {
            "flow": float(rng.normal(shift)),
            f"{EVIL}&\"'": str(rng.choice(["</td>", "<b>", "plain"])),
            "gaps": None if rng.random() < 0.2 else float(rng.normal(10)),
            "still": 1.5,
        }
        for _ in range(count)
    ]


REFERENCE, STREAM = rows(400, 0, 0), rows(500, 0, 1) + rows(100, 2.5, 2) + rows(200, 0, 3)


def json_lines(records: list[dict[str, Any]]) -> str:
    """As JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def table(records: list[dict[str, Any]]) -> Table:
    """As a table."""
    found = as_table(records)
    assert found is not None
    return found


def tocsin(*arguments: object, stdin: str | None = None) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


class Page(HTMLParser):
    """What a page holds; fails where elements are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SELF_CLOSED
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside == "script":
            self.scripts.append(data)
        elif inside != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector, a stream that changes, and the report; not to be changed."""
    folder = tmp_path_factory.mktemp("report")
    Detector(ERT, window=[5, 20], paths=500, seed=1).fit(REFERENCE, progress=False).save(folder / "pump.tocsin")
    (folder / "stream.jsonl").write_text(json_lines(STREAM))
    title = f"{EVIL} & more"
    result = tocsin(
        "report", folder / "pump.tocsin", folder / "stream.jsonl", "-o", folder / "r.html", "--title", title
    )
    assert result.exit_code == 1, result.output
    return folder


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
        "one false alarm in 2,000 observations on average",
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
        content = files("tocsin.report").joinpath(name).read_text(encoding="utf-8")
        assert content in text
        assert "</" not in content


def test_text_becomes_markup_only_on_purpose() -> None:
    """Everything else is escaped, and what no page may hold is replaced."""
    assert tag("p", "<b>", class_="a\"b'") == '<p class="a&quot;b&#x27;">&lt;b&gt;</p>'
    assert join("a\0\ud800\x85b", None, tag("br")) == "a\ufffd\ufffd\ufffdb<br>"
    assert "</script>" not in data("x", {"a": "</script>"}).removesuffix("</script>")


# What it says


def embedded(page: Page) -> dict[str, Any]:
    """The path's data."""
    found: dict[str, Any] = json.loads(page.scripts[0])
    return found


def unpacked(packed: str) -> Any:
    """An array."""
    return np.frombuffer(base64.b64decode(packed), dtype="<f4")


def test_the_page_agrees_with_a_run_of_the_detector(folder: Path, page: Page) -> None:
    """The path to the last bit of float32, and every alarm at its row."""
    detector = Detector.load(folder / "pump.tocsin")
    outcomes = detector.update_many(table(STREAM), reset_on_alarm=True)
    rang = (np.flatnonzero(outcomes.alarm) + 1).tolist()
    path = embedded(page)
    assert (path["rows"], path["each"], path["marks"]) == (len(STREAM), 1, rang)
    np.testing.assert_array_equal(unpacked(path["high"]), outcomes.statistic.astype("<f4"))
    np.testing.assert_array_equal(unpacked(path["thresholdHigh"]), outcomes.threshold.astype("<f4"))
    assert f"It rang {len(rang)} times in {len(STREAM)} rows: hardly by chance." in page.text
    first = re.search(r"Alarm \d+ at row ([\d,]+)", page.text)
    assert first is not None
    assert int(first[1].replace(",", "")) in rang
    for level, label in path["levels"]:
        power = int(label.replace(",", "")) if "," in label or label.isascii() else None
        if power:
            curve = detector.calibration_.curve
            assert curve is not None
            assert curve.rarity(level) == pytest.approx(power, rel=0.05)


def test_an_alarm_is_explained_as_the_detector_does(folder: Path, page: Page) -> None:
    """When it began in rows of the stream, the columns that changed, and their values before and since."""
    detector = Detector.load(folder / "pump.tocsin")
    seen = Gathered(detector)
    seen.add(table(STREAM))
    strong = max(seen.series, key=gathering.Series.strength).alarms[0]
    explanation = strong.explanation
    again = Detector.load(folder / "pump.tocsin")
    again.update_many(table(STREAM[: strong.row - explanation.outcome.time]), reset_on_alarm=True)
    again.update_until_alarm(table(STREAM[strong.row - explanation.outcome.time :]))
    assert again.alarm_ == explanation.outcome
    assert str(again.explain()) == str(explanation)
    assert f"at about row {strong.row_of(explanation.began.time):,}" in page.text
    assert 480 <= strong.row_of(explanation.began.time) <= 520
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
                f"{EVIL}&\"'": ["more unseen categories than expected"],
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


def test_the_range_of_a_reference_is_seldom_left_notably() -> None:
    """By quiet streams, in at most one of 10^4; fails falsely less than once in 10^6 and sees a rate of 0.5 %."""
    rng = np.random.default_rng(0)
    noted, pairs = 0, 3000
    for _ in range(pairs):
        reference, stream = rng.random(100), rng.random(500)
        beyond = int(((stream < reference.min()) | (stream > reference.max())).sum())
        noted += _beyond(100).is_exceeded(beyond, 500)
    assert noted <= stats.binom.isf(1e-6, pairs, UNLIKELY)


# The verdict


def seen_alarms(rang: list[int], tests: int, rarest: float = 0.0, interval: Any = None, mode: str = "steady") -> Any:
    """What a verdict looks at, with alarms at these tests."""
    calibration = SimpleNamespace(mode=mode, nominal=1000.0, ert=1000.0, interval=lambda: interval)
    close = sum(second - first <= 1000 / gathering.SERIES for first, second in pairwise(rang))
    return SimpleNamespace(
        detector=SimpleNamespace(calibration_=calibration), rows=tests, tests=tests, alarms=len(rang), close=close,
        rarest=rarest, rarest_row=rang[-1] if rang else 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "level", "words"),
    [
        (seen_alarms([], 5000), "quiet", "Quiet: no alarm in 5,000 rows."),
        (seen_alarms([500], 5000, 1500), "unsure", "It rang once in 5,000 rows, which chance alone can explain."),
        (seen_alarms([*range(9, 3000, 99)], 5000, 1500), "rang", "It rang 31 times in 5,000 rows: hardly by chance."),
        (seen_alarms([500], 5000, 1e8), "rang", "It rang once in 5,000 rows: hardly by chance."),
        (seen_alarms([1000, 1010, 1020, 1030], 5000, 1500), "rang", "It rang 4 times in 5,000 rows: hardly by chance."),
        (seen_alarms([9], 10, 1500, mode="fixed"), "rang", "It rang once in 10 rows."),
        (seen_alarms([], 10, mode="fixed"), "quiet", "Quiet: no alarm in 10 rows."),
        (seen_alarms([], 0), "quiet", "Quiet: no alarm in 0 rows."),
        (seen_alarms([1], 1, 1500), "rang", "It rang once in 1 row: hardly by chance."),
    ],
)  # fmt: skip
def test_verdicts(seen: Any, level: str, words: str) -> None:
    """By the number of alarms, by how close they are, and by how rare."""
    said = verdict(seen)
    assert (said.level, said.sentence) == (level, words)


def test_an_interval_is_given_the_benefit_of_the_doubt() -> None:
    """Eleven alarms where five are promised are hardly chance, unless the true run time may be half as long."""
    rang = list(range(400, 4900, 440))
    assert verdict(seen_alarms(rang, 5000, 1500)).level == "unsure"
    rang = list(range(300, 4900, 300))
    assert verdict(seen_alarms(rang, 5000, 1500)).level == "rang"
    assert verdict(seen_alarms(rang, 5000, 1500, interval=(450.0, 2200.0))).level == "unsure"


def test_chance_is_seldom_taken_for_a_change() -> None:
    """Of 2000 quiet streams at most 1 % are; fails falsely once in 10^6 if that is so, and sees a rate of 4 %."""
    rng = np.random.default_rng(0)
    wrong, streams = 0, 2000
    for _ in range(streams):
        times = np.cumsum(rng.geometric(1e-3, size=200))
        rang = times[times <= 20_000].tolist()
        rarest = 1000 / rng.random(len(rang)).min() if rang else 0.0
        wrong += verdict(seen_alarms(rang, 20_000, rarest)).level == "rang"
    assert wrong <= stats.binom.isf(1e-6, streams, HARDLY)


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
    outcomes = Detector.load(folder / "pump.tocsin").update_many(table(stream), reset_on_alarm=True)
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


# The command


def test_a_quiet_stream(tmp_path: Path) -> None:
    """Ends with status 0, and leaves the detector as it was."""
    file = tmp_path / "calm.tocsin"
    Detector(1e6, window=5, paths=300, seed=0).fit(REFERENCE, progress=False).save(file)
    before = file.read_bytes()
    result = tocsin("report", file, "-", "-o", tmp_path / "q.html", stdin=json_lines(rows(90, 0, 1)))
    assert result.exit_code == 0, result.output
    assert "90 rows: 0 alarms" in result.stdout
    page = Page((tmp_path / "q.html").read_text())
    assert "Quiet: no alarm in 90 rows." in page.text
    assert "standard input" in page.text
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calm.tocsin", "q.html"]


def test_an_empty_stream(tmp_path: Path) -> None:
    """Is told, not drawn."""
    Detector(100, window=5, paths=100, seed=0).fit(np.random.default_rng(0).normal(size=(60, 2)), progress=False).save(
        tmp_path / "d.tocsin"
    )
    np.save(tmp_path / "none.npy", np.empty((0, 2)))
    result = tocsin("report", tmp_path / "d.tocsin", tmp_path / "none.npy", "-o", tmp_path / "r.html")
    assert result.exit_code == 0, result.output
    text = Page((tmp_path / "r.html").read_text()).text
    assert "Quiet: no alarm in 0 rows." in text
    assert "There are no rows to draw" in text


@pytest.mark.parametrize("start", ["warm", "cold"])
def test_arrays_and_cold_starts(tmp_path: Path, start: Any) -> None:
    """Columns without names have numbers, and rows before the first test have no statistic."""
    rng = np.random.default_rng(0)
    detector = Detector(200, window=10, paths=200, seed=0, start=start).fit(rng.normal(size=(200, 2)), progress=False)
    detector.save(tmp_path / "d.tocsin")
    np.save(tmp_path / "s.npy", np.concatenate([rng.normal(size=(50, 2)), rng.normal(loc=4, size=(30, 2))]))
    result = tocsin("report", tmp_path / "d.tocsin", tmp_path / "s.npy", "-o", tmp_path / "r.html")
    assert result.exit_code == 1, result.output
    path = embedded(Page((tmp_path / "r.html").read_text()))
    assert np.isnan(unpacked(path["high"])[0]) == (start == "cold")
    assert "NaN" not in json.dumps({name: part for name, part in path.items() if isinstance(part, list | int)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "r.txt"), "must end in .html"),
        (("-o", "no/r.html"), "Choose another folder"),
        (("-o", "r.html", "--columns", "flow,speed"), "no column 'speed'"),
        ((), "--output"),
    ],
)
def test_trouble_leaves_no_page(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    """It ends with status 2 and a line that says why."""
    monkeypatch.chdir(tmp_path)
    result = tocsin("report", folder / "pump.tocsin", folder / "stream.jsonl", *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert not list(tmp_path.iterdir())


def test_a_bad_row_leaves_no_page(folder: Path, tmp_path: Path) -> None:
    """And what was there before stays."""
    (tmp_path / "r.html").write_text("before")
    bad = json_lines(STREAM[:9]) + "{}\n"
    assert tocsin("report", folder / "pump.tocsin", "-", "-o", tmp_path / "r.html", stdin=bad).exit_code == 2
    assert (tmp_path / "r.html").read_text() == "before"


def test_ctrl_c_ends_the_watch_with_a_page(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what was seen until then, and it says so."""

    def blocks(*_: object) -> Iterator[Table]:
        yield table(STREAM[:100])
        os.kill(os.getpid(), signal.SIGINT)
        yield table(STREAM[100:])

    monkeypatch.setattr(streams, "blocks", blocks)
    result = tocsin("report", folder / "pump.tocsin", folder / "stream.jsonl", "-o", tmp_path / "r.html")
    assert result.exit_code in (0, 1), result.output
    assert "Stopped after 100 rows" in result.stdout
    assert "Stopped after 100 rows." in Page((tmp_path / "r.html").read_text()).text


def test_the_length_of_a_stream_is_told_beforehand(folder: Path, tmp_path: Path) -> None:
    """For a bar: exactly where files say it, about right for texts, and not at all where it cannot be told."""
    assert _rows_about(str(folder / "stream.jsonl")) == pytest.approx(len(STREAM), rel=0.05)
    np.save(tmp_path / "a.npy", np.zeros((7, 2)))
    assert _rows_about(str(tmp_path / "a.npy")) == 7
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    parquet.write_table(arrow.table({"x": [1.0, 2.0, 3.0]}), tmp_path / "a.parquet")
    assert _rows_about(str(tmp_path / "a.parquet")) == 3
    for name in ("b.npy", "b.parquet", "b.csv", "b.txt"):
        (tmp_path / name).write_text("no rows")
        assert _rows_about(str(tmp_path / name)) is None
    assert _rows_about("-") is None


def test_help_teaches() -> None:
    """What the page holds, the exit status, and examples."""
    words = " ".join(tocsin("report", "--help").stdout.split())
    for taught in ("verdict", "Exit status: 0 quiet, 1 it rang, 2 trouble", "tocsin report machine.tocsin today.csv"):
        assert taught in words


# In a browser


def browse(address: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Open a page in Chromium, give its scripts time to run, and leave."""
    assert BROWSER is not None
    flags = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", f"--user-data-dir={folder / 'profile'}",
        "--enable-logging=stderr", "--v=0", "--virtual-time-budget=3000",
    ]  # fmt: skip
    return subprocess.run([BROWSER, *flags, *options, address], capture_output=True, text=True, timeout=120, check=True)


def complaints(run: subprocess.CompletedProcess[str]) -> list[str]:
    """What a page's console says."""
    return [line for line in run.stderr.splitlines() if "CONSOLE" in line]


@in_a_browser
def test_it_renders_and_follows_links_into_the_path(folder: Path, tmp_path: Path) -> None:
    """Without a complaint; the path is drawn by the script, at the rows that the address names."""
    run = browse(f"file://{folder / 'r.html'}#rows=101-300", tmp_path, "--dump-dom", "--window-size=1280,800")
    assert complaints(run) == []
    assert re.search(r'<canvas class="main"[^>]*aria-label="Rows 101 to 300"', run.stdout)
    assert "<output>Rows 101 to 300</output>" in run.stdout


ACTIONS = """
(async () => {
  const canvas = document.querySelector("canvas.main"), box = canvas.getBoundingClientRect();
  const at = part => ({clientX: box.left + 46 + part * (box.width - 110), clientY: box.top + 50, bubbles: true});
  const step = async () => {
    await new Promise(done => setTimeout(done, 100));
    return canvas.getAttribute("aria-label");
  };
  const said = {start: await step()};
  canvas.dispatchEvent(new WheelEvent("wheel", {...at(0.5), deltaY: -200, cancelable: true}));
  said.wheel = await step();
  canvas.setPointerCapture = () => {};
  const point = (name, id, part) => canvas.dispatchEvent(new PointerEvent(name, {...at(part), pointerId: id}));
  point("pointerdown", 1, 0.6); point("pointermove", 1, 0.4); point("pointerup", 1, 0.4);
  said.drag = await step();
  point("pointerdown", 1, 0.4); point("pointerdown", 2, 0.6); point("pointermove", 1, 0.2);
  point("pointermove", 2, 0.8); point("pointerup", 1, 0.2); point("pointerup", 2, 0.8);
  said.pinch = await step();
  point("pointermove", 1, 0.5); await step();
  said.hover = document.querySelector("output").textContent;
  canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "+"}));
  said.key = await step();
  canvas.dispatchEvent(new MouseEvent("dblclick", at(0.5)));
  said.reset = await step();
  document.querySelector("a.jump").click();
  said.jump = await step();
  said.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  document.body.setAttribute("data-said", JSON.stringify(said));
})();
"""


@in_a_browser
def test_the_path_zooms(text: str, tmp_path: Path) -> None:
    """By wheel, drag, two fingers, keys and links, on a phone; nothing is wider than the screen."""
    allowed = re.sub(r"script-src &#x27;[^&]*&#x27;", "script-src &#x27;unsafe-inline&#x27;", text)
    # Without a screen there are no frames to wait for.
    frames = "<script>requestAnimationFrame = action => setTimeout(action, 1);</script></head>"
    acted = allowed.replace("</head>", frames).replace("</body>", f"<script>{ACTIONS}</script></body>")
    (tmp_path / "r.html").write_text(acted, encoding="utf-8")
    run = browse(f"file://{tmp_path / 'r.html'}", tmp_path, "--dump-dom", "--window-size=390,844")
    assert complaints(run) == []
    said = json.loads(Page(run.stdout).all("body")[0]["data-said"] or "")
    views = {name: tuple(map(int, re.findall(r"\d+", said[name]))) for name in said if name not in ("hover", "wide")}
    assert views["start"] == views["reset"] == (1, 800)
    wheel, drag, pinch, key = (views[name] for name in ("wheel", "drag", "pinch", "key"))
    assert 350 < wheel[1] - wheel[0] < 450
    assert drag[0] - wheel[0] == pytest.approx(0.2 * (wheel[1] - wheel[0]), abs=3)
    assert (pinch[1] - pinch[0]) == pytest.approx((drag[1] - drag[0]) / 3, abs=3)
    assert (key[1] - key[0]) == pytest.approx((pinch[1] - pinch[0]) / 2, abs=3)
    assert re.fullmatch(r"Row \d+: statistic [\d.e-]+, threshold [\d.]+", said["hover"])
    assert views["jump"] != views["reset"]
    assert said["wide"] <= 0


@in_a_browser
def test_it_prints(folder: Path, tmp_path: Path) -> None:
    """To PDF."""
    browse(f"file://{folder / 'r.html'}", tmp_path, f"--print-to-pdf={tmp_path / 'r.pdf'}")
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")
