"""Every format gives the same rows, and every bad row an error that names it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin.compute.arrays import Float64Array
from tocsin.errors import InputError, MissingExtraError
from tocsin.reading import READERS, read_blocks, read_whole

arrow: Any = import_module("pyarrow")
parquet: Any = import_module("pyarrow.parquet")

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
    else:
        parquet.write_table(arrow.table(dict(zip(names, rows.T, strict=True))), path)
    return str(path)


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
    assert all(len(block.rows) == size for block in blocks[:-1])
    assert all(block.rows.dtype == np.float64 for block in blocks)
    np.testing.assert_array_equal(np.concatenate([block.rows for block in blocks]), ROWS)
    assert blocks[0].columns == (("1", "2", "3") if suffix == ".npy" else NAMES)


@pytest.mark.parametrize("suffix", READERS)
def test_columns_are_chosen_and_ordered(tmp_path: Path, suffix: str) -> None:
    """Columns come in the order asked for; an unknown one is an error that lists those there are."""
    path = write(tmp_path / f"data{suffix}")
    columns = ["3", "1"] if suffix == ".npy" else ["c", "a"]
    np.testing.assert_array_equal(read_whole(path, columns).rows, ROWS[:, [2, 0]])
    with pytest.raises(InputError, match="no column 'd'; its columns are"):
        read_whole(path, ["a", "d"] if suffix != ".npy" else ["1", "d"])


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("size", [1, 8, 4096])
def test_a_bad_row_is_named_after_the_rows_before_it(tmp_path: Path, suffix: str, size: int) -> None:
    """The rows before a bad one are handed out, and no others, whatever the size of blocks."""
    rows = ROWS.copy()
    rows[20, 1] = np.nan
    blocks = read_blocks(write(tmp_path / f"data{suffix}", rows), size=size)
    seen: list[Float64Array] = []
    with pytest.raises(InputError, match=r"row 21\b.*column '(b|2)' holds nan; .*Drop or fill"):
        seen.extend(block.rows for block in blocks)
    np.testing.assert_array_equal(np.concatenate(seen), rows[:20])


@pytest.mark.parametrize("suffix", READERS)
def test_empty_files(tmp_path: Path, suffix: str) -> None:
    """A stream without rows is quiet; a reference without rows is an error."""
    path = write(tmp_path / f"data{suffix}", ROWS[:0])
    assert list(read_blocks(path)) == []
    with pytest.raises(InputError, match="holds no rows"):
        read_whole(path)


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_damaged_files(tmp_path: Path, suffix: str) -> None:
    """A file cut short is refused."""
    path = Path(write(tmp_path / f"data{suffix}"))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InputError, match="is not a whole"):
        read_whole(str(path))
    path.write_bytes(b"")
    with pytest.raises(InputError, match="is not a whole"):
        read_whole(str(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """Unknown formats, missing files and folders are errors in words."""
    with pytest.raises(InputError, match=r"data\.xls cannot be told from its name, .* \.csv, .*Rename"):
        read_whole("data.xls")
    for suffix in READERS:
        with pytest.raises(InputError, match="No such file"):
            read_whole(str(tmp_path / f"missing{suffix}"))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"Cannot read .*Is a directory"):
        read_whole(str(tmp_path / "folder.csv"))


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
    block = read_whole(text(tmp_path, "data.csv", content))
    assert block.columns == names
    np.testing.assert_array_equal(block.rows, [[1, 2], [3, 4]])


def test_a_quoted_field_may_span_lines_in_a_file(tmp_path: Path) -> None:
    """Columns of text may hold anything, if they are not chosen."""
    path = text(tmp_path, "data.csv", 'x,note\n1,"two\n\nlines"\n2,one\n')
    np.testing.assert_array_equal(read_whole(path, ["x"]).rows, [[1], [2]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,y\n1,2\n\n3,four\n", r"row 2 \(line 4\), column 'y' holds 'four'; .*--columns"),
        ("1,2\n3,\n", r"row 2 \(line 2\), column '2' is empty; .*Drop or fill"),
        ("1,\n3,4\n", r"row 1 \(line 1\), column '2' is empty"),
        ('x\n""\n', "row 1 .*column 'x' is empty"),
        ("1,2\n3,4,5\n", r"row 2 \(line 2\) has 3 fields, the first row 2"),
        ("1,2\n3,-inf\n", "column '2' holds -inf; every value must be finite"),
        ("1,2\n3,1e999\n", "column '2' holds inf"),
        (",x\n0,1\n", "Column 1 .* has no name in the header: .*--columns x"),
        ("x,x\n0,1\n", None),
        ('1,2\n3,"4\n', "line 2, is not CSV"),
    ],
)
def test_csv_errors(tmp_path: Path, content: str, message: str | None) -> None:
    """What is wrong, where, and what to do about it."""
    path = text(tmp_path, "data.csv", content)
    if message is None:
        assert read_whole(path).columns == ("x", "x")
        with pytest.raises(InputError, match="more than one column 'x'"):
            read_whole(path, ["x"])
        return
    with pytest.raises(InputError, match=message):
        read_whole(path)


def test_bytes_that_are_no_text_are_shown_in_their_row(tmp_path: Path) -> None:
    """A broken byte is a bad value in its row, not an error about encodings."""
    (tmp_path / "data.csv").write_bytes(b"1,2\n3,\xff\n")
    with pytest.raises(InputError, match=r"row 2 .*xff"):
        read_whole(str(tmp_path / "data.csv"))


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
    block = read_whole(text(tmp_path, "data.jsonl", content))
    assert block.columns == names
    np.testing.assert_array_equal(block.rows, [[1, 2], [3, 4]])


def test_json_numbers_are_rows_of_one_column(tmp_path: Path) -> None:
    """A bare number per line will do."""
    np.testing.assert_array_equal(read_whole(text(tmp_path, "data.ndjson", "1\n2.5\n")).rows, [[1], [2.5]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"x": 1}\n{"y": 1}', r"row 2 \(line 2\) has the columns y, and the first row has x"),
        ('{"x": 1}\n{"x": 1, "y": 1}', "row 2 .*has the columns x, y"),
        ("[1, 2]\n[1]", "row 2 .*has the columns 1, and the first row has 1, 2"),
        ('{"x": null}', "row 1 .*column 'x' is empty"),
        ('{"x": {"y": 1}}', "row 1 .*column 'x' holds"),
        ('{"x": NaN}', "row 1 .*column 'x' holds nan"),
        ('{"x": 1' + "0" * 400 + "}", "row 1 .*column 'x' holds '1000"),
        ('{"x": 1}\n{"x": 1', "row 2 .*is not JSON"),
        ("[" * 100_000, "row 1 .*is not JSON"),
    ],
)
def test_json_errors(tmp_path: Path, content: str, message: str) -> None:
    """What is wrong, and where."""
    with pytest.raises(InputError, match=message):
        read_whole(text(tmp_path, "data.jsonl", content))


def test_chosen_columns_are_all_that_json_rows_must_share(tmp_path: Path) -> None:
    """Other keys may come and go."""
    path = text(tmp_path, "data.jsonl", '{"x": 1, "note": "a"}\n{"x": 2}')
    np.testing.assert_array_equal(read_whole(path, ["x"]).rows, [[1], [2]])


# NPY and Parquet


def test_npy_kinds(tmp_path: Path) -> None:
    """One or two dimensions of any kind of number; nothing else."""
    path = tmp_path / "data.npy"
    np.save(path, np.arange(4))
    np.testing.assert_array_equal(read_whole(str(path)).rows, [[0], [1], [2], [3]])
    np.save(path, np.asfortranarray(ROWS.astype(np.float32)))
    np.testing.assert_array_equal(read_whole(str(path)).rows, ROWS.astype(np.float32))
    for array in (np.zeros((2, 2, 2)), np.array(["a", "b"]), np.array(3.0)):
        np.save(path, array)
        with pytest.raises(InputError, match=r"of shape .*one array of numbers"):
            read_whole(str(path))


def test_parquet_kinds(tmp_path: Path) -> None:
    """Flags, counts and decimals are numbers; words and gaps are not."""
    path = str(tmp_path / "data.parquet")
    numbers = {"flag": [True, False], "count": [1, 2], "price": arrow.array([1, 2], arrow.decimal128(5, 2))}
    parquet.write_table(arrow.table({**numbers, "word": ["x", "y"], "gap": [1.5, None]}), path)
    np.testing.assert_array_equal(read_whole(path, ["price", "flag", "count"]).rows, [[1, 1, 1], [2, 0, 2]])
    with pytest.raises(InputError, match=r"column 'word' holds .*x.*--columns"):
        read_whole(path)
    with pytest.raises(InputError, match="row 2, column 'gap' holds nan"):
        read_whole(path, ["gap"])


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    path = write(tmp_path / "data.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tocsin\[data\]'"):
        read_whole(path)


# Standard input


@pytest.mark.parametrize(
    "content", ["x,y\n1,2\n3,4\n", "\n1;2\n3;4", '{"x": 1, "y": 2}\n{"x": 3, "y": 4}', "[1,2]\n[3,4]"]
)
def test_standard_input_tells_its_format(monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    """CSV and JSON lines are told apart by the first line."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    np.testing.assert_array_equal(read_whole("-").rows, [[1, 2], [3, 4]])


def test_standard_input_hands_out_a_row_before_it_reads_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read ahead, so an alarm need not wait for the next line."""
    read: list[str] = []

    def lines() -> Iterator[str]:
        for line in ("1,2\n", "3,4\n", "5,6\n"):
            read.append(line)
            yield line

    monkeypatch.setattr(sys, "stdin", lines())
    blocks = read_blocks("-", size=1)
    next(blocks)
    assert read == ["1,2\n"]
    next(blocks)
    assert read == ["1,2\n", "3,4\n"]


def test_a_stray_quote_does_not_swallow_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """On standard input a row is a line."""
    monkeypatch.setattr(sys, "stdin", io.StringIO('1,2\n3,"4\n5,6\n'))
    with pytest.raises(InputError, match="standard input, line 2, is not CSV"):
        read_whole("-")
