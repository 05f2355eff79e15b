"""Outcomes as frames of pandas, polars and Arrow."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mixed_frames import arrow, detector, pandas, polars
from tocsin import Channel, MissingExtraError, Outcomes

pytestmark = pytest.mark.usefixtures("quick_fits")

NAMES = [
    "time", "alarm", "statistic", "threshold", "rarity", "channel_statistic", "channel_window", "channel_width",
    "channel_view", "channel_column",
]  # fmt: skip


@pytest.fixture(scope="module")
def cold(quick_fits: None) -> Outcomes:
    """With windows that fill at first."""
    rng = np.random.default_rng(0)
    fitted = detector(rng.normal(size=(200, 2)), start="cold", reset_on_alarm=False)
    return fitted.update_many(rng.normal(2, 1, size=(30, 2)))


def expected(outcomes: Outcomes) -> list[dict[str, Any]]:
    """Written out one by one."""
    rows = []
    for outcome in outcomes:
        channel = outcome.channel
        numbers = {"statistic": outcome.statistic, "threshold": outcome.threshold, "rarity": outcome.rarity}
        rows.append(
            {
                "time": outcome.time,
                "alarm": outcome.alarm,
                **{name: None if np.isnan(number) else number for name, number in numbers.items()},
                "channel_statistic": None if channel is None else channel.statistic,
                "channel_window": None if channel is None else channel.window,
                "channel_width": None if channel is None else channel.width,
                "channel_view": None if channel is None else channel.view,
                "channel_column": None if channel is None else channel.column,
            }
        )
    return rows


@pytest.mark.parametrize("part", [slice(None), slice(7, None), slice(0, 7), slice(0, 0)])
def test_rows_and_types(cold: Outcomes, part: slice) -> None:
    """The same, and of the same types, whether windows are full, fill, or there are no outcomes."""
    outcomes = cold[part]
    rows = expected(outcomes)
    table = outcomes.to_arrow()
    assert isinstance(table, arrow.Table)
    assert table.to_pylist() == rows
    assert [str(kind) for kind in table.schema.types] == [
        "int64", "bool", "double", "double", "double", "string", "int64", "double", "string", "string",
    ]  # fmt: skip
    frame = outcomes.to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert frame.to_dicts() == rows
    assert frame.schema == polars.from_arrow(table).schema
    other = outcomes.to_pandas()
    assert isinstance(other, pandas.DataFrame)
    assert list(other.columns) == NAMES
    assert other.astype(object).where(other.notna(), None).to_dict("records") == rows
    full = not np.isnan(outcomes.statistic).any()
    assert other.dtypes.map(lambda kind: kind.kind).tolist()[:5] == ["i", "b", "f", "f", "f"]
    assert other["channel_window"].dtype == ("int64" if full else "float64")
    assert other["channel_width"].dtype == "float64"


def test_what_a_detector_cannot_tell(cold: Outcomes) -> None:
    """A rarity that is unknown, and a channel without a width, are null."""
    outcomes = replace(cold[10:12], curve=None, channels=(Channel("mean", 8),) * len(cold.channels))
    assert outcomes.to_polars()["rarity"].to_list() == [None, None]
    assert outcomes.to_polars()["channel_width"].to_list() == [None, None]
    assert outcomes.to_polars()["channel_statistic"].to_list() == ["mean", "mean"]


@pytest.mark.parametrize(
    ("lacking", "method", "remedy"),
    [
        ("narwhals", "to_pandas", r"'tocsin\[data\]'"),
        ("pandas", "to_pandas", "pandas"),
        ("polars", "to_polars", "polars"),
        ("pyarrow", "to_arrow", r"'tocsin\[data\]'"),
    ],
)
def test_what_is_not_installed(
    cold: Outcomes, monkeypatch: pytest.MonkeyPatch, lacking: str, method: str, remedy: str
) -> None:
    """Says what to install."""
    monkeypatch.setitem(sys.modules, lacking, None)
    with pytest.raises(MissingExtraError, match=rf"as a frame of .* '{lacking}': pip install {remedy}$"):
        getattr(cold, method)()
