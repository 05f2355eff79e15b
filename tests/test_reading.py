"""Every format gives the same rows, and every bad row an error that names it."""

from __future__ import annotations

import io
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin._cli.reading import READERS, Selection, read_blocks, read_lines, read_whole, source_name
from tocsin._common.errors import InputError, MissingExtraError
from tocsin._compute.arrays import Float64Array
from tocsin._data.tables import Columns, Table

arrow: Any = import_module("pyarrow")
parquet: Any = import_module("pyarrow.parquet")
feather: Any = import_module("pyarrow.feather")

ROWS = np.random.default_rng(0).normal(size=(50, 3))
NAMES = ("a", "b", "c")


def write(path: Path, rows: Float64Array = ROWS, names: tuple[str, ...] = NAMES) -> str:
    """Rows in the format of the suffix, to the last bit."""
    if path.suffix == ".csv":
        path.write_text("\n".join([",".join(names), *(",".join(map(repr, row)) for row in rows.tolist())]) + "\n")
    elif path.suffix in (".jsonl", ".ndjson"):
        path.write_text("\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows.tolist()))
    elif path.suffix == ".npy":
        np.save(path, rows)
    elif path.suffix == ".npz":
        np.savez(path, **dict(zip(names, rows.T, strict=True)))
    elif path.suffix == ".feather":
        feather.write_feather(arrow.table(dict(zip(names, rows.T, strict=True))), path, chunksize=20)
    else:
        parquet.write_table(arrow.table(dict(zip(names, rows.T, strict=True))), path)
    return str(path)


def rows_of(table: Table) -> Float64Array:
    """A table of numbers as an array."""
    return np.column_stack([values.data for _, values in table])


def whole(path: str, columns: list[str] | None = None) -> Table:
    """All rows, which must be numbers without gaps."""
    tables = list(read_blocks(path, Selection(columns)))
    if not tables:
        raise InputError(f"{source_name(path)} holds no rows")
    return Table.join(tables)


def text(tmp_path: Path, name: str, content: str) -> str:
    """A file with this content, to the byte."""
    path = tmp_path / name
    path.write_text(content, newline="")
    return str(path)


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("size", [1, 7, 50, 4096])
def test_every_format_and_block_size_gives_the_same_rows(tmp_path: Path, suffix: str, size: int) -> None:
    """The numbers that were written, whatever the format and the size of blocks."""
    blocks = list(read_blocks(write(tmp_path / f"data{suffix}"), size=size))
    assert all(len(block) == size for block in blocks[:-1]) or suffix == ".feather"
    assert all(len(block) <= size for block in blocks)
    assert all(rows_of(block).dtype == np.float64 for block in blocks)
    np.testing.assert_array_equal(np.concatenate([rows_of(block) for block in blocks]), ROWS)
    assert blocks[0].names == (("1", "2", "3") if suffix == ".npy" else NAMES)


@pytest.mark.parametrize("suffix", READERS)
def test_columns_are_chosen_and_ordered(tmp_path: Path, suffix: str) -> None:
    """Columns come in the order asked for; an unknown one is an error that lists those there are."""
    path = write(tmp_path / f"data{suffix}")
    columns = ["3", "1"] if suffix == ".npy" else ["c", "a"]
    np.testing.assert_array_equal(rows_of(whole(path, columns)), ROWS[:, [2, 0]])
    with pytest.raises(InputError, match="no column 'd'; its columns are"):
        whole(path, ["a", "d"] if suffix != ".npy" else ["1", "d"])


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("size", [1, 8, 4096])
def test_a_bad_row_is_named_after_the_rows_before_it(tmp_path: Path, suffix: str, size: int) -> None:
    """The rows before a bad one are handed out, and no others, whatever the size of blocks."""
    rows = ROWS.copy()
    rows[20, 1] = np.nan
    blocks = read_blocks(write(tmp_path / f"data{suffix}", rows), size=size)
    seen: list[Float64Array] = []
    with pytest.raises(InputError, match=r"(line|row) 2[12]\b.*column '(b|2)' holds nan; .*Drop or fill"):
        seen.extend(rows_of(block) for block in blocks)
    np.testing.assert_array_equal(np.concatenate(seen), rows[:20])


@pytest.mark.parametrize("suffix", READERS)
def test_empty_files(tmp_path: Path, suffix: str) -> None:
    """A stream without rows is quiet; a reference without rows is an error."""
    path = write(tmp_path / f"data{suffix}", ROWS[:0])
    assert list(read_blocks(path)) == []
    with pytest.raises(InputError, match="holds no rows"):
        whole(path)


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_damaged_files(tmp_path: Path, suffix: str) -> None:
    """A file cut short is refused."""
    path = Path(write(tmp_path / f"data{suffix}"))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InputError, match="is not a whole"):
        whole(str(path))
    path.write_bytes(b"")
    with pytest.raises(InputError, match="is not a whole"):
        whole(str(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """Unknown formats, missing files and folders are errors in words."""
    with pytest.raises(InputError, match=r"data\.xls cannot be told from its name, .* \.csv, .*Rename"):
        whole("data.xls")
    for suffix in READERS:
        with pytest.raises(InputError, match="No such file"):
            whole(str(tmp_path / f"missing{suffix}"))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"Cannot read .*Is a directory"):
        whole(str(tmp_path / "folder.csv"))


# CSV


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("1,2\n3,4\n", ("1", "2")),
        ("x,y\n1,2\n3,4", ("x", "y")),
        ("x,2024\n1,2\n3,4", ("x", "2024")),
        ("\n\nx , y\r\n\r\n1, 2\r\n  \r\n3,4\r\n", ("x", "y")),
        ("\ufeffx;y\n1;2\n3;4\n", ("x", "y")),
        ("x\ty\n1\t2\n3\t4\n", ("x", "y")),
        ('"x","y"\n"1",2\n3,4e0\n', ("x", "y")),
    ],
)
def test_csv_dialects(tmp_path: Path, content: str, names: tuple[str, ...]) -> None:
    """With and without a header, blank lines, a byte order mark, spaces, quotes and other separators."""
    block = whole(text(tmp_path, "data.csv", content))
    assert block.names == names
    np.testing.assert_array_equal(rows_of(block), [[1, 2], [3, 4]])


