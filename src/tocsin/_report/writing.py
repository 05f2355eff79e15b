"""A report of a stream in memory, and how pages are written: whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path

from tocsin._common.errors import InputError
from tocsin._common.files import must_be_writable, replacing
from tocsin._data.intake import Intake, Represented, Rows, Tabular
from tocsin._data.representations.batches import count_of, piece_of
from tocsin._data.tables import Table, Values
from tocsin._detector.detector import Detector
from tocsin._execution.progress import progress_bar
from tocsin._explain.rows import beside_rows, texts_of
from tocsin._report.gathering import Gathered
from tocsin._report.page import About, page

SUFFIXES = (".html", ".htm")

BLOCK = 4096
"""Rows of a stream that are watched at once."""


def report(
    detector: Detector,
    stream: object,
    path: Path,
    title: str | None,
    progress: bool | None,
    keep: Sequence[str] = (),
) -> Path:
    """Watch a stream with a copy of a detector, and write the page."""
    must_be_page(path)
    own = detector.intake_
    table = beside_rows(own, stream, keep)
    rows = _as_rows(own, stream, keep)
    seen = Gathered(copy(detector), keep, texts_of(own))
    with progress_bar("watching", progress) as done:
        for start, block in _blocks(rows):
            seen.add(block, table[start : start + BLOCK])
            done(seen.rows, count_of(rows))
    title = title or path.stem
    about = About.of(detector, title=title, called=f"a detector with ert={detector.ert:g}", stream=title)
    write(path, seen, about)
    return path


def _as_rows(intake: Intake, stream: object, keep: Sequence[str]) -> object:
    """As a table, if the detector knows columns: a page tells of their quality."""
    if isinstance(intake, Tabular):
        table = intake.table(stream) or Table({})
        return table.without([name for name in keep if name not in intake.names])
    if isinstance(intake, Rows):
        columns = intake.many(stream).T
        return Table({name: Values.of_numbers(data) for name, data in zip(intake.names, columns, strict=True)})
    return stream if isinstance(intake, Represented) else intake.many(stream)


def _blocks(rows: object) -> Iterator[tuple[int, object]]:
    for start in range(0, count_of(rows), BLOCK):
        yield start, piece_of(rows, start, start + BLOCK)


def must_be_page(path: Path) -> None:
    """Refuse a file that no page can be written to, before the stream is watched."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"Cannot write {path}: a page for a browser must end in {' or '.join(SUFFIXES)}.")
    must_be_writable(path)


def write(path: Path, seen: Gathered, about: About) -> None:
    """The whole page or none of it."""
    content = page(seen, about).encode()
    with replacing(path) as file:
        file.write(content)
