"""`tocsin compare`: do two tables differ?"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from tocsin._cli import common, reading
from tocsin._cli.fit import Kinds, kinds_of
from tocsin._cli.streams import blocks_for
from tocsin._common.errors import InputError, ReferenceWarning
from tocsin._compare.compare import compare
from tocsin._data.intake import Tabular
from tocsin._data.tables import Columns, Table, numbered
from tocsin._plots.figures import require_matplotlib

DIFFER = 1
"""Exit status when they differ, as diff has it."""

WHOLE = 2**62
"""Rows of a batch that are read at once."""

FORMATS = ".csv, .jsonl, .npy, .npz, .parquet, .feather"

Reference = typer.Argument(
    metavar="REFERENCE", help=f"Rows to compare with: {FORMATS}, or - for standard input (CSV or JSON lines)."
)
Batch = typer.Argument(metavar="BATCH", help="Rows with the same columns: a file of any of these formats, or -.")
Ert = typer.Option(metavar="N", help="Comparisons between false verdicts, on average.")
Plot = typer.Option(metavar="FILE", help="Draw both, column by column, to a .png, .svg or .pdf.")
Seed = typer.Option(metavar="N", help="Whole number for a reproducible answer. Default: a fresh one, told by --json.")


@common.short_errors()
def command(
    reference: Annotated[str, Reference],
    batch: Annotated[str, Batch],
    ert: Annotated[float, Ert] = 100,
    columns: Annotated[str | None, common.COLUMNS] = None,
    kinds: Annotated[str | None, Kinds] = None,
    plot: Annotated[Path | None, Plot] = None,
    force: Annotated[bool, common.FORCE] = False,
    seed: Annotated[int | None, Seed] = None,
    as_json: Annotated[bool, common.JSON] = False,
) -> None:
    """Tell whether two tables differ, and in which columns.

    When nothing differs, it says that they do once in --ert comparisons, on average: rows change places at random
    between the two, and the difference at hand is ranked among those that this gives. Rows that depend on those before
    them change places in blocks, so give them in the order in which they came.

    Exit status: 0 no difference found, 1 they differ, 2 trouble, or too few rows for any verdict.

    \b
    Examples:
      tocsin compare january.csv february.csv
      tocsin compare train.parquet today.parquet --ert 1000 --columns flow,pressure --plot columns.png
    """
    if plot is not None:
        require_matplotlib()
        common.must_be_free(plot, force)
        if plot.suffix not in (".png", ".svg", ".pdf"):
            raise InputError(f"--plot {plot}: must end in .png, .svg or .pdf.")
    if reference == batch == reading.STANDARD_INPUT:
        raise InputError("Standard input can be one of the tables, not both. Name a file for the other.")
    chosen = common.names(columns)
    given = kinds_of(chosen, kinds)
    table = reading.read_whole(reference, chosen)
    learned = Tabular(Columns.learn(table, given))
    blocks = list(blocks_for(learned, reading.source_name(reference), batch, _wanted(table, learned, chosen), WHOLE))
    if not blocks:
        raise InputError(f"{reading.source_name(batch)} holds no rows; there is nothing to compare.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReferenceWarning)
        answer = compare(table, Table.join(blocks), ert=ert, kinds=given, seed=seed)
    for note in common.warned(caught):
        typer.echo(f"tocsin: {note}.", err=True)
    if plot is not None:
        answer.plot(plot)
    if as_json:
        typer.echo(answer.to_json())
    else:
        common.console().print(str(answer), markup=False, soft_wrap=True)
        if plot is not None:
            typer.echo(f"Drawn to {plot}.")
    if not answer.conclusive:
        raise typer.Exit(common.TROUBLE)
    raise typer.Exit(DIFFER if answer.differs else 0)


def _wanted(table: Table, learned: Tabular, chosen: list[str] | None) -> list[str] | None:
    """Columns of the batch to read: without clocks, which say when rows came and are not compared."""
    if chosen is None and table.names != numbered(len(table.names)):
        return None
    return [name for name in table.names if name in learned.names]
