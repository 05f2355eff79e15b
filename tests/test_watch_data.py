"""A watch ends with whether its data are as the reference's, as a report does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from tocsin._cli import app, data

rng = np.random.default_rng(0)
ROWS = rng.normal(size=(400, 2))


def tocsin(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def csv(rows: Any, colours: list[str]) -> str:
    lines = ("" if np.isnan(y) else repr(y) for y in rows[:, 1].tolist())
    each = zip(rows[:, 0].tolist(), lines, colours, strict=True)
    return "flow,heat,colour\n" + "".join(f"{x!r},{y},{colour}\n" for x, y, colour in each)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector of numbers and a category, and streams: as the reference, and with gaps and a new category."""
    made = tmp_path_factory.mktemp("data")
    colours = ["red" if k % 2 else "green" for k in range(400)]
    (made / "reference.csv").write_text(csv(ROWS, colours))
    (made / "quiet.csv").write_text(csv(ROWS[:60] * 0.9, colours[:60]))
    odd, rows = colours[:60], ROWS[:60].copy()
    odd[40], rows[20::20, 1] = "blue", np.nan
    (made / "odd.csv").write_text(csv(rows, odd))
    result = tocsin(
        "fit", made / "reference.csv", "-o", made / "a.tocsin", "--ert", 10**6, "--window", 5, "--paths", 300,
        "--seed", 1, "--no-power",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return made


@pytest.mark.parametrize("one_by_one", [False, True])
def test_what_is_not_as_in_the_reference_is_told(
    folder: Path, one_by_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gravest finding, and how many more columns; all of them in JSON. However rows arrive."""
    monkeypatch.setattr(data, "TOGETHER", 7)
    stream, given = (folder / "odd.csv", None) if not one_by_one else ("-", (folder / "odd.csv").read_text())
    result = tocsin("watch", folder / "a.tocsin", stream, stdin=given)
    told = " ".join(result.output.split())
    assert "The data: colour has categories that the reference never had (blue; first at observation 41)" in told
    assert "and 1 more column is not as in the reference." in told
    result = tocsin("watch", folder / "a.tocsin", stream, "--json", stdin=given)
    summary = json.loads(result.output.splitlines()[-1])
    assert len(summary["data"]) == 2
    assert summary["data"][1].startswith("heat is missing in ")


def test_quiet_data_are_said_to_be_so(folder: Path) -> None:
    result = tocsin("watch", folder / "a.tocsin", folder / "quiet.csv")
    assert "0 alarms" in result.output
    assert "All columns are as in the reference." in result.output
    assert "columns" not in tocsin("watch", folder / "a.tocsin", folder / "quiet.csv", "--quiet").output


def test_the_same_as_a_report_says(folder: Path, tmp_path: Path) -> None:
    """Column by column."""
    result = tocsin("report", folder / "a.tocsin", folder / "odd.csv", "-o", tmp_path / "a.html", "--json")
    found = [column["name"] for column in json.loads(result.output)["columns"] if column["notes"]]
    told = json.loads(tocsin("watch", folder / "a.tocsin", folder / "odd.csv", "--json").output.splitlines()[-1])
    assert {own.split()[0] for own in told["data"]} == set(found) == {"heat", "colour"}


def test_rows_are_counted_from_where_the_watch_before_ended(folder: Path, tmp_path: Path) -> None:
    detector, log = tmp_path / "a.tocsin", tmp_path / "log.csv"
    detector.write_bytes((folder / "a.tocsin").read_bytes())
    lines = (folder / "odd.csv").read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:31]))
    first = tocsin("watch", detector, log, "--save-state")
    assert "blue" not in first.output
    log.write_text("".join(lines))
    second = " ".join(tocsin("watch", detector, log, "--save-state").output.split())
    assert "(blue; first at observation 41)" in second


def test_bad_rows_are_no_data(folder: Path) -> None:
    """Those that are left out."""
    lines = (folder / "quiet.csv").read_text().splitlines(keepends=True)
    text = "".join([*lines[:20], "abc,1.0,purple\n", *lines[20:]])
    result = tocsin("watch", folder / "a.tocsin", "-", "--bad-rows", "skip", stdin=text)
    assert "1 row could not be taken in" in result.output
    assert "All columns are as in the reference." in result.output
