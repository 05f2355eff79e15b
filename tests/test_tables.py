"""Tables: whatever library a frame comes from, it is the same table."""

from __future__ import annotations

import datetime
import decimal
import enum
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from small_tables import LIBRARIES, NOON, SECONDS, UTC, arrow, column, mixed, pandas, polars, table
from tocsin._common.errors import InputError, MissingExtraError
from tocsin._data.tables import Columns, as_table


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_table_is_the_same_whatever_library_it_is_from(library: str) -> None:
    """Values, kinds and features, to the last bit."""
    data = mixed(60)
    expected, found = table(LIBRARIES["records"](data)), table(LIBRARIES[library](data))
    assert found.names == expected.names
    for (name, values), (_, wanted) in zip(found, expected, strict=True):
        assert values.holds == wanted.holds, name
        np.testing.assert_array_equal(values.data, wanted.data, err_msg=name)
    columns = Columns.learn(expected)
    kinds = [column.kind for column in columns.columns]
    number, category, time = ["number"], ["category"], ["time"]
    assert kinds == number * 3 + category * 2 + time * 2 + number * 2 + ["text"]
    assert Columns.learn(found) == columns
    np.testing.assert_array_equal(columns.encode(found), columns.encode(expected))


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        (lambda: pandas.array([1, None, 3], dtype="Int64"), "numbers"),
        (lambda: pandas.array([1.5, None, 3], dtype="Float32"), "numbers"),
        (lambda: pandas.array([True, None, False], dtype="boolean"), "truth values"),
        (lambda: pandas.Series([True, None, False], dtype=object), "truth values"),
        (lambda: pandas.Series([True, np.nan, False], dtype=object), "truth values"),
        (lambda: pandas.Series([1, pandas.NA, 3], dtype=object), "numbers"),
        (lambda: pandas.array(["a", None, "b"], dtype="string"), "strings"),
        (lambda: pandas.Series(["a", np.nan, "b"], dtype=object), "strings"),
        (lambda: pandas.Categorical(["a", None, "b"]), "strings"),
        (lambda: pandas.Categorical(["a", None, "b"], ordered=True), "strings"),
        (lambda: pandas.Categorical([7, None, 8]), "numbers"),
        (lambda: pandas.to_datetime(["2024-01-01", None, "1960-01-01"]), "times"),
        (lambda: pandas.to_datetime(["2024-01-01", None, "1960-01-01"]).astype("datetime64[ns]"), "times"),
        (lambda: pandas.to_datetime(["2024-01-01", None, "2024-07-01"]).tz_localize("Europe/Berlin"), "times"),
        (lambda: pandas.to_timedelta(["1h", None, "-3h"]), "numbers"),
        (lambda: pandas.array([decimal.Decimal(1), None], dtype=pandas.ArrowDtype(arrow.decimal128(5, 2))), "numbers"),
        (lambda: pandas.Series([decimal.Decimal(1), decimal.Decimal("NaN"), decimal.Decimal(2)]), "numbers"),
        (lambda: pandas.Series([datetime.time(9, 30), None, datetime.time(23)], dtype=object), "times"),
        (lambda: polars.Series([1, None, 3], dtype=polars.UInt8), "numbers"),
        (lambda: polars.Series(["a", None, "b"], dtype=polars.Categorical), "strings"),
        (lambda: polars.Series(["a", None, "b"], dtype=polars.Enum(["a", "b"])), "strings"),
        (lambda: polars.Series([datetime.time(9, 30), None, datetime.time(23)]), "times"),
        (lambda: polars.Series([NOON, None, NOON]).dt.replace_time_zone("Asia/Tokyo"), "times"),
        (lambda: arrow.chunked_array([["a", None], ["b"]]).dictionary_encode(), "strings"),
        (lambda: arrow.chunked_array([arrow.array([1, None, 3], arrow.float16())]), "numbers"),
        (lambda: arrow.chunked_array([arrow.array([NOON, None, NOON], arrow.timestamp("ns", "UTC"))]), "times"),
        (lambda: arrow.chunked_array([arrow.array([NOON, None, NOON], arrow.date64())]), "times"),
    ],
)  # fmt: skip
def test_columns_of_every_type(values: Callable[[], Any], holds: str) -> None:
    """What they hold, and the gap in the middle."""
    made = values()
    frame = pandas.DataFrame({"x": made}) if not type(made).__module__.startswith(("polars", "pyarrow")) else made
    found = column(frame)
    assert found.holds == holds
    assert found.missing[1]
    assert not found.missing[0]


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "records"])
def test_nothing_but_gaps(library: str) -> None:
    """A column without any value holds nothing, and is learned as such."""
    found = table(LIBRARIES[library]({"x": [None, None], "y": [1.0, 2.0]}))
    assert found.columns["x"].holds == "nothing"
    assert np.isfinite(Columns.learn(found).encode(found)).all()


