"""A watch that is killed, of a file that is rotated, against one uninterrupted watch: nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import hostile_streams
from benchmarks.hostile_streams import Tally

SCENARIOS = [
    "rename, kills: none",
    "rename twice, kills: one",
    "dated, kills: one",
    "copy and truncate, kills: none",
    "put aside, kills: three",
    "cut back and regrown, kills: none",
    "copy and truncate, kills: at once",
    "rename, asked to end: three",
    "compress later twice, stopped",
    "compress twice, stopped",
    "move away twice, stopped",
]
"""One of each kind; `python -m benchmarks.hostile streams` tries them all."""

PIECES = 12
"""In which a stream is written: half as many pauses as in the benchmark, with as many rotations and kills."""


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fitted once."""
    file = tmp_path_factory.mktemp("fitted") / "d.tocsin"
    hostile_streams.fitted(file)
    return file


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nothing_is_lost_or_doubled(scenario: str, detector: Path) -> None:
    """Where a file was cut back without a copy, or one in between cannot be read, it says so; and nowhere else."""
    tally = hostile_streams.run(scenario, 1, detector, pieces=PIECES)
    assert tally == Tally(tries=1, refused=int(scenario in hostile_streams.UNKNOWABLE))
