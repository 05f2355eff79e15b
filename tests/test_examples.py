"""Every example runs, is short, and tells what it says it tells."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"

TELLS = {
    "tabular": ("1000 good orders: 0 alarms", "age"),
    "images": ("500 good images: 0 alarms", "Digits of the reference that are missed"),
    "text": ("500 usual messages: 0 alarms", "someone logged in as me from"),
    "sensors": ("A healthy run of 2000: ", "across"),
}
"""What each prints, among other things."""


def test_all_are_here() -> None:
    """And each is under 60 lines."""
    files = sorted(EXAMPLES.glob("*.py"))
    assert [file.stem for file in files] == sorted(TELLS)
    for file in files:
        assert len(file.read_text().splitlines()) < 60


@pytest.mark.long
@pytest.mark.parametrize("name", TELLS)
def test_it_tells(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its seed is fixed, so it tells the same each time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a fit has to say of its reference is part of the example
        runpy.run_path(str(EXAMPLES / f"{name}.py"))
    printed = capsys.readouterr().out
    for words in TELLS[name]:
        assert words in printed
