"""`tocsin reproduce`: the paper's tables and figures, measured again."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown

from tocsin._cli import common
from tocsin._common.errors import InputError
from tocsin._compute import Backend
from tocsin._experiments.base import Options
from tocsin._experiments.catalogue import EXPERIMENTS, GROUPS
from tocsin._experiments.laboratory import Laboratory
from tocsin._plots.figures import require_matplotlib

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

IMAGES = re.compile(r"!\[[^]]*\]\([^)]*\)\n*")
WIDTH = max(map(len, EXPERIMENTS))

Name = typer.Argument(metavar="NAME", help=f"What to reproduce; {' or '.join(map(repr, GROUPS))} for several at once.")
Output = typer.Option(
    "--output",
    "-o",
    metavar="FOLDER",
    help="Where tables, figures and the ledger go. Default: reproduced, or reproduced-quick.",
)
Quick = typer.Option("--quick", help="A small version: about a minute on two cores.")
Seed = typer.Option(metavar="N", help="Another seed gives another sample of configurations and streams.")
Workers = typer.Option(metavar="N", help="Processes; their number changes nothing in the results. Default: all cores.")
Fresh = typer.Option("--fresh", help="Measure everything again instead of going on from the ledger.")
DrawOnly = typer.Option("--draw-only", help="Measure nothing: draw again from the tables in FOLDER.")
Data = typer.Option(
    metavar="FOLDER",
    help="For 'imaging', a copy of Camelyon17-WILDS, or the BreaKHis tiles; for 'streams', 'power-card' and "
    "'contexts', Parquet files.",
)


@common.short_errors()
def command(
    name: Annotated[str, Name],
    output: Annotated[Path | None, Output] = None,
    quick: Annotated[bool, Quick] = False,
    seed: Annotated[int, Seed] = 0,
    workers: Annotated[int | None, Workers] = None,
    cluster: Annotated[str | None, common.CLUSTER] = None,
    fresh: Annotated[bool, Fresh] = False,
    draw_only: Annotated[bool, DrawOnly] = False,
    data: Annotated[Path | None, Data] = None,
    backend: Annotated[Backend, common.BACKEND] = "numba",
    device: Annotated[str | None, common.DEVICE] = None,
    as_json: Annotated[bool, common.JSON] = False,
) -> None:
    """placeholder"""
    if seed < 0 or (workers is not None and workers < 1):
        raise InputError("--seed is a whole number from 0 on, and --workers one from 1 on.")
    if workers is not None and cluster is not None:
        raise InputError(f"--workers {workers} is for processes here, and --cluster has its own. Give one of the two.")
    if name not in EXPERIMENTS | GROUPS:
        raise InputError(f"Nothing is called {name}. Choose one of {', '.join([*EXPERIMENTS, *GROUPS])}.")
    names = GROUPS.get(name, [name])
    if any(EXPERIMENTS[each].has_figures for each in names):
        require_matplotlib()  # told before hours of work, not after
    output = output or Path("reproduced-quick" if quick else "reproduced")
    laboratory = Laboratory(output, workers=workers, cluster=cluster, fresh=fresh, backend=backend, device=device)
    for each in names:
        began = time.perf_counter()
        experiment = EXPERIMENTS[each]
        if not draw_only:
            try:
                laboratory.run(experiment, Options(seed, quick, data))
            except KeyboardInterrupt:
                typer.echo("\nStopped. What was done is kept: the same command goes on from there.", err=True)
                raise typer.Exit(INTERRUPTED) from None
        text = laboratory.draw(each, experiment)
        files = sorted(str(file) for file in output.iterdir() if file.stem == each or file.stem in experiment.tables)
        if as_json:
            typer.echo(json.dumps({"name": each, "seconds": time.perf_counter() - began, "files": files, "text": text}))
            continue
        out = common.console()
        out.print(Markdown(IMAGES.sub("", text)))  # their files are named below
        out.print(f"\n{each}: {time.perf_counter() - began:.0f} s. Written: {', '.join(files)}.", markup=False)
        commits = {commit for commit, _ in laboratory.origins}
        if len(commits) > 1:
            out.print(
                f"These results come from several versions of the code ({', '.join(sorted(commits))}), since earlier "
                "work was found in the ledger. --fresh measures everything with this one.",
                markup=False,
            )


command.__doc__ = f"""Measure the paper's tables and figures again, and how well the promise is kept.

Results are kept piece by piece in FOLDER/ledger.sqlite: a run that was stopped goes on where it was, and nothing is
counted twice. Tables are written as CSV, with seed, commit and machine; figures as PNG and SVG; the text as Markdown.

\b
{chr(10).join(f"  {name:{WIDTH}}  {experiment.summary}" for name, experiment in EXPERIMENTS.items())}

\b
Examples:
  tocsin reproduce figure1
  tocsin reproduce table1 --quick
  tocsin reproduce intervals
  tocsin reproduce imaging --data camelyon17_v1.0
  tocsin reproduce streams --data recordings --quick
  tocsin reproduce power-card --data recordings
  tocsin reproduce contexts --data recordings
  tocsin reproduce table1 --backend torch --workers 15
  tocsin reproduce table1 --cluster tcp://host:8786
"""
