"""`tocsin demo`: an example that needs no files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from tocsin.cli import common, describe
from tocsin.cli.plot import plot
from tocsin.compute.arrays import Float64Array
from tocsin.detector import Detector

SEED = 0
REFERENCE, QUIET, CHANGED = 1000, 400, 200
ERT = 5000

CODE = """
import tocsin

detector = tocsin.Detector(ert=5000).fit(reference)   # an array with one row per observation
for x in stream:
    outcome = detector.update(x)
    if outcome.alarm:
        print("something changed:", outcome)
        detector.reset()
"""

Files = typer.Option(
    "--files", metavar="FOLDER", help="Also write the data there as reference.csv and stream.csv, for the other commands."
)


@common.short_errors()
def command(files: Annotated[Path | None, Files] = None) -> None:
    """Show on an example what Tocsin does, in seconds.

    A pump's flow and pressure rise and fall together, until a valve sticks and they no longer do. Each on its own looks
    as before, so no limit on either would notice. The data are made on the spot; the seed is fixed.

    Example: [bold]tocsin demo --files .[/bold]
    """
    rng = np.random.default_rng(SEED)
    reference = _pump(rng, REFERENCE, together=0.9)
    stream = np.concatenate([_pump(rng, QUIET, together=0.9), _pump(rng, CHANGED, together=0.0)])

    out = common.console()
    out.print("A pump reports flow and pressure. They rise and fall together; then a valve sticks, and they no longer do.")
    out.print("Each on its own looks as before, so no limit on either would notice.\n")
    began = time.perf_counter()
    with Console(stderr=True).status("fitting (the first time ever, this includes compiling: ten seconds or so)"):
        detector = Detector(ERT, error=0.05, seed=SEED).fit(reference, progress=False)
    out.print(f"[bold]1. Fit[/bold]    {REFERENCE:,} readings from a time when all was well, in {time.perf_counter() - began:.1f} s.")
    out.print(f"          The promise: {describe.promise(detector)}.\n")

    outcomes = detector.update_many(stream)
    alarm = detector.alarm_
    ...
def _pump(rng: np.random.Generator, count: int, together: float) -> Float64Array:
    """Flow (litres a second) and pressure (bar), correlated so much."""
    flow, noise = rng.normal(size=(2, count))
    pressure = together * flow + np.sqrt(1 - together**2) * noise
    return np.column_stack([50 + 4 * flow, 20 + 3 * pressure])
