"""What stands beside observations: their numbers, times, and columns that are kept to find them again by.

Rows are counted one way by all that tells of them: observations from 1, as they are taken in, and lines of files as an
editor counts them.
"""

from __future__ import annotations

import base64
import datetime
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixed_frames import arrow, pandas, polars
from reported import EVIL, Page, embedded, tocsin
from tocsin import Detector, Independent, InputError
from tocsin._data.tables import Table, Values
from tocsin._explain.beside import CLOCK, Beside, clock_among

pytestmark = pytest.mark.usefixtures("quick_fits")

QUIET, CHANGED, HALF = 120, 60, 150
BEGIN = datetime.datetime(2019, 3, 7, 14, 20)


def rows(count: int, shift: float, seed: int, first: int = 0) -> list[dict[str, Any]]:
    """A row every ten minutes, with a number of its own and a remark."""
    rng = np.random.default_rng(seed)
    return [
        {
            "time": (BEGIN + datetime.timedelta(minutes=10 * i)).isoformat(" "),
            "id": f"N{i:04d}",
            "flow": float(rng.normal(shift)),
            "speed": float(rng.normal()),
            "remark": f"{EVIL} of {i}",
        }
        for i in range(first, first + count)
    ]


STREAM = [*rows(QUIET, 0, 1), *rows(CHANGED, 3.0, 2, QUIET)]


