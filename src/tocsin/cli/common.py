"""What the commands share: reading their arguments, loading a detector, and trouble told in one line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import typer
from rich.console import Console

from tocsin.errors import InputError, TocsinError

T = TypeVar("T")

FILE = typer.Argument(metavar="FILE", help="A .tocsin file, made by 'tocsin fit'.")
COLUMNS = typer.Option(
    metavar="A,B,...", help="Columns to use, by name, or by number from 1 if they have no names. Default: all."
)
CLUSTER = typer.Option(
    metavar="ADDRESS",
    help="The address of a Dask scheduler, such as tcp://host:8786, on whose workers to compute. It changes nothing in "
    "the result, nor do workers that die. Needs 'tocsin[dask]', there too.",
)
JSON = typer.Option("--json", help="Answer in JSON.")

OPTIONS = {
    "window=... to choose yourself": "--window to choose yourself",
    "sampler=Blocks(), or 'auto'": "--sampler blocks, or auto",
    "sampler=Blocks()": "--sampler blocks",
    "sampler=Independent()": "--sampler independent",
    "give Blocks(length=..., guard=...)": "give --sampler blocks --block-length",
    "give Blocks(length=...)": "give --sampler blocks --block-length",
    "give Independent()": "give --sampler independent",
    "approximation=...": "--landmarks",
    "paths=...": "--paths",
    "cluster=": "--cluster ",
    "Give backend='numba', or no cluster": "Give --device cpu, or no --cluster",
    "Rename, add or drop columns, or fit": "Choose them with --columns, in the reference's order, or fit",
}
"""What is called so in Python, and what on the command line."""

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
        typer.echo(f"tocsin: {in_options(str(error))}", err=True)
        raise typer.Exit(TROUBLE) from error


def in_options(text: str) -> str:
    """Advice for Python, in the words of the command line."""
    for here, there in OPTIONS.items():
        text = text.replace(here, there)
    return text


def must_be_writable(file: Path) -> None:
    """Refuse a file that cannot be written, before the work rather than after it."""
    if file.exists() and not file.is_file():
        # A file is replaced as a whole, so writing to a device or a pipe would remove it.
        raise InputError(f"Cannot write {file}: it is a folder, a device or a pipe. Choose a file.")
    if not os.access(file.parent, os.W_OK):
        raise InputError(
            f"Cannot write {file}: no file can be made in {file.parent.absolute()}. Choose another folder."
        )


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