def test_a_quoted_field_may_span_lines_in_a_file(tmp_path: Path) -> None:
    """Columns of text may hold anything, if they are not chosen."""
    path = text(tmp_path, "data.csv", 'x,note\n1,"two\n\nlines"\n2,one\n')
    np.testing.assert_array_equal(rows_of(whole(path, ["x"])), [[1], [2]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,y\n1,2\n\n3,four\n", r"line 4, column 'y' holds 'four'; .*columns=\.\.\. names those to read"),
        ("1,2\n3,\n", r"line 2, column '2' is empty; .*Drop or fill"),
        ("1,\n3,4\n", r"line 1, column '2' is empty"),
        ('x\n""\n', "line 2.*column 'x' is empty"),
        ("1,2\n3,4,5\n", r"line 2, has 3 fields, the first row 2"),
        ("1,2\n3,-inf\n", "column '2' holds -inf; every value must be finite"),
        ("1,2\n3,1e999\n", "column '2' holds inf"),
        (",x\n0,1\n", r"Column 1 .* has no name in the header: .*columns=\['x'\]"),
        ("x,x\n0,1\n", "more than one column 'x'"),
        ('1,2\n3,"4\n', "line 2, is not CSV"),
    ],
)
def test_csv_errors(tmp_path: Path, content: str, message: str) -> None:
    """What is wrong, where, and what to do about it."""
    path = text(tmp_path, "data.csv", content)
    with pytest.raises(InputError, match=message):
        whole(path)


def test_bytes_that_are_no_text_are_shown_in_their_row(tmp_path: Path) -> None:
    """A broken byte is a bad value in its row, not an error about encodings."""
    (tmp_path / "data.csv").write_bytes(b"1,2\n3,\xff\n")
    with pytest.raises(InputError, match=r"line 2.*xff"):
        whole(str(tmp_path / "data.csv"))


