"""What can be seen, on the command line: fit, check, watch, report, and the choice of an expected run time."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from tocsin import Detector, StorageError
from tocsin._cli import app, choosing

FIT = ("--window", "5,15", "--paths", "300", "--seed", "1")

rng = np.random.default_rng(0)
REFERENCE, QUIET = rng.normal(size=(300, 2)), rng.normal(size=(40, 2))


def tocsin(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def csv(rows: Any) -> str:
    return "flow,heat\n" + "".join(f"{x!r},{y!r}\n" for x, y in rows.tolist())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reference, a quiet stream, and detectors with and without a card; not to be changed."""
    made = tmp_path_factory.mktemp("power")
    (made / "reference.csv").write_text(csv(REFERENCE))
    (made / "quiet.csv").write_text(csv(QUIET))
    result = tocsin("fit", made / "reference.csv", "-o", made / "with.tocsin", "--ert", "2000", *FIT)
    assert result.exit_code == 0, result.output
    (made / "fit.txt").write_text(result.output)
    result = tocsin("fit", made / "reference.csv", "-o", made / "without.tocsin", "--ert", "2000", "--no-power", *FIT)
    assert result.exit_code == 0, result.output
    assert "Finds" not in result.output
    return made


def test_fit_tells_and_keeps_it(folder: Path) -> None:
    """In words; the thresholds are the same with and without it."""
    told = " ".join((folder / "fit.txt").read_text().split())
    assert "Power Finds a shift of 1 spread in one column within " in told
    assert "Does not find: " in told
    first, second = (Detector.load(folder / f"{name}.tocsin") for name in ("with", "without"))
    assert first.power_ is not None
    assert second.power_ is None
    assert first.thresholds_.tolist() == second.thresholds_.tolist()
    assert first.power_ == second.power(progress=False)


def test_fit_in_json(folder: Path, tmp_path: Path) -> None:
    result = tocsin("fit", folder / "reference.csv", "-o", tmp_path / "a.tocsin", "--ert", "2000", "--json", *FIT)
    power = json.loads(result.output)["power"]
    assert power["tried"] == ["flow", "heat"]
    assert {change["kind"] for change in power["changes"]} > {"higher", "stuck", "missing"}


def test_check_shows_and_draws_it(folder: Path, tmp_path: Path) -> None:
    """All of it, if the file has it or it is asked for."""
    shown = tocsin("check", folder / "with.tocsin").output
    assert "a column moves up or down by 3 spreads" in shown
    assert "A spread is the distance" in " ".join(shown.split())
    assert "a column moves" not in tocsin("check", folder / "without.tocsin").output
    asked = tocsin("check", folder / "without.tocsin", "--power", "--json")
    assert (
        json.loads(asked.output)["power"]
        == json.loads(tocsin("check", folder / "with.tocsin", "--json").output)["power"]
    )
    result = tocsin("check", folder / "without.tocsin", "--plot-power", tmp_path / "card.svg")
    assert result.exit_code == 0, result.output
    assert "flow" in (tmp_path / "card.svg").read_text()
    assert tocsin("check", folder / "with.tocsin", "--plot-power", tmp_path / "card.svg").exit_code == 2
    refused = tocsin("check", folder / "with.tocsin", "--plot-power", tmp_path / "card.txt")
    assert "--plot-power" in refused.stderr
    assert Detector.load(folder / "without.tocsin").power_ is None


def test_watch_tells_what_it_would_have_found(folder: Path, tmp_path: Path) -> None:
    """Beside no alarm; not beside one, and nothing where it is not known."""
    quiet = tocsin("watch", folder / "with.tocsin", folder / "quiet.csv")
    assert "0 alarms" in quiet.output
    assert "Finds a shift of 1 spread in one column within " in quiet.output
    assert "Does not find: " in quiet.output
    facts = json.loads(tocsin("watch", folder / "with.tocsin", folder / "quiet.csv", "--json").output)
    assert [sentence[:5] for sentence in facts["power"]] == ["Finds", "Does "]
    assert "Finds" not in tocsin("watch", folder / "without.tocsin", folder / "quiet.csv").output
    (tmp_path / "loud.csv").write_text(csv(QUIET + 5))
    rang = tocsin("watch", folder / "with.tocsin", tmp_path / "loud.csv")
    assert rang.exit_code == 1
    assert "Finds" not in rang.output


