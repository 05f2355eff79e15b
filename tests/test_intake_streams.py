"""Streams from files, as detectors take them in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mixed_frames import NAMES, detector, equal, frame, pandas, start
from tocsin import Detector
from tocsin._cli.streams import blocks
from tocsin._common.errors import InputError
from tocsin._state.outcomes import Outcomes

pytestmark = pytest.mark.usefixtures("quick_fits")


@pytest.fixture(scope="module")
def tabular(quick_fits: None) -> Detector:
    """A detector of mixed columns."""
    return detector(frame(200))


class TestStreams:
    """`cli.streams.blocks`: a file as its detector wants it."""

    file = Path("some.tocsin")

    def read(self, fitted: Detector, path: Path, columns: list[str] | None = None, size: int = 7) -> Outcomes:
        """What the rows of a file do to a detector."""
        start(fitted)
        return Outcomes.join(
            [fitted.update_many(block) for block in blocks(fitted, self.file, str(path), columns, size)]
        )

    @pytest.fixture
    def wanted(self, tabular: Detector) -> Outcomes:
        """What the frame does."""
        start(tabular)
        return tabular.update_many(frame(20, seed=2))

    @pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".feather"])
    def test_every_format(self, tabular: Detector, wanted: Outcomes, tmp_path: Path, suffix: str) -> None:
        """In another order too, which names put right."""
        path, data = tmp_path / f"data{suffix}", frame(20, seed=2)
        for rows in (data, data[list(reversed(NAMES))]):
            if suffix == ".csv":
                rows.to_csv(path, index=False)
            elif suffix == ".jsonl":
                rows.assign(seen=rows["seen"].astype(str)).to_json(
                    path, orient="records", lines=True, double_precision=15
                )
            elif suffix == ".parquet":
                rows.to_parquet(path)
            else:
                rows.to_feather(path)
            found = self.read(tabular, path)
            np.testing.assert_allclose(found.statistic, wanted.statistic, atol=1e-6)
            if suffix != ".jsonl":
                equal(found, wanted)

    def test_chosen_columns(self, tabular: Detector, wanted: Outcomes, tmp_path: Path) -> None:
        """They are taken in order, whatever they are called."""
        named = tmp_path / "named.csv"
        frame(20, seed=2).rename(columns=str.upper).assign(EXTRA=1).to_csv(named, index=False)
        equal(self.read(tabular, named, [name.upper() for name in NAMES]), wanted)
        with pytest.raises(InputError, match=r"has 2 columns, and the reference of some\.tocsin has 6: .*--columns"):
            self.read(tabular, named, ["FLOW", "STATE"])

    def test_a_file_without_a_header(self, tmp_path: Path) -> None:
        """Its columns hold what those of the reference do, in order."""
        data = frame(100)[["flow", "open", "seen"]]
        fitted = detector(data)
        start(fitted)
        wanted = fitted.update_many(data[:20].assign(flow=None))
        path = tmp_path / "data.csv"
        data[:20].assign(flow=None).to_csv(path, index=False, header=False)
        equal(self.read(fitted, path), wanted)

    def test_other_columns(self, tabular: Detector, tmp_path: Path) -> None:
        """Those that are missing, or too many, by name."""
        path = tmp_path / "data.csv"
        frame(5).rename(columns={"flow": "Flow"}).to_csv(path, index=False)
        with pytest.raises(InputError, match=r"data\.csv lacks 'flow' and has 'Flow' besides"):
            self.read(tabular, path)

    def test_ignored_columns(self, tmp_path: Path) -> None:
        """Where all others are ignored they are not read, whatever they hold."""
        path = tmp_path / "data.csv"
        fitted = detector(frame(100), kinds={"flow": "auto", "state": "auto", "*": "ignore"})
        start(fitted)
        wanted = fitted.update_many(frame(20, seed=2))
        frame(20, seed=2)[["note", "state", "flow"]].assign(note=np.inf).to_csv(path, index=False)
        equal(self.read(fitted, path), wanted)

    def test_rows_of_numbers_go_by_order(self, tmp_path: Path) -> None:
        """An array has no names, so a file's do not matter; gaps are errors in their row."""
        numbers = np.random.default_rng(0).normal(size=(60, 2))
        fitted = detector(numbers)
        start(fitted)
        wanted = fitted.update_many(numbers[:9])
        path = tmp_path / "data.csv"
        data = pandas.DataFrame(numbers[:9], columns=["p", "q"])
        data.to_csv(path, index=False)
        equal(self.read(fitted, path), wanted)
        data.iloc[4, 1] = np.nan
        data.to_csv(path, index=False)
        with pytest.raises(InputError, match=r"line 6, column 'q' is empty; every value must be a number"):
            self.read(fitted, path)
