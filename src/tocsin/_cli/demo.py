"""`tocsin demo`: an example that needs no files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from tocsin._cli import common, describe
from tocsin._cli.plot import plot
from tocsin._common.files import replacing
from tocsin._common.wording import counted
from tocsin._compute.arrays import Float64Array
from tocsin._detector.detector import Detector
from tocsin._state.outcomes import Outcomes

SEED = 0
ERT = 5000
REFERENCE, BEFORE, AFTER, QUIET = 1000, 400, 400, 10_000
"""Observations of the reference, of the stream before and after the change, and of a stream without one."""

NEXT_IN_PYTHON = f"""
    import tocsin

    detector = tocsin.Detector(ert={ERT}).fit(reference)    # an array, one row per observation
    for x in stream:
        outcome = detector.update(x)
        if outcome.alarm:
            print(detector.explain())    # when it began, which columns changed, examples
"""

NEXT_IN_A_SHELL = f"""
    tocsin demo --files .                                    # writes reference.csv, stream.csv and quiet.csv
    tocsin fit reference.csv -o pump.tocsin --ert {ERT}
    tocsin watch pump.tocsin stream.csv
    tocsin report pump.tocsin stream.csv -o report.html      # every alarm explained, on one page
    cat stream.csv | tocsin watch pump.tocsin -              # each row as it arrives
"""

Files = typer.Option("--files", metavar="FOLDER", help="Write the data there: reference.csv, stream.csv, quiet.csv.")


@common.short_errors()
def command(files: Annotated[Path | None, Files] = None, force: Annotated[bool, common.FORCE] = False) -> None:
    """Show on an example what Tocsin does, in seconds.

    A pump's flow and pressure rise and fall together, until a valve sticks and they no longer do. Each on its own looks
    as before, so no limit on either would notice. The data are made on the spot, from a fixed seed.

    \b
    Example:
      tocsin demo
    """
    rng = np.random.default_rng(SEED)
    reference = _pump(rng, REFERENCE, together=0.9)
    stream = np.concatenate([_pump(rng, BEFORE, together=0.9), _pump(rng, AFTER, together=0.0)])
    if files is not None:
        _write(files, {"reference": reference, "stream": stream, "quiet": _pump(rng, QUIET, together=0.9)}, force)
        return

    out = common.console()
    out.print(
        "\nA pump reports flow and pressure, which rise and fall together. Then a valve sticks, and they no longer do. "
        "Each on its own looks as before: no limit on either would notice.\n"
    )
    began = time.perf_counter()
    with Console(stderr=True).status("fitting (the very first time this compiles, for ten seconds or so)"):
        detector = Detector(ERT, error=0.05, seed=SEED).fit(reference, progress=False)
    seconds = time.perf_counter() - began
    outcomes = _watch_until_change_is_found(detector, stream)
    alarm, false, explanation = len(outcomes), int(outcomes.alarm[:-1].sum()), detector.explain()
    describe.print_table(
        out,
        [
            ("1 fit", f"{REFERENCE:,} observations from a time when all was well ({seconds:.1f} s)"),
            ("  promise", describe.promise(detector)),
            ("  precision", describe.precision(detector)),
            ("2 watch", f"{BEFORE} more good observations: {counted(false, 'false alarm')}"),
            ("  change", f"the valve sticks after observation {BEFORE}"),
            ("3 alarm", f"at observation {alarm}, {alarm - BEFORE} after the change ({outcomes[-1].channel})"),
            ("4 explain", f"the change began {explanation.moved_on(alarm - explanation.outcome.time).began}"),
            ("  columns", describe.changed(explanation) or "neither stands out: the change lies between them"),
        ],
    )
    out.print()
    out.print(plot(outcomes, BEFORE))
    out.print("[bold]Try it in Python[/bold]")
    out.print(NEXT_IN_PYTHON, markup=False, soft_wrap=True)
    out.print("[bold]or in a shell[/bold]")
    out.print(NEXT_IN_A_SHELL, markup=False, soft_wrap=True)


def _watch_until_change_is_found(detector: Detector, stream: Float64Array) -> Outcomes:
    """Up to the first alarm after the change, which then can be explained."""
    pieces = [detector.update_until_alarm(stream)]
    while (seen := sum(map(len, pieces))) <= BEFORE:
        pieces.append(detector.update_until_alarm(stream[seen:]))
    return Outcomes.join(pieces)


def _pump(rng: np.random.Generator, count: int, together: float) -> Float64Array:
    """Flow and pressure, with this correlation."""
    flow, noise = rng.normal(size=(2, count))
    pressure = together * flow + np.sqrt(1 - together**2) * noise
    return np.column_stack([50 + 4 * flow, 20 + 3 * pressure])


def _write(folder: Path, tables: dict[str, Float64Array], force: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in tables:
        common.must_be_free(folder / f"{name}.csv", force)  # all of them, or nothing is written
    for name, rows in tables.items():
        file = folder / f"{name}.csv"
        with replacing(file) as whole:
            np.savetxt(whole, rows, fmt="%.4f", delimiter=",", header="flow,pressure", comments="")
        typer.echo(f"{file}: {counted(len(rows), 'row')}")
    typer.echo(f"The change comes after observation {BEFORE} of the stream.")