# JSON lines


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ('{"x": 1, "y": 2}\n\n{"y": 4.0, "x": "3"}', ("x", "y")),
        ("[1, 2]\n[3, 4]\n", ("1", "2")),
        ('{"x": true, "y": 2}\n{"x": 3, "y": 4}', ("x", "y")),
    ],
)
def test_json_lines(tmp_path: Path, content: str, names: tuple[str, ...]) -> None:
    """Objects in any order of keys, arrays, numbers in quotes, true and false."""
    block = whole(text(tmp_path, "data.jsonl", content))
    assert block.names == names
    np.testing.assert_array_equal(rows_of(block), [[1, 2], [3, 4]])


def test_json_numbers_are_rows_of_one_column(tmp_path: Path) -> None:
    """A bare number per line will do."""
    np.testing.assert_array_equal(rows_of(whole(text(tmp_path, "data.ndjson", "1\n2.5\n"))), [[1], [2.5]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"x": 1}\n{"y": 1}', r"line 2, has the columns y, and the first row has x"),
        ('{"x": 1}\n{"x": 1, "y": 1}', "line 2.*has the columns x, y"),
        ("[1, 2]\n[1]", "line 2.*has the columns 1, and the first row has 1, 2"),
        ('{"x": null}', "line 1.*column 'x' is empty"),
        ('{"x": {"y": 1}}', "line 1.*column 'x' holds"),
        ('{"x": NaN}', "line 1.*column 'x' holds nan"),
        ('{"x": 1' + "0" * 400 + "}", "line 1.*column 'x' holds '1000"),
        ('{"x": 1}\n{"x": 1', "line 2.*is not JSON"),
        ("[" * 100_000, "line 1.*is not JSON"),
    ],
)
def test_json_errors(tmp_path: Path, content: str, message: str) -> None:
    """What is wrong, and where."""
    with pytest.raises(InputError, match=message):
        whole(text(tmp_path, "data.jsonl", content))


def test_chosen_columns_are_all_that_json_rows_must_share(tmp_path: Path) -> None:
    """Other keys may come and go."""
    path = text(tmp_path, "data.jsonl", '{"x": 1, "note": "a"}\n{"x": 2}')
    np.testing.assert_array_equal(rows_of(whole(path, ["x"])), [[1], [2]])


# NPY and Parquet


def test_npy_kinds(tmp_path: Path) -> None:
    """One or two dimensions of any kind of number; nothing else."""
    path = tmp_path / "data.npy"
    np.save(path, np.arange(4))
    np.testing.assert_array_equal(rows_of(whole(str(path))), [[0], [1], [2], [3]])
    np.save(path, np.asfortranarray(ROWS.astype(np.float32)))
    np.testing.assert_array_equal(rows_of(whole(str(path))), ROWS.astype(np.float32))
    for array in (np.zeros((2, 2, 2)), np.array(["a", "b"]), np.array(3.0)):
        np.save(path, array)
        with pytest.raises(InputError, match=r"of shape .*one array of numbers"):
            whole(str(path))


def test_parquet_kinds(tmp_path: Path) -> None:
    """Flags, counts and decimals are numbers; words and gaps are not."""
    path = str(tmp_path / "data.parquet")
    numbers = {"flag": [True, False], "count": [1, 2], "price": arrow.array([1, 2], arrow.decimal128(5, 2))}
    parquet.write_table(arrow.table({**numbers, "word": ["x", "y"], "gap": [1.5, None]}), path)
    np.testing.assert_array_equal(rows_of(whole(path, ["price", "flag", "count"])), [[1, 1, 1], [2, 0, 2]])
    with pytest.raises(InputError, match=r"column 'word' holds .*x.*columns=\.\.\."):
        whole(path)
    with pytest.raises(InputError, match="row 2, column 'gap' holds nan"):
        whole(path, ["gap"])


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    path = write(tmp_path / "data.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tocsin\[data\]'"):
        whole(path)


# Standard input


