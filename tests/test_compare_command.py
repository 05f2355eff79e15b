"""`tocsin compare`: two files, a verdict, and an exit status."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from compared import rows
from reported import tocsin as run


def write(path: Path, table: list[dict[str, object]]) -> Path:
    import_module("pandas").DataFrame(table).to_csv(path, index=False)
    return path


def test_the_command(tmp_path: Path) -> None:
    """Status 0 if nothing is found, 1 if they differ, and 2 for trouble.

    Tables that do not differ are said to once in 10,000 seeds.
    """
    rng = np.random.default_rng(22)
    first, same = write(tmp_path / "a.csv", rows(rng, 200)), write(tmp_path / "b.csv", rows(rng, 80))
    other = write(tmp_path / "c.csv", rows(rng, 80, x1=lambda: float(rng.normal(2)), x2=lambda: None))
    rare = ("--seed", 1, "--ert", 10_000)
    quiet = run("compare", first, same, *rare)
    assert (quiet.exit_code, quiet.output.partition(":")[0]) == (0, "No difference found")
    found = run("compare", first, other, "--seed", 1)
    assert found.exit_code == 1
    assert found.output.startswith("They differ")
    assert "x1  higher: median" in found.output
    told = json.loads(run("compare", first, other, "--seed", 1, "--json").output)
    assert (told["differs"], told["seed"], told["ert"]) == (True, 1, 100)
    alone = run("compare", first, other, "--columns", "x0,x3", *rare, "--json")
    assert (alone.exit_code, len(json.loads(alone.output)["columns"])) == (0, 2)
    assert run("compare", first, other, "--kinds", "x1=ignore,x2=ignore", *rare).exit_code == 0
    few = run("compare", write(tmp_path / "d.csv", rows(rng, 2)), write(tmp_path / "e.csv", rows(rng, 2)))
    assert (few.exit_code, few.output.partition(":")[0]) == (2, "No verdict")


def test_dates_that_are_no_times_are_told(tmp_path: Path) -> None:
    """On standard error, with the flag; the answer stays alone on standard output."""
    table = [{"flow": float(i % 7), "seen": f"{1 + i % 28:02}.03.2024"} for i in range(60)]
    file = write(tmp_path / "a.csv", table)
    told = run("compare", file, file, "--json")
    assert "tocsin: column 'seen' is taken for text, though" in told.stderr
    assert "--kinds seen=text." in told.stderr
    assert {column["name"] for column in json.loads(told.stdout)["columns"]} == {"flow", "seen"}
    assert run("compare", file, file, "--kinds", "seen=text").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.csv", "a.csv", "--ert", "1"), "--ert 1: must be a number of comparisons"),
        (("a.csv", "b.csv"), "Cannot read b.csv"),
        (("-", "-"), "one of the tables, not both"),
        (("a.csv", "a.csv", "--columns", "z"), "no column 'z'"),
        (("a.csv", "a.csv", "--kinds", "x=spoon"), "--kinds x=spoon is unknown"),
        (("a.csv", "a.csv", "--plot", "a.txt"), "--plot a.txt: must end in .png, .svg or .pdf"),
        (("a.csv", "a.csv", "--seed", "-1"), "--seed -1"),
        (("a.csv", "empty.csv"), "empty.csv holds no rows"),
        (("a.csv", "y.csv"), "y.csv lacks 'x' and has 'y' besides"),
    ],
)
def test_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str) -> None:
    """A line that names the flag, and status 2."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x\n1\n2\n3\n")
    Path("y.csv").write_text("y\n1\n2\n3\n")
    Path("empty.csv").write_text("x\n")
    result = run("compare", *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert result.output.startswith("tocsin: ")


def test_a_clock_is_not_compared(tmp_path: Path) -> None:
    """It says when rows came, whether it is chosen, has a name, or neither."""
    rng = np.random.default_rng(25)
    tables = [[{"at": f"2024-01-01T00:{i:02d}:00", "x": float(rng.normal())} for i in range(60)] for _ in range(2)]
    first, second = (write(tmp_path / name, table) for name, table in zip(("a.csv", "b.csv"), tables, strict=True))
    for path in (first, second):
        (tmp_path / f"bare-{path.name}").write_text(path.read_text().partition("\n")[2])
    bare = tmp_path / "bare-a.csv", tmp_path / "bare-b.csv"
    for arguments in ((first, second), (first, second, "--columns", "x,at"), bare):
        told = json.loads(run("compare", *arguments, "--seed", 1, "--json").output)
        assert [column["name"] for column in told["columns"]] == ["x" if arguments != bare else "2"]


def test_a_batch_is_read_as_the_reference_was(tmp_path: Path) -> None:
    """Digits among names are names, and a column of numbers may be empty; standard input will do."""
    rng = np.random.default_rng(23)
    first = write(
        tmp_path / "a.csv", [{"x": float(rng.normal()), "code": str(rng.choice(["7", "8", "b"]))} for _ in range(60)]
    )
    batch = "x,code\n" + "".join(f",{rng.choice(['7', '8'])}\n" for _ in range(40))
    result = run("compare", first, "-", "--seed", 1, "--json", stdin=batch)
    assert [column["name"] for column in json.loads(result.output)["columns"] if column["differs"]] == ["x", "code"]


def test_help_teaches() -> None:
    """What it promises, how it ends, and an example."""
    told = run("compare", "--help").output
    for words in ("once in --ert comparisons", "Exit status: 0", "tocsin compare january.csv february.csv"):
        assert words in told
