"""Columns: their kinds, the streams that have them, and records one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_tables import HOUR, LIBRARIES, NOON, mixed, of, pandas, table
from tocsin._common.errors import InputError
from tocsin._data.tables import OTHERS, Columns, as_table, one_row

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
        ({"x": "colour"}, "'colour'} is unknown; choose one of 'auto', 'number', 'category'"),
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
        (
            lambda data: data.update(flow=[*data["flow"][:-1], np.inf]),
            "Row 20 .*, column 'flow' holds inf; .*be finite",
        ),
        (lambda data: data.update(level=[-np.inf, *data["flow"][1:]]), "Row 1 .*, column 'level' holds -inf"),
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
