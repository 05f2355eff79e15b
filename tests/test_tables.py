"""Tables: whatever library a frame comes from it is the same table, every kind of column is on the same scale, and the
promise is kept."""

from __future__ import annotations

import datetime
import decimal
import enum
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from benchmarks.runs import run_lengths
from hypothesis import assume, given
from hypothesis import strategies as st

from tocsin import Detector, Independent
from tocsin.compute.arrays import Float64Array
from tocsin.errors import DependenceWarning, InputError, MissingExtraError
from tocsin.tables import OTHERS, Columns, Table, Values, as_table, one_row
from tocsin.tables.column import APART, DIRECTIONS, KNEE, MOST_CORNERS, RARE, Column
from tocsin.tables.ngrams import PLACES, ngram_vectors

pandas: Any = import_module("pandas")
polars: Any = import_module("polars")
arrow: Any = import_module("pyarrow")

UTC = datetime.UTC
NOON = datetime.datetime(2024, 3, 7, 12, 30, 15)
HOUR = datetime.timedelta(hours=1)
SECONDS = (NOON - datetime.datetime(1970, 1, 1)).total_seconds()

LIBRARIES: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "pandas": lambda columns: pandas.DataFrame(columns),
    "polars": lambda columns: polars.DataFrame(columns, strict=False),
    "arrow": lambda columns: arrow.table(columns),
    "record batch": lambda columns: arrow.RecordBatch.from_pydict(columns),
    "records": lambda columns: [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
}


def table(data: Any) -> Table:
    """What must be a table."""
    found = as_table(data)
    assert found is not None
    return found


def column(data: Any) -> Values:
    """The only column of a table."""
    ((_, values),) = table(data)
    return values


def of(columns: Mapping[str, Any], kinds: Mapping[str, Any] | None = None) -> Columns:
    """What is learned from columns of Python objects."""
    return Columns.learn(table(LIBRARIES["records"](columns)), kinds)


def rows(columns: Columns, **values: Any) -> Float64Array:
    """Features of a table, given as columns."""
    return columns.encode(table(LIBRARIES["records"](values)))


def mixed(n: int, seed: int = 0) -> dict[str, list[Any]]:
    """A column of every kind, three of them with gaps."""
    rng = np.random.default_rng(seed)
    gap = rng.random(n) < 0.2
    return {
        "flow": rng.normal(5, 2, n).tolist(),
        "count": rng.poisson(3, n).tolist(),
        "level": [None if gone else x for gone, x in zip(gap, rng.normal(size=n).tolist(), strict=True)],
        "open": [None if gone else x for gone, x in zip(gap, (rng.random(n) < 0.3).tolist(), strict=True)],
        "state": [
            None if gone else x for gone, x in zip(gap, rng.choice(["on", "off", "idle"], n).tolist(), strict=True)
        ],
        "seen": [NOON + datetime.timedelta(seconds=int(s)) for s in rng.integers(0, 10**7, n)],
        "day": [datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 300, n)],
        "took": [datetime.timedelta(seconds=float(s)) for s in rng.integers(1, 1000, n)],
        "price": [decimal.Decimal(int(c)) / 4 for c in rng.integers(1, 10**4, n)],  # Arrow rounds hundredths otherwise
        "note": [f"item {i} of {rng.integers(10**6)}" for i in range(n)],
    }


# Libraries


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
        (lambda: [{"x": 10**400}], r"'x' holds a number of more than 300 digits, 10000.*\.\.\.; .*logarithm"),
        (lambda: [{"x": 1}, 5], "Row 1 is a int such as '5', and other rows are of type dict.* Mend the row"),
        (lambda: [{"x": 1}, None], "Row 1 is a NoneType"),
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
    with pytest.raises(InputError, match=r"Row 1 lacks 'y', and has 'z' besides; .*missing, say so by None"):
        as_table([{"x": 1, "y": "a"}, {"x": 1, "z": 2}], expected={"x": True, "y": False})


# Kinds


