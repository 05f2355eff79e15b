"""A stream from a file, as its detector wants it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tocsin._cli import reading
from tocsin._common.errors import InputError
from tocsin._common.wording import counted
from tocsin._data.intake import Intake, Tabular
from tocsin._data.tables import OTHERS, Table, numbered
from tocsin._detector.detector import Detector

REMEDY = "Choose them with --columns, in the reference's order"


def blocks(
    detector: Detector,
    file: Path,
    stream: str,
    columns: list[str] | None,
    size: int = reading.BLOCK,
    lines: Iterable[str] | None = None,
) -> Iterator[Table]:
    """The rows of `stream`, block by block, with the names that the reference's columns have.

    Chosen columns, and those without names, are taken in the order of the reference's.
    lines: of a text that grows, instead of reading the stream.
    """
    return blocks_for(detector.intake_, f"the reference of {file}", stream, columns, size, lines)


def blocks_for(
    own: Intake,
    called: str,
    stream: str,
    columns: list[str] | None,
    size: int = reading.BLOCK,
    lines: Iterable[str] | None = None,
) -> Iterator[Table]:
    """The same for what was learned from a reference; called: what a message calls that."""
    chosen = columns
    if columns is None and isinstance(own, Tabular) and OTHERS in own.columns.ignored:
        chosen = list(own.names)
    holds = {column.name: column.holds for column in own.columns.columns} if isinstance(own, Tabular) else None
    if holds is not None and columns is not None:
        holds = dict(zip(columns, holds.values(), strict=False))
    selection = reading.Selection(chosen, holds)
    if lines is None:
        tables = reading.read_blocks(stream, selection, size)
    else:
        tables = reading.read_lines(stream, lines, selection, size)
    for table in tables:
        in_order = columns is not None or holds is None or table.names == numbered(len(table.names))
        if in_order and len(table.names) != len(own.names):
            given = counted(len(table.names), "column")
            raise InputError(
                f"{reading.source_name(stream)} has {given}, and {called} has {len(own.names)}: they must be the "
                "same. Choose them with --columns."
            )
        if in_order:
            table = table.renamed(own.names)
        elif isinstance(own, Tabular):
            own.columns.must_match(table, reading.source_name(stream), REMEDY)
        yield table
