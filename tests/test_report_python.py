"""Reports from Python: the same page as the command's, and a detector that stays where it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixed_frames import arrow, detector, equal, pandas, polars
from reported import EVIL, STREAM, Page, embedded, reported
from tocsin import MMD, Detector, InputError, NotFittedError

pytestmark = pytest.mark.usefixtures("quick_fits")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector, a stream that changes, and the report; not to be changed."""
    return reported(tmp_path_factory.mktemp("report"))


def without_date(text: str) -> str:
    """But for who watched what, when."""
    text = re.sub(r"<p class=\"quiet-text\">.*?</p>", "", text, count=1, flags=re.DOTALL)
    return re.sub(r"on \d{4}-\d\d-\d\d \d\d:\d\d \S+, seed", "seed", text)


@pytest.mark.parametrize(
    "form",
    [lambda rows: rows, pandas.DataFrame, polars.DataFrame, arrow.Table.from_pylist],
    ids=["dicts", "pandas", "polars", "arrow"],
)
def test_the_page_is_that_of_the_command(folder: Path, tmp_path: Path, form: Any) -> None:
    """To the letter, whatever holds the stream; and it has the title that is asked for."""
    fitted = Detector.load(folder / "pump.tocsin")
    path = fitted.report(form(STREAM), str(tmp_path / "own.html"), title=f"{EVIL} & more")
    assert path == tmp_path / "own.html"
    own, other = path.read_text(encoding="utf-8"), (folder / "r.html").read_text(encoding="utf-8")
    assert without_date(own) == without_date(other)
    assert "Watched by a detector with ert=2000." in Page(own).text


def test_the_detector_stays_where_it_is(folder: Path, tmp_path: Path) -> None:
    """In the midst of a run, or after an alarm."""
    fitted, twin = (Detector.load(folder / "pump.tocsin") for _ in range(2))
    ahead = Detector.load(folder / "pump.tocsin")
    ahead.update_many(STREAM[:490])
    rang = 490 + len(ahead.update_until_alarm(STREAM[490:]))
    for part in (STREAM[:490], STREAM[490:rang]):
        equal(fitted.update_many(part), twin.update_many(part))
        fitted.report(STREAM, tmp_path / "own.html")
        assert (fitted.time, fitted.run, fitted.alarm) == (twin.time, twin.run, twin.alarm)
    assert fitted.alarm is not None
    assert Page((tmp_path / "own.html").read_text(encoding="utf-8")).text.startswith("own Tocsin report own")
    equal(fitted.update_many(STREAM[rang:]), twin.update_many(STREAM[rang:]))


def kernel(X: Any, Y: Any) -> Any:
    """Of objects: how many words they share."""
    return np.array([[len(set(x["words"]) & set(y["words"])) for y in Y] for x in X], dtype=float)


def test_any_stream_that_a_detector_takes(tmp_path: Path) -> None:
    """Arrays, objects for a kernel, what a function makes rows of, and nothing at all."""
    rng = np.random.default_rng(0)
    array = rng.normal(size=(200, 3))
    objects = [{"words": rng.choice(list("abcdefgh"), 3).tolist()} for _ in range(200)]
    for fitted, stream in (
        (detector(array), array[:50] + 3),
        (detector(objects, MMD(kernel=kernel)), [{"words": ["x"]}] * 50),
        (detector(array, preprocess=np.abs), array[:50] + 3),
    ):
        seen = embedded(Page(fitted.report(stream, tmp_path / "a.html").read_text(encoding="utf-8")))
        assert seen["rows"] == 50
        assert seen["marks"]
        assert fitted.time == 0
        quiet = fitted.report(stream[:0], tmp_path / "b.html").read_text(encoding="utf-8")
        assert "There was nothing to watch" in Page(quiet).text


def test_long_streams_are_watched_in_blocks(tmp_path: Path) -> None:
    """More rows than one block has, none lost; blocks change nothing."""
    rng = np.random.default_rng(1)
    fitted = detector(rng.normal(size=(200, 1)))
    stream = rng.normal(size=(9000, 1))
    seen = embedded(Page(fitted.report(stream, tmp_path / "a.html").read_text(encoding="utf-8")))
    assert seen["rows"] == 9000
    rang = np.flatnonzero(fitted.update_many(stream).alarm) + 1
    assert len(rang) > 10
    assert seen["marks"] == rang.tolist()


def test_trouble_leaves_no_page(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was there before stays, also when writing fails."""
    fitted = Detector.load(folder / "pump.tocsin")
    page = tmp_path / "r.html"
    for path, message in (
        (tmp_path / "r.txt", "must end in .html or .htm"),
        (tmp_path / "no" / "r.html", "Choose another folder"),
        (tmp_path, "must end in"),
    ):
        with pytest.raises(InputError, match=message):
            fitted.report(STREAM, path)
    with pytest.raises(NotFittedError):
        Detector(ert=100).report(STREAM, page)
    page.write_text("before")
    with pytest.raises(InputError, match="lacks 'flow'"):
        fitted.report([*STREAM[:9], {}], page)
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        fitted.report(STREAM[:20], page)
    assert page.read_text() == "before"
    assert list(tmp_path.iterdir()) == [page]
    assert (fitted.time, fitted.alarm) == (0, None)