def test_kinds_are_seen_from_the_values() -> None:
    """Names are categories if each comes up often; else they are text. What a library calls categorical is."""
    n = 50
    words = [f"w{i % 10}" for i in range(n)]
    frame = pandas.DataFrame(
        {
            "few": words,
            "many": [f"w{i % 11}" for i in range(n)],
            "said": pandas.Categorical([f"w{i}" for i in range(n)]),
            "codes": pandas.Categorical([i % 3 for i in range(n)]),
            "digits": [i % 3 for i in range(n)],
            "flag": [i % 2 == 0 for i in range(n)],
        }
    )
    kinds = {column.name: column.kind for column in Columns.learn(table(frame)).columns}
    expected = {"few": "category", "many": "text", "said": "category", "codes": "category"}
    assert kinds == {**expected, "digits": "number", "flag": "category"}


def test_kinds_are_given() -> None:
    """By name, and for all others by '*'."""
    data = {"x": [1, 2] * 10, "flag": [True, False] * 10, "time": [NOON, NOON - HOUR] * 10, "word": ["a", "b"] * 10}
    kinds = {"x": "category", "flag": "number", "time": "elapsed", "word": "text"}
    assert {column.name: column.kind for column in of(data, kinds).columns} == kinds
    assert {column.kind for column in of(data, {OTHERS: "category"}).columns} == {"category"}
    watched = of(data, {"x": "auto", "time": "category", OTHERS: "ignore"})
    assert [(column.name, column.kind) for column in watched.columns] == [("x", "number"), ("time", "category")]
    assert of(data, {"x": "ignore"}).names == ("flag", "time", "word")


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"y": "number"}, "kinds names a column 'y', and there is none; there are 'x', 'word'"),
        ({"x": "colour"}, "'colour'}: choose one of 'auto', 'number', 'category'"),
        ({"x": "text"}, "'x' holds numbers, which cannot be taken for 'text'; choose 'number' or 'category'.*'ignore'"),
        ({"word": "number"}, "'word' holds strings, which cannot be taken for 'number'; choose 'category' or 'text'"),
        ({OTHERS: "time"}, "'x' holds numbers, which cannot be taken for 'time'"),
        ({OTHERS: "ignore"}, "no columns to watch; it must have at least one"),
        ("category", r"kinds='category' must give kinds by name, such as \{'colour': 'category'\}"),
    ],
)
def test_kinds_that_are_refused(kinds: Any, message: str) -> None:
    """What cannot be, and what can."""
    with pytest.raises(InputError, match=message):
        of({"x": [1.0, 2.0], "word": ["a", "b"]}, kinds)


# Streams


def test_columns_in_another_order_are_put_right() -> None:
    """By name, in any library."""
    data = mixed(40)
    columns = of(data)
    wanted = columns.encode(table(LIBRARIES["records"](data)))
    turned = dict(reversed(data.items()))
    for library, make in LIBRARIES.items():
        np.testing.assert_array_equal(columns.encode(table(make(turned))), wanted, err_msg=library)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.pop("flow"), "the table lacks 'flow'. Rename, add or drop columns, or fit"),
        (lambda data: data.update(extra=data["flow"]), "the table has 'extra' besides"),
        (lambda data: data.update(Flow=data.pop("flow")), "the table lacks 'flow' and has 'Flow' besides"),
        (
            lambda data: data.update(flow=data["state"]),
            "'flow' holds strings such as 'o.*'; in the reference it held nu",
        ),
        (
            lambda data: data.update(flow=data["open"]),
            "'flow' holds truth values such as '(true|false)'; .*held numbers",
        ),
        (lambda data: data.update(flow=data["seen"]), "'flow' holds times such as '.*'; .*Mend the stream, or fit"),
        (lambda data: data.update(state=data["flow"]), "'state' holds numbers such as '.*'; .*held strings"),
        (lambda data: data.update(seen=data["flow"]), "'seen' holds numbers such as '.*'; .*held times"),
        (lambda data: data.update(flow=[*data["flow"][:-1], np.inf]), "Row 19, column 'flow' holds inf; .*be finite"),
        (lambda data: data.update(level=[-np.inf, *data["flow"][1:]]), "Row 0, column 'level' holds -inf"),
    ],
)
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_streams_of_other_columns(library: str, change: Callable[[Any], object], message: str) -> None:
    """Missing, added, renamed, or of another kind: an error that says which."""
    columns, data = of(mixed(40)), mixed(20, seed=1)
    change(data)
    with pytest.raises(InputError, match=message):
        columns.encode(table(LIBRARIES[library](data)))


