"""The command line: one module per command."""

from __future__ import annotations

import io
import sys
import traceback
from typing import Annotated

import typer

from tocsin import __version__
from tocsin._cli import check, common, compare, demo, fit, report, reproduce, watch

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tocsin {__version__}")
        raise typer.Exit


@app.callback()
def _tocsin(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Ring when the distribution behind a stream of data changes, with a known rate of false alarms.

    Fit a detector to rows from a time when all was well, and say how many false alarms you can live with: one in so
    many observations. Then let it watch new rows, from a file or as they arrive.

    \b
    Start here:
      tocsin demo
    Then, with data of your own:
      tocsin fit reference.csv -o machine.tocsin --ert 5000
      tocsin watch machine.tocsin today.csv
    """


app.command("fit")(fit.command)
app.command("watch")(watch.command)
app.command("check")(check.command)
app.command("report")(report.command)
app.command("compare")(compare.command)
app.command("demo")(demo.command)
app.command("reproduce")(reproduce.command)


def main() -> None:
    """The console script `tocsin`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal or log that cannot show a character gets a question mark, not a traceback.
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="tocsin")
    except Exception:
        # A bug must not look like an answer: Python would end with status 1, which here says that it rang.
        traceback.print_exc()
        sys.exit(common.TROUBLE)
