"""`tocsin report`: a stream and its alarms as one page for a browser."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tocsin import _report as report
from tocsin._cli import common, describe, reading, streams
from tocsin._cli.stopping import stopper
from tocsin._cli.watch import RANG
from tocsin._common.wording import counted
from tocsin._detector.detector import Detector
from tocsin._execution.progress import progress_bar
from tocsin._explain.rows import texts_of

SAMPLE = 1 << 16
"""Bytes of a text from which the length of its lines is estimated."""

ARRIVING = 64
"""Rows of standard input taken in at once; fewer are lost when someone stops the watch."""

Stream = typer.Argument(
    metavar="STREAM",
    help="Rows to watch: .csv, .jsonl, .npy, .npz, .parquet, .feather, or - for standard input (CSV or JSON lines).",
)
Output = typer.Option("--output", "-o", metavar="PAGE", help="The .html file to write.")
Json = typer.Option("--json", help="Print the verdict, the alarms and the quality of the data as JSON.")
Title = typer.Option(metavar="TEXT", help="What the page is called. Default: the name of STREAM.")


@common.short_errors()
def command(
    file: Annotated[Path, common.FILE],
    stream: Annotated[str, Stream],
    output: Annotated[Path, Output],
    columns: Annotated[str | None, common.COLUMNS] = None,
    keep: Annotated[str | None, common.KEEP] = None,
    title: Annotated[str | None, Title] = None,
    force: Annotated[bool, common.FORCE] = False,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Watch a stream, and write what was seen as a page that can be read, sent and printed.

    The page begins with the verdict, which is printed too: whether chance alone can explain what was seen, whether the
    data are as they were, and what to do next. Then come the promise and what it rests on, the path of the statistic
    (zoom in with the wheel or two fingers), every alarm explained, the quality of the data, and how the detector was
    calibrated. It is one file, and needs no network. Observations are counted from 1, without headers and blank lines;
    where the stream has a column of times, even one that is not watched, they are told with it.

    The stream is watched as 'tocsin watch' does it, but FILE stays as it is. A series of alarms that follow each other
    closely is explained by its first three. Ctrl-C ends the watch, and the page tells what was seen until then.

    Exit status: 0 quiet, 1 it rang, 2 trouble, and then there is no page.

    \b
    Examples:
      tocsin report machine.tocsin today.csv -o report.html
      tocsin report machine.tocsin today.csv -o report.html --title "Pump 3, Monday" --keep batch,comment
      zcat log.csv.gz | tocsin report machine.tocsin - -o report.html --columns flow,pressure
    """
    report.must_be_page(output)
    common.must_be_free(output, force)
    detector = Detector.load(file)
    kept = common.names(keep) or []
    seen = report.Gathered(detector, kept, [] if columns else texts_of(detector.intake_))
    total = _rows_about(stream)
    size = ARRIVING if stream == reading.STANDARD_INPUT else reading.BLOCK
    blocks = streams.blocks_beside(detector, file, stream, common.names(columns), kept, size)
    with stopper() as stop, progress_bar("watching", None) as progress:
        for block in stop.until_asked(blocks):
            seen.add(block.table, block.aside)
            if total:
                progress(seen.rows, max(total, seen.rows))
    source = reading.source_name(stream)
    about = report.About.of(
        detector,
        title=title or Path(source).name,
        called=file.name,
        stream=Path(source).name,
        precision=describe.precision(detector),
        interrupted=stop.asked,
    )
    report.write(output, seen, about)
    if as_json:
        typer.echo(json.dumps({**report.seen_facts(seen), "interrupted": stop.asked, "page": str(output)}))
    else:
        said = report.verdict(seen)
        stopped = f"Stopped after {counted(seen.rows, 'observation')}.\n" if stop.asked else ""
        out = common.console()
        told = f"{stopped}{said.sentence}\n{said.next}\nWritten to {output}."
        out.print(told, markup=False, soft_wrap=not out.is_terminal)
    raise typer.Exit(RANG if seen.alarms else 0)


def _rows_about(stream: str) -> int | None:
    """How many rows a stream has, exactly or from the length of its first lines; None if that cannot be told soon."""
    path = Path(stream)
    if not path.is_file():
        return None
    try:
        if path.suffix.lower() == ".npy":
            return len(np.load(path, mmap_mode="r"))
        if path.suffix.lower() == ".parquet":
            return int(import_module("pyarrow.parquet").read_metadata(path).num_rows)
    except (ImportError, OSError, TypeError, ValueError):
        return None  # whoever reads it says what is wrong
    if path.suffix.lower() not in (".csv", ".jsonl", ".ndjson"):
        return None
    with path.open("rb") as text:
        start = text.read(SAMPLE)
    lines = start.count(b"\n")
    return round(path.stat().st_size * lines / len(start)) if lines else None