def test_ignored_columns_may_hold_anything_and_come_and_go() -> None:
    """Lists, mixtures: they are not even read."""
    odd = pandas.DataFrame({"x": range(20), "odd": [[1]] * 20, "mess": [1, "a"] * 10})
    kinds: Any = {"odd": "ignore", "mess": "ignore"}
    found = as_table(odd, kinds.__contains__)
    assert found is not None
    columns = Columns.learn(found, kinds)
    wanted = columns.encode(found)
    np.testing.assert_array_equal(columns.encode(table(odd[["x"]])), wanted)
    records = odd.to_dict("records")
    skipped = as_table(records, columns.ignores, columns.expected)
    assert skipped is not None
    np.testing.assert_array_equal(columns.encode(skipped), wanted)
    with pytest.raises(InputError, match="has 'new' besides"):
        columns.encode(table(odd[["x"]].assign(new=1)))


# Features


def test_missing_values_are_corners_of_their_own() -> None:
    """At a squared distance of 2 or more from every value; new ones where the reference has none share a feature."""
    data = mixed(200)
    columns = of(data)
    known = columns.encode(table(LIBRARIES["records"](data)))
    assert known.shape == (200, columns.width)
    assert not known[:, -1].any()
    for name in columns.names:
        gone = rows(columns, **{own: [None] if own == name else values[:1] for own, values in data.items()})
        mine = columns.owners == columns.names.index(name)
        had_gaps = columns.columns[columns.names.index(name)].missing > 0
        mine[-1] = not had_gaps
        there = known[[value is not None for value in data[name]]]
        assert ((there - gone)[:, mine] ** 2).sum(1).min() >= 2 - 1e-12, name
        assert (gone[0, -1] > 0) is not had_gaps


def test_values_that_go_missing_in_several_columns_add_up() -> None:
    """Each adds its own squared distance to the feature that they share."""
    columns = of({"x": [1.0, 2.0] * 5, "word": ["a", "b"] * 5, "flag": [True, False] * 5})
    (row,) = rows(columns, x=[None], word=[None], flag=[None])
    np.testing.assert_allclose(row, [0.0] * (columns.width - 1) + [np.sqrt(APART**2 + 2)])


def test_common_categories_have_corners_and_new_ones_share_one() -> None:
    """If all were seen often enough; one that was not is enough for directions instead."""
    words = ["a"] * 20 + ["b"] * RARE
    columns = of({"x": words}, {"x": "category"})
    assert columns.columns[0].values == ("a", "b")
    assert columns.columns[0].corners
    unseen, other, a, b = rows(columns, x=["never", "neither", "a", "b"])
    np.testing.assert_array_equal(unseen, other)
    assert ((a - b) ** 2).sum() == ((a - unseen) ** 2).sum() == 2
    assert not of({"x": [*words, *["c"] * (RARE - 1)]}, {"x": "category"}).columns[0].corners


def test_what_the_reference_never_shows_is_not_lost_among_many_columns() -> None:
    """A first gap, and a new category where none is rare, count for a quarter of the columns; rare ones do not."""
    data: dict[str, list[Any]] = {f"x{i}": [1.0, 2.0] * 10 for i in range(13)}
    columns = of({**data, "full": ["a", "b"] * 10, "rare": ["a"] * 18 + ["b", "c"], "gaps": [None, 1.0] * 10})
    usual: dict[str, Any] = {name: [1.0] for name in columns.names} | {"full": ["a"], "rare": ["a"]}
    (row,) = rows(columns, **usual)
    for change, squared in (
        ({"x0": [None]}, 4 * APART**2),
        ({"full": [None]}, 4 + 1),
        ({"full": ["new"]}, 4 + 1),
        ({"rare": ["new"]}, 2 - 2 * float(Column.direction("a") @ Column.direction("new"))),
        ({"gaps": [None]}, APART**2),
    ):
        (other,) = rows(columns, **{**usual, **change})
        # A number that goes missing leaves its own place as well.
        assert squared - 1e-9 < ((row - other) ** 2).sum() < squared + 1


