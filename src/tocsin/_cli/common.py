"""What the commands share: reading their arguments, loading a detector, and trouble told in one line."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import typer
from rich.console import Console

from tocsin._cli.cleaning import CleanConsole, clean
from tocsin._cli.places import PlaceLostError
from tocsin._cli.spelling import FLAGS, spelled
from tocsin._common.errors import InputError, ReferenceWarning, TocsinError
from tocsin._common.files import must_be_writable as must_be_writable

T = TypeVar("T")

FILE = typer.Argument(metavar="FILE", help="A .tocsin file, made by 'tocsin fit'.")
COLUMNS = typer.Option(
    metavar="A,B,...", help="Columns to use, by name, or by number from 1 if they have no names. Default: all."
)
KEEP = typer.Option(
    metavar="A,B,...",
    help="Columns of STREAM that are shown with alarms and examples, to find a record again by, and need not be "
    "watched: a serial number, say, or a comment.",
)
CLUSTER = typer.Option(
    metavar="ADDRESS",
    help="The address of a Dask scheduler, such as tcp://host:8786, on whose workers to compute. It changes nothing in "
    "the result, nor do workers that die. Needs 'tocsin[dask]', there too.",
)
BACKEND = typer.Option(
    metavar="NAME",
    help="What computes: auto, numba (CPUs), torch (GPUs, and CPUs to compare) or numpy (slow, to be read).",
)
DEVICE = typer.Option(
    metavar="NAME",
    help="Where torch computes: cpu, cuda, cuda:0, ... Default: a GPU, if PyTorch sees one.",
)
JSON = typer.Option("--json", help="Answer in JSON.")

TROUBLE = 2
"""Exit status when something is wrong, as in grep and diff; 0 and 1 are answers."""


LOST = 3
"""Exit status when rows of a stream may have been lost, and which are new cannot be known."""


@contextmanager
def short_errors(flags: Mapping[str, str] = FLAGS) -> Iterator[None]:
    """Trouble as a line on standard error and exit status 2, not as a traceback; decorates a command."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (TocsinError, OSError) as error:
        told = error.told(partial(spelled, flags=flags)) if isinstance(error, TocsinError) else str(error)
        typer.echo(clean(f"tocsin: {told}"), err=True)
        raise typer.Exit(LOST if isinstance(error, PlaceLostError) else TROUBLE) from error


FORCE = typer.Option("--force", help="Write over a file that is there already.")


def must_be_free(file: Path, force: bool) -> None:
    """Refuse a file that cannot be written, or that is there and would be lost."""
    must_be_writable(file)
    if os.path.lexists(file) and not force:
        raise InputError(f"{file} is there already, and would be lost. Name another file, or give --force.")


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
    return CleanConsole(highlight=False)


def warned(caught: list[warnings.WarningMessage]) -> Iterator[str]:
    """What there is to say about the reference, in the words of the command line; other warnings go their way."""
    for warning in caught:
        if isinstance(warning.message, ReferenceWarning):
            text = warning.message.told(spelled)
            yield text[0].lower() + text[1:].removesuffix(".")
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