def without(records: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """The other columns."""
    return [{name: value for name, value in row.items() if name not in names} for row in records]


def csv(records: list[dict[str, Any]]) -> list[str]:
    """As lines: one for the header, and one for each row."""
    return [",".join(records[0]), *(",".join(map(str, row.values())) for row in records)]


def when(row: int) -> str:
    """The time of an observation, as it is told."""
    return str(STREAM[row - 1]["time"])[:16]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector that was fitted with a column of times, which it does not watch; not to be changed."""
    file = tmp_path_factory.mktemp("beside") / "d.tocsin"
    reference = without(rows(300, 0, 0), "id", "remark")
    Detector(300, window=[5, 20], paths=500, seed=1).fit(reference, progress=False).save(file)
    return file


@pytest.fixture
def file(fitted: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    path = tmp_path / "d.tocsin"
    path.write_bytes(fitted.read_bytes())
    return path


@pytest.fixture(scope="module")
def rang(fitted: Path) -> list[int]:
    """The observations that ring, from 1, as the library has them."""
    outcomes = Detector.load(fitted).update_many(without(STREAM, "id", "remark"))
    found = [int(place) + 1 for place in np.flatnonzero(outcomes.alarm)]
    assert found[0] > QUIET
    assert len(found) > 2
    return found


def alarms(text: str) -> list[dict[str, Any]]:
    """Of lines of JSON."""
    return [event for event in map(json.loads, text.splitlines()) if event["event"] == "alarm"]


def must_agree(told: dict[str, Any], row: int) -> None:
    """An explanation's numbers, times and kept columns are those of the same observations."""
    assert (told["time"], told["when"], told["kept"]) == (row, when(row), {"id": STREAM[row - 1]["id"]})
    began = told["began"]
    assert began["when"] == [when(began[place]) for place in ("time", "low", "high")]
    for example in told["recent"]:
        own = STREAM[example["time"] - 1]
        assert (example["when"], example["kept"]) == (when(example["time"]), {"id": own["id"]})
        assert float(example["values"]["flow"]) == pytest.approx(own["flow"], abs=1e-3)


# Numbers, times and columns to find records again by


def test_rows_are_counted_one_way(file: Path, tmp_path: Path, rang: list[int]) -> None:
    """By watches, plain and as JSON, interrupted and resumed, with blank lines and bad rows between; and by reports."""
    clean = csv(without(STREAM, "remark"))
    spoilt = list(clean)
    spoilt[10:10] = ["", "bad"]
    spoilt[HALF:HALF] = ["2019-03-07 14:20,N,1,2,3", ""]
    stream, quarantine = tmp_path / "s.csv", tmp_path / "bad.jsonl"
    options = ("--keep", "id", "--bad-rows", quarantine, "--save-state")
    told = []
    for lines in (spoilt[: HALF + 10], spoilt):
        stream.write_text("\n".join(lines) + "\n")
        told += alarms(tocsin("watch", file, stream, "--json", *options).stdout)
    assert [alarm["row"] for alarm in told] == rang
    for alarm in told:
        row = alarm["row"]
        assert spoilt[alarm["line"] - 1] == clean[row]
        assert (alarm["when"], alarm["kept"]) == (when(row), {"id": STREAM[row - 1]["id"]})
        assert f"at observation {row} of {stream} ({when(row)}, id {STREAM[row - 1]['id']}): " in alarm["text"]
    for alarm in told[:2]:
        must_agree(alarm["explanation"], alarm["row"])
    assert [spoilt[json.loads(line)["line"] - 1] for line in quarantine.read_text().splitlines()] == [
        "bad",
        "2019-03-07 14:20,N,1,2,3",
    ]


def test_a_watch_tells_people_the_same(file: Path, tmp_path: Path, rang: list[int]) -> None:
    """In lines that are read."""
    stream = tmp_path / "s.csv"
    stream.write_text("\n".join(csv(without(STREAM, "remark"))) + "\n")
    shown = tocsin("watch", file, stream, "--keep", "id").stdout
    for row in rang:
        assert f"ALARM at observation {row}, {when(row)}, id {STREAM[row - 1]['id']}: run length" in shown
    began = re.search(r"began at about observation (\d+), (\S+ \S+) \(90% interval (\d+) to (\d+), ", shown)
    assert began is not None
    assert began[2] == when(int(began[1]))


def test_a_report_tells_the_same(file: Path, tmp_path: Path, rang: list[int]) -> None:
    """On its page, its axis, in its JSON, and from Python."""
    stream, page = tmp_path / "s.csv", tmp_path / "r.html"
    stream.write_text("\n".join(csv(without(STREAM, "remark"))) + "\n")
    found = json.loads(tocsin("report", file, stream, "-o", page, "--keep", "id", "--json").stdout)
    shown, path = Page(page.read_text()), embedded(Page(page.read_text()))
    assert path["marks"] == rang
    assert found["alarms"] == len(rang)
    for series in found["series"]:
        assert series["when"] == [when(series["first"]), when(series["last"])]
        for alarm in series["explained"]:
            must_agree(alarm, alarm["row"])
            assert f"at observation {alarm['row']}, {when(alarm['row'])}, id {alarm['kept']['id']}" in shown.text
            for example in alarm["recent"]:
                assert f"{example['time']} {example['when']} {example['kept']['id']} " in shown.text
    times = np.frombuffer(base64.b64decode(path["times"]), dtype="<f8")
    assert times.tolist() == [(BEGIN - datetime.datetime(1970, 1, 1)).total_seconds() + 600 * i for i in range(180)]
    Detector.load(file).report(without(STREAM, "remark"), tmp_path / "p.html", keep=["id"])
    again = Page((tmp_path / "p.html").read_text())
    assert embedded(again) == path
    assert again.text[again.text.index("It rang") : -200] == shown.text[shown.text.index("It rang") : -200]


def test_one_verdict(file: Path, tmp_path: Path) -> None:
    """The page begins with what the terminal and JSON say."""
    stream, page = tmp_path / "s.csv", tmp_path / "r.html"
    stream.write_text("\n".join(csv(without(STREAM, "id", "remark"))) + "\n")
    printed = tocsin("report", file, stream, "-o", page).stdout.splitlines()
    said = json.loads(tocsin("report", file, stream, "-o", page, "--force", "--json").stdout)["verdict"]
    assert printed == [said["sentence"], said["next"], f"Written to {page}."]
    assert said["level"] == "rang"
    assert f"{said['sentence']} {said['next']} {said['grounds']}" in Page(page.read_text()).text
    assert re.search(r"the alarm at observation \d+, 2019-03-08 \S+: the change began at about", said["next"])


def test_a_later_run_says_that_it_is_one(fitted: Path, rang: list[int]) -> None:
    """Detectors count the observations of their run, and say which it is."""
    detector = Detector.load(fitted)
    stream = without(STREAM, "id", "remark")
    detector.update_until_alarm(stream)
    assert str(detector.explain()).startswith(f"Alarm at observation {rang[0]} (")
    detector.update_until_alarm(stream[rang[0] :])
    again = detector.explain()
    assert str(again).startswith(f"Alarm at observation {rang[1] - rang[0]} of run 2 (")
    assert str(again.moved_on(rang[0])).startswith(f"Alarm at observation {rang[1]} (")


# Times


@pytest.mark.parametrize(
    ("change", "known"),
    [
        (lambda i, row: row, True),
        (lambda i, row: {**row, "time": ""} if i > QUIET - 30 else row, False),
        (lambda i, row: {**row, "time": STREAM[-i - 1]["time"]}, False),
    ],
    ids=["in order", "missing", "backwards"],
)
def test_times_that_are_none(file: Path, tmp_path: Path, rang: list[int], change: Any, known: bool) -> None:
    """Where they are missing, or go back, rows are told alone."""
    stream, page = tmp_path / "s.csv", tmp_path / "r.html"
    stream.write_text("\n".join(csv([change(i, row) for i, row in enumerate(without(STREAM, "id", "remark"))])) + "\n")
    told = alarms(tocsin("watch", file, stream, "--json").stdout)
    assert [alarm["row"] for alarm in told] == rang
    assert all((alarm["when"] is not None) == known for alarm in told)
    assert all((alarm["explanation"]["began"]["when"] is not None) == known for alarm in told)
    tocsin("report", file, stream, "-o", page)
    shown = Page(page.read_text())
    assert ("times" in embedded(shown)) == known
    assert ("2019-03-08" in shown.text) == known


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize(
    "form",
    [
        lambda frame: frame,
        lambda frame: frame.set_index("time"),
        lambda frame: polars.from_pandas(frame),
        lambda frame: arrow.Table.from_pandas(frame),
        lambda frame: frame.to_dict("records"),
    ],
    ids=["pandas", "index", "polars", "arrow", "dicts"],
)
def test_times_of_frames(fitted: Path, tmp_path: Path, rang: list[int], form: Any, zone: str | None) -> None:
    """In columns and in an index; those with a zone are told in UTC, and say so."""
    frame = pandas.DataFrame(without(STREAM, "remark"))
    frame["time"] = pandas.to_datetime(frame["time"])
    if zone is not None:
        frame["time"] = frame["time"].dt.tz_localize("UTC").dt.tz_convert(zone)
    path = Detector.load(fitted).report(form(frame), tmp_path / "r.html", keep=["id"])
    first = f"Alarm 1 at observation {rang[0]}, {when(rang[0])}{'Z' if zone else ''}, id {STREAM[rang[0] - 1]['id']} "
    assert first in Page(path.read_text()).text


def test_a_clock_is_found() -> None:
    """The reference's own, or the first column whose first value is plainly a time."""
    row = {"n": "20190307", "made": "2019-03-07", "seen": "2019-03-07T14:20Z", "word": "may"}
    assert clock_among(row) == "made"
    assert clock_among(row, ["seen"]) == "seen"
    assert clock_among(row, ["word"]) == "made"
    assert clock_among({"a": "1", "b": None, "c": 2019.0, "d": ""}) is None


def test_times_are_told_as_finely_as_they_are() -> None:
    """And only the latest observations are remembered."""
    beside = Beside(["id"], most=3)
    for day in range(1, 9):
        beside.add(Table({CLOCK: Values.of_words([f"2019-03-0{day}"]), "id": Values.of_words([f"a  b\n{day}"])}), 1)
    assert [beside.when(row) for row in (5, 6, 8, 9)] == [None, "2019-03-06", "2019-03-08", None]
    assert [beside.kept(row) for row in (5, 6)] == [{}, {"id": "a b 6"}]
    beside.add(Table({CLOCK: Values.of_words(["2019-03-09 00:00:01.5+01:00"]), "id": Values.of_words([None])}), 1)
    assert [beside.when(row) for row in (8, 9)] == ["2019-03-08 00:00:00.000Z", "2019-03-08 23:00:01.500Z"]
    assert beside.kept(9) == {"id": "missing"}


# Columns to keep


def test_kept_columns(fitted: Path, tmp_path: Path, rang: list[int]) -> None:
    """They need not be watched, and may be; what they hold is text on the page."""
    page = tmp_path / "r.html"
    Detector.load(fitted).report(STREAM, page, keep=["remark", "flow", "id"])
    text = page.read_text()
    assert EVIL not in text
    own = STREAM[rang[0] - 1]
    assert f"remark {own['remark']}, flow {own['flow']!r}"[:60] in Page(text).text


def test_columns_to_keep_that_are_none(file: Path, tmp_path: Path) -> None:
    """Are named, and nothing is done."""
    stream = tmp_path / "s.csv"
    stream.write_text("\n".join(csv(without(STREAM, "remark"))) + "\n")
    for command in (("watch", file, stream), ("report", file, stream, "-o", tmp_path / "r.html")):
        result = tocsin(*command, "--keep", "id,serial")
        assert result.exit_code == 2
        assert "--keep id,serial: " in result.stderr
        assert "has no column 'serial'; its columns are time, id, flow, speed. Name some of these" in result.stderr
    assert "name those that only tell records apart with --keep" in tocsin("watch", file, stream).stderr
    detector = Detector.load(file)
    for keep, stream_, message in (
        (["serial"], STREAM, "no column 'serial'; its columns are time, id, flow, speed and remark"),
        ("id", STREAM, "must be names of columns, in a list"),
        ([1], STREAM, "must be names of columns, in a list"),
    ):
        with pytest.raises(InputError, match=message):
            detector.report(stream_, tmp_path / "r.html", keep=keep)  # type: ignore[arg-type]
    plain = Detector(300, window=5, paths=200, seed=0).fit(np.random.default_rng(0).normal(size=(200, 2)))
    with pytest.raises(InputError, match="the stream is a ndarray, whose columns have no names"):
        plain.report(np.zeros((9, 2)), tmp_path / "r.html", keep=["id"])
    assert not (tmp_path / "r.html").exists()


def test_parquet_has_them_too(file: Path, tmp_path: Path, rang: list[int]) -> None:
    """There the place in the file is the row."""
    frame = pandas.DataFrame(without(STREAM, "remark"))
    frame["time"] = pandas.to_datetime(frame["time"]).dt.tz_localize("UTC")
    frame.to_parquet(tmp_path / "s.parquet", index=False)
    told = alarms(tocsin("watch", file, tmp_path / "s.parquet", "--json", "--keep", "id").stdout)
    assert [(alarm["row"], alarm["line"], alarm["when"], alarm["kept"]["id"]) for alarm in told] == [
        (row, row, f"{when(row)}Z", STREAM[row - 1]["id"]) for row in rang
    ]


def test_texts_are_shown_in_examples(tmp_path: Path) -> None:
    """Of which a detector keeps the pieces alone."""
    rng = np.random.default_rng(0)
    words = ["pump runs well", "valve is open", "all is quiet", "tank half full"]
    reference = [{"note": f"{rng.choice(words)} {i}", "x": float(rng.normal())} for i in range(300)]
    changed = [{"note": f"{EVIL} leak & smoke {i}", "x": float(rng.normal())} for i in range(40)]
    detector = Detector(1000, window=10, sampler=Independent(), paths=300, seed=0).fit(reference, progress=False)
    page = Page(detector.report([*reference[:40], *changed], tmp_path / "r.html").read_text())
    assert re.search(rf"Typical of what is new .*{re.escape(EVIL)} leak & smoke \d+", page.text)