def test_many_categories_and_rare_ones_have_directions() -> None:
    """Features do not grow with the names that there are, and a name never seen is as far from others as they are."""
    many = [f"w{i}" for i in range(MOST_CORNERS + 1) for _ in range(10)]
    for words in (many, ["a"] * 300 + ["b"] * (len(many) - 301) + ["c"]):
        columns = of({"x": words})
        (learned,) = columns.columns
        assert learned.kind == "category"
        assert not learned.corners
        assert learned.width == DIRECTIONS
        names = [*sorted(set(words)), "new", "another"]
        encoded = rows(columns, x=names)
        squares = [((x - y) ** 2).sum() for i, x in enumerate(encoded) for y in encoded[:i]]
        assert np.mean(squares) == pytest.approx(2, abs=0.2)
        assert min(squares) > 0.5
        decoded = [record["x"] for record in columns.decode(encoded)]
        assert decoded == [*names[:-2], "other", "other"]


@pytest.mark.promise
def test_a_column_of_many_equal_categories_keeps_the_promise() -> None:
    """A hundred of them, ten times each: which of them the reference has most of is chance, and must not matter.

    Corners for the commonest of a reference, and one for all others, rang fifteen times too often here. Of 20,000 rows
    at one alarm in 500, 40 are expected; over references of this size their number varies by a fifth, and by its own
    root: more than 90 would be five standard deviations off.
    """
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(100)]
    reference, stream = (rng.choice(words, count).tolist() for count in (1000, 20_000))
    detector = Detector(500, sampler=Independent(), interval=False, seed=1).fit(reference, progress=False)
    assert detector.update_many(stream, reset_on_alarm=True).alarm.sum() < 90


def test_numbers_as_categories() -> None:
    """1 and 1.0 are the same name, in whatever way they come."""
    columns = of({"x": [1, 2] * 10}, {"x": "category"})
    assert set(columns.columns[0].values) == {"1", "2"}
    first, second, other = rows(columns, x=[1.0, 2, 1.5])
    assert ((first - second) ** 2).sum() == ((first - other) ** 2).sum() == 2
    large = of({"x": [10**15 + 1, 10**15 + 2] * 10}, {"x": "category"})
    assert len(large.columns[0].values) == 2


@pytest.mark.parametrize(
    "values",
    [
        np.full(100, 3.7),
        np.array([0.0] * 80 + [5.0] * 20),
        np.array([0.0] * 99 + [1e200]),
        np.array([0.1 + 0.2] * 40 + [0.3] * 35 + [1.0] * 25),
        np.random.default_rng(0).standard_cauchy(100) * 1e150,
        np.random.default_rng(0).normal(size=100) * 1e-300,
    ],
    ids=["constant", "quartiles equal", "one wild", "rounding", "huge", "tiny"],
)
def test_numbers_of_awkward_spread(values: Float64Array) -> None:
    """Features are finite and of moderate size, and so are those of the wildest stream; the order is kept."""
    columns = of({"x": values.tolist()})
    known = rows(columns, x=values.tolist())
    assert np.isfinite(known).all()
    assert known.var(0).max() <= 2 + 1e-9
    wild = rows(columns, x=sorted([-1.7e308, -1e300, -1.0, columns.columns[0].centre, 1.0, 1e300, 1.7e308]))[:, 0]
    assert np.isfinite(wild).all()
    assert (np.diff(wild) >= 0).all()
    assert np.abs(wild).max() < 1000