@pytest.mark.parametrize(
    "content", ["x,y\n1,2\n3,4\n", "\n1;2\n3;4\n", '{"x": 1, "y": 2}\n{"x": 3, "y": 4}', "[1,2]\n[3,4]"]
)
def test_standard_input_tells_its_format(monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    """CSV and JSON lines are told apart by the first line."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    np.testing.assert_array_equal(rows_of(whole("-")), [[1, 2], [3, 4]])


def typed(text: str) -> io.TextIOWrapper:
    """Standard input with this in it."""
    return io.TextIOWrapper(io.BytesIO(text.encode()))


def test_standard_input_hands_out_a_row_before_it_reads_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read ahead, so an alarm need not wait for the next line."""
    read: list[bytes] = []

    class Noted(io.BytesIO):
        def readline(self, size: int | None = -1) -> bytes:
            read.append(super().readline(size))
            return read[-1]

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Noted(b"1,2\n3,4\n5,6\n")))
    blocks = read_blocks("-", size=1)
    next(blocks)
    assert read == [b"1,2\n"]
    next(blocks)
    assert read == [b"1,2\n", b"3,4\n"]


def test_a_stray_quote_does_not_swallow_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """On standard input a row is a line."""
    monkeypatch.setattr(sys, "stdin", typed('1,2\n3,"4\n5,6\n'))
    with pytest.raises(InputError, match="standard input, line 2, is not CSV"):
        whole("-")


# Columns of any kind

MIXED = {
    "flow": [1.5, None, -2.0, 3.25],
    "open": [True, False, None, True],
    "seen": ["2024-03-07T12:30:00", "2024-03-08", None, "2024-03-07T12:30:00+02:00"],
    "state": ["on", None, 'of course, "off"', "none"],
    "idle": [None, None, None, None],
}
HOLDS: dict[str, Any] = {
    "flow": "numbers",
    "open": "truth values",
    "seen": "times",
    "state": "strings",
    "idle": "nothing",
}
SECONDS = [1709814600.0, 1709856000.0, np.nan, 1709807400.0]


def write_mixed(path: Path) -> str:
    """The same rows in the format of the suffix."""
    records = [dict(zip(MIXED, row, strict=True)) for row in zip(*MIXED.values(), strict=True)]
    if path.suffix == ".csv":
        quoted = [",".join(_quoted(value) for value in record.values()) for record in records]
        path.write_text("\n".join([",".join(MIXED), *quoted]) + "\n")
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, records)))
    else:
        seen = [None if second != second else int(second * 1000) for second in SECONDS]
        made = arrow.table({**MIXED, "seen": arrow.array(seen, arrow.timestamp("ms"))})
        (feather.write_feather if path.suffix == ".feather" else parquet.write_table)(made, path)
    return str(path)


def _quoted(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return "" if value is None else str(value).lower()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".feather"])
def test_mixed_columns_are_the_same_in_every_format(tmp_path: Path, suffix: str) -> None:
    """What is guessed from a whole file, and what is read in blocks when it is known."""
    path = write_mixed(tmp_path / f"mixed{suffix}")
    table = read_whole(path)
    assert {name: values.holds for name, values in table} == HOLDS
    np.testing.assert_array_equal(table.columns["flow"].data, [1.5, np.nan, -2, 3.25])
    np.testing.assert_array_equal(table.columns["open"].data, [1, 0, np.nan, 1])
    np.testing.assert_array_equal(table.columns["seen"].data, SECONDS)
    assert table.columns["state"].data.tolist() == MIXED["state"]
    columns = Columns.learn(table)
    for size in (1, 2, 3, 4096):
        blocks = list(read_blocks(path, Selection(holds=HOLDS), size))
        assert [len(block) for block in blocks] == [size] * (4 // size) + [4 % size] * (4 % size > 0)
        np.testing.assert_array_equal(
            np.concatenate([columns.encode(block) for block in blocks]), columns.encode(table)
        )
    chosen = read_whole(path, ["state", "flow"])
    assert chosen.names == ("state", "flow")


@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        (["1", "2.5", "-3e2"], "numbers"),
        (["1", "", "NA", "n/a", "NaN", "null", "None", "2"], "numbers"),
        (["true", "False", "", "TRUE"], "truth values"),
        (["0", "1", "0"], "numbers"),
        (["true", "1"], "strings"),
        (["2024-01-01", "2024-01-02 03:04", "nan"], "times"),
        (["2024-01-01T00:00:00Z", "2024-01-02T00:00:00+01:00"], "times"),
        (["20240101", "20240102"], "numbers"),
        (["2024-01-01", "yesterday"], "strings"),
        (["a", "", "na", "1"], "strings"),
        (["", "NA", " "], "nothing"),
    ],
)
def test_what_a_column_of_text_holds_is_guessed(tmp_path: Path, fields: list[str], holds: str) -> None:
    """Numbers, truth values or times if all fields are, gaps apart; else strings. JSON's own gaps are null."""
    as_csv = read_whole(text(tmp_path, "data.csv", "x,y\n" + "".join(f"{field},0\n" for field in fields)))
    assert as_csv.columns["x"].holds == holds
    lines = "\n".join(json.dumps({"x": field or None}) for field in fields)
    assert read_whole(text(tmp_path, "data.jsonl", lines)).columns["x"].holds == holds