def test_reports_tell_it(folder: Path, tmp_path: Path) -> None:
    """A section of the page; without a card, how to have one."""
    for name, expected in (("with", "Finds a shift of 1 spread"), ("without", "detector.power()")):
        page = tmp_path / f"{name}.html"
        assert tocsin("report", folder / f"{name}.tocsin", folder / "quiet.csv", "-o", page).exit_code == 0
        assert "What it can see" in page.read_text()
        assert expected in page.read_text()


# Without an expected run time


def test_without_an_expected_run_time_three_are_offered(folder: Path, tmp_path: Path) -> None:
    """Each with its false alarms and what it finds; nothing is written, and nobody is asked where nobody can answer."""
    for further in ((), ("--json",)):
        result = tocsin("fit", folder / "reference.csv", "-o", tmp_path / "a.tocsin", *FIT, *further)
        assert result.exit_code == 2
        told = " ".join(result.stderr.split())
        assert "There is no --ert." in told
        for ert, false in (("500", "0.6"), ("5000", "0.06"), ("50000", "0.006")):
            assert f"--ert {ert}: {false} false alarms in as many observations as the reference has (300)." in told
        assert told.count("Finds a shift of ") == 3
        assert told.endswith("Give a number, such as --ert 5000.")
        assert not (tmp_path / "a.tocsin").exists()


@pytest.mark.parametrize(("typed", "ert"), [("1\n", 500), ("\n", 5000), ("7\nmany\n3\n", 50_000), ("1,234\n", 1234)])
def test_a_choice_is_used(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, ert: float
) -> None:
    """By its place, or another number; what is neither is asked again."""
    monkeypatch.setattr(choosing, "_can_ask", lambda: True)
    result = tocsin("fit", folder / "reference.csv", "-o", tmp_path / "a.tocsin", "--no-power", *FIT, stdin=typed)
    assert result.exit_code == 0, result.output
    assert "is none of them" in result.output if "many" in typed else "is none" not in result.output
    chosen = Detector.load(tmp_path / "a.tocsin")
    assert chosen.ert == ert
    again = Detector(ert, window=[5, 15], paths=300, seed=1).fit(
        [{"flow": x, "heat": y} for x, y in REFERENCE.tolist()], progress=False
    )
    assert chosen.thresholds_.tolist() == again.thresholds_.tolist()


def test_thresholds_without_a_curve_offer_nothing(folder: Path, tmp_path: Path) -> None:
    result = tocsin("fit", folder / "reference.csv", "-o", tmp_path / "a.tocsin", "--mode", "fixed", *FIT)
    assert result.exit_code == 2
    assert "leaves you in peace. Give a number, such as --ert 5000." in " ".join(result.stderr.split())


def test_a_file_with_a_strange_card_is_refused(folder: Path, tmp_path: Path) -> None:
    """As with all else in a file: looked at before it is used."""
    source, target = folder / "with.tocsin", tmp_path / "strange.tocsin"
    for old, new in (('"share": ', '"share": 7'), ('"kind": "stuck"', '"kind": "strange"'), ('"tried"', '"treid"')):
        with zipfile.ZipFile(source) as given, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as altered:
            for name in given.namelist():
                content = given.read(name)
                if name == "tocsin.json":
                    assert old in content.decode()
                    content = content.decode().replace(old, new).encode()
                altered.writestr(name, content)
        with pytest.raises(StorageError, match=r"not a whole \.tocsin file"):
            Detector.load(target)
