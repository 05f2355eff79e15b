"""`tocsin report`."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reported import EVIL, REFERENCE, STREAM, Page, embedded, json_lines, reported, rows, table, tocsin, unpacked
from tocsin import MMD, Detector
from tocsin._cli import streams
from tocsin._cli.reading import Block
from tocsin._cli.report import _rows_about

pytestmark = pytest.mark.usefixtures("quick_fits")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector, a stream that changes, and the report; not to be changed."""
    return reported(tmp_path_factory.mktemp("report"))


def test_a_quiet_stream(tmp_path: Path) -> None:
    """Ends with status 0, and leaves the detector as it was."""
    file = tmp_path / "calm.tocsin"
    Detector(1e6, window=5, paths=300, seed=0).fit(REFERENCE, progress=False).save(file)
    before = file.read_bytes()
    result = tocsin("report", file, "-", "-o", tmp_path / "q.html", stdin=json_lines(rows(90, 0, 1)))
    assert result.exit_code == 0, result.output
    sentence = "Quiet: no alarm in 90 observations, and all columns are as in the reference."
    assert result.stdout.splitlines() == [sentence, "There is nothing to do.", f"Written to {tmp_path / 'q.html'}."]
    page = Page((tmp_path / "q.html").read_text())
    assert f"{sentence} There is nothing to do." in page.text
    assert "standard input" in page.text
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calm.tocsin", "q.html"]


def test_a_stream_that_is_not_as_the_reference_is_not_called_quiet(tmp_path: Path) -> None:
    """Though nothing rang: a category that the reference never had is in the headline, which is not a quiet one's."""
    file = tmp_path / "calm.tocsin"
    Detector(1e9, window=5, paths=300, seed=0).fit(REFERENCE, progress=False).save(file)
    stream = rows(90, 0, 1)
    stream[7] |= {f"{EVIL}&\"'": "new"}
    result = tocsin("report", file, "-", "-o", tmp_path / "q.html", stdin=json_lines(stream))
    assert result.exit_code == 0, result.output
    page = Page((tmp_path / "q.html").read_text())
    assert "categories that the reference never had" in page.text
    assert "Nothing unusual" not in page.text
    told = (
        f"No alarm in 90 observations, but {EVIL}&\"' has categories that the reference never had (new; first at "
        "observation 8)."
    )
    assert told in page.text
    assert told in result.stdout
    assert [found["class"] for found in page.all("section") if found.get("id") == "verdict"] == ["verdict unsure"]


def test_an_empty_stream(tmp_path: Path) -> None:
    """Is told, not drawn."""
    reference = np.random.default_rng(0).normal(size=(60, 2))
    Detector(100, MMD(), window=5, paths=100, seed=0).fit(reference, progress=False).save(tmp_path / "d.tocsin")
    np.save(tmp_path / "none.npy", np.empty((0, 2)))
    result = tocsin("report", tmp_path / "d.tocsin", tmp_path / "none.npy", "-o", tmp_path / "r.html")
    assert result.exit_code == 0, result.output
    text = Page((tmp_path / "r.html").read_text()).text
    assert "There was nothing to watch: the stream has no observations." in text
    assert "There are no observations to draw" in text


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

    def blocks(*_: object) -> Iterator[Block]:
        yield Block(table(STREAM[:100]), range(100))
        os.kill(os.getpid(), signal.SIGINT)
        yield Block(table(STREAM[100:]), range(100, len(STREAM)))

    monkeypatch.setattr(streams, "blocks_beside", blocks)
    result = tocsin("report", folder / "pump.tocsin", folder / "stream.jsonl", "-o", tmp_path / "r.html")
    assert result.exit_code in (0, 1), result.output
    assert "Stopped after 100 observations" in result.stdout
    assert "Stopped after 100 observations." in Page((tmp_path / "r.html").read_text()).text


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
