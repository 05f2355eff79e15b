"""Columns of dates written as strings: in frames as in files."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixed_frames import arrow, detector, equal, pandas, polars, start
from tocsin import Detector, DetectorBank, Fleet, Independent, InputError, ReferenceWarning, compare
from tocsin._cli.reading import read_whole
from tocsin._cli.streams import blocks
from tocsin._data.intake import Tabular
from tocsin._data.tables import Columns, as_table
from tocsin._report import Gathered

pytestmark = pytest.mark.usefixtures("quick_fits")

FORMS: list[Callable[[Any], Any]] = [
    lambda rows: rows,
    polars.from_pandas,
    arrow.Table.from_pandas,
    lambda rows: rows.to_dict("records"),
]


def dated(n: int, seed: int = 0) -> Any:
    """Numbers, and times that are in no order, as strings."""
    rng = np.random.default_rng(seed)
    times = pandas.Timestamp("2024-03-07") + pandas.to_timedelta(rng.integers(0, 10**7, n), unit="s")
    return pandas.DataFrame({"flow": rng.normal(size=n), "seen": times.strftime("%Y-%m-%dT%H:%M:%S")})


def with_times(rows: Any) -> Any:
    return rows.assign(seen=pandas.to_datetime(rows["seen"]))


def learned(data: Any, **kinds: Any) -> Columns:
    table = as_table(data)
    assert table is not None
    return Columns.learn(table, kinds)


@pytest.fixture(scope="module")
def fitted(quick_fits: None) -> Detector:
    return detector(dated(200))


def test_they_are_times_as_if_a_file_were_read(fitted: Detector, tmp_path: Path) -> None:
    """Whatever holds them, and in whatever order; and as if they had been times all along."""
    dated(200).to_csv(tmp_path / "dated.csv", index=False)
    assert isinstance(fitted.intake_, Tabular)
    wanted = fitted.intake_.columns
    assert [column.kind for column in wanted.columns] == ["number", "time"]
    assert learned(read_whole(str(tmp_path / "dated.csv"))) == wanted
    assert learned(with_times(dated(200))) == wanted
    for form in FORMS:
        assert learned(form(dated(200))) == wanted
        assert learned(form(dated(200).sample(frac=1, random_state=1, ignore_index=True))) == wanted


def test_a_clock_is_left_out_as_in_files() -> None:
    """Times that never go back only say when rows came."""
    rows = dated(50)
    rows["seen"] = sorted(rows["seen"])
    columns = learned(rows)
    assert columns.names == ("flow",)
    assert columns.ignored == ("seen",)


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        (["2024-01-02", None, "2024-01-01T10:00:00+02:00"], "times"),
        ([" 2024-01-02 ", "NA", "2024-01-01", ""], "times"),
        (["20240102", "20240101"], "strings"),  # numbers, as the reader sees it
        (["20240102", "2024-01-01"], "times"),
        (["2024-01-02", "2024-01-01", "yesterday"], "strings"),
        (["NA", ""], "strings"),
    ],
)
def test_what_counts_as_a_date_is_what_the_reader_says(values: list[str | None], holds: str) -> None:
    """In any order; where that is one of time, the column is a clock."""
    orders = list(itertools.permutations(values))
    found = [learned([{"x": value, "y": 0.0} for value in order]) for order in orders]
    assert {column.holds for columns in found for column in columns.columns if column.name == "x"} == {holds}
    assert any("x" in columns.ignored for columns in found) == (holds == "times")


def test_kinds_have_the_last_word() -> None:
    """Texts and categories stay strings, a time may be written as a number, and what is ignored is not looked at."""
    rows = dated(50)
    for kind in ("text", "category"):
        assert learned(rows, seen=kind).columns[1].holds == "strings"
    assert learned(rows, seen="elapsed").columns[1].holds == "times"
    assert learned(rows, seen="ignore").names == ("flow",)
    assert learned(rows.assign(seen=rows["seen"].astype("category"))).columns[1].holds == "strings"
    compact = rows.assign(seen=rows["seen"].str[:10].str.replace("-", ""))
    assert learned(compact).columns[1].holds == "strings"
    assert learned(compact, seen="time").columns[1].holds == "times"
    with pytest.raises(InputError, match="'seen' holds strings, which cannot be taken for 'time'"):
        learned(rows.assign(seen="soon"), seen="time")


def test_the_rows_that_follow_are_read_in_the_same_way(fitted: Detector, tmp_path: Path) -> None:
    """Blocks, dicts, times, files, and a detector from a file, to the last bit."""
    block = dated(30, seed=1)
    start(fitted)
    wanted = fitted.update_many(block)
    fitted.save(tmp_path / "dated.tocsin")
    for form in [*FORMS, with_times]:
        start(fitted)
        equal(fitted.update_many(form(block)), wanted)
    start(fitted)
    assert [fitted.update(row) for row in block.to_dict("records")] == list(wanted)
    loaded = Detector.load(tmp_path / "dated.tocsin")
    start(loaded)
    equal(loaded.update_many(block), wanted)
    for name in ("stream.csv", "stream.parquet"):
        path = tmp_path / name
        block.to_csv(path, index=False) if path.suffix == ".csv" else block.to_parquet(path)
        start(fitted)
        (table,) = blocks(fitted, tmp_path / "dated.tocsin", str(path), None)
        equal(fitted.update_many(table), wanted)
    gap = {"flow": 0.0, "seen": "NA"}
    copy = Detector.load(tmp_path / "dated.tocsin")
    assert fitted.update(gap).statistic == copy.update({**gap, "seen": None}).statistic


def test_banks_and_fleets_read_them_too(fitted: Detector) -> None:
    """They take rows in as their detector does."""
    rows = dated(4, seed=2)
    for one, other in ((rows, with_times(rows)), (rows.to_dict("records"), with_times(rows))):
        banks = [DetectorBank(fitted, 4), DetectorBank(fitted, 4)]
        np.testing.assert_array_equal(banks[0].update(one).statistic, banks[1].update(other).statistic)
    fleet, rest = Fleet(fitted), (np.array([0, 1, 0, 1]), np.arange(4))
    steps = [fleet.step(["a", "b"], [None, None], block, *rest) for block in (rows, with_times(rows))]
    assert steps[0] == steps[1]
    assert (steps[0].taken, steps[0].refused) == (4, [])
    rows.loc[1, "seen"] = "noon"
    (refused,) = fleet.step(["a", "b"], [None, None], rows, *rest).refused
    assert (refused.row, "'noon'" in refused.message) == (1, True)


def test_a_later_value_that_is_no_date_is_refused(fitted: Detector) -> None:
    """By the error that a bad value in a column of times gets, which shows the culprit; nothing has changed."""
    start(fitted)
    rows = dated(10, seed=3)
    rows.loc[7, "seen"] = "noon"
    with pytest.raises(InputError, match="'seen' holds strings such as 'noon'; in the reference it held times"):
        fitted.update_many(rows)
    with pytest.raises(InputError, match="'seen' holds strings such as 'noon'"):
        fitted.update({"flow": 0.0, "seen": "noon"})
    with pytest.raises(InputError, match="'seen' holds numbers such as '5'"):
        fitted.update({"flow": 0.0, "seen": 5.0})
    assert fitted.time == 0


def test_a_report_takes_them_for_times() -> None:
    """As a number of a column, too."""
    elapsed = detector(dated(100), kinds={"seen": "elapsed"})
    seen = [Gathered(elapsed), Gathered(elapsed)]
    for gathered, rows in zip(seen, (dated(20, seed=4), with_times(dated(20, seed=4))), strict=True):
        start(elapsed)
        table = as_table(rows)
        assert table is not None
        gathered.add(table)
    assert seen[0].quality.columns["seen"] == seen[1].quality.columns["seen"]
    assert seen[0].quality.columns["seen"].range is not None


# Dates that are no times


WRITTEN = {
    "%m/%d/%Y": "text",
    "%d.%m.%Y": "text",
    "%Y/%m/%d": "text",
    "%d %b %Y": "text",
    "%a, %d %B %Y %H:%M:%S GMT": "text",
    "%b %d, %y": "text",
    "%m/%Y": None,
    "order %d of %Y": None,
    "%d.%m.1": None,
}
"""How dates are written, and what they are taken for with a word of warning; None where none is due."""


def written(form: str, n: int = 200) -> Any:
    rows = dated(n)
    return rows.assign(seen=with_times(rows)["seen"].dt.strftime(form))


@pytest.mark.parametrize("form", WRITTEN)
def test_dates_in_other_words_are_told(form: str) -> None:
    """By name, with what is wrong and what to do; by whoever called, and once."""
    if WRITTEN[form] is None:
        detector(written(form))
        return
    with pytest.warns(ReferenceWarning, match=r"^Column 'seen' is taken for text, though .* look like dates") as caught:
        detector(written(form))
    (warning,) = caught
    assert f": {written(form)['seen'][0]!r} is not written as ISO 8601" in str(warning.message)
    assert str(warning.message).endswith("by kinds={'seen': 'text'}.")
    detector(written(form), kinds={"seen": "text"})
    detector(written(form), kinds={"*": "category"} | {"flow": "auto"})
    detector(written(form), kinds={"seen": "ignore"})


def test_one_that_is_no_date_is_told() -> None:
    """Among those of ISO 8601; and where they repeat, that they are categories."""
    rows = dated(200)
    rows.loc[7, "seen"] = "unknown"
    with pytest.warns(ReferenceWarning, match="taken for text, .*'unknown' is not written"):
        detector(rows)
    with pytest.warns(ReferenceWarning, match="taken for category, .*by kinds={'seen': 'category'}"):
        detector(rows.assign(seen=["03/07/2024", "03/08/2024"] * 100))
    detector(rows.assign(seen=pandas.Categorical(["03/07/2024", "03/08/2024"] * 100)))


def test_the_warning_is_the_callers() -> None:
    rows = written("%d.%m.%Y")
    with pytest.warns(ReferenceWarning) as fitted:
        Detector(100, window=4, paths=300, interval=False, sampler=Independent()).fit(rows)
    with pytest.warns(ReferenceWarning) as compared:
        compare(rows, rows)
    assert [warning.filename for warning in (*fitted, *compared)] == [__file__] * 2