def test_far_numbers_are_drawn_in() -> None:
    """Up to the knee a number is its distance from the median in spreads; a hundred spreads are not thirty knees."""
    columns = of({"x": np.random.default_rng(0).normal(7, 3, 4000).tolist()})
    (learned,) = columns.columns
    assert abs(learned.centre - 7) < 0.3
    assert abs(learned.spread - 3) < 0.3
    near, far = rows(columns, x=[learned.centre + KNEE * learned.spread, learned.centre + 100 * learned.spread])[:, 0]
    assert near == pytest.approx(KNEE)
    assert KNEE < far < 3 * KNEE


def test_a_number_at_the_median_is_not_missing() -> None:
    """Though it is 0 spreads away from it, and another column of its row has a gap where the reference has none."""
    columns = of({"x": [1, 2, 2, 2, 3] * 4, "gaps": [None, 1.0, 2.0, 3.0, 4.0] * 4, "word": ["a", "b"] * 10})
    record = {"x": 2, "gaps": 2.5, "word": None}
    encoded = columns.encode(table([record]))
    (shown,) = columns.decode(encoded)
    assert shown == {"x": 2.0, "gaps": 2.5, "word": None}
    quick = columns.encode_record(record)
    assert quick is not None
    assert quick.tobytes() == encoded.tobytes()
    assert (encoded[0, :-1] ** 2).sum() == 0


def test_a_clock_is_not_watched() -> None:
    """Times that never go back say when rows came; if they do, or if it is said so, they are data."""
    clock = [NOON + 5 * i * HOUR for i in range(20)]
    data: dict[str, list[Any]] = {"x": [1.0, 2.0] * 10, "when": clock}
    columns = of(data)
    assert (columns.names, columns.ignored) == (("x",), ("when",))
    assert columns.encode(table([{"x": 1.0, "when": NOON}])).shape == columns.encode(table([{"x": 1.0}])).shape
    assert of(data, {"when": "time"}).names == ("x", "when")
    assert of({**data, "when": [None, *clock[1:]]}).names == ("x",)
    assert of({**data, "when": clock[::-1]}).names == ("x", "when")
    with pytest.raises(InputError, match="no columns to watch besides 'when', which only says when rows came"):
        of({"when": clock})


def test_times_lie_on_circles() -> None:
    """Midnight is near midnight, Sunday near Monday, and a week later is the same."""
    columns = of({"x": [NOON + 5 * i * HOUR for i in range(200)]}, {"x": "time"})
    late = datetime.datetime(2024, 3, 10, 23, 59, 59)  # a Sunday
    hours = datetime.timedelta(hours=1)
    sunday, monday, week_later, noon = rows(
        columns, x=[late, late + hours / 3600, late + 168 * hours, late + 12 * hours]
    )
    assert ((sunday - monday) ** 2).sum() < 1e-6
    np.testing.assert_allclose(sunday, week_later, atol=1e-9)
    assert ((sunday - noon) ** 2).sum() > 1.5


def test_a_column_without_values_in_the_reference_may_get_some() -> None:
    """Of any kind: that is a change, to be found and not refused."""
    columns = of({"x": [None] * 10, "y": [1.0, 2.0] * 5})
    gap, *others = rows(columns, x=[None, 3.0], y=[1.0, 1.0])
    for other in (*others, *rows(columns, x=["a"], y=[1.0]), *rows(columns, x=[NOON], y=[1.0])):
        assert ((gap - other) ** 2).sum() == 2


