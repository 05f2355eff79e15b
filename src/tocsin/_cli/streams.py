"""A stream from a file, as its detector wants it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tocsin._cli import reading
from tocsin._cli.reading import Aside, Block, Selection
from tocsin._cli.reading.lines import OnBad, Source
from tocsin._common.errors import InputError
from tocsin._common.wording import counted
from tocsin._data.intake import Intake, Tabular
from tocsin._data.tables import OTHERS, Table, Values, numbered
from tocsin._detector.detector import Detector
from tocsin._explain.rows import texts_of

REMEDY = "Choose them with --columns, in the reference's order"

KEEP = f"{REMEDY}, name those that only tell records apart with --keep"


def blocks(
    detector: Detector, file: Path, stream: str, columns: list[str] | None, size: int = reading.BLOCK
) -> Iterator[Table]:
    """The rows of `stream`, block by block, with the names that the reference's columns have.

    Chosen columns, and those without names, are taken in the order of the reference's.
    """
    return blocks_for(detector.intake_, f"the reference of {file}", stream, columns, size)


def blocks_for(
    own: Intake, called: str, stream: str, columns: list[str] | None, size: int = reading.BLOCK
) -> Iterator[Table]:
    """The same for what was learned from a reference; called: what a message calls that."""
    selection = _selection(own, called, stream, columns)
    for table in reading.read_blocks(stream, selection, size):
        yield _named(own, columns, table)


def blocks_beside(
    detector: Detector, file: Path, stream: str, columns: list[str] | None, keep: list[str], size: int = reading.BLOCK
) -> Iterator[Block]:
    """The same for a detector's stream, with what stands beside its rows: times, columns to keep, and texts."""
    own = detector.intake_
    selection = _selection(own, f"the reference of {file}", stream, columns, _aside(own, columns, keep))
    for block in reading.read_beside(stream, selection, size):
        yield block.holding(_named(own, columns, block.table))


def marked_blocks(
    detector: Detector,
    file: Path,
    stream: str,
    columns: list[str] | None,
    keep: list[str],
    size: int,
    source: Source | None,
    on_bad: OnBad,
    *,
    line_by_line: bool,
) -> Iterator[Block]:
    """Such rows with where each ends: a mark of the source's, or the number of the row in a file that has no lines."""
    own = detector.intake_
    selection = _selection(own, f"the reference of {file}", stream, columns, _aside(own, columns, keep))
    found: Iterator[Block]
    if source is None:
        found = reading.read_marked(stream, selection, size, on_bad)
    else:
        found = reading.read_source(source, selection, size, on_bad, line_by_line=line_by_line)
    for block in found:
        yield block.holding(_named(own, columns, block.table))


def _aside(own: Intake, columns: list[str] | None, keep: list[str]) -> Aside:
    clocks = own.columns.ignored if isinstance(own, Tabular) else ()
    return Aside(keep, texts_of(own) if columns is None else [], clocks, columns or own.names)


def _selection(
    own: Intake, called: str, stream: str, columns: list[str] | None, aside: Aside | None = None
) -> Selection:
    chosen = columns
    if columns is None and isinstance(own, Tabular) and OTHERS in own.columns.ignored:
        chosen = list(own.names)
    holds = {column.name: column.holds for column in own.columns.columns} if isinstance(own, Tabular) else None
    if holds is not None and columns is not None:
        holds = dict(zip(columns, holds.values(), strict=False))

    def expects(names: Sequence[str]) -> None:
        if _in_order(own, columns, names):
            if len(names) != len(own.names):
                raise InputError(
                    f"{reading.source_name(stream)} has {counted(len(names), 'column')}, and {called} has "
                    f"{len(own.names)}: they must be the same. Choose them with --columns."
                )
        elif isinstance(own, Tabular):
            empty = Table({name: Values.of_numbers(np.empty(0)) for name in names})
            own.columns.must_match(empty, reading.source_name(stream), REMEDY if aside is None else KEEP)

    return Selection(chosen, holds, expects, aside)


def _in_order(own: Intake, columns: list[str] | None, names: Sequence[str]) -> bool:
    return columns is not None or not isinstance(own, Tabular) or tuple(names) == numbered(len(names))


def _named(own: Intake, columns: list[str] | None, table: Table) -> Table:
    return table.renamed(own.names) if _in_order(own, columns, table.names) else table
