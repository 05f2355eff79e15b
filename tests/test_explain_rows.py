"""Explanations with what a detector does not watch: times, columns to find records by, and texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tocsin import Detector, InputError, Views

pytestmark = pytest.mark.usefixtures("quick_fits")
pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
REFERENCE = pd.DataFrame({"flow": rng.normal(size=300), "heat": rng.normal(size=300)})
STREAM = pd.DataFrame({"flow": np.r_[rng.normal(size=30), rng.normal(4, 1, size=30)], "heat": rng.normal(size=60)})
FULL = STREAM.assign(serial=[f"no. {k}" for k in range(1, 61)], when=pd.date_range("2024-03-01", periods=60, freq="h"))


def rung(views: bool, frame: Any = STREAM) -> tuple[Detector, int]:
    """A detector that rang, and the row that did."""
    options: dict[str, Any] = {"statistic": Views(), "paths": 6} if views else {"window": 10, "paths": 300}
    detector = Detector(500, seed=1, **options).fit(REFERENCE, progress=False)
    return detector, len(detector.update_until_alarm(frame))


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("since", [0, 20])
def test_times_and_kept_columns_are_those_of_the_rows(views: bool, since: int) -> None:
    """By the row, whether all of the stream is given or its end."""
    detector, row = rung(views)
    assert row > 30
    told = detector.explain(FULL[since:row], keep=["serial"])
    assert told.kept == {"serial": f"no. {row}"}
    assert told.when == str(FULL.when[row - 1])[:16] or told.when == str(FULL.when[row - 1])[:10]
    assert told.recent
    for example in told.recent:
        if example.place > since:
            assert example.kept == {"serial": f"no. {example.place}"}
            assert float(example.values["flow"]) == pytest.approx(STREAM.flow[example.place - 1], rel=0.01)
    assert told.began.when is not None
    plain = detector.explain()
    assert (plain.kept, plain.when, plain.began.when) == ({}, None, None)
    assert plain.began.time == told.began.time
    assert "no. " in str(told) or "no. " in told.to_json()


def test_an_index_of_times() -> None:
    detector, row = rung(views=False)
    told = detector.explain(STREAM.set_index(pd.date_range("2024-03-01", periods=60, freq="D"))[:row])
    assert told.when == str(pd.Timestamp("2024-03-01") + pd.Timedelta(days=row - 1))[:10]


def test_rows_must_end_with_the_latest() -> None:
    """Nothing is told of the wrong rows."""
    detector, row = rung(views=False)
    for wrong in (FULL[: row - 1], FULL[: row + 1], FULL[:0]):
        with pytest.raises(InputError, match="taken in last"):
            detector.explain(wrong, keep=["serial"])
    with pytest.raises(InputError, match="give the latest observations"):
        detector.explain(keep=["serial"])
    with pytest.raises(InputError, match="no column 'id'"):
        detector.explain(FULL[:row], keep=["id"])
    with pytest.raises(InputError, match="must be names"):
        detector.explain(FULL[:row], keep="serial")


def test_the_second_run_of_a_stream() -> None:
    """Times count in the run; rows from before it are no matter."""
    detector, first = rung(views=False)
    row = first + len(detector.update_until_alarm(STREAM[first:]))
    told = detector.explain(FULL[:row], keep=["serial"])
    assert told.outcome.time == row - first
    assert told.kept == {"serial": f"no. {row}"}
    for example in told.recent:
        assert example.kept == {"serial": f"no. {first + example.place}"}