@pytest.mark.parametrize(
    ("values", "holds", "data"),
    [
        ("true false null", "truth values", [1, 0, np.nan]),
        ("1 2.5 null", "numbers", [1, 2.5, np.nan]),
        ("true 2 NaN", "numbers", [1, 2, np.nan]),
        ('"a" "true" null', "strings", ["a", "true", None]),
        ('"na" "none" "b"', "strings", ["na", "none", "b"]),
    ],
)
def test_what_a_column_of_json_holds(tmp_path: Path, values: str, holds: str, data: list[Any]) -> None:
    """JSON has types of its own."""
    lines = "\n".join(f'{{"x": {value}}}' for value in values.split())
    (values_of_x,) = read_whole(text(tmp_path, "data.jsonl", lines)).columns.values()
    assert values_of_x.holds == holds
    np.testing.assert_array_equal(values_of_x.data, np.array(data, dtype=values_of_x.data.dtype))


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("1,NA\n2,3\n", ("1", "2")),
        ("2024-01-01,1\n2024-01-02,2\n", ("1", "2")),
        ("true,1\nfalse,2\n", ("1", "2")),
        (",1\n2,3\n", ("1", "2")),
        ("red,1\nblue,2\n", ("red", "1")),
    ],
)
def test_a_first_row_of_values_is_no_header(tmp_path: Path, content: str, names: tuple[str, ...]) -> None:
    """Gaps, truth values and times are not names; a word is."""
    assert read_whole(text(tmp_path, "data.csv", content)).names == names


BAD_FIELDS = [
    ("flow", "five", "column 'flow' holds 'five'; the reference has numbers there, and so must the stream.*Mend"),
    ("flow", "inf", "column 'flow' holds inf; every value must be finite"),
    ("open", "yes", "column 'open' holds 'yes'; the reference has truth values there"),
    ("open", "1", "column 'open' holds '1'; the reference has truth values there"),
    ("seen", "noon", "column 'seen' holds 'noon'; the reference has times there"),
]


@pytest.mark.parametrize("size", [1, 8, 4096])
@pytest.mark.parametrize(("column", "field", "message"), BAD_FIELDS)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_bad_field_is_named_after_the_rows_before_it(
    tmp_path: Path, suffix: str, column: str, field: str, message: str, size: int
) -> None:
    """With its row and line; the rows before it are handed out, whatever the size of blocks."""
    good = {"flow": "1.5", "open": "true", "seen": "2024-03-07", "state": "on"}
    records = [good] * 20 + [{**good, column: field}] + [{**good, "flow": "worse"}]
    if suffix == ".csv":
        content = "\n".join([",".join(good), *(",".join(record.values()) for record in records)])
    else:
        content = "\n\n" + "\n".join(map(json.dumps, records))
    blocks = read_blocks(text(tmp_path, f"data{suffix}", content), Selection(holds=HOLDS), size)
    seen: list[Table] = []
    line = 22 if suffix == ".csv" else 23
    with pytest.raises(InputError, match=rf"line {line}, {message}"):
        seen.extend(blocks)
    assert sum(map(len, seen)) == 20


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"x": "a"}', '{"x": 1}'], r"line 2, column 'x' holds '1', and not all of its values are numbers"),
        (['{"x": [1]}', '{"x": [2]}'], r"line 1, column 'x' holds '\[1\]'.*columns=\.\.\."),
        (['{"x": {"y": 1}}'], "line 1.*column 'x' holds .*a column holds numbers, truth values, times or strings"),
        (['{"x": 1}', '{"x": Infinity}'], "line 2.*column 'x' holds inf"),
    ],
)
def test_json_that_is_no_table(tmp_path: Path, lines: list[str], message: str) -> None:
    """Mixtures and nested values are refused in a reference, in its own words."""
    with pytest.raises(InputError, match=message):
        read_whole(text(tmp_path, "data.jsonl", "\n".join(lines)))