SCALES: dict[str, tuple[Callable[[np.random.Generator, int], Any], float, float]] = {
    "normal": (lambda rng, n: rng.normal(1e6, 1e3, n), 1.6, 2.4),
    "uniform": (lambda rng, n: rng.random(n), 1.0, 2.4),
    "heavy-tailed": (lambda rng, n: rng.standard_cauchy(n), 1.0, 4.3),
    "skewed": (lambda rng, n: rng.lognormal(0, 2, n), 1.0, 4.3),
    "three quarters zero": (lambda rng, n: rng.exponential(size=n) * (rng.random(n) < 0.26), 1.0, 4.3),
    "two far modes": (lambda rng, n: rng.normal(1000.0 * (rng.random(n) < 0.2), 1.0), 1.0, 4.3),
    "counts": (lambda rng, n: rng.poisson(0.3, n), 1.0, 4.3),
    "one in five missing": (lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)), 1.6, 2.6),
    "eight categories": (lambda rng, n: rng.choice(list("abcdefgh"), n), 1.6, 2.0),
    "times": (lambda rng, n: [NOON + datetime.timedelta(seconds=int(s)) for s in rng.integers(0, 10**7, n)], 1.6, 2.4),
    "texts": (lambda rng, n: ["".join(rng.choice(list("abcdefgh "), 30)) for _ in range(n)], 1.6, 2.1),
}


@pytest.mark.parametrize("law", SCALES)
def test_every_kind_of_column_is_on_the_same_scale(law: str) -> None:
    """Squared distances of random rows average about 2: no column drowns the others, and none is lost among them."""
    make, least, most = SCALES[law]
    rng = np.random.default_rng(0)
    data = {"x": list(make(rng, 2000))}
    known = rows(of(data), **data)
    average = ((known - known[rng.permutation(2000)]) ** 2).sum(1).mean()
    assert least < average < most


# A record by itself


@given(st.data())
def test_a_record_gives_what_a_table_of_it_gives(data: st.DataObject) -> None:
    """Quickly or not, to the last bit, gaps and huge numbers included; and in a table of many rows."""
    columns = of(
        {
            "x": [*np.random.default_rng(0).normal(size=30)],
            "y": [None, *range(29)],
            "z": [True, False] * 15,
            "w": ["a"] * 15 + [None] * 5 + ["b"] * 10,
            "v": ["c", "d"] * 15,
        }
    )
    numbers = st.none() | st.floats(allow_infinity=False) | st.integers(-(10**300), 10**300)
    words = st.none() | st.sampled_from(["a", "b", "c", "d", "e"])
    record = {
        "v": data.draw(words),
        "x": data.draw(numbers),
        "y": data.draw(numbers),
        "z": data.draw(st.none() | st.booleans()),
        "w": data.draw(words),
    }
    quick = columns.encode_record(record)
    assert quick is not None
    np.testing.assert_array_equal(quick, columns.encode(table([record])))
    others = [{"x": 0.5, "y": 1, "z": None, "w": "a", "v": None}] * 3
    np.testing.assert_array_equal(quick[0], columns.encode(table([*others, record, *others]))[3])


@pytest.mark.parametrize(
    "record",
    [
        {"x": "1", "w": "a"},
        {"x": True, "w": "a"},
        {"x": np.inf, "w": "a"},
        {"x": 10**400, "w": "a"},
        {"x": 1, "w": 2},
        {"x": 1},
        {"x": 1, "w": "a", "v": 1},
    ],
)
def test_a_record_that_is_not_as_it_should_be_takes_a_closer_look(record: Any) -> None:
    """The quick way leaves it to the other, which has the errors."""
    columns = of({"x": [1.0, 2.0] * 9, "w": ["a", "b"] * 9})
    assert columns.encode_record(record) is None
    with pytest.raises(InputError):
        columns.encode(one_row(record, columns.expected))


# N-grams


TEXTS = st.text(max_size=40)


@given(TEXTS)
def test_a_text_is_a_vector_of_length_1(text: str) -> None:
    """Unless there is nothing in it, or its few n-grams cancel."""
    (vector,) = ngram_vectors([text])
    assert vector.shape == (PLACES,)
    length = np.linalg.norm(vector)
    assert length == pytest.approx(1) or (length == 0 and len(text.split()) <= 2)
    assert text.strip() or length == 0


@given(st.text(st.characters(max_codepoint=127), max_size=40), st.sampled_from([" ", "\n", "\t \t"]))
def test_case_and_white_space_do_not_matter(text: str, space: str) -> None:
    """Words are what counts."""
    plain, loud, spread = ngram_vectors([text, text.upper(), space + space.join(text.split()) + space])
    np.testing.assert_array_equal(plain, loud)
    np.testing.assert_array_equal(plain, spread)