def test_types_that_pandas_keeps_apart_when_all_is_missing() -> None:
    """Empty columns of any type hold nothing."""
    for values in ([None], [np.nan], [pandas.NaT], pandas.array([None], dtype="Int64"), pandas.Categorical([None])):
        assert column(pandas.DataFrame({"x": values})).holds == "nothing"


def test_time_zones_and_times_of_day() -> None:
    """A time is an instant, if its zone is known; a time of day is on the first of January 1970."""
    aware = NOON.replace(tzinfo=UTC).astimezone(datetime.timezone(datetime.timedelta(hours=5)))
    for time in (NOON, aware, np.datetime64(NOON), pandas.Timestamp(NOON), pandas.Timestamp(aware)):
        assert column([{"x": time}]).data == [SECONDS]
    assert column([{"x": datetime.time(1, 2, 3)}]).data == [3723.0]
    assert column([{"x": NOON.date()}]).data == [SECONDS // 86400 * 86400]
    assert column([{"x": np.timedelta64(1500, "ms")}]).data == [1.5]
    assert column([{"x": np.datetime64("NaT")}]).holds == "nothing"


def test_numbers_and_words_of_other_makes() -> None:
    """Integers, decimals and enumerations are what they stand for."""

    class Colour(enum.StrEnum):
        RED = "red"

    class Old(str, enum.Enum):  # noqa: UP042 - its str is not its value
        RED = "red"

    class Level(enum.IntEnum):
        HIGH = 3

    assert column([{"x": Colour.RED}, {"x": Old.RED}, {"x": np.str_("red")}]).data.tolist() == ["red"] * 3
    assert column([{"x": Level.HIGH}, {"x": np.int8(3)}, {"x": np.float16(3)}]).data.tolist() == [3.0] * 3
    assert column([{"x": decimal.Decimal("sNaN")}, {"x": decimal.Decimal("0.5")}]).missing.tolist() == [True, False]


def test_names_that_are_no_strings() -> None:
    """Numbers and tuples are names too; in records as in frames."""
    frame = pandas.DataFrame([[1.0, 2.0]], columns=[1, 0])
    assert table(frame).names == ("1", "0")
    assert [values.data[0] for _, values in table([{1: 1.0, 0: 2.0}])] == [1.0, 2.0]
    assert table(pandas.DataFrame([[1.0, 2.0]], columns=[("a", "b"), None])).names == ("('a', 'b')", "None")
    assert table(frame[0]).names == ("0",)


def test_series_and_lists_of_strings_are_tables_of_one_column() -> None:
    """Each has a name; in a stream it is the reference's."""
    texts = ["one", None, "two"]
    for data in (texts, tuple(texts), [None, *texts]):
        assert table(data).names == ("text",)
    for series in (pandas.Series(texts, name="note"), polars.Series("note", texts)):
        assert table(series).names == ("note",)
        assert table(series).columns["note"].holds == "strings"
    for block in (texts, pandas.Series(texts), polars.Series("other", texts), arrow.chunked_array([texts])):
        found = as_table(block, expected={"note": True})
        assert found is not None
        assert found.names == ("note",)


def test_a_frame_of_a_class_of_the_users_is_a_frame() -> None:
    """Libraries are built on others."""

    class Frame(pandas.DataFrame):  # type: ignore[misc]
        pass

    assert table(Frame({"x": [1, 2]})).names == ("x",)


def test_what_is_no_table() -> None:
    """Arrays, numbers and lists of other things are left to others."""
    for data in (np.ones((3, 2)), [1.0, 2.0], [[1, "a"]], [], [None], "text", 3, {"x": 1}):
        assert as_table(data) is None


class _Odd:
    pass


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: polars.LazyFrame({"x": [1]}), "A polars LazyFrame is not a table in memory; collect it"),
        (lambda: arrow.array([1]), "A pyarrow Int64Array is not a table in memory"),
        (lambda: pandas.DataFrame([[1, 2]], columns=["a", "a"]), "same name .*'a' 2 times.* names must differ. Rename"),
        (lambda: arrow.Table.from_arrays([arrow.array([1])] * 2, ["a", "a"]), "same name .*'a' 2 times"),
        (
            lambda: pandas.DataFrame([[1, 2]], columns=["1", 1]),
            "two columns called '1'; names must be different. Rename",
        ),
        (
            lambda: pandas.DataFrame({"x": ["a", 1]}),
            "'x' holds strings such as 'a' and numbers such as 1; .*of one kind",
        ),
        (lambda: [{"x": True}, {"x": 2}], "holds truth values such as True and numbers such as 2"),
        (lambda: [{"x": 2.0}, {"x": NOON}], "holds numbers such as 2.0 and times such as"),
        (lambda: pandas.DataFrame({"x": [[1], [2]]}), r"'x' holds a list such as '\[1\]'; columns hold .*leave it out"),
        (lambda: polars.DataFrame({"x": [{"a": 1}]}), "'x' holds a dict such as .*Take it apart"),
        (lambda: pandas.DataFrame({"x": [1j]}), "'x' holds a complex"),
        (lambda: [{"x": b"a"}], "'x' holds a bytes"),
        (lambda: [{"x": _Odd()}], "'x' holds a _Odd"),
        (lambda: pandas.DataFrame({"x": pandas.period_range("2024", "2026", freq="Y")}), "'x' holds a Period"),
        (lambda: [{"x": 10**400}], r"'x' holds a number of more than 300 digits, '10000.*'\.\.\.; .*logarithm"),
        (lambda: [{"x": 10**5000}], r"'x' holds a number of more than 300 digits, one that cannot be shown.*logarithm"),
        (lambda: [{"x": 1}, 5], "Row 2 .* is a int such as '5', and other rows are of type dict.* Mend the row"),
        (lambda: [{"x": 1}, None], "Row 2 .* is a NoneType"),
    ],
)
def test_frames_that_are_refused(data: Callable[[], Any], message: str) -> None:
    """With the column, an example, and what to do."""
    with pytest.raises(InputError, match=message):
        as_table(data())


def test_frames_without_narwhals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(
        MissingExtraError, match=r"Reading data frames needs .*'narwhals': pip install 'tocsin\[data\]'"
    ):
        as_table(pandas.DataFrame({"x": [1]}))


def test_records_that_lack_names() -> None:
    """A gap in a reference; in a stream a gap where the reference has some, and an error where it has none."""
    found = table([{"x": 1.0, "y": "a"}, {"y": "b"}, {"x": 3.0}])
    np.testing.assert_array_equal(found.columns["x"].data, [1, np.nan, 3])
    assert found.columns["y"].data.tolist() == ["a", "b", None]
    stream = as_table([{"y": "a"}, {"y": "b"}], expected={"x": True, "y": False})
    assert stream is not None
    assert stream.columns["x"].holds == "nothing"
    with pytest.raises(InputError, match=r"Row 2 .* lacks 'y', and has 'z' besides; .*missing, say so by None"):
        as_table([{"x": 1, "y": "a"}, {"x": 1, "z": 2}], expected={"x": True, "y": False})
