"""Tables from files and from standard input, block by block: a stream may be larger than memory.

    .csv                 a first row with a word in it is a header; comma, or semicolon or tab where there is no comma
    .jsonl, .ndjson      a JSON object or array per line
    .npy                 an array with one row per observation
    .npz                 such an array alone, or one column or several per array, by name
    .parquet, .feather   need the extra 'data'
    -                    standard input: CSV or JSON lines, whichever the first line is

Columns without names are called 1, 2, ... A message on a row of text names its line, as an editor counts them, and of
other files the row, the first being 1; observations are counted from 1 by those who take them in. A bad row ends the
reading with an error that names it. The rows before it have been handed out by then, whatever the size of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tocsin._cli.reading import arrays, text
from tocsin._cli.reading.lines import OnBad, Source, refuse
from tocsin._cli.reading.selection import BLOCK, Aside, Selection
from tocsin._cli.reading.text import Block
from tocsin._common.errors import InputError
from tocsin._data.tables import Table

__all__ = [
    "BLOCK",
    "GROWING",
    "READERS",
    "STANDARD_INPUT",
    "Aside",
    "Block",
    "Selection",
    "read_beside",
    "read_blocks",
    "read_lines",
    "read_marked",
    "read_source",
    "read_whole",
    "source_name",
]

STANDARD_INPUT = "-"

READERS: dict[str, Callable[[str, Selection, int, OnBad], Iterator[Block]]] = {
    ".csv": text.from_csv,
    ".jsonl": text.from_json_lines,
    ".ndjson": text.from_json_lines,
    ".npy": arrays.from_npy,
    ".npz": arrays.from_npz,
    ".parquet": arrays.from_parquet,
    ".feather": arrays.from_feather,
}

GROWING = (".csv", ".jsonl", ".ndjson")
"""Files of lines, which can grow."""

ANY = Selection()


def read_blocks(path: str, selection: Selection = ANY, size: int = BLOCK) -> Iterator[Table]:
    """The rows of a file, or of standard input for '-', `size` at a time."""
    return (block.table for block in read_beside(path, selection, size))


def read_beside(path: str, selection: Selection, size: int = BLOCK) -> Iterator[Block]:
    """The same with what stands beside them."""
    if path == STANDARD_INPUT:
        return text.from_standard_input(source_name(path), selection, size)
    return read_marked(path, selection, size)


def read_marked(path: str, selection: Selection, size: int, on_bad: OnBad = refuse) -> Iterator[Block]:
    """The rows of a file, each with its mark: in files that have no lines, its number."""
    suffix = Path(path).suffix.lower()
    if suffix not in READERS:
        raise InputError(
            f"The format of {path} cannot be told from its name, which must end in one of {', '.join(READERS)}. Rename "
            "the file, or give '-' and pipe CSV or JSON lines in."
        )
    try:
        yield from READERS[suffix](path, selection, size, on_bad)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error


def read_source(
    source: Source, selection: Selection, size: int, on_bad: OnBad, *, line_by_line: bool
) -> Iterator[Block]:
    """The rows in lines of text, with where each ends: of the format that the source's name tells, or its first line.

    line_by_line: a row of CSV is a line, also where a quote is open. on_bad: what to do with rows that are none.
    """
    suffix = Path(source.name).suffix.lower()
    if suffix == ".csv":
        read = text.from_csv_lines if line_by_line else text.from_csv_source
        return read(source, selection, size, on_bad)
    if suffix in GROWING:
        return text.from_json_source(source, selection, size, on_bad)
    return text.from_source(source, selection, size, on_bad)


def read_lines(name: str, lines: Iterable[str], selection: Selection = ANY, size: int = BLOCK) -> Iterator[Table]:
    """The rows in lines of text that arrive: CSV or JSON lines, whichever the first line is."""
    return text.from_lines(name, lines, selection, size)


def read_whole(path: str, columns: list[str] | None = None) -> Table:
    """All rows at once. What a column of text holds is seen from all of its values."""
    found = list(read_blocks(path, Selection(columns, holds="guess"), size=2**62))
    if not found:
        raise InputError(f"{source_name(path)} holds no rows; it must have one per observation.")
    return found[0] if len(found) == 1 else Table.join(found)


def source_name(path: str) -> str:
    """What to call the source in a message."""
    return "standard input" if path == STANDARD_INPUT else path