def test_nested_numbers_are_refused_in_a_stream(tmp_path: Path) -> None:
    """Lists of one number each are lists."""
    path = text(tmp_path, "data.jsonl", '{"x": [1]}\n{"x": [2]}')
    for selection in (Selection(), Selection(holds={"x": "numbers"})):
        with pytest.raises(InputError, match=r"line 1.*column 'x' holds '\[1\]'"):
            list(read_blocks(path, selection))


def test_a_column_that_held_nothing_may_hold_anything(tmp_path: Path) -> None:
    """That it does is for the detector to see."""
    selection = Selection(holds={"x": "nothing"})
    for field, holds in (("5", "numbers"), ("word", "strings"), ("true", "truth values"), ("", "nothing")):
        (block,) = read_blocks(text(tmp_path, "data.csv", f"x,y\n{field},0\n"), selection)
        assert block.columns["x"].holds == holds


def test_columns_without_names_hold_what_those_of_the_reference_do() -> None:
    """By their place; unless the reference's had no names either, some of which may be ignored."""
    named = Selection(holds={"flow": "numbers", "2024": "strings", "open": "truth values"})
    found = [named.of(column) for column in ("1", "2", "3", "4", "0", "2024", "\u00b2", "other")]
    assert found == ["numbers", "strings", "truth values", None, None, "strings", None, None]
    numbered = Selection(holds={"1": "numbers", "3": "strings"})
    assert [numbered.of(column) for column in ("1", "2", "3")] == ["numbers", None, "strings"]


def test_lines_that_arrive() -> None:
    """CSV or JSON, of any kinds, one row at a time."""
    holds: dict[str, Any] = {"x": "numbers", "word": "strings"}
    for lines in (["x,word\n", "1,a\n", ",b\n"], ['{"x": 1, "word": "a"}\n', '{"word": "b", "x": null}\n']):
        first, second = read_lines("log", iter(lines), Selection(holds=holds), 1)
        assert first.records() == [{"x": 1.0, "word": "a"}]
        assert second.records() == [{"x": None, "word": "b"}]
    with pytest.raises(InputError, match=r"log, line 3, column 'x' holds 'b'"):
        list(read_lines("log", ["x\n", "1\n", "b\n"], Selection(holds=holds), 1))


def test_tables_are_joined_though_some_have_nothing_but_gaps(tmp_path: Path) -> None:
    """As a feather file of several batches is."""
    path = tmp_path / "data.feather"
    made = arrow.table({"word": [None, None, "a", None], "x": arrow.array([None, None, None, 2.0], arrow.float64())})
    feather.write_feather(made, path, chunksize=2)
    table = read_whole(str(path))
    assert table.columns["word"].data.tolist() == [None, None, "a", None]
    np.testing.assert_array_equal(table.columns["x"].data, [np.nan, np.nan, np.nan, 2])


# NPZ, and Parquet and Feather of any kind