@given(st.lists(st.none() | TEXTS, max_size=6))
def test_a_text_is_the_same_in_every_batch(texts: list[str | None]) -> None:
    """To the last bit."""
    together = ngram_vectors(texts)
    assert together.shape == (len(texts), PLACES)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_array_equal(ngram_vectors([text])[0], vector)


def counted(text: str) -> dict[bytes, int]:
    """How often each n-gram occurs."""
    told = f" {' '.join(text.casefold().split())} ".encode()
    grams = [told[i : i + 3] for i in range(len(told) - 2)]
    return {gram: grams.count(gram) for gram in grams}


@given(TEXTS)
def test_ngrams_are_counted_by_place_and_sign(text: str) -> None:
    """As 32-bit arithmetic in Python's own numbers does it."""
    assume(text.strip())
    vector = np.zeros(PLACES)
    for gram, count in counted(text).items():
        code = 2166136261
        for byte in gram:
            code = ((code ^ byte) * 16777619) % 2**32
        code = ((code ^ code >> 15) * 2246822519) % 2**32
        code ^= code >> 13
        vector[code % PLACES] += count if code >> 16 & 1 else -count
    np.testing.assert_allclose(ngram_vectors([text])[0], vector / (np.linalg.norm(vector) or 1), atol=1e-12)


def test_texts_are_as_similar_as_their_ngrams() -> None:
    """Places are shared, but fairly: the cosine of vectors is that of counts, on average.

    The average of 400 differences, each of about 0.067, is within 0.017 of 0 but for once in 10^6; were signs left out,
    it would be off by 0.06.
    """
    rng = np.random.default_rng(0)
    words = ["pump", "valve", "flow", "steam", "meter", "leak", "open", "shut", "high", "hot", "cold", "noise", "dust"]
    differences = []
    for _ in range(400):
        one, other = (" ".join(rng.choice(words, 6)) for _ in range(2))
        a, b = counted(one), counted(other)
        dot = sum(count * b.get(gram, 0) for gram, count in a.items())
        sizes = [np.sqrt(sum(count**2 for count in own.values())) for own in (a, b)]
        first, second = ngram_vectors([one, other])
        differences.append(first @ second - dot / (sizes[0] * sizes[1]))
    assert abs(np.mean(differences)) < 0.017
    assert np.std(differences) < 0.15


def test_broken_characters_are_text_too() -> None:
    """Half of a surrogate pair, as JSON may hold it."""
    assert np.linalg.norm(ngram_vectors(["\ud800 broken"])) == pytest.approx(1)


# The promise, on a mixed table

PROMISED, REFERENCES, RUNS, POINTS = 200, 4, 200, 1000
"""What is promised, fits to references of their own, runs of each, and points in a reference."""

BOUND_OF_MEAN, BOUND_OF_LAW = 5.3, 2.7
"""Exceeded once in 10^6 by a Student variable of 80 degrees of freedom, and by the Kolmogorov distance x sqrt(n)."""


