"""What the commands share: reading their arguments, loading a detector, and trouble told in one line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import typer
from rich.console import Console

from tocsin import storage
from tocsin.detector import Detector
from tocsin.errors import InputError, TocsinError

T = TypeVar("T")

FILE = typer.Argument(metavar="FILE", help="A .tocsin file, made by 'tocsin fit'.")
COLUMNS = typer.Option(
    metavar="A,B,...", help="Columns to use, by name, or by number from 1 if they have no names. Default: all."
)
JSON = typer.Option("--json", help="Answer in JSON.")

TROUBLE = 2
"""Exit status when something is wrong, as in grep and diff; 0 and 1 are answers."""


@contextmanager
def short_errors() -> Iterator[None]:
    """Trouble as a line on standard error and exit status 2, not as a traceback; decorates a command."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (TocsinError, OSError) as error:
        typer.echo(f"tocsin: {error}", err=True)
        raise typer.Exit(TROUBLE) from error


@dataclass(frozen=True)
class Saved:
    """A detector, and what its file says beyond what it tells itself."""

    detector: Detector
    rows: int
    columns: int
    run: int


def load(file: Path) -> Saved:
    """The detector of a `.tocsin` file."""
    detector = Detector.load(file)
    fitted = storage.read(file)["fitted"]
    rows, columns = fitted["reference"].shape
    return Saved(detector, rows, columns, fitted["run"])


def must_be_writable(file: Path) -> None:
    """Refuse a file that could not be written, before the work rather than after it."""
    if not os.access(file.parent, os.W_OK) or file.is_dir():
        reason = "it is a folder" if file.is_dir() else f"no file can be made in {file.parent.absolute()}"
        raise InputError(f"Cannot write {file}: {reason}. Make the folder, or choose another file.")


def names(text: str | None) -> list[str] | None:
    """Names, separated by commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def numbers(option: str, text: str | None, kind: Callable[[str], T], what: str) -> list[T] | None:
    """Numbers, separated by commas."""
    if text is None:
        return None
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"{option} {text}: must be {what}, or several with commas between.") from error


def console() -> Console:
    """Standard output, with colours and wrapped lines where it is a terminal."""
    return Console(highlight=False)