def test_npz_names(tmp_path: Path) -> None:
    """An array alone is a table; several are columns by name, and blocks of columns by name and number."""
    path = str(tmp_path / "data.npz")
    np.savez(path, rows=ROWS)
    assert read_whole(path).names == ("1", "2", "3")
    np.savez(path, x=ROWS[:, 0], many=ROWS[:, 1:], flag=ROWS[:, 0] > 0)
    table = read_whole(path)
    assert table.names == ("x", "many.1", "many.2", "flag")
    assert table.columns["flag"].holds == "truth values"
    np.testing.assert_array_equal(rows_of(table)[:, :3], ROWS)
    np.testing.assert_array_equal(rows_of(read_whole(path, ["many.2"])), ROWS[:, 2:])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros(3), "y": np.zeros(4)}, r"holds arrays of \[3, 4\] rows; they must have as many as each other"),
        ({"x": np.array(["a"])}, "must be one array of numbers"),
        ({"x": np.array([{}])}, "is not a whole NPZ file of numbers"),
        ({"x": np.zeros((2, 2, 2))}, r"of shape \(2, 2, 2\)"),
        ({}, r"holds arrays of \[\] rows"),
    ],
)
def test_npz_errors(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    """What is wrong with the file."""
    path = str(tmp_path / "data.npz")
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=message):
        read_whole(path)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet", ".feather"])
def test_gaps_are_read_from_arrays_and_infinities_are_not(tmp_path: Path, suffix: str) -> None:
    """NaN is a gap where gaps may be; an infinite number is an error in its row, after those before it."""
    rows = ROWS.copy()
    rows[3, 1], rows[30, 2] = np.nan, np.inf
    path = write(tmp_path / f"data{suffix}", rows)
    with pytest.raises(InputError, match=r"row 31, column '(c|3)' holds inf"):
        read_whole(path)
    holds: dict[str, Any] = dict.fromkeys(NAMES, "numbers")
    for size in (1, 8, 4096):
        seen: list[Table] = []
        with pytest.raises(InputError, match=r"row 31, column '(c|3)' holds inf"):
            seen.extend(read_blocks(path, Selection(holds=holds), size))
        np.testing.assert_array_equal(np.concatenate([rows_of(block) for block in seen]), rows[:30])


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_columnar_files_of_other_columns(tmp_path: Path, suffix: str) -> None:
    """A column of words where numbers are expected, the same name twice, values that no column can hold."""
    path = str(tmp_path / f"data{suffix}")
    save = feather.write_feather if suffix == ".feather" else parquet.write_table
    save(arrow.table({"x": ["a", "b"], "odd": [[1], [2]]}), path)
    with pytest.raises(InputError, match=r"column 'x' holds 'a'; every value must be a number.*columns=\.\.\."):
        list(read_blocks(path, Selection(["x"], holds={"x": "numbers"})))
    with pytest.raises(InputError, match=r"'odd' holds a list such as '\[1\]'"):
        read_whole(path)
    assert read_whole(path, ["x"]).columns["x"].holds == "strings"
    save(arrow.Table.from_arrays([arrow.array([1]), arrow.array([2])], ["a", "a"]), path)
    with pytest.raises(InputError, match="more than one column 'a'"):
        read_whole(path)


def test_a_dictionary_of_strings_is_a_category(tmp_path: Path) -> None:
    """However many there are: the file says so."""
    path = str(tmp_path / "data.parquet")
    parquet.write_table(arrow.table({"x": arrow.array([f"w{i}" for i in range(20)]).dictionary_encode()}), path)
    assert [column.kind for column in Columns.learn(read_whole(path)).columns] == ["category"]


@pytest.mark.parametrize("suffix", [".npz", ".feather"])
def test_other_damaged_files(tmp_path: Path, suffix: str) -> None:
    """A file cut short is refused."""
    path = Path(write(tmp_path / f"data{suffix}"))
    for damaged in (path.read_bytes()[:-10], path.read_bytes()[: path.stat().st_size // 2], b""):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"is not a whole|Cannot read"):
            read_whole(str(path))


def test_an_npz_file_that_is_something_else(tmp_path: Path) -> None:
    """A single array under the wrong name, or compressed data with a broken byte."""
    path = tmp_path / "data.npz"
    with path.open("wb") as file:
        np.save(file, ROWS)
    with pytest.raises(InputError, match="is not a whole NPZ file"):
        read_whole(str(path))
    np.savez_compressed(path, x=ROWS)
    content = bytearray(path.read_bytes())
    for place in (100, 300, 600):
        path.write_bytes(content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
        with pytest.raises(InputError, match="is not a whole NPZ file"):
            read_whole(str(path))