def thirty(
    rng: np.random.Generator, n: int, gaps: float = 0.2, new_gaps: float = 0.0, new_category: float = 0.0
) -> Table:
    """Thirty columns: categories with ties and rare ones, numbers with gaps, truth values, a heavy tail, counts.

    gaps: the part of two columns that is missing.  new_gaps: the part of a column that is missing, and was not.
    new_category: the part of a column that is of a category not seen before.
    """
    columns: dict[str, Values] = {}
    for i, count in enumerate((2, 3, 4, 6, 9, 14, 20, 30, 60, 200)):
        shares = 1 / np.arange(1, count + 1)
        words = np.array([f"{k}" for k in range(count)], dtype=object)
        drawn = words[rng.choice(count, n, p=shares / shares.sum())]
        new = rng.random(n) < (new_category if i == 3 else 0.0)
        columns[f"category {i}"] = Values("strings", np.where(new, "new", drawn))
    for i, part in enumerate((gaps, gaps, 0.2, 0.2, 0.2)):
        columns[f"gaps {i}"] = Values.of_numbers(np.where(rng.random(n) < part, np.nan, rng.normal(size=n)))
    for i, share in enumerate((0.5, 0.3, 0.1, 0.02)):
        columns[f"truth {i}"] = Values.of_numbers(rng.random(n) < share, "truth values")
    for i in range(9):
        missing = rng.random(n) < (new_gaps if i == 0 else 0.0)
        columns[f"number {i}"] = Values.of_numbers(np.where(missing, np.nan, rng.normal(size=n)))
    columns["count"] = Values.of_numbers(rng.poisson(2, n))
    columns["tail"] = Values.of_numbers(rng.standard_cauchy(n))
    return Table(columns)


@pytest.fixture(scope="module")
def detectors() -> list[Detector]:
    """Fitted to references of their own."""
    with warnings.catch_warnings():
        # One reference in a hundred seems to depend on its order: the promise holds there too.
        warnings.simplefilter("ignore", DependenceWarning)
        return [
            Detector(PROMISED, window=(8, 25), sampler=Independent(), seed=i).fit(
                thirty(np.random.default_rng([5, i]), POINTS)
            )
            for i in range(REFERENCES)
        ]


@pytest.mark.promise
def test_the_promise_is_kept_on_mixed_tables(detectors: list[Detector]) -> None:
    """Thirty columns of all kinds, with ties and gaps.

    Mean: the average of log(ART / ERT) over the references, in standard errors. These are what the calibration itself
    tells (about 0.12 for such a reference) and that of the runs. The test fails falsely once in 10^6, and sees a run
    time that is off by 40 %.
    Law: run lengths in units of their detector's average against the geometric law, as in test_promise: once in 10^6,
    and a distortion of 10 % of the distribution function.
    """
    logs, errors, scaled = [], [], []
    for i, detector in enumerate(detectors):
        rng = np.random.default_rng([6, i])
        runs = run_lengths(detector, thirty, rng, RUNS)  # type: ignore[arg-type]
        told = detector.calibration_.errors
        assert told is not None
        logs.append(np.log(runs.mean() / PROMISED))
        errors.append(told.total**2 + 1 / RUNS)
        scaled.append([-np.expm1(times * np.log1p(-1 / runs.mean())) for times in (runs, runs - 1)])
    assert abs(np.sum(logs)) < BOUND_OF_MEAN * np.sqrt(np.sum(errors))
    after, before = np.sort(np.concatenate(scaled, axis=1), axis=1)
    n = after.size
    distance = max((np.arange(1, n + 1) / n - after).max(), (before - np.arange(n) / n).max())
    assert distance * np.sqrt(n) < BOUND_OF_LAW


CHANGES: dict[str, tuple[dict[str, float], int]] = {
    "more gaps in two columns": ({"gaps": 0.6}, 60),
    "gaps where there were none": ({"new_gaps": 0.3}, 25),
    "a new category": ({"new_category": 0.3}, 60),
}


@pytest.mark.promise
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_in_what_is_missing_or_new_is_found(detectors: list[Detector], change: str) -> None:
    """Alone: every value that is there comes from the same law as before.

    Measured are medians of 28, 14 and 24, and four delays in five within the bound. Of 60 delays half are then beyond
    it less than once in 10^6. Without power delays would be geometric with mean PROMISED, and half of 60 within 60,
    or 25, once in 10^4, or 10^12.
    """
    options, bound = CHANGES[change]
    delays = []
    for i in range(60):
        rng = np.random.default_rng([7, i])
        detector = detectors[i % REFERENCES]
        detector.reset()
        while detector.update_until_alarm(thirty(rng, 30)).alarm.any():
            detector.reset()
        delays.append(len(detector.update_until_alarm(thirty(rng, 20 * PROMISED, **options))))
    assert np.median(delays) <= bound
