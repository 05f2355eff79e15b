"""A watch that is killed, of a file that is rotated, against one uninterrupted watch: nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import hostile_streams
from benchmarks.hostile_streams import SCENARIOS, Tally


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fitted once."""
    file = tmp_path_factory.mktemp("fitted") / "d.tocsin"
    hostile_streams.fitted(file)
    return file


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nothing_is_lost_or_doubled(scenario: str, detector: Path) -> None:
    """Where a file was cut back and has grown again without a copy, it says that it cannot know; nowhere else."""
    tally = hostile_streams.run(scenario, 1, detector)
    assert tally == Tally(tries=1, refused=int("regrown" in scenario))
